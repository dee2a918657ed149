"""Nodes, elements and periodic links of MSH 2."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels import helper, kernel
from ..text.tokens import (
    ASCII,
    Mode,
    find_token,
    next_int,
    skip_blank,
    skip_line,
    skip_tokens,
    take_ints,
    take_rows,
)
from .numbering import find_range
from .raw import BAD_ROW, FINE, NO_NODE, NO_NUMBER, RawCells, RawElements, RawNodes, RawPeriodic
from .scan import SCRATCH, GmshCursor, nodes_before
from .types import NODES

BAD_TYPE, BAD_FOLLOW, BAD_TAGS, BAD_PARTS = range(10, 14)
_NONE = np.empty(0, dtype=np.int64)
# Numbers taken at a time: more than the longest row.

_NO_RUNS = np.empty((0, 2), dtype=np.int64)


def read_nodes(cursor: GmshCursor) -> RawNodes:
    """The body of $Nodes. O(bytes)."""
    n = _count_line(cursor, "nodes")
    label, points = cursor.rows(n, 1, 3, what="nodes")
    return RawNodes(label[:, 0], points)


def _count_line(cursor: GmshCursor, what: str) -> int:
    """The number on a line of its own, text in every mode."""
    n = cursor.text_int(f"the number of {what}")
    cursor.end_line()
    if n < 0:
        raise cursor.error(f"declares {n} {what}: repair the file")
    return n


def read_elements(cursor: GmshCursor) -> RawElements:
    """The body of $Elements; walked twice, so that nothing is sized by guess. O(bytes)."""
    n = _count_line(cursor, "elements")
    cursor.need(n, 6, 8, "elements")
    n_type, first = np.zeros(NODES.size, np.int64), np.full(NODES.size, n, np.int64)
    legacy = cursor.exact_version != "2.2"
    code, pos, extra, n_parts = _scan(
        cursor.data, cursor.pos, cursor.mode, n, legacy, NODES, n_type, first
    )
    _check(cursor, code, pos, extra)
    columns = np.empty((5, n), dtype=np.int64)
    nodes = np.empty(int((n_type * NODES).sum()), dtype=np.int32)
    parts = np.empty(n_parts, dtype=np.int64)
    order = np.argsort(first, kind="stable")[: np.count_nonzero(n_type)]
    cell_start, node_start = np.zeros_like(n_type), np.zeros_like(n_type)
    cell_start[order] = np.cumsum(n_type[order]) - n_type[order]
    widths = n_type[order] * NODES[order]
    node_start[order] = np.cumsum(widths) - widths
    code, pos, extra = _fill(
        cursor.data, cursor.pos, cursor.mode, n, legacy, NODES,
        cell_start.copy(), node_start.copy(), columns, nodes, parts, *nodes_before(cursor).arrays,
    )  # fmt: skip
    _check(cursor, code, pos, extra)
    cursor.pos = int(pos)
    cells = []
    for t in order:
        c = columns[:, cell_start[t] : cell_start[t] + n_type[t]]
        table = nodes[node_start[t] : node_start[t] + n_type[t] * NODES[t]]
        rest = (c[2], c[1], c[3], c[4])
        cells.append(RawCells(int(t), table.reshape(n_type[t], -1), c[0], _NO_RUNS, *rest))
    return RawElements(tuple(cells), parts)


def _check(cursor: GmshCursor, code: int, pos: int, extra: int) -> None:
    if code == FINE:
        return
    if code == NO_NUMBER:
        raise cursor.no_number(int(pos), "a number of the elements")
    if code == BAD_ROW:
        _label, number, n_tags, *_ = cursor.data[pos : pos + SCRATCH].tobytes().split(maxsplit=3)
        raise cursor.wrong_row(int(pos), int(number), max(extra - 3 - int(n_tags), 0))
    texts = {
        NO_NODE: f"an element names node {extra}, which is not in $Nodes: add or remove it",
        BAD_TYPE: f"element type {extra} is not supported: remesh with another one",
        BAD_FOLLOW: f"a header declares {extra} elements, which do not fit: repair the file",
        BAD_TAGS: f"an element declares {extra} tags, which do not fit: repair the file",
        BAD_PARTS: f"an element has {extra} tags, of which the third does not count the rest: "
        "repair the file",
    }
    raise cursor.error(texts[code], int(pos))


@helper
def _head(
    data: NDArray[np.uint8], pos: int, mode: Mode, head: NDArray[np.int64]
) -> tuple[int, int, int, int]:
    """Type, number of tags, number of elements and position, from what stands before them.

    In text every element has a head, (label, type, tags); in binary it is (type, elements, tags)
    and holds for several elements, whose labels follow.
    """
    pos = take_ints(data, pos, mode, 4, head, 3)
    if mode == ASCII:
        return head[1], head[2], 1, pos
    return head[0], head[2], head[1], pos


@helper
def _n_parts(n_tags: int, third: int, legacy: bool) -> int:
    """How many partitions an element has, -1 where the third tag does not fit.

    It counts those that follow; before MSH 2.2, or as the last tag, it is the only one itself.
    """
    if n_tags < 3:
        return 0
    if legacy or n_tags == 3:
        return 1 if third != 0 else 0
    return third if third == n_tags - 3 else -1


@kernel
def _scan(
    data: NDArray[np.uint8],
    pos: int,
    mode: Mode,
    n: int,
    legacy: bool,
    type_nodes: NDArray[np.int64],
    n_type: NDArray[np.int64],
    first: NDArray[np.int64],
) -> tuple[int, int, int, int]:
    """Count the elements of each type, and all partitions; returns code, position, number."""
    head, done, parts = np.zeros(3, np.int64), 0, 0
    while done < n:
        start = pos
        kind, n_tags, count, pos = _head(data, pos, mode, head)
        if pos < 0:
            return NO_NUMBER, pos, 0, 0
        if kind < 0 or kind >= type_nodes.size or type_nodes[kind] == 0:
            return BAD_TYPE, start, kind, 0
        if count < 1 or count > n - done:
            return BAD_FOLLOW, start, count, 0
        if n_tags < 0 or n_tags > SCRATCH // 2:
            return BAD_TAGS, start, n_tags, 0
        pos, more = _scan_rows(data, pos, mode, count, n_tags, type_nodes[kind], legacy)
        if more < 0:
            return BAD_PARTS, start, n_tags, 0
        if mode == ASCII:
            # An element is a line, or its nodes could be taken from those of another.
            line = skip_blank(data, start)
            stop, words = skip_line(data, line)
            if words != 3 + n_tags + type_nodes[kind] and (pos >= 0 or stop < data.size):
                return BAD_ROW, line, words, 0
        if pos < 0:
            return NO_NUMBER, pos, 0, 0
        n_type[kind] += count
        first[kind] = min(first[kind], done)
        done += count
        parts += more
    return FINE, pos, 0, parts


@helper
def _scan_rows(
    data: NDArray[np.uint8], pos: int, mode: Mode, count: int, n_tags: int, k: int, legacy: bool
) -> tuple[int, int]:
    """Behind the elements of one head; and their partitions, -1 where these do not fit."""
    row = n_tags + k + (0 if mode == ASCII else 1)
    if mode != ASCII:
        if count > (data.size - pos) // (4 * row):
            return -1 - data.size, 0
        if n_tags < 3:
            return pos + 4 * row * count, 0
    parts = 0
    for _ in range(count):
        if n_tags < 3:
            pos = skip_tokens(data, pos, row)
        else:
            # The third tag: in binary the label stands before.
            third, at = next_int(
                data, find_token(data, pos, mode, 4, row - k - n_tags + 2), mode, 4
            )
            more = _n_parts(n_tags, third, legacy)
            if at >= 0 and more < 0:
                return pos, -1
            parts += more
            pos = skip_tokens(data, pos, row) if mode == ASCII else pos + 4 * row
        if pos < 0:
            break
    return pos, parts


@helper
def _keep_tags(
    tags: NDArray[np.int64],
    legacy: bool,
    label: int,
    columns: NDArray[np.int64],
    at: int,
    parts: NDArray[np.int64],
    filled: int,
) -> int:
    """Put label, physical, entity and where the partitions stand; returns how many there are."""
    n = tags.size
    columns[0, at] = label
    columns[1, at] = tags[0] if n > 0 else 0
    columns[2, at] = tags[1] if n > 1 else 0
    columns[3, at] = filled
    columns[4, at] = _n_parts(n, tags[2] if n > 2 else 0, legacy)
    for j in range(columns[4, at]):
        parts[filled + j] = tags[(2 if legacy or n == 3 else 3) + j]
    return filled + columns[4, at]


@kernel
def _fill(
    data: NDArray[np.uint8],
    pos: int,
    mode: Mode,
    n: int,
    legacy: bool,
    type_nodes: NDArray[np.int64],
    cell_at: NDArray[np.int64],
    node_at: NDArray[np.int64],
    columns: NDArray[np.int64],
    nodes: NDArray[np.int32],
    parts: NDArray[np.int64],
    *lookup: Any,
) -> tuple[int, int, int]:
    """Read what :func:`_scan` counted, some rows at a time."""
    head, scratch, done, filled = np.zeros(3, np.int64), np.empty(SCRATCH, np.int64), 0, 0
    while done < n:
        kind, n_tags, left, pos = _head(data, pos, mode, head)
        k, own = type_nodes[kind], 0 if mode == ASCII else 1
        row = own + n_tags + k
        done += left
        while left:
            m, before, at = min(left, SCRATCH // row), pos, node_at[kind]
            pos = take_ints(data, pos, mode, 4, scratch, m * row)
            if pos < 0:
                return NO_NUMBER, pos, 0
            for r in range(m):
                first = r * row + own
                tags = scratch[first : first + n_tags]
                label = scratch[r * row] if own else head[0]
                filled = _keep_tags(tags, legacy, label, columns, cell_at[kind] + r, parts, filled)
                # The nodes of all rows close up at the beginning.
                for j in range(k):
                    scratch[r * k + j] = scratch[first + n_tags + j]
            bad = find_range(scratch, 0, m * k, nodes, at, *lookup)
            if bad >= 0:
                there = (bad // k + 1) * (row - k) + bad
                return NO_NODE, find_token(data, before, mode, 4, there), scratch[bad]
            cell_at[kind] += m
            node_at[kind] += m * k
            left -= m
    return FINE, pos, 0


def read_periodic(cursor: GmshCursor) -> tuple[RawPeriodic, ...]:
    """The body of $Periodic, which is text in every mode."""
    n = _count_line(cursor, "periodic links")
    links = []
    for _ in range(n):
        dim, slave, master = (cursor.text_int("a periodic link") for _ in range(3))
        cursor.end_line()
        affine = _affine(cursor)
        m = _count_line(cursor, "periodic nodes")
        if m * 4 > cursor.left + 1:
            raise cursor.error(f"declares {m} pairs of nodes, which the file does not hold")
        pairs = np.empty((m, 2), dtype=np.int64)
        nothing = np.empty((m, 0)), np.empty((0, 2), dtype=np.int64)
        pos, _ = take_rows(cursor.data, cursor.pos, ASCII, 4, pairs, *nothing)
        if pos < 0:
            raise cursor.no_text(int(pos), "a pair of nodes")
        cursor.pos = int(pos)
        links.append(RawPeriodic(dim, slave, master, affine, pairs))
    return tuple(links)


def _affine(cursor: GmshCursor) -> tuple[float, ...]:
    """The line ``Affine`` and its numbers, where there is one."""
    start = cursor.pos
    words = cursor.line().split()
    if words[:1] != [b"Affine"]:
        cursor.pos = start
        return ()
    try:
        return tuple(float(w) for w in words[1:])
    except ValueError:
        raise cursor.error("the numbers behind 'Affine' are none: repair them", start) from None
