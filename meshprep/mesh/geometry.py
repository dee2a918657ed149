"""Centroids of elements, for orders and partitioners that use coordinates."""

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
    """Least and largest coordinates of places, (d,) each.

    Axis by axis, which takes a tenth of the time that NumPy takes row by row.
    """
    least = [axis.min() for axis in places.T]
    largest = [axis.max() for axis in places.T]
    return np.array(least), np.array(largest)


def centroids(mesh: Mesh, name: str, axes: int | None = None) -> Float64s | None:
    """Mean of the corners of every element of a set, (n, d).

    Those of nodes and of a graph's vertices are their coordinates. Other sets go through
    ``SET->nodes``, or through their map to cells or vertices; unions put their parts one
    after the other. ``axes`` is the number of coordinates to give, all of them unless
    given. None where the mesh has no coordinates for the set.
    """
    stored = mesh.dat(CENTROID, name)
    if stored is not None:
        return stored.values
    if name in PLACED:
        coordinates = mesh.dat("coordinates", name)
        if coordinates is None:
            return None
        return coordinates.values[:, :axes]

    # A union: its parts one after the other, where all of them have centroids.
    parts = mesh.sets[name].parts
    if parts:
        pieces = []
        for part in parts:
            piece = centroids(mesh, part, axes)
            if piece is None:
                return None
            pieces.append(piece)
        return np.concatenate(pieces)

    # Cells and facets: the mean of their corners.
    xyz = mesh.coordinates
    if xyz is not None and f"{name}->nodes" in mesh.maps:
        cell_type = mesh.sets[name].cell_type
        table = mesh.map(f"{name}->nodes").table
        if cell_type is None:
            corners = table.shape[1]
        else:
            corners = shape_of(cell_type).n_corners
        return mean_of_rows(xyz, table[:, :corners], axes)

    # Other sets: the mean of the elements that they reach.
    through = _map_to_places(mesh, name)
    if through is None:
        return None
    reached = centroids(mesh, through.to_set, axes)
    if reached is None:
        return None
    return mean_of_rows(reached, through.table)


def map_of_means(mesh: Mesh, name: str) -> str | None:
    """The map along which :func:`centroids` takes means of whole rows.

    None where it finds centroids in another way.
    """
    # Places of the set itself, or of its parts, need no mean.
    if mesh.dat(CENTROID, name) is not None or name in PLACED or mesh.sets[name].parts:
        return None
    # The mean of the corners is the centroid, where the mesh has coordinates.
    if mesh.coordinates is not None:
        corners = mesh.maps.get(f"{name}->nodes")
    else:
        corners = None
    if corners is not None:
        # Cells of higher order have nodes that are no corners: no mean of whole rows.
        cell_type = mesh.sets[name].cell_type
        if cell_type is None or shape_of(cell_type).n_corners == corners.arity:
            return corners.name
        return None
    # Otherwise take a map to a set that has places.
    through = _map_to_places(mesh, name)
    if through is None:
        return None
    return through.name


def _map_to_places(mesh: Mesh, name: str) -> SetMap | None:
    """The first map of a set, where that leads to cells, nodes or vertices."""
    for m in mesh.maps.values():
        if m.from_set == name:
            has_places = m.to_set in (*PLACED, "cells") and m.to_set in mesh.sets
            if has_places and m.to_set != name:
                return m
            return None
    return None


@dataclass(frozen=True, eq=False)
class Means:
    """Centroids as means of places, computed for the elements that are indexed."""

    table: Int32s  # (n, arity)
    where: Float64s  # (m, d)

    def __getitem__(self, elements: NDArray[np.integer]) -> Float64s:
        return mean_of_rows(self.where, self.table[elements])


def axes_in_use(mesh: Mesh) -> int | None:
    """2 for a mesh in the plane, whose last coordinate is 0 everywhere; else None."""
    xyz = mesh.coordinates
    if xyz is None or xyz.shape[1] < 3 or xyz[:, 2].any():
        return None
    return 2


def mean_of_rows(xyz: Float64s, table: Int32s, axes: int | None = None) -> Float64s:
    """The mean of the places that each row names, along the first ``axes`` or all.

    O(n x arity), in parallel.
    """
    n_axes = xyz[:, :axes].shape[1]
    mean = np.empty((len(table), n_axes))
    places = read_only(xyz.astype(np.float64, copy=False))
    in_pieces(_fill_mean, len(table), places, read_only(table), mean)
    return mean


@kernel
def _fill_mean(
    xyz: Float64s,
    table: Int32s,
    mean: Float64s,
    begin: int,
    end: int,
) -> None:
    """The means of rows ``begin`` to ``end - 1``, summed from the first column on.

    The order of the sum is fixed, so that centroids are the same on any processor.
    """
    for i in range(begin, end):
        for k in range(mean.shape[1]):
            total = xyz[table[i, 0], k]
            for j in range(1, table.shape[1]):
                total += xyz[table[i, j], k]
            mean[i, k] = total / table.shape[1]
