"""The work of a CSR product cut by nonzeros, long rows apart."""

import numpy as np
from numpy.typing import NDArray

from ..cpu.schedule import Schedule
from ..maps import distinct
from .kernels import PART, ROWS, TOTAL

# Nonzeros and rows that a thread takes at a time.
PIECE = 1 << 14
# A row with more nonzeros is cut into parts of as many; no choice, so that bits do not depend on
# one.
LONG = 1 << 15


def row_pieces(
    row_ptr: NDArray[np.integer], piece: int = PIECE, only: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Pieces of about equally many nonzeros and rows, then parts of long rows, then their sums.

    Parameters
    ----------
    row_ptr : (rows + 1,) integers
    piece : int
        Nonzeros and rows a piece.
    only : (rows,) bool, optional
        Which rows; pieces end where others begin. None: all.

    Returns
    -------
    (n, 4) int64
        Kind, begin, end and target: rows ``begin`` to ``end - 1``; nonzeros whose sum is part
        ``target``; or parts whose sum is row ``target``.
    """
    rows = row_ptr.size - 1
    work = row_ptr + np.arange(rows + 1, dtype=np.int64)
    cuts = np.searchsorted(work, np.arange(piece, work[-1], piece))
    only = np.ones(rows, np.bool_) if only is None else only
    long = np.flatnonzero(np.diff(row_ptr) > LONG)
    turns = np.flatnonzero(np.diff(only)) + 1
    begin = distinct(np.concatenate([[0], cuts, long, long + 1, turns]))
    begin = begin[begin < rows]
    ends = np.append(begin, rows)[1:]
    whole = np.column_stack([begin, ends])[only[begin] & ~np.isin(begin, long)]
    long = long[only[long]]
    of_rows = np.column_stack([np.full(len(whole), ROWS), whole, np.zeros(len(whole), np.int64)])
    return np.concatenate([of_rows, long_rows(row_ptr, long)]).astype(np.int64)


def long_rows(
    row_ptr: NDArray[np.integer], rows: NDArray[np.integer], part: int = LONG
) -> NDArray[np.int64]:
    """Pieces of some rows: parts of up to ``part`` nonzeros, then a sum a row."""
    parts: list[tuple[int, int, int, int]] = []
    totals = []
    for row in rows.tolist():
        first, last = int(row_ptr[row]), int(row_ptr[row + 1])
        before = len(parts)
        for begin in range(first, last, part):
            parts.append((PART, begin, min(begin + part, last), len(parts)))
        totals.append((TOTAL, before, len(parts), row))
    return np.array([*parts, *totals], np.int64).reshape(-1, 4)


def schedule(
    pieces: NDArray[np.int64], row_ptr: NDArray[np.integer], piece: int = PIECE
) -> Schedule:
    """Pieces in turn, small ones several at a time; sums of parts wait for all parts.

    One thread runs what is not enough for two.
    """
    n, sums = len(pieces), int((pieces[:, 0] == TOTAL).sum())
    kind, begin, end = pieces[: n - sums, :3].T
    work, whole = end - begin, kind == ROWS
    work[whole] += row_ptr[end[whole]] - row_ptr[begin[whole]]
    done = np.cumsum(work)
    # a range ends with the piece that fills it
    full = np.searchsorted(done, np.arange(piece, done[-1] if done.size else 0, piece)) + 1
    ends = distinct(np.append(full, n - sums))
    offset = np.concatenate([[0], ends, np.arange(n - sums, n) + 1]).astype(np.int64)
    phases = [0, ends.size, ends.size + sums] if sums else [0, ends.size]
    every = np.arange(offset.size - 1, dtype=np.int32)
    return Schedule(offset, np.array(phases, np.int64), every, parallel=ends.size > 1)
