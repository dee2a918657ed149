"""Messages between ranks: all ranks must make the same calls, and every wait ends.

Each message begins with a head: the call of the loop in which it was sent, and its dats.
The receiver compares it with its own. Every step of all ranks begins with an exchange of
blocks of a fixed size, with a head each, so that steps of different kinds cannot be taken
for each other. A rank sends notices to all others when it ends, and when it has waited for
all for a while; a rank that waits reads the notices.
"""

import atexit
import pickle
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DistributedError
from ..types.maps import UInt8s
from .loopback import LoopbackComm
from .mpi import A_STEP

# The words of a head, of 8 bytes each.
HEAD_WORDS = 6
# Bytes of a head.
HEAD = 8 * HEAD_WORDS
# Word 0: a checksum of the layout of the message.
CHECKSUM = 0
# Word 1: the number of the call, among all calls of loops.
CALL = 1
# Word 2: a checksum of the name of the loop or step.
NAME = 2
# Word 3: a checksum of the names and dats of all calls so far.
HISTORY = 3
# Words 4 and 5: the numbers of the first eight dats, in 2 bytes each.
DATS = 4
MOST_DATS = 8
# The number of an argument that is no dat.
NOT_A_DAT = -1
# Bytes of the block that each rank sends at the beginning of a step of all ranks.
BLOCK = 128
# Bytes of a block behind its head.
ROOM = BLOCK - HEAD
# Tags of messages in MPI: of notices, and of values that one rank sends to another.
NOTICE_TAG = 15
VALUE_TAG = 16
# Kinds of notices: the sender waits in a step of all ranks, or it has ended.
WAITS = 1
ENDED = 2
# Seconds of waiting after which a rank sleeps in between, to leave its core to others.
BUSY = 2e-3
# Seconds of one such sleep.
SLEEP = 1e-4
# Seconds from one look at the notices to the next.
LOOK = 1e-2
# Seconds of waiting for all ranks after which a rank sends a notice that it waits.
LONG = 1.0
# Seconds in which a message arrives that was sent before a notice of its sender.
GRACE = 0.5


def duplicate(comm: Any, timeout: float | None, what: str) -> Any:
    """The same ranks with messages of their own, which all of them ask for together.

    Raises DistributedError where others have not asked within the timeout, in seconds;
    None: waits for them without end.
    """
    if isinstance(comm, LoopbackComm):
        return comm.Dup()
    # Ask without waiting, so that a rank is noticed that never comes.
    duplicated, request = comm.Idup()
    begin = time.perf_counter()
    while not request.Test():
        waited = time.perf_counter() - begin
        if timeout is not None and waited > timeout:
            raise DistributedError(
                f"rank {comm.rank}: other ranks have not come to {what} in {timeout:g} s, "
                "which waits for all of them"
            )
        if waited > BUSY:
            time.sleep(SLEEP)
    return duplicated


class RankGroup:
    """The ranks of a plan, with messages of their own.

    Parameters
    ----------
    comm : communicator
        Of mpi4py, or of ``run_ranks``.
    timeout : float or None
        Seconds after which a wait is an error.
    what : str
        What the ranks do to become a group, as errors name it.
    loops : iterable of str
        The names of the loops that they run, for errors.
    """

    def __init__(
        self, comm: Any, timeout: float | None, what: str, loops: Iterable[str] = ()
    ) -> None:
        self.comm = duplicate(comm, timeout, what)
        self.rank: int = comm.rank
        self.size: int = comm.size
        self._timeout = timeout
        self._loop_of = {_checksum(loop_name(name)): loop_name(name) for name in loops}
        self._calls = 0
        self._history = 0
        self._dats: tuple[tuple[str, int], ...] = ()
        # Steps of all ranks so far.
        self._meetings = 0
        # The last notice of each rank: its kind, and the steps that the rank had taken.
        self._notices: dict[int, tuple[int, int]] = {}
        # Requests of notices under way, kept because MPI reads their buffers.
        self._requests_of_notices: list[Any] = []
        # Ranks in one process need no notices: there `LoopbackWorld` sees that all wait.
        self._in_process = isinstance(comm, LoopbackComm)
        if not self._in_process and self.size > 1:
            atexit.register(self._send_notice, ENDED)

    def begin(self, what: str, dats: Sequence[tuple[str, int]]) -> None:
        """Begin a call of a loop; ``dats`` are its arguments with their numbers."""
        self._calls += 1
        self._dats = tuple(dats)
        self._history = zlib.crc32(f"{what} {self._dats}".encode(), self._history)

    def head(self, what: str, checksum: int = 0) -> NDArray[np.int64]:
        """The head of a message of the present call."""
        words = np.zeros(HEAD_WORDS, np.int64)
        words[CHECKSUM] = checksum
        words[CALL] = self._calls
        words[NAME] = _checksum(what)
        words[HISTORY] = self._history
        numbers = [number for _, number in self._dats[:MOST_DATS]]
        words[DATS:].view(np.int16)[: len(numbers)] = numbers
        return words

    def check(
        self,
        sender: int,
        what: str,
        head: NDArray[np.int64],
        received: NDArray[np.int64],
    ) -> None:
        """Raise DistributedError unless sender and receiver are in the same call."""
        if np.array_equal(head, received):
            return
        raise DistributedError(
            f"rank {self.rank}: {what} awaits a message of rank {sender}, "
            f"{self._difference(head, received)}: all ranks must call the same loops, "
            "with the same dats, in the same order"
        )

    def _difference(self, head: NDArray[np.int64], received: NDArray[np.int64]) -> str:
        """In words, how the head of a message differs from the head of this rank."""
        if received[NAME] != head[NAME]:
            other = self._loop_of.get(int(received[NAME]), "something else")
            return f"which is in {other}"
        if received[CALL] != head[CALL]:
            return f"in call {head[CALL]} of a loop, which is in call {received[CALL]}"
        # Dats are numbered as they are made, alike on all ranks.
        other_numbers = received[DATS:].view(np.int16).tolist()
        for (argument, number), other_number in zip(
            self._dats, other_numbers, strict=False
        ):
            if number != other_number:
                return (
                    f"which has sent other dats: argument '{argument}' is dat {number} "
                    f"here and dat {other_number} there (as they were made, from 0)"
                )
        if received[CHECKSUM] != head[CHECKSUM]:
            return "which has sent other dats: it has marked others as changed"
        return "which has called other loops before, or with other dats"

    # --- Steps of all ranks ---

    def meet(self, what: str, values: UInt8s) -> "Meeting":
        """Send up to ``ROOM`` bytes to all ranks; all must be in the same step."""
        return Meeting(self, what, values)

    def allgather(self, value: Any, what: str = A_STEP) -> list[Any]:
        """The values of all ranks."""
        data = _pickle_to_bytes(value)
        sizes = self._sizes(what, data.size)
        # Iallgather takes buffers of the same size from all ranks.
        buffer = np.zeros(max(sizes), np.uint8)
        buffer[: data.size] = data
        buffer_of_ranks = np.zeros((self.size, buffer.size), np.uint8)
        self.wait([self.comm.Iallgather(buffer, buffer_of_ranks.reshape(-1))], what)
        values = []
        for rank, size in enumerate(sizes):
            values.append(pickle.loads(buffer_of_ranks[rank, :size].tobytes()))
        return values

    def gather(self, value: Any, root: int = 0, what: str = A_STEP) -> list[Any] | None:
        """The values of all ranks, on the root; None on the others."""
        data = _pickle_to_bytes(value)
        sizes = self._sizes(what, data.size)
        if self.rank != root:
            self.wait([self.comm.Isend(data, root, VALUE_TAG)], what, [root])
            return None
        others = [rank for rank in range(self.size) if rank != root]
        buffers = {rank: np.zeros(sizes[rank], np.uint8) for rank in others}
        requests = [self.comm.Irecv(buffers[rank], rank, VALUE_TAG) for rank in others]
        self.wait(requests, what, others)
        buffers[root] = data
        return [pickle.loads(buffers[rank].tobytes()) for rank in range(self.size)]

    def alltoall(self, values: Sequence[Any], what: str = A_STEP) -> list[Any]:
        """The value that each rank has for this one; its own is handed over as it is."""
        others = [rank for rank in range(self.size) if rank != self.rank]
        data = {rank: _pickle_to_bytes(values[rank]) for rank in others}
        # Tell each rank how much it will get.
        sizes = np.zeros(self.size, np.int64)
        for rank in others:
            sizes[rank] = data[rank].size
        sizes_of_ranks = self.allgather(sizes, what)
        buffers = {}
        for rank in others:
            buffers[rank] = np.zeros(sizes_of_ranks[rank][self.rank], np.uint8)
        # Receive before sending, as `wait` expects the requests.
        requests = [self.comm.Irecv(buffers[rank], rank, VALUE_TAG) for rank in others]
        requests += [self.comm.Isend(data[rank], rank, VALUE_TAG) for rank in others]
        self.wait(requests, what, others)
        received = list(values)
        for rank in others:
            received[rank] = pickle.loads(buffers[rank].tobytes())
        return received

    def bcast(self, value: Any, root: int = 0, what: str = A_STEP) -> Any:
        """The value of the root, on all ranks."""
        if self.rank != root:
            value = None
        data = _pickle_to_bytes(value)
        sizes = self._sizes(what, data.size)
        if self.rank == root:
            others = [rank for rank in range(self.size) if rank != root]
            requests = [self.comm.Isend(data, rank, VALUE_TAG) for rank in others]
            self.wait(requests, what, others)
            return value
        data = np.zeros(sizes[root], np.uint8)
        self.wait([self.comm.Irecv(data, root, VALUE_TAG)], what, [root])
        return pickle.loads(data.tobytes())

    def exchange(self, values: Mapping[int, Any], what: str = A_STEP) -> dict[int, Any]:
        """Send a value to some ranks each; returns those that came, by their sender."""
        data = {rank: _pickle_to_bytes(value) for rank, value in values.items()}
        sizes = self.allgather({rank: sent.size for rank, sent in data.items()}, what)
        buffers = {}
        for sender, sizes_to_ranks in enumerate(sizes):
            if self.rank in sizes_to_ranks:
                buffers[sender] = np.zeros(sizes_to_ranks[self.rank], np.uint8)
        requests = [self.comm.Irecv(buffers[rank], rank, VALUE_TAG) for rank in buffers]
        requests += [self.comm.Isend(data[rank], rank, VALUE_TAG) for rank in data]
        self.wait(requests, what, list(buffers))
        return {rank: pickle.loads(buffers[rank].tobytes()) for rank in buffers}

    def _sizes(self, what: str, size: int) -> list[int]:
        """The sizes in bytes of the values of all ranks."""
        rooms = self.meet(what, np.array([size], np.int64).view(np.uint8)).finish()
        return [int(room[:8].view(np.int64)[0]) for room in rooms]

    # --- Waiting ---

    def wait(
        self, requests: Sequence[Any], what: str, senders: Sequence[int] | None = None
    ) -> None:
        """Wait for messages.

        ``senders`` are the ranks of the first requests, which receive; None is for steps of
        all ranks. Raises DistributedError where a sender has ended or waits for something
        else, and after the timeout.
        """
        if not requests:
            return
        # Ranks that are threads of this process see at once where one ends: wait without
        # looking.
        if self._in_process and self._timeout is None:
            for request in requests:
                request.waits_for = f"{request.waits_for} in {what}"
            requests[0].Waitall(requests)
            return
        # Look from time to time whether the others can still answer.
        begin = time.perf_counter()
        next_look = begin + LOOK
        problem_since: float | None = None
        notice_sent = False
        while not requests[0].Testall(requests):
            now = time.perf_counter()
            if self._timeout is not None and now - begin > self._timeout:
                raise DistributedError(self._timeout_message(requests, what, senders))
            if now - begin > BUSY:
                time.sleep(SLEEP)
            if self._in_process or now < next_look:
                continue
            # Exchange notices, and fail where one says that this wait cannot end.
            next_look = now + LOOK
            if senders is None and not notice_sent and now - begin > LONG:
                self._send_notice(WAITS)
                notice_sent = True
            # Messages may be under way behind the notice: fail only where the problem
            # stays.
            problem = self._problem(requests, what, senders)
            if problem:
                if problem_since is None:
                    problem_since = now
                if now - problem_since > GRACE:
                    raise DistributedError(problem)

    def _awaited(self, requests: Sequence[Any], senders: Sequence[int] | None) -> list[int]:
        """The ranks whose messages have not arrived."""
        if senders is None:
            return [rank for rank in range(self.size) if rank != self.rank]
        # Requests that send follow those that receive.
        pairs = zip(requests, senders, strict=False)
        return [rank for request, rank in pairs if not request.Test()]

    def _problem(
        self, requests: Sequence[Any], what: str, senders: Sequence[int] | None
    ) -> str:
        """Why this wait cannot end, by the notices of other ranks; empty where it can."""
        self._receive_notices()
        for rank in self._awaited(requests, senders):
            kind, meetings = self._notices.get(rank, (0, 0))
            if kind == ENDED:
                return f"rank {self.rank}: {what} waits for rank {rank}, which has ended"
            # A rank that waits for all waits for this one, too. In a step of all ranks this
            # is as it should be; but it sends no message that this rank could receive.
            if kind == WAITS and senders is not None and meetings == self._meetings:
                return (
                    f"rank {self.rank}: {what} awaits a message of rank {rank}, which "
                    "waits in a step of all ranks: all ranks must make the same calls, "
                    "in the same order"
                )
        return ""

    def _timeout_message(
        self, requests: Sequence[Any], what: str, senders: Sequence[int] | None
    ) -> str:
        if not self._in_process:
            self._receive_notices()
        late = self._awaited(requests, senders)
        if senders is None:
            # Ranks that wait in the same step are not late.
            waits_here = (WAITS, self._meetings)
            late = [rank for rank in late if self._notices.get(rank) != waits_here]
        names = ", ".join(map(str, late)) or "(its own are not taken)"
        return (
            f"rank {self.rank}: no message in {self._timeout:g} s from rank {names}, which "
            f"{what} waits for"
        )

    def _send_notice(self, kind: int) -> None:
        """Send a notice to all other ranks, which need not receive it."""
        notice = np.array([kind, self._meetings], np.int64)
        for rank in range(self.size):
            if rank != self.rank:
                request = self.comm.Isend(notice, rank, NOTICE_TAG)
                self._requests_of_notices.append(request)

    def _receive_notices(self) -> None:
        """Receive the notices that have arrived."""
        notice = np.zeros(2, np.int64)
        for rank in range(self.size):
            while rank != self.rank and self.comm.Iprobe(rank, NOTICE_TAG):
                self.comm.Irecv(notice, rank, NOTICE_TAG).Wait()
                kind, meetings = notice.tolist()
                self._notices[rank] = (kind, meetings)


class Meeting:
    """The beginning of a step of all ranks: each sends a block to all others."""

    def __init__(self, ranks: RankGroup, what: str, values: UInt8s) -> None:
        self._ranks = ranks
        self._what = what
        self._head = ranks.head(what)
        block = np.zeros(BLOCK, np.uint8)
        block[:HEAD] = self._head.view(np.uint8)
        block[HEAD : HEAD + values.size] = values
        self._blocks = np.zeros((ranks.size, BLOCK), np.uint8)
        self._request = ranks.comm.Iallgather(block, self._blocks.reshape(-1))

    def finish(self) -> UInt8s:
        """Wait, and compare heads; returns the values of each rank, (ranks, ROOM)."""
        self._ranks.wait([self._request], self._what)
        self._ranks._meetings += 1
        for sender, block in enumerate(self._blocks):
            received = block[:HEAD].view(np.int64)
            self._ranks.check(sender, self._what, self._head, received)
        return self._blocks[:, HEAD:]


def loop_name(loop: str) -> str:
    """The name of a loop in heads and errors."""
    return f"loop '{loop}'"


def _checksum(what: str) -> int:
    return zlib.crc32(what.encode())


def _pickle_to_bytes(value: Any) -> UInt8s:
    return np.frombuffer(pickle.dumps(value), np.uint8)
