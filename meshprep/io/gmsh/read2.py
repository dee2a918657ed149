"""Nodes, elements and periodic links of MSH 2."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .raw import FINE, NO_NUMBER, RawCells, RawElements, RawNodes, RawPeriodic
from .scan import Cursor
from .tokens import ASCII, next_int, take_rows
from .types import NODES

BAD_TYPE, BAD_FOLLOW, BAD_TAGS, BAD_PARTS = range(10, 14)
_NONE = np.empty(0, dtype=np.int64)
_NO_RUNS = np.empty((0, 2), dtype=np.int64)


def read_nodes(cursor: Cursor) -> RawNodes:
    """The body of $Nodes. O(bytes)."""
    n = _count_line(cursor, "nodes")
    label, points = cursor.rows(n, 1, 3, what="nodes")
    return RawNodes(label[:, 0], points)


def _count_line(cursor: Cursor, what: str) -> int:
    """The number on a line of its own, text in every mode."""
    n = cursor.text_int(f"the number of {what}")
    cursor.end_line()
    if n < 0:
        raise cursor.error(f"declares {n} {what}: repair the file")
    return n


def read_elements(cursor: Cursor) -> RawElements:
    """The body of $Elements; walked twice, so that nothing is sized by guess. O(bytes)."""
    n = _count_line(cursor, "elements")
    cursor.need(n, 6, 8, "elements")
    n_type, first = np.zeros(NODES.size, np.int64), np.full(NODES.size, n, np.int64)
    legacy = cursor.exact_version != "2.2"
    code, pos, extra, n_parts = _scan(
        cursor.data, cursor.pos, cursor.mode, n, legacy, NODES, n_type, first
    )
    _check(cursor, code, pos, extra)
    columns = np.empty((n, 5), dtype=np.int64)
    nodes = np.empty(int((n_type * NODES).sum()), dtype=np.int64)
    parts = np.empty(n_parts, dtype=np.int64)
    order = np.argsort(first, kind="stable")[: np.count_nonzero(n_type)]
    cell_start, node_start = np.zeros_like(n_type), np.zeros_like(n_type)
    cell_start[order] = np.cumsum(n_type[order]) - n_type[order]
    widths = n_type[order] * NODES[order]
    node_start[order] = np.cumsum(widths) - widths
    pos = _fill(
        cursor.data, cursor.pos, cursor.mode, n, legacy, NODES,
        cell_start.copy(), node_start.copy(), columns, nodes, parts,
    )  # fmt: skip
    if pos < 0:
        raise cursor.no_number(int(pos), "a number of the elements")
    cursor.pos = int(pos)
    cells = []
    for t in order:
        c = columns[cell_start[t] : cell_start[t] + n_type[t]]
        table = nodes[node_start[t] : node_start[t] + n_type[t] * NODES[t]]
        rest = (c[:, 2], c[:, 1], c[:, 3], c[:, 4])
        cells.append(RawCells(int(t), table.reshape(len(c), -1), c[:, 0].copy(), _NO_RUNS, *rest))
    return RawElements(tuple(cells), parts)


def _check(cursor: Cursor, code: int, pos: int, extra: int) -> None:
    if code == FINE:
        return
    if code == NO_NUMBER:
        raise cursor.no_number(int(pos), "a number of the elements")
    texts = {
        BAD_TYPE: f"element type {extra} is not supported: remesh with another one",
        BAD_FOLLOW: f"a header declares {extra} elements, which do not fit: repair the file",
        BAD_TAGS: f"an element declares {extra} tags, which do not fit: repair the file",
        BAD_PARTS: f"an element has {extra} tags, of which the third does not count the rest: "
        "repair the file",
    }
    raise cursor.error(texts[code], int(pos))


@njit(cache=True)
def _head(
    data: NDArray[np.uint8], pos: int, mode: int, left: int, head: NDArray[np.int64]
) -> tuple[int, int]:
    """Read what precedes the tags into (label, type, tags); elements left under this header.

    In text every element has it all; in binary, type and tags stand in a header that holds for
    several elements.
    """
    if mode == ASCII:
        for j in range(3):
            head[j], pos = next_int(data, pos, mode, 4)
            if pos < 0:
                break
        return pos, 0
    if left == 0:
        head[1], pos = next_int(data, pos, mode, 4)
        if pos >= 0:
            left, pos = next_int(data, pos, mode, 4)
        if pos >= 0:
            head[2], pos = next_int(data, pos, mode, 4)
        if pos < 0:
            return pos, 0
    if left > 0:
        head[0], pos = next_int(data, pos, mode, 4)
    return pos, left - 1


@njit(cache=True)
def _tags(
    data: NDArray[np.uint8],
    pos: int,
    mode: int,
    n_tags: int,
    legacy: bool,
    row: NDArray[np.int64],
    parts: NDArray[np.int64],
    done: int,
) -> tuple[int, int]:
    """Read tags into row (physical, entity) and parts, where these have room.

    Returns the position, and how many partitions; -1 where their number does not fit.
    """
    row[:] = 0
    n_parts, third = 0, 0
    for j in range(n_tags):
        value, pos = next_int(data, pos, mode, 4)
        if pos < 0:
            return pos, 0
        if j < 2:
            row[j] = value
        elif j == 2 and not (legacy or (n_tags == 3 and value != 0)):
            third = value
            if value != n_tags - 3:
                return pos, -1
        elif value != 0 and (j == 2 or (j - 3 < third and not legacy)):
            # Before 2.2 the third tag is the partition itself.
            if done + n_parts < parts.size:
                parts[done + n_parts] = value
            n_parts += 1
    return pos, n_parts


@njit(cache=True)
def _scan(
    data: NDArray[np.uint8],
    pos: int,
    mode: int,
    n: int,
    legacy: bool,
    type_nodes: NDArray[np.int64],
    n_type: NDArray[np.int64],
    first: NDArray[np.int64],
) -> tuple[int, int, int, int]:
    """Count the elements of each type, and all partitions; returns code, position, number."""
    head, row, none = np.zeros(3, np.int64), np.zeros(2, np.int64), np.empty(0, np.int64)
    left, parts = 0, 0
    for e in range(n):
        start = pos
        fresh = left == 0
        pos, left = _head(data, pos, mode, left, head)
        if pos < 0:
            return NO_NUMBER, pos, 0, 0
        kind, n_tags = head[1], head[2]
        if kind < 0 or kind >= type_nodes.size or type_nodes[kind] == 0:
            return BAD_TYPE, start, kind, 0
        if fresh and (left < 0 or left >= n - e):
            return BAD_FOLLOW, start, left + 1, 0
        if n_tags < 0 or n_tags > data.size:
            return BAD_TAGS, start, n_tags, 0
        pos, n_parts = _tags(data, pos, mode, n_tags, legacy, row, none, 0)
        if n_parts < 0:
            return BAD_PARTS, start, n_tags, 0
        for _ in range(type_nodes[kind] if pos >= 0 else 0):
            _, pos = next_int(data, pos, mode, 4)
            if pos < 0:
                break
        if pos < 0:
            return NO_NUMBER, pos, 0, 0
        n_type[kind] += 1
        first[kind] = min(first[kind], e)
        parts += n_parts
    return FINE, pos, 0, parts


@njit(cache=True)
def _fill(
    data: NDArray[np.uint8],
    pos: int,
    mode: int,
    n: int,
    legacy: bool,
    type_nodes: NDArray[np.int64],
    cell_at: NDArray[np.int64],
    node_at: NDArray[np.int64],
    columns: NDArray[np.int64],
    nodes: NDArray[np.int64],
    parts: NDArray[np.int64],
) -> int:
    """Read what :func:`_scan` counted: (label, physical, entity, parts from, parts) and nodes."""
    head, row = np.zeros(3, np.int64), np.zeros(2, np.int64)
    left, done = 0, 0
    for _ in range(n):
        pos, left = _head(data, pos, mode, left, head)
        pos, n_parts = _tags(data, pos, mode, head[2], legacy, row, parts, done)
        kind = head[1]
        at = cell_at[kind]
        columns[at, 0], columns[at, 1], columns[at, 2] = head[0], row[0], row[1]
        columns[at, 3], columns[at, 4] = done, n_parts
        cell_at[kind] = at + 1
        done += n_parts
        for _ in range(type_nodes[kind]):
            nodes[node_at[kind]], pos = next_int(data, pos, mode, 4)
            node_at[kind] += 1
    return pos


def read_periodic(cursor: Cursor) -> tuple[RawPeriodic, ...]:
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


def _affine(cursor: Cursor) -> tuple[float, ...]:
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
