"""MPI: the one module that imports mpi4py, and steps that ranks take together or not at all."""

import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, TypeVar, cast

import numpy as np

from ..errors import DistributedError, MeshprepError, MissingPackageError
from ..types.loops import Access
from .loopback import LoopbackComm

COMBINE: dict[Access, np.ufunc] = {
    Access.INC: np.add,
    Access.MIN: np.minimum,
    Access.MAX: np.maximum,
}
# Seconds in which a launcher passes on what was printed: Open MPI's drops the rest at an abort.
PASSED_ON = 0.3


def world() -> Any:
    """``MPI.COMM_WORLD``; raises MissingPackageError without mpi4py or an MPI."""
    return _mpi().COMM_WORLD


def end_all_on_errors(comm: Any) -> None:
    """Let an uncaught exception of one rank end the job; one of all is said once."""
    if isinstance(comm, LoopbackComm) or getattr(sys.excepthook, "ends_all_ranks", False):
        return
    before, every = sys.excepthook, world()

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        alone = not isinstance(error, DistributedError) or error.ranks < every.size
        if alone or every.rank == 0:
            before(kind, error, trace)
        if alone:
            sys.stderr.flush()
            time.sleep(PASSED_ON)
            every.Abort(3)

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

    rank, size = 0, 1

    def allgather(self, value: T) -> list[T]:
        """The values of all ranks."""
        return [value]

    def bcast(self, value: T, root: int = 0) -> T:
        """The value of one rank."""
        return value

    def alltoall(self, values: Sequence[T]) -> list[T]:
        """What each rank has for this one."""
        return list(values)


ALONE = Alone()


def together(comm: Any, work: Callable[[], T]) -> T:
    """Do local work; then all ranks learn whether it went well on each.

    Raises DistributedError on all ranks, when one has failed, with the message of the first that
    did.

    ``work`` sends no messages: a rank that fails in it would leave the others waiting.
    """
    found, cause, told = _tried(work)
    told_by_rank = comm.allgather(told)
    failed = [rank for rank, one in enumerate(told_by_rank) if one is not None]
    if failed:
        first = told_by_rank[failed[0]]
        everywhere = len(set(told_by_rank)) == 1
        message = first if everywhere else f"rank {failed[0]} of {comm.size}: {first}"
        raise _on_all(comm, message) from cause
    return cast(T, found)


def from_root(comm: Any, work: Callable[[], T]) -> T:
    """Let rank 0 do something for all.

    Raises DistributedError on all ranks, when it has failed.

    What ``work`` gives is sent to the others.
    """
    found, cause, told = _tried(work) if comm.rank == 0 else (None, None, None)
    told, found = comm.bcast((told, found), 0)
    if told is not None:
        raise _on_all(comm, told) from cause
    return cast(T, found)


def _tried(work: Callable[[], T]) -> tuple[T | None, Exception | None, str | None]:
    try:
        return work(), None, None
    except MeshprepError as error:
        return None, error, str(error)
    except Exception as error:
        return None, error, f"{type(error).__name__}: {error}"


def _on_all(comm: Any, message: str) -> DistributedError:
    refused = DistributedError(message)
    refused.ranks = comm.size
    return refused
