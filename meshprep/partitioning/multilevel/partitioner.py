"""Our own blocks: a multilevel search whose moves count the loads of [S19].

[S19] ends by asking for a partitioner that suits blocks of a few hundred elements. This one
minimises the number of distinct points over all blocks, the connectivity of the hypergraph
whose nets are the points.

1. Elements that do not follow a space-filling curve are sorted along one (`along_curve`).
   Those of a grid get places in steps along its lines (:mod:`initial.grid_lines`). Cuts of
   a sample tell whether the lines are worth following (:mod:`initial.start`).
2. Coarsening: elements grow into clusters, and these into larger ones
   (:mod:`coarsening.levels`). Grids keep elements.
3. Initial blocks: recursive bisection into blocks of equal size, 1 % below the cap
   (:mod:`initial.bisection`), or bricks of a grid (:mod:`initial.bricks`).
4. Refinement: annealing on every level, from the largest clusters to elements
   (:mod:`search`, :mod:`refinement.annealing`), in groups of blocks that are formed anew
   each time (:mod:`refinement.groups`).
5. Balancing: blocks are brought under the cap (:mod:`partition.repair`), made connected
   (:mod:`balancing.reconnect`), filled up to a cap of bytes (:mod:`balancing.fill`), and
   both caps are proved (:mod:`balancing.caps`).
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
from ...ordering.curve import curve_keys
from ..blocks_of import BlockProblem, Blocks, blocks_of, staged_bytes
from ..connectivity import distinct_rows
from ..neighbourhood import facet_graph
from ..options import Option
from .balancing.caps import MAY_SPLIT, room_for_bytes, split_for_bytes
from .balancing.components import components, more_pieces
from .balancing.fill import fill_blocks
from .balancing.reconnect import count_components, near_blocks, reconnect_groups
from .coarsening.levels import stand_in_places
from .initial.bricks import brick_blocks
from .initial.geometry import Geometry, block_count
from .initial.grid_lines import GridPlaces, distinct_places, grid_places
from .initial.start import Start, choose_start
from .refinement.corners import Corners, corners_of
from .search import Search
from .tuning import PRESETS

OPTIONS: Mapping[str, Option] = {
    "effort": Option(
        type=float,
        default=PRESETS["default"].effort,
        help="how long to search: fast, default, strong, or times the default",
        low=0.01,
        high=1000.0,
        names={name: tuning.effort for name, tuning in PRESETS.items()},
    ),
    "staged_bytes": Option(
        type=int,
        default=0,
        help="most bytes of points in a block; 0 for no cap",
        low=0,
        high=2**31 - 1,
    ),
    "fill": Option(
        type=bool,
        default=False,
        help="move elements until blocks use all of staged_bytes: fewer blocks, more time",
    ),
}

# Blocks of the piece on which block sizes are tried for a cap of bytes.
TRIAL_BLOCKS = 500
# Block sizes that are tried for a cap of bytes, at most.
CAP_TRIALS = 5
# Elements of a block grow with this power of its points, between a surface and a solid.
POINTS_TO_ELEMENTS = 1.2
# Share of filled blocks of the piece that may still stage too much: those at its rim have
# fewer blocks beside them to give elements to.
MAY_SPLIT_FILLED = 0.02
# Share of a cap of bytes that filled blocks use on average, as a first guess.
FULL = 0.98


def blocks(problem: BlockProblem, options: Mapping[str, Any]) -> Blocks:
    """Blocks of at most S elements that load as few points as we can find.

    Blocks are numbered along the bisection tree, so that neighbouring numbers are
    neighbouring blocks. There are at most 1 % more than ceil(n/S) of them, or one more if
    1 % is less than one, unless ``staged_bytes`` needs more. Without coordinates, graph
    distances stand in for them. ``options`` has every name of :data:`OPTIONS`. ``notes``
    have the weighted loads before and after the moves, the start chosen, and the number of
    fragmented blocks.

    Raises MeshprepError when one element alone stages more than ``staged_bytes``. O(n (log
    n_blocks + sweeps * arity)); the same result for a seed whatever the number of threads.
    """
    # Without points nothing is loaded: cut the sequence as it stands.
    if not problem.n or not problem.table.size:
        return blocks_of(np.arange(problem.n) // problem.block_size, problem.n)
    # Sort the elements along a curve; find their neighbours, coordinates and grid lines.
    problem, order = along_curve(problem)
    table = read_only(distinct_rows(problem.table))
    graph, corners, geometry, grid = _neighbours_and_places(problem, table)
    # Count the blocks.
    cap = problem.block_size
    limit = int(options["staged_bytes"])
    if limit:
        cap = _cap_for_bytes(problem, geometry, options)
    n_blocks = block_count(problem.n, cap)
    if n_blocks <= 1:
        return _single(table, problem.n_points)
    # Choose the start, and prepare the search meanwhile.
    may_be_grid = geometry.known and not grid.ragged
    start, search = at_once(
        lambda: choose_start(geometry, graph, cap) if may_be_grid else Start(),
        lambda: Search(
            geometry=geometry,
            graph=graph,
            n_blocks=n_blocks,
            cap=cap,
            seed=problem.seed,
            effort=options["effort"],
            progress=problem.progress,
            corners=corners,
        ),
    )
    if start.grid:
        lines = _blocks_along_lines(search, start, grid.steps)
    else:
        lines = []
    del grid
    # Search, and take the candidate that loads least.
    candidates = list(_candidates(search, start, lines))
    if len(candidates) > 1:
        search, block = min(candidates, key=lambda pair: pair[0].loads(pair[1]))
    else:
        search, block = candidates[0]
    # Fill blocks up to the cap of bytes, where that is asked for.
    geometry = search.geometry
    n_blocks = search.n_blocks
    if limit and options["fill"]:
        block = fill_blocks(
            geometry=geometry,
            graph=graph,
            block=block,
            n_blocks=n_blocks,
            cap=problem.block_size,
            limit=limit,
            effort=options["effort"],
            seed=problem.seed,
        )
    # Split what still stages too much, and count again what the split tore.
    if limit:
        block, n_blocks = split_for_bytes(
            geometry=geometry, block=block, n_blocks=n_blocks, limit=limit
        )
    if limit or len(candidates) > 1:
        search.fragmented = int(
            (_count_pieces_of_blocks(search, block, n_blocks) > 1).sum()
        )
    # Tell what the search did, and give the blocks in the order of the caller.
    notes = {
        "loads_at_start": search.loads_at_start,
        "loads": geometry.loads(block, n_blocks),
        "rotation": start.rotation,
        "grid": start.grid,
        "sweeps": search.sweeps,
        "scattered": search.fragmented,
    }
    result = blocks_of(
        block_of_element=block, n_blocks=n_blocks, notes=notes, keep_numbers=True
    )
    return back(result, order)


def _cap_for_bytes(
    problem: BlockProblem, geometry: Geometry, options: Mapping[str, Any]
) -> int:
    """The largest block size at which nearly all blocks stage as little as they may.

    The search saves points that the first cut of :func:`~.balancing.caps.room_for_bytes`
    has, 3 % in large blocks and a quarter in meshlets: it is tried on a piece of the mesh.
    """
    limit = int(options["staged_bytes"])
    fits = room_for_bytes(geometry, problem.block_size, limit)
    too_large = problem.block_size + 1
    may_split = MAY_SPLIT_FILLED if options["fill"] else MAY_SPLIT
    # Bisect between a size that fits and one that does not, with guesses.
    trial = fits
    for _ in range(CAP_TRIALS):
        # Block a piece of the mesh as the whole will be.
        staged = _bytes_in_trial(problem, trial, options)
        needed = float(np.quantile(staged, 1 - may_split))
        if needed <= limit:
            fits = max(fits, trial)
        else:
            too_large = min(too_large, trial)
        # Filled blocks stage nearly the same: their mean tells what room is left.
        if options["fill"]:
            needed = float(staged.mean()) / FULL
        # Points of a block grow more slowly than its elements.
        guess = int(trial * (limit / needed) ** POINTS_TO_ELEMENTS)
        trial = min(max(guess, fits + 1), too_large - 1)
        if trial <= fits:
            break
    return fits


def _bytes_in_trial(problem: BlockProblem, size: int, options: Mapping[str, Any]) -> Int64s:
    """The bytes that blocks of at most ``size`` elements stage, on a piece of the mesh."""
    limit = int(options["staged_bytes"])
    piece = _middle_piece(problem, size)
    trial_blocks = blocks(piece, {**options, "staged_bytes": 0})
    block = trial_blocks.block_of_element
    table = distinct_rows(piece.table)
    weight = _point_weights(piece)
    if options["fill"]:
        graph = facet_graph(table, piece.n_points)
        geometry = geometry_of(
            table=table, weight=weight, places=piece.coordinates, graph=graph
        )
        block = fill_blocks(
            geometry=geometry,
            graph=graph,
            block=block,
            n_blocks=trial_blocks.n_blocks,
            cap=problem.block_size,
            limit=limit,
            effort=options["effort"],
            seed=problem.seed,
        )
    return staged_bytes(
        table=table, weight=weight, block=block, n_blocks=trial_blocks.n_blocks
    )


def _middle_piece(problem: BlockProblem, block_size: int) -> BlockProblem:
    """The elements in the middle of the order, as many as some blocks hold.

    No number of a point changes. O(elements of the piece + points).
    """
    # The middle of the curve is a compact piece of the mesh, far from its ends.
    count = min(problem.n, TRIAL_BLOCKS * block_size)
    begin = (problem.n - count) // 2
    middle = slice(begin, begin + count)
    where = problem.coordinates
    return replace(
        problem,
        table=problem.table[middle],
        coordinates=None if where is None else where[middle],
        block_size=block_size,
        progress=lambda share: None,
    )


def _point_weights(problem: BlockProblem) -> Int32s:
    """What staging each point costs."""
    if problem.point_bytes is None:
        return np.ones(problem.n_points, dtype=np.int32)
    return problem.point_bytes


def _candidates(
    search: Search, start: Start, along_lines: Sequence[Int32s]
) -> Iterator[tuple[Search, Int32s]]:
    """Candidate blocks, each with its search: along the lines of a grid, or multilevel."""
    if start.grid:
        phase = search.tuning.along_lines[search.geometry.coordinates.shape[1] > 2]
        for k, lines in enumerate(along_lines):
            if k + 1 == len(along_lines):
                own_search = search
            else:
                own_search = replace(search)
            yield own_search, _balanced(own_search, own_search.improve(lines, phase))
            # A long search at the same temperature can dissolve blocks along lines.
            if search.tuning.also_short:
                short = replace(search, effort=1.0)
                yield short, _balanced(short, short.improve(lines, phase))
    else:
        block = _balanced(search, search.multilevel(start.rotation))
        yield search, block
        few = search.n_blocks <= search.tuning.few_blocks
        # Where many elements are equal, a search can end with more loads than at its start.
        if search.small and (few or search.loads(block) > search.loads_at_start):
            cut = search.geometry.cut(start.rotation, search.n_blocks)
            yield search, _balanced(search, cut)
            search.loads_at_start = search.loads(cut)


def _blocks_along_lines(search: Search, start: Start, steps: Int32s | None) -> list[Int32s]:
    """The starts of a grid: bisection, bricks, or both if neither is far ahead."""
    g = search.geometry
    n_blocks = search.n_blocks
    margin = search.tuning.far_ahead
    if steps is None:
        return [g.cut(start.rotation, n_blocks)]
    # Start from both where neither loads far fewer points than the other.
    cut, bricks = at_once(
        lambda: g.cut(start.rotation, n_blocks),
        lambda: brick_blocks(geometry=g, place=steps, n_blocks=n_blocks, cap=search.cap),
    )
    ratio = g.loads(cut, n_blocks) / g.loads(bricks, n_blocks)
    starts = []
    if ratio > 1 - margin:
        starts.append(bricks)
    if ratio < 1 + margin:
        starts.append(cut)
    return starts


def _balanced(search: Search, block: Int32s) -> Int32s:
    """Blocks within the cap and connected, annealed again if that cost much."""
    pieces = _count_pieces_of_blocks(search, block, search.n_blocks)
    fragments = int((pieces > 1).sum())
    within = np.bincount(block, minlength=search.n_blocks).max() <= search.cap
    if within and fragments * search.tuning.blocks_per_fragmented <= search.n_blocks:
        search.fragmented = fragments
        return block
    # Balance them.
    before = search.loads(block)
    start = search.loads_at_start
    loads = _balance(search=search, block=block, pieces=pieces, loads=before)
    # Anneal again, and balance the result, if balancing cost many loads.
    if loads > search.tuning.worth_healing * before:
        fragmented = search.fragmented
        healed = search.improve(block, search.tuning.mended)
        pieces = _count_pieces_of_blocks(search, healed, search.n_blocks)
        healed_loads = _balance(
            search=search, block=healed, pieces=pieces, loads=search.loads(healed)
        )
        search.loads_at_start = start
        if healed_loads < loads:
            return healed
        search.fragmented = fragmented
    return block


def _balance(search: Search, block: Int32s, pieces: Int64s, loads: int) -> int:
    """Bring blocks within the cap, and connect them if that hardly costs loads.

    ``pieces`` and ``loads`` are those of ``block``, which is changed in place. Returns the
    loads afterwards.
    """
    g = search.geometry
    n_blocks = search.n_blocks
    t = search.tuning
    few = n_blocks // t.blocks_per_fragmented
    if search.within_cap(block):
        pieces = _count_pieces_of_blocks(search, block, n_blocks)
        loads = search.loads(block)
    unconnected = block.copy()
    fragmented = pieces > 1
    before = n_blocks
    count = int(fragmented.sum())
    search.fragmented = count
    if count > few:
        # blocks of several components of the mesh cannot be in one piece
        graph = search.graph
        fragmented &= more_pieces(pieces, components(graph.offset, graph.index), block)
        count = int(fragmented.sum())
    if count <= few:
        return loads
    # Reconnect in several rounds, as long as that helps.
    for k in range(t.reunions):
        if count <= few or count >= before:
            break
        near = near_blocks(search.graph, block, fragmented)
        groups = search.groups(block, k, near)
        reconnect_groups(
            table=g.table,
            weight=g.weight,
            block=block,
            group_of_block=groups,
            cap=search.cap,
            fragmented=fragmented,
            near=near,
        )
        before = count
        count = int(fragmented.sum())
    # Keep the blocks in pieces where connecting them costs too many loads.
    connected_loads = search.loads(block)
    if connected_loads > t.worth_healing * loads:
        block[:] = unconnected
        return loads
    search.fragmented = int((_count_pieces_of_blocks(search, block, n_blocks) > 1).sum())
    return connected_loads


def _count_pieces_of_blocks(search: Search, block: Int32s, n_blocks: int) -> Int64s:
    """The number of pieces of each block."""
    g = search.geometry
    return count_components(
        table=g.table, n_points=g.weight.size, block=block, n_blocks=n_blocks
    )


def _single(table: Int32s, n_points: int) -> Blocks:
    """The only block of all elements."""
    block = np.zeros(table.shape[0], np.int32)
    components = count_components(table=table, n_points=n_points, block=block, n_blocks=1)
    n_scattered = int((components > 1).sum())
    return blocks_of(block, 1, {"scattered": n_scattered})


def improved(problem: BlockProblem, graph: Csr, block: Int32s, n_blocks: int) -> Int32s:
    """Anneal the blocks of another partitioner; none is over the cap afterwards. Linear."""
    places = problem.coordinates
    table = read_only(distinct_rows(problem.table))
    if places is None:
        # block numbers stand in for coordinates: those of neighbouring blocks are near
        problem = replace(problem, coordinates=block[:, None].astype(np.float64))
    search = Search(
        geometry=_geometry(problem, table, graph),
        graph=graph,
        n_blocks=n_blocks,
        cap=problem.block_size,
        seed=problem.seed,
        effort=1.0,
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
    # Places in steps along the lines of a grid, where these tell elements apart.
    corners = corners_of(table, problem.point_bytes, graph)
    grid = grid_places(corners.table if corners else table, graph, problem.n_points)
    distinct = grid.steps is not None and distinct_places(grid.steps)
    if grid.steps is not None and (distinct or geometry is None):
        straight = replace(problem, coordinates=grid.steps.astype(np.float64))
        geometry = _geometry(straight, table, None)
        return graph, corners, geometry, grid if distinct else GridPlaces()
    if geometry is None:
        geometry = _geometry(problem, table, graph)
    return graph, corners, geometry, grid._replace(steps=None)


def _geometry(problem: BlockProblem, table: Int32s, graph: Csr | None) -> Geometry:
    """The geometry of a problem, with the positions of its points."""
    return geometry_of(
        table=table, weight=_point_weights(problem), places=problem.coordinates, graph=graph
    ).placed()


def geometry_of(
    table: Int32s, weight: Int32s, places: Float64s | None, graph: Csr | None
) -> Geometry:
    """The geometry of elements, with graph distances as coordinates if there are none."""
    if places is not None:
        return Geometry.of(table=table, weight=weight, coordinates=places, known=True)
    assert graph is not None, "places or neighbours are known"
    # Without coordinates take steps along grid lines, else graph distances.
    steps = grid_places(table, graph, weight.size).steps
    if steps is None:
        places = stand_in_places(graph)
        return Geometry.of(table=table, weight=weight, coordinates=places, known=False)
    places = steps.astype(float)
    return Geometry.of(table=table, weight=weight, coordinates=places, known=True)


# Elements are sorted along a space-filling curve for the search. Orders of small bandwidth
# follow long strips: clusters that grow in them are less round, and annealing that visits
# the elements of a border in sequence shifts the border.
# Elements of the sample that decides whether they already follow the curve.
SAMPLE = 250
# They are sorted if more than this share of the sample lies before its predecessor on the
# curve. The share is half in an unrelated order, and at most a quarter where elements
# follow their points along the curve.
BEHIND = 0.35
# Bits of the curve's key, which are sorted in three passes.
DIGITS = 33


def along_curve(problem: BlockProblem) -> tuple[BlockProblem, Int32s | None]:
    """The problem with elements sorted along Hilbert's curve, and their old numbers. O(n).

    The numbers are None where the elements stay as they are.
    """
    where = problem.coordinates
    if where is None or not 0 < where.shape[1] <= 3 or not problem.n:
        return problem, None
    # Elements that follow the curve already stay.
    box = bounding_box(where)
    step = -(-problem.n // SAMPLE)
    sample = curve_keys(where[::step], box, DIGITS)
    n_behind = np.count_nonzero(sample[1:] < sample[:-1])
    if n_behind < BEHIND * sample.size:
        return problem, None
    order = stable_argsort(curve_keys(where, box, DIGITS)[:, None])
    table = take(problem.table, order)
    where = take(where, order)
    return replace(problem, table=table, coordinates=where), order


def back(blocks: Blocks, order: Int32s | None) -> Blocks:
    """The blocks in the order before the sort along the curve."""
    if order is None:
        return blocks
    # Element i of the sorted mesh is element order[i] of the caller.
    block = np.empty(order.size, np.int32)
    block[order] = blocks.block_of_element
    return blocks_of(
        block_of_element=block,
        n_blocks=blocks.n_blocks,
        notes=blocks.notes,
        keep_numbers=True,
    )
