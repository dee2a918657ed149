"""Writing SU2 mesh files, and what they cannot hold."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.ordering import Ordering

from ...mesh import IndexList, Mesh, Tag
from ...mesh.cells import shape_of
from ..reduce import flattened, reduce
from ..registry import Capabilities
from .read import (
    MARKERS,
    SECTIONS,
    SURFACE_KIND,
    SURFACE_POINTS,
    TAG,
    VTK_NUMBER,
    WEDGE,
    group_numbers,
)

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
    lists=(SURFACE_KIND,),
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
        lists = iter(kept.lists)
        for text in kept.extras.get(SECTIONS, ()):
            f.write((_rows(next(lists)) if text == SURFACE_POINTS else text).encode())


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
