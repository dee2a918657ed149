"""Ranges of elements for the threads of a CPU, each with those that it waits for."""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from ..types.maps import Int32s, Int64s, distinct, rows_of_entries, run_offset
from .model import LoopPlan, Ranges, Variant

# Elements of a range, at least and at most: with fewer, counters cost; with more, one thread waits
# for the last range of another.
LEAST, MOST = 1024, 8192
# A set of few elements is cut into so many ranges, if they are large enough.
SEVERAL = 16
# Ranges that write the points of more others than this have no locality to lose: larger ones.
NEIGHBOURS = 32
# A range is begun at least so many turns after those that it waits for, unless none can be: on up
# to eight threads these are done by then, as a rule.
AHEAD = 9


def ranges_for(plan: LoopPlan, cuts: Sequence[int] = ()) -> Ranges:
    """Ranges of a loop, of whole blocks of its default variant; none crosses one of the ``cuts``.

    Ranges that write a common point run one after the other, in an order that is the same for one
    thread and for several, and so are the bits of all sums. Ranges before a cut, as the end of a
    part's core, run before those behind it. Where a range meets many others, as in an order without
    locality, ranges grow, in the end to one: threads would only wait. O(n + ranges^2).
    """
    variant = plan.variants.get(plan.default)
    n = plan.sizes[plan.loop.over]
    size = min(MOST, max(LEAST, n // SEVERAL // 256 * 256))
    while True:
        # Ends of ranges of about size places, at ends of blocks where there are blocks
        wanted = run_offset(n, size)
        if variant is not None and variant.n_blocks:
            ends = variant.block_offset
            wanted = ends[np.minimum(np.searchsorted(ends, wanted), ends.size - 1)]
        offset = np.unique(np.concatenate([[0, n], wanted, np.minimum(cuts, n)])).astype(np.int64)
        pairs = _meeting(plan, variant, offset)
        if pairs is not None:
            return _in_order(offset, pairs, np.searchsorted(cuts, offset[:-1], side="right"))
        size *= 2


def written_points(plan: LoopPlan, variant: Variant | None) -> Iterator[tuple[Int32s, int]]:
    """The points that each place writes, a table for each set, and how many there are."""
    columns: dict[str, list[Int32s]] = {}
    for name, written in plan.loop.conflict_columns.items():
        table = plan.maps[name].table
        found = table if len(written) == table.shape[1] else table[:, written]
        columns.setdefault(plan.maps[name].to_set, []).append(found)
    for to_set, tables in columns.items():
        table = np.concatenate(tables, axis=1) if len(tables) > 1 else tables[0]
        if variant is not None:
            table = variant.by_place(table)
        yield table, plan.rows_of(to_set)


def _meeting(plan: LoopPlan, variant: Variant | None, offset: Int64s) -> Int64s | None:
    """``(pairs, 2)``: ranges that write a common point, the lower first; None for too many."""
    count = offset.size - 1
    of_place, keys = rows_of_entries(offset), [np.zeros(0, np.int64)]
    for table, n_points in written_points(plan, variant):
        least, most = np.full(n_points, count, np.int32), np.zeros(n_points, np.int32)
        for column in table.T:
            np.minimum.at(least, column, of_place)
            np.maximum.at(most, column, of_place)
        shared = (least < most)[table]
        met = (
            table[shared].astype(np.int64) * count
            + np.broadcast_to(of_place[:, None], table.shape)[shared]
        )
        point, of_range = np.divmod(distinct(met), count)
        for step in range(1, point.size):
            same = point[step:] == point[:-step]
            if not same.any():
                break
            if step > NEIGHBOURS and count > 1:
                return None
            keys.append(distinct(of_range[:-step][same] * count + of_range[step:][same]))
    pairs = distinct(np.concatenate(keys))
    if pairs.size > NEIGHBOURS * count:
        return None
    return np.stack(np.divmod(pairs, max(count, 1)), axis=1)


def _in_order(offset: Int64s, pairs: Int64s, part: NDArray[np.intp]) -> Ranges:
    """The ranges in the order in which they begin, ``part`` after ``part``, and what each awaits.

    As many threads would take them, each in a stretch of the set of its own, so that one thread can
    take them nearly in the order of the set.
    """
    count = offset.size - 1
    stretch = np.arange(count) * SEVERAL // max(count, 1)
    wanted = np.lexsort((stretch, np.arange(count) - np.searchsorted(stretch, stretch)))
    met: list[list[int]] = [[] for _ in range(count)]
    for low, high in pairs.tolist():
        met[high].append(low)
        met[low].append(high)
    last, rest = np.full(count, -AHEAD), part.copy()
    order = np.empty(count, np.int32)
    for turn in range(count):
        # the first whose neighbours were begun long ago, of the part that is not done
        since = np.minimum(turn - last, AHEAD) - (AHEAD + 1) * rest
        r = wanted[np.argmax(since[wanted])]
        order[turn], rest[r], last[met[r]] = r, count + 1, turn
    place = np.argsort(order)
    ends = np.sort(place[pairs], axis=1)
    ends = ends[np.lexsort((ends[:, 0], ends[:, 1]))]
    wait_offset = np.searchsorted(ends[:, 1], np.arange(count + 1)).astype(np.int64)
    return Ranges(offset, order, wait_offset, ends[:, 0].astype(np.int32))


def runs_of(ranges: Ranges) -> Int64s:
    """``(runs, 2)``: places from one to another, as one thread takes them, for the same bits.

    Nearly the order of the set, as a jump costs what the cache holds: always the first range that
    can be run. O(waits log ranges).
    """
    count = ranges.order.size
    behind: list[list[int]] = [[] for _ in range(count)]  # what waits for each
    waits = np.diff(ranges.wait_offset)
    later = np.repeat(ranges.order, waits)
    for low, high in zip(ranges.order[ranges.waits].tolist(), later.tolist(), strict=True):
        behind[low].append(high)
    missing = np.zeros(count, np.int64)
    missing[ranges.order] = waits
    ready, runs = np.flatnonzero(missing == 0).tolist(), [[0, 0]]
    while ready:
        r = heappop(ready)
        if runs[-1][1] != r:
            runs.append([r, r])
        runs[-1][1] = r + 1
        for x in behind[r]:
            missing[x] -= 1
            if missing[x] == 0:
                heappush(ready, x)
    return ranges.offset[np.array(runs, np.int64)]
