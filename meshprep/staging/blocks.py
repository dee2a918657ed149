"""One loop: its blocks, the grouping of what they reach, and their colours."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan import Variant
from meshprep_runtime.types.loops import Loop
from meshprep_runtime.types.maps import Int32s, Int64s, offsets_of, rows_of_entries

from ..colouring import ThreadColours, colour_threads, sort_by_colour
from ..io.original_ids import read_vector
from ..kernels.parallel import take
from ..loops.options import GivenBlocks, Options
from ..loops.reach import (
    indirect_dats,
    joined_tables,
    maps_by_place,
    maps_by_set,
    written_table,
)
from ..loops.requests import LoopSpec
from ..mesh.geometry import axes_in_use, centroids
from ..mesh.incidence import stack
from ..ordering import group_points
from ..partitioning import PARTITIONERS, BlockProblem, Blocks, blocks_of, loads
from ..partitioning.options import effective
from ..partitioning.registry import partitioner_named
from ..registry.partitioners import FILE, is_given
from .build_variant import build_variant
from .numbering import Numbering

# Blocks list their elements only where runs of the order load at least 1.01 times as many
# points: reading the lists costs something, too.
LEAST_GAIN = 1.01


class Cut(NamedTuple):
    """The blocks of one loop in the final order of its from-set."""

    block_offset: Int64s
    # Those of each block, where blocks are not ranges of the order; else None.
    elements: Int32s | None
    # The one that cut all elements of lists, or those that had no order before.
    partitioner: str
    # Where the elements of each block were sorted by them; else None.
    thread_colours: ThreadColours | None
    notes: Mapping[str, Any]  # the partitioner's


class _Way(NamedTuple):
    """A way to cut a loop: the numbering, the partitioner, and the parts of the set."""

    numbering: Numbering
    partitioner: str
    leaves: Sequence[str]


def cut(
    numbering: Numbering,
    spec: LoopSpec,
    options: Options,
    progress: Callable[[float], None] = lambda share: None,
    temporary: Numbering | None = None,
) -> tuple[Numbering, Cut]:
    """Cut a loop into blocks; the first one over a set orders it and the sets it reaches.

    ``progress`` is called with the share of a long search that is done. Sets of a mesh that
    keeps its order are cut in ``temporary``, where that is given.

    For the GPU points are grouped by the blocks that use them; for the CPU blocks are runs
    of the order that the loop streams through, and the points stay. Where a part of a set
    has its order already, the blocks of that part are runs of it, or lists where
    :func:`wants_lists` says so.
    """
    loop = spec.loop
    over = loop.over
    movable = numbering.movable(over)
    leaves = numbering.leaves(over)

    # Cut, in two ways where lists may load hardly less than runs of the order.
    ways = _ways_to_cut(numbering, spec, options, temporary)
    cuts = [_cut_one_way(way, loop, options, progress) for way in ways]
    lists = wants_lists(numbering, spec, options)
    way = ways[0]
    blocks = cuts[0]
    if len(ways) > 1:
        loads_of_lists = _loads_of_blocks(ways[0].numbering, loop, cuts[0])
        loads_of_runs = _loads_of_blocks(ways[1].numbering, loop, cuts[1])
        if loads_of_runs < LEAST_GAIN * loads_of_lists:
            lists = False
            way = ways[1]
            blocks = cuts[1]

    # Move the elements that may move; blocks list them where the others may not.
    element_when_cut = way.numbering.ordering(over).new_to_old
    numbering = numbering.moved(over, blocks.new_to_old)
    elements = None
    if lists:
        number_now = numbering.ordering(over).old_to_new
        element_of_mesh = element_when_cut[blocks.new_to_old]
        elements = _elements_by_block(number_now[element_of_mesh], blocks)
    blocks_of_loop = Cut(
        block_offset=blocks.block_offset,
        elements=elements,
        partitioner=way.partitioner,
        thread_colours=None,
        notes=blocks.notes,
    )

    # Group the points, but for those that a loop streams through: they keep their band.
    grouped = options.target == "gpu" or way.partitioner != "contiguous"
    numbering = settle_points(numbering, loop, blocks_of_loop if grouped else None)
    if options.sort_by_colour and (elements is not None or movable == leaves):
        numbering, blocks_of_loop = _sort_by_colour(numbering, loop, blocks_of_loop)
    return numbering.settled(over), blocks_of_loop


def _ways_to_cut(
    numbering: Numbering,
    spec: LoopSpec,
    options: Options,
    temporary: Numbering | None,
) -> list[_Way]:
    """The ways to cut a loop: the first is taken unless the second loads hardly more."""
    over = spec.loop.over
    movable = numbering.movable(over)
    # Runs of the order as it stands; cut it by a partitioner where elements may move.
    name = "contiguous"
    if movable and (spec.loop.maps or options.partition):
        name = options.partitioner
    runs = _Way(numbering, name, movable)
    if not wants_lists(numbering, spec, options):
        return [runs]
    # Lists leave the order alone, and so may be cut from a better one.
    start = numbering
    if temporary is not None and numbering.is_frozen(over):
        start = temporary
    lists = _Way(start, options.partitioner, numbering.leaves(over))
    if _names_partitioner(numbering, spec, options):
        return [lists]
    return [lists, runs]


def _cut_one_way(
    way: _Way,
    loop: Loop,
    options: Options,
    progress: Callable[[float], None],
) -> Blocks:
    """The blocks of all parts of the from-set, one part after the other."""
    parts = []
    for name, problem, option_values in _problems_of_parts(
        numbering=way.numbering,
        loop=loop,
        name=way.partitioner,
        options=options,
        progress=progress,
        leaves=way.leaves,
    ):
        parts.append(partitioner_named(name).function(problem, option_values))
    return _blocks_side_by_side(parts)


def given_blocks(options: Options, loop: Loop, size: int) -> GivenBlocks:
    """The blocks from outside that options name for a loop over ``size`` elements.

    Raises MeshprepError for files that cannot be read, and numbers that do not fit.
    """
    blocks = options.partition
    if isinstance(blocks, str):
        path = Path(blocks.removeprefix(FILE))
        blocks = GivenBlocks(read_vector(path), str(path))
    assert isinstance(blocks, GivenBlocks)
    if blocks.number.size != size:
        raise MeshprepError(
            f"{blocks.source} has {blocks.number.size} numbers, but loop '{loop.name}' "
            f"runs over {size} {loop.over}: give the block of each, or name the loop that "
            "it is for, by --loop or in a table [loop.NAME]"
        )
    return blocks


def check_partitioner(options: Options) -> None:
    """Raise MeshprepError for options that the partitioner does not have or accept."""
    name = options.partitioner
    known = partitioner_named(name).options
    effective(known, options.given_to_partitioner, f"partitioner '{name}'")


def wants_lists(numbering: Numbering, spec: LoopSpec, options: Options) -> bool:
    """Whether blocks of a set that has its order already may list their elements.

    They may where a partitioner is named, in the loop's own table or for a mesh that keeps
    its order, and with the option ``own_blocks``. Otherwise they are runs of the order.
    """
    over = spec.loop.over
    if not spec.loop.maps or numbering.movable(over) == numbering.leaves(over):
        return False
    return options.own_blocks or _names_partitioner(numbering, spec, options)


def _names_partitioner(numbering: Numbering, spec: LoopSpec, options: Options) -> bool:
    """Whether a partitioner is named for a loop over a set that has its order already."""
    if options.partition in (None, "contiguous"):
        return False
    return "partition" in spec.options or numbering.is_frozen(spec.loop.over)


def _elements_by_block(element: Int32s, blocks: Blocks) -> Int32s | None:
    """The elements of each block, ascending in it; None where these are the order itself.

    They ascend because neighbours in memory are used together.
    """
    # A stable sort of the elements by their blocks.
    block_of_element = np.empty_like(element)
    block_of_element[element] = rows_of_entries(blocks.block_offset)
    sorted_blocks = blocks_of(block_of_element, blocks.n_blocks, keep_numbers=True)
    element = sorted_blocks.new_to_old
    if (np.diff(element) < 0).any():
        return element
    return None


def _loads_of_blocks(numbering: Numbering, loop: Loop, blocks: Blocks) -> int:
    """The points that blocks load together, as cut in this numbering."""
    table, n_points, _ = _points_reached(numbering, loop, weighted=False)
    return loads(table[blocks.new_to_old], n_points, blocks.block_offset)


def _problems_of_parts(
    numbering: Numbering,
    loop: Loop,
    name: str,
    options: Options,
    progress: Callable[[float], None],
    leaves: Sequence[str],
) -> Iterator[tuple[str, BlockProblem, Mapping[str, Any]]]:
    """What is cut, by which partitioner with which options: no block mixes cell types.

    The partitioner cuts ``leaves``, group by group where they have groups
    (:func:`_cut_together`); other parts are cut into runs of their order, which keep the
    caps that runs have.
    """
    mesh = numbering.mesh

    # Options of the partitioner, and those of them that runs have as well.
    options_named = options.given_to_partitioner if loop.maps else {}
    known_to_runs = PARTITIONERS["contiguous"].options
    options_of_runs = {k: v for k, v in options_named.items() if k in known_to_runs}
    if not leaves:
        options_named = options_of_runs

    # The points of each element, and the elements' centroids in the present order. Our own
    # partitioner needs no axis along which nothing differs: it would only cost memory.
    weighted = "staged_bytes" in options_named
    table, n_points, weight = _points_reached(numbering, loop, weighted=weighted)
    axes = axes_in_use(mesh) if name == "blocks" else None
    coordinates = centroids(mesh, loop.over, axes)
    if coordinates is not None:
        coordinates = take(coordinates, numbering.ordering(loop.over).new_to_old)

    # Blocks that are given have the order of the mesh: bring them into the present one.
    block_of_element = None
    if is_given(name):
        in_mesh = given_blocks(options, loop, mesh.size(loop.over))
        element_now = numbering.ordering(loop.over).new_to_old
        block_of_element = in_mesh.number[element_now]

    # Part by part of the set, whose rows begin at ``base``, and in it piece by piece.
    base = 0
    for leaf in numbering.leaves(loop.over):
        pieces = [("contiguous", slice(0, mesh.size(leaf)))]
        if leaf in leaves:
            pieces = _cut_together(
                numbering=numbering,
                leaf=leaf,
                name=name,
                options=options,
            )
        for cut_by, piece in pieces:
            values = options_of_runs
            if leaf in leaves and cut_by == name:
                values = options_named
            known = partitioner_named(cut_by).options
            values = effective(known, values, f"partitioner '{cut_by}'")
            rows = slice(base + piece.start, base + piece.stop)
            problem = BlockProblem(
                table=table[rows],
                n_points=n_points,
                block_size=options.block_elements,
                point_bytes=weight,
                coordinates=None if coordinates is None else coordinates[rows],
                seed=options.seed,
                given=None if block_of_element is None else block_of_element[rows],
                progress=progress,
            )
            if len(pieces) > 1:
                problem = _with_own_points(problem)
            yield cut_by, problem, values
        base += mesh.size(leaf)


def _with_own_points(problem: BlockProblem) -> BlockProblem:
    """The problem with only the points that its elements reach, numbered from 0."""
    points, table = np.unique(problem.table, return_inverse=True)
    weight = problem.point_bytes
    return replace(
        problem,
        table=table.reshape(problem.table.shape).astype(np.int32),
        n_points=points.size,
        point_bytes=None if weight is None else weight[points],
        # the share of one part says nothing about the whole
        progress=lambda share: None,
    )


def _cut_together(
    numbering: Numbering,
    leaf: str,
    name: str,
    options: Options,
) -> list[tuple[str, slice]]:
    """Rows of a set that are cut together, and the partitioner that cuts them.

    A block is a range of the new order, and groups stay together in it. So a partitioner
    cuts each group of at least a block on its own. Smaller groups, one after the other, are
    cut into runs, which may hold several groups; blocks that are given end with each group.
    Runs of the order need no cut between groups, unless elements move inside blocks, by
    colour.
    """
    # Without groups, or where elements keep their order, there is nothing to keep apart.
    everything = [(name, slice(0, numbering.mesh.size(leaf)))]
    if leaf not in numbering.movable(leaf):
        return everything
    group = numbering.group_numbers(leaf)
    if group is None or (name == "contiguous" and not options.sort_by_colour):
        return everything
    # Go through the groups, which stand one after the other.
    smallest_cut_alone = options.block_elements
    if options.sort_by_colour or is_given(name):
        smallest_cut_alone = 1
    pieces: list[tuple[str, slice]] = []
    ends_of_groups = offsets_of(np.bincount(group))
    for begin, end in pairwise(ends_of_groups.tolist()):
        cut_by = name
        if end - begin < smallest_cut_alone:
            cut_by = "contiguous"
        # Join small groups: runs may hold several, unless they are sorted by colour.
        joins = cut_by == "contiguous" and not options.sort_by_colour
        if joins and pieces and pieces[-1][0] == cut_by:
            begin = pieces.pop()[1].start
        pieces.append((cut_by, slice(begin, end)))
    return pieces


def _blocks_side_by_side(parts: Sequence[Blocks]) -> Blocks:
    """The blocks of all parts, one part after the other."""
    base = 0
    orders = []
    offsets = [np.zeros(1, np.int64)]
    notes: dict[str, Any] = {}
    for blocks in parts:
        # Elements of later parts have numbers behind those of all parts before.
        orders.append(blocks.new_to_old + np.int32(base))
        offsets.append(blocks.block_offset[1:] + base)
        for key, value in blocks.notes.items():
            notes[key] = notes.get(key, 0) + value
        base += blocks.new_to_old.size
    return Blocks(np.concatenate(orders), np.concatenate(offsets), notes)


def _points_reached(
    numbering: Numbering, loop: Loop, *, weighted: bool
) -> tuple[Int32s, int, Int32s | None]:
    """All points that a loop reaches as one table, their number, and the bytes of each.

    None for the bytes where those of all points are the same, unless they are asked for.
    """
    # The maps into each set side by side, and the sets as one: their disjoint union.
    mesh = numbering.mesh
    tables: dict[str, list[Int32s]] = {}
    for name in loop.maps:
        m = numbering.map(name)
        tables.setdefault(m.to_set, []).append(m.table)
    if not tables:
        return np.empty((mesh.size(loop.over), 0), np.int32), 0, None
    sizes = [mesh.size(to_set) for to_set in tables]
    tables_of_sets = [joined_tables(into_set) for into_set in tables.values()]
    table, n_points = stack(tables_of_sets, sizes)

    # The bytes that a point of each set has in all dats that the loop reaches.
    bytes_of_point = dict.fromkeys(tables, 0)
    for (_, to_set), (dim, nbytes) in indirect_dats(loop, mesh.maps).items():
        bytes_of_point[to_set] += dim * nbytes
    if len(set(bytes_of_point.values())) == 1 and not weighted:
        return table, n_points, None
    bytes_by_set = np.array(list(bytes_of_point.values()), np.int32)
    weight = np.repeat(bytes_by_set, sizes)
    return table, n_points, weight


def settle_points(numbering: Numbering, loop: Loop, blocks: Cut | None) -> Numbering:
    """Settle the sets that a loop reaches, but its own, grouped by blocks [S19 2.3.2].

    Without blocks they are settled in the order that they have.
    """
    mesh = numbering.mesh
    own = numbering.leaves(loop.over)
    for points, names in maps_by_set(loop, mesh.maps).items():
        # The set of the loop keeps the order that was just cut into blocks.
        others = [leaf for leaf in numbering.movable(points) if leaf not in own]
        if others and blocks is not None:
            # Points of one block stand together: a block then loads whole lines of memory.
            into = maps_by_place(numbering.maps(names), blocks.elements)
            tables = [m.table for m in into.values()]
            order = group_points(np.hstack(tables), mesh.size(points), blocks.block_offset)
            numbering = numbering.moved(points, numbering.together(points, order), others)
        numbering = numbering.settled(*others)
    return numbering


def _sort_by_colour(numbering: Numbering, loop: Loop, blocks: Cut) -> tuple[Numbering, Cut]:
    """Sort the elements of each block by thread colour, in the order or in the list.

    So a warp has elements of few colours [R14 7.1].
    """
    offset = blocks.block_offset
    elements = blocks.elements
    # Colour the elements as the blocks run them.
    maps = maps_by_place(numbering.maps(loop.maps), elements)
    table, n_points = written_table(loop, maps, numbering.mesh.sizes)
    colours = colour_threads(table, n_points, offset)
    order = sort_by_colour(colours.colour, offset)
    # Blocks that are runs sort the mesh; lists sort themselves.
    if elements is None:
        numbering = numbering.moved(loop.over, order)
    else:
        elements = elements[order]
    colours = replace(colours, colour=colours.colour[order])
    return numbering, blocks._replace(elements=elements, thread_colours=colours)


def colour_and_stage(
    numbering: Numbering,
    loop: Loop,
    cut: Cut,
    options: Options,
) -> Variant:
    """Colour and stage a loop's blocks; every set that it touches has its final order."""
    variant = build_variant(
        loop=loop,
        maps=maps_by_place(numbering.maps(loop.maps), cut.elements),
        sizes=numbering.mesh.sizes,
        block_offset=cut.block_offset,
        block_size=options.block_elements,
        target=options.target,
        partitioner=cut.partitioner,
        thread_colours=cut.thread_colours,
    )
    return replace(variant, elements=cut.elements)
