"""Putting numbers into a file, in text or binary, a piece at a time."""

from collections.abc import Iterable
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from .tokens import ASCII, DOUBLE_ROOM, INT_ROOM, Mode, put_rows

# Bytes that one piece takes at most; in binary they are filled in the cache.
PIECE = 1 << 23
SMALL_PIECE = 1 << 20


class NumberWriter:
    """A file being written, and its mode, ``tokens.ASCII`` or ``tokens.LITTLE``."""

    def __init__(self, file: BinaryIO, mode: Mode) -> None:
        self.file = file
        self.mode = mode
        self._buffer = np.empty(0, dtype=np.uint8)

    def text(self, text: str) -> None:
        self.file.write(text.encode())

    def room(self, rows: int, row_bytes: int) -> tuple[int, NDArray[np.uint8]]:
        """How many rows a piece takes, and a buffer for it."""
        step = max(1, min(rows, PIECE // row_bytes))
        if self._buffer.size < step * row_bytes:
            self._buffer = np.empty(step * row_bytes, dtype=np.uint8)
        return step, self._buffer

    def ints(self, values: Iterable[int], *, size: bool = False) -> None:
        """Write a few whole numbers, of 4 bytes or as wide as sizes; a line in text."""
        self._few(map(int, values), "<i8" if size else "<i4")

    def doubles(self, values: Iterable[float]) -> None:
        """Write a few doubles; a line in text."""
        self._few(map(float, values), "<f8")

    def _few(self, values: Iterable[float], kind: str) -> None:
        if self.mode != ASCII:
            self.file.write(np.fromiter(values, kind).tobytes())
        else:
            self.text(" ".join(map(repr, values)) + "\n")

    def rows(
        self,
        ints: NDArray[np.integer],
        values: NDArray | None = None,
        *,
        size: bool = False,
    ) -> None:
        """Write rows of whole numbers followed by doubles. O(n)."""
        n = len(ints)
        values = np.empty((n, 0)) if values is None else values
        if self.mode != ASCII:
            self._mixed_rows(ints, values, "<i8" if size else "<i4")
            return
        row_bytes = INT_ROOM * ints.shape[1] + DOUBLE_ROOM * values.shape[1]
        step, out = self.room(n, row_bytes)
        for i in range(0, n, step):
            # Copies, since kernels are compiled anew for arrays that refuse writing.
            some = np.array(ints[i : i + step], dtype=np.int64, order="C")
            doubles = np.array(values[i : i + step], dtype=np.float64, order="C")
            self.file.write(out[: put_rows(out, some, doubles)].data)

    def _mixed_rows(self, ints: NDArray[np.integer], values: NDArray, kind: str) -> None:
        row = np.dtype([("i", kind, ints.shape[1:]), ("v", "<f8", values.shape[1:])])
        step = max(1, SMALL_PIECE // max(row.itemsize, 1))
        out = np.empty(min(step, len(ints)), dtype=row)
        for i in range(0, len(ints), step):
            some = out[: len(ints) - i]
            some["i"] = ints[i : i + step]
            some["v"] = values[i : i + step]
            self.file.write(some.data)
