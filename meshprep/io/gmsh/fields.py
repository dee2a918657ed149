"""Sections of values on nodes and elements: $NodeData, $ElementData, $ElementNodeData."""

import numpy as np

from ...kernels import Float64s, Int64s, UInt8s, kernel
from ..text.tokens import ASCII, Mode, next_int, skip_tokens, take_doubles
from .raw import RawField
from .scan import GmshCursor
from .sections import quoted

_NONE = np.empty(0, dtype=np.int64)


def read_field(cursor: GmshCursor) -> RawField:
    """The body of a section of values. O(bytes)."""
    section = cursor.section
    strings = _strings(cursor)
    n = _few(cursor, "real tags")
    reals = tuple(cursor.text_double("a real tag") for _ in range(n))
    n = _few(cursor, "integer tags")
    integers = tuple(cursor.text_int("an integer tag") for _ in range(n))
    cursor.end_line()
    if len(integers) < 3:
        raise cursor.error(
            f"has {len(integers)} integer tags, but step, components and entries are needed"
        )
    components, entries = integers[1:3]
    if components < 1 or entries < 0:
        raise cursor.error(f"declares {entries} entries of {components} components: repair it")
    header = (section, strings, reals, integers)
    if section == "ElementNodeData":
        return RawField(*header, *_element_nodes(cursor, entries, components))
    cursor.need(components, 1, 1, "components")
    label, values = cursor.rows(entries, 1, components, what="entries")
    return RawField(*header, label[:, 0], values, _NONE)


def _few(cursor: GmshCursor, what: str) -> int:
    n = cursor.text_int(f"the number of {what}")
    if n < 0 or 2 * n > cursor.left + 1:
        raise cursor.error(f"declares {n} {what}, which the file does not hold: repair it")
    return n


def _strings(cursor: GmshCursor) -> tuple[str, ...]:
    n = _few(cursor, "string tags")
    cursor.end_line()
    return tuple(quoted(cursor)[0] for _ in range(n))


def _element_nodes(cursor: GmshCursor, n: int, components: int) -> tuple[Int64s, Float64s, Int64s]:
    """Labels, flat values and nodes of each row."""
    cursor.need(n, 4, 8, "entries")
    cursor.need(components, 1, 1, "components")
    rows = np.empty((n, 2), dtype=np.int64)
    start, mode = cursor.pos, cursor.mode
    pos, total = _scan_rows(cursor.data, start, mode, components, rows)
    if pos < 0:
        raise cursor.no_number(int(pos), "an entry")
    values = np.empty(total)
    hard = cursor.hard_list(values.size)
    pos, found = _fill_rows(cursor.data, start, mode, components, rows, values, hard)
    if pos < 0:
        raise cursor.no_number(int(pos), "a value")
    cursor.settle(values, hard[:found])
    cursor.pos = int(pos)
    return rows[:, 0].copy(), values, rows[:, 1].copy()


@kernel
def _scan_rows(
    data: UInt8s, pos: int, mode: Mode, components: int, rows: Int64s
) -> tuple[int, int]:
    """Read label and number of nodes of every row; returns the position and how many values."""
    total = 0
    for i in range(len(rows)):
        rows[i, 0], pos = next_int(data, pos, mode, 4)
        if pos < 0:
            return pos, 0
        start = pos
        rows[i, 1], pos = next_int(data, pos, mode, 4)
        if pos < 0:
            return pos, 0
        left = (data.size - pos) // components
        if rows[i, 1] < 0 or rows[i, 1] > left:
            return -1 - (data.size if rows[i, 1] > left else start), 0
        n = rows[i, 1] * components
        total += n
        if mode == ASCII:
            pos = skip_tokens(data, pos, n)
        elif 8 * n > data.size - pos:
            pos = -1 - data.size
        else:
            pos += 8 * n
        if pos < 0:
            return pos, 0
    return pos, total


@kernel
def _fill_rows(
    data: UInt8s,
    pos: int,
    mode: Mode,
    components: int,
    rows: Int64s,
    values: Float64s,
    hard: Int64s,
) -> tuple[int, int]:
    at, found = 0, 0
    for i in range(len(rows)):
        _, pos = next_int(data, pos, mode, 4)
        _, pos = next_int(data, pos, mode, 4)
        end = at + rows[i, 1] * components
        pos, found = take_doubles(data, pos, mode, values, at, end, hard, found)
        if pos < 0:
            break
        at = end
    return pos, found
