"""What the kernel of a loop is handed: names, types, and the arrays of the plan behind them."""

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
    """A parameter of the kernel; ``access`` of arrays is ``"in"`` or ``"out"``, else ``"size"``."""

    name: str
    access: str
    c_type: str = "Index"

    @property
    def text(self) -> str:
        """The parameter as it stands in the text."""
        if self.access == "size":
            return f"const {self.c_type} {self.name}"
        return f"MP_{self.access.upper()}({self.c_type}) {self.name}"


def plan_arrays(shape: LoopShape, variant: Variant | None, order: NDArray[Any] | None) -> Arrays:
    """The arrays of the plan that the text names, by name. O(map entries x log).

    ``order`` is the places of the blocks, or the elements where there are no blocks, in the order
    in which threads take them, where that is another one.
    """
    found: Arrays = {}
    elements = order
    if variant is not None:
        found |= _of_blocks(shape, variant)
        if variant.elements is not None:
            elements = variant.elements if order is None else variant.elements[order]
    if elements is not None:
        found["order"] = elements
    for row in shape.placed:
        places = shape.plan.tables[int(str(row.table)[1:])].T
        found[str(row.table)] = np.ascontiguousarray(
            places[:, elements] if shape.permutes else places
        )
    for i, rows in enumerate(shape.local_pieces if variant is not None else ()):
        local = _beside(rows, lambda name: variant.local[name].T, shape)  # type: ignore[union-attr]
        found[f"local{i}"] = local if order is None else local[order]
    for i, rows in enumerate(shape.map_pieces):
        points = _beside(rows, lambda name: shape.plan.maps[name].table, shape)
        found[f"map{i}"] = points[elements] if shape.permutes else points
    if order is not None and "thread_colour" in found:
        found["thread_colour"] = found["thread_colour"][order]
    return found


def _beside(
    rows: Sequence[Row], table_of: Callable[[str], NDArray[Any]], shape: LoopShape
) -> NDArray[Any]:
    """The columns of maps that some rows need, beside each other."""
    names = [shape.loop.maps[int(str(row.table)[1:])] for row in rows]
    columns = [table_of(name)[:, r.column] for name, r in zip(names, rows, strict=True)]
    return np.column_stack(columns)


def parameters(shape: LoopShape, arrays: Arrays) -> tuple[Parameter, ...]:
    """The parameters in their order: arrays of the plan, dats, then numbers."""
    fixed = [Parameter(n, "in", C_TYPES[a.dtype.str[1:]]) for n, a in arrays.items()]
    dats = [
        Parameter(
            f"s{i}", "out" if slot.written and i not in shape.reduced else "in", shape.c_type(i)
        )
        for i, slot in enumerate(shape.slots)
    ]
    partial = [Parameter(f"partial{i}", "out", shape.c_type(i)) for i in shape.reduced]
    if shape.strategy.adds == "apart":
        partial += [Parameter(f"t{i}", "out", shape.c_type(i)) for i in shape.added]
    # A block knows where it ends; a launch of elements has to be told.
    ends = ["first"] if shape.strategy.blocks else ["first", "last"]
    ends += ["parts", "part"] if shape.reduced else []
    numbers = [Parameter(name, "size") for name in [*sizes(shape), *ends]]
    return (*fixed, *dats, *partial, *numbers)


def sizes(shape: LoopShape) -> dict[str, int]:
    """The numbers that are the same in every launch: of elements, and of each SoA dat's points."""
    found = {"size": shape.plan.sizes[shape.loop.over]}
    for i, slot in enumerate(shape.slots):
        if slot.soa:
            found[f"n_s{i}"] = slot.shape[1]
    return found


def shared_bytes(shape: LoopShape, variant: Variant | None) -> int:
    """Bytes of shared memory that the largest block takes."""
    reduced = [shape.threads * shape.slots[i].dtype.itemsize for i in shape.reduced]
    return max([0, _staged_bytes(shape, variant) if variant is not None else 0, *reduced])


def _staged_bytes(shape: LoopShape, variant: Variant) -> int:
    need = np.zeros(variant.n_blocks, np.int64)
    for s, row in shape.shared_rows.items():
        need += row.stride * np.diff(variant.staging[shape.sets[s]].point_offset)
    for i in shape.gathered:
        adding = sum(r.adds for r in shape.rows_to(i))
        one = shape.slots[i].dim * shape.slots[i].dtype.itemsize
        need += one * adding * np.diff(variant.block_offset)
    return int(need.max(initial=0))


def _of_blocks(shape: LoopShape, v: Variant) -> Arrays:
    found: Arrays = {"blocks": _heads(shape, v)}
    if shape.takes_turns:
        found["thread_colour"] = v.thread_colour
    for s in shape.used_sets:
        found[f"points{s}"] = v.staging[shape.sets[s]].points
        if shape.roles and any(shape.set_of(i) == s for i in shape.committed):
            found[f"role{s}"] = _roles(shape, v, s)
    for i in shape.gathered:
        found[f"gather_offset{i}"], found[f"gather{i}"] = _incidences(shape, v, i)
    return found


def _heads(shape: LoopShape, v: Variant) -> NDArray[Any]:
    """A row for each block, in launch order; in one launch neighbours share cached values."""
    order = np.arange(v.n_blocks) if shape.commit == "atomics" else v.block_order
    columns = {
        "begin": v.block_offset[:-1],
        "count": np.diff(v.block_offset),
        "colours": v.thread_colours,
        "block": np.arange(v.n_blocks),
    }
    for s in shape.used_sets:
        offset = v.staging[shape.sets[s]].point_offset
        columns |= {f"from{s}": offset[:-1], f"many{s}": np.diff(offset)}
    names, piece = shape.head, shape.head_piece
    rows = np.zeros((v.n_blocks, -(-len(names) // piece) * piece), shape.index_type)
    for k, name in enumerate(names):
        rows[:, k] = columns[name][order]
    return rows


def _roles(shape: LoopShape, v: Variant, s: int) -> NDArray[np.uint8]:
    """For each staged point: 0 not written by its block, 1 to be written plainly, 2 atomically.

    A staged point that the block only reads may be written by another block of its colour: adding
    zero to it would be a race.
    """
    staging = v.staging[shape.sets[s]]
    written = np.zeros(staging.points.size, bool)
    start = np.repeat(staging.point_offset[:-1], np.diff(v.block_offset))
    for name, columns in shape.loop.conflict_columns.items():
        if shape.plan.maps[name].to_set == shape.sets[s]:
            for column in columns:
                written[start + v.local[name][column]] = True
    plain = staging.exclusive.astype(bool) | (shape.commit == "colours")
    return np.where(written, np.where(plain, 1, 2), 0).astype(np.uint8)


def _incidences(shape: LoopShape, v: Variant, slot: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The local map transposed: which places of a block each staged point sums [G10 section 10].

    Each block has a place for every element and row that adds, and for its staged points and their
    end an offset from its first place.
    """
    staging = v.staging[shape.sets[shape.set_of(slot)]]
    count = np.diff(v.block_offset)
    start = np.repeat(staging.point_offset[:-1], count)
    thread = ranges(0, count)
    points, places = [], []
    adding = [r for r in shape.rows_to(slot) if r.adds]
    for j, row in enumerate(adding):
        name = shape.loop.maps[int(str(row.table)[1:])]
        points.append(start + v.local[name][row.column])
        places.append(thread + j * np.repeat(count, count))
    point, place = np.concatenate(points), np.concatenate(places)
    ends = np.cumsum(np.bincount(point, minlength=staging.points.size))
    many = np.diff(staging.point_offset)
    first = len(adding) * v.block_offset[:-1]
    offset = np.zeros(staging.points.size + many.size, np.int64)
    # Where the offset after each staged point lies.
    after = np.arange(1, ends.size + 1) + np.repeat(np.arange(many.size), many)
    offset[after] = ends - np.repeat(first, many)
    kind = np.uint16 if len(adding) * MOST_THREADS <= np.iinfo(np.uint16).max else np.int32
    return offset.astype(kind), place[np.argsort(point, kind="stable")].astype(kind)
