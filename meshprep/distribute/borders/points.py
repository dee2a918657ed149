"""What elements share: their nodes, and the rows of the leading map that reach them."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.maps import INDEX_LIMIT, SetMap

from ...kernels import kernel
from ..ranks import Ranks, exchanged
from ..slices.homes import Homes, blocks
from ..subject import SplitSubject

# Rows of the leading map that are looked at, for each element.
MOST_ROWS = 32


class PointTable(NamedTuple):
    """The points of elements: nodes, then rows of the leading map."""

    table: NDArray[np.integer]  # (n, k) integers: -1 where an element has fewer
    nodes: int  # points below it are nodes
    size: int  # points of the whole mesh


def points_of_elements(subject: SplitSubject, ranks: Ranks) -> PointTable:
    """The points of the elements of the leading set that are at home here.

    O(n / ranks log n).
    """
    name, leading = subject.leading_set, subject.leading_map
    assert leading is not None
    nodes = subject.maps.get(f"{name}->nodes")
    first = 0 if nodes is None else subject.sizes["nodes"]
    size = first + subject.sizes[leading.from_set]
    rows = _rows_that_reach(leading, subject.sizes, ranks)
    kind = np.dtype(np.int32 if size <= INDEX_LIMIT else np.int64)
    rows = np.where(rows < 0, rows, rows + kind.type(first)) if first else rows.astype(kind)
    return PointTable(rows if nodes is None else np.hstack([nodes.table, rows]), first, size)


def _rows_that_reach(m: SetMap, sizes: Mapping[str, int], ranks: Ranks) -> NDArray[np.int32]:
    """The rows of a map that reach each element at home here, ascending."""
    homes, rows_at = Homes(sizes[m.to_set], ranks), Homes(sizes[m.from_set], ranks)
    pieces = []
    for rows in blocks(ranks, m.size):
        element = m.table[rows].reshape(-1)
        row = np.repeat(np.arange(rows.start, rows.stop) + rows_at.own.start, m.arity)
        order = np.argsort(element, kind="stable")
        pairs = np.stack([element, row.astype(np.int32)], axis=1)[order]
        pieces += exchanged(ranks, homes.pieces(pairs[:, 0], pairs))
    own = homes.own
    count = np.zeros(len(own), np.int64)
    for piece in pieces:
        count += np.bincount(piece[:, 0] - own.start, minlength=count.size)
    width = min(MOST_ROWS, max(ranks.allgather(int(count.max(initial=0)))))
    out = np.full((len(own), width), -1, np.int32)
    for piece in pieces:
        _fill_rows(piece, own.start, out)
    return out


@kernel
def _fill_rows(pairs: NDArray[np.int32], first: int, out: NDArray[np.int32]) -> None:
    """Give each element its rows, each once, and the lowest where there is no room for all."""
    width = out.shape[1]
    for i in range(pairs.shape[0]):
        at, row, last = pairs[i, 0] - first, pairs[i, 1], 0
        for j in range(width):
            last = j
            if out[at, j] == row or out[at, j] < 0:
                break
        if out[at, last] >= 0 and out[at, last] != row:
            for j in range(width):
                last = j if out[at, j] > out[at, last] else last
            if out[at, last] < row:
                continue
        out[at, last] = row
