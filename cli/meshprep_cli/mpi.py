"""The ranks of a command: ``mpiexec -n R python -m mpi4py -m meshprep_cli.main``."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any

from meshprep_runtime.errors import MeshprepError

if TYPE_CHECKING:
    from meshprep.distribute.ranks import Ranks

# Variables in which launchers of MPI say how many processes there are.
_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS")


def ranks() -> "Ranks":
    """MPI's ranks, or the one process that there is.

    Raises MeshprepError for several processes that do not know of each other, which would
    do the same R times.
    """
    from meshprep.distribute.ranks import ALONE

    # MPI is started for those alone who asked for it: importing mpi4py would join a job.
    if "mpi4py.run" in sys.modules:
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError) as error:
            raise MeshprepError(
                f"mpi4py finds no MPI ({error}): see its documentation"
            ) from error
        world: Ranks = MPI.COMM_WORLD
        return world
    if any(int(os.environ.get(name) or 1) > 1 for name in _SIZES):
        raise MeshprepError(
            "several processes that do not know of each other: "
            "mpiexec -n R python -m mpi4py -m meshprep_cli.main split ..."
        )
    return ALONE


@contextmanager
def one_voice() -> Iterator[None]:
    """Under MPI only rank 0 speaks; the others end quietly, whatever they met."""
    if "mpi4py.run" not in sys.modules or ranks().rank == 0:
        yield
        return
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
        suppress(Exception),
    ):
        yield


@contextmanager
def nobody_waits(world: Any) -> Iterator[None]:
    """End the job where a rank other than 0 has an error that the others do not have."""
    try:
        yield
    except Exception as error:
        # The others wait for a message of this rank, and nothing else would end that.
        if world.rank > 0 and not getattr(error, "agreed", False):
            world.Abort(3)
        raise
