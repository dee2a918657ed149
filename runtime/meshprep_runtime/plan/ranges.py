"""Ranges of elements for the threads of a CPU, and the ranges that each waits for."""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from ..types.maps import Int32s, Int64s, distinct, rows_of_entries, run_offset
from .model import LoopPlan, Ranges, Variant

# The fewest elements of a range: with fewer, the counters of threads cost too much.
LEAST = 1024
# The most elements of a range: with more, threads wait for the last range of another one.
MOST = 8192
# The number of ranges of a set of few elements, and of the stretches that ranges begin in.
SEVERAL = 16
# The most ranges that a range shares written points with. With more, the order has no
# locality that larger ranges could lose.
NEIGHBOURS = 32
# The least number of turns from a range to one that waits for it, where the order allows:
# with up to eight threads, the first one is usually done by then.
AHEAD = 9


def ranges_for(plan: LoopPlan, cuts: Sequence[int] = ()) -> Ranges:
    """Cut the places of a loop into ranges of whole blocks of its default variant.

    Ranges that write a common point run one after the other, in an order that is the same
    for one thread and for several; so the bits of all sums are the same, too. No range
    crosses one of the ``cuts``, such as the end of a part's core; ranges before a cut run
    before those behind it. Where a range shares points with many others, as in an order
    without locality, ranges grow, in the end to a single one: threads would only wait. O(n
    + ranges^2).
    """
    # Aim at several ranges for each thread, of whole multiples of 256 places.
    variant = plan.variants.get(plan.default)
    n = plan.sizes[plan.loop.over]
    size = min(MOST, max(LEAST, n // SEVERAL // 256 * 256))
    while True:
        # Cut after about `size` places, at ends of blocks where there are blocks.
        ends = run_offset(n, size)
        if variant is not None and variant.n_blocks:
            block_offset = variant.block_offset
            next_end = np.searchsorted(block_offset, ends)
            ends = block_offset[np.minimum(next_end, block_offset.size - 1)]
        offset = np.unique(np.concatenate([[0, n], ends, np.minimum(cuts, n)]))
        offset = offset.astype(np.int64)
        # Too many pairs with common points: try ranges twice as long.
        pairs = _pairs_with_common_points(plan, variant, offset)
        if pairs is not None:
            n_cuts_before = np.searchsorted(cuts, offset[:-1], side="right")
            return _order_ranges(offset, pairs, n_cuts_before)
        size *= 2


def written_points(plan: LoopPlan, variant: Variant | None) -> Iterator[tuple[Int32s, int]]:
    """For each set written through maps: the points of each place, and their number.

    The points are a table with a row for each place.
    """
    tables_of_set: dict[str, list[Int32s]] = {}
    for name, columns in plan.loop.conflict_columns.items():
        # Columns that are only read make no conflict.
        table = plan.maps[name].table
        if len(columns) < table.shape[1]:
            table = table[:, columns]
        tables_of_set.setdefault(plan.maps[name].to_set, []).append(table)
    for to_set, tables in tables_of_set.items():
        # Several maps into one set write the same points: take them together.
        if len(tables) > 1:
            table = np.concatenate(tables, axis=1)
        else:
            table = tables[0]
        if variant is not None:
            table = variant.by_place(table)
        yield table, plan.rows_of(to_set)


def _pairs_with_common_points(
    plan: LoopPlan, variant: Variant | None, offset: Int64s
) -> Int64s | None:
    """The pairs of ranges that write a common point, the lower first, ``(pairs, 2)``.

    None where there are too many.
    """
    count = offset.size - 1
    range_of_place = rows_of_entries(offset)
    keys = [np.zeros(0, np.int64)]
    for table, n_points in written_points(plan, variant):
        # Find the points of several ranges: their lowest and highest range differ.
        lowest = np.full(n_points, count, np.int32)
        highest = np.zeros(n_points, np.int32)
        for column in table.T:
            np.minimum.at(lowest, column, range_of_place)
            np.maximum.at(highest, column, range_of_place)
        shared = (lowest < highest)[table]
        # List each of them with its ranges, point after point.
        range_of_entry = np.broadcast_to(range_of_place[:, None], table.shape)
        point_and_range = table[shared].astype(np.int64) * count + range_of_entry[shared]
        point, range_at_point = np.divmod(distinct(point_and_range), count)
        # Pair each range with the one that stands `step` later in the list of its point.
        for step in range(1, point.size):
            same_point = point[step:] == point[:-step]
            if not same_point.any():
                break
            if step > NEIGHBOURS and count > 1:
                return None
            low = range_at_point[:-step][same_point]
            high = range_at_point[step:][same_point]
            keys.append(distinct(low * count + high))
    pairs = distinct(np.concatenate(keys))
    if pairs.size > NEIGHBOURS * count:
        return None
    return np.stack(np.divmod(pairs, max(count, 1)), axis=1)


def _order_ranges(offset: Int64s, pairs: Int64s, part: NDArray[np.intp]) -> Ranges:
    """Put the ranges into the order in which they begin, ``part`` after ``part``.

    The order is that of several threads which each take a stretch of the set; so one thread
    can take the ranges nearly in the order of the set.
    """
    count = offset.size - 1
    # Prefer the first range of each stretch, then the second of each, and so on.
    stretch = np.arange(count) * SEVERAL // max(count, 1)
    number_in_stretch = np.arange(count) - np.searchsorted(stretch, stretch)
    preferred = np.lexsort((stretch, number_in_stretch))
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for low, high in pairs.tolist():
        neighbours[high].append(low)
        neighbours[low].append(high)

    # At each turn begin the first preferred range whose neighbours began long enough ago,
    # of the part that is not done; or else the one that has to wait least.
    last_turn_of_neighbours = np.full(count, -AHEAD)
    part_left = part.copy()
    order = np.empty(count, np.int32)
    for turn in range(count):
        turns_since = np.minimum(turn - last_turn_of_neighbours, AHEAD)
        rank = turns_since - (AHEAD + 1) * part_left
        r = preferred[np.argmax(rank[preferred])]
        order[turn] = r
        part_left[r] = count + 1
        last_turn_of_neighbours[neighbours[r]] = turn

    # Of each pair, the range with the later turn waits for the other one.
    turn_of_range = np.argsort(order)
    turns = np.sort(turn_of_range[pairs], axis=1)
    turns = turns[np.lexsort((turns[:, 0], turns[:, 1]))]
    wait_offset = np.searchsorted(turns[:, 1], np.arange(count + 1)).astype(np.int64)
    return Ranges(
        offset=offset,
        order=order,
        wait_offset=wait_offset,
        waits=turns[:, 0].astype(np.int32),
    )


def runs_of(ranges: Ranges) -> Int64s:
    """The runs of places that one thread takes, with the same bits, ``(runs, 2)``.

    It always takes the first range that has nothing to wait for, nearly in the order of the
    set: after a jump, the cache must be filled again. O(waits log ranges).
    """
    count = ranges.order.size
    # The ranges that wait for each range.
    waiting: list[list[int]] = [[] for _ in range(count)]
    n_waits = np.diff(ranges.wait_offset)
    later = np.repeat(ranges.order, n_waits)
    for low, high in zip(ranges.order[ranges.waits].tolist(), later.tolist(), strict=True):
        waiting[low].append(high)
    # The ranges that each range still has to wait for.
    n_missing = np.zeros(count, np.int64)
    n_missing[ranges.order] = n_waits
    ready = np.flatnonzero(n_missing == 0).tolist()
    runs = [[0, 0]]
    while ready:
        r = heappop(ready)
        if runs[-1][1] != r:
            runs.append([r, r])
        runs[-1][1] = r + 1
        for later_range in waiting[r]:
            n_missing[later_range] -= 1
            if n_missing[later_range] == 0:
                heappush(ready, later_range)
    return ranges.offset[np.array(runs, np.int64)]
