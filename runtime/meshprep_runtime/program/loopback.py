"""Ranks in one process: a communicator with the calls of mpi4py that programs use.

Ranks are threads of which one runs at a time. It hands over where it waits or tests, to one drawn
from a seed: so a run can be repeated. Where all ranks wait, the error says for what.
"""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DistributedError, check_integer, check_number

# Seconds after which an interrupt is seen that came just before a wait without end.
LATEST = 0.2

Key = tuple[Any, ...]


def run_ranks(
    ranks: int, main: Callable[[LoopbackComm], Any], *, seed: int = 0, delay: float = 0.0
) -> list[Any]:
    """Run a program on ranks of one process.

    Parameters
    ----------
    ranks : int
        How many.
    main : function
        Called on each rank with its communicator, as ``MPI.COMM_WORLD`` would be.
    seed : int
        Of the order in which ranks take turns and messages arrive.
    delay : float
        Seconds that every message takes at least.

    Returns
    -------
    list
        What ``main`` gave on each rank.

    Raises
    ------
    MeshprepError
        For ranks that are no whole number from 1, and a delay below 0.
    DistributedError
        Where all ranks wait for each other, or their collective calls differ.
    Exception
        What the first rank raised that failed; the others are stopped.
    """
    return LoopbackWorld(ranks, seed, delay).run(main)


class LoopbackStopped(BaseException):
    """Ends a rank when another one has failed."""


@dataclass(eq=False)
class _Message:
    """``data`` refers to the sender's buffer until the message is taken or the sender waits."""

    data: Any
    due: float

    def keep(self) -> None:
        if not isinstance(self.data, bytes):
            self.data = bytes(self.data)


class _RankState:
    def __init__(self) -> None:
        self.gate = threading.Semaphore(0)
        self.ready: Callable[[], bool] = lambda: True
        self.waits_for = ""
        self.done = False
        self.result: Any = None


class LoopbackWorld:
    """The ranks, what is under way between them, and whose turn it is."""

    def __init__(self, ranks: int, seed: int, delay: float) -> None:
        check_integer("ranks", ranks)
        check_number("delay", delay)
        self.size = ranks
        self.delay = delay
        self.random = random.Random(seed)
        self.mail: dict[Key, deque[_Message]] = defaultdict(deque)
        self.posted: dict[Key, deque[LoopbackRequest]] = defaultdict(deque)
        self.collected: dict[Key, dict[int, Any]] = defaultdict(dict)
        self._ranks = [_RankState() for _ in range(ranks)]
        self._failed: BaseException | None = None
        self._finished = threading.Event()

    def run(self, main: Callable[[LoopbackComm], Any]) -> list[Any]:
        threads = [
            threading.Thread(target=self._run_one, args=(main, rank), daemon=True)
            for rank in range(self.size)
        ]
        for thread in threads:
            thread.start()
        try:
            self._hand_over()
            while not self._finished.wait(LATEST):
                pass
        except KeyboardInterrupt as error:
            # else ranks would go on beside what comes next
            self.fail(error)
            self._hand_over()
            self._finished.wait()
        for thread in threads:
            thread.join()
        if self._failed is not None:
            raise self._failed
        return [state.result for state in self._ranks]

    def _run_one(self, main: Callable[[LoopbackComm], Any], rank: int) -> None:
        state = self._ranks[rank]
        state.gate.acquire()
        try:
            self._check()
            state.result = main(LoopbackComm(self, rank))
        except LoopbackStopped:
            pass
        except BaseException as error:
            self.fail(error)
        state.done = True
        self._hand_over()

    def fail(self, error: BaseException) -> None:
        """Stop all ranks; the first error is what :meth:`run` raises."""
        if self._failed is None:
            self._failed = error

    def wait(self, rank: int, ready: Callable[[], bool], what: str) -> None:
        """Let others run until something is there."""
        state = self._ranks[rank]
        state.ready, state.waits_for = ready, what
        self._hand_over()
        state.gate.acquire()
        state.ready = lambda: True
        self._check()

    def _check(self) -> None:
        if self._failed is not None:
            raise LoopbackStopped

    def _hand_over(self) -> None:
        """Wake one of the ranks that can go on."""
        waiting = [state for state in self._ranks if not state.done]
        if not waiting:
            self._finished.set()
            return
        while self._failed is None:
            able = [state for state in waiting if state.ready()]
            if able:
                self.random.choice(able).gate.release()
                return
            due = [m.due for box in self.mail.values() for m in box]
            late = [moment for moment in due if moment > time.perf_counter()]
            if not late:
                told = [f"rank {i} {s.waits_for}" for i, s in enumerate(self._ranks) if not s.done]
                self.fail(DistributedError(f"every rank waits: {', '.join(told)}"))
                break
            time.sleep(max(min(late) - time.perf_counter(), 0))
        waiting[0].gate.release()

    def deliver(self, key: Key) -> None:
        """Hand messages to the receives that wait for them, in the order of both."""
        box, posted = self.mail[key], self.posted[key]
        while box and posted and box[0].due <= time.perf_counter():
            posted.popleft().take(box.popleft())


class LoopbackComm:
    """What one rank sees of the others; the calls are those of mpi4py's ``Comm``."""

    def __init__(self, world: LoopbackWorld, rank: int, context: Key = ()) -> None:
        self.rank = rank
        self.size = world.size
        self._world = world
        self._context = context
        self._calls = 0

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return self.size

    def Dup(self) -> LoopbackComm:
        self._calls += 1
        return LoopbackComm(self._world, self.rank, (*self._context, self._calls))

    def Free(self) -> None:
        """Nothing to give back."""

    def Abort(self, errorcode: int = 0) -> None:
        self._world.fail(DistributedError(f"rank {self.rank} has ended all with code {errorcode}"))
        raise LoopbackStopped

    def Isend(self, buffer: Any, dest: int, tag: int = 0) -> LoopbackRequest:
        world, key = self._world, (self._context, self.rank, dest, tag)
        message = _Message(memoryview(buffer).cast("B"), time.perf_counter() + world.delay)
        world.mail[key].append(message)
        return LoopbackRequest(self, lambda: True, message.keep)

    def Irecv(self, buffer: Any, source: int, tag: int = 0) -> LoopbackRequest:
        key = (self._context, source, self.rank, tag)
        request = LoopbackRequest(self, key=key, buffer=buffer)
        request.waits_for = f"waits for a message of rank {source}"
        self._world.posted[key].append(request)
        return request

    def Iallgather(self, send: Any, receive: Any) -> LoopbackRequest:
        values, ready = self._collect("Iallgather", np.array(send))

        def finish() -> None:
            receive[...] = np.concatenate([values[r] for r in range(self.size)])

        return LoopbackRequest(self, ready, finish)

    def allgather(self, value: Any) -> list[Any]:
        values = self._collected("allgather", value)
        return [values[rank] for rank in range(self.size)]

    def gather(self, value: Any, root: int = 0) -> list[Any] | None:
        values = self._collected("gather", value)
        return [values[rank] for rank in range(self.size)] if self.rank == root else None

    def bcast(self, value: Any, root: int = 0) -> Any:
        return self._collected("bcast", value)[root]

    def Barrier(self) -> None:
        self._collected("Barrier", None)

    def _collected(self, what: str, value: Any) -> dict[int, Any]:
        values, ready = self._collect(what, value)
        self._world.wait(self.rank, ready, f"waits in {what}")
        return values

    def _collect(self, what: str, value: Any) -> tuple[dict[int, Any], Callable[[], bool]]:
        self._calls += 1
        key = self._context, self._calls
        values = self._world.collected[key]
        other = values.setdefault(-1, what)
        if other != what:
            raise DistributedError(f"rank {self.rank} is in {what}, but another rank in {other}")
        values[self.rank] = value
        if len(values) == self.size + 1:
            del self._world.collected[key]
        return values, lambda: len(values) == self.size + 1


class LoopbackRequest:
    """A call under way, as mpi4py's ``Request``."""

    def __init__(
        self,
        comm: LoopbackComm,
        ready: Callable[[], bool] | None = None,
        finish: Callable[[], None] | None = None,
        key: Key = (),
        buffer: Any = None,
    ) -> None:
        self.comm = comm
        self.key = key
        self.buffer = buffer
        self.done = False
        self.waits_for = "waits in a reduction"
        self._ready = ready or self._deliver
        self._finish = finish

    def take(self, message: _Message) -> None:
        """Put a message where it was wanted."""
        message.keep()
        into = memoryview(self.buffer).cast("B")
        if len(message.data) > len(into):
            raise DistributedError(
                f"rank {self.comm.rank}: a message of {len(message.data)} bytes came where "
                f"{len(into)} were awaited: do all ranks run the same loops on the same dats?"
            )
        into[: len(message.data)] = message.data
        self.done = True

    @staticmethod
    def Testall(requests: Sequence[LoopbackRequest]) -> bool:
        """Let others run, and some of what came in arrive."""
        if not requests:
            return True
        world, rank = requests[0].comm._world, requests[0].comm.rank
        world.wait(rank, lambda: True, "")
        for request in requests:
            if world.random.random() < 0.5:
                request._complete()
        return all(request.done for request in requests)

    @staticmethod
    def Waitall(requests: Sequence[LoopbackRequest]) -> None:
        """Wait until all is there."""
        requests = list(requests)
        if requests:
            requests[0].comm._world.random.shuffle(requests)
        for request in requests:
            comm = request.comm
            if not request.done and not request._ready():
                comm._world.wait(comm.rank, request._ready, request.waits_for)
            request._complete()

    def Test(self) -> bool:
        return self.Testall([self])

    def Wait(self) -> None:
        self.Waitall([self])

    def _complete(self) -> None:
        if not self.done and self._ready():
            if self._finish is not None:
                self._finish()
            self.done = True

    def _deliver(self) -> bool:
        self.comm._world.deliver(self.key)
        return self.done
