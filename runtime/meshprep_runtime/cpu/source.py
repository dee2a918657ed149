"""The text of the loop around a kernel: one function of the arguments a strategy.

``elements`` runs a range of elements one after the other; each strategy decides on the ranges.
Maps come as unsigned integers, which spares the test for negative indices that numba would make.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..bind import Slot
from ..loops import Access, Arg, Loop

ELEMENTS = """\
def elements(start, stop, {params}):
    for e in range(np.uint64(start), np.uint64(stop)):
        kernel({values})
"""

SEQUENTIAL = """\
def run(n, block_offset, colour_offset, block_order, {params}):
    elements(0, n, {params})
"""

# Every block reduces into a row of its own; the rows are combined in the order of the blocks, so
# that the result does not depend on the threads.
HIERARCHICAL = """\
def run(n, block_offset, colour_offset, block_order, {params}):
{prepare}    for colour in range(colour_offset.size - 1):
        for i in prange(colour_offset[colour], colour_offset[colour + 1]):
            b = block_order[i]
            elements(block_offset[b], block_offset[b + 1], {passed})
{combine}"""

PREPARE = """\
    part_{name} = np.empty((block_order.size, {name}.size), {name}.dtype)
    part_{name}[:] = {start}
"""

COMBINE = """\
    for b in range(block_order.size):
        for k in range({name}.size):
            {name}[k] = {combined}
"""

# Access of a reduction: what a block starts from, and how its part joins the others.
REDUCTIONS = {
    Access.INC: ("0", "{name}[k] + part_{name}[b, k]"),
    Access.MIN: ("{name}", "min({name}[k], part_{name}[b, k])"),
    Access.MAX: ("{name}", "max({name}[k], part_{name}[b, k])"),
}


def elements_source(loop: Loop, slots: Sequence[Slot]) -> str:
    """The function that runs a range of elements in order."""
    return ELEMENTS.format(params=_params(loop, slots), values=_values(loop, slots))


def sequential(loop: Loop, slots: Sequence[Slot]) -> str:
    """Every element in order, on one thread: the reference."""
    return SEQUENTIAL.format(params=_params(loop, slots))


def hierarchical(loop: Loop, slots: Sequence[Slot]) -> str:
    """Block colours one after the other, the blocks of one in parallel [S19, G12 section 4]."""
    prepare = combine = ""
    passed = [f"m{i}" for i in range(len(loop.maps))]
    for i, slot in enumerate(slots):
        if slot.rows is None and slot.written:
            start, combined = (t.format(name=f"s{i}") for t in REDUCTIONS[slot.access])
            prepare += PREPARE.format(name=f"s{i}", start=start)
            combine += COMBINE.format(name=f"s{i}", combined=combined)
            passed.append(f"part_s{i}[b]")
        else:
            passed.append(f"s{i}")
    return HIERARCHICAL.format(
        params=_params(loop, slots), prepare=prepare, combine=combine, passed=", ".join(passed)
    )


Source = Callable[[Loop, Sequence[Slot]], str]

# Name of a strategy -> (text of its function, whether numba runs it on several threads).
STRATEGIES: dict[str, tuple[Source, bool]] = {
    "sequential": (sequential, False),
    "hierarchical": (hierarchical, True),
}


def _params(loop: Loop, slots: Sequence[Slot]) -> str:
    return ", ".join(
        [f"m{i}" for i in range(len(loop.maps))] + [f"s{i}" for i in range(len(slots))]
    )


def _values(loop: Loop, slots: Sequence[Slot]) -> str:
    place = {slot.name: f"s{i}" for i, slot in enumerate(slots)}
    return ", ".join(row for arg in loop.args for row in _rows(loop, arg, place[arg.name]))


def _rows(loop: Loop, arg: Arg, slot: str) -> list[str]:
    if arg.is_global:
        return [slot]
    if arg.map is None:
        return [f"{slot}[e]"]
    m = loop.maps.index(arg.map)
    return [f"{slot}[m{m}[e, {k}]]" for k in arg.index]
