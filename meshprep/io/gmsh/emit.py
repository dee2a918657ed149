"""Sections, nodes and elements of Gmsh files, in text or binary, a piece at a time."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ...kernels import Float64s, Int32s, Int64s, UInt8s, helper, kernel
from ..text.tokens import ASCII, BLANK, BREAK, DOUBLE_ROOM, INT_ROOM, Mode, put_float, put_int
from ..text.writer import SMALL_PIECE, NumberWriter
from .types import LONG_BLOCK


class GmshWriter(NumberWriter):
    """A Gmsh file being written: sections, blocks of nodes and of elements."""

    # Whether nodes are numbered 1, 2, 3, ...
    plain_nodes = False

    def begin(self, section: str) -> None:
        """Begin a section."""
        self.text(f"${section}\n")

    def end(self, section: str) -> None:
        """End a section; numbers in binary need a line of their own."""
        self.text(f"\n$End{section}\n" if self.mode != ASCII else f"$End{section}\n")

    def _label_rows(
        self, kind: str, label: Int64s, tags: Int64s, nodes: Int32s, node_label: Int64s
    ) -> None:
        """Write label, tags (one row for all, or one each) and nodes of elements."""
        behind = 1 + tags.shape[1]
        width = behind + nodes.shape[1]
        step = max(1, SMALL_PIECE // (width * np.dtype(kind).itemsize))
        out = np.empty((min(step, len(label)), width), dtype=kind)
        for i in range(0, len(label), step):
            some = slice(i, i + step)
            piece = out[: len(label) - i]
            piece[:, 0] = label[some]
            piece[:, 1:behind] = tags[some] if len(tags) > 1 else tags
            if self.plain_nodes:
                np.add(nodes[some], 1, out=piece[:, behind:])
            else:
                piece[:, behind:] = node_label[nodes[some]]
            if self.mode == ASCII:
                self.rows(piece)
            else:
                self.file.write(piece.data)

    def _as_wholes(self, heads: Int64s, n: int) -> bool:
        """Whether blocks are written one at a time from arrays, which is fast where they are long.

        Arrays are as the file wants them where this machine has its byte order.
        """
        return (
            self.mode != ASCII and sys.byteorder == "little" and len(heads) <= 1 + n // LONG_BLOCK
        )

    def nodes4(self, heads: Int64s, start: Int64s, label: Int64s, points: Float64s) -> None:
        """Write blocks of nodes: heads (m, 3) and where each starts (m + 1), see `_nodes4`."""
        if self._as_wholes(heads, len(label)):
            for head, a, b in zip(heads, start, start[1:], strict=False):
                self.ints(head)
                self.ints([b - a], size=True)
                self.file.write(label[a:b].data)
                self.file.write(points[a:b].data)
            return
        row = max(INT_ROOM, DOUBLE_ROOM * 3) + 5 * INT_ROOM
        self._in_pieces(_nodes4, 2 * start, row, heads, start, label, points)

    def elements4(
        self, heads: Int64s, start: Int64s, label: Int64s, nodes: Int32s, node_label: Int64s
    ) -> None:
        """Write blocks of elements: heads (m, 3) and where each starts (m + 1)."""
        if self._as_wholes(heads, len(label)):
            for head, a, b in zip(heads, start, start[1:], strict=False):
                self.ints(head)
                self.ints([b - a], size=True)
                self._label_rows("<i8", label[a:b], _NO_TAGS, nodes[a:b], node_label)
            return
        row = INT_ROOM * (nodes.shape[1] + 5)
        self._in_pieces(_elements4, start, row, heads, start, label, nodes, node_label)

    def _in_pieces(self, put: Callable[..., int], ends: Int64s, row: int, *arrays: Any) -> None:
        """Write the items of blocks, which begin at these, as a kernel puts them into bytes."""
        n = int(ends[-1])
        step, out = self.room(n, row)
        for i in range(0, n, step):
            items = (i, min(i + step, n), int(np.searchsorted(ends, i, side="right")) - 1)
            self.put(out, put(out, self.mode, items, *arrays))

    def elements2(
        self, number: int, label: Int64s, tags: Int64s, nodes: Int32s, node_label: Int64s
    ) -> None:
        """Write elements of MSH 2.2 that have the same tags (1, t) or as many of them (n, t)."""
        if self.mode != ASCII:
            self.ints((number, len(label), tags.shape[1]))
        else:
            head = np.broadcast_to([number, tags.shape[1]], (len(tags), 2))
            tags = np.hstack([head, tags])
        self._label_rows("<i4" if self.mode != ASCII else "<i8", label, tags, nodes, node_label)


_NO_TAGS = np.empty((1, 0), dtype=np.int64)


@helper
def _head(out: UInt8s, pos: int, mode: Mode, head: Int64s, count: int) -> int:
    for j in range(3):
        pos = put_int(out, pos, mode, 4, head[j], BLANK)
    return put_int(out, pos, mode, 8, count, BREAK)


@kernel
def _nodes4(
    out: UInt8s,
    mode: Mode,
    items: tuple[int, int, int],
    heads: Int64s,
    start: Int64s,
    label: Int64s,
    points: Float64s,
) -> int:
    """Items from the first to the last, from this block on: its numbers come before its points."""
    pos, (first, stop, block) = int(np.int64(0)), items
    for item in range(first, stop):
        while item >= 2 * start[block + 1]:
            block += 1
        count = start[block + 1] - start[block]
        local = item - 2 * start[block]
        if local == 0:
            pos = _head(out, pos, mode, heads[block], count)
        if local < count:
            pos = put_int(out, pos, mode, 8, label[start[block] + local], BREAK)
            continue
        i = start[block] + local - count
        for j in range(3):
            pos = put_float(out, pos, mode, points[i, j], BREAK if j == 2 else BLANK)
    return pos


@kernel
def _elements4(
    out: UInt8s,
    mode: Mode,
    items: tuple[int, int, int],
    heads: Int64s,
    start: Int64s,
    label: Int64s,
    nodes: Int32s,
    node_label: Int64s,
) -> int:
    pos, k, (first, stop, block) = int(np.int64(0)), nodes.shape[1], items
    for i in range(first, stop):
        while i >= start[block + 1]:
            block += 1
        if i == start[block]:
            pos = _head(out, pos, mode, heads[block], start[block + 1] - start[block])
        pos = put_int(out, pos, mode, 8, label[i], BLANK)
        for j in range(k):
            tag = node_label[nodes[i, j]]
            pos = put_int(out, pos, mode, 8, tag, BLANK if j + 1 < k else BREAK)
    return pos
