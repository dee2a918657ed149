"""Nodes and elements: of MSH 4.1 in blocks, one for each entity, of which there may be many."""

from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import as_strided

from meshprep_runtime.types.maps import chunks

from ...kernels import Float64s, Int32s, Int64s, UInt8s, helper, kernel
from ...kernels.arrays import ZERO
from ...mesh.cells import node_count_problem
from ..text.tokens import (
    ASCII,
    SHORT,
    SINGLE,
    WIDE,
    Mode,
    skip_blank,
    skip_line,
    take_doubles,
    take_ints,
)
from .raw import RawCells, RawElements, RawNodes
from .sections import GmshCursor
from .types import DIMS, NAME_OF, NODES

# What a kernel reports besides a position.
FINE, NO_NUMBER, BAD_TYPE, BAD_COUNT, BAD_DIM, BAD_FLAG, BAD_TOTAL, BAD_ROW, BAD_TAGS = range(9)
# More than the numbers of any element.
SCRATCH = 4096
DOLLAR = ord("$")


def read_nodes(cursor: GmshCursor) -> RawNodes:
    """The body of $Nodes. O(bytes)."""
    if cursor.version == "2.2":
        numbers, points = cursor.rows(cursor.count_line("nodes"), 1, 3, what="nodes")
        return RawNodes(numbers[:, 0], points)
    n_blocks, n = read_header(cursor, "nodes", 8, 32)
    runs = np.empty((n_blocks, 4), dtype=np.int64)
    label, points = np.empty(n, dtype=np.int64), np.empty((n, 3))
    flat = points.reshape(-1)
    code, pos, extra = _nodes(cursor.data, cursor.pos, cursor.mode, runs, label, flat)
    _check(cursor, code, pos, extra, "nodes")
    cursor.pos = int(pos)
    return RawNodes(label, points, runs)


def read_header(cursor: GmshCursor, what: str, text: int, binary: int) -> tuple[int, int]:
    """Numbers of blocks and of nodes or elements; neither more than the file can hold."""
    n_blocks, n = (cursor.count(w) for w in (f"blocks of {what}", what))
    cursor.ints(2, size=True, what="the lowest and highest number")
    cursor.need(n_blocks, 8, 20, f"blocks of {what}")
    cursor.need(n, text, binary, what)
    return n_blocks, n


def _check(cursor: GmshCursor, code: int, pos: int, extra: int, what: str) -> None:
    if code == FINE:
        return
    if code == NO_NUMBER:
        raise cursor.no_number(int(pos), f"a number of the {what}")
    if code == BAD_ROW:
        number, found = divmod(int(extra), SCRATCH)
        which = f"element {cursor.word(cursor.behind_blank(int(pos)))}"
        raise cursor.error(node_count_problem(which, NAME_OF[number], found), int(pos))
    texts = {
        BAD_TYPE: f"element type {extra} is not supported by meshprep",
        BAD_COUNT: f"a block declares {extra} {what}, which does not fit this file",
        BAD_DIM: f"a block of {what} has dimension {extra}, which does not fit what it holds",
        BAD_FLAG: f"a block has the parametric flag {extra}, must be 0 (Mesh.SaveParametric)",
        BAD_TOTAL: f"the blocks hold {extra} {what}, fewer than the section declares",
        BAD_TAGS: f"an element declares {extra} tags, which does not fit this file",
    }
    raise cursor.error(f"{texts[code]}: repair the file or remesh", int(pos))


@helper
def _block(data: UInt8s, pos: int, mode: Mode, row: Int64s) -> int:
    """Read the four numbers at the head of a block."""
    for j in range(4):
        pos = take_ints(data, pos, mode, SHORT if j < 3 else WIDE, row, j, SINGLE)
        if pos < 0:
            break
    return pos


@kernel
def _nodes(
    data: UInt8s, pos: int, mode: Mode, runs: Int64s, label: Int64s, points: Float64s
) -> tuple[int, int, int]:
    """Fill everything; returns a code, a position and a number for the message."""
    # Typed, so that the kernels below are compiled once.
    done = ZERO
    for b in range(len(runs)):
        start = pos
        pos = _block(data, pos, mode, runs[b])
        if pos < 0:
            return NO_NUMBER, pos, 0
        dim, flag, count = runs[b, 0], runs[b, 2], runs[b, 3]
        if dim < 0 or dim > 3:
            return BAD_DIM, start, dim
        if flag != 0:
            return BAD_FLAG, start, flag
        if count < 0 or count > label.size - done:
            return BAD_COUNT, start, count
        pos = take_ints(data, pos, mode, WIDE, label, done, count)
        if pos >= 0:
            pos = take_doubles(data, pos, mode, points, 3 * done, 3 * (done + count))
        if pos < 0:
            return NO_NUMBER, pos, 0
        done += count
    if done < label.size:
        return BAD_TOTAL, pos, done
    return FINE, pos, 0


def read_elements(cursor: GmshCursor) -> RawElements:
    """The body of $Elements. O(bytes)."""
    old = cursor.version == "2.2"
    if old:
        n_blocks = n = cursor.count_line("elements")
        cursor.need(n, 6, 8, "elements")
    else:
        n_blocks, n = read_header(cursor, "elements", 4, 16)
    columns = np.empty((5, n), dtype=np.int64)
    # Room for as many numbers as the file can hold; pages that are never written cost nothing.
    most = cursor.left // (2 if cursor.mode == ASCII else 4)
    flat = np.empty(most + 1 + SCRATCH, dtype=np.int64)
    code, pos, extra = _elements(cursor.data, cursor.pos, cursor.mode, old, n_blocks, columns, flat)
    _check(cursor, code, pos, extra, "elements")
    place, kind, entity, n_tags, at = columns
    in_line = old and cursor.mode == ASCII
    rest = [_take(flat, at - (3 if in_line else 1), 1)[:, 0], entity]
    if old:
        physical, rest[1], third = (
            np.where(n_tags > i, column, 0) for i, column in enumerate(_take(flat, at, 3).T)
        )
        # The third tag counts those that follow; as the last tag, it is the only partition.
        for bad in np.flatnonzero((n_tags > 3) & (third != n_tags - 3))[:1]:
            raise cursor.error(
                f"an element has {n_tags[bad]} tags, of which the third does not count the rest: "
                "repair the file",
                int(place[bad]),
            )
        rest += [physical, at + np.where(n_tags == 3, 2, 3)]
        rest.append(np.where(n_tags > 3, third, (n_tags == 3) & (third != 0)))
    cells = [
        RawCells(t, nodes, *(np.ascontiguousarray(column[rows]) for column in rest))
        for t, rows, nodes in _by_type(cursor, kind, flat, at + n_tags, place)
    ]
    cursor.pos = int(pos)
    return RawElements(tuple(cells), flat if old else np.empty(0, np.int64))


def _by_type(
    cursor: GmshCursor, kind: Int64s, flat: Int64s, at: Int64s, place: Int64s
) -> Iterator[tuple[int, Int64s | slice, Int32s]]:
    """For each type, by first appearance: its elements and the positions of their nodes.

    ``at`` is where in ``flat`` the nodes of an element begin, ``place`` where in the file it does.
    """
    if cursor.nodes is None:
        raise cursor.error("the section stands before $Nodes: move it behind")
    types = np.flatnonzero(np.bincount(kind)).tolist()
    for t in sorted(types, key=lambda t: int(np.argmax(kind == t))):
        rows = np.flatnonzero(kind == t) if len(types) > 1 else slice(None)
        begin = at[rows]
        nodes = np.empty((begin.size, NODES[t]), np.int32)
        for some in chunks(begin.size):
            nodes[some] = cursor.nodes.find(_take(flat, begin[some], NODES[t]))
        if nodes.min() < 0:
            row, column = np.argwhere(nodes < 0)[0]
            raise cursor.error(
                f"an element names node {flat[begin[row] + column]}, which is not in $Nodes: "
                "add or remove it",
                int(place[rows][row]),
            )
        yield t, rows, nodes


def _take(flat: Int64s, at: Int64s, k: int) -> Int64s:
    """The ``k`` numbers from each of these places on: a view where these are equally far apart."""
    step = int(at[1] - at[0]) if at.size > 1 else k
    if at.size and (at[1:] == at[:-1] + step).all():
        return as_strided(flat[at[0] :], (at.size, k), (8 * step, 8), writeable=False)
    return flat.take(at[:, None] + np.arange(k))


@kernel
def _elements(
    data: UInt8s, pos: int, mode: Mode, old: bool, n_blocks: int, columns: Int64s, flat: Int64s
) -> tuple[int, int, int]:
    """Read all numbers into ``flat``; returns code, position and a number for the message.

    ``columns`` are, for each element: its place in the file, type, entity, number of tags, and
    where its tags begin in ``flat``, its nodes behind them. In MSH 4.1 a block has a head
    (dimension, entity, type, elements). In MSH 2 every line of text is a block and holds its head
    (label, type, tags); in binary the head is (type, elements, tags).
    """
    i, end, b, n = 0, ZERO, 0, columns.shape[1]
    while b < n_blocks and not (old and i == n):
        start, count, entity, n_tags, words = pos, 1, 0, 0, 0
        if not old:
            pos = _block(data, pos, mode, flat[end : end + 4])
            entity, kind, count = flat[end + 1], flat[end + 2], flat[end + 3]
        elif mode == ASCII:
            pos, words = _take_line(data, pos, flat, end, int(np.int64(3)))
            kind, n_tags = flat[end + 1], flat[end + 2]
        else:
            pos = take_ints(data, pos, mode, SHORT, flat, end, int(np.int64(3)))
            kind, count, n_tags = flat[end], flat[end + 1], flat[end + 2]
        if pos < 0:
            return NO_NUMBER, pos, 0
        if kind < 0 or kind >= NODES.size or NODES[kind] == 0:
            return BAD_TYPE, start, kind
        if not old and flat[end] != DIMS[kind]:
            return BAD_DIM, start, flat[end]
        if count < old or count > n - i:
            return BAD_COUNT, start, count
        if n_tags < 0 or n_tags > SCRATCH // 2:
            return BAD_TAGS, start, n_tags
        row, width, first = 1 + n_tags + NODES[kind], SHORT if old else WIDE, 1
        if mode != ASCII:
            start, words = pos, row
            pos = take_ints(data, pos, mode, width, flat, end, count * row)
        for j in range(i, i + count):
            columns[0, j] = start + (j - i) * row * width
            if mode == ASCII and old:
                first, row = 3, row + 2
                if words < row and skip_blank(data, pos) == data.size:
                    return NO_NUMBER, -1 - data.size, 0
            elif mode == ASCII:
                columns[0, j] = pos
                pos, words = _take_line(data, pos, flat, end, row)
            if words >= 0 and words != row:
                found = min(max(words - row + NODES[kind], 0), SCRATCH - 1)
                return BAD_ROW, skip_blank(data, columns[0, j]), kind * SCRATCH + found
            if pos < 0:
                return NO_NUMBER, pos, 0
            columns[1, j], columns[2, j], columns[3, j] = kind, entity, n_tags
            columns[4, j] = end + first
            end += row
        i, b = i + count, b + 1
    if i < n:
        return BAD_TOTAL, pos, i
    return FINE, pos, 0


@helper
def _take_line(data: UInt8s, pos: int, out: Int64s, at: int, least: int) -> tuple[int, int]:
    """Take the numbers of one line of text, or ``least`` where it has fewer.

    An element is a line, or its nodes could be taken from those of another. Returns the position
    behind, and the words of the line, -1 where the file or the section ends in it.
    """
    line = skip_blank(data, pos)
    stop, words = skip_line(data, line)
    last = stop == data.size or data[np.uint64(line)] == DOLLAR
    pos = take_ints(data, line, ASCII, SHORT, out, at, max(words, least))
    return pos, -1 if last and words < least else words
