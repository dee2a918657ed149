"""The one module of the runtime that imports mpi4py."""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

from ..errors import DistributedError, MissingPackageError
from ..types.loops import Access
from .loopback import LoopbackComm

COMBINE: dict[Access, Callable[..., Any]] = {
    Access.INC: np.add,
    Access.MIN: np.minimum,
    Access.MAX: np.maximum,
}
# Seconds in which a launcher passes on what was printed: Open MPI's drops the rest at an abort.
PASSED_ON = 0.3
_MPI_NAMES = {Access.INC: "SUM", Access.MIN: "MIN", Access.MAX: "MAX"}


def world() -> Any:
    """``MPI.COMM_WORLD``.

    Raises MissingPackageError where mpi4py is not installed, or finds no MPI.
    """
    return _mpi().COMM_WORLD


def operation(comm: Any, access: Access) -> Any:
    """How a communicator names a reduction."""
    if isinstance(comm, LoopbackComm):
        return COMBINE[access]
    return getattr(_mpi(), _MPI_NAMES[access])


def end_all_on_errors(comm: Any) -> None:
    """Let an exception that nothing catches on one rank end the job: the others would wait.

    What all ranks of the job raise together ends each, and the first alone says it.
    """
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
