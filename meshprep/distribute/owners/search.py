"""Parts of given shares with short borders, by the search that makes blocks.

Parts are blocks of another size: clusters of elements grow level by level, the largest are
bisected, and all levels are annealed with the loads counted exactly
(:mod:`meshprep.partitioning.multilevel`). The search counts what ranks send: points that
several parts have, and facets between parts.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import Float64s, read_only, rows_of_entries

from ...kernels import Int32s, Int64s
from ...kernels.parallel import give_back
from ...mesh.incidence import Csr
from ...ordering import METHODS, LocalityProblem
from ...ordering.by_component import renumbered
from ...ordering.levels import components
from ...partitioning.blocks_of import check_coordinates
from ...partitioning.connectivity import distinct_rows
from ...partitioning.multilevel.initial.bisection import bisect
from ...partitioning.multilevel.initial.geometry import Geometry, Sizes, rotated
from ...partitioning.multilevel.initial.start import choose_start
from ...partitioning.multilevel.partitioner import geometry_of
from ...partitioning.multilevel.search import Search
from .sizes import part_sizes

# A part may hold this many times its share.
TOLERANCE = 1.03
# Sweeps, as a multiple of those for blocks.
EFFORT = 1.0
# Starts, of which the search goes on with the best.
STARTS = 4
# Elements of the blocks by which a grid is recognised.
GRID_BLOCK = 333
# Facets of an element that stand in for its points where these are not given.
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
    effort: float = EFFORT,
) -> Int32s:
    """Cut elements into parts that share as few points and facets as we can find.

    ``graph`` joins elements that share a facet; it is symmetric, without loops or repeats.
    ``table`` (n, arity) has the points of each element, -1 where there are fewer; without
    it facets stand in for points, and graph distances for ``coordinates``. Weights and
    shares are numbers from 0; a part may hold ``tolerance`` times its share, or one element
    more. Parts are empty where their share is 0, or where there are more parts than
    elements. Raises MeshprepError for arguments that do not fit. O(n (arity + log parts))
    beside sweeps over borders; the same for any number of threads.
    """
    # Making the graph and the table has left memory behind.
    give_back()
    n = graph.n_rows
    if table is not None and (
        table.ndim != 2 or len(table) != n or table.dtype != np.int32
    ):
        raise MeshprepError(
            f"points of elements have shape {table.shape} and dtype {table.dtype}, "
            f"must be int32 of shape ({n}, arity)"
        )
    if coordinates is not None:
        check_coordinates(coordinates, n)
    parts_and_sizes = part_sizes(
        n=n,
        parts=parts,
        weights=weights,
        shares=shares,
        tolerance=tolerance,
    )
    number_of_part = parts_and_sizes.part
    if number_of_part.size <= 1 or number_of_part.size == n:
        return np.resize(number_of_part, n)
    # Put the elements into an order of locality. The names are used again: of large meshes
    # the graph and the table take as much memory as the search, and the old ones are freed
    # unless the caller holds them.
    order = _locality(graph, coordinates)
    where = None if coordinates is None else coordinates[order]
    graph = _renumbered(graph, order)
    if table is None:
        table = _facets_as_points(graph)
    else:
        table = distinct_rows(read_only(table[order]))
    sizes = parts_and_sizes.sizes
    sizes = replace(sizes, weight=sizes.weight[order])
    # Every point costs the same.
    n_points = int(table.max(initial=-1)) + 1
    ones = np.ones(n_points, np.int32)
    geometry = geometry_of(table=read_only(table), weight=ones, places=where, graph=graph)
    search = Search(
        geometry=geometry,
        graph=graph,
        n_blocks=sizes.cap.size,
        cap=int(sizes.cap.max()),
        seed=seed,
        effort=effort,
        sizes=sizes,
        starts=STARTS,
        lean=True,
    )
    # the search holds what it needs
    del parts_and_sizes, table, where, ones, geometry
    block = within_caps(graph, _search_parts(search, sizes), sizes)
    # Back to the order and the part numbers of the caller.
    part = np.empty(n, np.int32)
    part[order] = number_of_part[block]
    return part


def _search_parts(search: Search, sizes: Sizes) -> Int32s:
    """Parts by the search of blocks.

    In space, parts of a grid keep its lines; in a plane they have fewer ghosts without.
    """
    size = min(GRID_BLOCK, max(1, search.graph.n_rows // search.n_blocks))
    start = choose_start(search.geometry, search.graph, size)
    if start.grid and search.geometry.coordinates.shape[1] > 2:
        block = _bisected_along_lines(search.geometry, start.rotation, sizes)
        return search.improve(block, search.tuning.along_lines[1])
    return search.multilevel(start.rotation)


def _bisected_along_lines(geometry: Geometry, rotation: float, sizes: Sizes) -> Int32s:
    """Parts by bisection along the directions of a grid."""
    g = geometry
    directions = rotated(geometry.coordinates.shape[1], rotation)
    return bisect(
        table=g.table,
        position=g.position,
        coordinates=g.coordinates,
        directions=directions,
        n_blocks=sizes.cap.size,
        thinnest=g.thinnest,
        weight=sizes.weight,
        share=sizes.share,
    )


def _locality(graph: Csr, coordinates: Float64s | None) -> Int32s:
    """An order in which neighbours stand near each other: clusters grow in runs of it.

    Along a Hilbert curve, or breadth-first. A narrower order of the graph gives no shorter
    borders, and takes longer (docs/research/graph-parts.md).
    """
    if coordinates is None or coordinates.shape[1] > 3:
        # As the kernels of orders have them, so that this one is compiled once.
        offset = np.require(graph.offset, np.int64, ["C", "W"]).view(np.uint64)
        index = np.require(graph.index, np.int32, ["C", "W"]).view(np.uint32)
        breadth_first, _, _ = components(offset, index)
        return breadth_first.view(np.int32)
    nothing = np.empty((0, 1), np.int32)
    return METHODS["hilbert"].function(LocalityProblem(nothing, graph.n_rows, coordinates))


def _renumbered(graph: Csr, order: Int32s) -> Csr:
    """The graph of elements in another order."""
    offset, index, _ = renumbered(
        offset=graph.offset.view(np.uint64),
        index=graph.index.view(np.uint32),
        order=order.view(np.uint32),
        far=np.empty(0, np.uint32),
    )
    return Csr(offset.view(np.int64), index.view(np.int32))


def _facets_as_points(graph: Csr) -> Int32s:
    """The facets of each element, numbered; the first :data:`FACETS` of its row."""
    degree = np.diff(graph.offset)
    n = degree.size
    row = rows_of_entries(graph.offset)
    place_in_row = np.arange(row.size) - graph.offset[row]
    # A facet is a pair of elements, whichever comes first.
    low = np.minimum(row, graph.index)
    high = np.maximum(row, graph.index)
    _, facet = np.unique(low.astype(np.int64) * n + high, return_inverse=True)
    # Write the facets of each element into its row of the table.
    has_room = place_in_row < FACETS
    n_columns = min(FACETS, int(degree.max(initial=0)))
    table = np.full((n, n_columns), -1, np.int32)
    table[row[has_room], place_in_row[has_room]] = facet[has_room]
    return table


def within_caps(graph: Csr, part: Int32s, sizes: Sizes) -> Int32s:
    """Parts with elements moved until none is over its cap; the search leaves few that are.

    An element goes to the part of most of its neighbours that has room, or else to any part
    that has room. Elements at the border go first. O(n), and the neighbours of all elements
    of the parts that are over their cap.
    """
    size = np.bincount(part, sizes.weight, sizes.cap.size).astype(np.int64)
    out = part.copy()
    for source in np.flatnonzero(size > sizes.cap):
        # Where no neighbour has room, elements go on to the target before.
        target = int(source)
        for element in _leaving(graph, out, int(source)):
            if size[source] <= sizes.cap[source]:
                break
            weight = sizes.weight[element]
            room = sizes.cap - size - weight
            target = _target_part(
                graph=graph,
                part=out,
                element=element,
                room=room,
                last=target,
            )
            size[source] -= weight
            size[target] += weight
            out[element] = target
    return out


def _leaving(graph: Csr, part: Int32s, source: int) -> NDArray[np.intp]:
    """Elements of a part, those with the most neighbours elsewhere first.

    Of equals the last comes first.
    """
    inside = np.flatnonzero(part == source)[::-1]
    outside = [
        np.count_nonzero(part[_neighbours_of_element(graph, i)] != source) for i in inside
    ]
    return inside[np.argsort(-np.array(outside), kind="stable")]


def _target_part(
    graph: Csr,
    part: Int32s,
    element: int,
    room: Int64s,
    last: int,
) -> int:
    """The part with room that most neighbours are in, else ``last``, else the emptiest."""
    beside = part[_neighbours_of_element(graph, element)]
    beside = beside[room[beside] >= 0]
    if beside.size:
        return int(np.bincount(beside).argmax())
    if room[last] >= 0:
        return last
    return int(room.argmax())


def _neighbours_of_element(graph: Csr, element: int) -> Int32s:
    begin, end = graph.offset[element : element + 2]
    return graph.index[begin:end]
