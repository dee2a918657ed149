"""SU2 mesh files: one zone, cells of any mix, markers with their names.

Read here and not through meshio, which loses the names of markers, gives two markers one number
when a name follows an integer, and reads the zones of a file into one another.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.ordering import Ordering

from ..cells import shape_of
from ..mesh import Mesh, Tag
from .assemble import Block, assemble
from .carries import Carries
from .reduce import flattened, reduce, with_tags
from .registry import Format

TAG = "su2:tag"
VTK_NUMBER = {
    "line": 3,
    "triangle": 5,
    "quad": 9,
    "tetra": 10,
    "hexahedron": 12,
    "wedge": 13,
    "pyramid": 14,
}
_N_NODES = {3: 2, 5: 3, 9: 4, 10: 4, 12: 8, 13: 6, 14: 5}
_TYPE = {number: name for name, number in VTK_NUMBER.items()}
_KEYWORD = re.compile(rb"[ \t]*([A-Za-z_]+)[ \t]*=[ \t]*([^\r\n]*)")
_KNOWN = {"NDIME", "NPOIN", "NELEM", "NMARK", "MARKER_TAG", "MARKER_ELEMS", "NZONE", "IZONE"}
_ROWS_AT_ONCE = 65536
_WITH_NODES = {"FFD_SURFACE_POINTS", "SEND_RECV"}
SECTIONS = "SU2 sections"
_DAMAGED = "the file is truncated or damaged"
UNMARKED = "none"
# Marker names that would not read back as they are.
_BAD = re.compile(r"[%=\r\n]|^\s|\s$|^$")

CARRIES = Carries(
    cell_types=tuple(VTK_NUMBER),
    tag=TAG,
    tag_on="facets",
    group_names=True,
    plane=True,
    lower="facets",
    extras=(SECTIONS,),
)


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

    Raises
    ------
    MeshprepError
        On several zones, counts that the file does not hold, unknown cell types and bad numbers.
    """
    sections = list(_sections(path.read_bytes()))
    zones = _value(sections, "NZONE", default=1)
    if zones > 1:
        raise MeshprepError(f"has {zones} zones: write one file a zone")
    dim = _value(sections, "NDIME")
    if dim not in (2, 3):
        raise MeshprepError(f"NDIME is {dim}, must be 2 or 3")
    points = _read_points(_only(sections, "NPOIN"), dim)
    blocks = [Block(t, n) for t, n in _read_cells(_only(sections, "NELEM"))]
    names: dict[int, str] = {}
    blocks += _read_markers(sections, names)
    mesh, _ = assemble(points, blocks, tag_names={(TAG, dim - 1): names}, extras=_others(sections))
    return mesh


def _others(sections: Sequence[_Section]) -> dict[str, Any]:
    """What is not the mesh: carried as text where it names no nodes, else told as unread."""
    others = [s for s in sections if s.keyword not in _KNOWN]
    unread = {s.keyword for s in others if s.keyword in _WITH_NODES and s.value != "0"}
    text = tuple(
        f"{s.keyword}= {s.value}{s.body.decode('utf-8', 'replace').rstrip()}\n"
        for s in others
        if s.keyword not in unread
    )
    extras = {"unread": tuple(sorted(unread)), SECTIONS: text}
    return {key: value for key, value in extras.items() if value}


def _sections(data: bytes) -> Iterator[_Section]:
    if b"%" in data:
        data = re.sub(rb"%[^\r\n]*", b"", data)
    found = list(_keywords(data))
    if not found:
        raise MeshprepError("not a readable SU2 file: it has no lines KEYWORD= VALUE")
    ends = [m.start() for m in found[1:]] + [len(data)]
    for match, end in zip(found, ends, strict=True):
        value = match[2].decode("utf-8", "replace").strip()
        yield _Section(match[1].decode().upper(), value, data[match.end() : end])


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
    """All numbers of a section."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(section.body, dtype=dtype, sep=" ")
        except (DeprecationWarning, ValueError):
            raise MeshprepError(f"{section.keyword}: something there is no number") from None


def _columns(section: _Section, size: int, count: int) -> int:
    if count == 0 or size % count or not size:
        raise MeshprepError(f"{section.keyword}= {count}, but {size} numbers follow: {_DAMAGED}")
    return size // count


def _read_points(section: _Section, dim: int) -> NDArray[np.float64]:
    values = _numbers(section, np.float64)
    count = _count(section)
    table = values.reshape(count, _columns(section, values.size, count))
    if not dim <= table.shape[1] <= dim + 2:
        raise MeshprepError(f"NPOIN: rows have {table.shape[1]} numbers for {dim} coordinates")
    if table.shape[1] > dim and not np.array_equal(table[:, dim], np.arange(count)):
        raise MeshprepError("NPOIN: the points do not stand in the order of their numbers")
    return table[:, :dim]


def _read_cells(section: _Section) -> list[tuple[str, NDArray[np.int64]]]:
    """Tables by type, in the order of first appearance."""
    count, values = _count(section), _numbers(section, np.int64)
    if count == 0:
        return []
    if not values.size:
        raise MeshprepError(
            f"{section.keyword}= {count}, but no cells follow: the file is truncated"
        )
    line = re.search(rb"\S[^\r\n]*", section.body)
    extra = len(line[0].split() if line else b"") - 1 - _N_NODES.get(int(values[0]), -9)
    if extra not in (0, 1):
        raise MeshprepError(
            f"{section.keyword}: a cell of type {values[0]} has too few or many nodes"
        )
    start = _row_starts(section, values, count, extra)
    types = values[start]
    out = []
    for number in dict.fromkeys(types[np.sort(np.unique(types, return_index=True)[1])].tolist()):
        columns = np.arange(1, 1 + _N_NODES[number])
        out.append((_TYPE[number], values[start[types == number][:, None] + columns]))
    return out


def _row_starts(
    section: _Section, values: NDArray[np.int64], count: int, extra: int
) -> NDArray[np.int64]:
    width = _N_NODES[int(values[0])] + 1 + extra
    if values.size == count * width and (values[::width] == values[0]).all():
        return np.arange(0, values.size, width)
    # The widths depend on the types met, so walk; a lookup by type keeps it one jump a cell.
    start, at, size, flat = [], 0, values.size, values.tolist()
    while at < size:
        if flat[at] not in _N_NODES:
            raise MeshprepError(f"{section.keyword}: cell type {flat[at]} is unknown")
        start.append(at)
        at += _N_NODES[flat[at]] + 1 + extra
    if len(start) != count or at != size:
        raise MeshprepError(
            f"{section.keyword}= {count}, but {len(start)} cells follow: {_DAMAGED}"
        )
    return np.asarray(start, dtype=np.int64)


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
    numbers = _group_numbers(tags)
    for name, section in zip(tags, elements, strict=True):
        if str(numbers[name]) != name:
            names[numbers[name]] = name
        for cell_type, nodes in _read_cells(section):
            ids = np.full(len(nodes), numbers[name])
            blocks.append(Block(cell_type, nodes, tags={TAG: ids}))
    return blocks


def _group_numbers(tags: Sequence[str]) -> Mapping[str, int]:
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


def write(mesh: Mesh, path: Path) -> None:
    """Write an SU2 file; coordinates in full precision, boundary cells marker by marker."""
    kept = _reduced(mesh)
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
        f.writelines(text.encode() for text in kept.extras.get(SECTIONS, ()))


def _write_markers(f: BinaryIO, mesh: Mesh) -> None:
    ids = {t.set: t.first_ids() for t in mesh.tags}
    names = _names(mesh)
    groups = sorted(set().union(*(np.unique(i).tolist() for i in ids.values()), names))
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
    kind = np.full((len(table), 1), VTK_NUMBER[str(mesh.sets[name].cell_type)], table.dtype)
    _write_rows(f, np.hstack([kind, table]))


def _write_rows(f: BinaryIO, table: NDArray) -> None:
    """One line a row; floating numbers as the shortest text that reads back as the same."""
    for start in range(0, len(table), _ROWS_AT_ONCE):
        part = table[start : start + _ROWS_AT_ONCE]
        line = " ".join(["%r"] * part.shape[1]) + "\n"
        f.write((line * len(part) % tuple(part.ravel().tolist())).encode())


def losses(mesh: Mesh) -> list[str]:
    """What SU2 cannot hold: everything but the cells, the markers of their boundary and names."""
    kept, lost = reduce(mesh, CARRIES)
    _reduced(mesh)
    loose = sum(int((_ids(kept, s) == 0).sum()) for s in _lower(kept))
    if loose:
        lost.append(f"{loose} boundary cells in no group (they get the marker '{UNMARKED}')")
    names = list(_names(kept).values())
    bad = {n for n in names if _BAD.search(n)}
    lost += [f"the marker name '{n}'" for n in sorted(bad)]
    return lost


def _lower(mesh: Mesh) -> list[str]:
    top = mesh.sets["cells"].parts or ("cells",)
    return [s.name for s in mesh.cell_sets if s.name not in top]


def _ids(mesh: Mesh, set_name: str) -> NDArray[np.int64]:
    tag = mesh.tag(TAG, set_name)
    return np.zeros(mesh.size(set_name), np.int64) if tag is None else tag.first_ids()


def _reduced(mesh: Mesh) -> Mesh:
    """The mesh as SU2 keeps it: plane where it can be, every boundary cell in one marker."""
    kept = flattened(reduce(mesh, CARRIES)[0])
    points = kept.coordinates
    top = kept.sets["cells"].parts or ("cells",)
    dim = shape_of(str(kept.sets[top[0]].cell_type)).dim
    if points is None or points.shape[1] != dim:
        raise MeshprepError(
            "SU2 holds faces in a plane and volumes, no surfaces or lines in space: "
            "use another format"
        )
    return _by_marker(with_tags(kept, _marker_tags(kept)))


def _by_marker(mesh: Mesh) -> Mesh:
    """The mesh with the cells of each marker together: a file cannot have them otherwise."""
    ordering = {}
    for t in mesh.tags:
        rows = np.argsort(t.first_ids(), kind="stable")
        ordering[t.set] = Ordering.from_new_to_old(rows)
    return mesh.renumber(ordering)


def _marker_tags(mesh: Mesh) -> list[Tag]:
    """The tags with the numbers that reading gives to markers of these names."""
    names = {0: UNMARKED, **_names(mesh)}
    ids = {s: _ids(mesh, s) for s in _lower(mesh)}
    groups = sorted(set().union(*(np.unique(i).tolist() for i in ids.values()), _names(mesh)))
    markers = [_clean(names.get(g, str(g))) for g in groups]
    numbers = _group_numbers(markers)
    named = {numbers[m]: m for m in markers if str(numbers[m]) != m}
    new = np.asarray([numbers[m] for m in markers], dtype=np.int64)
    return [Tag.from_ids(TAG, s, new[np.searchsorted(groups, i)], named) for s, i in ids.items()]


def _clean(name: str) -> str:
    return re.sub(r"[%=\s]+", "_", name.strip()) or UNMARKED if _BAD.search(name) else name


FORMAT = Format("su2", (".su2",), read, write, losses, reduce=_reduced)
