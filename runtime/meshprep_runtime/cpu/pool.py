"""The pool of threads that run loops, and the number of threads that a loop takes.

Work is offered: the calling thread begins at once, and when it is done takes the offer back
from threads that have not begun. So a call does not wait for a thread that the system lets
run late, as it does on a busy machine. After a loop a thread listens for the next one, a
tenth of a millisecond, in compiled code that needs no interpreter and lets other threads
have the core; then it sleeps. A loop gives the same bits on one thread and on several, so
that each call may take the faster way of the calls before.
"""

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, partial
from math import ceil, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._numba.installed import import_numba, thread_limit
from ..errors import MeshprepError
from .source.text import BOX_WORDS, STEP_WORDS, BoxField, LaunchCounter, Launched
from .strategies import Turns

if TYPE_CHECKING:
    from .build import Native

R = TypeVar("R")
# Looks of a helper at its box before it sleeps: some hundred microseconds.
LISTEN = 400
MOST_HELPERS = 255
# Plain integers for the path of a call: a member of an enum takes longer to look up.
FINE = int(Launched.FINE)
ASLEEP = int(Launched.ASLEEP)
FAILED = int(LaunchCounter.FAILED)
WHERE = int(LaunchCounter.WHERE)
LATE = int(LaunchCounter.LATE)
LEFT = int(LaunchCounter.LEFT)
FIRST_TURN_FLAG = int(LaunchCounter.TURNS)


def thread_count() -> int:
    """numba's number of threads (``numba.set_num_threads``), at most :func:`core_count`."""
    numba = import_numba()
    try:
        numba_threads: int = numba.get_num_threads()
    except ValueError:  # numba has no threads of its own; loops do not need them
        numba_threads = thread_limit()
    return min(numba_threads, core_count())


def core_count() -> int:
    """Threads that this process can keep busy, at least one.

    The value of ``NUMBA_NUM_THREADS``, else of ``OMP_NUM_THREADS``, at the first call of
    this function, where it is a whole number. Else the cores on which the process may run
    (its affinity), at most the quota of processor time of its control groups, rounded up,
    as containers have one.
    """
    requested = _asked_for()
    return requested or min(_affinity(), max(1, ceil(min(_quota(), 1 << 20))))


@cache
def _asked_for() -> int:
    """The number of threads that the environment asks for, 0 where it gives no number."""
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
def _quota(
    groups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> float:
    """The quota of the process: seconds of processor time a second.

    That is the least quota of its control groups; infinite without one.
    """
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
            # In a container the path may be that of the host, and the group itself be the
            # topmost one here.
            own_group = base / path.strip("/")
            for group in (own_group, *own_group.parents):
                least = min(least, _quota_of(group))
                if group == base:
                    break
    return least


def _quota_of(group: Path) -> float:
    """The quota of a control group, of version 2 (one file) or 1 (two files)."""
    try:
        if (group / "cpu.max").is_file():
            quota, period = (group / "cpu.max").read_text(encoding="ascii").split()
        else:
            quota = (group / "cpu.cfs_quota_us").read_text(encoding="ascii").strip()
            period = (group / "cpu.cfs_period_us").read_text(encoding="ascii").strip()
        # Microseconds that the group may run in each period: a number of cores.
        if float(quota) > 0:
            return float(quota) / float(period)
        return inf
    except (OSError, ValueError):  # no such file, or "max"
        return inf


# Seconds of work that a thread is given at least; a thread that listens begins within a
# microsecond.
WORTH = 5e-6
# A loop runs in one of two ways, on one thread or on several. Timed calls that are
# remembered of each way.
RECENT = 9
# Timed calls of each way before they are compared.
FIRST = 4
# The slower way is tried again after SOON timed calls, then after twice as many, and in the
# end every AGAIN calls: twice in a row, since the first call of a way after the other one
# does not count.
SOON = 8
AGAIN = 128
# A call that takes fewer seconds than SHORT is timed only once in SELDOM calls: reading the
# clock costs too much beside it.
SHORT = 500e-6
SELDOM = 8
# Calls after which a loop has chosen its way.
SETTLED = 2 * FIRST + 1
# Several threads are taken where they need at most this part of the time of one thread.
GAIN = 0.95

Work = Callable[[int], Any]


@dataclass(frozen=True, eq=False)
class LentLaunch:
    """The memory of a launch, which helpers that come late may still look at.

    The pool keeps it until these helpers have ended.
    """

    call: Callable[..., int]  # ``launch`` but for its last arguments, from the boxes on
    counters: NDArray[np.int64]
    memory: tuple[object, ...]  # keeps the arrays and the code alive


class BoundCode:
    """Some turns of compiled code with the arrays of a call, see :mod:`.source.text`.

    Parameters
    ----------
    code : Native
    turns : Turns
        The range of turns, and the table and waits of the schedule.
    arrays : sequence of arrays
        The order, and the other arrays that the code takes.
    run_once : function, optional
        Runs a turn from Python, with the table, the waits and the arrays; there an
        exception of the kernel arrives.
    words : sequence of int, optional
        :func:`.build.words_of` of the table, the waits and the arrays, where they are
        known.
    """

    def __init__(
        self,
        code: "Native",
        turns: Turns,
        arrays: Sequence[NDArray[Any]],
        run_once: Callable[..., Any] | None = None,
        words: Sequence[int] | None = None,
    ) -> None:
        from .build import words_of

        (first, last), table, waits = turns
        self.first = int(first)
        self.last = int(last)
        self._arrays: list[NDArray[Any]] = [table, waits, *arrays]
        self._run_once = run_once
        if words is None:
            words = words_of(self._arrays)
        # The step as the compiled ``call`` takes it.
        self.step = np.array(
            [code.address, self.first, self.last, len(words), *words], np.int64
        )
        self._words = self.step[STEP_WORDS:]
        self._code = code
        self._launch: LentLaunch | None = None

    def lend(self) -> "LentLaunch":
        """The memory of a launch with helpers, for one launch until it is taken back."""
        from .build import team_launchers

        # The first launch compiles, here and not on a helper's thread.
        launch = team_launchers().launch
        # One statement, since an interrupt may arrive between two of them.
        lent, self._launch = self._launch, None
        if lent is None:
            counters = np.zeros(FIRST_TURN_FLAG + len(self._arrays[0]), np.int64)
            words = (self._code.address, self.first, self.last, counters, self._words)
            call = partial(launch, *words)
            lent = LentLaunch(call, counters, (self._arrays, self._code))
        return lent

    def take_back(self, lent: "LentLaunch") -> None:
        """Keep the memory of a launch, which no helper looks at any more, for the next."""
        self._launch = lent

    def fail(self, turn: int) -> None:
        """Raise the exception that a turn raised, which runs again on copies for that."""
        if self._run_once is not None:
            # Copies, since the turn has changed the arrays already.
            self._run_once(turn, *(a.copy() for a in self._arrays))
        raise RuntimeError("the kernel raised an exception, and did not when it ran again")


class OneThread:
    """Steps to be run one after the other, on the thread that calls."""

    def __init__(self, steps: Sequence[BoundCode]) -> None:
        from .build import caller

        self.steps = steps
        # The steps as the compiled ``call`` takes them, one behind the other.
        self.step_words = steps[0].step
        if len(steps) > 1:
            self.step_words = np.concatenate([step.step for step in steps])
        # The number of the step that failed, and the turn.
        self.failed = np.zeros(2, np.int64)
        self.run = partial(caller(), self.step_words, self.failed)

    def run_or_raise(self) -> None:
        """Run the steps; raises the exception of a kernel."""
        if self.run():
            step, turn = self.failed.tolist()
            self.steps[step].fail(turn)


def _listen(boxes: NDArray[np.int64], who: int) -> None:
    from .build import team_launchers

    team_launchers().listen(boxes, who, LISTEN)


class _Helper:
    """A thread of the pool; it sleeps on a lock."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.job: Work | None = None  # offered, not begun
        self.running: Work | None = None
        self.wake = threading.Lock()  # the thread sleeps while this is locked
        self.claim = threading.Lock()  # for changes of ``job`` and ``running``
        self.busy = threading.Lock()  # held while work runs
        self.wake.acquire()
        threading.Thread(target=self._serve, name="meshprep helper", daemon=True).start()

    def _serve(self) -> None:
        while self.wake.acquire():
            with self.busy:
                with self.claim:
                    self.running, self.job = self.job, None
                if self.running is not None:
                    self.running(self.number)
                # A thread that sleeps holds no references to arrays.
                self.running = None

    def take_back(self, work: Work) -> None:
        """Wait for the end of work that has begun; drop work that has not begun."""
        with self.claim:
            begun = self.running is work
            if self.job is work:
                self.job = None
        if begun:
            with self.busy:
                pass


class _OwnLocks(threading.local):
    """The state of the call that a thread has under way, for calls inside of it.

    The states are locks, though no thread waits for them: an interrupt cannot leave the
    ``with`` of a lock half done.
    """

    def __init__(self) -> None:
        # Held during a call. Whenever Python code runs inside of it, either no turn of it
        # has run or all turns have.
        self.inside = threading.Lock()
        # Held while the arrays of a call hold a part of its results.
        self.half_done = threading.Lock()


class _Pool:
    """The helpers of a process."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin without helpers, also in a forked process.

        There the threads of the parent are gone, and one may have held a lock.
        """
        self._offering = threading.Lock()
        # A signal handler, or a function that the garbage collector calls, may run a loop
        # while its thread has another one under way: a thread must not wait for itself.
        self.turn = threading.RLock()
        self.own = _OwnLocks()
        self._helpers: list[_Helper] = []
        # The boxes at which helpers listen.
        self._boxes = np.zeros(MOST_HELPERS * BOX_WORDS, np.int64)
        # The memory that helpers which came late may still look at.
        self._held: list[Any] = []

    def some(self, count: int) -> list[_Helper]:
        """``count`` helpers; fewer where the system gives no more threads."""
        with self._offering:
            try:
                while len(self._helpers) < count:
                    self._helpers.append(_Helper(len(self._helpers) + 1))
            except RuntimeError:
                # The interpreter ends, or the system has a limit: the caller goes on with
                # fewer.
                pass
            return self._helpers[:count]

    def launch(self, step: BoundCode, threads: int) -> int:
        """Run a step here and on helpers; returns the turn that failed, or -1.

        Helpers that listen begin within a microsecond, and go on listening for a while
        after. Helpers that sleep are woken, and run with it if they come in time.
        """
        n_helpers = min(threads - 1, MOST_HELPERS)
        if len(self._helpers) < n_helpers:
            n_helpers = len(self.some(n_helpers))
        n_boxes = len(self._helpers)
        # Keep the memory before a helper may look at it: an interrupt may arrive at any
        # line after that.
        lent = step.lend()
        self._held.append(lent)
        done = lent.call(self._boxes, n_helpers, n_boxes, False)
        if done == ASLEEP:
            self.offer(self._helpers[:n_helpers], partial(_listen, self._boxes))
            done = lent.call(self._boxes, n_helpers, n_boxes, True)
        # Use the memory again where no helper is late for this launch; let go of all that
        # is held where no helper is left in any launch.
        counters = lent.counters
        nobody_left = done == FINE or not counters[LEFT]
        if nobody_left or not counters[LATE]:
            step.take_back(lent)
        if nobody_left:
            self._held.clear()
        if done == FINE or not counters[FAILED]:
            return -1
        return int(counters[WHERE])

    def close(self) -> None:
        """Stop the helpers that listen, before the memory of compiled code goes away."""
        boxes = self._boxes.reshape(-1, BOX_WORDS)
        boxes[:, BoxField.STOP] = 1
        end = time.perf_counter() + 1
        while boxes[:, BoxField.LISTENS].any() and time.perf_counter() < end:
            time.sleep(1e-4)

    def offer(self, helpers: Sequence[_Helper], work: Work) -> None:
        """Offer work to helpers and wake them; drop earlier work that has not begun."""
        with self._offering:
            for helper in helpers:
                helper.job = work
                if helper.wake.locked():
                    helper.wake.release()


_pool = _Pool()
atexit.register(lambda: _pool.close())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


def turn() -> AbstractContextManager[Any]:
    """A lock that a call holds while it runs: calls may have arrays in common."""
    return _pool.turn


def half_done() -> AbstractContextManager[Any]:
    """A lock that a call holds while Python code runs between two parts of it.

    Meanwhile a loop that a signal handler calls is refused. Raises MeshprepError inside of
    such a call.
    """
    check_not_half_done()
    return _pool.own.half_done


def check_not_half_done() -> None:
    """Raise MeshprepError inside of a call that has changed a part of its arrays."""
    if _pool.own.half_done.locked():
        raise MeshprepError(
            "a loop is called while another one of the same thread has run in part, as by "
            "a signal handler: set a flag in the handler, and call the loop after the "
            "other one"
        )


def share(
    work: Work, threads: int, stop: Callable[[], None] = lambda: None, *, waits: bool = True
) -> None:
    """Run ``work(0)`` here and ``work(1)``, ``work(2)``, ... on threads that are free.

    Any number of them may begin: each is to take pieces of one heap until it is empty.
    When this returns, or raises the exception of ``work(0)`` or an interrupt, all that
    began have ended; ``stop`` is called when an exception arrives. Work on other threads
    must not raise. With ``waits=False`` other threads may still be about to find the heap
    empty, unless an exception is raised.
    """
    if _pool.own.inside.locked():
        # The call around this one may be about to offer work.
        threads = 1
    with half_done():
        _share(work=work, threads=threads, stop=stop, waits=waits)


def _share(work: Work, threads: int, stop: Callable[[], None], waits: bool) -> None:
    if threads > 1:
        helpers = _pool.some(threads - 1)
    else:
        helpers = []
    begun = False
    ended = False
    raised: BaseException | None = None
    # An interrupt may arrive at any line: the helpers have ended before it is raised.
    while not ended:
        try:
            if not begun:
                begun = True
                _pool.offer(helpers, work)
                work(0)
            _take_back(helpers, work, waits or raised is not None)
            ended = True
        except BaseException as error:
            raised = error
            stop()
    if raised is not None:
        try:
            raise raised
        finally:
            # The frames of the exception hold arrays, and this frame holds the exception.
            del raised


def _take_back(helpers: Sequence[_Helper], work: Work, waits: bool) -> None:
    for helper in helpers:
        if waits:
            helper.take_back(work)
        elif helper.job is work:
            helper.job = None


class Team:
    """Chooses for each call of a loop whether it runs on one thread or on several.

    Calls are timed, and the medians of the two ways compared. A thread is given at least 5
    microseconds of work, so that small loops run on one thread. ``most`` is the largest
    number of threads; None for as many as there are.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        # A call of at most this many ranges runs on one thread, and is not timed: it is
        # done before another thread has woken.
        self._small = 1
        # Whether several threads are the faster way.
        self._several = False
        # Whether the other way was better than usual, and is tried again at once.
        self._again = False
        # Whether the timed call before this one ran on several threads.
        self._before = False
        # Timed calls since the slower way was tried, and after how many it is tried again.
        self._calls = 0
        self._pause = SOON
        # Calls to come that are not timed.
        self._untimed = 0
        # Seconds a range: on one thread, and on several.
        self._took: tuple[deque[float], deque[float]] = (
            deque(maxlen=RECENT),
            deque(maxlen=RECENT),
        )

    def run(
        self,
        n_turns: int,
        steps: Sequence[BoundCode],
        alone: OneThread,
        constants: Iterable[tuple[NDArray[Any], float]] = (),
    ) -> None:
        """Run steps one after the other, each on one thread or on several.

        ``alone`` has the same steps for one thread; ``constants`` are numbers to be written
        into arrays before. Calls from several threads take turns, as they may have arrays
        in common. A call inside of another call of its thread, as from a signal handler,
        runs at once.
        """
        with _pool.turn:
            # The same thread may be inside a call already, as in a signal handler.
            own = _pool.own
            if own.inside.locked() or own.half_done.locked():
                _run_inside(alone, constants)
                return
            with own.inside:
                self._take_turn(
                    n_turns=n_turns, steps=steps, alone=alone, constants=constants
                )

    def _take_turn(
        self,
        n_turns: int,
        steps: Sequence[BoundCode],
        alone: OneThread,
        constants: Iterable[tuple[NDArray[Any], float]],
    ) -> None:
        for array, number in constants:
            array[0] = number
        # Small loops stay on one thread, since to wake others takes longer.
        if n_turns <= self._small or self._most == 1:
            alone.run_or_raise()
        elif self._untimed:
            self._untimed -= 1
            self._run(several=self._several, n_turns=n_turns, steps=steps, alone=alone)
        else:
            # Time calls of both kinds, and keep to the faster one.
            several = self._takes_several()
            start = time.perf_counter()
            several = self._run(several=several, n_turns=n_turns, steps=steps, alone=alone)
            self._note(several, time.perf_counter() - start, n_turns)

    def is_small(self, n_turns: int) -> bool:
        """True for a loop that always runs on one thread, and is not timed."""
        return n_turns <= self._small or self._most == 1

    def _run(
        self, several: bool, n_turns: int, steps: Sequence[BoundCode], alone: OneThread
    ) -> bool:
        """Run the steps in one of the two ways; returns whether on several threads."""
        if several and self._run_on_several(n_turns, steps):
            return True
        alone.run_or_raise()
        return False

    def _run_on_several(self, n_turns: int, steps: Sequence[BoundCode]) -> bool:
        """Run the steps on several threads; without them return False, and run nothing."""
        one_thread, several = self._took
        # Use as many threads as there is work for, by the time of one.
        worth = int(min(one_thread) * n_turns / WORTH)
        threads = min(self._most or n_turns, n_turns, worth, thread_count())
        if threads < 2:
            several.append(inf)
            return False
        if len(steps) == 1:
            _launch(steps[0], threads)
            return True
        with half_done():
            for step in steps:
                _launch(step, threads)
        return True

    def _takes_several(self) -> bool:
        """Whether the next timed call runs on several threads."""
        # Time each way FIRST times, one thread first.
        one_thread, several = self._took
        if len(one_thread) < FIRST or len(several) < FIRST:
            return len(one_thread) >= FIRST
        # Then take the faster way, and try the other one now and then, twice in a row.
        self._calls += 1
        if self._calls > self._pause:
            self._calls = 0
            self._pause = min(2 * self._pause, AGAIN)
            return not self._several
        return self._several != (self._again or self._calls == self._pause)

    def _note(self, on_several: bool, seconds: float, ranges: int) -> None:
        """Note the time of a call, and choose the faster way anew."""
        if on_several != self._before:
            # This call does not count: it woke threads, and found the dats in the caches of
            # other cores.
            self._before = on_several
            return
        one_thread, several = self._took
        self._took[on_several].append(seconds / ranges)
        if not several:
            # Several threads have not been tried: a loop without work for two runs on one.
            if len(one_thread) == FIRST and min(one_thread) * ranges < 2 * WORTH:
                self._small = ranges
                one_thread.clear()
        elif len(several) >= FIRST and (
            on_several != self._several or self._calls % RECENT == 0
        ):
            better = seconds / ranges < _median(self._took[not on_several])
            self._several = _median(several) < GAIN * _median(one_thread)
            # A way that was better than the median of the other is tried again at once,
            # until its own median says so.
            self._again = better and on_several != self._several
        # Skip the clock in short calls once the way is chosen.
        settled = len(several) >= FIRST and not self._again
        if settled and seconds < SHORT:
            self._untimed = SELDOM - 1
        else:
            self._untimed = 0


def _launch(step: BoundCode, threads: int) -> None:
    failed = _pool.launch(step, threads)
    if failed >= 0:
        step.fail(failed)


def _run_inside(alone: OneThread, constants: Iterable[tuple[NDArray[Any], float]]) -> None:
    """Run steps inside of a call of the same thread, and restore what that call uses."""
    check_not_half_done()
    # A callback of the running call asks for it again: keep what that call still needs.
    failed = alone.failed.copy()
    before = [(array, array.copy()) for array, _ in constants]
    try:
        for array, number in constants:
            array[0] = number
        alone.run_or_raise()
    finally:
        alone.failed[:] = failed
        for array, values in before:
            array[:] = values


def _median(values: deque[float]) -> float:
    return sorted(values)[len(values) // 2]
