"""The proof of ranges: those that write a common point run one after the other.

Independent of :mod:`ranges`, which builds them.
"""

import numpy as np
from numpy.typing import NDArray

from ...types.maps import distinct, rows_of_entries
from ..model import LoopPlan, Ranges
from .proof import more


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
    for to_set in dict.fromkeys(loop_plan.maps[name].to_set for name in loop.conflict_columns):
        columns = [
            loop_plan.maps[name].table[:, k]
            for name, written in loop.conflict_columns.items()
            for k in written
            if loop_plan.maps[name].to_set == to_set
        ]
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


def _writers(
    columns: list[NDArray[np.int32]], turn: NDArray[np.int32], n_points: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
