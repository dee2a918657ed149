"""Ranks in one process: a communicator with the calls of mpi4py that programs use.

Ranks are threads of which one runs at a time. Where it waits or tests, another rank takes
over, drawn at random from a seed, so that a run can be repeated. Where all ranks wait, the
error says what each waits for.
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

# The longest wait in seconds before the main thread looks for an interrupt again: one that
# comes just before a wait without end would not be seen.
LATEST = 0.2

# Where a message goes: the communicator, the sender, the receiver and the tag.
Key = tuple[Any, ...]


def run_ranks(
    ranks: int, main: Callable[[LoopbackComm], Any], *, seed: int = 0, delay: float = 0.0
) -> list[Any]:
    """Run a program on ranks of one process.

    Parameters
    ----------
    ranks : int
        The number of ranks.
    main : function
        Called on each rank with its communicator, which stands for ``MPI.COMM_WORLD``.
    seed : int
        Of the random order in which ranks take turns and messages arrive.
    delay : float
        The least seconds that a message is under way.

    Returns
    -------
    list
        The result of ``main`` on each rank.

    Raises
    ------
    MeshprepError
        For ranks that are no whole number from 1, and a delay below 0.
    DistributedError
        Where all ranks wait for each other, their collective calls differ, or one has ended
        by ``sys.exit`` with a code that is not 0.
    Exception
        The exception of the first rank that failed; the others are stopped.
    """
    return LoopbackWorld(ranks, seed, delay).run(main)


class LoopbackStopped(BaseException):
    """Ends a rank when another one has failed."""


@dataclass(eq=False)
class _Message:
    """A message under way, which arrives at the time ``due``.

    ``data`` refers to the buffer of the sender until the message is received or the sender
    waits for its request: as in MPI, a change before that may reach the receiver.
    """

    data: Any
    due: float

    def copy_buffer(self) -> None:
        """Copy the buffer of the sender, who may change it from now on."""
        if not isinstance(self.data, bytes):
            self.data = bytes(self.data)


class _RankState:
    """The state of one rank.

    ``gate`` lets it run; ``ready`` says whether it could go on, and ``waits_for`` why it
    could not; ``left`` is the error of a rank that has ended by ``sys.exit``.
    """

    def __init__(self) -> None:
        self.gate = threading.Semaphore(0)
        self.ready: Callable[[], bool] = lambda: True
        self.waits_for = ""
        self.done = False
        self.left = ""
        self.result: Any = None


class LoopbackWorld:
    """All ranks, the messages and collective calls between them, and whose turn it is."""

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
        # One rank runs at a time; a hand-over wakes the next.
        try:
            self._hand_over()
            while not self._finished.wait(LATEST):
                pass
        except KeyboardInterrupt as error:
            # Stop the ranks: their threads would go on after this call.
            self.fail(error)
            self._hand_over()
            self._finished.wait()
        for thread in threads:
            thread.join()
        if self._failed is not None:
            raise self._failed
        left = [state.left for state in self._ranks if state.left]
        if left:
            raise DistributedError(left[0])
        return [state.result for state in self._ranks]

    def _run_one(self, main: Callable[[LoopbackComm], Any], rank: int) -> None:
        state = self._ranks[rank]
        state.gate.acquire()
        try:
            self._check()
            state.result = main(LoopbackComm(self, rank))
        except LoopbackStopped:
            pass
        except SystemExit as error:
            # Let the other ranks go on, as processes would.
            if error.code not in (None, 0):
                state.left = f"rank {rank} has ended by sys.exit({error.code!r})"
        except BaseException as error:
            self.fail(error)
        state.done = True
        self._hand_over()

    def fail(self, error: BaseException) -> None:
        """Stop all ranks; the first error is what :meth:`run` raises."""
        if self._failed is None:
            self._failed = error

    def wait(self, rank: int, ready: Callable[[], bool], what: str) -> None:
        """Let other ranks run until ``ready``; errors say ``what`` this one waits for."""
        state = self._ranks[rank]
        state.ready = ready
        state.waits_for = what
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
            # Before the look at the ranks: a message may arrive just after it.
            now = time.perf_counter()
            able = [state for state in waiting if state.ready()]
            if able:
                self.random.choice(able).gate.release()
                return
            # No rank can go on: sleep until the next message arrives.
            arrivals = []
            for box in self.mail.values():
                arrivals += [message.due for message in box if message.due > now]
            if not arrivals:
                self.fail(self._deadlock())
                break
            time.sleep(max(min(arrivals) - time.perf_counter(), 0))
        # A rank has failed: wake one, which ends and wakes the next.
        waiting[0].gate.release()

    def _deadlock(self) -> DistributedError:
        """The error where no rank can go on and no message is under way."""
        states = []
        for rank, state in enumerate(self._ranks):
            reason = "has ended" if state.done else state.waits_for
            states.append(f"rank {rank} {reason}")
        return DistributedError(f"every rank waits: {', '.join(states)}")

    def deliver(self, key: Key) -> None:
        """Hand messages that have arrived to the receives that were posted first."""
        box = self.mail[key]
        posted = self.posted[key]
        while box and posted and box[0].due <= time.perf_counter():
            posted.popleft().take(box.popleft())


class LoopbackComm:
    """The communicator of one rank; its methods are those of mpi4py's ``Comm``."""

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
        """Do nothing: the communicator holds no resources."""

    def Abort(self, errorcode: int = 0) -> None:
        self._world.fail(
            DistributedError(f"rank {self.rank} has ended all with code {errorcode}")
        )
        raise LoopbackStopped

    def Isend(self, buffer: Any, dest: int, tag: int = 0) -> LoopbackRequest:
        world = self._world
        key = (self._context, self.rank, dest, tag)
        message = _Message(memoryview(buffer).cast("B"), time.perf_counter() + world.delay)
        world.mail[key].append(message)
        return LoopbackRequest(self, ready=lambda: True, finish=message.copy_buffer)

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

        return LoopbackRequest(self, ready=ready, finish=finish)

    def allgather(self, value: Any) -> list[Any]:
        values = self._collected("allgather", value)
        return [values[rank] for rank in range(self.size)]

    def gather(self, value: Any, root: int = 0) -> list[Any] | None:
        values = self._collected("gather", value)
        if self.rank == root:
            return [values[rank] for rank in range(self.size)]
        return None

    def bcast(self, value: Any, root: int = 0) -> Any:
        return self._collected("bcast", value)[root]

    def Barrier(self) -> None:
        self._collected("Barrier", None)

    def _collected(self, what: str, value: Any) -> dict[int, Any]:
        """The values of all ranks, which wait for each other."""
        values, ready = self._collect(what, value)
        self._world.wait(self.rank, ready, f"waits in {what}")
        return values

    def _collect(self, what: str, value: Any) -> tuple[dict[int, Any], Callable[[], bool]]:
        """Give the value of this rank to the next collective call.

        Returns the values by rank, which other ranks fill in, and a function that says
        whether all are there.
        """
        self._calls += 1
        key = self._context, self._calls
        values = self._world.collected[key]
        # The first rank notes at -1 which call it is.
        first_call = values.setdefault(-1, what)
        if first_call != what:
            raise DistributedError(
                f"rank {self.rank} is in {what}, but another rank in {first_call}"
            )
        values[self.rank] = value
        n_entries = self.size + 1
        if len(values) == n_entries:
            del self._world.collected[key]
        return values, lambda: len(values) == n_entries


class LoopbackRequest:
    """A call under way, as mpi4py's ``Request``.

    ``finish`` is called once ``ready`` is true. A receive has a key and a buffer instead.
    """

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
        self.waits_for = "waits for all"
        self._ready = ready or self._deliver
        self._finish = finish

    def take(self, message: _Message) -> None:
        """Copy a message into the buffer of this receive."""
        message.copy_buffer()
        buffer = memoryview(self.buffer).cast("B")
        if len(message.data) > len(buffer):
            raise DistributedError(
                f"rank {self.comm.rank}: a message of {len(message.data)} bytes came where "
                f"{len(buffer)} were awaited: do all ranks run the same loops on the same "
                "dats?"
            )
        buffer[: len(message.data)] = message.data
        self.done = True

    @staticmethod
    def Testall(requests: Sequence[LoopbackRequest]) -> bool:
        """Let other ranks run; then complete a random half of the requests that can be."""
        if not requests:
            return True
        world = requests[0].comm._world
        rank = requests[0].comm.rank
        world.wait(rank, lambda: True, "")
        for request in requests:
            if world.random.random() < 0.5:
                request._complete()
        return all(request.done for request in requests)

    @staticmethod
    def Waitall(requests: Sequence[LoopbackRequest]) -> None:
        """Wait for all requests, in random order."""
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
