"""The two-step strategy: elements leave what they add in a temporary array, points sum it.

It needs neither colours nor atomics, and pays with the traffic of the array: the original of
LULESH and miniAero [S19 section 3.1].
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernel.bind import Slot
from ..kernel.rows import Row
from ..plan import LoopPlan
from .source import point_sums


@dataclass(frozen=True, eq=False)
class PointSums:
    """The second step for one dat."""

    slot: int  # which array takes the sums
    names: tuple[str, ...]  # the names of the temporary arrays in the text of the first step
    # Those arrays, one an argument and index, ``dim`` values an element; views of one.
    parts: tuple[NDArray[Any], ...]
    # ``point_offset``, ``place`` and the temporary array: point ``p`` adds up the rows
    # ``place[point_offset[p] : point_offset[p + 1]]``.
    arrays: tuple[NDArray[Any], ...]
    text: str


def temporaries(
    plan: LoopPlan, slots: Sequence[Slot], rows: Sequence[Row]
) -> tuple[tuple[Row, ...], list[PointSums]]:
    """The rows with temporary ones for what elements add, and the second steps. O(n log n)."""
    changed, sums = list(rows), []
    for at, slot in enumerate(slots):
        own = [n for n, r in enumerate(rows) if r.array == f"s{at}" and r.adds]
        if not own:
            continue
        sums.append(_sums(plan, at, slot, [rows[n] for n in own]))
        for n, name in zip(own, sums[-1].names, strict=True):
            changed[n] = replace(rows[n], array=name, table=None, soa=False, temporary=True)
    return tuple(changed), sums


def _sums(plan: LoopPlan, at: int, slot: Slot, rows: Sequence[Row]) -> PointSums:
    tables = [plan.tables[int(str(r.table)[1:])] for r in rows]
    # all columns of a matrix are one argument
    pairs = zip(tables, rows, strict=True)
    columns = [t.reshape(-1) if r.placed else t[:, r.column] for t, r in pairs]
    points = np.concatenate(columns)
    n_points = slot.shape[1] if slot.soa else slot.shape[0]
    # what has no place in a matrix comes first, and is left out
    count = np.bincount(points + 1, minlength=n_points + 1)
    offset = np.cumsum(count).astype(np.int64)
    place = np.argsort(points, kind="stable").astype(np.int64)
    found = np.zeros(points.size * slot.dim, slot.dtype)
    names = tuple(f"t{at}_{i}" for i in range(len(rows)))
    parts = tuple(np.split(found, len(rows)))
    return PointSums(at, names, parts, (offset, place, found), point_sums(slot))
