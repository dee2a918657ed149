"""Sections, nodes and elements of Gmsh files, in text or binary, a piece at a time."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...kernels import Float64s, Int32s, Int64s, UInt8s, helper, kernel
from ...kernels.arrays import ZERO
from ..text.tokens import ASCII, BLANK, BREAK, DOUBLE_ROOM, INT_ROOM, Mode, put_float, put_int
from ..text.writer import SMALL_PIECE, NumberWriter


class GmshWriter(NumberWriter):
    """A Gmsh file being written: sections, blocks of nodes and of elements."""

    def begin(self, section: str) -> None:
        self.text(f"${section}\n")

    def end(self, section: str) -> None:
        """End a section; numbers in binary need a line of their own."""
        self.text(f"\n$End{section}\n" if self.mode != ASCII else f"$End{section}\n")

    def nodes4(self, heads: Int64s, start: Int64s, label: Int64s, points: Float64s) -> None:
        """Write blocks of nodes: heads (m, 3) and where each starts (m + 1), see `_nodes4`."""
        row = max(INT_ROOM, DOUBLE_ROOM * 3) + 5 * INT_ROOM
        self._in_pieces(_nodes4, 2 * start, row, heads, start, label, points)

    def elements4(
        self, heads: Int64s, start: Int64s, label: Int64s, nodes: Int32s, node_label: Int64s
    ) -> None:
        """Write blocks of elements: heads (m, 3) and where each starts (m + 1)."""
        row = INT_ROOM * (nodes.shape[1] + 5)
        self._in_pieces(_elements4, start, row, heads, start, label, nodes, node_label)

    def _in_pieces(self, put: Callable[..., int], ends: Int64s, row: int, *arrays: Any) -> None:
        """Write the items of blocks, which begin at these, as a kernel puts them into bytes."""
        n = int(ends[-1])
        step, out = self.room(n, row)
        for i in range(0, n, step):
            items = (i, min(i + step, n), int(np.searchsorted(ends, i, side="right")) - 1)
            self.file.write(out[: put(out, self.mode, items, *arrays)].data)

    def elements2(
        self, number: int, columns: Sequence[Int64s], nodes: Int32s, node_label: Int64s
    ) -> None:
        """Write elements of MSH 2.2: their labels and as many tags each, then their nodes."""
        n, wide = len(nodes), len(columns) + nodes.shape[1]
        if self.mode == ASCII:
            head = (np.broadcast_to(np.int64(x), n) for x in (number, len(columns) - 1))
            columns, wide = [columns[0], *head, *columns[1:]], wide + 2
        else:
            self.ints((number, n, len(columns) - 1))
        step = max(1, SMALL_PIECE // (8 * wide))
        out = np.empty((min(step, n), wide), np.int64 if self.mode == ASCII else "<i4")
        for i in range(0, n, step):
            some = out[: n - i]
            for j, column in enumerate(columns):
                some[:, j] = column[i : i + step]
            some[:, len(columns) :] = node_label.take(nodes[i : i + step])
            if self.mode == ASCII:
                self.rows(some)
            else:
                self.file.write(some.data)


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
    pos, (first, stop, block) = ZERO, items
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
    pos, k, (first, stop, block) = ZERO, nodes.shape[1], items
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
