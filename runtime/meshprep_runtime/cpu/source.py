"""The text of the function that one call runs: it hands ranges of elements to threads."""

from collections.abc import Sequence

from ..kernel.bind import Slot
from ..loops import Access
from .elements import COMBINED

SEQUENTIAL = """\
def run(threads, range_offset, phase_offset, range_order, order, {params}):
    for b in range(range_order.size):
        elements(range_offset[b], range_offset[b + 1], order, {params})
"""

# One parallel region for the whole loop. A thread takes the next range off a counter and waits
# until all ranges of earlier phases are done. Ranges are taken in order, so whatever a thread
# waits for is being run by another one, however many there are: no deadlock, and no barrier.
PARALLEL = """\
def run(threads, range_offset, phase_offset, range_order, order, {params}):
{prepare}    counters = np.zeros(48, np.int64)
    for thread in prange(threads):
        phase = 0
        i = fetch_add(counters, TAKEN)
        while i < range_order.size:
            while i >= phase_offset[phase + 1]:
                phase += 1
            while look(counters, DONE) < phase_offset[phase] and look(counters, FAILED) == 0:
                rest()
            if look(counters, FAILED) > 0:
                break
            b = range_order[i]
            start, stop = range_offset[b], range_offset[b + 1]
            if raises(elements, start, stop, order, {passed}):
                counters[WHERE] = b
                fetch_add(counters, FAILED)
            fetch_add(counters, DONE)
            i = fetch_add(counters, TAKEN)
    if counters[FAILED] > 0:
        # Once more on this thread, where exceptions arrive.
        b = counters[WHERE]
        elements(range_offset[b], range_offset[b + 1], order, {passed})
        raise RuntimeError("the kernel raised an exception on one of several threads")
{combine}"""
# Far enough apart for each to have cache lines of its own.
COUNTERS = {"TAKEN": 0, "DONE": 16, "FAILED": 32, "WHERE": 33}

# Every range reduces into a row of its own; the rows are combined in the order of the ranges, so
# that the result does not depend on the threads. Rows of ranges that are not run now add nothing.
# A slice would be filled by a region of its own, with a message that takes seconds to compile.
PREPARE = """\
    part_{name} = np.empty((range_offset.size - 1, {name}.size), {name}.dtype)
    for r in range(range_offset.size - 1):
        for k in range({name}.size):
            part_{name}[r, k] = {start}
"""

COMBINE = """\
    for b in range(range_offset.size - 1):
        for k in range({name}.size):
            {name}[k] = {combined}
"""

SUM = """\
def run(threads, point_offset, place, found, total):
    for p in prange(point_offset.size - 1):
        for i in range(point_offset[p], point_offset[p + 1]):
{body}"""


def sequential(params: Sequence[str], slots: Sequence[Slot]) -> str:
    """Every range in order, on one thread."""
    return SEQUENTIAL.format(params=", ".join(params))


def parallel(params: Sequence[str], slots: Sequence[Slot]) -> str:
    """The ranges of each phase on all threads."""
    prepare = combine = ""
    passed = list(params)
    for i, slot in enumerate(slots):
        name = f"s{i}"
        if slot.rows is None and slot.written:
            start = "0" if slot.access is Access.INC else f"{name}[k]"
            value = COMBINED[slot.access].format(total=f"{name}[k]", value=f"part_{name}[b, k]")
            prepare += PREPARE.format(name=name, start=start)
            combine += COMBINE.format(name=name, combined=value)
            passed[passed.index(name)] = f"part_{name}[b]"
    return PARALLEL.format(
        params=", ".join(params), prepare=prepare, combine=combine, passed=", ".join(passed)
    )


def point_sums(slot: Slot) -> str:
    """The second step of two: each point adds up what its elements found."""
    soa = slot.soa and slot.dim > 1
    body = ""
    for k in range(slot.dim):
        target = f"{k} * (point_offset.size - 1) + p" if soa else f"p * {slot.dim} + {k}"
        body += f"            total[{target}] += found[place[i] * {slot.dim} + {k}]\n"
    return SUM.format(body=body)
