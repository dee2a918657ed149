"""Walking through a Gmsh file: its header, its sections, and where something is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...kernels import helper
from ..text.cursor import Cursor
from ..text.tokens import ASCII, BIG, LITTLE, Mode, skip_blank, skip_line
from .numbering import Lookup
from .raw import BAD_ROW, FINE, NO_NUMBER

VERSIONS = {"2": "2.2", "2.0": "2.2", "2.1": "2.2", "2.2": "2.2", "4.1": "4.1"}
MODES = {ASCII: "ascii", LITTLE: "little", BIG: "big"}
LONGEST_NAME = 64
# The most words of an element that are counted.
SCRATCH = 4096
DOLLAR = ord("$")


class GmshCursor(Cursor):
    """A position in a Gmsh file; ``nodes`` are those read so far."""

    def __init__(self, path: Path, data: NDArray[np.uint8]) -> None:
        super().__init__(path, data)
        self.version, self.exact_version = "", ""
        self.nodes: Lookup | None = None

    def next_section(self) -> str | None:
        """Enter the next section and return its name, or None at the end of the file."""
        self.section = ""
        self.pos = self.behind_blank(self.pos)
        if self.left == 0:
            return None
        start = self.pos
        word = self.data[start : start + LONGEST_NAME].tobytes().split(maxsplit=1)[0]
        name = word[1:].decode("ascii", "replace")
        if not word.startswith(b"$") or not name.isidentifier() or not name.isascii():
            raise self.error(
                f"expected the begin of a section, such as $Nodes, found '{self.word(start)}': "
                "repair the file"
            )
        if name.startswith("End"):
            raise self.error(f"${name} closes nothing: repair the file")
        self.pos = start + len(word)
        self.end_line()
        self.section = name
        return name

    def end_section(self) -> None:
        """Leave the section; its end must follow."""
        self.pos = self.behind_blank(self.pos)
        end = f"$End{self.section}".encode()
        found = self.data[self.pos : self.pos + len(end) + 1].tobytes()
        if found[: len(end)] != end or found[len(end) :].strip():
            if self.left < len(end):
                raise self.error(
                    f"the file ends before {end.decode()}: it is truncated, write it again"
                )
            raise self.error(
                f"expected {end.decode()}, found '{self.word(self.pos)}': repair the file"
            )
        self.pos += len(end)
        self.section = ""

    def skip_section(self) -> bytes:
        """Everything up to the end of the section, which remains to be left."""
        start = self.pos
        end = f"$End{self.section}".encode()
        stop = self._find(end, start)
        if stop < 0:
            raise self.error(f"{end.decode()} is missing: the file is truncated, write it again")
        self.pos = stop
        return self.data[start:stop].tobytes()


def read_format(cursor: GmshCursor) -> None:
    """Read the body of $MeshFormat and set the cursor to version and mode."""
    start = cursor.pos
    words = cursor.line().split()
    if len(words) != 3:
        raise cursor.error("expected version, type and size: this is no Gmsh mesh", start)
    version, kind, size = (w.decode("ascii", "replace") for w in words)
    number = version.rstrip("0").rstrip(".") if "." in version else version
    known = {v.rstrip("0").rstrip(".") if "." in v else v: k for v, k in VERSIONS.items()}
    if number not in known:
        raise cursor.error(
            f"MSH {version[:8]} is not supported: save the file as MSH 4.1 or 2.2, "
            "in Gmsh with -save -format msh41",
            start,
        )
    if kind not in ("0", "1") or size not in ("4", "8"):
        raise cursor.error(
            f"file type {kind[:8]} with data of {size[:8]} bytes is unknown: repair the header",
            start,
        )
    cursor.version, cursor.exact_version = known[number], number
    cursor.size_width = int(size)
    if kind == "1":
        cursor.mode = _byte_order(cursor)
        cursor.pos += 4


def _byte_order(cursor: GmshCursor) -> Mode:
    one = cursor.data[cursor.pos : cursor.pos + 4].tobytes()
    if one == b"\1\0\0\0":
        return LITTLE
    if one == b"\0\0\0\1":
        return BIG
    raise cursor.error("the number one that tells the byte order is missing: write the file again")


def nodes_before(cursor: GmshCursor) -> Lookup:
    """The numbers of the nodes, which a section needs that refers to nodes."""
    if cursor.nodes is None:
        raise cursor.error("the section stands before $Nodes: move it behind")
    return cursor.nodes


@helper
def skip_rows(data: NDArray[np.uint8], pos: int, count: int, row: int) -> tuple[int, int, int]:
    """Skip elements of a text: a line each, or the next one could give this one nodes."""
    for _ in range(count):
        line = skip_blank(data, pos)
        pos, words = skip_line(data, line)
        if words < row and pos == data.size:
            return NO_NUMBER, -1 - pos, 0
        if words < row and data[np.uint64(line)] == DOLLAR:
            return NO_NUMBER, -1 - line, 0
        if words != row:
            return BAD_ROW, line, min(words, SCRATCH - 1)
    return FINE, pos, 0
