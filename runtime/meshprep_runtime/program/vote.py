"""Steps that all ranks take together: they succeed everywhere, or fail everywhere the same way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import DistributedError, MeshprepError

T = TypeVar("T")


def together(comm: Any, work: Callable[[], T]) -> T:
    """Do local work; then all ranks learn whether it went well on each.

    Parameters
    ----------
    comm : communicator
    work : function
        Without messages: a rank that fails in it would leave the others waiting.

    Returns
    -------
    What ``work`` gave on this rank.

    Raises
    ------
    DistributedError
        On all ranks, when one has failed, with the message of the first that did.
    """
    cause: Exception | None = None
    found: T
    try:
        found = work()
    except MeshprepError as error:
        cause, told = error, str(error)
    except Exception as error:
        cause, told = error, f"{type(error).__name__}: {error}"
    told_by_rank = comm.allgather(None if cause is None else told)
    failed = [rank for rank, one in enumerate(told_by_rank) if one is not None]
    if failed:
        first = told_by_rank[failed[0]]
        everywhere = len(set(told_by_rank)) == 1
        message = first if everywhere else f"rank {failed[0]} of {comm.size}: {first}"
        refused = DistributedError(message)
        refused.ranks = comm.size
        raise refused from cause
    return found
