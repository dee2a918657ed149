"""The text of the function that runs a chain tile by tile.

Integers of the schedule stand in one table ``g``, a row a tile, and in one array of each kind: the
tiles' elements, the rows of their maps, and listed selections. Each thread has rows of its own for
the dats of one tile, small enough to stay in its cache.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...cpu.elements import ElementCode, can_chunk
from ...kernel.bind import Slot
from ...kernel.rows import rows_of
from ...loops import Loop

TAKE = """\
def run(thread, taken, {params}):
    stop = taken[1]
    t = fetch_add(taken, 0)
    while t < stop:
{body}
        t = fetch_add(taken, 0)
"""
# Integers of a line of a cache.
LINE = 16


@dataclass(frozen=True)
class DatCode:
    """A dat of the chain in the text, where ``name`` stands for it.

    ``copied``: from the array ``d_NAME`` into the rows ``w_NAME``; ``listed``: only some of a
    tile's elements; ``stored``: into ``n_NAME``; ``zero``: starts from zero, and must end so.
    """

    dat: str
    name: str
    set: str
    dim: int
    soa: bool
    copied: bool
    listed: bool
    stored: bool
    zero: bool


@dataclass(frozen=True)
class CallCode:
    """A call: which function, names of its arguments by slot, and whether elements are listed."""

    function: int
    given: Sequence[str]
    maps: Sequence[str]
    over: str
    listed: bool
    reduced: Sequence[int]


def elements_text(loop: Loop, slots: Sequence[Slot], listed: bool, suffix: str) -> str:
    """``def elements_0(start, stop, order, ...)`` on the rows of a tile."""
    rows = tuple(replace(row, soa=False) for row in rows_of(loop, slots))
    params = [f"m{i}" for i in range(len(loop.maps))] + [f"s{i}" for i in range(len(slots))]
    return ElementCode(
        rows, tuple(params), permuted=listed, chunks=can_chunk(rows), suffix=suffix
    ).text()


def tile_text(
    params: Sequence[str],
    column: Mapping[str, int],
    sets: Sequence[str],
    maps: Mapping[str, int],
    dats: Sequence[DatCode],
    calls: Sequence[CallCode],
) -> str:
    """``def run(thread, taken, ...)``: take tiles off a counter until there is none."""
    numbered = {s: i for i, s in enumerate(sets)}
    lines = []
    for s, i in numbered.items():
        lines.append(f"e{i} = e[{_between(column, f'set {s}')}]")
    for m, arity in maps.items():
        rows = f"m[{_between(column, f'map {m}')}]"
        lines.append(f"{map_name(maps, m)} = {rows}.reshape((-1, {arity}))")
    lines += [f"w_{d.name} = r_{d.name}[thread]" for d in dats]
    for d in dats:
        lines += _copy(d, column, numbered[d.set])
    for n, call in enumerate(calls):
        lines += [f"state[thread * {LINE}] = {n}", *_call(n, call, column, maps)]
    for d in dats:
        lines += _store(d, column, numbered[d.set])
    return TAKE.format(params=", ".join(params), body="\n".join(f"        {x}" for x in lines))


def map_name(maps: Mapping[str, int], name: str) -> str:
    """Of the rows of a map in the text."""
    return f"m{list(maps).index(name)}"


def _between(column: Mapping[str, int], what: str) -> str:
    return f"g[t, {column[what]}]:g[t, {column[what] + 1}]"


def _copy(d: DatCode, column: Mapping[str, int], s: int) -> list[str]:
    if d.zero:
        return [f"w_{d.name}[:e{s}.size * {d.dim}] = 0"]
    if not d.copied:
        return []
    if d.listed:
        first = [f"i{d.name} = l[{_between(column, f'list copy {d.dat}')}]"]
        loop, more = f"for j in range(i{d.name}.size):", [f"    i = i{d.name}[j]"]
    else:
        first, more = [], []
        loop = f"for i in range(g[t, {column[f'copy {d.dat}']}]):"
    own = f"U(i) * U({d.dim})"
    body = [f"    copy_row(w_{d.name}, {own}, d_{d.name}, p * U({d.dim}), {d.dim})"]
    if d.soa:
        body = [
            f"    w_{d.name}[{own} + U({k})] = d_{d.name}[{_place('d', d, k)}]"
            for k in range(d.dim)
        ]
    return [*first, loop, *more, f"    p = U(e{s}[i])", *body]


def _place(array: str, d: DatCode, k: int) -> str:
    """Of component ``k`` of element ``p`` of a SoA dat."""
    return f"U({k}) * U({array}_{d.name}.size // {d.dim}) + p"


def _call(n: int, call: CallCode, column: Mapping[str, int], maps: Mapping[str, int]) -> list[str]:
    lines = []
    order = "l"
    if call.listed:
        lines.append(f"o = l[{_between(column, f'list run {n}')}]")
        order = "o"
    given = [map_name(maps, m) for m in call.maps]
    # Numbers of one type, so that the function is compiled once.
    count = f"U(g[t, {column[f'run {n}']}])"
    function = f"elements_{call.function}"
    if not call.reduced:
        return [*lines, f"{function}(U(0), {count}, {order}, {', '.join([*given, *call.given])})"]
    own = f"U(g[t, {column[f'own {call.over}']}])"
    mine = [f"{a}[t]" if i in call.reduced else a for i, a in enumerate(call.given)]
    other = [f"x_{a}[thread]" if i in call.reduced else a for i, a in enumerate(call.given)]
    return [
        *lines,
        f"{function}(U(0), {own}, {order}, {', '.join([*given, *mine])})",
        f"{function}({own}, {count}, {order}, {', '.join([*given, *other])})",
    ]


def _store(d: DatCode, column: Mapping[str, int], s: int) -> list[str]:
    own = f"g[t, {column[f'own {d.set}']}]"
    if d.zero:
        return [
            "wrong = False",
            f"for i in range({own} * {d.dim}):",
            f"    wrong |= w_{d.name}[i] != 0",
            "if wrong:",
            f"    state[thread * {LINE} + 1] = 1",
        ]
    if not d.stored:
        return []
    row = f"U(i) * U({d.dim})"
    body = [f"    copy_row(n_{d.name}, p * U({d.dim}), w_{d.name}, {row}, {d.dim})"]
    if d.soa:
        body = [
            f"    n_{d.name}[{_place('n', d, k)}] = w_{d.name}[{row} + U({k})]"
            for k in range(d.dim)
        ]
    return [f"for i in range({own}):", f"    p = U(e{s}[i])", *body]
