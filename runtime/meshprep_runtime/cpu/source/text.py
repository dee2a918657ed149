"""The text of the function that one call runs: it hands ranges of elements to threads."""

from collections.abc import Sequence
from enum import IntEnum
from textwrap import indent

from ...kernel.bind import Slot
from ...kernel.rows import COMBINED
from ...types.loops import Access

# ``run(who, first, last, counters, words)`` runs turns ``first`` to ``last - 1``; it is the
# same for all strategies, see :class:`.Schedule`. ``words`` holds the addresses and shapes
# of the arrays ``turns``, ``waits``, ``order`` and those of the loop. ``who`` is -1 for a
# single thread, which needs no counters; otherwise it is 0 for the thread that called, and
# the number of a helper for the others.
#
# A thread takes the next turn from the counter TAKEN, and waits for the turns that must be
# done before. Turns are taken in order, so a turn that a thread waits for is being run by
# another thread, for any number of threads: there is no deadlock, and no barrier. After an
# exception the remaining turns are counted as done, but not run. ``run`` returns the turn
# that failed, to be run again from Python, where exceptions arrive; or -1.
#
# ``elements`` is called in one place, for one thread and for several: its arrays are seven
# values each, and numba takes as long for the call as for all else here.
SHARED = """\
    several = who >= 0
    i = first
    if several:
        i += fetch_add(counters, TAKEN)
    while i < last:
        if several:
            while first + look(counters, DONE) < table_entry(turns, i, 2):
                rest()
            for k in range(table_entry(turns, i, 3), table_entry(turns, i, 4)):
                if waits[k] >= first:
                    while look(counters, TURNS + waits[k]) == 0:
                        rest()
        runs = True
        if several:
            runs = look(counters, FAILED) == 0
{begin}        if runs and raises(
            elements, table_entry(turns, i, 0), table_entry(turns, i, 1), order, {passed}
        ):
            if not several:
                return i
            counters[WHERE] = i
            fetch_add(counters, FAILED)
        if several:
            fetch_add(counters, TURNS + i)
            fetch_add(counters, DONE)
            i = first + fetch_add(counters, TAKEN)
        else:
            i += 1
    if who > 0:
        return -1
    if several:
        while first + look(counters, DONE) < last:
            rest()
        if counters[FAILED] > 0:
            return counters[WHERE]
{combine}    return -1
"""
# The same for schedules that only one thread runs.
ALONE = """\
    for i in range(first, last):
        if raises(
            elements, table_entry(turns, i, 0), table_entry(turns, i, 1), order, {passed}
        ):
            return i
    return -1
"""
# Runs a single turn from Python, where exceptions arrive.
ONCE = """\
def run(i, turns, waits, order, {params}):
{begin}    elements(turns[i, 0], turns[i, 1], order, {passed})
"""
# The functions that the caller and its helpers run without Python.
#
# ``call`` runs steps on one thread, one after the other, and notes the step and the turn
# that failed. A step is STEP_WORDS words (function, first turn, last turn, number of words)
# and its words.
#
# ``launch`` offers a step to the helpers, runs it, and takes the offer back from helpers
# that have not begun. It does not wait for a helper that is about to find no turn left:
# the counter LATE has the number of these helpers, and LEFT the number of all helpers that
# are still in a call and may look at its counters and arrays. It returns a ``Launched``;
# with ``sleepers`` it also launches where helpers sleep.
#
# ``listen`` is run by a helper: it looks at its box ``looks`` times, and runs the steps
# that are offered there.
TEAM = """\
def call(steps, failed):
    k, step = 0, 0
    while k < steps.size:
        words = steps.ctypes.data + 8 * (k + STEP_WORDS)
        turn = invoke(steps[k], -1, steps[k + 1], steps[k + 2], 0, words)
        if turn >= 0:
            failed[0], failed[1] = step, turn
            return MORE
        k, step = k + STEP_WORDS + steps[k + 3], step + 1
    return FINE


def launch(function, first, last, counters, words, boxes, helpers, known, sleepers):
    for b in range(0, helpers * BOX_WORDS, BOX_WORDS):
        if look(boxes, b + LISTENS) == 0 and not sleepers:
            return ASLEEP
    counters[:] = 0
    address = counters.ctypes.data
    for b in range(0, helpers * BOX_WORDS, BOX_WORDS):
        if look(boxes, b + STATE) == IDLE:
            boxes[b + FUNCTION], boxes[b + FIRST], boxes[b + LAST] = function, first, last
            boxes[b + CALL], boxes[b + WORDS] = address, words.ctypes.data
            swap(boxes, b + STATE, IDLE, OFFERED)
    failed = invoke(function, 0, first, last, address, words.ctypes.data)
    late, left = 0, 0
    for b in range(0, known * BOX_WORDS, BOX_WORDS):
        if boxes[b + CALL] == address and not swap(boxes, b + STATE, OFFERED, IDLE):
            for _ in range(LOOKS):
                if look(boxes, b + STATE) == IDLE:
                    break
            late += look(boxes, b + STATE) != IDLE
        left += look(boxes, b + STATE) != IDLE
    counters[LATE], counters[LEFT] = late, left
    return FINE if failed < 0 and left == 0 else MORE


def listen(boxes, who, looks):
    b = (who - 1) * BOX_WORDS
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


class LaunchCounter(IntEnum):
    """Where each counter of a launch stands, in words.

    Counters that all threads change are 16 words apart, so that each has cache lines of its
    own. A flag for each turn that is done follows from ``TURNS`` on.
    """

    TAKEN = 0  # turns that a thread has begun
    DONE = 16  # turns that are done
    FAILED = 32  # turns that raised an exception
    WHERE = 33  # the turn that failed
    LATE = 34  # helpers of this launch that have not ended
    LEFT = 35  # helpers of any launch that have not ended
    TURNS = 48  # the flag of turn 0


class BoxField(IntEnum):
    """Where each field of a helper's box stands, in words from the start of the box."""

    STATE = 0  # a ``BoxState``
    LISTENS = 1  # 1 while the helper looks at its box
    STOP = 2  # 1 to end the helper, when the process exits
    FUNCTION = 3  # address of the function to run
    FIRST = 4  # first turn
    LAST = 5  # the turn after the last
    CALL = 6  # address of the counters, which tells one launch from another
    WORDS = 7  # address of the words


class BoxState(IntEnum):
    """What a helper's box says."""

    IDLE = 0
    OFFERED = 1
    RUNNING = 2


class Launched(IntEnum):
    """What ``launch`` and ``call`` return."""

    FINE = 0  # all turns have run, and no helper is left in a call
    ASLEEP = 1  # a helper sleeps, and nothing has run
    MORE = 2  # a turn failed, or a helper is left: the counters tell


# A box takes four cache lines, so that no helper writes beside another one.
BOX_WORDS = 32
# The words of a step before those of its arrays, see ``call``.
STEP_WORDS = 4
# How often the caller looks at a helper that is about to end before it counts it as late.
LOOKS = 200


def launcher_constants() -> dict[str, int]:
    """The constants that the texts of this module use, by their names there."""
    constants = {"BOX_WORDS": BOX_WORDS, "STEP_WORDS": STEP_WORDS, "LOOKS": LOOKS}
    for names in (LaunchCounter, BoxField, BoxState, Launched):
        # numba compiles plain integers
        constants |= {member.name: int(member) for member in names}
    return constants


# Every turn reduces into a row of its own, which starts from a neutral value; the rows are
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

# Points that a thread takes at a time in the second step of strategy "two-step".
POINTS = 4096
# The arrays of that second step, by their names in ``SUM``.
SUMMED = ("point_offset", "place", "found", "total")
# Each point adds up the values that its elements left in ``found``.
SUM = """\
def elements(start, stop, order, point_offset, place, found, total):
    for p in range(start, stop):
        for i in range(point_offset[p], point_offset[p + 1]):
{body}"""


def alone(params: Sequence[str]) -> str:
    """The body of ``run`` for one thread."""
    return ALONE.format(passed=", ".join(params))


def shared(params: Sequence[str], slots: Sequence[Slot] = ()) -> str:
    """The body of ``run`` for several threads.

    The arrays that take a row for each turn, one for each global of :func:`reduced`, come
    after ``params``.
    """
    begin, combine, passed = _reductions(params, slots)
    return SHARED.format(
        passed=", ".join(passed),
        begin=indent(begin, " " * 8),
        combine=indent(combine, " " * 4),
    )


def once(params: Sequence[str], slots: Sequence[Slot]) -> str:
    """``run`` of a single turn, to be called from Python with the same arrays."""
    begin, _, passed = _reductions(params, slots)
    all_params = [*params, *(f"part_s{i}" for i, _ in reduced(slots))]
    return ONCE.format(
        params=", ".join(all_params), begin=indent(begin, " " * 4), passed=", ".join(passed)
    )


def _reductions(params: Sequence[str], slots: Sequence[Slot]) -> tuple[str, str, list[str]]:
    """Lines before a turn, lines after the last turn, and the arguments of ``elements``."""
    begin = ""
    combine = ""
    passed = list(params)
    for i, slot in reduced(slots):
        name = f"s{i}"
        combined = COMBINED[slot.access].format(
            total=f"{name}[k]", value=f"part_{name}[i, k]"
        )
        # A sum starts from zero, a minimum or maximum from the value of the global.
        if slot.access is not Access.INC:
            start = f"{name}[k]"
        elif slot.dtype.kind == "f":
            start = "-0.0"
        else:
            start = "0"
        begin += BEGIN.format(name=name, start=start)
        combine += COMBINE.format(name=name, combined=combined)
        # The turn works on its own row instead of the global.
        passed[passed.index(name)] = f"part_{name}[i]"
    return begin, combine, passed


def reduced(slots: Sequence[Slot]) -> list[tuple[int, Slot]]:
    """The globals that a loop changes, with their numbers among the slots."""
    return [(i, slot) for i, slot in enumerate(slots) if slot.rows is None and slot.written]


def point_sums(slot: Slot, n_points: int) -> str:
    """``elements`` of the second step of strategy "two-step", which runs over points."""
    soa = slot.soa and slot.dim > 1
    body = ""
    for k in range(slot.dim):
        if soa:
            target = f"{k * n_points} + p"
        else:
            target = f"p * {slot.dim} + {k}"
        body += f"            total[{target}] += found[place[i] * {slot.dim} + {k}]\n"
    return SUM.format(body=body)
