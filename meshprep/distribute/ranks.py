"""Work that several ranks share: MPI's communicator, or none, and one word on what fails."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import numpy as np
from numba import set_num_threads
from numpy.typing import NDArray

from meshprep_runtime.cpu.pool import thread_count
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.program.mpi import Alone

T = TypeVar("T")
P = TypeVar("P")

# Bytes that a rank sends at once: messages are copied on the way, and MPI counts in 32 bits.
MESSAGE = 1 << 24


class Ranks(Protocol):
    """The part of mpi4py's communicator interface that splits use."""

    rank: int
    size: int

    def allgather(self, value: T, /) -> list[T]:
        """The values of all ranks, on each of them."""

    def bcast(self, value: T, /) -> T:
        """The value of rank 0, on every rank."""

    def alltoall(self, values: Sequence[T], /) -> list[T]:
        """Values that each rank sends to this one, by rank."""


ALONE: Ranks = Alone()


def agreed(ranks: Ranks, work: Callable[[], T], *, named: bool = True) -> T:
    """Work on every rank, then a vote: where one fails, all raise the error of the lowest.

    Nothing in ``work`` may wait for other ranks. The message names the rank where ``named``, unless
    it is that of all ranks; the error has the attribute ``agreed``.
    """
    found: Any = None
    failed: Exception | None = None
    try:
        found = work()
    except Exception as error:
        failed = error
    if ranks.size == 1:
        if failed is not None:
            raise failed
        return found
    said = ranks.allgather(None if failed is None else _sendable_error(failed))
    wrong = [(rank, one) for rank, one in enumerate(said) if one is not None]
    if wrong:
        rank, (kind, text) = wrong[0]
        everywhere = len(wrong) == ranks.size and all(one == wrong[0][1] for _, one in wrong)
        together = kind(text if everywhere or not named else f"rank {rank}: {text}")
        # so that a program knows that no rank waits for this one
        together.agreed = True  # type: ignore[attr-defined]
        raise together from failed
    return found


def _sendable_error(error: Exception) -> tuple[type[Exception], str]:
    """An error as all ranks can raise it."""
    if isinstance(error, MeshprepError):
        return type(error), str(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return MeshprepError, f"{where}{error.strerror or error}"
    return RuntimeError, f"{type(error).__name__}: {error}"


def of_root(ranks: Ranks, work: Callable[[], T]) -> T:
    """Result of rank 0, broadcast; all ranks raise its error if it fails."""
    found: Any = agreed(ranks, lambda: work() if ranks.rank == 0 else None, named=False)
    shared: T = ranks.bcast(found)
    return shared


def own_parts(ranks: Ranks, parts: int) -> range:
    """The parts that this rank builds: neighbours in their numbers."""
    return range(*(-(-rank * parts // ranks.size) for rank in (ranks.rank, ranks.rank + 1)))


def holder(ranks: Ranks, part: NDArray[np.integer], parts: int) -> NDArray[np.int64]:
    """The rank that builds each of these parts."""
    first = -(-np.arange(ranks.size + 1) * parts // ranks.size)
    return np.searchsorted(first, part, side="right") - 1


def exchanged(ranks: Ranks, to_each: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Arrays received from each rank; ``to_each`` has an array for each rank.

    All of one type and shape of rows. Sent in as many steps as :data:`MESSAGE` asks for.
    """
    if ranks.size == 1:
        return list(to_each)
    kind, shape = to_each[0].dtype, to_each[0].shape[1:]
    step = max(1, MESSAGE // max(1, ranks.size * kind.itemsize * int(np.prod(shape))))
    longest = max(ranks.allgather(max(map(len, to_each))))
    sizes = ranks.alltoall([len(one) for one in to_each])
    found = [np.empty((size, *shape), kind) for size in sizes]
    for begin in range(0, longest, step):
        came = ranks.alltoall([one[begin : begin + step] for one in to_each])
        for into, piece in zip(found, came, strict=True):
            into[begin : begin + len(piece)] = piece
    return found


def in_turn(
    work: Callable[[P], T],
    parts: Sequence[P],
    progress: Callable[[float], None] = lambda share: None,
) -> Iterator[T]:
    """``work`` of each part in order, on all threads; parts at work share those left."""
    threads = thread_count()
    workers = max(1, min(threads, len(parts)))
    own: Any = {"initializer": set_num_threads, "initargs": (threads // workers,)}
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(workers, **own) as pool:
        for i, part in enumerate(parts):
            progress(i / len(parts))
            waiting.append(pool.submit(work, part))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
