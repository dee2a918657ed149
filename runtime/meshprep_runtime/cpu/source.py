"""The text of the function that one call runs: it hands ranges of elements to threads."""

from collections.abc import Sequence

from ..kernel.bind import Slot
from .elements import COMBINED

SEQUENTIAL = """\
def run(who, range_offset, phase_offset, range_order, order, {params}):
    for b in range(range_order.size):
        elements(range_offset[b], range_offset[b + 1], order, {params})
"""

# Every thread that works on a loop runs this; 0 is the one that called it. A thread takes the next
# range off a counter and waits until all ranges of earlier phases are done. Ranges are taken in
# order, so whatever a thread waits for is being run by another one, however many there are: no
# deadlock, and no barrier. After an exception what is left is counted as done, but not run.
PARALLEL = """\
def run(who, counters, range_offset, phase_offset, range_order, order, {params}):
    phase = 0
    i = fetch_add(counters, TAKEN)
    while i < range_order.size:
        while i >= phase_offset[phase + 1]:
            phase += 1
        while look(counters, DONE) < phase_offset[phase]:
            rest()
        b = range_order[i]
        start, stop = range_offset[b], range_offset[b + 1]
        if look(counters, FAILED) == 0 and raises(elements, start, stop, order, {passed}):
            counters[WHERE] = b
            fetch_add(counters, FAILED)
        fetch_add(counters, DONE)
        i = fetch_add(counters, TAKEN)
    if who > 0:
        return
    while look(counters, DONE) < range_order.size:
        rest()
    if counters[FAILED] > 0:
        # Once more on this thread, where exceptions arrive.
        b = counters[WHERE]
        elements(range_offset[b], range_offset[b + 1], order, {passed})
        raise RuntimeError("the kernel raised an exception on one of several threads")
{combine}"""
# Points that a thread takes at a time in the second step of two.
POINTS = 4096
# Far enough apart for each to have cache lines of its own.
COUNTERS = {"TAKEN": 0, "DONE": 16, "FAILED": 32, "WHERE": 33}
COUNTER_ROOM = 48

# Every range reduces into a row of its own; the rows are combined in the order of the ranges, so
# that the result does not depend on the threads. Rows of ranges that are not run now add nothing.
COMBINE = """\
    for b in range(range_offset.size - 1):
        for k in range({name}.size):
            {name}[k] = {combined}
"""

# The ranges of the second step of two are so many points.
SUM = """\
def run(who, counters, point_offset, place, found, total):
    n = point_offset.size - 1
    first = fetch_add(counters, TAKEN) * {piece}
    while first < n:
        for p in range(first, min(first + {piece}, n)):
            for i in range(point_offset[p], point_offset[p + 1]):
{body}        fetch_add(counters, DONE)
        first = fetch_add(counters, TAKEN) * {piece}
    while who == 0 and look(counters, DONE) * {piece} < n:
        rest()
"""


def sequential(params: Sequence[str], slots: Sequence[Slot]) -> str:
    """Every range in order, on one thread."""
    return SEQUENTIAL.format(params=", ".join(params))


def parallel(params: Sequence[str], slots: Sequence[Slot]) -> str:
    """The ranges of each phase on all threads; what :func:`reduced` names comes last."""
    combine = ""
    passed, every = list(params), list(params)
    for i, slot in reduced(slots):
        name = f"s{i}"
        value = COMBINED[slot.access].format(total=f"{name}[k]", value=f"part_{name}[b, k]")
        combine += COMBINE.format(name=name, combined=value)
        passed[passed.index(name)] = f"part_{name}[b]"
        every.append(f"part_{name}")
    return PARALLEL.format(params=", ".join(every), combine=combine, passed=", ".join(passed))


def reduced(slots: Sequence[Slot]) -> list[tuple[int, Slot]]:
    """The globals that a loop changes, with their places; each range needs a row for each."""
    return [(i, slot) for i, slot in enumerate(slots) if slot.rows is None and slot.written]


def point_sums(slot: Slot) -> str:
    """The second step of two: each point adds up what its elements found."""
    soa = slot.soa and slot.dim > 1
    body = ""
    for k in range(slot.dim):
        target = f"{k} * (point_offset.size - 1) + p" if soa else f"p * {slot.dim} + {k}"
        body += f"                total[{target}] += found[place[i] * {slot.dim} + {k}]\n"
    return SUM.format(body=body, piece=POINTS)
