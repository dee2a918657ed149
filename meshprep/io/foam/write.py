"""Writing OpenFOAM cases: a copy of the case that was read, in the new order."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.file.atomic import PREFIX

from ...kernels import Int32s
from ...mesh import IndexList, Mesh, SetMap
from ...mesh.geometry import CENTROID
from .case import (
    CONSTANT,
    FACES,
    IN_CASE,
    POLY_MESH,
    FoamCase,
    PolyMesh,
    case_of,
    numbers_in_case,
)
from .files import GZ, FoamFile, open_file
from .moves import (
    FREE,
    LISTS,
    ZONES,
    Moves,
    inverse,
    is_field,
    moved_field,
    moved_labels,
    moved_mesh,
    moved_set,
    moved_zones,
)

_TIME = re.compile(r"[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?")
_HEAD = re.compile(rb"\bFoamFile\b")


@dataclass(frozen=True)
class _Entry:
    """A file or folder of a case: its place in it, and the mesh that its numbers belong to."""

    path: Path
    place: Path
    mesh: PolyMesh | None = None  # None where it is copied as it is
    role: str = ""  # mesh, labels, zones, set or data; "lost" for what cannot be kept


def _entries(case: FoamCase) -> Iterator[_Entry]:
    """Everything that the case holds."""
    roots = {part.folder.parents[1 + bool(case.region)]: part for part in case.parts}
    for path in sorted(case.root.iterdir()):
        own = roots.get(path) or (roots.get(case.root) if _holds_data(path) else None)
        if path.name.startswith(PREFIX):
            continue
        if re.fullmatch(r"processors?[0-9]+.*", path.name) and path not in roots:
            yield _Entry(path, Path(path.name), role="lost")
        elif own is None:
            yield _Entry(path, Path(path.name))
        elif path in roots:
            for inner in sorted(path.iterdir()):
                yield from (
                    _data(case, inner, own)
                    if _holds_data(inner)
                    else [_Entry(inner, inner.relative_to(case.root))]
                )
        else:
            yield from _data(case, path, own)


def _holds_data(path: Path) -> bool:
    return path.is_dir() and bool(path.name == CONSTANT or _TIME.fullmatch(path.name))


def _data(case: FoamCase, top: Path, mesh: PolyMesh) -> Iterator[_Entry]:
    """What the folder ``constant`` or that of a time holds."""
    for path in sorted(top.iterdir()):
        if case.region and path.name == case.region and path.is_dir():
            for inner in sorted(path.iterdir()):
                yield from _inside(case, inner, mesh, top.name)
        elif case.region:
            yield _Entry(path, path.relative_to(case.root))
        else:
            yield from _inside(case, path, mesh, top.name)


def _inside(case: FoamCase, path: Path, mesh: PolyMesh, top: str) -> Iterator[_Entry]:
    place, name = path.relative_to(case.root), path.name.removesuffix(GZ)
    if path.name == POLY_MESH and path.is_dir():
        for inner in sorted(path.iterdir()):
            yield from _of_mesh(case, inner, mesh, top == CONSTANT)
    elif path.name == "lagrangian" or name == "cellMap":
        yield _Entry(path, place, mesh, "lost")
    elif path.is_file():
        yield _Entry(path, place, mesh, "labels" if name in LISTS else "data")
    else:
        yield _Entry(path, place)


def _of_mesh(case: FoamCase, path: Path, mesh: PolyMesh, whole: bool) -> Iterator[_Entry]:
    """Files of polyMesh; that of a time may have moved points, and nothing else."""
    name = path.name.removesuffix(GZ)
    if whole and path.name == "sets" and path.is_dir():
        for inner in sorted(path.iterdir()):
            yield _Entry(inner, inner.relative_to(case.root), mesh, "set")
        return
    roles = {**dict.fromkeys(LISTS, "labels"), **dict.fromkeys(ZONES, "zones")}
    roles |= dict.fromkeys(("faces", "owner", "neighbour"), "mesh")
    role = "mesh" if name == "points" else roles.get(name, "lost") if whole else "lost"
    place = path.relative_to(case.root)
    yield _Entry(path, place) if whole and name in FREE else _Entry(path, place, mesh, role)


def losses(mesh: Mesh, **_options: object) -> list[str]:
    """What a case has no place for, and what of the case would be wrong in another order."""
    case, made = _in_order(mesh)
    # a case that comes in another order than it should is put in order
    as_read = all((np.diff(i.index) > 0).all() for i in mesh.lists if i.name == IN_CASE)
    lost = [
        f"the order of set '{m.from_set}'"
        for m in mesh.maps.values()
        if not as_read and not np.array_equal(m.table, made.map(m.name).table)
    ]
    lost += [f"values '{d.name}' on '{d.set}'" for d in mesh.dats if d.name != CENTROID]
    lost += [f"groups '{t.name}' on '{t.set}'" for t in mesh.tags]
    lost += [f"index list '{i.name}'" for i in mesh.lists if i.name != IN_CASE]
    stale = [entry.place.as_posix() for entry in _entries(case) if entry.role == "lost"]
    return lost + ([f"{', '.join(stale)} (in the old numbering)"] if stale else [])


def reduced(mesh: Mesh) -> Mesh:
    """The mesh as reading the written case gives it."""
    made = _in_order(mesh)[1]
    lists = [replace(i, index=np.arange(i.index.size, dtype=np.int32)) for i in made.lists]
    return replace(made, lists=tuple(lists))


def _in_order(mesh: Mesh) -> tuple[FoamCase, Mesh]:
    """The case, and its mesh with the cells as ``mesh`` has them and all else in its place.

    Raises MeshprepError for a mesh that is not one of a case any more.
    """
    case, cells = case_of(mesh), numbers_in_case(mesh, "cells")
    if case is None or cells is None:
        raise MeshprepError(
            "only the mesh of a case that was read can be written as one: use another format"
        )
    new, base = inverse(cells), 0
    for size in case.part_sizes:
        if cells[base : base + size].min(initial=base) < base or (
            cells[base : base + size].max(initial=base) >= base + size
        ):
            raise MeshprepError("cells of one processor folder are in another: keep them apart")
        base += size
    tables = {name: new[table] for name, table in case.tables.items()}
    sides = np.sort(tables[FACES], axis=1)
    faces = numbers_in_case(mesh, "faces")
    if faces is None or not _ascends(sides[faces]):
        faces = np.lexsort(sides.T[::-1]).astype(np.int32)
    tables[FACES] = sides[faces]
    if {n: t.shape for n, t in tables.items()} != {n: m.table.shape for n, m in mesh.maps.items()}:
        raise MeshprepError("the mesh is not that of its case any more: use another format")
    maps = [SetMap(n, m.from_set, m.to_set, tables[n]) for n, m in mesh.maps.items()]
    dats = [d for d in mesh.dats if d.name == CENTROID and d.set == "cells"]
    lists = [IndexList(IN_CASE, "cells", new)]
    lists += [IndexList(IN_CASE, "faces", inverse(faces))] if faces.size else []
    return case, Mesh(mesh.sets.values(), maps, dats, lists=lists, extras=mesh.extras)


def _ascends(rows: Int32s) -> bool:
    low, high = rows.T
    step = np.diff(low)
    return bool((step >= 0).all() and (np.diff(high)[step == 0] >= 0).all())


def write(mesh: Mesh, path: Path) -> None:
    """Copy the case with mesh, zones, sets and fields in the order of the mesh."""
    case, made = _in_order(mesh)
    cells, faces = numbers_in_case(made, "cells"), numbers_in_case(made, "faces")
    assert cells is not None
    faces = np.empty(0, np.int32) if faces is None else faces
    moves, base, first = dict[Path, Moves](), 0, 0
    for part in case.parts:
        own = cells[base : base + part.n_cells] - np.int32(base)
        inner = faces[first : first + part.neighbour.size] - np.int32(first)
        moves[part.folder] = Moves.of(part, own, inner)
        base, first = base + part.n_cells, first + part.neighbour.size
    for entry in _entries(case):
        target = path / entry.place
        if entry.role == "lost":
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        pieces = file = None
        if entry.mesh is not None and entry.path.is_file():
            file = _foam_file(entry, case)
            if file is not None:
                pieces = _moved(file, moves[entry.mesh.folder], entry)
        if file is not None and pieces is not None:
            file.save(target, pieces)
        elif entry.path.is_dir() and not entry.path.is_symlink():
            shutil.copytree(entry.path, target, symlinks=True)
        else:
            shutil.copy2(entry.path, target, follow_symlinks=entry.mesh is not None)


def _foam_file(entry: _Entry, case: FoamCase) -> FoamFile | None:
    """The file where it is one of OpenFOAM's, which those of data need not be."""
    plain = entry.path.with_name(entry.path.name.removesuffix(GZ))
    assert entry.mesh is not None
    if entry.role == "mesh" and plain.parent == entry.mesh.folder:
        return entry.mesh.files[plain.name]
    if entry.role == "data" and entry.path.suffix != GZ:
        with entry.path.open("rb") as opened:
            if _HEAD.search(opened.read(4096)) is None:
                return None
    return open_file(plain, case.root)


def _moved(file: FoamFile, moves: Moves, entry: _Entry) -> list[bytes] | None:
    name = entry.path.name.removesuffix(GZ)
    if entry.role == "mesh":
        return moved_mesh(file, moves, name)
    if entry.role == "labels":
        return moved_labels(file, moves, LISTS[name])
    if entry.role == "zones":
        return moved_zones(file, moves, ZONES[name])
    if entry.role == "set":
        found = moved_set(file, moves)
        if found is None:
            raise file.error("is no cellSet, faceSet or pointSet: take it away", 0)
        return found
    return moved_field(file, moves) if is_field(file) else None


def write_cell_map(order: Int32s, target: Path) -> None:
    """A ``cellMap`` as ``renumberMesh`` reads it: for each new cell its old number."""
    head = (
        "FoamFile\n{\n    version     2.0;\n    format      ascii;\n    class       labelList;\n"
        f'    location    "{CONSTANT}";\n    object      cellMap;\n}}\n\n'
    )
    file: Any = FoamFile(target, target.name, bytearray(), {"format": "ascii"}, 0)
    file.save(target, [head.encode(), *file.list_of(order), b"\n"])
