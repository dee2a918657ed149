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

from .colour import sort_by_colour
from .geometry import centroids
from .incidence import stack
from .loops import LoopSpec
from .metrics import indirect_dats
from .numbering import Numbering
from .options import Options
from .partition import BlockProblem, Blocks, partition
from .reorder import group_points, keep_parts
from .staging import build_variant


@dataclass(frozen=True, eq=False)
class Cut:
    """The blocks of one loop in the settled order of its from-set.

    ``leads`` tells that this loop gave the set its order; ``notes`` are the partitioner's.
    """

    block_offset: NDArray[np.int64]
    partitioner: str
    leads: bool
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
    order that the loop streams through, and the points stay.

    Raises
    ------
    MeshprepError
        When a partitioner is asked for that would have to move a set that has its order already.
    """
    loop, asked = spec.loop, options.partition
    leads = not numbering.is_settled(loop.over)
    own_wish = "partition" in spec.options or numbering.is_frozen(loop.over)
    if not leads and own_wish and asked not in (None, "contiguous"):
        raise MeshprepError(
            f"loop '{loop.name}': set '{loop.over}' has its order already, so its blocks can only "
            f"be contiguous, not '{asked}': leave the partitioner out, or name this loop first"
        )
    name = options.partitioner if leads and (loop.maps or asked) else "contiguous"
    wishes = options.partition_options if leads and loop.maps else {}
    blocks = _partition(numbering, loop, name, options, wishes, progress)
    if leads:
        numbering.move(loop.over, blocks.new_to_old, settle=True)
    # points that a loop streams through keep their band
    grouped = options.target == "gpu" or name != "contiguous"
    _settle_points(numbering, loop, blocks.block_offset if grouped else None)
    return Cut(blocks.block_offset, name, leads, blocks.notes)


def _partition(
    numbering: Numbering,
    loop: Loop,
    name: str,
    options: Options,
    wishes: Mapping[str, Any],
    progress: Callable[[float], None],
) -> Blocks:
    """Blocks of each part of the from-set on its own, so that no block mixes cell types."""
    mesh = numbering.mesh
    table, n_points, weight, written = _reached(numbering, loop, weighted="staged_bytes" in wishes)
    where = centroids(mesh, loop.over)
    where = None if where is None else numbering.ordering(loop.over).apply(where)
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
        blocks = partition(problem, name, wishes)
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
        m = numbering.map(name)
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
    """Settle every set that the loop reaches, grouped by blocks where there are any [S19 2.3.2]."""
    mesh = numbering.mesh
    for points in dict.fromkeys(mesh.map(m).to_set for m in loop.maps):
        if numbering.is_settled(points):
            continue
        if block_offset is None:
            numbering.settle(points)
            continue
        tables = [numbering.map(m).table for m in loop.maps if mesh.map(m).to_set == points]
        order = group_points(np.hstack(tables), mesh.size(points), block_offset)
        parts = [mesh.size(p) for p in numbering.leaves(points)]
        numbering.move(points, keep_parts(order, parts), settle=True)


def colour(numbering: Numbering, loop: Loop, cut: Cut, options: Options) -> Variant:
    """Colour and stage a loop's blocks; sorts the leading loop's elements by colour if asked."""
    mesh = numbering.mesh
    variant = build_variant(
        loop,
        {m: numbering.map(m) for m in loop.maps},
        {name: s.size for name, s in mesh.sets.items()},
        mesh.size(loop.over),
        cut.block_offset,
        block_size=options.block_elements,
        target=options.target,
        partitioner=cut.partitioner,
    )
    if not (options.sort_by_colour and cut.leads):
        return variant
    order = sort_by_colour(variant.thread_colour, variant.block_offset)
    numbering.move(loop.over, order, settle=True)
    return replace(
        variant,
        sorted_by_colour=True,
        thread_colour=variant.thread_colour[order],
        local={name: np.ascontiguousarray(t[:, order]) for name, t in variant.local.items()},
    )
