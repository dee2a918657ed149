"""The text of the function that one call runs: it hands ranges of elements to threads."""

from collections.abc import Sequence
from textwrap import indent

from ...kernel.bind import Slot
from ...kernel.rows import COMBINED
from ...types.loops import Access

# ``run(who, first, last, counters, words)`` runs turns ``first`` to ``last - 1``; it is the same
# for all strategies, see :class:`.Schedule`. ``words`` tells where the arrays ``turns``,
# ``waits``, ``order`` and those of the loop lie. ``who`` is -1 for one thread alone, which needs no
# counters. Otherwise 0 is the thread that called, others beside it help.
#
# A thread takes the next turn off a counter, and waits for the turns that it comes after. Turns are
# taken in order, so whatever a thread waits for is being run by another one, however many there
# are: no deadlock, and no barrier. After an exception what is left is counted as done, but not run.
# Returned is the turn that failed, to be run once more where exceptions arrive, or -1.
SHARED = """\
    if who < 0:
        for i in range(first, last):
{begin_alone}            if raises(elements, turns[i, 0], turns[i, 1], order, {passed}):
                return i
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
    for i in range(first, last):
        if raises(elements, turns[i, 0], turns[i, 1], order, {passed}):
            return i
    return -1
"""
# One turn, from Python, where exceptions arrive.
ONCE = """\
def run(i, turns, waits, order, {params}):
{begin}    elements(turns[i, 0], turns[i, 1], order, {passed})
"""
# What the caller and its helpers run without Python. ``call`` runs steps on one thread, one after
# the other, and says which turn of which failed; the words of each follow its function, its turns
# and their number. A helper listens at its box, for so many
# looks, and runs what is offered there. The caller offers, runs, and takes back what nobody has
# begun. It does not wait for a helper that is about to find that nothing is left: LATE counts those
# of this call, and LEFT all that are in a call, since they may still look at its counters and
# arrays. Returned is FINE; ASLEEP where a helper does not listen, before anything runs, if that
# matters; or that the counters have more to say.
TEAM = """\
def call(steps, failed):
    k, step = 0, 0
    while k < steps.size:
        words = steps.ctypes.data + 8 * (k + STEP)
        turn = invoke(steps[k], -1, steps[k + 1], steps[k + 2], 0, words)
        if turn >= 0:
            failed[0], failed[1] = step, turn
            return MORE
        k, step = k + STEP + steps[k + 3], step + 1
    return FINE


def launch(function, first, last, counters, words, boxes, helpers, known, sleepers):
    for b in range(0, helpers * BOX, BOX):
        if look(boxes, b + LISTENS) == 0 and not sleepers:
            return ASLEEP
    counters[:] = 0
    address = counters.ctypes.data
    for b in range(0, helpers * BOX, BOX):
        if look(boxes, b + STATE) == IDLE:
            boxes[b + FUNCTION], boxes[b + FIRST], boxes[b + LAST] = function, first, last
            boxes[b + CALL], boxes[b + WORDS] = address, words.ctypes.data
            swap(boxes, b + STATE, IDLE, OFFERED)
    failed = invoke(function, 0, first, last, address, words.ctypes.data)
    late, left = 0, 0
    for b in range(0, known * BOX, BOX):
        if boxes[b + CALL] == address and not swap(boxes, b + STATE, OFFERED, IDLE):
            for _ in range(LOOKS):
                if look(boxes, b + STATE) == IDLE:
                    break
            late += look(boxes, b + STATE) != IDLE
        left += look(boxes, b + STATE) != IDLE
    counters[LATE], counters[LEFT] = late, left
    return FINE if failed < 0 and left == 0 else MORE


def listen(boxes, who, looks):
    b = (who - 1) * BOX
    fetch_add(boxes, b + LISTENS)
    left = looks
    while left > 0 and look(boxes, b + STOP) == 0:
        left -= 1
        if look(boxes, b + STATE) == OFFERED and swap(boxes, b + STATE, OFFERED, RUNNING):
            first, last = boxes[b + FIRST], boxes[b + LAST]
            invoke(boxes[b + FUNCTION], who, first, last, boxes[b + CALL], boxes[b + WORDS])
            swap(boxes, b + STATE, RUNNING, IDLE)
            left = looks
        else:
            rest()
    swap(boxes, b + LISTENS, 1, 0)
"""
# Points that a thread takes at a time in the second step of two.
POINTS = 4096
# Far enough apart for each to have cache lines of its own; those of the turns come last.
COUNTERS = {
    **{"TAKEN": 0, "DONE": 16, "FAILED": 32, "WHERE": 33, "LATE": 34, "LEFT": 35, "TURNS": 48}
}
# The words of a helper's box, its states, looks at a helper that is about to end, and what a launch
# returns.
BOXES = {
    **{"STATE": 0, "LISTENS": 1, "STOP": 2, "FUNCTION": 3, "FIRST": 4, "LAST": 5, "CALL": 6},
    **{"WORDS": 7, "BOX": 32, "IDLE": 0, "OFFERED": 1, "RUNNING": 2, "LOOKS": 200},
    **{"FINE": 0, "ASLEEP": 1, "MORE": 2, "STEP": 4},
}

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
    """The body of ``run`` for one thread."""
    return ALONE.format(passed=", ".join(params))


def shared(params: Sequence[str], slots: Sequence[Slot] = ()) -> str:
    """The body of ``run`` for several threads; rows for what :func:`reduced` names come last."""
    begin, combine, passed = _reductions(params, slots)
    return SHARED.format(
        passed=", ".join(passed),
        begin_alone=indent(begin, " " * 12),
        begin_shared=indent(begin, " " * 8),
        combine_alone=indent(combine, " " * 8),
        combine_shared=indent(combine, " " * 4),
    )


def once(params: Sequence[str], slots: Sequence[Slot]) -> str:
    """``run`` of one turn for Python, of the same arrays."""
    begin, _, passed = _reductions(params, slots)
    every = [*params, *(f"part_s{i}" for i, _ in reduced(slots))]
    return ONCE.format(
        params=", ".join(every), begin=indent(begin, " " * 4), passed=", ".join(passed)
    )


def _reductions(params: Sequence[str], slots: Sequence[Slot]) -> tuple[str, str, list[str]]:
    """What begins and ends a turn, and what ``elements`` is given."""
    begin, combine, passed = "", "", list(params)
    for i, slot in reduced(slots):
        name = f"s{i}"
        value = COMBINED[slot.access].format(total=f"{name}[k]", value=f"part_{name}[i, k]")
        nothing = "-0.0" if slot.dtype.kind == "f" else "0"
        start = nothing if slot.access is Access.INC else f"{name}[k]"
        begin += BEGIN.format(name=name, start=start)
        combine += COMBINE.format(name=name, combined=value)
        passed[passed.index(name)] = f"part_{name}[i]"
    return begin, combine, passed


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
