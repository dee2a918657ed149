"""A position in a file of numbers and words, and errors that say where."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from .tokens import ASCII, Mode, take_rows

# What a kernel reads, too: beyond 18 digits a number might not fit.
WHOLE = re.compile(rb"\s*([+-]?[0-9]{1,18})(?!\S)")
REAL = re.compile(
    rb"\s*([+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf))(?!\S)",
    re.IGNORECASE,
)
BLANK = re.compile(rb"\s*")


class Cursor:
    """A position in the bytes of a file, and what is needed to read on from there.

    ``path`` is for messages, and ``data`` the whole file. ``section`` names the part of the
    file that errors mention; empty for none.
    """

    def __init__(self, path: Path, data: NDArray[np.uint8]) -> None:
        self.path = path
        self.data = data
        self.pos = 0
        self.mode: Mode = ASCII
        self.section = ""
        self._bytes = data.data

    @property
    def left(self) -> int:
        """Bytes from here to the end of the file."""
        return int(self.data.size) - self.pos

    def error(self, problem: str, pos: int | None = None) -> MeshprepError:
        """An error that says where: the line of a text file, the byte of a binary one."""
        position = min(self.pos if pos is None else pos, int(self.data.size))
        if self.mode == ASCII:
            position = self.behind_blank(position) if pos is not None else position
            where = f"line {np.count_nonzero(self.data[:position] == 10) + 1}"
        else:
            where = f"byte {position}"
        inside = f" in ${self.section}" if self.section else ""
        return MeshprepError(f"{self.path}: {where}{inside}: {problem}")

    def no_number(self, pos: int, what: str = "a number") -> MeshprepError:
        """The error for a failed read, given the negative position of a kernel."""
        position = -1 - pos
        start = self.behind_blank(-1 - pos)
        if self.mode == ASCII and start < self.data.size:
            found = self.word(start)
            return self.error(f"expected {what}, found '{found}': repair the file", start)
        return self.error(
            f"the file ends before {what}: it is truncated, write it again", position
        )

    def behind_blank(self, pos: int) -> int:
        """The first position at or behind ``pos`` that is not blank."""
        found = BLANK.match(self._bytes, pos)
        assert found is not None
        return found.end()

    def word(self, pos: int) -> str:
        """The text at ``pos`` up to the next blank, shortened, fit for a message."""
        words = self.data[pos : pos + 24].tobytes().split()
        if words:
            text = words[0].decode("ascii", "replace")
        else:
            text = ""
        return "".join(c if c.isprintable() else "?" for c in text)

    def need(self, count: int, text_bytes: int, binary_bytes: int, what: str) -> None:
        """Raise MeshprepError where the rest of the file cannot hold ``count`` of these."""
        each = text_bytes if self.mode == ASCII else binary_bytes
        # The last number of a text needs no separator.
        if count < 0 or count * each > self.left + 1:
            raise self.error(
                f"declares {count} {what}, but only {self.left} bytes follow: "
                "the file is truncated or damaged, write it again"
            )

    @contextmanager
    def as_text(self) -> Iterator[None]:
        """What is read inside is text, whatever the mode of the file."""
        mode, self.mode = self.mode, ASCII
        yield
        self.mode = mode

    def count_line(self, what: str) -> int:
        """A number, not negative, on the rest of a line: text in every mode."""
        with self.as_text():
            n = self.count(what)
        self.end_line()
        return n

    def count(self, what: str, *, size: bool = True) -> int:
        """One whole number, not negative, in the mode of the file."""
        value = self.whole(what, size=size)
        if value < 0:
            raise self.error(f"declares {value} {what}: repair the file")
        return value

    def whole(self, what: str, *, size: bool = False) -> int:
        """One whole number, in the mode of the file."""
        start = self.pos
        expected = f"the number of {what}" if size else what
        if self.mode == ASCII:
            match = WHOLE.match(self._bytes, start)
            if match is None:
                raise self.no_number(-1 - start, expected)
            self.pos = match.end()
            return int(match[1])
        width = 8 if size else 4
        if self.left < width:
            raise self.no_number(-1 - int(self.data.size), expected)
        self.pos += width
        return int.from_bytes(self._bytes[start : self.pos], "little", signed=True)

    def real(self, what: str) -> float:
        """One number of text."""
        match = REAL.match(self._bytes, self.pos)
        if match is None:
            raise self.no_number(-1 - self.pos, what)
        self.pos = match.end()
        return float(match[1])

    def ints(
        self, n: int, *, size: bool = False, what: str = "numbers"
    ) -> NDArray[np.int64]:
        """``n`` whole numbers: of 4 bytes, or as wide as sizes are in this file."""
        self.need(count=n, text_bytes=2, binary_bytes=8 if size else 4, what=what)
        return self.rows(*self._row_of(n), 0, size=size, what=what)[0].reshape(-1)

    def doubles(self, n: int, what: str = "numbers") -> NDArray[np.float64]:
        """``n`` doubles."""
        self.need(count=n, text_bytes=2, binary_bytes=8, what=what)
        rows, columns = self._row_of(n)
        return self.rows(n=rows, ints=0, doubles=columns, what=what)[1].reshape(-1)

    def _row_of(self, n: int) -> tuple[int, int]:
        """The shape of ``n`` numbers: a single row for text, which parses twice as fast."""
        if self.mode == ASCII:
            return (1, n)
        return (n, 1)

    def rows(
        self, n: int, ints: int, doubles: int, *, size: bool = False, what: str = "rows"
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """``n`` rows of whole numbers followed by doubles, in the mode of the file."""
        width = 8 if size else 4
        self.need(
            count=n,
            text_bytes=2 * (ints + doubles),
            binary_bytes=width * ints + 8 * doubles,
            what=what,
        )
        if self.mode != ASCII:
            return self._binary_rows(
                n=n, ints=ints, doubles=doubles, width=width, what=what
            )
        numbers = np.empty((n, ints), dtype=np.int64)
        values = np.empty((n, doubles))
        pos = take_rows(
            data=self.data,
            pos=self.pos,
            mode=ASCII,
            width=width,
            ints=numbers,
            values=values,
        )
        if pos < 0:
            raise self.no_number(int(pos), what)
        self.pos = int(pos)
        return numbers, values

    def _binary_rows(
        self, n: int, ints: int, doubles: int, width: int, what: str
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        row = np.dtype([("i", f"<i{width}", (ints,)), ("v", "<f8", (doubles,))])
        if n * row.itemsize > self.left:
            raise self.no_number(-1 - int(self.data.size), what)
        rows = np.frombuffer(self.data, row, n, self.pos)
        self.pos += n * row.itemsize
        return rows["i"].astype(np.int64), rows["v"].astype(np.float64)

    def line(self) -> bytes:
        """The rest of this line, without its end."""
        stop = self._find(b"\n", self.pos)
        stop = int(self.data.size) if stop < 0 else stop
        text = self.data[self.pos : stop].tobytes()
        self.pos = min(stop + 1, int(self.data.size))
        return text.rstrip(b"\r")

    def end_line(self) -> None:
        """Go to the next line; only blanks may be on the rest of this one."""
        start = self.pos
        rest = self.line().strip()
        if rest:
            raise self.error(
                "there is more on this line than belongs there: repair it", start
            )

    def _find(self, what: bytes, start: int) -> int:
        found = re.compile(re.escape(what)).search(self._bytes, start)
        if found:
            return found.start()
        return -1
