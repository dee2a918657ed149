"""The small sections: names, entities, periodic links, and meshprep's own notes."""

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...mesh import Mesh
from .layout import is_periodic
from .raw import Entity, RawPeriodic
from .scan import GmshCursor

NOTES_SECTION = "Meshprep"
NOTES_VERSION = "1"
# How a loss names them.
GHOSTS = "ghost cells of partitions"


def decode(text: bytes) -> str:
    """Text of a file: UTF-8, or latin-1 where it is none."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode("latin-1")


def read_names(cursor: GmshCursor) -> dict[int, dict[int, str]]:
    """The body of $PhysicalNames: dimension, number, name."""
    n = cursor.count_line("names")
    names: dict[int, dict[int, str]] = {}
    for _ in range(n):
        start = cursor.pos
        with cursor.as_text():
            dim, number = cursor.whole("a dimension"), cursor.whole("a physical group")
        name, rest = quoted(cursor)
        if not 0 <= dim <= 3:
            raise cursor.error(f"dimension {dim} is none of 0 to 3: repair the name", start)
        if rest:
            cursor.unread.append(f"'{rest}' behind the name '{name}' of a group")
        if names.setdefault(dim, {}).setdefault(number, name) != name:
            raise cursor.error(
                f"group {number} of dimension {dim} has two names: remove one", start
            )
    return names


def quoted(cursor: GmshCursor) -> tuple[str, str]:
    """The text between quotation marks on the rest of a line, and what stands behind it.

    As Gmsh reads it, the second mark ends the text; without marks all of the line is the text.
    """
    start = cursor.pos
    text = decode(cursor.line().strip())
    if not text.startswith('"'):
        return text, ""
    name, mark, rest = text[1:].partition('"')
    if not mark:
        raise cursor.error("a quotation mark is not closed: repair the text", start)
    return name, rest.strip()


def read_partitioned(cursor: GmshCursor) -> dict[str, Any]:
    """The body of $PartitionedEntities: the number of partitions, and the entities."""
    count = cursor.count("partitions")
    n = cursor.count("ghost entities")
    if n:
        cursor.unread.append(GHOSTS)
        cursor.rows(n, 2, 0, what="ghost entities")
    return {"count": count, "entities": read_entities(cursor, parts=True)}


def read_entities(cursor: GmshCursor, *, parts: bool = False) -> tuple[Entity, ...]:
    """The body of $Entities, and the end of that of $PartitionedEntities. O(entities)."""
    numbers = [cursor.count(f"entities of dimension {dim}") for dim in range(4)]
    cursor.need(sum(numbers), 10, 36, "entities")
    return tuple(_entity(cursor, dim, parts) for dim in range(4) for _ in range(numbers[dim]))


def _entity(cursor: GmshCursor, dim: int, parts: bool) -> Entity:
    start = cursor.pos
    tag = cursor.whole("an entity")
    parent, partitions = None, tuple[int, ...]()
    if parts:
        above = cursor.ints(2, what="a parent entity")
        parent = (int(above[0]), int(above[1]))
        partitions = _numbers(cursor, "partitions")
    box = tuple(cursor.doubles(3 if dim == 0 else 6, "a bounding box").tolist())
    if not np.isfinite(box).all():
        raise cursor.error(f"the bounding box of entity {tag} is not finite: repair it", start)
    # 0 stands for no group
    physical = tuple(filter(None, _numbers(cursor, "physical groups")))
    bounding = _numbers(cursor, "bounding entities") if dim else ()
    return Entity(dim, tag, box, physical, bounding, parent, partitions)


def _numbers(cursor: GmshCursor, what: str) -> tuple[int, ...]:
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
        dim, slave, master = cursor.ints(3, what="a periodic link").tolist()
        if old:
            affine = _affine(cursor)
        else:
            affine = tuple(cursor.doubles(cursor.count("affine values"), "affine values").tolist())
        m = cursor.count("pairs of nodes")
        pairs = cursor.rows(m, 2, 0, size=True, what="pairs of nodes")[0]
        links.append(RawPeriodic(dim, slave, master, affine, pairs))
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
        raise cursor.error("the numbers behind 'Affine' are none: repair them", start) from None


def periodic_links(mesh: Mesh, node_label: NDArray[np.int64]) -> list[RawPeriodic]:
    """The links of a mesh, with the numbers that the nodes have in the file."""
    links = []
    for i in filter(is_periodic, mesh.lists):
        dim, slave, master = (int(i.attrs[name]) for name in ("dim", "slave", "master"))
        affine = tuple(map(float, i.attrs.get("affine", ())))
        links.append(RawPeriodic(dim, slave, master, affine, node_label[i.index]))
    return links


@dataclass(eq=False)
class GmshNotes:
    """The section that only meshprep writes: records of words, one a line."""

    # ``entity DIM NEW OLD``: entity NEW was made from OLD (0: from none), since Gmsh wants one list
    # of groups an entity.
    entity: dict[int, dict[int, int]] = field(default_factory=dict)
    nodes: bool = False  # nodes belong to no entity
    # Cells have numbers of their own, even where these are 1, 2, ... through the file.
    numbered: bool = False
    physical: str = "physical"  # ``physical "NAME"``: the groups are the tag of this name


def read_notes(cursor: GmshCursor) -> GmshNotes:
    """The body of the section that only meshprep writes."""
    lines = [decode(line).strip() for line in cursor.skip_section().tobytes().splitlines()]
    version, *lines = [line for line in lines if line] or [""]
    if version != NOTES_VERSION:
        raise cursor.error("the notes are of an unknown version: update meshprep or delete them")
    notes = GmshNotes()
    for line in lines:
        name, _, rest = line.partition(" ")
        if found := re.fullmatch(r"entity (\d) (-?\d{1,18}) (-?\d{1,18})", line):
            notes.entity.setdefault(int(found[1]), {})[int(found[2])] = int(found[3])
        elif line in ("nodes", "numbered"):
            setattr(notes, line, True)
        elif name == "physical" and rest:
            notes.physical = rest.strip('"')
        else:
            raise cursor.error(f"the note '{name[:20]}' is damaged: delete this section")
    return notes
