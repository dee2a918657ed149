"""Nodes, elements and periodic links of MSH 2."""

import numpy as np

from ...kernels import Int64s, UInt8s, kernel
from ..text.tokens import ASCII, Mode, skip_blank, take_ints, take_rows
from .raw import BAD_ROW, FINE, NO_NUMBER, RawCells, RawElements, RawNodes, RawPeriodic
from .scan import SCRATCH, GmshCursor, tables_by_type, take_line
from .types import NODES

BAD_TYPE, BAD_FOLLOW, BAD_TAGS, BAD_PARTS = range(10, 14)
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
    """The body of $Elements. O(bytes)."""
    n = _count_line(cursor, "elements")
    cursor.need(n, 6, 8, "elements")
    columns = np.empty((5, n), dtype=np.int64)
    # Room for as many numbers as the file can hold; pages that are never written cost nothing.
    flat = np.empty(cursor.most_numbers(4) + SCRATCH, dtype=np.int64)
    code, pos, extra, end = _elements(cursor.data, cursor.pos, cursor.mode, n, columns, flat)
    _check(cursor, code, pos, extra)
    place, kind, n_tags, at, n_parts = columns
    flat = flat[: end + 2].copy()
    label = flat[at - (3 if cursor.mode == ASCII else 1)]
    physical, entity = (np.where(n_tags > i, flat[at + i], 0) for i in (0, 1))
    part = at + np.where(n_tags == 3, 2, 3)
    rest = entity, physical, part, n_parts
    cells = [
        RawCells(t, nodes, label[rows], _NO_RUNS, *(column[rows] for column in rest))
        for t, rows, nodes in tables_by_type(cursor, kind, flat, at + n_tags, place)
    ]
    cursor.pos = int(pos)
    return RawElements(tuple(cells), flat)


def _check(cursor: GmshCursor, code: int, pos: int, extra: int) -> None:
    if code == FINE:
        return
    if code == NO_NUMBER:
        raise cursor.no_number(int(pos), "a number of the elements")
    if code == BAD_ROW:
        _label, number, n_tags, *_ = cursor.data[pos : pos + SCRATCH].tobytes().split(maxsplit=3)
        raise cursor.wrong_row(int(pos), int(number), max(extra - 3 - int(n_tags), 0))
    texts = {
        BAD_TYPE: f"element type {extra} is not supported: remesh with another one",
        BAD_FOLLOW: f"a header declares {extra} elements, which do not fit: repair the file",
        BAD_TAGS: f"an element declares {extra} tags, which do not fit: repair the file",
        BAD_PARTS: f"an element has {extra} tags, of which the third does not count the rest: "
        "repair the file",
    }
    raise cursor.error(texts[code], int(pos))


@kernel
def _elements(
    data: UInt8s, pos: int, mode: Mode, n: int, columns: Int64s, flat: Int64s
) -> tuple[int, int, int, int]:
    """Read all numbers into ``flat``; returns code, position, a number for the message, how many.

    ``columns`` are, for each element: its place in the file, type, number of tags, where its tags
    begin in ``flat``, and how many partitions it has. In text every element has a head (label,
    type, tags); in binary it is (type, elements, tags) and holds for several elements, whose
    labels stand before their tags.
    """
    i, end = 0, 0
    while i < n:
        start, count, words = pos, 1, 0
        if mode == ASCII:
            pos, words = take_line(data, pos, flat, end, 3)
        else:
            pos = take_ints(data, pos, mode, 4, flat, end, 3)
            count = flat[end + 1]
        if pos < 0:
            return NO_NUMBER, pos, 0, 0
        kind, n_tags = flat[end + (1 if mode == ASCII else 0)], flat[end + 2]
        end += 3
        if kind < 0 or kind >= NODES.size or NODES[kind] == 0:
            return BAD_TYPE, start, kind, 0
        if count < 1 or count > n - i:
            return BAD_FOLLOW, start, count, 0
        if n_tags < 0 or n_tags > SCRATCH // 2:
            return BAD_TAGS, start, n_tags, 0
        row = n_tags + NODES[kind]
        if mode == ASCII and words != 3 + row:
            if words < 3 + row and skip_blank(data, pos) == data.size:
                return NO_NUMBER, -1 - data.size, 0, 0
            return BAD_ROW, skip_blank(data, start), words, 0
        for j in range(i, i + count):
            columns[0, j] = start if mode == ASCII else pos
            if mode != ASCII:
                pos = take_ints(data, pos, mode, 4, flat, end, 1 + row)
                if pos < 0:
                    return NO_NUMBER, pos, 0, 0
                end += 1
            columns[1, j], columns[2, j], columns[3, j] = kind, n_tags, end
            # The third tag counts those that follow; as the last tag, it is the only partition.
            columns[4, j] = n_tags - 3 if n_tags > 3 else n_tags == 3 and flat[end + 2] != 0
            if n_tags > 3 and flat[end + 2] != n_tags - 3:
                return BAD_PARTS, start, n_tags, 0
            end += row
        i += count
    return FINE, pos, 0, end


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
