"""Walking through a Gmsh file: its header, its sections, and where something is wrong."""

from pathlib import Path

from ...kernels import UInt8s
from ..text.cursor import Cursor
from ..text.tokens import LITTLE
from .numbering import Lookup

VERSIONS = {"2": "2.2", "2.0": "2.2", "2.1": "2.2", "2.2": "2.2", "4.1": "4.1"}
LONGEST_NAME = 64


class GmshCursor(Cursor):
    """A position in a Gmsh file; ``nodes`` are those read so far, ``unread`` what was left out."""

    def __init__(self, path: Path, data: UInt8s) -> None:
        super().__init__(path, data)
        self.version = ""
        self.nodes: Lookup | None = None
        self.unread: list[str] = []

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

    def skip_section(self) -> UInt8s:
        """Everything up to the end of the section, which remains to be left."""
        start = self.pos
        end = f"$End{self.section}".encode()
        stop = self._find(end, start)
        if stop < 0:
            raise self.error(f"{end.decode()} is missing: the file is truncated, write it again")
        self.pos = stop
        return self.data[start:stop]


def read_format(cursor: GmshCursor) -> None:
    """Read the body of $MeshFormat and set the cursor to version and mode."""
    start = cursor.pos
    words = cursor.line().split()
    if len(words) != 3:
        raise cursor.error("expected version, type and size: this is no Gmsh mesh", start)
    version, kind, size = (w.decode("ascii", "replace") for w in words)
    if version not in VERSIONS:
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
    cursor.version = VERSIONS[version]
    if kind == "1":
        one = cursor.data[cursor.pos : cursor.pos + 4].tobytes()
        if one != b"\1\0\0\0" or size != "8":
            raise cursor.error(
                "only little-endian files with sizes of 8 bytes are read in binary: save the file "
                "on such a machine, or as text"
            )
        cursor.mode = LITTLE
        cursor.pos += 4
