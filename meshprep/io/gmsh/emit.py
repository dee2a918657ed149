"""Sections, nodes and elements of Gmsh files, in text or binary, a piece at a time."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...kernels import Float64s, Int32s, Int64s, UInt8s, helper, kernel
from ...kernels.arrays import ZERO
from ..text.tokens import (
    ASCII,
    BLANK,
    BREAK,
    DOUBLE_ROOM,
    INT_ROOM,
    Mode,
    put_float,
    put_int,
)
from ..text.writer import SMALL_PIECE, NumberWriter


def real_text(value: float) -> str:
    """A double as Gmsh prints it, with more digits where needed to read back the same."""
    short = f"{value:.16g}"
    if float(short) == value:
        return short
    return f"{value:.17g}"


class GmshWriter(NumberWriter):
    """A Gmsh file being written: sections, blocks of nodes and of elements."""

    def begin(self, section: str) -> None:
        self.text(f"${section}\n")

    def end(self, section: str) -> None:
        """End a section; numbers in binary need a line of their own."""
        self.text(f"\n$End{section}\n" if self.mode != ASCII else f"$End{section}\n")

    def words(self, values: Iterable[int], *, size: bool = False) -> None:
        """Write the whole numbers of a record; in text each is followed by a blank."""
        if self.mode != ASCII:
            self.ints(values, size=size)
        else:
            self.text("".join(f"{int(value)} " for value in values))

    def real_words(self, values: Iterable[float]) -> None:
        """Write doubles of a record, as :meth:`words` does whole numbers."""
        if self.mode != ASCII:
            self.doubles(values)
        else:
            self.text("".join(f"{real_text(value)} " for value in values))

    def end_record(self) -> None:
        """End a record, which is a line in text."""
        if self.mode == ASCII:
            self.text("\n")

    def nodes4(
        self,
        heads: Int64s,
        start: Int64s,
        label: Int64s,
        points: Float64s,
        parametric: Float64s,
    ) -> None:
        """Write blocks of nodes: heads (m, 3) and starts (m + 1), see `_nodes4`."""
        row = max(INT_ROOM, DOUBLE_ROOM * 6) + 5 * INT_ROOM
        self._in_pieces(_nodes4, 2 * start, row, heads, start, label, points, parametric)

    def elements4(
        self, heads: Int64s, start: Int64s, label: Int64s, nodes: Int32s, node_label: Int64s
    ) -> None:
        """Write blocks of elements: heads (m, 3) and where each starts (m + 1)."""
        row = INT_ROOM * (nodes.shape[1] + 5)
        self._in_pieces(_elements4, start, row, heads, start, label, nodes, node_label)

    def _in_pieces(
        self, put: Callable[..., int], ends: Int64s, row: int, *arrays: Any
    ) -> None:
        """Write the items of blocks that begin at these positions, by a kernel."""
        n = int(ends[-1])
        step, out = self.room(n, row)
        for i in range(0, n, step):
            items = (i, min(i + step, n), int(np.searchsorted(ends, i, side="right")) - 1)
            self.file.write(out[: put(out, self.mode, items, *arrays)].data)

    def elements2(
        self, number: int, columns: Sequence[Int64s], nodes: Int32s, node_label: Int64s
    ) -> None:
        """Write elements of MSH 2.2: labels, equally many tags each, nodes."""
        n = len(nodes)
        wide = len(columns) + nodes.shape[1]
        # A line of text is NUMBER TYPE COUNT, so many tags, and the nodes. In binary, the
        # type, how many elements follow and COUNT stand once before these elements.
        if self.mode == ASCII:
            head = (np.broadcast_to(np.int64(x), n) for x in (number, len(columns) - 1))
            columns = [columns[0], *head, *columns[1:]]
            wide = wide + 2
        else:
            self.ints((number, n, len(columns) - 1))
        step = max(1, SMALL_PIECE // (8 * wide))
        out = np.empty((min(step, n), wide), np.int64 if self.mode == ASCII else "<i4")
        for i in range(0, n, step):
            piece = out[: n - i]
            for j, column in enumerate(columns):
                piece[:, j] = column[i : i + step]
            piece[:, len(columns) :] = node_label.take(nodes[i : i + step])
            if self.mode == ASCII:
                self.rows(piece)
            else:
                self.file.write(piece.data)


@helper
def _head(out: UInt8s, pos: int, mode: Mode, head: Int64s, count: int) -> int:
    for j in range(3):
        pos = put_int(
            out=out,
            pos=pos,
            mode=mode,
            width=4,
            value=head[j],
            end=BLANK,
        )
    return put_int(
        out=out,
        pos=pos,
        mode=mode,
        width=8,
        value=count,
        end=BREAK,
    )


@kernel
def _nodes4(
    out: UInt8s,
    mode: Mode,
    items: tuple[int, int, int],
    heads: Int64s,
    start: Int64s,
    label: Int64s,
    points: Float64s,
    parametric: Float64s,
) -> int:
    """Write the items of a range, from this block on: numbers come before points."""
    pos = ZERO
    first, stop, block = items
    for item in range(first, stop):
        while item >= 2 * start[block + 1]:
            block += 1
        count = start[block + 1] - start[block]
        local = item - 2 * start[block]
        if local == 0:
            pos = _head(out=out, pos=pos, mode=mode, head=heads[block], count=count)
        if local < count:
            pos = put_int(
                out=out,
                pos=pos,
                mode=mode,
                width=8,
                value=label[start[block] + local],
                end=BREAK,
            )
            continue
        i = start[block] + local - count
        # as many coordinates on the entity as it has dimensions, where the head says so
        n_parameters = heads[block, 0] if heads[block, 2] else 0
        for j in range(3):
            end = BREAK if j == 2 and n_parameters == 0 else BLANK
            pos = put_float(out=out, pos=pos, mode=mode, value=points[i, j], end=end)
        for j in range(n_parameters):
            end = BREAK if j + 1 == n_parameters else BLANK
            pos = put_float(out=out, pos=pos, mode=mode, value=parametric[i, j], end=end)
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
    pos = ZERO
    k = nodes.shape[1]
    first, stop, block = items
    for i in range(first, stop):
        while i >= start[block + 1]:
            block += 1
        if i == start[block]:
            pos = _head(
                out=out,
                pos=pos,
                mode=mode,
                head=heads[block],
                count=start[block + 1] - start[block],
            )
        pos = put_int(
            out=out,
            pos=pos,
            mode=mode,
            width=8,
            value=label[i],
            end=BLANK,
        )
        for j in range(k):
            pos = put_int(
                out=out,
                pos=pos,
                mode=mode,
                width=8,
                value=node_label[nodes[i, j]],
                end=BLANK,
            )
        # Gmsh leaves the blank behind the last node
        if mode == ASCII:
            out[pos] = BREAK
            pos += 1
    return pos
