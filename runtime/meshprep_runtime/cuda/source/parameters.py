"""The parameters of a loop's kernel: names, types, and the arrays of the plan."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernel.rows import Row
from ...plan import Variant
from ...types.maps import ranges
from ..strategies import MOST_THREADS
from .shape import C_TYPES, LoopShape

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Parameter:
    """A parameter of the kernel."""

    name: str
    access: str  # ``"in"`` or ``"out"`` for arrays, ``"size"`` for numbers
    c_type: str = "Index"

    @property
    def text(self) -> str:
        """The parameter as it stands in the text."""
        if self.access == "size":
            return f"const {self.c_type} {self.name}"
        return f"MP_{self.access.upper()}({self.c_type}) {self.name}"


def plan_arrays(
    shape: LoopShape, variant: Variant | None, order: NDArray[Any] | None
) -> Arrays:
    """The arrays of the plan that the text names, by name. O(map entries x log).

    ``order`` has the places of the blocks, or the elements where there are no blocks, in
    the order in which threads take them; None for their own order.
    """
    # Colours and elements are read by place, in the order of the threads.
    arrays: Arrays = {}
    if variant is not None:
        arrays |= _block_arrays(shape, variant)
        if order is not None and "thread_colour" in arrays:
            arrays["thread_colour"] = arrays["thread_colour"][order]
    elements = _elements_in_order(variant, order)
    if elements is not None:
        arrays["order"] = elements
    for row in shape.placed:
        places = shape.plan.tables[int(str(row.table)[1:])].T
        if shape.permutes:
            places = places[:, elements]
        arrays[str(row.table)] = np.ascontiguousarray(places)
    if variant is not None:
        # Local indices of an element lie together, so that a thread loads them at once.
        for i, rows in enumerate(shape.local_pieces):
            numbers = _columns(rows, lambda name: variant.local[name].T, shape)
            arrays[f"local{i}"] = numbers if order is None else numbers[order]
    for i, rows in enumerate(shape.map_pieces):
        points = _columns(rows, lambda name: shape.plan.maps[name].table, shape)
        arrays[f"map{i}"] = points[elements] if shape.permutes else points
    return arrays


def _elements_in_order(
    variant: Variant | None, order: NDArray[Any] | None
) -> NDArray[Any] | None:
    """The elements in the order in which threads take them; None for their own order."""
    if variant is None or variant.elements is None:
        return order
    if order is None:
        return variant.elements
    elements: NDArray[Any] = variant.elements[order]
    return elements


def _columns(
    rows: Sequence[Row], table_of: Callable[[str], NDArray[Any]], shape: LoopShape
) -> NDArray[Any]:
    """The columns of maps that some rows need, as an array with a row for each element."""
    names = [shape.loop.maps[int(str(row.table)[1:])] for row in rows]
    columns = [table_of(name)[:, r.column] for name, r in zip(names, rows, strict=True)]
    return np.column_stack(columns)


def parameters(shape: LoopShape, arrays: Arrays) -> tuple[Parameter, ...]:
    """The parameters in their order: arrays of the plan, dats, then numbers."""
    fixed = [Parameter(n, "in", C_TYPES[a.dtype.str[1:]]) for n, a in arrays.items()]
    dats = []
    for i, slot in enumerate(shape.slots):
        # Reductions are written to ``partial``.
        access = "out" if slot.written and i not in shape.reduced else "in"
        dats.append(Parameter(f"s{i}", access, shape.c_type(i)))
    partial = [Parameter(f"partial{i}", "out", shape.c_type(i)) for i in shape.reduced]
    if shape.strategy.adds == "apart":
        partial += [Parameter(f"t{i}", "out", shape.c_type(i)) for i in shape.added]
    # The arrays of a block say where it ends; a launch of elements needs its end.
    ends = ["first"] if shape.strategy.blocks else ["first", "last"]
    ends += ["parts", "part"] if shape.reduced else []
    numbers = [Parameter(name, "size") for name in [*sizes(shape), *ends]]
    return (*fixed, *dats, *partial, *numbers)


def sizes(shape: LoopShape) -> dict[str, int]:
    """The numbers of elements, and of points of each SoA dat: the same in every launch."""
    numbers = {"size": shape.plan.sizes[shape.loop.over]}
    for i, slot in enumerate(shape.slots):
        if slot.soa:
            numbers[f"n_s{i}"] = slot.shape[1]
    return numbers


def shared_bytes(shape: LoopShape, variant: Variant | None) -> int:
    """Bytes of shared memory that the largest block takes."""
    reduced = [shape.threads * shape.slots[i].dtype.itemsize for i in shape.reduced]
    staged = 0 if variant is None else _staged_bytes(shape, variant)
    return max([staged, *reduced])


def _staged_bytes(shape: LoopShape, variant: Variant) -> int:
    """Bytes of staged values and of increments that threads leave, at most."""
    need = np.zeros(variant.n_blocks, np.int64)
    for s, row in shape.shared_rows.items():
        need += row.stride * np.diff(variant.staging[shape.sets[s]].point_offset)
    # Increments that are gathered take room for each element, not for each point.
    for i in shape.gathered:
        adding = sum(r.adds for r in shape.rows_to(i))
        row_bytes = shape.slots[i].dim * shape.slots[i].dtype.itemsize
        need += row_bytes * adding * np.diff(variant.block_offset)
    return int(need.max(initial=0))


def _block_arrays(shape: LoopShape, blocks: Variant) -> Arrays:
    """The arrays of the blocks, by name."""
    arrays: Arrays = {"blocks": _heads(shape, blocks)}
    if shape.takes_turns:
        arrays["thread_colour"] = blocks.thread_colour
    for s in shape.used_sets:
        arrays[f"points{s}"] = blocks.staging[shape.sets[s]].points
        if shape.roles and any(shape.set_of(i) == s for i in shape.committed):
            arrays[f"role{s}"] = _roles(shape, blocks, s)
    for i in shape.gathered:
        offset, place = _incidences(shape, blocks, i)
        arrays[f"gather_offset{i}"] = offset
        arrays[f"gather{i}"] = place
    return arrays


def _heads(shape: LoopShape, blocks: Variant) -> NDArray[Any]:
    """The numbers of each block, a row a block, in the order in which blocks are launched.

    In a single launch that is the order of the plan, so that neighbours share cached
    values.
    """
    # With atomics no block waits for another: they run in their own order.
    order: NDArray[Any] = blocks.block_order
    if shape.commit == "atomics":
        order = np.arange(blocks.n_blocks)
    columns = {
        "begin": blocks.block_offset[:-1],
        "count": np.diff(blocks.block_offset),
        "colours": blocks.thread_colours,
        "block": np.arange(blocks.n_blocks),
    }
    # Add where the points that a block stages of each set begin, and their number.
    for s in shape.used_sets:
        offset = blocks.staging[shape.sets[s]].point_offset
        columns[f"from{s}"] = offset[:-1]
        columns[f"many{s}"] = np.diff(offset)
    # Rows are padded to whole pieces, which are loaded at once.
    names = shape.head
    piece = shape.head_piece
    width = -(-len(names) // piece) * piece
    rows = np.zeros((blocks.n_blocks, width), shape.index_type)
    for k, name in enumerate(names):
        rows[:, k] = columns[name][order]
    return rows


def _roles(shape: LoopShape, blocks: Variant, s: int) -> NDArray[np.uint8]:
    """The role of each staged point: how its block commits it.

    0: not written by the block, 1: written plainly, 2: written by atomics. A staged point
    that the block only reads may be written by another block of its colour: adding zero to
    it would be a race.
    """
    staging = blocks.staging[shape.sets[s]]
    written = np.zeros(staging.points.size, bool)
    start = np.repeat(staging.point_offset[:-1], np.diff(blocks.block_offset))
    for name, columns in shape.loop.conflict_columns.items():
        if shape.plan.maps[name].to_set == shape.sets[s]:
            for column in columns:
                written[start + blocks.local[name][column]] = True
    # 0: not written; 1: by this block alone at the time; 2: by others, too.
    plain = staging.exclusive.astype(bool) | (shape.commit == "colours")
    return np.where(written, np.where(plain, 1, 2), 0).astype(np.uint8)


def _incidences(
    shape: LoopShape, blocks: Variant, slot: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The transposed local map: the increments of each staged point [G10 section 10].

    A block has a place for the increment of every element and row that adds. Returns for
    each block the offsets of its staged points and their end, counted from the first place
    of the block; and the places.
    """
    staging = blocks.staging[shape.sets[shape.set_of(slot)]]
    count = np.diff(blocks.block_offset)
    start = np.repeat(staging.point_offset[:-1], count)
    thread = ranges(0, count)

    # The point and the place of each increment, row by row.
    points = []
    places = []
    adding_rows = [r for r in shape.rows_to(slot) if r.adds]
    for j, row in enumerate(adding_rows):
        name = shape.loop.maps[int(str(row.table)[1:])]
        points.append(start + blocks.local[name][row.column])
        places.append(thread + j * np.repeat(count, count))
    point_of_increment = np.concatenate(points)
    place_of_increment = np.concatenate(places)

    # The end of each point, counted from the first place of its block.
    ends = np.cumsum(np.bincount(point_of_increment, minlength=staging.points.size))
    points_of_block = np.diff(staging.point_offset)
    first_place = len(adding_rows) * blocks.block_offset[:-1]
    offset = np.zeros(staging.points.size + points_of_block.size, np.int64)
    block_of_point = np.repeat(np.arange(points_of_block.size), points_of_block)
    after = np.arange(1, ends.size + 1) + block_of_point
    offset[after] = ends - np.repeat(first_place, points_of_block)

    # Take indices of 16 bits where they suffice: half as much is read.
    kind: type[np.integer[Any]] = np.int32
    if len(adding_rows) * MOST_THREADS <= np.iinfo(np.uint16).max:
        kind = np.uint16
    by_point = np.argsort(point_of_increment, kind="stable")
    return offset.astype(kind), place_of_increment[by_point].astype(kind)
