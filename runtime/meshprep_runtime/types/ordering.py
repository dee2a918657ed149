"""A permutation of one set, both ways."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError, check_integer
from .maps import as_indices, chunks, read_only


@dataclass(frozen=True, eq=False)
class Ordering:
    """A permutation of a set: which old element stands at each new place, and the reverse.

    Parameters
    ----------
    new_to_old : (n,) int32
        ``new_to_old[i]`` is the old number of the element that is now number ``i``.
    old_to_new : (n,) int32
        The inverse; computed by ``from_new_to_old``.

    Examples
    --------
    >>> import numpy as np
    >>> from meshprep_runtime import Ordering
    >>> order = Ordering.from_new_to_old(np.array([2, 0, 1]))
    >>> order.apply(np.array([10.0, 11.0, 12.0]))
    array([12., 10., 11.])
    >>> order.restore(order.apply(np.array([10.0, 11.0, 12.0])))
    array([10., 11., 12.])
    """

    new_to_old: NDArray[np.int32]
    old_to_new: NDArray[np.int32]

    @classmethod
    def from_new_to_old(cls, new_to_old: NDArray[np.integer], name: str = "") -> Ordering:
        """Build from one direction.

        Parameters
        ----------
        new_to_old : (n,) integers
            Copied where they are not int32; an int32 array must not be written to
            afterwards.
        name : str
            Of the set, for the message of an error.

        Returns
        -------
        Ordering

        Raises
        ------
        MeshprepError
            Where a number is outside 0..n-1 or stands twice, or is not a whole one.

        Notes
        -----
        O(n).
        """
        where = ""
        if name:
            where = f" of set '{name}'"
        forward = read_only(as_indices(new_to_old, f"the ordering{where}"))
        if forward.ndim != 1:
            raise MeshprepError(
                f"the ordering{where} has shape {forward.shape}, must be (n,)"
            )
        n = forward.size
        if n and (forward.min() < 0 or forward.max() >= n):
            raise MeshprepError(f"the ordering{where} has a number outside 0..{n - 1}")
        # Invert it piece by piece.
        inverse = np.full(n, -1, dtype=np.int32)
        for piece in chunks(n):
            inverse[forward[piece]] = np.arange(piece.start, piece.stop, dtype=np.int32)
        # A number that stands twice leaves another one without a place.
        if n and inverse.min() < 0:
            missing = int(np.argmin(inverse))
            raise MeshprepError(
                f"the ordering{where} is not a permutation: {missing} is missing"
            )
        inverse.flags.writeable = False
        return cls(forward, inverse)

    @classmethod
    def identity(cls, n: int) -> Ordering:
        """The ordering that moves nothing.

        Parameters
        ----------
        n : int
            Number of elements.

        Returns
        -------
        Ordering

        Raises
        ------
        MeshprepError
            For a number that is no whole one from 0.
        """
        check_integer("the number of elements", n, 0)
        numbers = np.arange(n, dtype=np.int32)
        numbers.flags.writeable = False
        return cls(numbers, numbers)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(self.new_to_old.size)

    def __repr__(self) -> str:
        return f"Ordering of {self.size:,} elements"

    @cached_property
    def is_identity(self) -> bool:
        """True when nothing moves.

        O(n) at the first access; stops at the first piece in which an element moves.
        """
        for piece in chunks(self.size):
            unmoved = np.arange(piece.start, piece.stop, dtype=np.int32)
            if (self.new_to_old[piece] != unmoved).any():
                return False
        return True

    def apply(self, values: Any, axis: int = 0) -> Any:
        """Old numbering to new, along one axis.

        Parameters
        ----------
        values : array of NumPy, CuPy, JAX or torch
            Of any dtype and shape; ``axis`` runs over the set (1 for ``(dim, n)``). What
            comes back is of the same kind and on the same device.
        axis : int

        Returns
        -------
        array
            A new one; ``values`` itself, not a copy, where nothing moves. O(size of the
            array).

        Raises
        ------
        MeshprepError
            When the axis is not as long as the set is large.
        """
        return self._take(values, self.new_to_old, axis)

    def restore(self, values: Any, axis: int = 0) -> Any:
        """New numbering back to old, along one axis: the inverse of ``apply``.

        Parameters
        ----------
        values : array of NumPy, CuPy, JAX or torch
            Of any dtype and shape; ``axis`` runs over the set.
        axis : int

        Returns
        -------
        array
            As of ``apply``.

        Raises
        ------
        MeshprepError
            When the axis is not as long as the set is large.
        """
        return self._take(values, self.old_to_new, axis)

    @property
    def inverse(self) -> Ordering:
        """The reverse ordering: its ``apply`` is the ``restore`` of this one."""
        return Ordering(self.old_to_new, self.new_to_old)

    def then(self, second: Ordering) -> Ordering:
        """One ordering after the other.

        Parameters
        ----------
        second : Ordering
            Of the elements as this one numbers them.

        Returns
        -------
        Ordering
            From this one's old numbering to the second one's new. O(n).

        Raises
        ------
        MeshprepError
            When they have not the same size.
        """
        if second.size != self.size:
            raise MeshprepError(
                f"orderings of {self.size} and {second.size} elements do not chain"
            )
        if self.is_identity:
            return second
        forward, inverse = np.empty((2, self.size), dtype=np.int32)
        for piece in chunks(self.size):
            forward[piece] = self.new_to_old[second.new_to_old[piece]]
            inverse[piece] = second.old_to_new[self.old_to_new[piece]]
        forward.flags.writeable = False
        inverse.flags.writeable = False
        return Ordering(forward, inverse)

    def _take(self, values: Any, index: NDArray[np.int32], axis: int) -> Any:
        if not hasattr(values, "shape"):
            raise MeshprepError(f"values is a {type(values).__name__}, must be an array")
        shape = tuple(values.shape)
        axis_exists = isinstance(axis, Integral) and -len(shape) <= axis < len(shape)
        if not axis_exists or shape[axis] != self.size:
            raise MeshprepError(
                f"array of shape {shape} does not fit a set of {self.size} elements: "
                f"axis {axis} must run over the set"
            )
        if self.is_identity:
            return values
        if isinstance(values, np.ndarray):
            return values.take(index, axis=axis)
        if hasattr(values, "__array_namespace__"):
            # The interface of the array standard, which JAX has, and CuPy.
            library = values.__array_namespace__()
            return library.take(values, library.asarray(index), axis=axis)
        # Libraries accept only indices in arrays of their own.
        library = import_module(type(values).__module__.partition(".")[0])
        if hasattr(library, "index_select"):
            on_device = library.tensor(index, device=values.device)
            return library.index_select(values, axis, on_device)
        if not hasattr(library, "take"):
            kind = f"{library.__name__}.{type(values).__name__}"
            raise MeshprepError(
                f"a {kind} is not taken: give an array of NumPy, CuPy, JAX or torch"
            )
        return library.take(values, library.asarray(index), axis=axis)
