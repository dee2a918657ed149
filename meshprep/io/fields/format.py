"""What a kind of field file can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from numpy.typing import NDArray

from .permute import Permuter


@dataclass(frozen=True, eq=False)
class PlacedArray:
    """An array and where it belongs: ``SET``, or ``FROM->TO`` where its values are indices."""

    values: NDArray
    place: str


@dataclass(frozen=True)
class FieldFormat:
    """A kind of file.

    Parameters
    ----------
    read : callable
        ``read(path, permuter) -> {name: PlacedArray}``: what of the file belongs to sets of the
        plan.
    write : callable
        ``write(source, target, arrays, permuter)``: a copy of the source with these arrays in it.
    """

    read: Callable[[Path, Permuter], dict[str, PlacedArray]]
    write: Callable[[Path, Path, Mapping[str, NDArray], Permuter], None]
