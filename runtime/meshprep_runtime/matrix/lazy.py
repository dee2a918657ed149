"""Lazy ELLPACK: rows keep what elements add side by side, and sum nothing [R14 3.2.3]."""

import numpy as np
from numpy.typing import NDArray

from ..loops import Arg
from ..plan import LoopPlan


def lazy_places(plan: LoopPlan, arg: Arg) -> tuple[NDArray[np.int64], int]:
    """A place for each entry of each element, row by row in the order of the elements.

    Places are in the flat arrays of an ELLPACK matrix, (elements, local rows * local columns); -1
    where the row or column is constrained. Also gives the entries of the longest row: of the dof
    with the most elements. O(n log n) for the n local rows of all elements.
    """
    matrix = plan.matrices[arg.name]
    rows = matrix.row_of[plan.maps[str(arg.map)].table]
    free = matrix.column_of[plan.maps[str(arg.columns)].table] >= 0
    # each local row takes as many places of its row as its element has columns
    each = np.broadcast_to(free.sum(axis=1)[:, None], rows.shape).reshape(-1)
    flat = rows.reshape(-1)
    order = np.argsort(flat, kind="stable")
    before = np.cumsum(each[order]) - each[order]
    length = np.bincount(flat[flat >= 0], each[flat >= 0], minlength=matrix.shape[0])
    # what constrained rows would take comes first
    left_out = int(each[flat < 0].sum())
    begin = np.append(left_out + np.cumsum(length) - length, 0).astype(np.int64)
    entry = np.empty(flat.size, np.int64)
    entry[order] = before - begin[flat[order]]
    within = np.where(free, np.cumsum(free, axis=1) - 1, -1)
    place = (entry.reshape(rows.shape)[:, :, None] + within[:, None, :]) * matrix.shape[0]
    place += rows[:, :, None]
    place[~((rows >= 0)[:, :, None] & free[:, None, :])] = -1
    return place.reshape(matrix.place[plan.loop.name].shape), int(length.max(initial=0))
