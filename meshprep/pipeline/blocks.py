"""One loop: its blocks, the grouping of what they reach, and their colours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.loops import Loop
from meshprep_runtime.plan import Variant

from ..colour import ThreadColours, colour_threads, sort_by_colour
from ..loops import LoopSpec
from ..loops.options import Options
from ..loops.reach import indirect_dats, written_table
from ..mesh.geometry import centroids
from ..mesh.incidence import stack
from ..partition import PARTITIONERS, BlockProblem, Blocks
from ..partition.options import effective
from ..reorder import group_points, keep_parts
from .numbering import Numbering
from .variants import build_variant


@dataclass(frozen=True, eq=False)
class Cut:
    """The blocks of one loop in the final order of its from-set.

    ``partitioner`` cut those elements that had no order before; ``thread_colours`` are there where
    each block's elements were sorted by them; ``notes`` are the partitioner's.
    """

    block_offset: NDArray[np.int64]
    partitioner: str
    thread_colours: ThreadColours | None
    notes: Mapping[str, Any]


def cut(
    numbering: Numbering,
    spec: LoopSpec,
    options: Options,
    progress: Callable[[float], None] = lambda share: None,
) -> Cut:
    """Cut a loop into blocks; the first loop over a set orders that set and what it reaches.

    ``progress`` is told the share of a long search that is done.

    For the GPU points are grouped by the blocks that use them; for the CPU blocks are runs of the
    order that the loop streams through, and the points stay. Where a part of a union set has its
    order already, the blocks of that part are runs of it.

    Raises
    ------
    MeshprepError
        When a partitioner is asked for that would have to move a set that has its order already.
    """
    loop, asked = spec.loop, options.partition
    movable = numbering.movable(loop.over)
    own_wish = "partition" in spec.options or numbering.is_frozen(loop.over)
    if not movable and own_wish and asked not in (None, "contiguous"):
        raise MeshprepError(
            f"loop '{loop.name}': set '{loop.over}' has its order already, so its blocks can only "
            f"be contiguous, not '{asked}': leave the partitioner out, or name this loop first"
        )
    name = options.partitioner if movable and (loop.maps or asked) else "contiguous"
    blocks = _partition(numbering, loop, name, options, progress)
    numbering.move(loop.over, blocks.new_to_old)
    # points that a loop streams through keep their band
    grouped = options.target == "gpu" or name != "contiguous"
    _settle_points(numbering, loop, blocks.block_offset if grouped else None)
    sorts = options.sort_by_colour and movable == numbering.leaves(loop.over)
    colours = _sort_by_colour(numbering, loop, blocks.block_offset) if sorts else None
    numbering.settle(loop.over)
    return Cut(blocks.block_offset, name, colours, blocks.notes)


def _partition(
    numbering: Numbering,
    loop: Loop,
    name: str,
    options: Options,
    progress: Callable[[float], None],
) -> Blocks:
    """Blocks of each part of the from-set on its own, so that no block mixes cell types."""
    mesh, movable = numbering.mesh, numbering.movable(loop.over)
    asked = options.given_to_partitioner if movable and loop.maps else {}
    partitioner = PARTITIONERS[name]
    wishes = effective(partitioner.options, asked, f"partitioner '{name}'")
    table, n_points, weight, written = _reached(numbering, loop, weighted="staged_bytes" in asked)
    where = centroids(mesh, loop.over)
    where = None if where is None else numbering.present_ordering(loop.over).apply(where)
    base, orders, offsets = 0, [], [np.zeros(1, np.int64)]
    notes: dict[str, Any] = {}
    for leaf in numbering.leaves(loop.over):
        rows = slice(base, base + mesh.size(leaf))
        problem = BlockProblem(
            table=table[rows],
            n_points=n_points,
            block_size=options.block_elements,
            point_bytes=weight,
            coordinates=None if where is None else where[rows],
            seed=options.seed,
            written=written,
            progress=progress,
        )
        blocks = (
            partitioner.function(problem, wishes)
            if leaf in movable
            else PARTITIONERS["contiguous"].function(problem, {})
        )
        orders.append(blocks.new_to_old + np.int32(base))
        offsets.append(blocks.block_offset[1:] + base)
        notes |= {key: notes.get(key, 0) + value for key, value in blocks.notes.items()}
        base = rows.stop
    return Blocks(np.concatenate(orders), np.concatenate(offsets), notes)


def _reached(
    numbering: Numbering, loop: Loop, *, weighted: bool
) -> tuple[NDArray[np.int32], int, NDArray[np.int32] | None, NDArray[np.bool_] | None]:
    """All points the loop reaches as one table; bytes of each where they differ or count.

    Last, which of them it writes; None where it writes none, as if it wrote them all.
    """
    mesh = numbering.mesh
    tables: dict[str, list[NDArray[np.int32]]] = {}
    for name in loop.maps:
        m = numbering.present_map(name)
        tables.setdefault(m.to_set, []).append(m.table)
    if not tables:
        return np.empty((mesh.size(loop.over), 0), np.int32), 0, None, None
    sizes = [mesh.size(points) for points in tables]
    beside = [t[0] if len(t) == 1 else np.hstack(t) for t in tables.values()]
    table, n_points = stack(beside, sizes)
    dats = indirect_dats(loop, {name: mesh.map(name) for name in loop.maps})
    cost = [sum(d * b for (_, s), (d, b) in dats.items() if s == points) for points in tables]
    weight = (
        None if len(set(cost)) == 1 and not weighted else np.repeat(np.array(cost, np.int32), sizes)
    )
    into = {mesh.map(name).to_set for name in loop.conflict_columns}
    written = np.repeat([points in into for points in tables], sizes) if into else None
    return table, n_points, weight, written


def _settle_points(
    numbering: Numbering, loop: Loop, block_offset: NDArray[np.int64] | None
) -> None:
    """Settle every set that the loop reaches, grouped by blocks where there are any [S19 2.3.2].

    The elements of the loop itself, where it reaches these, stay as they were cut.
    """
    mesh, own = numbering.mesh, numbering.leaves(loop.over)
    for points in dict.fromkeys(mesh.map(m).to_set for m in loop.maps):
        others = [leaf for leaf in numbering.movable(points) if leaf not in own]
        if others and block_offset is not None:
            into = [m for m in loop.maps if mesh.map(m).to_set == points]
            tables = [numbering.present_map(m).table for m in into]
            order = group_points(np.hstack(tables), mesh.size(points), block_offset)
            parts = [mesh.size(p) for p in numbering.leaves(points)]
            numbering.move(points, keep_parts(order, parts), only=others)
        for leaf in others:
            numbering.settle(leaf)


def _sort_by_colour(
    numbering: Numbering, loop: Loop, block_offset: NDArray[np.int64]
) -> ThreadColours:
    """Sort the elements of each block by thread colour; returns the colours in the new order."""
    mesh = numbering.mesh
    sizes = {name: s.size for name, s in mesh.sets.items()}
    maps = {name: numbering.present_map(name) for name in loop.maps}
    colours = colour_threads(*written_table(loop, maps, sizes), block_offset)
    order = sort_by_colour(colours.colour, block_offset)
    numbering.move(loop.over, order)
    return replace(colours, colour=colours.colour[order])


def colour(numbering: Numbering, loop: Loop, cut: Cut, options: Options) -> Variant:
    """Colour and stage a loop's blocks; every set that it touches has its final order."""
    mesh = numbering.mesh
    return build_variant(
        loop,
        {m: numbering.map(m) for m in loop.maps},
        {name: s.size for name, s in mesh.sets.items()},
        cut.block_offset,
        block_size=options.block_elements,
        target=options.target,
        partitioner=cut.partitioner,
        thread_colours=cut.thread_colours,
    )
