"""Our own blocks: bisection, then annealed moves that count the loads [S19] asks to reduce.

[S19] ends by asking for a partitioner that suits blocks of a few hundred elements. This one
minimises the number of distinct points over all blocks, the connectivity of the hypergraph whose
nets are the points.

1. Elements that do not follow a space-filling curve are sorted along one (`along_curve`). Those of
   a grid get places in steps along its lines (:mod:`grids.places`). Cuts of a sample tell whether
   the lines are worth following (:mod:`grids.start`).
2. Elements grow into clusters, and these into larger ones (:mod:`levels`). Grids keep elements.
3. Recursive bisection into blocks of equal size, 1 % below the cap (:mod:`bisect`), or bricks
   of a grid (:mod:`grids.bricks`).
4. Annealing on every level, from the largest clusters to elements (:mod:`search`), in groups of
   blocks, grouped another way each time, with flows that even them (:mod:`anneal.groups`).
5. Blocks are brought under the cap (:mod:`repair`), made connected (:mod:`mend.reconnect`), and
   both caps proved (:mod:`mend.caps`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from meshprep_runtime.types.maps import read_only

from ...kernels import Float64s, Int32s, Int64s
from ...kernels.arrays import stable_argsort
from ...kernels.parallel import at_once, take
from ...mesh.geometry import bounding_box
from ...mesh.incidence import Csr
from ...reorder.curve import curve_keys
from ..blocks_of import BlockProblem, Blocks, blocks_of
from ..connectivity import distinct_rows
from ..neighbourhood import facet_graph
from ..options import Option
from .anneal.corners import Corners, corners_of
from .bisect.geometry import Geometry, block_count
from .grids.bricks import brick_blocks
from .grids.places import GridPlaces, distinct_places, grid_places
from .grids.start import Start, choose_start
from .levels import stand_in_places
from .mend.apart import components, more_pieces
from .mend.caps import room_for_bytes, split_for_bytes
from .mend.reconnect import count_components, near_blocks, reconnect_groups
from .search import Search
from .tuning import PRESETS

OPTIONS: Mapping[str, Option] = {
    "effort": Option(
        float,
        PRESETS["default"].effort,
        "how long to search: fast, default, strong, or times the default",
        low=0.01,
        high=1000.0,
        names={name: tuning.effort for name, tuning in PRESETS.items()},
    ),
    "staged_bytes": Option(
        int, 0, "most bytes of points in a block; 0 for no cap", low=0, high=2**31 - 1
    ),
}


def blocks(problem: BlockProblem, options: Mapping[str, Any]) -> Blocks:
    """Blocks of at most S elements that load as few points as we can find.

    Blocks are numbered along the bisection tree, so that neighbouring numbers are neighbouring
    blocks; there are at most 1 % over ceil(n/S), or one if that is less, unless ``staged_bytes``
    asks for more. Without coordinates, graph distances stand in for them.
    ``options`` has every name of :data:`OPTIONS`. ``notes`` have the weighted loads before and
    after the moves, the start chosen, and how many blocks are fragmented.

    Raises MeshprepError when one element alone stages more than ``staged_bytes``. O(n (log n_blocks
    + sweeps * arity)); the same result for a seed whatever the number of threads.
    """
    if not problem.n or not problem.table.size:
        return blocks_of(np.arange(problem.n) // problem.block_size, problem.n)
    problem, order = along_curve(problem)
    table = read_only(distinct_rows(problem.table))
    graph, corners, geometry, grid = _neighbours_and_places(problem, table)
    cap, limit = problem.block_size, int(options["staged_bytes"])
    cap = room_for_bytes(geometry, cap, limit) if limit else cap
    n_blocks = block_count(problem.n, cap)
    if n_blocks <= 1:
        return _single(table, problem.n_points)
    places_tell = geometry.known and not grid.ragged
    start, search = at_once(
        lambda: choose_start(geometry, graph, cap) if places_tell else Start(),
        lambda: Search(
            geometry, graph, n_blocks, cap, problem.seed, options["effort"],
            problem.progress, corners=corners,
        ),
    )  # fmt: skip
    lines = _along_lines(search, start, grid.steps) if start.grid else []
    del grid
    found = list(_candidates(search, start, lines))
    search, block = min(found, key=lambda one: one[0].loads(one[1])) if found[1:] else found[0]
    geometry, n_blocks = search.geometry, search.n_blocks
    if limit:
        block, n_blocks = split_for_bytes(geometry, block, n_blocks, limit)
    if limit or found[1:]:
        search.fragmented = int((_pieces(search, block, n_blocks) > 1).sum())
    notes = {
        "loads_at_start": search.loads_at_start,
        "loads": geometry.loads(block, n_blocks),
        "rotation": start.rotation,
        "grid": start.grid,
        "sweeps": search.sweeps,
        "scattered": search.fragmented,
    }
    return back(blocks_of(block, n_blocks, notes, keep_numbers=True), order)


def _candidates(
    search: Search, start: Start, along_lines: Sequence[Int32s]
) -> Iterator[tuple[Search, Int32s]]:
    """Candidate blocks with their searches: multilevel, along lines of a grid, or plain cuts."""
    if start.grid:
        phase = search.tuning.along_lines[search.geometry.coordinates.shape[1] > 2]
        for k, lines in enumerate(along_lines):
            found = search if k + 1 == len(along_lines) else replace(search)
            yield found, _mended(found, found.improve(lines, phase))
            # a long search at the same temperature can dissolve blocks that follow the lines
            if search.tuning.also_short:
                short = replace(search, effort=1.0)
                yield short, _mended(short, short.improve(lines, phase))
    else:
        block = _mended(search, search.multilevel(start.rotation))
        yield search, block
        few = search.n_blocks <= search.tuning.few_blocks
        # where many elements are equal, a search can end with more than it began with
        if search.small and (few or search.loads(block) > search.loads_at_start):
            cut = search.geometry.cut(start.rotation, search.n_blocks)
            yield search, _mended(search, cut)
            search.loads_at_start = search.loads(cut)


def _along_lines(search: Search, start: Start, steps: Int32s | None) -> list[Int32s]:
    """The starts of a grid: bisection, bricks, or both if neither is far ahead."""
    g, n_blocks, far = search.geometry, search.n_blocks, search.tuning.far_ahead
    if steps is None:
        return [g.cut(start.rotation, n_blocks)]
    cut, bricks = at_once(
        lambda: g.cut(start.rotation, n_blocks),
        lambda: brick_blocks(g, steps, n_blocks, search.cap),
    )
    ahead = g.loads(cut, n_blocks) / g.loads(bricks, n_blocks)
    return [bricks] * (ahead > 1 - far) + [cut] * (ahead < 1 + far)


def _mended(search: Search, block: Int32s) -> Int32s:
    """Blocks within the cap and connected, annealed again if that cost much."""
    pieces = _pieces(search, block, search.n_blocks)
    fragments = int((pieces > 1).sum())
    within = np.bincount(block, minlength=search.n_blocks).max() <= search.cap
    if within and fragments * search.tuning.blocks_per_fragmented <= search.n_blocks:
        search.fragmented = fragments
        return block
    before, start = search.loads(block), search.loads_at_start
    loads = _mend(search, block, pieces, before)
    if loads > search.tuning.worth_healing * before:
        fragmented = search.fragmented
        healed = search.improve(block, search.tuning.mended)
        pieces = _pieces(search, healed, search.n_blocks)
        healed_loads = _mend(search, healed, pieces, search.loads(healed))
        search.loads_at_start = start
        if healed_loads < loads:
            return healed
        search.fragmented = fragmented
    return block


def _mend(search: Search, block: Int32s, pieces: Int64s, loads: int) -> int:
    """Bring blocks within the cap and, where that loads no more, connect them; the loads."""
    g, n_blocks, t = search.geometry, search.n_blocks, search.tuning
    few = n_blocks // t.blocks_per_fragmented
    if search.within_cap(block):
        pieces, loads = _pieces(search, block, n_blocks), search.loads(block)
    kept, fragmented = block.copy(), pieces > 1
    before, count = n_blocks, int(fragmented.sum())
    search.fragmented = count
    if count > few:
        # blocks of several components of the mesh cannot be in one piece
        graph = search.graph
        fragmented &= more_pieces(pieces, components(graph.offset, graph.index), block)
        count = int(fragmented.sum())
    if count <= few:
        return loads
    for k in range(t.reunions):
        if count <= few or count >= before:
            break
        near = near_blocks(search.graph, block, fragmented)
        groups = search.groups(block, k, near)
        reconnect_groups(g.table, g.weight, block, groups, search.cap, fragmented, near)
        before, count = count, int(fragmented.sum())
    mended = search.loads(block)
    if mended > t.worth_healing * loads:
        block[:] = kept
        return loads
    search.fragmented = int((_pieces(search, block, n_blocks) > 1).sum())
    return mended


def _pieces(search: Search, block: Int32s, n_blocks: int) -> Int64s:
    g = search.geometry
    return count_components(g.table, g.weight.size, block, n_blocks)


def _single(table: Int32s, n_points: int) -> Blocks:
    """The only block of all elements."""
    block = np.zeros(table.shape[0], np.int32)
    components = count_components(table, n_points, block, 1)
    return blocks_of(block, 1, {"scattered": int((components > 1).sum())})


def improved(problem: BlockProblem, graph: Csr, block: Int32s, n_blocks: int) -> Int32s:
    """The blocks of another partitioner, annealed for the loads, none over the cap. Linear."""
    places, table = problem.coordinates, read_only(distinct_rows(problem.table))
    if places is None:
        # block numbers as coordinates: neighbouring blocks often have near ones
        problem = replace(problem, coordinates=block[:, None].astype(np.float64))
    search = Search(
        _geometry(problem, table, graph), graph, n_blocks, problem.block_size, problem.seed, 1.0
    )
    return search.improve(block, search.tuning.from_others)


def _neighbours_and_places(
    problem: BlockProblem, table: Int32s
) -> tuple[Csr, Corners | None, Geometry, GridPlaces]:
    """Neighbours, corners and geometry of the elements, and the places of a grid in steps.

    With these as coordinates, a bent or stretched grid is cut like a straight one.
    """
    graph, geometry = at_once(
        lambda: facet_graph(table, problem.n_points),
        lambda: None if problem.coordinates is None else _geometry(problem, table, None),
    )
    corners = corners_of(table, problem.point_bytes, graph)
    grid = grid_places(corners.table if corners else table, graph, problem.n_points)
    apart = grid.steps is not None and distinct_places(grid.steps)
    if grid.steps is not None and (apart or geometry is None):
        straight = replace(problem, coordinates=grid.steps.astype(np.float64))
        return graph, corners, _geometry(straight, table, None), grid if apart else GridPlaces()
    if geometry is None:
        geometry = _geometry(problem, table, graph)
    return graph, corners, geometry, grid._replace(steps=None)


def _geometry(problem: BlockProblem, table: Int32s, graph: Csr | None) -> Geometry:
    weight = problem.point_bytes
    if weight is None:
        weight = np.ones(problem.n_points, dtype=np.int32)
    return geometry_of(table, weight, problem.coordinates, graph).placed()


def geometry_of(
    table: Int32s, weight: Int32s, places: Float64s | None, graph: Csr | None
) -> Geometry:
    """The geometry of elements, with graph distances as coordinates if there are none."""
    known, n_points = places is not None, weight.size
    if places is None:
        assert graph is not None, "places or neighbours are known"
        steps = grid_places(table, graph, n_points).steps
        known = steps is not None
        places = stand_in_places(graph) if steps is None else steps.astype(float)
    return Geometry.of(table, weight, places, known=known)


# Elements of the sample, and the share of them that lie before their predecessor on the curve from
# which on elements are sorted: half in an unrelated order, up to a quarter where elements follow
# their points along the curve.
SAMPLE, BEHIND = 250, 0.35
# Orders of small bandwidth follow long strips: clusters that grow in them are less round, and
# annealing that visits a border's elements in sequence shifts it. So elements are sorted along a
# space-filling curve for the search.
# Bits of the curve's key, sorted in three passes.
DIGITS = 33


def along_curve(problem: BlockProblem) -> tuple[BlockProblem, Int32s | None]:
    """Elements along Hilbert's curve with their old numbers; None if they follow it. O(n)."""
    where = problem.coordinates
    if where is None or not 0 < where.shape[1] <= 3 or not problem.n:
        return problem, None
    box = bounding_box(where)
    sample = curve_keys(where[:: -(-problem.n // SAMPLE)], box, DIGITS)
    if np.count_nonzero(sample[1:] < sample[:-1]) < BEHIND * sample.size:
        return problem, None
    order = stable_argsort(curve_keys(where, box, DIGITS)[:, None])
    table, where = take(problem.table, order), take(where, order)
    return replace(problem, table=table, coordinates=where), order


def back(blocks: Blocks, order: Int32s | None) -> Blocks:
    """The blocks in the order before the sort along the curve."""
    if order is None:
        return blocks
    block = np.empty(order.size, np.int32)
    block[order] = blocks.block_of_element
    return blocks_of(block, blocks.n_blocks, blocks.notes, keep_numbers=True)
