"""Where the elements of a set lie: needed by orderings and partitioners that use coordinates."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import SetMap, read_only

from ..kernels import Float64s, Int32s, kernel
from ..kernels.parallel import in_pieces
from .cells import shape_of
from .model import Mesh

# Sets whose coordinates a mesh holds.
PLACED = ("nodes", "vertices")
# The dat of a set whose elements' centroids are known without their corners.
CENTROID = "meshprep:centroid"


def bounding_box(places: Float64s) -> tuple[Float64s, Float64s]:
    """Least and largest coordinates: axis by axis, in a tenth of NumPy's time for short rows."""
    return np.array([*map(np.min, places.T)]), np.array([*map(np.max, places.T)])


def centroids(mesh: Mesh, name: str, axes: int | None = None) -> Float64s | None:
    """Mean of the corners of every element of a set, (n, d); None where the mesh cannot tell.

    Nodes give their coordinates, and so do the vertices of a graph; other sets go through
    ``SET->nodes``, or through their map to cells or vertices; unions put their parts one after the
    other. ``axes`` is the number of coordinates that matter, all unless given.
    """
    known = mesh.dat(CENTROID, name)
    if known is not None:
        return known.values
    if name in PLACED:
        own = mesh.dat("coordinates", name)
        return None if own is None else own.values[:, :axes]
    xyz = mesh.coordinates
    parts = mesh.sets[name].parts
    if parts:
        pieces = [centroids(mesh, p, axes) for p in parts]
        there = [p for p in pieces if p is not None]
        return np.concatenate(there) if len(there) == len(pieces) else None
    if xyz is not None and f"{name}->nodes" in mesh.maps:
        cell_type = mesh.sets[name].cell_type
        table = mesh.map(f"{name}->nodes").table
        corners = table.shape[1] if cell_type is None else shape_of(cell_type).n_corners
        return mean_of_rows(xyz, table[:, :corners], axes)
    through = _map_to_places(mesh, name)
    inner = None if through is None else centroids(mesh, through.to_set, axes)
    return None if through is None or inner is None else mean_of_rows(inner, through.table)


def map_of_means(mesh: Mesh, name: str) -> str | None:
    """The map whose rows reach what :func:`centroids` takes the mean of; None by other rules."""
    if mesh.dat(CENTROID, name) is not None or name in PLACED or mesh.sets[name].parts:
        return None
    corners = mesh.maps.get(f"{name}->nodes") if mesh.coordinates is not None else None
    if corners is not None:
        cell_type = mesh.sets[name].cell_type
        every = cell_type is None or shape_of(cell_type).n_corners == corners.arity
        return corners.name if every else None
    through = _map_to_places(mesh, name)
    return None if through is None else through.name


def _map_to_places(mesh: Mesh, name: str) -> SetMap | None:
    """The first map of a set, where that leads to cells or to what has coordinates."""
    for m in mesh.maps.values():
        if m.from_set == name:
            known = m.to_set in (*PLACED, "cells") and m.to_set in mesh.sets
            return m if known and m.to_set != name else None
    return None


@dataclass(frozen=True, eq=False)
class Means:
    """Centroids of elements as means of what these reach, found where they are asked for."""

    table: Int32s  # (n, arity)
    where: Float64s  # (m, d)

    def __getitem__(self, elements: NDArray[np.integer]) -> Float64s:
        return mean_of_rows(self.where, self.table[elements])


def axes_in_use(mesh: Mesh) -> int | None:
    """Without the last coordinate where that is 0 everywhere, as for a plane mesh; else None."""
    xyz = mesh.coordinates
    return None if xyz is None or xyz.shape[1] < 3 or xyz[:, 2].any() else 2


def mean_of_rows(xyz: Float64s, table: Int32s, axes: int | None = None) -> Float64s:
    """The mean of the places that each row names, along the first axes where not along all."""
    mean = np.empty((len(table), xyz[:, :axes].shape[1]))
    arrays = read_only(xyz.astype(np.float64, copy=False)), read_only(table)
    in_pieces(_fill_mean, len(table), *arrays, mean)
    return mean


@kernel
def _fill_mean(xyz: Float64s, table: Int32s, mean: Float64s, begin: int, end: int) -> None:
    for i in range(begin, end):
        for k in range(mean.shape[1]):
            total = xyz[table[i, 0], k]
            for j in range(1, table.shape[1]):
                total += xyz[table[i, j], k]
            mean[i, k] = total / table.shape[1]
