"""What running tiles takes: functions, threads, and globals that tiles reduce."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cpu.executor import Executor
from ...cpu.pool import share, thread_count
from ...cpu.source.element import ElementCode
from ...cpu.source.forms import forms
from ...kernel.analysis import takes_single
from ...kernel.compiler import compile_error, import_numba
from ...kernel.rows import rows_of
from ...types.loops import Access
from ..mpi import COMBINE
from .records import Assign, Call, Record, add_place

Arrays = dict[str, NDArray[Any]]


def numbered_functions(
    executors: Sequence[Executor], listed: Sequence[bool]
) -> tuple[dict[str, Any], list[int]]:
    """One function for each loop and numbering of elements, and which a call takes."""
    from ...cpu.build import Inlined

    numbers: dict[tuple[int, bool], int] = {}
    functions = {}
    for executor, some in zip(executors, listed, strict=True):
        key = (id(executor), some)
        if key not in numbers:
            suffix = f"_{numbers.setdefault(key, len(numbers))}"
            text = elements_text(executor, some, suffix)
            single = takes_single(slot.dtype for slot in executor.slots)
            fast = executor.options.fastmath
            functions[text] = Inlined(executor.kernel, fast, single, suffix)
    return functions, [numbers[id(e), some] for e, some in zip(executors, listed, strict=True)]


def compiled(
    functions: Mapping[str, Any], text: str, arrays: Sequence[NDArray[Any]], one: Executor
) -> Any:
    """The compiled ``run(thread, taken, *arrays)``; raises MeshprepError in the name of ``one``."""
    from ...cpu.build import Request, build

    request = Request("\n\n".join([*functions, text]), tuple(functions.values()))
    try:
        return build(request, [np.zeros(LINE, np.int64), *arrays])
    except Exception as error:  # numba's own and, for some bytecode, others.
        raise compile_error(one.kernel, one.loop, one.slots, error) from error


def launch(
    call: Any,
    arrays: Sequence[NDArray[Any]],
    n_tiles: int,
    state: NDArray[np.int64],
    records: Sequence[Record],
) -> None:
    """Let threads take tiles; the first exception, or interrupt, stops them before it is raised."""
    taken = np.zeros(LINE, np.int64)
    taken[1] = n_tiles
    failed: list[tuple[int, Exception]] = []

    def work(thread: int) -> None:
        try:
            call(thread, taken, *arrays)
        except Exception as error:
            failed.append((thread, error))
            stop()

    def stop() -> None:
        taken[0] = n_tiles

    share(work, min(thread_count(), n_tiles), stop)
    if failed:
        thread, error = failed[0]
        calls = [n for n, r in enumerate(records) if isinstance(r, Call)]
        n = calls[int(state[thread * LINE])]
        # what the program gave to globals before the call stays, as it would without tiles
        for record in records[:n]:
            if isinstance(record, Assign):
                record.run()
        add_place(error, records, n)
        raise error


def arrays_of_globals(
    records: Sequence[Record], executors: Sequence[Executor], n_tiles: int
) -> Arrays:
    """Constants; for what loops reduce a row a tile, and a row a thread that nobody looks at.

    Least and largest start from what the program gave, which a kernel may look at, unless another
    loop of the chain reduces the same global otherwise.
    """
    arrays: Arrays = {}
    threads = import_numba().config.NUMBA_NUM_THREADS
    assigned: dict[int, NDArray[Any]] = {}
    ways: dict[int, set[Access]] = defaultdict(set)
    n = 0
    for record in records:
        if isinstance(record, Assign):
            assigned[id(record.target)] = record.values
            ways[id(record.target)].clear()
            continue
        for i, slot in enumerate(executors[n].slots):
            value = record.given[slot.name]
            if slot.rows is None and not slot.written:
                arrays[f"c{n}_{i}"] = value
            elif slot.rows is None:
                way = ways[id(value)]
                way.add(slot.access)
                start = assigned.get(id(value), value.stored)
                if slot.access is Access.INC or len(way) > 1:
                    start = neutral(slot.access, slot.dtype)
                arrays[f"p{n}_{i}"] = np.full((n_tiles, slot.dim), start, slot.dtype)
                arrays[f"x_p{n}_{i}"] = np.full((threads, slot.dim), start, slot.dtype)
        n += 1
    return arrays


def reduce_into(records: Sequence[Record], executors: Sequence[Executor], arrays: Arrays) -> None:
    """Add what the tiles found to the globals, in the order of the calls."""
    n = 0
    for record in records:
        if isinstance(record, Assign):
            record.run()
            continue
        for i, slot in enumerate(executors[n].slots):
            if slot.rows is None and slot.written:
                how = COMBINE[slot.access]
                total, found = record.given[slot.name].stored, arrays[f"p{n}_{i}"]
                if len(found):
                    how(total, how.reduce(found, axis=0), out=total)
        n += 1


def neutral(access: Access, dtype: np.dtype[Any]) -> Any:
    """What a reduction of nothing gives."""
    if access is Access.INC:
        return 0
    if dtype.kind == "f":
        return np.inf if access is Access.MIN else -np.inf
    limits = np.iinfo(dtype)
    return limits.max if access is Access.MIN else limits.min


def executor_of(call: Call) -> Executor:
    """What compiles and runs the loop of a call alone."""
    raw = {n: getattr(v, "stored", v) for n, v in call.given.items()}
    return call.loop.taking(call.given).on_host(raw).executor


# Integers of the schedule stand in one table ``g``, a row a tile, and in one array of each kind:
# the tiles' elements, the rows of their maps, and listed selections. Each thread has rows of its
# own for the dats of one tile, small enough to stay in its cache.
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


def elements_text(executor: Executor, listed: bool, suffix: str) -> str:
    """``def elements_0(start, stop, order, ...)`` on the rows of a tile."""
    loop, slots = executor.loop, executor.slots
    rows = tuple(replace(row, soa=False) for row in rows_of(loop, slots))
    params = [f"m{i}" for i in range(len(loop.maps))] + [f"s{i}" for i in range(len(slots))]
    form = forms(executor.kernel, rows)[0]
    return ElementCode(rows, tuple(params), permuted=listed, form=form, suffix=suffix).text()


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
