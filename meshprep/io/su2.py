"""SU2 mesh files: one zone, cells of any mix, markers with their names.

Read here and not through meshio, which loses the names of markers, gives two markers one
number when a name follows an integer, reads the zones of a file into one another, and
cannot write.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import as_indices
from meshprep_runtime.types.ordering import Ordering

from ..mesh import IndexList, Mesh, Tag
from ..mesh.assemble import Block, assemble
from ..mesh.cells import check_node_count, node_count, shape_of
from .format import Capabilities, Format
from .format.reduce import flattened, reduce
from .text.words import numbers, words_of_lines

TAG = "su2:tag"
# Sections that are not the mesh, as text, or the name of the list that has their nodes.
SECTIONS = "su2:sections"
# The markers in the order of the file.
MARKERS = "su2:markers"
SURFACE_POINTS = "FFD_SURFACE_POINTS"
# Markers of nodes: the kind of their lists, and how VTK numbers a cell of one node.
VERTICES, VERTEX = "su2:vertices", 1
VTK_NUMBER = {
    "line": 3,
    "triangle": 5,
    "quad": 9,
    "tetra": 10,
    "hexahedron": 12,
    "wedge": 13,
    "pyramid": 14,
}
_TYPE = {number: name for name, number in VTK_NUMBER.items()}
# Column ``i`` in memory is column ``WEDGE[i]`` of the file and the other way round: the
# first triangle of VTK's wedges, which SU2 has, turns out of the cell.
WEDGE = [0, 2, 1, 3, 5, 4]
_KEYWORD = re.compile(rb"[ \t]*([A-Za-z_]+)[ \t]*=[ \t]*([^\r\n]*)")
# What a box of a deformation says in rows: places, and points of its own.
_OWN_ROWS = "FFD_"
_KNOWN = {
    "NDIME",
    "NPOIN",
    "NELEM",
    "NMARK",
    "MARKER_TAG",
    "MARKER_ELEMS",
    "NZONE",
    "IZONE",
}
# SU2 goes by the places of these words, so that they come without a line, too.
_SAME = {"MARKERTAG": "MARKER_TAG", "MARKERELEMS": "MARKER_ELEMS"}
# Halos: which nodes are sent to another part of the mesh.
_HALO = ("SEND_RECEIVE", "SEND_RECV", "SEND_TO")
_DAMAGED = "the file is truncated or damaged"


@dataclass(frozen=True)
class _Section:
    """A keyword, its value, and the bytes up to the next keyword."""

    keyword: str
    value: str
    body: bytes


def read(path: Path) -> Mesh:
    """Read an SU2 file.

    Cells of the volume come first, then those of the markers. Marker names that are
    integers are the group numbers; the others are numbered from 1 in the order of the file.
    Markers of nodes are lists. As in SU2, the place of a point is its number, whatever
    stands behind it.

    Raises MeshprepError on several zones, counts that the file does not hold, unknown cell
    types and bad numbers.
    """
    # Refuse what is no mesh of one zone.
    sections = list(_split_sections(path.read_bytes()))
    _refuse_halos(sections)
    zones = _value(sections, "NZONE", default=1)
    if zones > 1:
        raise MeshprepError(f"has {zones} zones: write one file a zone")
    dim = _value(sections, "NDIME")
    if dim not in (2, 3):
        raise MeshprepError(f"NDIME is {dim}, must be 2 or 3")
    # Read the points and cells of the volume, then the markers of its border.
    points = _read_points(_only(sections, "NPOIN"), dim)
    blocks = [Block(t, n) for t, n in _read_cells(_only(sections, "NELEM"))]
    names: dict[int, str] = {}
    vertices, faces = _split_markers(sections)
    markers = _read_markers(faces, names)
    # Keep sections that are no mesh, as text or as lists of the points that they name.
    others = tuple(_other_sections(sections))
    lists = [one for one in others if isinstance(one, IndexList)]
    lists += [_vertices(tag, section) for tag, section in vertices.items()]
    texts = tuple(one if isinstance(one, str) else one.name for one in others)
    extras: dict[str, Any] = {SECTIONS: texts} if texts else {}
    tags = tuple(dict.fromkeys(s.value for s in sections if s.keyword == "MARKER_TAG"))
    extras |= {MARKERS: tags} if tags else {}
    unread = tuple(_unread_markers(faces, names if markers else {}))
    extras |= {"unread": unread} if unread else {}
    # a surface in space has lines as markers
    tag_names = {(TAG, shape_of(b.cell_type).dim): names for b in markers}
    return assemble(
        points=points,
        blocks=blocks + markers,
        tag_names=tag_names,
        lists=lists,
        extras=extras,
    )[0]


def _refuse_halos(sections: Sequence[_Section]) -> None:
    # Files that older versions of SU2 split by themselves send nodes between parts by
    # markers of their own.
    for section in sections:
        if section.keyword in _HALO or (
            section.keyword == "MARKER_TAG" and section.value.upper() in _HALO
        ):
            raise MeshprepError(
                f"{section.keyword}= {section.value}: files that are split for parallel "
                "runs already, or hold the halos of periodic boundaries, are not "
                "supported: use the mesh without halos"
            )
        # The second number after NPOIN= is that of points without halos: both are the
        # same in a whole mesh.
        counts = section.value.split()
        if section.keyword == "NPOIN" and len(set(counts[:2])) > 1:
            raise MeshprepError(
                f"NPOIN= {' '.join(counts)}: some points are copies of another part's: use "
                "the mesh without halos"
            )


def _other_sections(sections: Sequence[_Section]) -> Iterator[str | IndexList]:
    """What is not the mesh: as text where it names no nodes, else as lists of nodes."""
    number = count(1)
    for s in sections:
        if s.keyword == SURFACE_POINTS and s.value != "0":
            yield _surface_points(s, next(number))
        elif s.keyword not in _KNOWN:
            _refuse_rows(s)
            yield f"{s.keyword}= {s.value}{s.body.decode('utf-8', 'replace').rstrip()}\n"


def _refuse_rows(section: _Section) -> None:
    """Refuse a section with numbers that may be of points or cells."""
    if section.keyword.startswith(_OWN_ROWS):
        return
    for line in section.body.decode("utf-8", "replace").splitlines():
        numbers_there = [w for w in line.split() if re.fullmatch(r"[0-9]+", w)]
        if numbers_there:
            raise MeshprepError(
                f"{section.keyword}= {section.value}: cannot tell whether "
                f"{numbers_there[0]} in "
                f"'{line.strip()[:40]}' is a point or a cell: take the section out"
            )


def _surface_points(section: _Section, number: int) -> IndexList:
    """Rows of a marker, a node, and where the node lies in the box."""
    # FFD_SURFACE_POINTS has rows MARKER NODE and three parametric coordinates in the box;
    # nodes must follow a new numbering, all else stays text.
    rows = [
        line.split()
        for line in section.body.decode("utf-8", "replace").splitlines()
        if line
    ]
    try:
        index = np.array([int(row[1]) for row in rows], dtype=np.int32)
    except (IndexError, ValueError, OverflowError):
        raise MeshprepError(f"{SURFACE_POINTS}: a row is not MARKER NODE X Y Z") from None
    if len(rows) != _count(section):
        raise MeshprepError(
            f"{SURFACE_POINTS}= {section.value}, but {len(rows)} rows: {_DAMAGED}"
        )
    attrs = {
        "kind": SURFACE_POINTS,
        "rows": tuple((row[0], " ".join(row[2:])) for row in rows),
    }
    return IndexList(
        name=f"{SURFACE_POINTS} {number}", set="nodes", index=index, attrs=attrs
    )


def _split_sections(data: bytes) -> Iterator[_Section]:
    # A percent sign begins a comment.
    if b"%" in data:
        data = re.sub(rb"%[^\r\n]*", b"", data)
    matches = list(_keywords(data))
    if not matches:
        raise MeshprepError("not a readable SU2 file: it has no lines KEYWORD= VALUE")
    ends = [m.start() for m in matches[1:]] + [len(data)]
    for match, end in zip(matches, ends, strict=True):
        keyword = match[1].decode().upper()
        value = match[2].decode("utf-8", "replace").strip()
        yield _Section(_SAME.get(keyword, keyword), value, data[match.end() : end])


def _keywords(data: bytes) -> Iterator[re.Match[bytes]]:
    """Lines with a keyword; looking for the equals signs passes over numbers at once."""
    pos = data.find(b"=")
    while pos >= 0:
        match = _KEYWORD.match(data, data.rfind(b"\n", 0, pos) + 1)
        if match:
            yield match
        pos = data.find(b"=", match.end() if match else pos + 1)


# Gmsh leaves markers out where there are no physical groups; SU2 does not read such a file.
_WHY_MISSING = {
    "NMARK": "the file is cut off, or was saved without groups of the border: name them"
}


def _only(sections: Sequence[_Section], keyword: str) -> _Section:
    matching = [s for s in sections if s.keyword == keyword]
    if not matching:
        why = _WHY_MISSING.get(keyword, "the file is cut off")
        raise MeshprepError(f"not a readable SU2 file: {keyword}= is missing: {why}")
    if len(matching) > 1:
        raise MeshprepError(
            f"not a readable SU2 file: {keyword}= stands {len(matching)} times, not 1"
        )
    return matching[0]


def _value(sections: Sequence[_Section], keyword: str, default: int | None = None) -> int:
    if default is not None and all(s.keyword != keyword for s in sections):
        return default
    return _count(_only(sections, keyword))


def _count(section: _Section) -> int:
    try:
        count = int(section.value.split()[0])
    except (IndexError, ValueError):
        count = -1
    if count < 0:
        raise MeshprepError(f"{section.keyword}= '{section.value}' is no count")
    if (
        section.keyword in ("NPOIN", "NELEM", "MARKER_ELEMS")
        and 2 * count > len(section.body) + 2
    ):
        raise MeshprepError(
            f"{section.keyword}= {count} is more than the {len(section.body)} bytes there "
            f"can hold: {_DAMAGED}"
        )
    return count


def _numbers_of_section(section: _Section, dtype: Any) -> NDArray:
    try:
        return numbers(section.body, dtype)
    except ValueError:
        raise MeshprepError(f"{section.keyword}: something there is no number") from None


def _columns_of_points(section: _Section, size: int, count: int) -> int:
    if count == 0 or size % count or not size:
        raise MeshprepError(
            f"{section.keyword}= {count}, but {size} numbers follow: {_DAMAGED}"
        )
    return size // count


def _read_points(section: _Section, dim: int) -> NDArray[np.float64]:
    # A row is the coordinates and, in older files, the number of the point, which SU2
    # ignores. All rows must be of one length, or some lost a number.
    values = _numbers_of_section(section, np.float64)
    count = _count(section)
    words = words_of_lines(section.body)
    words = words[words > 0]
    other = np.flatnonzero(words != words[:1])
    if other.size:
        row = other[0]
        raise MeshprepError(
            f"NPOIN: point {row + 1} has {words[row]} numbers, the first {words[0]}: "
            f"{_DAMAGED}"
        )
    table = values.reshape(count, _columns_of_points(section, values.size, count))
    if not dim <= table.shape[1] <= dim + 2:
        raise MeshprepError(
            f"NPOIN: rows have {table.shape[1]} numbers for {dim} coordinates"
        )
    return table[:, :dim]


def _read_cells(section: _Section) -> list[tuple[str, NDArray[np.int64]]]:
    """Tables by type in order of first appearance; a line is a cell, maybe numbered."""
    count = _count(section)
    values = _numbers_of_section(section, np.int64)
    if count == 0:
        return []
    # Each line is a cell: VTK's number of its type, its nodes from 0, and in older files
    # the number of the cell behind them.
    words = words_of_lines(section.body)
    words = words[words > 0]
    if words.size != count:
        raise MeshprepError(
            f"{section.keyword}= {count}, but {words.size} cells follow: {_DAMAGED}"
        )
    start = np.cumsum(words) - words
    types = values[start]
    out = []
    # Take the types in the order in which they first appear.
    for number in dict.fromkeys(
        types[np.sort(np.unique(types, return_index=True)[1])].tolist()
    ):
        if number not in _TYPE:
            raise MeshprepError(f"{section.keyword}: cell type {number} is unknown")
        rows = np.flatnonzero(types == number)
        n = node_count(_TYPE[number])
        for row in rows[(words[rows] < n + 1) | (words[rows] > n + 2)][:1]:
            check_node_count(
                f"{section.keyword}: cell {row + 1}", _TYPE[number], words[row] - 1
            )
        if _TYPE[number] == "wedge":
            columns = np.array(WEDGE)
        else:
            columns = np.arange(n)
        out.append((_TYPE[number], values[start[rows][:, None] + 1 + columns]))
    return out


def _split_markers(
    sections: Sequence[_Section],
) -> tuple[dict[str, _Section], list[tuple[str, _Section]]]:
    """The markers of nodes by name, and all others with their names."""
    tags = [s.value for s in sections if s.keyword == "MARKER_TAG"]
    elements = [s for s in sections if s.keyword == "MARKER_ELEMS"]
    expected = _count(_only(sections, "NMARK"))
    if len(tags) != len(elements) or len(tags) != expected:
        raise MeshprepError(
            f"not a readable SU2 file: NMARK= {expected}, but there are {len(tags)} "
            f"MARKER_TAG and {len(elements)} MARKER_ELEMS: {_DAMAGED}"
        )
    vertices: dict[str, _Section] = {}
    faces: list[tuple[str, _Section]] = []
    for tag, section in zip(tags, elements, strict=True):
        # A marker whose first row is a vertex holds nodes.
        kind = section.body.split(maxsplit=1)[:1]
        if kind == [b"%d" % VERTEX] and tag not in vertices:
            vertices[tag] = section
        else:
            faces.append((tag, section))
    return vertices, faces


def _vertices(tag: str, section: _Section) -> IndexList:
    """The nodes of a marker."""
    count = _count(section)
    values = _numbers_of_section(section, np.int64)
    words = words_of_lines(section.body)
    words = words[words > 0]
    whole = words.size == count and ((words == 2) | (words == 3)).all()
    if not whole or (values[np.cumsum(words) - words] != VERTEX).any():
        raise MeshprepError(
            f"MARKER_TAG= {tag}: {count} lines '{VERTEX} NODE' must follow: {_DAMAGED}, or "
            "name nodes and edges or faces by different markers"
        )
    nodes = values[np.cumsum(words) - words + 1]
    attrs = {"kind": VERTICES, "marker": tag}
    return IndexList(
        name=f"marker {tag}", set="nodes", index=as_indices(nodes, tag), attrs=attrs
    )


def _read_markers(
    markers: Sequence[tuple[str, _Section]], names: dict[int, str]
) -> list[Block]:
    blocks: list[Block] = []
    numbers = group_numbers([tag for tag, _ in markers])
    for name, section in markers:
        if str(numbers[name]) != name:
            names[numbers[name]] = name
        for cell_type, nodes in _read_cells(section):
            ids = np.full(len(nodes), numbers[name])
            blocks.append(Block(cell_type, nodes, tags={TAG: ids}))
    return blocks


def _unread_markers(
    markers: Sequence[tuple[str, _Section]], names: Mapping[int, str]
) -> Iterator[str]:
    """Markers without cells, but for those that groups have the names of."""
    for tag, section in markers:
        if not _count(section) and tag not in names.values():
            yield f"marker '{tag}' without cells"


def group_numbers(tags: Sequence[str]) -> Mapping[str, int]:
    """Integers other than 0 stand for themselves; names get the free numbers from 1."""
    numbers = {t: int(t) for t in tags if re.fullmatch(r"-?[1-9]\d{0,17}", t)}
    used_numbers = set(numbers.values())
    free = 1
    for t in tags:
        if t in numbers:
            continue
        while free in used_numbers:
            free += 1
        numbers[t] = free
        used_numbers.add(free)
    return numbers


UNMARKED = "none"
_ROWS_AT_ONCE = 65536
# Marker names that would not read back as they are.
_BAD = re.compile(r"[%=\x00-\x1f\x7f]|^\s|\s$|^$")

CAPABILITIES = Capabilities(
    cell_types=tuple(VTK_NUMBER),
    tag=TAG,
    tag_on="facets",
    group_names=True,
    plane=True,
    lower="facets",
    lists=(SURFACE_POINTS, VERTICES),
    extras=(SECTIONS, MARKERS),
)


def write(mesh: Mesh, path: Path) -> None:
    """Write an SU2 file; coordinates in full precision, boundary cells marker by marker."""
    writable = reduced(mesh)
    points = writable.coordinates
    assert points is not None
    # Count points and cells from 0; what is not the mesh follows it as text.
    top = writable.sets["cells"].parts or ("cells",)
    with path.open("wb") as f:
        f.write(f"NDIME= {points.shape[1]}\nNPOIN= {len(points)}\n".encode())
        _write_rows(f, points)
        f.write(f"NELEM= {writable.size('cells')}\n".encode())
        for name in top:
            _write_cells(f=f, mesh=writable, name=name, rows=None)
        _write_markers(f, writable)
        points_of_boxes = [i for i in writable.lists if i.attrs["kind"] == SURFACE_POINTS]
        lists = {i.name: _point_lines(i) for i in points_of_boxes}
        f.write(
            "".join(
                lists.get(text, text) for text in writable.extras.get(SECTIONS, ())
            ).encode()
        )


def _point_lines(points: IndexList) -> str:
    pairs = zip(points.index.tolist(), points.attrs["rows"], strict=True)
    lines = [f"{marker} {node} {rest}\n" for node, (marker, rest) in pairs]
    return f"{SURFACE_POINTS}= {len(lines)}\n" + "".join(lines)


def _write_markers(f: BinaryIO, mesh: Mesh) -> None:
    """Markers in the order of the file that the mesh is from, then all others."""
    ids = {t.set: t.first_ids() for t in mesh.tags}
    names = _marker_names(mesh)
    groups = {names.get(g, str(g)): g for g in _in_file_order(mesh, ids, names)}
    vertices = {i.attrs["marker"]: i for i in mesh.lists if i.attrs["kind"] == VERTICES}
    # Markers of cells and of nodes stand in one list: merge both by the order of the file
    # that was read.
    place = {marker: i for i, marker in enumerate(mesh.extras.get(MARKERS, ()))}
    markers = [*groups, *vertices]
    markers.sort(key=lambda marker: place.get(marker, len(place)))
    f.write(f"NMARK= {len(markers)}\n".encode())
    for marker in markers:
        if marker in vertices:
            nodes = vertices[marker].index
            f.write(f"MARKER_TAG= {marker}\nMARKER_ELEMS= {nodes.size}\n".encode())
            _write_rows(f, np.column_stack([np.full(nodes.size, VERTEX), nodes]))
            continue
        rows = {name: np.flatnonzero(i == groups[marker]) for name, i in ids.items()}
        total = sum(r.size for r in rows.values())
        f.write(f"MARKER_TAG= {marker}\nMARKER_ELEMS= {total}\n".encode())
        for name, chosen in rows.items():
            _write_cells(f=f, mesh=mesh, name=name, rows=chosen)


def _marker_names(mesh: Mesh) -> dict[int, str]:
    names: dict[int, str] = {}
    for tag in mesh.tags:
        names |= tag.names
    return names


def _write_cells(f: BinaryIO, mesh: Mesh, name: str, rows: NDArray | None) -> None:
    table = mesh.cell_map(name).table
    if rows is None:
        table = table
    else:
        table = table[rows]
    cell_type = str(mesh.sets[name].cell_type)
    if cell_type == "wedge":
        table = table[:, WEDGE]
    kind = np.full((len(table), 1), VTK_NUMBER[cell_type], table.dtype)
    _write_rows(f, np.hstack([kind, table]))


def _write_rows(f: BinaryIO, table: NDArray) -> None:
    """One line a row; floating numbers as the shortest text that reads back as the same."""
    for start in range(0, len(table), _ROWS_AT_ONCE):
        part = table[start : start + _ROWS_AT_ONCE]
        line = " ".join(["%r"] * part.shape[1]) + "\n"
        f.write((line * len(part) % tuple(part.ravel().tolist())).encode())


def losses(mesh: Mesh, **_options: object) -> list[str]:
    """What SU2 cannot hold: all but the cells, the markers of boundary cells, and names."""
    writable, lost = reduce(mesh, CAPABILITIES)
    moved = [name for name, order in marker_order(mesh).items() if not order.is_identity]
    lost += [f"the order of '{name}' (cells stand marker by marker)" for name in moved]
    loose = sum(int((_marker_numbers(writable, s) == 0).sum()) for s in _lower(writable))
    if loose:
        lost.append(
            f"{loose} boundary cells in no group (they get the marker '{UNMARKED}')"
        )
    names = list(_marker_names(writable).values())
    bad = {n for n in names if _BAD.search(n)}
    lost += [f"the marker name '{n}'" for n in sorted(bad)]
    shared = Counter(_markers(writable).values())
    lost += [f"that {n} groups have the marker '{m}'" for m, n in shared.items() if n > 1]
    return lost


def _lower(mesh: Mesh) -> list[str]:
    top = mesh.sets["cells"].parts or ("cells",)
    return [s.name for s in mesh.cell_sets if s.name not in top]


def _marker_numbers(mesh: Mesh, set_name: str) -> NDArray[np.int64]:
    tag = mesh.tag(TAG, set_name)
    if tag is None:
        return np.zeros(mesh.size(set_name), np.int64)
    return tag.first_ids()


def reduced(mesh: Mesh) -> Mesh:
    """The mesh as SU2 keeps it: plane where possible, each boundary cell in one marker."""
    marked = _marked(mesh)
    return marked.renumber(_by_marker(marked))


def marker_order(mesh: Mesh) -> dict[str, Ordering]:
    """The order of the boundary cells in a file: by marker, otherwise unchanged.

    Markers stand in the order of the file that the mesh is from, then by their groups'
    numbers.
    """
    return _by_marker(_marked(mesh))


def _marked(mesh: Mesh) -> Mesh:
    writable = flattened(reduce(mesh, CAPABILITIES)[0])
    points = writable.coordinates
    top = writable.sets["cells"].parts or ("cells",)
    dim = shape_of(str(writable.sets[top[0]].cell_type)).dim
    if points is None or points.shape[1] != dim:
        raise MeshprepError(
            "SU2 holds faces in a plane and volumes, no surfaces or lines in space: "
            "use another format"
        )
    return replace(writable, tags=_marker_tags(writable))


def _by_marker(mesh: Mesh) -> dict[str, Ordering]:
    # Sort boundary cells by the place of their marker, stably: cells of one marker keep
    # their order.
    ids = {t.set: t.first_ids() for t in mesh.tags}
    groups = _in_file_order(mesh, ids, _marker_names(mesh))
    place_of_group = np.argsort(groups)
    sorted_groups = np.sort(groups)
    rank = {s: place_of_group[np.searchsorted(sorted_groups, i)] for s, i in ids.items()}
    rows = {s: np.argsort(r, kind="stable") for s, r in rank.items()}
    return {s: Ordering.from_new_to_old(r) for s, r in rows.items()}


def _in_file_order(
    mesh: Mesh, ids: Mapping[str, NDArray[np.int64]], names: Mapping[int, str]
) -> list[int]:
    """The groups of boundary cells, and those that have names alone."""
    place = {marker: i for i, marker in enumerate(mesh.extras.get(MARKERS, ()))}
    groups = set().union(*(np.unique(i).tolist() for i in ids.values()), names)
    return sorted(groups, key=lambda g: (place.get(names.get(g, str(g)), len(place)), g))


def _marker_tags(mesh: Mesh) -> tuple[Tag, ...]:
    """The tags with the numbers that reading gives to markers of these names."""
    # A file has names and no numbers: give each group the number with which its marker
    # would be read back.
    ids = {s: _marker_numbers(mesh, s) for s in _lower(mesh)}
    markers = _markers(mesh)
    numbers = group_numbers([*markers.values()])
    names_of_markers = {numbers[m]: m for m in markers.values() if str(numbers[m]) != m}
    known = np.sort(np.asarray([*markers], dtype=np.int64))
    new = np.asarray([numbers[markers[g]] for g in known.tolist()], dtype=np.int64)
    marker_of_cells = ((s, new[np.searchsorted(known, i)]) for s, i in ids.items())
    return tuple(
        Tag.from_ids(name=TAG, set=s, ids=marker, names=names_of_markers)
        for s, marker in marker_of_cells
    )


def _markers(mesh: Mesh) -> dict[int, str]:
    """The marker of each group of boundary cells, in the order of the file."""
    names = _marker_names(mesh)
    groups = _in_file_order(
        mesh, {s: _marker_numbers(mesh, s) for s in _lower(mesh)}, names
    )
    return {g: _clean({0: UNMARKED, **names}.get(g, str(g))) for g in groups}


def _clean(name: str) -> str:
    if not _BAD.search(name):
        return name
    return re.sub(r"[%=\s\x00-\x1f\x7f]+", "_", name.strip()) or UNMARKED


FORMAT = Format(
    read=read,
    write=write,
    losses=losses,
    reduce=reduced,
    order=marker_order,
)
