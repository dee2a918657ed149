"""One loop: its blocks, the grouping of what they reach, and their colours."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from meshprep_runtime.plan import Variant
from meshprep_runtime.types.loops import Loop
from meshprep_runtime.types.maps import Int32s, Int64s, rows_of_entries

from ..colour import ThreadColours, colour_threads, sort_by_colour
from ..kernels.parallel import take
from ..loops.options import Options
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
from ..partition import PARTITIONERS, BlockProblem, Blocks, blocks_of, loads
from ..partition.options import effective
from ..reorder import group_points
from .numbering import Numbering
from .variants import build_variant

# Times the loads of blocks with lists that runs must take for the lists to be worth their reading.
LEAST_GAIN = 1.01


class Cut(NamedTuple):
    """The blocks of one loop in the final order of its from-set.

    ``elements`` lists those of each block where they are not ranges of that order. ``partitioner``
    cut all elements where there is a list, else those that had no order before;
    ``thread_colours`` are there where each block's elements were sorted by them; ``notes`` are the
    partitioner's.
    """

    block_offset: Int64s
    elements: Int32s | None
    partitioner: str
    thread_colours: ThreadColours | None
    notes: Mapping[str, Any]


def cut(
    numbering: Numbering,
    spec: LoopSpec,
    options: Options,
    progress: Callable[[float], None] = lambda share: None,
    temporary: Numbering | None = None,
) -> tuple[Numbering, Cut]:
    """Cut a loop into blocks; the first loop over a set orders that set and what it reaches.

    ``progress`` is told the share of a long search that is done. Sets of a mesh that keeps its
    order are cut in ``temporary``, where that is given.

    For the GPU points are grouped by the blocks that use them; for the CPU blocks are runs of the
    order that the loop streams through, and the points stay. Where a part of a set has its order
    already, the blocks of that part are runs of it, or lists where :func:`wants_lists` says so.
    """
    loop, over = spec.loop, spec.loop.over
    movable, leaves = numbering.movable(over), numbering.leaves(over)
    lists = wants_lists(numbering, spec, options)
    name = options.partitioner if movable and (loop.maps or options.partition) else "contiguous"
    ways = [(numbering, name, movable)]
    if lists:
        source = temporary if temporary is not None and numbering.is_frozen(over) else numbering
        # where nobody names the partitioner, lists may load hardly less than runs: both are cut
        both = not _names_partitioner(numbering, spec, options)
        ways = [(source, options.partitioner, leaves), *(ways if both else ())]
    cuts = []
    for source, name, chosen in ways:
        parts = []
        for by, problem, wishes in _problems(source, loop, name, options, progress, chosen):
            parts.append(PARTITIONERS[by].function(problem, wishes))
        cuts.append((source, name, _joined(parts)))
    if len(cuts) > 1 and _loads(loop, cuts[1]) < LEAST_GAIN * _loads(loop, cuts[0]):
        lists, cuts = False, cuts[1:]
    source, name, blocks = cuts[0]
    here = source.ordering(over).new_to_old
    numbering, elements = numbering.moved(over, blocks.new_to_old), None
    if lists:
        elements = _listed(numbering.ordering(over).old_to_new[here[blocks.new_to_old]], blocks)
    # points that a loop streams through keep their band
    grouped = options.target == "gpu" or name != "contiguous"
    found = Cut(blocks.block_offset, elements, name, None, blocks.notes)
    numbering = settle_points(numbering, loop, found if grouped else None)
    if options.sort_by_colour and (elements is not None or movable == leaves):
        numbering, found = _sort_by_colour(numbering, loop, found)
    return numbering.settled(over), found


def check_partitioner(options: Options) -> None:
    """Raise MeshprepError for options that the partitioner does not have, or cannot be given."""
    name = options.partitioner
    effective(PARTITIONERS[name].options, options.given_to_partitioner, f"partitioner '{name}'")


def wants_lists(numbering: Numbering, spec: LoopSpec, options: Options) -> bool:
    """True where blocks of a set that has its order already are to be more than runs of it.

    So it is where a partitioner is named: in the loop's own table, or for a mesh that keeps its
    order; and with the option ``own_blocks``.
    """
    over = spec.loop.over
    if not spec.loop.maps or numbering.movable(over) == numbering.leaves(over):
        return False
    return options.own_blocks or _names_partitioner(numbering, spec, options)


def _names_partitioner(numbering: Numbering, spec: LoopSpec, options: Options) -> bool:
    if options.partition in (None, "contiguous"):
        return False
    return "partition" in spec.options or numbering.is_frozen(spec.loop.over)


def _listed(element: Int32s, blocks: Blocks) -> Int32s | None:
    """The elements of each block, ascending in it, or None where these are the order itself."""
    # neighbours in memory are used together
    block = np.empty_like(element)
    block[element] = rows_of_entries(blocks.block_offset)
    element = blocks_of(block, blocks.n_blocks, keep_numbers=True).new_to_old
    return element if (np.diff(element) < 0).any() else None


def _loads(loop: Loop, cut: tuple[Numbering, str, Blocks]) -> int:
    source, _, blocks = cut
    table, n_points, _ = _reached(source, loop, weighted=False)
    return loads(table[blocks.new_to_old], n_points, blocks.block_offset)


def _problems(
    numbering: Numbering,
    loop: Loop,
    name: str,
    options: Options,
    progress: Callable[[float], None],
    leaves: Sequence[str],
) -> Iterator[tuple[str, BlockProblem, Mapping[str, Any]]]:
    """How each part of the from-set is cut on its own, so that no block mixes cell types.

    The partitioner cuts ``leaves``; other parts are cut into runs of their order, which keep the
    caps that runs have.
    """
    mesh, given = numbering.mesh, options.given_to_partitioner if loop.maps else {}
    kept = {k: v for k, v in given.items() if k in PARTITIONERS["contiguous"].options}
    if not leaves:
        given = kept
    table, n_points, weight = _reached(numbering, loop, weighted="staged_bytes" in given)
    # an axis along which nothing differs only costs memory, but says how sizes of tiles are meant
    axes = axes_in_use(mesh) if name == "blocks" else None
    where = centroids(mesh, loop.over, axes)
    where = None if where is None else take(where, numbering.ordering(loop.over).new_to_old)
    base = 0
    for leaf in numbering.leaves(loop.over):
        by, asked = (name, given) if leaf in leaves else ("contiguous", kept)
        wishes = effective(PARTITIONERS[by].options, asked, f"partitioner '{by}'")
        rows = slice(base, base + mesh.size(leaf))
        problem = BlockProblem(
            table=table[rows],
            n_points=n_points,
            block_size=options.block_elements,
            point_bytes=weight,
            coordinates=None if where is None else where[rows],
            seed=options.seed,
            progress=progress,
        )
        yield by, problem, wishes
        base = rows.stop


def _joined(parts: Sequence[Blocks]) -> Blocks:
    """The blocks of all parts, one part after the other."""
    base, orders, offsets = 0, [], [np.zeros(1, np.int64)]
    notes: dict[str, Any] = {}
    for blocks in parts:
        orders.append(blocks.new_to_old + np.int32(base))
        offsets.append(blocks.block_offset[1:] + base)
        for key, value in blocks.notes.items():
            notes[key] = notes.get(key, 0) + value
        base += blocks.new_to_old.size
    return Blocks(np.concatenate(orders), np.concatenate(offsets), notes)


def _reached(
    numbering: Numbering, loop: Loop, *, weighted: bool
) -> tuple[Int32s, int, Int32s | None]:
    """All points the loop reaches as one table; bytes of each where they differ or count."""
    mesh = numbering.mesh
    tables: dict[str, list[Int32s]] = {}
    for name in loop.maps:
        m = numbering.map(name)
        tables.setdefault(m.to_set, []).append(m.table)
    if not tables:
        return np.empty((mesh.size(loop.over), 0), np.int32), 0, None
    sizes = [*map(mesh.size, tables)]
    table, n_points = stack([*map(joined_tables, tables.values())], sizes)
    cost = dict.fromkeys(tables, 0)
    for (_, points), (dim, nbytes) in indirect_dats(loop, mesh.maps).items():
        cost[points] += dim * nbytes
    if len({*cost.values()}) == 1 and not weighted:
        return table, n_points, None
    return table, n_points, np.repeat(np.array([*cost.values()], np.int32), sizes)


def settle_points(numbering: Numbering, loop: Loop, blocks: Cut | None) -> Numbering:
    """Settle the sets that the loop reaches, but its own, grouped by blocks [S19 2.3.2]."""
    mesh, own = numbering.mesh, numbering.leaves(loop.over)
    for points, names in maps_by_set(loop, mesh.maps).items():
        others = [leaf for leaf in numbering.movable(points) if leaf not in own]
        if others and blocks is not None:
            into = maps_by_place(numbering.maps(names), blocks.elements)
            tables = [m.table for m in into.values()]
            order = group_points(np.hstack(tables), mesh.size(points), blocks.block_offset)
            numbering = numbering.moved(points, numbering.in_runs(points, order), others)
        numbering = numbering.settled(*others)
    return numbering


def _sort_by_colour(numbering: Numbering, loop: Loop, blocks: Cut) -> tuple[Numbering, Cut]:
    """Sort the elements of each block by thread colour, in the set's order or in the list."""
    offset, elements = blocks.block_offset, blocks.elements
    maps = maps_by_place(numbering.maps(loop.maps), elements)
    colours = colour_threads(*written_table(loop, maps, numbering.mesh.sizes), offset)
    order = sort_by_colour(colours.colour, offset)
    if elements is None:
        numbering = numbering.moved(loop.over, order)
    else:
        elements = elements[order]
    colours = replace(colours, colour=colours.colour[order])
    return numbering, blocks._replace(elements=elements, thread_colours=colours)


def colour(numbering: Numbering, loop: Loop, cut: Cut, options: Options) -> Variant:
    """Colour and stage a loop's blocks; every set that it touches has its final order."""
    variant = build_variant(
        loop,
        maps_by_place(numbering.maps(loop.maps), cut.elements),
        numbering.mesh.sizes,
        cut.block_offset,
        block_size=options.block_elements,
        target=options.target,
        partitioner=cut.partitioner,
        thread_colours=cut.thread_colours,
    )
    return replace(variant, elements=cut.elements)
