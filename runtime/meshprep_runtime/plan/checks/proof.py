"""The proof of variants, ranges and matrices: all lists are right, and no two writers race.

It is independent of the code that makes plans. It gathers, scatters and counts, which costs
little beside planning; so every plan is proved before it is saved. All checks rely on those
of :mod:`.structure`, so that indices are safe.
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
    """A variant under proof.

    ``where`` begins its findings; ``block`` is the block of every place.
    """

    loop_plan: LoopPlan
    variant: Variant
    where: str
    block: Int32s

    def element(self, place: int) -> int:
        """The element at a place."""
        if self.variant.elements is None:
            return place
        return int(self.variant.elements[place])


class StagedColumn(NamedTuple):
    """A column of a map, place by place.

    ``points`` are the points that the map leads to; ``slot`` is the entry of the staging
    lists that the local map leads to.
    """

    map: str
    number: int
    points: Int32s
    slot: Int64s
    written: bool


def prove(loop_plan: LoopPlan, variant: Variant) -> list[str]:
    """Findings about one variant, empty when it is right.

    There is a line for each broken property, which names the first fault and counts the
    others. Races are looked for where staging lists and local maps are right. ``variant``
    has passed :func:`.structure.check_variant`. O(a) for ``a`` accesses of the loop; takes
    some 40 bytes of memory for each access of one to-set.
    """
    where = f"loop '{loop_plan.loop.name}', variant '{variant.name}'"
    case = Case(
        loop_plan=loop_plan, variant=variant, where=where, block=variant.block_of_place()
    )
    # Prove what is true of blocks and colours alone.
    lengths = np.diff(variant.block_offset)
    findings = [*_check_blocks(case, lengths), *_block_order(case)]
    if not findings:
        findings += _thread_colours(case, lengths)
    # The next checks rely on blocks and colours without gaps.
    if findings:
        return findings
    # Prove set after set what blocks stage, and that those who write a point take turns.
    for to_set in dict.fromkeys(loop_plan.maps[m].to_set for m in loop_plan.loop.maps):
        columns = _columns(case, to_set, lengths)
        block = rows_of_entries(variant.staging[to_set].point_offset)
        findings_of_set = [
            *_staging(case=case, to_set=to_set, columns=columns, block=block)
        ]
        slots = [column.slot for column in columns if column.written]
        if slots and not findings_of_set:
            findings_of_set += _thread_races(case, to_set, slots)
            findings_of_set += _block_races(
                case=case,
                to_set=to_set,
                slots=slots,
                block=block,
                all_columns=len(slots) == len(columns),
            )
        findings += findings_of_set
    return findings


def _columns(case: Case, to_set: str, lengths: Int64s) -> list[StagedColumn]:
    """Every column of the loop's maps into a set."""
    # The first entry of the staging list of each place's block.
    start = np.repeat(case.variant.staging[to_set].point_offset[:-1], lengths)
    loop = case.loop_plan.loop
    columns = []
    for name in loop.maps:
        m = case.loop_plan.maps[name]
        if m.to_set != to_set:
            continue
        local = case.variant.local[name]
        # Join where each place's point stands in the staging list, and whether it is
        # written.
        written = loop.conflict_columns.get(name, ())
        table = case.variant.by_place(m.table)
        for k in range(m.arity):
            column = StagedColumn(
                map=name,
                number=k,
                points=table[:, k],
                slot=start + local[k],
                written=k in written,
            )
            columns.append(column)
    return columns


def _check_blocks(case: Case, lengths: Int64s) -> Iterator[str]:
    """Blocks list every element once, and none is empty."""
    elements = case.variant.elements
    if elements is not None:
        count = np.bincount(elements, minlength=elements.size)
        if (count != 1).any():
            e = int(np.argmax(count != 1))
            yield (
                f"{case.where}: elements is no permutation: element {e} stands "
                f"{count[e]} times{and_more(count != 1)}"
            )
    empty = lengths == 0
    if empty.any():
        yield f"{case.where}: block {int(np.argmax(empty))} is empty{and_more(empty)}"


def _block_order(case: Case) -> Iterator[str]:
    """The order names every block once, ascending inside a colour."""
    order = case.variant.block_order
    offset = case.variant.block_colour_offset
    count = np.bincount(order, minlength=case.variant.n_blocks)
    if (count != 1).any():
        b = int(np.argmax(count != 1))
        yield f"{case.where}: block_order names block {b} {count[b]} times, not once"
        return
    falls = np.diff(order) < 0
    # From one colour to the next, numbers may fall.
    falls[offset[(offset > 0) & (offset < order.size)] - 1] = False
    if falls.any():
        i = int(np.argmax(falls)) + 1
        yield (
            f"{case.where}: block {order[i]} follows block {order[i - 1]} in its colour: "
            "blocks must ascend"
        )


def _thread_colours(case: Case, lengths: Int64s) -> Iterator[str]:
    """Each block has the right number of colours, and its elements are sorted."""
    colour = case.variant.thread_colour
    offset = case.variant.block_offset
    if not colour.size:
        return
    # Compare the number of colours with those that occur.
    needed = np.maximum.reduceat(colour, offset[:-1]).astype(np.int64) + 1
    wrong = case.variant.thread_colours != needed
    if wrong.any():
        b = int(np.argmax(wrong))
        yield (
            f"{case.where}: block {b} has thread colours 0..{needed[b] - 1}, "
            f"but thread_colours says {case.variant.thread_colours[b]}{and_more(wrong)}"
        )
    # A colour without an element would be a barrier for nothing.
    too_many = needed > lengths
    if too_many.any():
        b = int(np.argmax(too_many))
        yield (
            f"{case.where}: block {b} has {needed[b]} thread colours for {lengths[b]} "
            f"elements{and_more(too_many)}"
        )
    # Elements of a colour stand side by side in sorted blocks.
    if case.variant.sorted_by_colour:
        falls = (colour[1:] < colour[:-1]) & (case.block[1:] == case.block[:-1])
        if falls.any():
            e = int(np.argmax(falls)) + 1
            yield (
                f"{case.where}: block {case.block[e]} is not sorted by thread colour at "
                f"element {case.element(e)}{and_more(falls)}"
            )


def _staging(
    case: Case, to_set: str, columns: list[StagedColumn], block: Int32s
) -> Iterator[str]:
    """The staging list of a block has the points that the block touches, ascending.

    This holds where lists ascend, every local index leads to the point of the map, and some
    local index leads to every staged point.
    """
    staging = case.variant.staging[to_set]
    where = f"{case.where}, set '{to_set}'"
    # Ascending lists name each point once.
    falls = (np.diff(staging.points) <= 0) & (block[1:] == block[:-1])
    if falls.any():
        b = block[int(np.argmax(falls)) + 1]
        yield f"{where}: the staging list of block {b} does not ascend{and_more(falls)}"
        return
    # Compare the points that local indices lead to with those of the map, column by column.
    used = np.zeros(staging.points.size, dtype=np.bool_)
    differs = []
    for column in columns:
        used[column.slot] = True
        differs.append(staging.points[column.slot] != column.points)
    if not used.all() or any(map(np.any, differs)):
        yield from _wrong_lists(
            case=case, to_set=to_set, columns=columns, differs=differs, block=block
        )
        yield from _wrong_local_maps(case, columns, differs)
        return
    # A point of one block is written without taking turns, so the mark must be right.
    is_exclusive = np.bincount(staging.points)[staging.points] == 1
    wrong = is_exclusive != staging.exclusive
    if wrong.any():
        i = int(np.argmax(wrong))
        mark = "not exclusive"
        if staging.exclusive[i]:
            mark = "exclusive"
        yield (
            f"{where}: point {staging.points[i]} is marked {mark} in block {block[i]}, "
            f"which is wrong{and_more(wrong)}"
        )


def _wrong_lists(
    case: Case,
    to_set: str,
    columns: list[StagedColumn],
    differs: list[Bools],
    block: Int32s,
) -> Iterator[str]:
    """Points that a block touches and does not stage, and points that it stages in vain.

    ``differs`` says for each column at which places the local map leads to another point
    than the map.
    """
    # Find the staged points that no right local index leads to, and the points of the map
    # at all places with a wrong one; a key stands for a block and a point.
    unused = np.ones(case.variant.staging[to_set].points.size, dtype=np.bool_)
    n_to = case.loop_plan.rows_of(to_set)
    keys = []
    for column, wrong in zip(columns, differs, strict=True):
        unused[column.slot[~wrong]] = False
        keys.append(case.block[wrong].astype(np.int64) * n_to + column.points[wrong])
    # Compare them, block by block.
    touched = distinct(np.concatenate(keys))
    staged = block.astype(np.int64) * n_to + case.variant.staging[to_set].points
    missing = np.setdiff1d(touched, staged, assume_unique=True)
    superfluous = np.setdiff1d(staged[unused], touched, assume_unique=True)
    for wrong_keys, verb in ((missing, "lacks"), (superfluous, "has superfluous")):
        if wrong_keys.size:
            b, point = divmod(int(wrong_keys[0]), n_to)
            yield (
                f"{case.where}, set '{to_set}': the staging list of block {b} {verb} "
                f"point {point}{and_others(wrong_keys.size)}"
            )


def _wrong_local_maps(
    case: Case, columns: list[StagedColumn], differs: list[Bools]
) -> Iterator[str]:
    """Local maps that do not lead to the point of the map."""
    for column, wrong in zip(columns, differs, strict=True):
        if wrong.any():
            e = int(np.argmax(wrong))
            to_set = case.loop_plan.maps[column.map].to_set
            point = case.variant.staging[to_set].points[column.slot[e]]
            yield (
                f"{case.where}: local map '{column.map}' takes element {case.element(e)} "
                f"of block {case.block[e]}, column {column.number} to point {point}, "
                f"the map to {column.points[e]}{and_more(wrong)}"
            )


def _thread_races(case: Case, to_set: str, slots: list[Int64s]) -> Iterator[str]:
    """No two elements of one thread colour in a block write one point."""
    # Each place is a writer of its own; points are told by their staging slots.
    staging = case.variant.staging[to_set]
    place = np.arange(case.block.size, dtype=np.int32)
    races = _races(
        columns=slots,
        writer=place,
        colour=case.variant.thread_colour,
        n_places=staging.points.size,
    )
    if races.size:
        slot, p1, p2 = min(races.tolist(), key=lambda race: race[1:])
        yield (
            f"{case.where}, set '{to_set}': elements {case.element(p1)} and "
            f"{case.element(p2)} of block {case.block[p1]} have thread colour "
            f"{case.variant.thread_colour[p1]} and both write point "
            f"{staging.points[slot]}{and_others(len(races))}"
        )


def _block_races(
    case: Case, to_set: str, slots: list[Int64s], block: Int32s, *, all_columns: bool
) -> Iterator[str]:
    """No two blocks of one colour write one point.

    ``all_columns`` says that all columns of the maps are written: then all staged points
    are, too, as some column leads to each of them.
    """
    points = case.variant.staging[to_set].points
    # Leave out what the block only reads.
    if not all_columns:
        written = np.zeros(points.size, dtype=np.bool_)
        for slot in slots:
            written[slot] = True
        block = block[written]
        points = points[written]
    colour: NDArray[Any] = case.variant.colour_of_block()
    if case.variant.n_block_colours < 1 << 16:
        # NumPy sorts integers of 16 bits in linear time.
        colour = colour.astype(np.uint16)
    races = _races(
        columns=[points],
        writer=block,
        colour=colour[block],
        n_places=case.loop_plan.rows_of(to_set),
    )
    if races.size:
        point, b1, b2 = min(races.tolist(), key=lambda race: race[1:])
        yield (
            f"{case.where}, set '{to_set}': blocks {b1} and {b2} have block colour "
            f"{colour[b1]} and both write point {point}{and_others(len(races))}"
        )


def _races(
    columns: list[NDArray[Any]], writer: Int32s, colour: NDArray[Any], n_places: int
) -> Int64s:
    """The pairs of writers of one colour that write one place.

    Rows are ``place, writer, other writer``, the two writers ascending. The writers of a
    colour sign the places that they write; where a signature is lost, two of them have
    signed. A writer that names a place twice signs it twice, and loses nothing.
    """
    signature = np.empty(n_places, dtype=np.int32)
    races = [np.empty((0, 3), dtype=np.int64)]
    # Sort the writers by colour; NumPy sorts integers of 8 and 16 bits in linear time.
    order = np.argsort(colour, kind="stable")
    for entries in np.split(order, np.cumsum(np.bincount(colour))[:-1]):
        places = [column[entries] for column in columns]
        writers = writer[entries]
        for written in places:
            signature[written] = writers
        for written in places:
            lost = signature[written] != writers
            if lost.any():
                pair = np.stack([writers[lost], signature[written[lost]]], axis=1)
                races.append(np.column_stack([written[lost], np.sort(pair, axis=1)]))
    return np.concatenate(races)


def and_more(wrong: Bools) -> str:
    """The number of faults besides the first, for a message; empty for a single one."""
    return and_others(int(np.count_nonzero(wrong)))


def and_others(count: int) -> str:
    """As :func:`and_more`, for a number of faults."""
    if count > 1:
        return f" ({count - 1} more)"
    return ""


def prove_ranges(loop_plan: LoopPlan, ranges: Ranges) -> list[str]:
    """Findings about the ranges of a loop, empty where writers of a point take turns.

    Each of the turns that write a point must wait for the one before it: so it begins after
    all of them. ``ranges`` have passed :func:`.structure.check_ranges`, and the default
    variant :func:`prove`. O(a) for ``a`` accesses.
    """
    order = ranges.order
    loop = loop_plan.loop
    # Find the turn of each range, and by it that of each element.
    turn_of_range = np.empty_like(order)
    turn_of_range[order] = np.arange(order.size, dtype=np.int32)
    turn = turn_of_range[rows_of_entries(ranges.offset)]
    if loop_plan.variants:
        turn = loop_plan.variant().by_element(turn)
    # A key stands for a turn, and one that it waits for.
    waiting = rows_of_entries(ranges.wait_offset).astype(np.int64)
    waits = waiting * order.size + ranges.waits

    # Collect the columns through which the loop writes each set.
    columns_of_set: dict[str, list[Int32s]] = {}
    for name, index in loop.conflict_columns.items():
        m = loop_plan.maps[name]
        columns_of_set.setdefault(m.to_set, []).extend(m.table[:, k] for k in index)
    # Sort the turns at each point: each must wait for the one before it.
    findings = []
    for to_set, columns in columns_of_set.items():
        point, turns = _turns_at_points(columns, turn, loop_plan.rows_of(to_set))
        pair = np.flatnonzero(point[1:] == point[:-1])
        missing = ~np.isin(turns[pair + 1] * order.size + turns[pair], waits)
        if missing.any():
            i = int(pair[np.argmax(missing)])
            findings.append(
                f"loop '{loop.name}', set '{to_set}': ranges {order[turns[i]]} and "
                f"{order[turns[i + 1]]} both write point {point[i]}, and neither waits "
                f"for the other{and_more(missing)}"
            )
    return findings


def _turns_at_points(
    columns: list[Int32s], turn: Int32s, n_points: int
) -> tuple[Int64s, Int64s]:
    """The points that several turns write, and these turns: pairs, ascending, each once."""
    # Find the points of several turns: there the last turn that signs differs from another.
    last_turn = np.full(n_points, -1, np.int32)
    shared = np.zeros(n_points, np.bool_)
    for points in columns:
        last_turn[points] = turn
    for points in columns:
        shared[points[last_turn[points] != turn]] = True
    # List their turns.
    keys = [np.zeros(0, np.int64)]
    n_turns = int(turn.max(initial=0)) + 1
    for points in columns:
        entry = np.flatnonzero(shared[points])
        keys.append(points[entry].astype(np.int64) * n_turns + turn[entry])
    point, turns = np.divmod(distinct(np.concatenate(keys)), n_turns)
    return point, turns


def prove_matrix(matrix: "MatrixPlan", loops: Mapping[str, LoopPlan]) -> list[str]:
    """Findings about one matrix, empty when it is right.

    There is a line for each broken property, which names the first fault and counts the
    others. Columns must ascend in each row; each entry of the matrix of each element must
    be added in its row and column, or nowhere where one of the two is constrained; every
    nonzero must be added to. ``matrix`` and ``loops`` have passed
    :func:`.structure.check_plan`. O(entries of all elements' matrices), one entry of all
    elements at a time.
    """
    row = rows_of_entries(matrix.row_ptr)
    used = np.zeros(matrix.columns.size, np.bool_)
    findings = []
    # Ascending columns name each nonzero of a row once.
    falls = (np.diff(matrix.columns) <= 0) & (row[1:] == row[:-1])
    if falls.any():
        wrong_row = row[int(np.argmax(falls))]
        findings.append(
            f"matrix '{matrix.name}': the columns of row {wrong_row} do not ascend"
            f"{and_more(falls)}"
        )
    # Prove where each loop adds, and note what it reaches.
    for loop_plan in loops.values():
        for arg in loop_plan.loop.matrices:
            if arg.name == matrix.name:
                findings += _matrix_places(
                    matrix=matrix, row=row, loop_plan=loop_plan, arg=arg, used=used
                )
    # A nonzero that nothing adds to is memory and work in each product.
    if not findings and not used.all():
        nonzero = int(np.argmin(used))
        findings.append(
            f"matrix '{matrix.name}': nothing is added at row {row[nonzero]}, column "
            f"{matrix.columns[nonzero]}{and_more(~used)}"
        )
    return findings


def _matrix_places(
    matrix: "MatrixPlan", row: Int32s, loop_plan: LoopPlan, arg: Arg, used: Bools
) -> Iterator[str]:
    """Entries of a loop that are added at wrong nonzeros; marks all nonzeros in ``used``.

    ``row`` is the row of each nonzero.
    """
    rows = loop_plan.maps[str(arg.map)]
    columns = loop_plan.maps[str(arg.columns)]
    for k, nonzero in enumerate(matrix.place[loop_plan.loop.name].T):
        # Entry k of all elements belongs at rows r and columns c.
        i, j = divmod(k, columns.arity)
        r = matrix.row_of[rows.table[:, i]]
        c = matrix.column_of[columns.table[:, j]]
        is_free = (r >= 0) & (c >= 0)
        is_added = nonzero >= 0
        used[nonzero[is_added]] = True
        # Entries of constrained rows or columns are added nowhere, all others where they
        # belong.
        wrong = is_free != is_added
        elements = np.flatnonzero(is_free & is_added)
        n = nonzero[elements]
        wrong[elements] = (row[n] != r[elements]) | (matrix.columns[n] != c[elements])
        if wrong.any():
            e = int(np.argmax(wrong))
            yield (
                f"loop '{loop_plan.loop.name}', matrix '{matrix.name}': element {e}, "
                f"local row {i}, column {j} is added at nonzero {nonzero[e]}, "
                f"not at row {r[e]}, column {c[e]}{and_more(wrong)}"
            )
            return
