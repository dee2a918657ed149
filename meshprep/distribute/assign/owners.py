"""Cuts a set into parts of given shares with short borders, by the search that makes blocks.

Parts are blocks of another size: clusters of elements grow level by level, the largest are
bisected, and all levels are annealed with the loads counted exactly (:mod:`partition.blocks`). So
what is kept small is what is sent: points that several parts have, and facets between parts.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import Float64s, read_only, rows_of_entries

from ...io.original_ids import read_vector
from ...kernels import Int32s, Int64s
from ...kernels.parallel import give_back
from ...mesh.incidence import Csr
from ...partition.blocks.bisect.bisection import bisect
from ...partition.blocks.bisect.geometry import Geometry, Sizes, rotated
from ...partition.blocks.grids.start import choose_start
from ...partition.blocks.partitioner import geometry_of
from ...partition.blocks.search import Search
from ...partition.blocks_of import check_coordinates
from ...partition.connectivity import distinct_rows
from ...reorder import METHODS, LocalityProblem, gps
from ...reorder.by_component import renumbered
from ..subject import SplitSubject

# A part may hold so many times its share.
TOLERANCE = 1.03
# Sweeps, as a multiple of those of blocks, and starts of which the best is gone on with.
EFFORT, STARTS = 1.0, 4
# Blocks of so many elements tell whether the mesh is a grid.
TOLD_BY = 333
# Where the points of the elements are not known, each facet counts as one; so many an element.
FACETS = 12


def part_of_element(
    graph: Csr,
    parts: int,
    *,
    table: Int32s | None = None,
    coordinates: Float64s | None = None,
    weights: ArrayLike | None = None,
    shares: ArrayLike | None = None,
    tolerance: float = TOLERANCE,
    seed: int = 0,
) -> Int32s:
    """Cut elements into parts that share as few points and facets as we can find.

    ``graph`` (facets) is symmetric, without loops or repeats; ``table`` has points, -1 for fewer;
    graph distances stand in for ``coordinates``. Weights and shares are from 0; a part may hold
    ``tolerance`` times its share, or one element more. Parts are empty where their share is 0, or
    where there are more than elements. Raises MeshprepError for what does not fit. O(n (arity + log
    parts)) beside sweeps over borders; any number of threads gives the same.
    """
    # of what made the graph and the table
    give_back()
    n = graph.n_rows
    if table is not None and (table.ndim != 2 or len(table) != n or table.dtype != np.int32):
        raise MeshprepError(
            f"points of elements have shape {table.shape} and dtype {table.dtype}, must be int32 "
            f"of shape ({n}, arity)"
        )
    if coordinates is not None:
        check_coordinates(coordinates, n)
    wanted = part_sizes(n, parts, weights, shares, tolerance)
    if wanted.part.size <= 1 or wanted.part.size == n:
        return np.resize(wanted.part, n)
    order = _locality(graph, coordinates)
    where = None if coordinates is None else coordinates[order]
    # of large meshes each of these takes as much memory as the search, if the caller keeps none
    graph = _renumbered(graph, order)
    table = _facets_as_points(graph) if table is None else distinct_rows(read_only(table[order]))
    number_of_part, sizes = wanted.part, replace(wanted.sizes, weight=wanted.sizes.weight[order])
    ones = np.ones(int(table.max(initial=-1)) + 1, np.int32)
    geometry = geometry_of(read_only(table), ones, where, graph)
    search = Search(
        geometry, graph, sizes.cap.size, int(sizes.cap.max()), seed, EFFORT,
        sizes=sizes, starts=STARTS, lean=True,
    )  # fmt: skip
    del wanted, table, where, ones, geometry
    block = within_caps(graph, _search_parts(search, sizes), sizes)
    part = np.empty(n, np.int32)
    part[order] = number_of_part[block]
    return part


def _search_parts(search: Search, sizes: Sizes) -> Int32s:
    """Parts by the search of blocks; hexahedra keep grid lines, quads have fewer copies without."""
    size = min(TOLD_BY, max(1, search.graph.n_rows // search.n_blocks))
    start = choose_start(search.geometry, search.graph, size)
    if start.grid and search.geometry.coordinates.shape[1] > 2:
        block = _bisected(search.geometry, start.rotation, sizes)
        return search.improve(block, search.tuning.along_lines[1])
    return search.multilevel(start.rotation)


def _bisected(geometry: Geometry, rotation: float, sizes: Sizes) -> Int32s:
    g, directions = geometry, rotated(geometry.coordinates.shape[1], rotation)
    return bisect(
        g.table, g.position, g.coordinates, directions, sizes.cap.size, g.thinnest, sizes.weight,
        sizes.share,
    )  # fmt: skip


def _locality(graph: Csr, coordinates: Float64s | None) -> Int32s:
    """An order in which neighbours stand near each other: clusters grow in runs of it."""
    if coordinates is None or coordinates.shape[1] > 3:
        return np.asarray(gps(graph), np.int32)
    nothing = np.empty((0, 1), np.int32)
    return METHODS["hilbert"].function(LocalityProblem(nothing, graph.n_rows, coordinates))


def _renumbered(graph: Csr, order: Int32s) -> Csr:
    """The graph of elements in another order."""
    offset, index, _ = renumbered(
        graph.offset.view(np.uint64), graph.index.view(np.uint32), order.view(np.uint32),
        np.empty(0, np.uint32),
    )  # fmt: skip
    return Csr(offset.view(np.int64), index.view(np.int32))


def _facets_as_points(graph: Csr) -> Int32s:
    """The facets of each element, numbered; the first :data:`FACETS` of its row."""
    degree = np.diff(graph.offset)
    row = rows_of_entries(graph.offset)
    place = np.arange(row.size) - graph.offset[row]
    low, high = np.minimum(row, graph.index), np.maximum(row, graph.index)
    _, facet = np.unique(low.astype(np.int64) * degree.size + high, return_inverse=True)
    kept = place < FACETS
    table = np.full((degree.size, min(FACETS, int(degree.max(initial=0)))), -1, np.int32)
    table[row[kept], place[kept]] = facet[kept]
    return table


def within_caps(graph: Csr, part: Int32s, sizes: Sizes) -> Int32s:
    """Parts with elements moved until none is over its cap; the search leaves few that are.

    An element goes to the part of most of its neighbours that has room, and where none of these
    has, to one that has. Elements at the border go first. O(n), and the neighbours of all elements
    of the parts that are over their cap.
    """
    size = np.bincount(part, sizes.weight, sizes.cap.size).astype(np.int64)
    out = part.copy()
    for source in np.flatnonzero(size > sizes.cap):
        last = int(source)
        for element in _leaving(graph, out, int(source)):
            if size[source] <= sizes.cap[source]:
                break
            room = sizes.cap - size - sizes.weight[element]
            last = _target_part(graph, out, element, room, last)
            size[source] -= sizes.weight[element]
            size[last] += sizes.weight[element]
            out[element] = last
    return out


def _leaving(graph: Csr, part: Int32s, source: int) -> NDArray[np.intp]:
    """Elements of a part by falling number of neighbours elsewhere, of equals the last first."""
    inside = np.flatnonzero(part == source)[::-1]
    outside = [np.count_nonzero(part[_neighbours(graph, i)] != source) for i in inside]
    return inside[np.argsort(-np.array(outside), kind="stable")]


def _target_part(graph: Csr, part: Int32s, element: int, room: Int64s, last: int) -> int:
    """The part with room that most neighbours are in, else ``last``, else the emptiest."""
    beside = part[_neighbours(graph, element)]
    beside = beside[room[beside] >= 0]
    if beside.size:
        return int(np.bincount(beside).argmax())
    return last if room[last] >= 0 else int(room.argmax())


def _neighbours(graph: Csr, element: int) -> Int32s:
    return graph.index[graph.offset[element] : graph.offset[element + 1]]


# Weights of all elements, and shares of all parts, add up to about this.
WHOLE = 1 << 30
# What a part should hold at least, of its share. Only the fullest part keeps the others waiting.
LEAST = 0.9


class PartSizes(NamedTuple):
    """The parts that get elements, ascending, and the sizes of these."""

    part: Int32s
    sizes: Sizes


def part_sizes(
    n: int, parts: int, weights: ArrayLike | None, shares: ArrayLike | None, tolerance: float
) -> PartSizes:
    """Caps, floors and shares of the parts.

    Weights, shares and tolerance are those of :func:`~.cut.part_of_element`; without weights
    elements weigh 1, without shares parts are equal. A part should not hold less than :data:`LEAST`
    times its share. Parts whose share is 0 are left out. So are those with the smallest shares (of
    equals, the last ones) where there are more parts than elements. Raises MeshprepError for
    numbers of parts, weights, shares and tolerances that do not fit.
    """
    if parts < 1:
        raise MeshprepError(f"there are {parts} parts to cut into: ask for at least 1")
    if not 1.0 <= tolerance < math.inf:
        raise MeshprepError(f"tolerance is {tolerance}, must be a number from 1")
    share = _checked_weights(shares, parts, "shares", "part")
    if not share.any():
        raise MeshprepError("all shares are 0: one part at least must hold something")
    largest = np.argsort(-share, kind="stable")[:n]
    part = np.sort(largest[share[largest] > 0])
    share = share[part] / share[part].sum()
    weight = _integer_weights(_checked_weights(weights, n, "weights", "element"))
    target = share * weight.sum(dtype=np.int64)
    heaviest = int(weight.max(initial=1))
    cap = np.maximum(tolerance * target + 1e-6, np.ceil(target - 1e-6) + heaviest - 1)
    bounds = (a.astype(np.int64) for a in (cap, LEAST * target, _scaled(share)))
    sizes = Sizes(weight, *bounds)
    return PartSizes(part.astype(np.int32), sizes)


def _checked_weights(values: ArrayLike | None, count: int, name: str, one: str) -> Float64s:
    found = np.ones(count) if values is None else np.asarray(values, np.float64)
    if found.shape != (count,):
        raise MeshprepError(f"{name} have shape {found.shape}: give one for each {one}, {count}")
    wrong = ~(np.isfinite(found) & (found >= 0))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise MeshprepError(f"{name}: {one} {at} has {found[at]}, must be a number from 0")
    return found


def _integer_weights(weight: Float64s) -> Int32s:
    """Weights as int32: unchanged if they are whole and small, else scaled."""
    small = weight.sum() < WHOLE and bool((weight == np.rint(weight)).all())
    found = np.maximum(1, weight) if small else _scaled(weight)
    return np.ascontiguousarray(found, np.int32)


def _scaled(values: Float64s) -> Float64s:
    total = values.sum()
    return np.maximum(1, np.rint(values * (WHOLE / total if total > 0 else 0.0)))


# How a cut begins that names a file.
FILE = "file:"


def owners_from_file(subject: SplitSubject, parts: int, path: Path) -> tuple[str, Int32s]:
    """A set, and the part of each of its elements.

    The set is the leading one where the file has a number for each of its elements, else the only
    one that has as many. Parts may be empty, but for the last: then the file is for fewer. Raises
    MeshprepError for files that cannot be read or do not fit. ``path`` is as
    :func:`meshprep.io.original_ids.read_vector` takes it, in the order of the mesh that was read.
    """
    found = read_vector(path)
    able = [name for name, size in subject.sizes.items() if found.shape == (size,)]
    leading = subject.leading_set
    if leading not in able and len(able) != 1:
        others = ", ".join(f"{n} {size}" for n, size in subject.sizes.items() if n != leading)
        raise MeshprepError(
            f"{path} has shape {found.shape}, but '{leading}' has {subject.sizes[leading]} "
            f"elements: give one part for each, or for each of another set ({others})"
        )
    outside = np.flatnonzero((found < 0) | (found >= parts))
    if outside.size:
        at = outside[0]
        raise MeshprepError(f"{path}: element {at} is in part {found[at]}, outside 0..{parts - 1}")
    last = int(found.max(initial=0))
    if found.size and last < parts - 1:
        raise MeshprepError(
            f"{path}: owners are parts 0..{last}, but {parts} parts are asked for, and the last "
            f"would be empty: ask for {last + 1}, or give the file that was made for {parts}"
        )
    name = leading if leading in able else able[0]
    owner, original = found.astype(np.int32), subject.original.get(name)
    return name, owner if original is None else owner[original]
