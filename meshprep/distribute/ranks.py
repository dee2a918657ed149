"""Ranks that share a split: their messages, their parts, and errors that all raise."""

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

# Bytes that a rank sends at once: messages are copied on the way, and MPI counts in 32
# bits.
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

    Nothing in ``work`` may wait for other ranks. The message names the rank where
    ``named``, unless it is that of all ranks; the error has the attribute ``agreed``.
    """
    # Work here, and keep the error: others wait for the vote.
    result: Any = None
    failed: Exception | None = None
    try:
        result = work()
    except Exception as error:
        failed = error
    if ranks.size == 1:
        if failed is not None:
            raise failed
        return result
    # Exchange the errors: a rank that has none must know of the others', too.
    errors = ranks.allgather(None if failed is None else _sendable_error(failed))
    raised = [(rank, error) for rank, error in enumerate(errors) if error is not None]
    if not raised:
        return result

    # Raise the error of the lowest rank on all of them.
    rank, (kind, text) = raised[0]
    same_on_all_ranks = len(raised) == ranks.size and len(set(errors)) == 1
    if named and not same_on_all_ranks:
        text = f"rank {rank}: {text}"
    shared_error = kind(text)
    # so that a program knows that no rank waits for this one
    shared_error.agreed = True  # type: ignore[attr-defined]
    raise shared_error from failed


def _sendable_error(error: Exception) -> tuple[type[Exception], str]:
    """An error as all ranks can raise it."""
    if isinstance(error, MeshprepError):
        return type(error), str(error)
    if isinstance(error, OSError):
        text = str(error.strerror or error)
        if error.filename:
            text = f"{error.filename}: {text}"
        return MeshprepError, text
    return RuntimeError, f"{type(error).__name__}: {error}"


def of_root(ranks: Ranks, work: Callable[[], T]) -> T:
    """Result of rank 0, broadcast; all ranks raise its error if it fails."""
    result: Any = agreed(ranks, lambda: work() if ranks.rank == 0 else None, named=False)
    shared: T = ranks.bcast(result)
    return shared


def own_parts(ranks: Ranks, parts: int) -> range:
    """The parts that this rank builds: consecutive numbers."""
    first = -(-ranks.rank * parts // ranks.size)
    end = -(-(ranks.rank + 1) * parts // ranks.size)
    return range(first, end)


def holder(ranks: Ranks, part: NDArray[np.integer], parts: int) -> NDArray[np.int64]:
    """The rank that builds each of these parts, as :func:`own_parts` shares them."""
    first = -(-np.arange(ranks.size + 1) * parts // ranks.size)
    return np.searchsorted(first, part, side="right") - 1


def exchanged(ranks: Ranks, to_each: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Arrays received from each rank; ``to_each`` has an array for each rank.

    All have one type and one shape of rows. Sent in steps of :data:`MESSAGE` bytes.
    """
    if ranks.size == 1:
        return list(to_each)
    kind = to_each[0].dtype
    shape = to_each[0].shape[1:]
    # Rows that a rank sends to each other rank in a step.
    bytes_of_row = kind.itemsize * int(np.prod(shape))
    step = max(1, MESSAGE // max(1, ranks.size * bytes_of_row))
    longest = max(ranks.allgather(max(map(len, to_each))))
    # Make room for the rows of each rank, then receive them step by step.
    sizes = ranks.alltoall([len(rows) for rows in to_each])
    received = [np.empty((size, *shape), kind) for size in sizes]
    for begin in range(0, longest, step):
        pieces = ranks.alltoall([rows[begin : begin + step] for rows in to_each])
        for rows, piece in zip(received, pieces, strict=True):
            rows[begin : begin + len(piece)] = piece
    return received


def in_turn(
    work: Callable[[P], T],
    parts: Sequence[P],
    progress: Callable[[float], None] = lambda share: None,
) -> Iterator[T]:
    """``work`` of each part, in the order of the parts, several at once.

    Where there are more threads than parts, the kernels of each part share what is left.
    """
    threads = thread_count()
    workers = max(1, min(threads, len(parts)))
    waiting: deque[Future[T]] = deque()
    pool = ThreadPoolExecutor(
        max_workers=workers, initializer=set_num_threads, initargs=(threads // workers,)
    )
    with pool:
        for i, part in enumerate(parts):
            progress(i / len(parts))
            waiting.append(pool.submit(work, part))
            # Finished parts do not pile up: one for each worker waits at most.
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
