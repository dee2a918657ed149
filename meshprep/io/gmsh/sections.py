"""The small sections: names, entities, periodic links, and meshprep's own notes."""

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
    n = cursor.text_int("the number of names")
    cursor.end_line()
    if n < 0 or n * 6 > cursor.left + 1:
        raise cursor.error(f"declares {n} names, which the file does not hold: repair the file")
    names: dict[int, dict[int, str]] = {}
    for _ in range(n):
        start = cursor.pos
        dim, number = cursor.text_int("a dimension"), cursor.text_int("a physical group")
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
    """The body of $Periodic of MSH 4.1."""
    n = cursor.count("periodic links")
    cursor.need(n, 10, 28, "periodic links")
    links = []
    for _ in range(n):
        dim, slave, master = cursor.ints(3, what="a periodic link").tolist()
        affine = tuple(cursor.doubles(cursor.count("affine values"), "affine values").tolist())
        m = cursor.count("pairs of nodes")
        pairs = cursor.rows(m, 2, 0, size=True, what="pairs of nodes")[0]
        links.append(RawPeriodic(dim, slave, master, affine, pairs))
    return tuple(links)


def periodic_links(mesh: Mesh, node_label: NDArray[np.int64]) -> list[RawPeriodic]:
    """The links of a mesh, with the numbers that the nodes have in the file."""
    links = []
    for i in filter(is_periodic, mesh.lists):
        dim, slave, master = (int(i.attrs[name]) for name in ("dim", "slave", "master"))
        affine = tuple(map(float, i.attrs.get("affine", ())))
        links.append(RawPeriodic(dim, slave, master, affine, node_label[i.index]))
    return links


def read_notes(cursor: GmshCursor) -> tuple[tuple[str, ...], ...]:
    """The body of the section that only meshprep writes: records of words, one a line.

    ``entity DIM NEW OLD``
        Entity NEW was made from OLD (0: from none), since Gmsh wants one list of groups an entity.
    ``nodes``
        Nodes belong to no entity.
    ``numbered``
        Cells have numbers of their own, even where these are 1, 2, ... through the file.
    ``physical "NAME"``
        The groups are the tag of this name.
    """
    lines = [decode(line).strip() for line in cursor.skip_section().tobytes().splitlines()]
    lines = [line for line in lines if line]
    if lines[:1] != [NOTES_VERSION]:
        raise cursor.error("the notes are of an unknown version: update meshprep or delete them")
    sizes = {"entity": 4, "nodes": 1, "numbered": 1, "physical": 2}
    records = [tuple(line.split(maxsplit=1)) for line in lines[1:]]
    out = []
    for words in records:
        if words[0] == "entity":
            words = (words[0], *words[-1].split())
        elif len(words) > 1:
            words = (words[0], words[1].strip('"'))
        whole = all(w.lstrip("-").isdecimal() for w in words[1:]) or words[0] != "entity"
        if len(words) != sizes.get(words[0]) or not whole:
            raise cursor.error(f"the note '{words[0][:20]}' is damaged: delete this section")
        out.append(words)
    return tuple(out)
