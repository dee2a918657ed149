"""The elements and blocks of a loop that write the same points."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import import_package
from ..types.loops import Loop
from ..types.maps import SetMap


def written_columns(
    loop: Loop, maps: Mapping[str, SetMap], sizes: Mapping[str, int]
) -> tuple[NDArray[np.int32], int]:
    """The points that each element writes through maps, (n, k), and the number of points.

    The points of all sets are numbered together, set after set.
    """
    start_of_set, n_points = _stacked_sets(loop, maps, sizes)
    columns = [np.zeros((sizes[loop.over], 0), np.int32)]
    for name, written in loop.conflict_columns.items():
        set_map = maps[name]
        points = set_map.table[:, list(written)]
        columns.append(points + np.int32(start_of_set[set_map.to_set]))
    return np.concatenate(columns, axis=1), n_points


def _stacked_sets(
    loop: Loop, maps: Mapping[str, SetMap], sizes: Mapping[str, int]
) -> tuple[Mapping[str, int], int]:
    """The number of the first point of each written set, and the number of points."""
    start_of_set = {}
    n_points = 0
    for name in loop.conflict_columns:
        to_set = maps[name].to_set
        if to_set not in start_of_set:
            start_of_set[to_set] = n_points
            n_points += sizes[to_set]
    return start_of_set, n_points


def blocks_that_meet(
    columns: NDArray[np.int32], n_points: int, block: NDArray[np.int32], n_blocks: int
) -> Any:
    """The graph of blocks that write a common point: a symmetric matrix of bools.

    ``columns`` (n, k) are the points that each element writes, ``block`` (n,) its block.
    """
    sparse = import_package(
        "scipy.sparse", "graphs of blocks need scipy: pip install scipy"
    )
    writer = np.repeat(block, columns.shape[1])
    entries = (np.ones(columns.size, np.int32), (writer, columns.reshape(-1)))
    touches = sparse.csr_array(entries, shape=(n_blocks, n_points))
    meets = (touches @ touches.T).tocoo()
    apart = meets.row != meets.col
    ends = (meets.row[apart], meets.col[apart])
    trues = np.ones(int(apart.sum()), np.bool_)
    return sparse.csr_array((trues, ends), shape=(n_blocks, n_blocks))
