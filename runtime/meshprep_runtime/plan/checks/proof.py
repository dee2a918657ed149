"""The proof of one variant: blocks, staging lists, local maps, and no race between any two writers.

Independent of the code that builds plans: gathers, scatters and counting only, so that the proof
costs little beside the planning and every plan is proved before it is saved. Every check assumes
what :mod:`structure` has checked, so that indices are safe.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...types.loops import Arg
from ...types.maps import Bools, Int32s, Int64s, distinct, rows_of_entries
from ..model import LoopPlan, Ranges, Variant

if TYPE_CHECKING:
    from ..matrices import MatrixPlan


class Case(NamedTuple):
    """A variant under proof."""

    loop_plan: LoopPlan
    variant: Variant
    where: str  # how findings begin
    block: Int32s  # of every place

    def element(self, place: int) -> int:
        """The element at a place."""
        return place if self.variant.elements is None else int(self.variant.elements[place])


class StagedColumn(NamedTuple):
    """A column of a map, place by place: the point, and where it stands among all staged points."""

    map: str
    number: int
    points: Int32s
    slot: Int64s
    written: bool


def prove(loop_plan: LoopPlan, variant: Variant) -> list[str]:
    """Findings about one variant, empty when it is right.

    A line for each broken property, naming the first place and how many more there are. Races are
    looked for where staging lists and local maps are right. ``variant`` has passed
    :func:`structure.check_variant`. O(a) for ``a`` accesses of the loop; some 40 bytes of memory an
    access of one to-set.
    """
    where = f"loop '{loop_plan.loop.name}', variant '{variant.name}'"
    case = Case(loop_plan, variant, where, variant.block_of_place())
    lengths = np.diff(variant.block_offset)
    findings = [*_blocks(case, lengths), *_block_order(case)]
    if not findings:
        findings += _thread_colours(case, lengths)
    # What follows needs dense blocks and colours.
    if findings:
        return findings
    for to_set in dict.fromkeys(loop_plan.maps[m].to_set for m in loop_plan.loop.maps):
        columns = _columns(case, to_set, lengths)
        block = rows_of_entries(variant.staging[to_set].point_offset)
        wrong = [*_staging(case, to_set, columns, block)]
        slots = [column.slot for column in columns if column.written]
        if slots and not wrong:
            wrong += _thread_races(case, to_set, slots)
            wrong += _block_races(case, to_set, slots, block, every=len(slots) == len(columns))
        findings += wrong
    return findings


def _columns(case: Case, to_set: str, lengths: Int64s) -> list[StagedColumn]:
    """Every column of the loop's maps into a set."""
    start = np.repeat(case.variant.staging[to_set].point_offset[:-1], lengths)
    loop, found = case.loop_plan.loop, []
    for name in loop.maps:
        m, local = case.loop_plan.maps[name], case.variant.local[name]
        written = loop.conflict_columns.get(name, ())
        if m.to_set == to_set:
            table = case.variant.by_place(m.table)
            found += [
                StagedColumn(name, k, table[:, k], start + local[k], k in written)
                for k in range(m.arity)
            ]
    return found


def _blocks(case: Case, lengths: Int64s) -> Iterator[str]:
    if (elements := case.variant.elements) is not None:
        count = np.bincount(elements, minlength=elements.size)
        if (count != 1).any():
            e = int(np.argmax(count != 1))
            yield (
                f"{case.where}: elements is no permutation: element {e} stands {count[e]} times"
                f"{more(count != 1)}"
            )
    cap = case.variant.block_size
    large, empty = lengths > cap, lengths == 0
    if large.any():
        b = int(np.argmax(large))
        yield f"{case.where}: block {b} has {lengths[b]} elements, more than {cap}{more(large)}"
    if empty.any():
        yield f"{case.where}: block {int(np.argmax(empty))} is empty{more(empty)}"


def _block_order(case: Case) -> Iterator[str]:
    order, offset = case.variant.block_order, case.variant.block_colour_offset
    count = np.bincount(order, minlength=case.variant.n_blocks)
    if (count != 1).any():
        b = int(np.argmax(count != 1))
        yield f"{case.where}: block_order names block {b} {count[b]} times, not once"
        return
    falls = np.diff(order) < 0
    falls[offset[(offset > 0) & (offset < order.size)] - 1] = False
    if falls.any():
        at = int(np.argmax(falls)) + 1
        yield (
            f"{case.where}: block {order[at]} follows block {order[at - 1]} in its colour: "
            "blocks must ascend"
        )


def _thread_colours(case: Case, lengths: Int64s) -> Iterator[str]:
    colour, offset = case.variant.thread_colour, case.variant.block_offset
    if not colour.size:
        return
    needed = np.maximum.reduceat(colour, offset[:-1]).astype(np.int64) + 1
    wrong = case.variant.thread_colours != needed
    if wrong.any():
        b = int(np.argmax(wrong))
        yield (
            f"{case.where}: block {b} has thread colours 0..{needed[b] - 1}, but thread_colours "
            f"says {case.variant.thread_colours[b]}{more(wrong)}"
        )
    many = needed > lengths
    if many.any():
        b = int(np.argmax(many))
        yield (
            f"{case.where}: block {b} has {needed[b]} thread colours for {lengths[b]} elements"
            f"{more(many)}"
        )
    if case.variant.sorted_by_colour:
        falls = (colour[1:] < colour[:-1]) & (case.block[1:] == case.block[:-1])
        if falls.any():
            e = int(np.argmax(falls)) + 1
            yield (
                f"{case.where}: block {case.block[e]} is not sorted by thread colour at element "
                f"{case.element(e)}{more(falls)}"
            )


def _staging(case: Case, to_set: str, columns: list[StagedColumn], block: Int32s) -> Iterator[str]:
    """The staging list is what the block touches, ascending, each point once.

    Where lists ascend, every local index leads to the point of the map, and every staged point has
    a local index that leads to it, the lists are exactly the points that the blocks touch.
    """
    staging = case.variant.staging[to_set]
    where = f"{case.where}, set '{to_set}'"
    falls = (np.diff(staging.points) <= 0) & (block[1:] == block[:-1])
    if falls.any():
        b = block[int(np.argmax(falls)) + 1]
        yield f"{where}: the staging list of block {b} does not ascend{more(falls)}"
        return
    used = np.zeros(staging.points.size, dtype=np.bool_)
    wrong = []
    for column in columns:
        used[column.slot] = True
        wrong.append(staging.points[column.slot] != column.points)
    if not used.all() or any(map(np.any, wrong)):
        yield from _unlike_lists(case, to_set, columns, wrong, block)
        yield from _unlike_maps(case, columns, wrong)
        return
    alone = np.bincount(staging.points)[staging.points] == 1
    unlike = alone != staging.exclusive
    if unlike.any():
        at = int(np.argmax(unlike))
        word = "exclusive" if staging.exclusive[at] else "not exclusive"
        yield (
            f"{where}: point {staging.points[at]} is marked {word} in block {block[at]}, "
            f"which is wrong{more(unlike)}"
        )


def _unlike_lists(
    case: Case, to_set: str, columns: list[StagedColumn], wrong: list[Bools], block: Int32s
) -> Iterator[str]:
    """Points that a block touches and does not stage, and the other way round."""
    unused = np.ones(case.variant.staging[to_set].points.size, dtype=np.bool_)
    for column, w in zip(columns, wrong, strict=True):
        unused[column.slot[~w]] = False
    n_to = case.loop_plan.rows_of(to_set)
    staged = block.astype(np.int64) * n_to + case.variant.staging[to_set].points
    keys = [
        case.block[w].astype(np.int64) * n_to + column.points[w]
        for column, w in zip(columns, wrong, strict=True)
    ]
    touched = distinct(np.concatenate(keys))
    missing = np.setdiff1d(touched, staged, assume_unique=True)
    beyond = np.setdiff1d(staged[unused], touched, assume_unique=True)
    for found, what in ((missing, "lacks"), (beyond, "has superfluous")):
        if found.size:
            b, point = divmod(int(found[0]), n_to)
            more = f" ({found.size - 1} more)" if found.size > 1 else ""
            where = f"{case.where}, set '{to_set}'"
            yield f"{where}: the staging list of block {b} {what} point {point}{more}"


def _unlike_maps(case: Case, columns: list[StagedColumn], wrong: list[Bools]) -> Iterator[str]:
    """Local maps that do not lead to the point of the map."""
    for column, unlike in zip(columns, wrong, strict=True):
        if unlike.any():
            e = int(np.argmax(unlike))
            to_set = case.loop_plan.maps[column.map].to_set
            found = case.variant.staging[to_set].points[column.slot[e]]
            yield (
                f"{case.where}: local map '{column.map}' takes element {case.element(e)} of block "
                f"{case.block[e]}, column {column.number} to point {found}, the map to "
                f"{column.points[e]}{more(unlike)}"
            )


def _thread_races(case: Case, to_set: str, slots: list[Int64s]) -> Iterator[str]:
    """No two elements of one thread colour in a block write one point."""
    staging = case.variant.staging[to_set]
    place = np.arange(case.block.size, dtype=np.int32)
    races = _races(slots, place, case.variant.thread_colour, staging.points.size)
    if races.size:
        at, p1, p2 = min(races.tolist(), key=lambda race: race[1:])
        more = f" ({len(races) - 1} more)" if len(races) > 1 else ""
        yield (
            f"{case.where}, set '{to_set}': elements {case.element(p1)} and {case.element(p2)} of "
            f"block {case.block[p1]} have thread colour {case.variant.thread_colour[p1]} and both "
            f"write point {staging.points[at]}{more}"
        )


def _block_races(
    case: Case, to_set: str, slots: list[Int64s], block: Int32s, *, every: bool
) -> Iterator[str]:
    """No two blocks of one colour write one point; ``every`` column of the maps is written."""
    points = case.variant.staging[to_set].points
    # some column leads to every staged point, as was proved
    if not every:
        written = np.zeros(points.size, dtype=np.bool_)
        for slot in slots:
            written[slot] = True
        block, points = block[written], points[written]
    few = case.variant.n_block_colours < 1 << 16
    colour = case.variant.colour_of_block().astype(np.uint16 if few else np.int32, copy=False)
    races = _races([points], block, colour[block], case.loop_plan.rows_of(to_set))
    if races.size:
        point, b1, b2 = min(races.tolist(), key=lambda race: race[1:])
        more = f" ({len(races) - 1} more)" if len(races) > 1 else ""
        yield (
            f"{case.where}, set '{to_set}': blocks {b1} and {b2} have block colour "
            f"{colour[b1]} and both write point {point}{more}"
        )


def _races(
    columns: list[NDArray[Any]], writer: Int32s, colour: NDArray[Any], n_places: int
) -> Int64s:
    """Rows ``place, writer, other writer`` (ascending) of those of one colour that share a place.

    The writers of a colour sign the places that they write, and none may lose a signature. A writer
    that names a place twice signs it twice.
    """
    signature = np.empty(n_places, dtype=np.int32)
    found = [np.empty((0, 3), dtype=np.int64)]
    # NumPy sorts integers of 8 and 16 bits in linear time
    order = np.argsort(colour, kind="stable")
    for entries in np.split(order, np.cumsum(np.bincount(colour))[:-1]):
        places, writers = [column[entries] for column in columns], writer[entries]
        for written in places:
            signature[written] = writers
        for written in places:
            lost = signature[written] != writers
            if lost.any():
                pair = np.stack([writers[lost], signature[written[lost]]], axis=1)
                found.append(np.column_stack([written[lost], np.sort(pair, axis=1)]))
    return np.concatenate(found)


def more(wrong: Bools) -> str:
    """How many are wrong besides the first, for a message."""
    count = int(np.count_nonzero(wrong)) - 1
    return f" ({count} more)" if count else ""


def prove_ranges(loop_plan: LoopPlan, ranges: Ranges) -> list[str]:
    """Findings about the ranges of a loop, empty where all that write one point run in turn.

    Of the turns that write a point each must wait for the one before it, so that it comes after all
    of them. ``ranges`` have passed :func:`structure.check_ranges`, and the default variant
    :func:`prove`. O(a) for ``a`` accesses.
    """
    order, loop, findings = ranges.order, loop_plan.loop, []
    turn = np.empty_like(order)
    turn[order] = np.arange(order.size, dtype=np.int32)
    own = turn[rows_of_entries(ranges.offset)]
    if loop_plan.variants:
        own = loop_plan.variant().by_element(own)
    awaited = rows_of_entries(ranges.wait_offset).astype(np.int64) * order.size + ranges.waits
    written: dict[str, list[Int32s]] = {}
    for name, index in loop.conflict_columns.items():
        m = loop_plan.maps[name]
        written.setdefault(m.to_set, []).extend(m.table[:, k] for k in index)
    for to_set, columns in written.items():
        point, turns = _writers(columns, own, loop_plan.rows_of(to_set))
        pair = np.flatnonzero(point[1:] == point[:-1])
        missing = ~np.isin(turns[pair + 1] * order.size + turns[pair], awaited)
        if missing.any():
            at = int(pair[np.argmax(missing)])
            findings.append(
                f"loop '{loop.name}', set '{to_set}': ranges {order[turns[at]]} and "
                f"{order[turns[at + 1]]} both write point {point[at]}, and neither waits for the "
                f"other{more(missing)}"
            )
    return findings


def _writers(columns: list[Int32s], turn: Int32s, n_points: int) -> tuple[Int64s, Int64s]:
    """Points of several turns and the turns that write them: pairs, ascending, each once."""
    last, shared = np.full(n_points, -1, np.int32), np.zeros(n_points, np.bool_)
    for points in columns:
        last[points] = turn
    for points in columns:
        shared[points[last[points] != turn]] = True
    keys = [np.zeros(0, np.int64)]
    most = int(turn.max(initial=0)) + 1
    for points in columns:
        entry = np.flatnonzero(shared[points])
        keys.append(points[entry].astype(np.int64) * most + turn[entry])
    point, turns = np.divmod(distinct(np.concatenate(keys)), most)
    return point, turns


def prove_matrix(matrix: "MatrixPlan", loops: Mapping[str, LoopPlan]) -> list[str]:
    """Findings about one matrix, empty when it is right.

    A line for each broken property, naming the first place and how many more there are. Checked:
    columns ascend in each row; each entry of each element's matrix is added in its row and column,
    or has no place where one of the two is constrained; every nonzero is added to. ``matrix`` and
    ``loops`` have passed :func:`structure.check_plan`. O(entries of all elements' matrices), one
    entry of all elements at a time.
    """
    row = rows_of_entries(matrix.row_ptr)
    used = np.zeros(matrix.columns.size, np.bool_)
    findings, falls = [], (np.diff(matrix.columns) <= 0) & (row[1:] == row[:-1])
    if falls.any():
        at = row[int(np.argmax(falls))]
        findings.append(
            f"matrix '{matrix.name}': the columns of row {at} do not ascend{more(falls)}"
        )
    for loop_plan in loops.values():
        for arg in loop_plan.loop.matrices:
            if arg.name == matrix.name:
                findings += _matrix_places(matrix, row, loop_plan, arg, used)
    if not findings and not used.all():
        at = int(np.argmin(used))
        findings.append(
            f"matrix '{matrix.name}': nothing is added at row {row[at]}, column "
            f"{matrix.columns[at]}{more(~used)}"
        )
    return findings


def _matrix_places(
    matrix: "MatrixPlan", row: Int32s, loop_plan: LoopPlan, arg: Arg, used: Bools
) -> Iterator[str]:
    """Wrong places of one loop; those that are right are noted in ``used``."""
    rows, columns = loop_plan.maps[str(arg.map)], loop_plan.maps[str(arg.columns)]
    for k, place in enumerate(matrix.place[loop_plan.loop.name].T):
        i, j = divmod(k, columns.arity)
        r, c = matrix.row_of[rows.table[:, i]], matrix.column_of[columns.table[:, j]]
        free, has = (r >= 0) & (c >= 0), place >= 0
        used[place[has]] = True
        wrong = free != has
        both = np.flatnonzero(free & has)
        at = place[both]
        wrong[both] = (row[at] != r[both]) | (matrix.columns[at] != c[both])
        if wrong.any():
            e = int(np.argmax(wrong))
            yield (
                f"loop '{loop_plan.loop.name}', matrix '{matrix.name}': element {e}, local row "
                f"{i}, column {j} is added at nonzero {place[e]}, not at row {r[e]}, column "
                f"{c[e]}{more(wrong)}"
            )
            return
