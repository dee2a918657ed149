"""MPI: the only import of mpi4py, and steps that succeed on all ranks or on none."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import DistributedError, MeshprepError, MissingPackageError
from ..types.loops import Access
from .loopback import LoopbackComm

# How the values of two ranks are combined in a reduction.
COMBINE: dict[Access, np.ufunc] = {
    Access.INC: np.add,
    Access.MIN: np.minimum,
    Access.MAX: np.maximum,
}
# The most bytes that one call of MPI writes: their number must fit 32 bits.
MOST_BYTES = 1 << 30
# The name in errors of a step of all ranks that has no better name.
A_STEP = "a step of all ranks"
# Seconds between the last output and an abort: Open MPI's launcher drops at an abort any
# output that it has not passed on yet.
PASSED_ON = 0.3


def world() -> Any:
    """``MPI.COMM_WORLD``; raises MissingPackageError without mpi4py or an MPI."""
    return _mpi().COMM_WORLD


def end_all_on_errors(comm: Any) -> None:
    """Let an uncaught exception of one rank end the job.

    An exception that all ranks raise together is printed once, by rank 0.
    """
    if isinstance(comm, LoopbackComm) or getattr(sys.excepthook, "ends_all_ranks", False):
        return
    # The hook that is there prints the error.
    previous_hook = sys.excepthook
    all_ranks = world()

    def hook(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        # An error that all ranks have raised ends all of them by itself: rank 0 prints it
        # once.
        raised_by_all = (
            isinstance(error, DistributedError) and error.ranks >= all_ranks.size
        )
        if all_ranks.rank == 0 or not raised_by_all:
            previous_hook(kind, error, trace)
        if not raised_by_all:
            # Leave time for the text to be passed on before the job is killed.
            sys.stderr.flush()
            time.sleep(PASSED_ON)
            all_ranks.Abort(3)

    hook.ends_all_ranks = True  # type: ignore[attr-defined]
    sys.excepthook = hook


def _mpi() -> Any:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise MissingPackageError(
            f"running on ranks needs mpi4py and an MPI ({error}): "
            "pip install 'meshprep-runtime[mpi]' mpich"
        ) from error
    return MPI


T = TypeVar("T")


class Alone:
    """The communicator of a single process, without MPI."""

    rank = 0
    size = 1

    def allgather(self, value: T, what: str = "") -> list[T]:
        """The values of all ranks: of this one."""
        return [value]

    def bcast(self, value: T, root: int = 0, what: str = "") -> T:
        """The value of the root: of this rank."""
        return value

    def alltoall(self, values: Sequence[T]) -> list[T]:
        """The value that each rank sends to this one: its own."""
        return list(values)


ALONE = Alone()


def together(ranks: Any, work: Callable[[], T], what: str = A_STEP) -> T:
    """Do local work on every rank; fail on all ranks where it fails on one.

    ``ranks`` is a :class:`~.ranks.RankGroup`, or ``ALONE``; errors name the step as
    ``what``. ``work`` must send no messages: a rank that fails in it would leave the others
    waiting.

    Raises DistributedError on all ranks, with the message of the first rank that failed.
    """
    outcome = _attempt(work)
    message_of_rank = ranks.allgather(outcome.message, what)
    failed = [rank for rank, message in enumerate(message_of_rank) if message is not None]
    if failed:
        message = message_of_rank[failed[0]]
        # Name the rank unless all say the same.
        if len(set(message_of_rank)) > 1:
            message = f"rank {failed[0]} of {ranks.size}: {message}"
        raise _error_of_all(ranks, message) from outcome.error
    return cast(T, outcome.value)


def from_root(ranks: Any, work: Callable[[], T], what: str = A_STEP) -> T:
    """Do work on rank 0 and send its result to the other ranks.

    Raises DistributedError on all ranks where the work fails.
    """
    outcome = Outcome()
    if ranks.rank == 0:
        outcome = _attempt(work)
    message, value = ranks.bcast((outcome.message, outcome.value), 0, what)
    if message is not None:
        raise _error_of_all(ranks, message) from outcome.error
    return cast(T, value)


class SharedFile(Protocol):
    """A file that several ranks write to, each at places of its own.

    Its methods raise OSError or RuntimeError where the disk refuses.
    """

    def write(self, start: int, values: NDArray[Any]) -> None:
        """Write values in one piece, from a byte of the file on."""

    def flush(self) -> None:
        """Wait until what this rank has written is on the disk."""

    def close(self) -> None:
        """Close it on this rank; it may be closed already."""


def open_shared(ranks: Any, path: Path) -> SharedFile:
    """Open a file that is there already, on this rank; raises OSError or RuntimeError."""
    if isinstance(ranks.comm, LoopbackComm):
        return FileOfProcess(path)
    return FileOfMpi(path)


class FileOfProcess:
    """A :class:`SharedFile` of ranks that are threads of one process."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "r+b", buffering=0)  # noqa: SIM115

    def write(self, start: int, values: NDArray[Any]) -> None:
        """As :meth:`SharedFile.write`."""
        self._file.seek(start)
        # NumPy's stubs do not say that an array is a buffer.
        data: Any = _bytes_of(values)
        left = memoryview(data)
        while left.nbytes:
            left = left[self._file.write(left) :]

    def flush(self) -> None:
        """As :meth:`SharedFile.flush`."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """As :meth:`SharedFile.close`."""
        self._file.close()


class FileOfMpi:
    """A :class:`SharedFile` of ranks under MPI.

    Each rank opens it for itself: no call waits for other ranks, which may have failed.
    """

    def __init__(self, path: Path) -> None:
        mpi = _mpi()
        self._file = mpi.File.Open(mpi.COMM_SELF, str(path), mpi.MODE_WRONLY)

    def write(self, start: int, values: NDArray[Any]) -> None:
        """As :meth:`SharedFile.write`."""
        mpi = _mpi()
        data = _bytes_of(values)
        status = mpi.Status()
        for first in range(0, data.size, MOST_BYTES):
            piece = data[first : first + MOST_BYTES]
            self._file.Write_at(start + first, piece, status)
            n_written = status.Get_count(mpi.BYTE)
            if n_written != piece.size:
                raise OSError(f"{n_written} of {piece.size} bytes, is the disk full?")

    def flush(self) -> None:
        """As :meth:`SharedFile.flush`."""
        self._file.Sync()

    def close(self) -> None:
        """As :meth:`SharedFile.close`."""
        if self._file != _mpi().FILE_NULL:
            self._file.Close()


def _bytes_of(values: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


class Outcome(NamedTuple):
    """The result of work, or the error that it raised with its message."""

    value: Any = None
    error: Exception | None = None
    message: str | None = None


def _attempt(work: Callable[[], object]) -> Outcome:
    try:
        return Outcome(value=work())
    except MeshprepError as error:
        return Outcome(error=error, message=str(error))
    except Exception as error:
        return Outcome(error=error, message=f"{type(error).__name__}: {error}")


def _error_of_all(ranks: Any, message: str) -> DistributedError:
    """The error that all ranks raise together."""
    error = DistributedError(message)
    error.ranks = ranks.size
    return error
