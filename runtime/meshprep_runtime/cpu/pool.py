"""Threads that sleep until there is work, and how many of them a loop takes.

Work is offered: the calling thread begins at once, and takes back what nobody has begun when it is
done. So nobody waits for a thread that the system lets run late, as it does on a busy machine.
After a loop a thread listens for the next one, a tenth of a millisecond, in compiled code that
needs no interpreter and lets other threads have the core; then it sleeps. One thread or several
give the same bits, so that each call may take what was faster in the calls before.
"""

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property, partial
from math import ceil, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..kernel.compiler import import_numba
from .source.text import BOXES, COUNTERS
from .strategies import Turns

if TYPE_CHECKING:
    from .build import Native

R = TypeVar("R")
BOX = BOXES["BOX"]
# Looks of a helper at its box before it sleeps: some hundred microseconds.
LISTEN = 400
MOST_HELPERS = 255


def thread_count() -> int:
    """numba's number of threads (``numba.set_num_threads``), at most :func:`core_count`."""
    numba = import_numba()
    try:
        asked: int = numba.get_num_threads()
    except ValueError:  # numba has no threads of its own, which nothing here needs
        asked = numba.config.NUMBA_NUM_THREADS
    return min(asked, core_count())


def core_count() -> int:
    """Threads that this process can keep busy, at least one.

    What ``NUMBA_NUM_THREADS``, else ``OMP_NUM_THREADS`` said when this was first asked, where that
    is a whole number. Else the cores on which the process may run (its affinity), at most the
    quota of processor time of its control groups, rounded up, as containers have one.
    """
    asked = _asked_for()
    return asked or min(_affinity(), max(1, ceil(min(_quota(), 1 << 20))))


@cache
def _asked_for() -> int:
    """What the environment asks for, 0 where it says nothing that can be read."""
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        # OpenMP takes a list, a number for each level of nesting
        first = os.environ.get(name, "").partition(",")[0].strip()
        if first.isascii() and first.isdecimal() and int(first) > 0:
            return int(first)
    return 0


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _quota(groups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> float:
    """Seconds of processor time a second: the least that a control group of the process allows."""
    try:
        lines = own.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # another system
        return inf
    least = inf
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        for base in (groups, groups / "unified", groups / "cpu", groups / controllers):
            # in a container the group may be named as the host sees it, and be the topmost here
            place = base / path.strip("/")
            for group in (place, *place.parents):
                least = min(least, _quota_of(group))
                if group == base:
                    break
    return least


def _quota_of(group: Path) -> float:
    """Of one control group, of version 2 (one file) or 1 (two)."""
    try:
        if (group / "cpu.max").is_file():
            quota, period = (group / "cpu.max").read_text(encoding="ascii").split()
        else:
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            quota, period = ((group / name).read_text(encoding="ascii").strip() for name in names)
        return float(quota) / float(period) if float(quota) > 0 else inf
    except (OSError, ValueError):  # no such file, or "max"
        return inf


# Seconds of work that a thread is given at least: to begin takes one that listens a microsecond.
WORTH = 5e-6
# Calls that are remembered of either way, and those that are tried first. What was slower is tried
# again after so many timed calls, then after twice as many, and in the end every so many: twice in
# a row, since the first call of either way after the other does not count.
RECENT, FIRST, SOON, AGAIN = 9, 4, 8, 128
# A call that takes fewer seconds is timed only once in so many: a clock costs it too much.
SHORT, SELDOM = 500e-6, 8
# Calls after which a loop has found out.
SETTLED = 2 * FIRST + 1
# What several threads must take at most of the time of one.
GAIN = 0.95

Work = Callable[[int], Any]


class BoundCode:
    """Turns ``first`` to ``last - 1`` of compiled code on some arrays, see :mod:`.source.text`.

    ``arrays`` are the order and the others that the code takes. ``run_once`` runs a turn on all of
    them from Python, where its exception arrives. ``words`` are those of the table, what it waits
    for, and the arrays, where they are known.
    """

    def __init__(
        self,
        code: "Native",
        turns: Turns,
        arrays: Sequence[NDArray[Any]],
        run_once: Callable[..., Any] | None = None,
        words: Sequence[int] | None = None,
    ) -> None:
        from .build import launchers, words_of

        (first, last), table, waits = turns
        self.first, self.last = int(first), int(last)
        self._arrays: list[NDArray[Any]] = [table, waits, *arrays]
        self._run_once = run_once
        words = words_of(self._arrays) if words is None else words
        # as compiled code takes it on one thread
        self.step = np.array([code.address, self.first, self.last, len(words), *words], np.int64)
        self._words = self.step[BOXES["STEP"] :]
        self._code, self.native = code, launchers()
        self.counters = np.zeros(0, np.int64)

    @cached_property
    def launch(self) -> Callable[..., int]:
        """The call with helpers, less these."""
        self.counters = np.zeros(COUNTERS["TURNS"] + len(self._arrays[0]), np.int64)
        words = (self._code.address, self.first, self.last, self.counters, self._words)
        return partial(self.native.launch, *words)

    def renew(self) -> Any:
        """Take other counters; gives what a helper may still look at."""
        return self.__dict__.pop("launch"), self._arrays, self._code

    def fail(self, turn: int) -> None:
        """Raise what a turn raised."""
        if self._run_once is not None:
            # the turn has changed arrays already
            self._run_once(turn, *(a.copy() for a in self._arrays))
        raise RuntimeError("the kernel raised an exception, and did not when it ran again")


# Which step of a call failed in which turn; one call runs at a time.
_failed = np.zeros(2, np.int64)


class OneThread:
    """Steps one after the other, on the thread that calls."""

    def __init__(self, steps: Sequence[BoundCode]) -> None:
        self.steps = steps
        self.places = steps[0].step
        if len(steps) > 1:
            self.places = np.concatenate([step.step for step in steps])
        self.run = partial(steps[0].native.call, self.places, _failed)

    def run_or_raise(self) -> None:
        """Run them; raises what a kernel raises."""
        if self.run():
            step, turn = _failed.tolist()
            self.steps[step].fail(turn)


def _listen(boxes: NDArray[np.int64], who: int) -> None:
    from .build import launchers

    launchers().listen(boxes, who, LISTEN)


class _Helper:
    """A thread that sleeps on a lock."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.job: Work | None = None
        self.running: Work | None = None
        self.wake, self.claim, self.busy = (threading.Lock() for _ in range(3))
        self.wake.acquire()
        threading.Thread(target=self._serve, name="meshprep helper", daemon=True).start()

    def _serve(self) -> None:
        while self.wake.acquire():
            with self.busy:
                with self.claim:
                    self.running, self.job = self.job, None
                if self.running is not None:
                    self.running(self.number)
                # a sleeper keeps nobody's arrays alive
                self.running = None

    def take_back(self, work: Work) -> None:
        """Wait for work that has begun; what has not, never begins."""
        with self.claim:
            begun = self.running is work
            if self.job is work:
                self.job = None
        if begun:
            with self.busy:
                pass


class _Pool:
    """The helpers of a process."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """A forked process has none of its parent's threads, and perhaps a lock that is taken."""
        self._offering = threading.Lock()
        self.turn = threading.Lock()
        self._helpers: list[_Helper] = []
        # Where helpers listen; and what helpers that came late may still look at.
        self._boxes = np.zeros(MOST_HELPERS * BOX, np.int64)
        self._held: list[Any] = []

    def some(self, count: int) -> list[_Helper]:
        """So many helpers; fewer where the system gives no more threads."""
        with self._offering:
            try:
                while len(self._helpers) < count:
                    self._helpers.append(_Helper(len(self._helpers) + 1))
            except RuntimeError:  # the interpreter ends, or a limit: the caller does it alone
                pass
            return self._helpers[:count]

    def launch(self, step: BoundCode, threads: int) -> int:
        """Run a step here and on helpers that listen or awake in time; the turn that failed, or -1.

        Listening helpers begin within a microsecond, and go on listening for a while after.
        """
        many = min(threads - 1, MOST_HELPERS)
        if len(self._helpers) < many:
            many = len(self.some(many))
        call, helpers = step.launch, (many, len(self._helpers))
        done = call(self._boxes, *helpers, False)
        if done == BOXES["ASLEEP"]:
            self.offer(self._helpers[:many], partial(_listen, self._boxes))
            done = call(self._boxes, *helpers, True)
        if done == BOXES["FINE"]:
            self._held.clear()
            return -1
        counters = step.counters
        if counters[COUNTERS["LATE"]]:
            self._held.append(step.renew())
        elif not counters[COUNTERS["LEFT"]]:
            self._held.clear()
        return int(counters[COUNTERS["WHERE"]]) if counters[COUNTERS["FAILED"]] else -1

    def close(self) -> None:
        """Stop what listens, since the memory of compiled code goes away."""
        places = np.arange(0, self._boxes.size, BOX)
        self._boxes[places + BOXES["STOP"]] = 1
        end = time.perf_counter() + 1
        while self._boxes[places + BOXES["LISTENS"]].any() and time.perf_counter() < end:
            time.sleep(1e-4)

    def offer(self, helpers: Sequence[_Helper], work: Work) -> None:
        """Wake helpers; work that was offered before and not begun is dropped."""
        with self._offering:
            for helper in helpers:
                helper.job = work
                if helper.wake.locked():
                    helper.wake.release()


_pool = _Pool()
atexit.register(lambda: _pool.close())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


def turn() -> threading.Lock:
    """What a call holds while it runs: others may have arrays in common with it."""
    return _pool.turn


def share(
    work: Work, threads: int, stop: Callable[[], None] = lambda: None, *, waits: bool = True
) -> None:
    """Run ``work(0)`` here and, beside it, ``work(1)``, ``work(2)``, ... on threads that are free.

    However many begin, each takes pieces of one heap until it is empty. Those that began have ended
    when this returns or raises what ``work(0)`` raises, an interrupt, too, after which ``stop`` is
    called; the others must not raise. With ``waits=False`` they may still be about to find that
    nothing is left, unless something is raised.
    """
    helpers = _pool.some(threads - 1)
    try:
        _pool.offer(helpers, work)
        work(0)
    except BaseException:
        stop()
        waits = True
        raise
    finally:
        for helper in helpers:
            if waits:
                helper.take_back(work)
            elif helper.job is work:
                helper.job = None


class Team:
    """The threads that call after call of one loop is given: one, or as many as there are.

    Calls are timed, and medians compared. A thread is given at least 5 microseconds of work, so
    that small loops run on one.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        # So few ranges are done before another thread has woken; a call of them is not timed.
        self._small = 1
        self._several = False
        self._again = False
        self._before = False  # what the timed call before was on
        self._calls, self._pause = 0, SOON
        self._untimed = 0  # calls to come
        # Seconds a range, by one thread and by several.
        self._took: tuple[deque[float], deque[float]] = deque(maxlen=RECENT), deque(maxlen=RECENT)

    def run(
        self,
        n_turns: int,
        steps: Sequence[BoundCode],
        alone: OneThread,
        constants: Iterable[tuple[NDArray[Any], float]] = (),
    ) -> None:
        """Run steps one after the other, each on one thread or on several.

        ``alone`` are the same for one thread; ``constants`` are numbers that come first into
        arrays. Calls from several threads take turns, as they may have arrays in common.
        """
        with _pool.turn:
            for place, number in constants:
                place[0] = number
            if n_turns <= self._small or self._most == 1:
                alone.run_or_raise()
            elif self._untimed:
                self._untimed -= 1
                self._run(self._several, n_turns, steps, alone)
            else:
                several = self._takes_several()
                start = time.perf_counter()
                several = self._run(several, n_turns, steps, alone)
                self._note(several, time.perf_counter() - start, n_turns)

    def is_small(self, n_turns: int) -> bool:
        """True for a loop that is known to run on one thread, always, and is not timed."""
        return n_turns <= self._small or self._most == 1

    def _run(
        self, several: bool, n_turns: int, steps: Sequence[BoundCode], alone: OneThread
    ) -> bool:
        """Returns whether it ran on several threads."""
        if several and self._run_on_several(n_turns, steps):
            return True
        alone.run_or_raise()
        return False

    def _run_on_several(self, n_turns: int, steps: Sequence[BoundCode]) -> bool:
        """Returns False, and runs nothing, where there is no more than one thread."""
        one, several = self._took
        worth = int(min(one) * n_turns / WORTH)
        threads = min(self._most or n_turns, n_turns, worth, thread_count())
        if threads < 2:
            several.append(inf)
            return False
        for step in steps:
            if (failed := _pool.launch(step, threads)) >= 0:
                step.fail(failed)
        return True

    def _takes_several(self) -> bool:
        one, several = self._took
        if len(one) < FIRST or len(several) < FIRST:
            return len(one) >= FIRST
        self._calls += 1
        if self._calls > self._pause:
            self._calls, self._pause = 0, min(2 * self._pause, AGAIN)
            return not self._several
        return self._several != (self._again or self._calls == self._pause)

    def _note(self, on_several: bool, seconds: float, ranges: int) -> None:
        if on_several != self._before:
            # it woke threads, and found the dats in the caches of other cores
            self._before = on_several
            return
        one, several = self._took
        self._took[on_several].append(seconds / ranges)
        if not several:
            if len(one) == FIRST and min(one) * ranges < 2 * WORTH:
                self._small = ranges
                one.clear()
        elif len(several) >= FIRST and (on_several != self._several or self._calls % RECENT == 0):
            better = seconds / ranges < _median(self._took[not on_several])
            self._several = _median(several) < GAIN * _median(one)
            # What is better than usual is tried at once again, until it is usual.
            self._again = better and on_several != self._several
        known = len(several) >= FIRST and not self._again
        self._untimed = SELDOM - 1 if known and seconds < SHORT else 0


def _median(values: deque[float]) -> float:
    return sorted(values)[len(values) // 2]
