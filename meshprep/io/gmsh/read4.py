"""Nodes and elements of MSH 4.1: blocks, one for each entity, of which there may be many."""

import numpy as np

from ...kernels import Float64s, Int64s, UInt8s, helper, kernel
from ..text.tokens import ASCII, Mode, next_int, skip_blank, skip_doubles, take_doubles, take_ints
from .raw import (
    BAD_COUNT,
    BAD_DIM,
    BAD_FLAG,
    BAD_ROW,
    BAD_TOTAL,
    FINE,
    NO_NUMBER,
    UNKNOWN_TYPE,
    RawCells,
    RawElements,
    RawNodes,
)
from .scan import SCRATCH, GmshCursor, tables_by_type, take_line
from .types import DIMS, NODES

_NONE = np.empty(0, dtype=np.int64)
# Numbers and points of the nodes, and entries that are to be converted otherwise.
NodeArrays = tuple[Int64s, Float64s, Int64s]


def read_nodes(cursor: GmshCursor) -> RawNodes:
    """The body of $Nodes. O(bytes)."""
    n_blocks, n = read_header(cursor, "nodes", 8, 32)
    runs = np.empty((n_blocks, 4), dtype=np.int64)
    label, points = np.empty(n, dtype=np.int64), np.empty((n, 3))
    hard = cursor.hard_list(3 * n)
    out = (label, points.reshape(-1), hard)
    code, pos, extra, found = _nodes(cursor.data, cursor.pos, cursor.mode, runs, out)
    _check(cursor, code, pos, extra, "nodes")
    cursor.settle(points, hard[:found])
    cursor.pos = int(pos)
    if runs[:, 2].any():
        cursor.unread.append("parametric coordinates of nodes")
    return RawNodes(label, points, runs)


def read_header(cursor: GmshCursor, what: str, text: int, binary: int) -> tuple[int, int]:
    """Numbers of blocks and of nodes or elements; neither more than the file can hold."""
    n_blocks, n = (cursor.count(w) for w in (f"blocks of {what}", what))
    cursor.ints(2, size=True, what="the lowest and highest number")
    cursor.need(n_blocks, 8, 20, f"blocks of {what}")
    cursor.need(n, text, binary, what)
    return n_blocks, n


def _check(cursor: GmshCursor, code: int, pos: int, extra: int, what: str) -> None:
    """Raise the error that a kernel reports."""
    if code == FINE:
        return
    if code == NO_NUMBER:
        raise cursor.no_number(int(pos), f"a number of the {what}")
    if code == BAD_ROW:
        number, words = divmod(int(extra), SCRATCH)
        raise cursor.wrong_row(int(pos), number, max(words - 1, 0))
    texts = {
        BAD_COUNT: f"a block declares {extra} {what}: which does not fit this file",
        BAD_TOTAL: f"the blocks hold {extra} {what}, fewer than the section declares",
        BAD_DIM: f"a block of {what} has dimension {extra}, which does not fit what it holds",
        BAD_FLAG: f"a block of {what} has the parametric flag {extra}, must be 0 or 1",
        UNKNOWN_TYPE: f"element type {extra} is not supported by meshprep",
    }
    raise cursor.error(f"{texts[code]}: repair the file or remesh", int(pos))


@helper
def _block(data: UInt8s, pos: int, mode: Mode, row: Int64s) -> int:
    """Read the four numbers at the head of a block."""
    for j in range(4):
        row[j], pos = next_int(data, pos, mode, 4 if j < 3 else 8)
        if pos < 0:
            break
    return pos


@kernel
def _nodes(
    data: UInt8s, pos: int, mode: Mode, runs: Int64s, out: NodeArrays
) -> tuple[int, int, int, int]:
    """Fill everything; returns a code, a position, a number for the message, entries of hard."""
    label = out[0]
    # Typed, so that the kernels below are compiled once.
    done, found = int(np.int64(0)), int(np.int64(0))
    for b in range(len(runs)):
        start = pos
        pos = _block(data, pos, mode, runs[b])
        if pos < 0:
            return NO_NUMBER, pos, 0, found
        dim, flag, count = runs[b, 0], runs[b, 2], runs[b, 3]
        if dim < 0 or dim > 3:
            return BAD_DIM, start, dim, found
        if flag < 0 or flag > 1:
            return BAD_FLAG, start, flag, found
        if count < 0 or count > label.size - done:
            return BAD_COUNT, start, count, found
        rows = (done, done + count)
        pos, found = _node_block(data, pos, mode, dim * flag, rows, out, found)
        if pos < 0:
            return NO_NUMBER, pos, 0, found
        done += count
    if done < label.size:
        return BAD_TOTAL, pos, done, found
    return FINE, pos, 0, found


@helper
def _node_block(
    data: UInt8s,
    pos: int,
    mode: Mode,
    n_parametric: int,
    rows: tuple[int, int],
    out: NodeArrays,
    found: int,
) -> tuple[int, int]:
    """Read one block: its numbers, then the points, whose arrays are flat.

    The parametric coordinates that follow each point are skipped.
    """
    (start, stop), (label, points, hard) = rows, out
    pos = take_ints(data, pos, mode, 8, label, start, stop - start)
    if pos < 0 or n_parametric == 0:
        if pos >= 0:
            pos, found = take_doubles(data, pos, mode, points, 3 * start, 3 * stop, hard, found)
        return pos, found
    for i in range(start, stop):
        pos, found = take_doubles(data, pos, mode, points, 3 * i, 3 * i + 3, hard, found)
        if pos < 0:
            break
        pos = skip_doubles(data, pos, mode, n_parametric)
        if pos < 0:
            break
    return pos, found


def read_elements(cursor: GmshCursor) -> RawElements:
    """The body of $Elements. O(bytes)."""
    n_blocks, n = read_header(cursor, "elements", 4, 16)
    blocks = np.empty((n_blocks, 4), dtype=np.int64)
    place = np.empty(n, dtype=np.int64)
    # Room for as many numbers as the file can hold; pages that are never written cost nothing.
    flat = np.empty(cursor.most_numbers(8) + SCRATCH, dtype=np.int64)
    code, pos, extra = _elements(cursor.data, cursor.pos, cursor.mode, blocks, place, flat)
    _check(cursor, code, pos, extra, "elements")
    kind = np.repeat(blocks[:, 2], blocks[:, 3])
    # A label stands before the nodes.
    at = np.cumsum(1 + NODES[kind]) - NODES[kind]
    cells = []
    for t, rows, nodes in tables_by_type(cursor, kind, flat, at, place):
        runs = blocks[(blocks[:, 2] == t) & (blocks[:, 3] > 0)][:, [1, 3]]
        cells.append(RawCells(t, nodes, flat[at[rows] - 1], runs, _NONE, _NONE, _NONE, _NONE))
    cursor.pos = int(pos)
    return RawElements(tuple(cells))


@kernel
def _elements(
    data: UInt8s, pos: int, mode: Mode, blocks: Int64s, place: Int64s, flat: Int64s
) -> tuple[int, int, int]:
    """Read labels and nodes of all blocks into ``flat``; where each element stands in the file."""
    done, end = 0, 0
    for b in range(len(blocks)):
        start = pos
        pos = _block(data, pos, mode, blocks[b])
        if pos < 0:
            return NO_NUMBER, pos, 0
        dim, kind, count = blocks[b, 0], blocks[b, 2], blocks[b, 3]
        if kind < 0 or kind >= NODES.size or NODES[kind] == 0:
            return UNKNOWN_TYPE, start, kind
        if dim != DIMS[kind]:
            return BAD_DIM, start, dim
        row, each = 1 + NODES[kind], 2 if mode == ASCII else 8
        if count < 0 or count > place.size - done or count > (data.size - pos + 1) // (each * row):
            return BAD_COUNT, start, count
        if mode != ASCII:
            for i in range(count):
                place[done + i] = pos + i * row * 8
            pos = take_ints(data, pos, mode, 8, flat, end, count * row)
        else:
            for i in range(done, done + count):
                place[i] = pos
                pos, words = take_line(data, pos, flat, end + (i - done) * row, row)
                if words >= 0 and words != row:
                    found = kind * SCRATCH + min(words, SCRATCH - 1)
                    return BAD_ROW, skip_blank(data, place[i]), found
                if pos < 0:
                    break
        if pos < 0:
            return NO_NUMBER, pos, 0
        end += count * row
        done += count
    if done < place.size:
        return BAD_TOTAL, pos, done
    return FINE, pos, 0
