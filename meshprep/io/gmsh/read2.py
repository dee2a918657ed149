"""Nodes, elements and periodic links of MSH 2."""

import numpy as np

from ...kernels import Int64s, UInt8s, kernel
from ..text.tokens import ASCII, Mode, skip_blank, take_ints
from .raw import BAD_ROW, FINE, NO_NUMBER, RawCells, RawElements, RawNodes
from .scan import SCRATCH, GmshCursor, tables_by_type, take_line
from .types import NODES

BAD_TYPE, BAD_FOLLOW, BAD_TAGS, BAD_PARTS = range(10, 14)
_NO_RUNS = np.empty((0, 2), dtype=np.int64)


def read_nodes(cursor: GmshCursor) -> RawNodes:
    """The body of $Nodes. O(bytes)."""
    n = cursor.count_line("nodes")
    label, points = cursor.rows(n, 1, 3, what="nodes")
    return RawNodes(label[:, 0], points)


def read_elements(cursor: GmshCursor) -> RawElements:
    """The body of $Elements. O(bytes)."""
    n = cursor.count_line("elements")
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
