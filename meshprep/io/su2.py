"""SU2 mesh files: one zone, cells of any mix, markers with their names.

Read here and not through meshio, which loses the names of markers, gives two markers one number
when a name follows an integer, reads the zones of a file into one another, and cannot write.
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
from meshprep_runtime.types.ordering import Ordering

from ..mesh import IndexList, Mesh, Tag
from ..mesh.assemble import Block, assemble
from ..mesh.cells import check_node_count, node_count, shape_of
from .reduce import flattened, reduce
from .registry import Capabilities, Format
from .text.words import numbers, words_of_lines

TAG = "su2:tag"
# Sections that are not the mesh, as text, or the name of the list that has their nodes.
SECTIONS = "su2:sections"
# The markers in the order of the file.
MARKERS = "su2:markers"
SURFACE_POINTS = "FFD_SURFACE_POINTS"
VTK_NUMBER = {
    **{"line": 3, "triangle": 5, "quad": 9},
    **{"tetra": 10, "hexahedron": 12, "wedge": 13, "pyramid": 14},
}
_TYPE = {number: name for name, number in VTK_NUMBER.items()}
# Column ``i`` in memory is column ``WEDGE[i]`` of the file and the other way round: the first
# triangle of VTK's wedges, which SU2 has, turns out of the cell.
WEDGE = [0, 2, 1, 3, 5, 4]
_KEYWORD = re.compile(rb"[ \t]*([A-Za-z_]+)[ \t]*=[ \t]*([^\r\n]*)")
_KNOWN = {"NDIME", "NPOIN", "NELEM", "NMARK", "MARKER_TAG", "MARKER_ELEMS", "NZONE", "IZONE"}
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

    Cells of the volume come first, then those of the markers. Marker names that are integers are
    the group numbers; the others are numbered from 1 in the order of the file.

    Raises MeshprepError on several zones, counts that the file does not hold, unknown cell types
    and bad numbers.
    """
    sections = list(_sections(path.read_bytes()))
    _refuse_halos(sections)
    zones = _value(sections, "NZONE", default=1)
    if zones > 1:
        raise MeshprepError(f"has {zones} zones: write one file a zone")
    dim = _value(sections, "NDIME")
    if dim not in (2, 3):
        raise MeshprepError(f"NDIME is {dim}, must be 2 or 3")
    points = _read_points(_only(sections, "NPOIN"), dim)
    blocks = [Block(t, n) for t, n in _read_cells(_only(sections, "NELEM"))]
    names: dict[int, str] = {}
    markers = _read_markers(sections, names)
    others = tuple(_others(sections))
    lists = [one for one in others if isinstance(one, IndexList)]
    texts = tuple(one if isinstance(one, str) else one.name for one in others)
    extras: dict[str, Any] = {SECTIONS: texts} if texts else {}
    tags = tuple(dict.fromkeys(s.value for s in sections if s.keyword == "MARKER_TAG"))
    extras |= {MARKERS: tags} if tags else {}
    unread = tuple(_unread_markers(sections, names if markers else {}))
    extras |= {"unread": unread} if unread else {}
    # a surface in space has lines as markers
    tag_names = {(TAG, shape_of(b.cell_type).dim): names for b in markers}
    return assemble(points, blocks + markers, tag_names=tag_names, lists=lists, extras=extras)[0]


def _refuse_halos(sections: Sequence[_Section]) -> None:
    for s in sections:
        if s.keyword in _HALO or (s.keyword == "MARKER_TAG" and s.value.upper() in _HALO):
            raise MeshprepError(
                f"{s.keyword}= {s.value}: files that are split for parallel runs already, or hold "
                "the halos of periodic boundaries, are not supported: use the mesh without halos"
            )


def _others(sections: Sequence[_Section]) -> Iterator[str | IndexList]:
    """What is not the mesh: as text where it names no nodes, else as lists of nodes."""
    number = count(1)
    for s in sections:
        if s.keyword == SURFACE_POINTS and s.value != "0":
            yield _surface_points(s, next(number))
        elif s.keyword not in _KNOWN:
            yield f"{s.keyword}= {s.value}{s.body.decode('utf-8', 'replace').rstrip()}\n"


def _surface_points(section: _Section, number: int) -> IndexList:
    """Rows of a marker, a node, and where the node lies in the box."""
    rows = [line.split() for line in section.body.decode("utf-8", "replace").splitlines() if line]
    try:
        index = np.array([int(row[1]) for row in rows], dtype=np.int32)
    except (IndexError, ValueError, OverflowError):
        raise MeshprepError(f"{SURFACE_POINTS}: a row is not MARKER NODE X Y Z") from None
    if len(rows) != _count(section):
        raise MeshprepError(f"{SURFACE_POINTS}= {section.value}, but {len(rows)} rows: {_DAMAGED}")
    attrs = {"kind": SURFACE_POINTS, "rows": tuple((row[0], " ".join(row[2:])) for row in rows)}
    return IndexList(f"{SURFACE_POINTS} {number}", "nodes", index, attrs)


def _sections(data: bytes) -> Iterator[_Section]:
    if b"%" in data:
        data = re.sub(rb"%[^\r\n]*", b"", data)
    found = list(_keywords(data))
    if not found:
        raise MeshprepError("not a readable SU2 file: it has no lines KEYWORD= VALUE")
    ends = [m.start() for m in found[1:]] + [len(data)]
    for match, end in zip(found, ends, strict=True):
        keyword = match[1].decode().upper()
        value = match[2].decode("utf-8", "replace").strip()
        yield _Section(_SAME.get(keyword, keyword), value, data[match.end() : end])


def _keywords(data: bytes) -> Iterator[re.Match[bytes]]:
    """Lines with a keyword; looking for the equals signs passes over numbers at once."""
    at = data.find(b"=")
    while at >= 0:
        match = _KEYWORD.match(data, data.rfind(b"\n", 0, at) + 1)
        if match:
            yield match
        at = data.find(b"=", match.end() if match else at + 1)


def _only(sections: Sequence[_Section], keyword: str) -> _Section:
    found = [s for s in sections if s.keyword == keyword]
    if len(found) != 1:
        raise MeshprepError(f"not a readable SU2 file: {keyword}= stands {len(found)} times, not 1")
    return found[0]


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
    if section.keyword in ("NPOIN", "NELEM", "MARKER_ELEMS") and 2 * count > len(section.body) + 2:
        raise MeshprepError(
            f"{section.keyword}= {count} is more than the {len(section.body)} bytes there can "
            f"hold: {_DAMAGED}"
        )
    return count


def _numbers(section: _Section, dtype: Any) -> NDArray:
    try:
        return numbers(section.body, dtype)
    except ValueError:
        raise MeshprepError(f"{section.keyword}: something there is no number") from None


def _columns(section: _Section, size: int, count: int) -> int:
    if count == 0 or size % count or not size:
        raise MeshprepError(f"{section.keyword}= {count}, but {size} numbers follow: {_DAMAGED}")
    return size // count


def _read_points(section: _Section, dim: int) -> NDArray[np.float64]:
    values = _numbers(section, np.float64)
    count = _count(section)
    words = words_of_lines(section.body)
    words = words[words > 0]
    for row in np.flatnonzero(words != words[:1])[:1]:
        raise MeshprepError(
            f"NPOIN: point {row + 1} has {words[row]} numbers, the first {words[0]}: {_DAMAGED}"
        )
    table = values.reshape(count, _columns(section, values.size, count))
    if not dim <= table.shape[1] <= dim + 2:
        raise MeshprepError(f"NPOIN: rows have {table.shape[1]} numbers for {dim} coordinates")
    if table.shape[1] > dim and not np.array_equal(table[:, dim], np.arange(count)):
        raise MeshprepError("NPOIN: the points do not stand in the order of their numbers")
    return table[:, :dim]


def _read_cells(section: _Section) -> list[tuple[str, NDArray[np.int64]]]:
    """Tables by type, in the order of first appearance: a line holds a cell, perhaps its number."""
    count, values = _count(section), _numbers(section, np.int64)
    if count == 0:
        return []
    words = words_of_lines(section.body)
    words = words[words > 0]
    if words.size != count:
        raise MeshprepError(
            f"{section.keyword}= {count}, but {words.size} cells follow: {_DAMAGED}"
        )
    start = np.cumsum(words) - words
    types = values[start]
    out = []
    for number in dict.fromkeys(types[np.sort(np.unique(types, return_index=True)[1])].tolist()):
        if number not in _TYPE:
            raise MeshprepError(f"{section.keyword}: cell type {number} is unknown")
        rows = np.flatnonzero(types == number)
        n = node_count(_TYPE[number])
        for row in rows[(words[rows] < n + 1) | (words[rows] > n + 2)][:1]:
            check_node_count(f"{section.keyword}: cell {row + 1}", _TYPE[number], words[row] - 1)
        columns = np.array(WEDGE) if _TYPE[number] == "wedge" else np.arange(n)
        out.append((_TYPE[number], values[start[rows][:, None] + 1 + columns]))
    return out


def _read_markers(sections: Sequence[_Section], names: dict[int, str]) -> list[Block]:
    blocks: list[Block] = []
    tags = [s.value for s in sections if s.keyword == "MARKER_TAG"]
    elements = [s for s in sections if s.keyword == "MARKER_ELEMS"]
    expected = _value(sections, "NMARK", default=len(tags))
    if len(tags) != len(elements) or len(tags) != expected:
        raise MeshprepError(
            f"not a readable SU2 file: NMARK= {expected}, but there are {len(tags)} MARKER_TAG and "
            f"{len(elements)} MARKER_ELEMS"
        )
    numbers = group_numbers(tags)
    for name, section in zip(tags, elements, strict=True):
        if str(numbers[name]) != name:
            names[numbers[name]] = name
        for cell_type, nodes in _read_cells(section):
            ids = np.full(len(nodes), numbers[name])
            blocks.append(Block(cell_type, nodes, tags={TAG: ids}))
    return blocks


def _unread_markers(sections: Sequence[_Section], names: Mapping[int, str]) -> Iterator[str]:
    """Markers without cells, but for those that groups have the names of."""
    tags = (s.value for s in sections if s.keyword == "MARKER_TAG")
    for tag, section in zip(
        tags, (s for s in sections if s.keyword == "MARKER_ELEMS"), strict=True
    ):
        if not _count(section) and tag not in names.values():
            yield f"marker '{tag}' without cells"


def group_numbers(tags: Sequence[str]) -> Mapping[str, int]:
    """Integers other than 0 stand for themselves; names get the free numbers from 1."""
    numbers = {t: int(t) for t in tags if re.fullmatch(r"-?[1-9]\d{0,17}", t)}
    taken, free = set(numbers.values()), 1
    for t in tags:
        if t in numbers:
            continue
        while free in taken:
            free += 1
        numbers[t] = free
        taken.add(free)
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
    lists=(SURFACE_POINTS,),
    extras=(SECTIONS, MARKERS),
)


def write(mesh: Mesh, path: Path) -> None:
    """Write an SU2 file; coordinates in full precision, boundary cells marker by marker."""
    kept = reduced(mesh)
    points = kept.coordinates
    assert points is not None
    top = kept.sets["cells"].parts or ("cells",)
    with path.open("wb") as f:
        f.write(f"NDIME= {points.shape[1]}\nNPOIN= {len(points)}\n".encode())
        _write_rows(f, points)
        f.write(f"NELEM= {kept.size('cells')}\n".encode())
        for name in top:
            _write_cells(f, kept, name, None)
        _write_markers(f, kept)
        lists = {i.name: _rows(i) for i in kept.lists}
        f.write("".join(lists.get(text, text) for text in kept.extras.get(SECTIONS, ())).encode())


def _rows(points: IndexList) -> str:
    pairs = zip(points.index.tolist(), points.attrs["rows"], strict=True)
    lines = [f"{marker} {node} {rest}\n" for node, (marker, rest) in pairs]
    return f"{SURFACE_POINTS}= {len(lines)}\n" + "".join(lines)


def _write_markers(f: BinaryIO, mesh: Mesh) -> None:
    ids = {t.set: t.first_ids() for t in mesh.tags}
    names = _names(mesh)
    groups = _in_file_order(mesh, ids, names)
    f.write(f"NMARK= {len(groups)}\n".encode())
    for group in groups:
        rows = {name: np.flatnonzero(i == group) for name, i in ids.items()}
        total = sum(r.size for r in rows.values())
        marker = names.get(group, str(group))
        f.write(f"MARKER_TAG= {marker}\nMARKER_ELEMS= {total}\n".encode())
        for name, chosen in rows.items():
            _write_cells(f, mesh, name, chosen)


def _names(mesh: Mesh) -> dict[int, str]:
    return {group: name for t in mesh.tags for group, name in t.names.items()}


def _write_cells(f: BinaryIO, mesh: Mesh, name: str, rows: NDArray | None) -> None:
    table = mesh.cell_map(name).table
    table = table if rows is None else table[rows]
    cell_type = str(mesh.sets[name].cell_type)
    table = table[:, WEDGE] if cell_type == "wedge" else table
    kind = np.full((len(table), 1), VTK_NUMBER[cell_type], table.dtype)
    _write_rows(f, np.hstack([kind, table]))


def _write_rows(f: BinaryIO, table: NDArray) -> None:
    """One line a row; floating numbers as the shortest text that reads back as the same."""
    for start in range(0, len(table), _ROWS_AT_ONCE):
        part = table[start : start + _ROWS_AT_ONCE]
        line = " ".join(["%r"] * part.shape[1]) + "\n"
        f.write((line * len(part) % tuple(part.ravel().tolist())).encode())


def losses(mesh: Mesh, **_options: object) -> list[str]:
    """What SU2 cannot hold: everything but the cells, the markers of their boundary and names."""
    kept, lost = reduce(mesh, CAPABILITIES)
    moved = [name for name, order in marker_order(mesh).items() if not order.is_identity]
    lost += [f"the order of '{name}' (cells stand marker by marker)" for name in moved]
    loose = sum(int((_ids(kept, s) == 0).sum()) for s in _lower(kept))
    if loose:
        lost.append(f"{loose} boundary cells in no group (they get the marker '{UNMARKED}')")
    names = list(_names(kept).values())
    bad = {n for n in names if _BAD.search(n)}
    lost += [f"the marker name '{n}'" for n in sorted(bad)]
    shared = Counter(_markers(kept).values())
    lost += [f"that {n} groups have the marker '{m}'" for m, n in shared.items() if n > 1]
    return lost


def _lower(mesh: Mesh) -> list[str]:
    top = mesh.sets["cells"].parts or ("cells",)
    return [s.name for s in mesh.cell_sets if s.name not in top]


def _ids(mesh: Mesh, set_name: str) -> NDArray[np.int64]:
    tag = mesh.tag(TAG, set_name)
    return np.zeros(mesh.size(set_name), np.int64) if tag is None else tag.first_ids()


def reduced(mesh: Mesh) -> Mesh:
    """The mesh as SU2 keeps it: plane where it can be, every boundary cell in one marker."""
    marked = _marked(mesh)
    return marked.renumber(_by_marker(marked))


def marker_order(mesh: Mesh) -> dict[str, Ordering]:
    """The order of the boundary cells in a file: those of each marker together, else as they are.

    Markers stand in the order of the file that the mesh is from, then by their groups' numbers.
    """
    return _by_marker(_marked(mesh))


def _marked(mesh: Mesh) -> Mesh:
    kept = flattened(reduce(mesh, CAPABILITIES)[0])
    points = kept.coordinates
    top = kept.sets["cells"].parts or ("cells",)
    dim = shape_of(str(kept.sets[top[0]].cell_type)).dim
    if points is None or points.shape[1] != dim:
        raise MeshprepError(
            "SU2 holds faces in a plane and volumes, no surfaces or lines in space: "
            "use another format"
        )
    return replace(kept, tags=_marker_tags(kept))


def _by_marker(mesh: Mesh) -> dict[str, Ordering]:
    ids = {t.set: t.first_ids() for t in mesh.tags}
    groups = _in_file_order(mesh, ids, _names(mesh))
    place = np.argsort(groups)
    known = np.sort(groups)
    rank = {s: place[np.searchsorted(known, i)] for s, i in ids.items()}
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
    ids = {s: _ids(mesh, s) for s in _lower(mesh)}
    markers = _markers(mesh)
    numbers = group_numbers([*markers.values()])
    named = {numbers[m]: m for m in markers.values() if str(numbers[m]) != m}
    known = np.sort(np.asarray([*markers], dtype=np.int64))
    new = np.asarray([numbers[markers[g]] for g in known.tolist()], dtype=np.int64)
    found = ((s, new[np.searchsorted(known, i)]) for s, i in ids.items())
    return tuple(Tag.from_ids(TAG, s, marker, named) for s, marker in found)


def _markers(mesh: Mesh) -> dict[int, str]:
    """The marker of each group of boundary cells, in the order of the file."""
    names = _names(mesh)
    groups = _in_file_order(mesh, {s: _ids(mesh, s) for s in _lower(mesh)}, names)
    return {g: _clean({0: UNMARKED, **names}.get(g, str(g))) for g in groups}


def _clean(name: str) -> str:
    if not _BAD.search(name):
        return name
    return re.sub(r"[%=\s\x00-\x1f\x7f]+", "_", name.strip()) or UNMARKED


FORMAT = Format("su2", (".su2",), read, write, losses, reduce=reduced, order=marker_order)
