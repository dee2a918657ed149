"""Globals that loops reduce, and whose values are asked for later [R14 6.2]."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ...errors import MeshprepError, check_choice, check_integer
from ...kernel.bind import DTYPES, holds
from ..dat import Queue, name_of_dtype


class GlobalQueue(Queue, Protocol):
    """Loops that wait, and values that a global gets between them."""

    def assign(self, target: "ReducedGlobal", values: NDArray[Any]) -> None:
        """Queue new values."""


class ReducedGlobal:
    """Values that loops reduce, made by ``Program.reduced``.

    Queued loops run when the values are asked for, not before.

    Parameters
    ----------
    values : (dim,) array

    Attributes
    ----------
    chain : Chain or None
        What has queued loops that reduce into it.
    """

    def __init__(self, values: NDArray[Any]) -> None:
        self.chain: GlobalQueue | None = None
        self.stored = values

    def __getstate__(self) -> dict[str, Any]:
        """For copies, which no queue knows."""
        return {"chain": None, "stored": self.array}

    @property
    def array(self) -> NDArray[Any]:
        """The values themselves; loops that are queued run first."""
        if self.chain is not None:
            self.chain.flush()
        return self.stored

    @property
    def value(self) -> NDArray[Any]:
        """A copy of the values; loops that are queued run first."""
        return self.array.copy()

    def set(self, values: ArrayLike) -> None:
        """Let what follows start from other values.

        Parameters
        ----------
        values : number or (dim,) array

        Raises
        ------
        MeshprepError
            Where the dtype cannot hold the values.
        """
        new = start_values(values, self.stored.size, self.stored.dtype)
        if self.chain is None:
            self.stored[:] = new
        else:
            self.chain.assign(self, new)

    def __repr__(self) -> str:
        return f"reduced global, {self.stored.size} x {self.stored.dtype}"


def start_values(values: ArrayLike, dim: int, dtype: DTypeLike) -> NDArray[Any]:
    """The ``(dim,)`` values that a global starts from; refused where the dtype changes them."""
    check_integer("dim of a global", dim)
    check_choice("dtype of a global", name_of_dtype(dtype), DTYPES)
    wanted = np.dtype(dtype)
    if np.shape(values) not in ((), (1,), (dim,)):
        raise MeshprepError(f"the global starts from {values!r}, must be one number or {dim}")
    if not holds(wanted, values):
        raise MeshprepError(f"the global starts from {values!r}, which {dtype} cannot hold")
    return np.array(np.broadcast_to(np.asarray(values, wanted), (dim,)))
