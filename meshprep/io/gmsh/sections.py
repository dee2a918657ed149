"""A position in a Gmsh file, and its small sections: header, names, entities, links."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ...kernels import UInt8s
from ..text.cursor import Cursor
from ..text.tokens import LITTLE
from .numbering import Lookup
from .raw import Entity, RawPeriodic

VERSIONS = {"2": "2.2", "2.0": "2.2", "2.1": "2.2", "2.2": "2.2", "4.1": "4.1"}
NOTES_SECTION = "Meshprep"
NOTES_VERSION = "1"
GHOSTS = "ghost cells of partitions"


class GmshCursor(Cursor):
    """A position in a Gmsh file.

    ``nodes`` holds the nodes read so far, ``unread`` the sections that were left out.
    """

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
        # A section stands between lines $NAME and $EndNAME.
        word = self.data[start : start + 64].tobytes().split(maxsplit=1)[0]
        name = word[1:].decode("ascii", "replace")
        if not word.startswith(b"$") or not name.isidentifier() or not name.isascii():
            raise self.error(
                "expected the begin of a section, such as $Nodes, found "
                f"'{self.word(start)}': repair the file"
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
            raise self.error(
                f"{end.decode()} is missing: the file is truncated, write it again"
            )
        self.pos = stop
        return self.data[start:stop]


def read_format(cursor: GmshCursor) -> None:
    """Read the body of $MeshFormat and set the cursor to version and mode."""
    start = cursor.pos
    # The line is the version, 0 for text or 1 for binary, and the bytes of a size.
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
            f"file type {kind[:8]} with data of {size[:8]} bytes is unknown: repair the "
            "header",
            start,
        )
    cursor.version = VERSIONS[version]
    if kind == "1":
        # A binary file has the number 1 of four bytes here, which tells the order of
        # bytes.
        one = cursor.data[cursor.pos : cursor.pos + 4].tobytes()
        if one != b"\1\0\0\0" or size != "8":
            raise cursor.error(
                "only little-endian files with sizes of 8 bytes are read in binary: save "
                "the file on such a machine, or as text"
            )
        cursor.mode = LITTLE
        cursor.pos += 4


def decode(text: bytes) -> str:
    """Text of a file: UTF-8, or latin-1 where it is none."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode("latin-1")


# What stands before a name: a dimension, which MSH 2.0 leaves out, and the number of the
# group.
_BEFORE_NAME = re.compile(rb'\s*(?:([+-]?\d{1,18})\s+)?([+-]?\d{1,18})(?=["\s]|$)')
NO_DIMENSION = -1


def read_names(cursor: GmshCursor) -> dict[int, dict[int, str]]:
    """The body of $PhysicalNames: dimension (:data:`NO_DIMENSION` in 2.0), number, name."""
    n = cursor.count_line("names")
    names: dict[int, dict[int, str]] = {}
    for _ in range(n):
        # A line is the dimension, the number of the group and its name in quotation
        # marks.
        start = cursor.pos = cursor.behind_blank(cursor.pos)
        head = _BEFORE_NAME.match(cursor.line())
        if head is None:
            raise cursor.no_number(-1 - start, "a dimension and a physical group")
        cursor.pos = start + head.end()
        if head[1] is None:
            dim = NO_DIMENSION
        else:
            dim = int(head[1])
        number = int(head[2])
        name, rest = quoted(cursor)
        if head[1] is not None and not 0 <= dim <= 3:
            raise cursor.error(f"dimension {dim} is none of 0 to 3: repair the name", start)
        if rest:
            cursor.unread.append(f"'{rest}' behind the name '{name}' of a group")
        if names.setdefault(dim, {}).setdefault(number, name) != name:
            if dim == NO_DIMENSION:
                which = ""
            else:
                which = f" of dimension {dim}"
            raise cursor.error(f"group {number}{which} has two names: remove one", start)
    return names


def quoted(cursor: GmshCursor) -> tuple[str, str]:
    """The text between quotation marks on the rest of a line, and what stands behind it.

    As Gmsh reads it, the second mark ends the text; without marks all of the line is the
    text.
    """
    start = cursor.pos
    text = decode(cursor.line().strip())
    if not text.startswith('"'):
        return text, ""
    name, mark, rest = text[1:].partition('"')
    if not mark:
        raise cursor.error("a quotation mark is not closed: repair the text", start)
    return name, rest.strip()


def read_partitioned(cursor: GmshCursor) -> tuple[Entity, ...]:
    """The entities in the body of $PartitionedEntities."""
    cursor.count("partitions")
    n = cursor.count("ghost entities")
    if n:
        cursor.unread.append(GHOSTS)
        cursor.rows(n, 2, 0, what="ghost entities")
    return read_entities(cursor, parts=True)


def read_entities(cursor: GmshCursor, *, parts: bool = False) -> tuple[Entity, ...]:
    """The body of $Entities, and the end of that of $PartitionedEntities. O(entities)."""
    numbers = [cursor.count(f"entities of dimension {dim}") for dim in range(4)]
    cursor.need(sum(numbers), 10, 36, "entities")
    entities = []
    for dim in range(4):
        entities += [_entity(cursor, dim, parts) for _ in range(numbers[dim])]
    return tuple(entities)


def _entity(cursor: GmshCursor, dim: int, parts: bool) -> Entity:
    # A record is the entity, for a part of another one its parent and partitions, the box
    # (of a point its coordinates), its groups, and the entities that bound it.
    start = cursor.pos
    tag = cursor.whole("an entity")
    partitions: tuple[int, ...] = ()
    parent = (0, 0)
    if parts:
        parent_dim, parent_tag = cursor.ints(2, what="a parent entity").tolist()
        parent = parent_dim, parent_tag
        partitions = _numbers_of_line(cursor, "partitions")
    box = tuple(cursor.doubles(3 if dim == 0 else 6, "a bounding box").tolist())
    if not np.isfinite(box).all():
        raise cursor.error(
            f"the bounding box of entity {tag} is not finite: repair it", start
        )
    # 0 stands for no group
    physical = tuple(filter(None, _numbers_of_line(cursor, "physical groups")))
    if dim:
        bounding = _numbers_of_line(cursor, "bounding entities")
    else:
        bounding = ()
    return Entity(
        dim=dim,
        tag=tag,
        box=box,
        physical=physical,
        bounding=bounding,
        partitions=partitions,
        parent=parent,
    )


def _numbers_of_line(cursor: GmshCursor, what: str) -> tuple[int, ...]:
    n = cursor.count(what)
    # Few as a rule: one at a time is faster than an array.
    if n < 8:
        return tuple(cursor.whole(what) for _ in range(n))
    return tuple(cursor.ints(n, what=what).tolist())


def read_periodic(cursor: GmshCursor) -> tuple[RawPeriodic, ...]:
    """The body of $Periodic, which is text in every mode of MSH 2."""
    if cursor.version == "2.2":
        with cursor.as_text():
            return _links(cursor, old=True)
    return _links(cursor, old=False)


def _links(cursor: GmshCursor, *, old: bool) -> tuple[RawPeriodic, ...]:
    n = cursor.count("periodic links")
    cursor.need(n, 10, 28, "periodic links")
    links = []
    for _ in range(n):
        # A link is dimension and numbers of two entities, the transformation between
        # them, and pairs of nodes.
        dim, slave, master = cursor.ints(3, what="a periodic link").tolist()
        if old:
            affine = _affine(cursor)
        else:
            affine = tuple(
                cursor.doubles(cursor.count("affine values"), "affine values").tolist()
            )
        m = cursor.count("pairs of nodes")
        pairs = cursor.rows(m, 2, 0, size=True, what="pairs of nodes")[0]
        links.append(
            ({"dim": dim, "slave": slave, "master": master, "affine": affine}, pairs)
        )
    return tuple(links)


def _affine(cursor: GmshCursor) -> tuple[float, ...]:
    """The line ``Affine`` and its numbers, where there is one."""
    cursor.end_line()
    start = cursor.pos
    words = cursor.line().split()
    if words[:1] != [b"Affine"]:
        cursor.pos = start
        return ()
    try:
        return tuple(float(w) for w in words[1:])
    except ValueError:
        raise cursor.error(
            "the numbers behind 'Affine' are none: repair them", start
        ) from None


@dataclass(eq=False)
class GmshNotes:
    """The section that only meshprep writes: records of words, one a line."""

    # ``entity DIM NEW OLD``: entity NEW was made from OLD (0: from none), since Gmsh wants
    # one list of groups an entity.
    entity: dict[int, dict[int, int]] = field(default_factory=dict)
    nodes: bool = False  # nodes belong to no entity
    placed: bool = False  # nodes stand as in the file, not by their numbers
    # Cells have numbers of their own, even where these are 1, 2, ... through the file.
    numbered: bool = False
    physical: str = "physical"  # ``physical "NAME"``: the groups are the tag of this name


def read_notes(cursor: GmshCursor) -> GmshNotes:
    """The body of the section that only meshprep writes."""
    lines = [decode(line).strip() for line in cursor.skip_section().tobytes().splitlines()]
    version, *lines = [line for line in lines if line] or [""]
    if version != NOTES_VERSION:
        raise cursor.error(
            "the notes are of an unknown version: update meshprep or delete them"
        )
    notes = GmshNotes()
    for line in lines:
        name, _, value = line.partition(" ")
        if found := re.fullmatch(r"entity (\d) (-?\d{1,18}) (-?\d{1,18})", line):
            notes.entity.setdefault(int(found[1]), {})[int(found[2])] = int(found[3])
        elif line in ("nodes", "numbered", "placed"):
            setattr(notes, line, True)
        elif name == "physical" and value:
            notes.physical = value.strip('"')
        else:
            raise cursor.error(f"the note '{name[:20]}' is damaged: delete this section")
    return notes
