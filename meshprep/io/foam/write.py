"""Writing OpenFOAM cases: a copy of the case that was read, in the new order."""

import gzip
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.file.atomic import PREFIX
from meshprep_runtime.types.ordering import Ordering

from ...kernels import Int32s
from ...kernels.parallel import each
from ...mesh import Mesh
from ...mesh.geometry import CENTROID
from ...mesh.model import lower_first
from .case import CONSTANT, FACES, IN_CASE, POLY_MESH, FoamCase, PolyMesh, case_of
from .files import DAMAGED, GZ, FoamFile, Pieces, open_file
from .moves import (
    LISTS,
    OF_WHOLE,
    ZONES,
    Moves,
    inverse,
    moved_field,
    moved_labels,
    moved_mesh,
    moved_points,
    moved_set,
    moved_zones,
)

_TIME = re.compile(r"[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?")
_PARTS = re.compile(r"processors?[0-9]+[^/]*")
_HEAD = re.compile(rb"\bFoamFile\b")
# What becomes of the files of polyMesh; others would be wrong in another order.
_ROLES = {
    "points": "points",
    **dict.fromkeys(("boundary", "boundaryProcAddressing", "level0Edge"), "copied"),
    "boundaryRegionAddressing": "copied",
    **dict.fromkeys(("faces", "owner", "neighbour"), "mesh"),
    **dict.fromkeys(LISTS, "labels"),
    **dict.fromkeys(ZONES, "zones"),
}


@dataclass(frozen=True)
class _Entry:
    """A file or folder of a case: its place in it, and the mesh that its numbers belong to."""

    path: Path
    place: Path
    mesh: PolyMesh | None
    role: str  # mesh, points, labels, zones, set, data, copied; "lost" for what cannot be kept


def _entries(case: FoamCase) -> Iterator[_Entry]:
    """Everything that the case holds."""
    roots = {part.folder.parents[1 + bool(case.region)]: part for part in case.parts}

    def inside(folder: Path, root: Path) -> Iterator[_Entry]:
        for path in sorted(folder.iterdir()):
            if path in roots:
                yield from inside(path, path)
            elif not path.name.startswith(PREFIX):
                place, mesh = path.relative_to(case.root), roots.get(root)
                role = _role(path, path.relative_to(root).parts, case.region) if mesh else "copied"
                role = "lost" if _PARTS.fullmatch(place.as_posix()) else role
                if role == "opened":
                    yield from inside(path, root)
                else:
                    yield _Entry(path, place, None if role == "copied" else mesh, role)

    return inside(case.root, case.root)


def _role(path: Path, inner: Sequence[str], region: str) -> str:
    """What becomes of a file or folder at this place beside a mesh."""
    top, *rest = inner
    data = top == CONSTANT or _TIME.fullmatch(top)
    if not data or (region and rest and rest[0] != region):
        return "copied"
    rest = rest[1:] if region else rest
    if not region and rest[1:2] == [POLY_MESH] and len(rest) == 3:
        # a region that splitMeshRegions made names cells, faces and points of the whole mesh
        return "lost" if path.name.removesuffix(GZ) in OF_WHOLE else "copied"
    if not region and len(rest) in (1, 2) and _split_off(path):
        return "opened"
    if path.is_dir() and rest in ([], [POLY_MESH], [POLY_MESH, "sets"]):
        return "opened"
    name = path.name.removesuffix(GZ)
    # in place of a packed file OpenFOAM reads the other one
    hidden = path.suffix == GZ and path.with_suffix("").is_file()
    if hidden or name in ("lagrangian", "cellMap"):
        return "lost"
    if rest[0] != POLY_MESH:
        known = "labels" if name in LISTS else "data"
        return known if len(rest) == 1 and path.is_file() else "copied"
    if path.is_dir() or (top != CONSTANT and [name, *rest[2:]] != ["points"]):
        return "lost"
    return "set" if rest[1] == "sets" else _ROLES.get(name, "lost")


def _split_off(path: Path) -> bool:
    """Whether this is the folder of a region that was split off, or its polyMesh."""
    folder = path if path.name == POLY_MESH else path / POLY_MESH
    return any((folder / f"cellRegionAddressing{ending}").is_file() for ending in ("", GZ))


def losses(mesh: Mesh, **_options: object) -> list[str]:
    """What a case has no place for, and what of the case would be wrong in another order."""
    case = _checked(mesh)
    # a case that comes in another order than it should is put in order
    moved = any((i.index[1:] < i.index[:-1]).any() for i in mesh.lists if i.name == IN_CASE)
    lost = ["the order of the faces"] if moved and not _ascends(mesh.map(FACES).table) else []
    lost += [f"values '{d.name}' on '{d.set}'" for d in mesh.dats if d.name != CENTROID]
    lost += [f"groups '{t.name}' on '{t.set}'" for t in mesh.tags]
    lost += [f"index list '{i.name}'" for i in mesh.lists if i.name != IN_CASE]
    stale = [entry.place.as_posix() for entry in _entries(case) if entry.role == "lost"]
    return lost + ([f"{', '.join(stale)} (in the old numbering)"] if stale else [])


def _checked(mesh: Mesh) -> FoamCase:
    """The case that the mesh is of; raises MeshprepError where it is not one of a case any more."""
    case = case_of(mesh)
    lists = {i.set: i.index for i in mesh.lists if i.name == IN_CASE}
    sizes = {s: mesh.size(s) for s in ("cells", "faces") if s in mesh.sets and mesh.size(s)}
    if case is None or sizes != {s: index.size for s, index in lists.items()}:
        raise MeshprepError(
            "only the mesh of a case that was read can be written as one: use another format"
        )
    new, base = lists["cells"], 0
    for size in case.part_sizes if len(case.parts) > 1 else ():
        own, base = new[base : base + size] - base, base + size
        if own.min() < 0 or own.max() >= size:
            raise MeshprepError("cells of one processor folder are in another: keep them apart")
    for name, table in case.tables.items():
        if name != FACES and not np.array_equal(new[table], mesh.map(name).table):
            raise MeshprepError(f"map '{name}' is in another order than in the case: keep it")
    if case.tables.keys() != mesh.maps.keys():
        raise MeshprepError("there are other maps than those of the case: use another format")
    return case


def again(mesh: Mesh) -> dict[str, str]:
    """The region to read of the written case."""
    case = case_of(mesh)
    return {"region": case.region} if case is not None and case.region else {}


def reduced(mesh: Mesh) -> Mesh:
    """The mesh as reading the written case gives it."""
    made = _in_order(mesh)
    lists = [replace(i, index=np.arange(i.index.size, dtype=np.int32)) for i in made.lists]
    return replace(made, lists=tuple(lists))


def _in_order(mesh: Mesh) -> Mesh:
    """The mesh without what a case has no place for, its faces by their cells."""
    table = mesh.map(FACES).table
    if not _ascends(table):
        sides = lower_first(table)
        order = Ordering.from_new_to_old(np.lexsort(sides.T[::-1]).astype(np.int32), "faces")
        mesh = mesh.renumber({"faces": order})
    dats = [d for d in mesh.dats if d.name == CENTROID]
    lists = [i for i in mesh.lists if i.name == IN_CASE]
    return replace(mesh, dats=tuple(dats), tags=(), lists=tuple(lists))


def _ascends(rows: Int32s) -> bool:
    """Whether rows of two go by the first, which is the lower one, and then by the second."""
    low, high = rows.T
    equal = low[1:] == low[:-1]
    ascends = (low[1:] > low[:-1]) | (equal & (high[1:] >= high[:-1]))
    return bool((low < high).all() and ascends.all())


def write(mesh: Mesh, path: Path) -> None:
    """Copy the case with mesh, zones, sets and fields in the order of the mesh."""
    case, made = _checked(mesh), _in_order(mesh)
    back = {i.set: inverse(i.index) for i in made.lists}
    cells, faces = back["cells"], back.get("faces", np.empty(0, np.int32))
    moves, base, first = dict[Path, Moves](), 0, 0
    for part in case.parts:
        own = cells[base : base + part.n_cells] - np.int32(base)
        inner = faces[first : first + part.neighbour.size] - np.int32(first)
        moves[part.folder] = Moves.of(part, own, inner)
        base, first = base + part.n_cells, first + part.neighbour.size
    kept = [entry for entry in _entries(case) if entry.role != "lost"]
    each(_write_entry, [(entry, path / entry.place, moves) for entry in kept])


def _write_entry(entry: _Entry, target: Path, moves: Mapping[Path, Moves]) -> None:
    """Write a file or folder of the case: moved, or a copy."""
    target.parent.mkdir(parents=True, exist_ok=True)
    found = None if entry.mesh is None else _moved(entry, moves[entry.mesh.folder])
    if found is not None:
        file, pieces = found
        file.save(target, pieces)
    elif entry.path.is_dir() and not entry.path.is_symlink():
        shutil.copytree(entry.path, target, symlinks=True)
    else:
        shutil.copy2(entry.path, target, follow_symlinks=entry.mesh is not None)


def _moved(entry: _Entry, moves: Moves) -> tuple[FoamFile, Pieces] | None:
    """A file and what it is to hold in the new order; None for one without numbers of the mesh."""
    name, role = entry.path.name.removesuffix(GZ), entry.role
    if role == "mesh":
        return moved_mesh(moves, name)
    if role == "data" and not _has_header(entry.path):
        return None
    file = open_file(entry.path.with_name(name))
    if role == "points":
        return file, moved_points(file, moves)
    # a field may have the name of a list, as cellToRegion
    if role == "labels" and file.header.get("class", "").startswith("label"):
        return file, moved_labels(file, moves, LISTS[name])
    if role == "zones":
        return file, moved_zones(file, moves, ZONES[name])
    if role == "set":
        return file, moved_set(file, moves)
    pieces = moved_field(file, moves)
    return None if pieces is None else (file, pieces)


def _has_header(path: Path) -> bool:
    try:
        with gzip.open(path) if path.suffix == GZ else path.open("rb") as opened:
            return _HEAD.search(opened.read(4096)) is not None
    except DAMAGED:
        # who reads it says what is wrong
        return True


def write_cell_map(order: Int32s, target: Path) -> None:
    """A ``cellMap`` as ``renumberMesh`` reads it: for each new cell its old number."""
    head = (
        "FoamFile\n{\n    version     2.0;\n    format      ascii;\n    class       labelList;\n"
        f'    location    "{CONSTANT}";\n    object      cellMap;\n}}\n\n'
    )
    file: Any = FoamFile(target, target.name, bytearray(), {"format": "ascii"}, 0)
    file.save(target, [head.encode(), *file.list_of(order), b"\n"])
