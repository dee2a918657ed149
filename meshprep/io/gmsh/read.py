"""Reading a Gmsh file: its sections one after the other, then the mesh."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from meshprep_runtime.errors import MeshprepError

from ...mesh import Mesh
from . import sections
from .build import build
from .layout import KEPT_SECTIONS
from .numbering import Lookup, make_lookup
from .raw import RawField, RawMesh, RawNodes
from .sections import GmshCursor, quoted, read_format
from .tables import by_number, read_elements, read_nodes, read_parametric_nodes

# By section: the attribute of RawMesh that holds it, and its reader.
SectionReaders = dict[str, tuple[str, Callable[[GmshCursor], Any]]]
Readers = Mapping[str, SectionReaders]  # by version


def read_field(cursor: GmshCursor) -> RawField:
    """The body of a section of values. O(bytes)."""
    section = cursor.section
    # Before the values stand string tags (the name first), real tags (the time first) and
    # integer tags: step, components, entries and more.
    strings = _strings(cursor)
    reals = cursor.count_line("real tags")
    with cursor.as_text():
        # few as a rule: kernels would have to be compiled first
        cursor.need(reals, 2, 2, "a real tag")
        numbers = [cursor.real("a real tag") for _ in range(reals)]
        n_integers = cursor.count("integer tags")
        cursor.need(n_integers, 2, 2, "an integer tag")
        integers = [cursor.whole("an integer tag") for _ in range(n_integers)]
        cursor.end_line()
    if len(integers) < 3:
        raise cursor.error(
            f"has {len(integers)} integer tags, but step, components and entries are needed"
        )
    components, entries = integers[1:3]
    if components < 1 or entries < 0:
        raise cursor.error(
            f"declares {entries} entries of {components} components: repair it"
        )
    cursor.need(components, 1, 1, "components")
    label, values = cursor.rows(entries, 1, components, what="entries")
    return RawField(
        section=section,
        strings=strings,
        reals=tuple(numbers),
        integers=tuple(integers),
        label=label[:, 0],
        values=values,
    )


def _strings(cursor: GmshCursor) -> tuple[str, ...]:
    n = cursor.count_line("string tags")
    cursor.need(n, 1, 1, "string tags")
    return tuple(quoted(cursor)[0] for _ in range(n))


_BOTH: SectionReaders = {
    "PhysicalNames": ("names", sections.read_names),
    "Nodes": ("nodes", read_nodes),
    "Elements": ("elements", read_elements),
    "Periodic": ("periodic", sections.read_periodic),
    sections.NOTES_SECTION: ("notes", sections.read_notes),
    "NodeData": ("fields", read_field),
    "ElementData": ("fields", read_field),
}
READERS: Readers = {
    "2.2": {**_BOTH, "ParametricNodes": ("nodes", read_parametric_nodes)},
    "4.1": {
        **_BOTH,
        "Entities": ("entities", sections.read_entities),
        "PartitionedEntities": ("partitioned", sections.read_partitioned),
    },
}
_REFUSED = dict.fromkeys(
    ("NOD", "ELM"), "MSH 1.0 is not supported: save the file as MSH 4.1 or 2.2"
)


def read_file(path: Path) -> Mesh:
    """Read a Gmsh mesh, MSH 2.2 or 4.1, text or binary.

    :mod:`meshprep.io.gmsh` says what the mesh holds.

    Raises MeshprepError with the line, or the byte of a binary file, where it is damaged.
    """
    cursor = GmshCursor(path, np.fromfile(path, np.uint8))
    return build(read_sections(cursor), cursor)


def read_sections(cursor: GmshCursor, versions: Readers = READERS) -> RawMesh:
    """All sections of a file; raises MeshprepError where one that is needed is missing."""
    raw = RawMesh()
    section_names: set[str] = set()
    while (name := _next(cursor)) is not None:
        readers = versions.get(cursor.version, {})
        attribute, reader = readers.get(name, ("", None))
        again = name in section_names or (attribute == "nodes" and raw.nodes is not None)
        if again and (attribute not in ("", "fields") or name == "MeshFormat"):
            raise cursor.error("the section is there twice: remove one")
        section_names.add(name)
        if name in _REFUSED:
            raise cursor.error(_REFUSED[name])
        if name == "MeshFormat":
            read_format(cursor)
        elif attribute == "fields":
            raw.fields.append(read_field(cursor))
        elif reader is not None:
            setattr(raw, attribute, reader(cursor))
            if attribute == "nodes":
                _number_nodes(raw, cursor)
        else:
            _note_other_section(name, raw, cursor)
        cursor.end_section()

    # Parametric nodes of MSH 2 are the nodes.
    if "ParametricNodes" in versions.get(cursor.version, {}).keys() & section_names:
        section_names.add("Nodes")
    _check_sections(section_names, cursor)
    return raw


def _number_nodes(raw: RawMesh, cursor: GmshCursor) -> None:
    """Sort the nodes by number, unless our notes say that their order counts."""
    if not isinstance(raw.nodes, RawNodes):
        return
    is_placed = raw.notes is not None and raw.notes.placed
    if cursor.version == "4.1" and not is_placed:
        raw.nodes = by_number(raw.nodes)
    cursor.nodes = _lookup(raw.nodes, cursor)


def _note_other_section(name: str, raw: RawMesh, cursor: GmshCursor) -> None:
    """Pass over a section without a reader; keep its text, or say that it is left out."""
    if name == "GhostElements":
        cursor.unread.append(sections.GHOSTS)
        cursor.skip_section()
    elif name == "ElementNodeData":
        title = (*_strings(cursor), "")[0]
        cursor.unread.append(f"values '{title}' at the nodes of cells")
        cursor.skip_section()
    else:
        body = cursor.skip_section()
        raw.sections.append((name, body.tobytes() if name in KEPT_SECTIONS else b""))


def _check_sections(names: set[str], cursor: GmshCursor) -> None:
    """Raise MeshprepError where the header, the nodes or the elements are missing."""
    for name in ("MeshFormat", "Nodes", "Elements"):
        if name in names:
            continue
        what = "the mesh is not there"
        if name == "MeshFormat":
            what = "this is no Gmsh mesh"
        raise MeshprepError(f"{cursor.path}: section ${name} is missing: {what}")


def _next(cursor: GmshCursor) -> str | None:
    """The next section; before the header it may only be one that is skipped."""
    try:
        name = cursor.next_section()
    except MeshprepError:
        if cursor.version:
            raise
        raise MeshprepError(
            f"{cursor.path}: does not begin with $MeshFormat: this is no Gmsh mesh"
        ) from None
    if not cursor.version and any(name in readers for readers in READERS.values()):
        raise cursor.error("the section stands before $MeshFormat: this is no Gmsh mesh")
    return name


def _lookup(nodes: RawNodes, cursor: GmshCursor) -> Lookup:
    """Positions of the nodes; raises MeshprepError where they are not finite numbers."""
    where = f"{cursor.path}: $Nodes: node number"
    lookup, twice = make_lookup(nodes.label)
    if twice >= 0:
        raise MeshprepError(f"{where} {nodes.label[twice]} occurs twice: renumber one")
    if nodes.label.size and nodes.label.min() < 0:
        raise MeshprepError(f"{where} {nodes.label.min()} is negative: renumber it")
    good = np.isfinite(nodes.points)
    if not good.all():
        row = int(np.argmin(good.all(axis=1)))
        place = " ".join(f"{x:g}" for x in nodes.points[row])
        raise MeshprepError(
            f"{where} {nodes.label[row]} has the coordinates {place}: they must be finite "
            "numbers"
        )
    return lookup
