"""The text of the function that one call runs: it hands ranges of elements to threads."""

from collections.abc import Sequence
from textwrap import indent

from ..kernel.bind import Slot
from ..kernel.rows import COMBINED
from ..types.loops import Access

# ``run(who, counters, span, turns, waits, order, ...)`` runs turns ``span[0]`` to ``span[1] - 1``;
# it is the same for all strategies, see :class:`~.schedule.Schedule`. ``who`` is -1 for one thread
# alone, which needs no counters. Otherwise 0 is the thread that called, others beside it help.
#
# A thread takes the next turn off a counter, and waits for the turns that it comes after. Turns are
# taken in order, so whatever a thread waits for is being run by another one, however many there
# are: no deadlock, and no barrier. After an exception what is left is counted as done, but not run.
# Returned is the turn that failed, to be run once more where exceptions arrive, or -1.
RUN = """\
def run(who, counters, span, turns, waits, order, {params}):
    first, last = span[0], span[1]
    if who < 0:
        for i in range(first, last):
{begin_alone}            elements(turns[i, 0], turns[i, 1], order, {passed})
{combine_alone}        return -1
    i = first + fetch_add(counters, TAKEN)
    while i < last:
        while first + look(counters, DONE) < turns[i, 2]:
            rest()
        for k in range(turns[i, 3], turns[i, 4]):
            if waits[k] >= first:
                while look(counters, TURNS + waits[k]) == 0:
                    rest()
{begin_shared}        if look(counters, FAILED) == 0 and raises(
            elements, turns[i, 0], turns[i, 1], order, {passed}
        ):
            counters[WHERE] = i
            fetch_add(counters, FAILED)
        fetch_add(counters, TURNS + i)
        fetch_add(counters, DONE)
        i = first + fetch_add(counters, TAKEN)
    if who > 0:
        return -1
    while first + look(counters, DONE) < last:
        rest()
    if counters[FAILED] > 0:
        return counters[WHERE]
{combine_shared}    return -1
"""
# The same for what only one thread runs.
ALONE = """\
def run(who, counters, span, turns, waits, order, {params}):
    for i in range(span[0], span[1]):
        elements(turns[i, 0], turns[i, 1], order, {params})
    return -1
"""
# Points that a thread takes at a time in the second step of two.
POINTS = 4096
# Far enough apart for each to have cache lines of its own; those of the turns come last.
COUNTERS = {"TAKEN": 0, "DONE": 16, "FAILED": 32, "WHERE": 33, "TURNS": 48}

# Every turn reduces into a row of its own, which starts from what changes nothing; the rows are
# combined in the order of the turns, so that the result does not depend on the threads.
BEGIN = """\
for k in range({name}.size):
    part_{name}[i, k] = {start}
"""
COMBINE = """\
for i in range(first, last):
    for k in range({name}.size):
        {name}[k] = {combined}
"""

# What the second step of two takes.
SUMMED = ("point_offset", "place", "found", "total")
# Each point adds up what its elements found.
SUM = """\
def elements(start, stop, order, point_offset, place, found, total):
    for p in range(start, stop):
        for i in range(point_offset[p], point_offset[p + 1]):
{body}"""


def alone(params: Sequence[str]) -> str:
    """``run`` for one thread."""
    return ALONE.format(params=", ".join(params))


def shared(params: Sequence[str], slots: Sequence[Slot] = ()) -> str:
    """``run`` for several threads; rows for what :func:`reduced` names come last."""
    begin, combine = "", ""
    passed, every = list(params), list(params)
    for i, slot in reduced(slots):
        name = f"s{i}"
        value = COMBINED[slot.access].format(total=f"{name}[k]", value=f"part_{name}[i, k]")
        nothing = "-0.0" if slot.dtype.kind == "f" else "0"
        start = nothing if slot.access is Access.INC else f"{name}[k]"
        begin += BEGIN.format(name=name, start=start)
        combine += COMBINE.format(name=name, combined=value)
        passed[passed.index(name)] = f"part_{name}[i]"
        every.append(f"part_{name}")
    return RUN.format(
        params=", ".join(every),
        passed=", ".join(passed),
        begin_alone=indent(begin, " " * 12),
        begin_shared=indent(begin, " " * 8),
        combine_alone=indent(combine, " " * 8),
        combine_shared=indent(combine, " " * 4),
    )


def reduced(slots: Sequence[Slot]) -> list[tuple[int, Slot]]:
    """The globals that a loop changes, with their places; each turn needs a row for each."""
    return [(i, slot) for i, slot in enumerate(slots) if slot.rows is None and slot.written]


def point_sums(slot: Slot, n_points: int) -> str:
    """``elements`` of the second step of two, over points."""
    soa = slot.soa and slot.dim > 1
    body = ""
    for k in range(slot.dim):
        target = f"{k * n_points} + p" if soa else f"p * {slot.dim} + {k}"
        body += f"            total[{target}] += found[place[i] * {slot.dim} + {k}]\n"
    return SUM.format(body=body)
