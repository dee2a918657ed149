"""Writing OpenFOAM cases: a copy of the case that was read, in the new order."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.ordering import Ordering

from ...kernels import Int32s
from ...kernels.parallel import each
from ...mesh import Mesh
from ...mesh.geometry import CENTROID
from ...mesh.model import lower_first
from .case import CONSTANT, FACES, IN_CASE, FoamCase, case_of
from .entries import Entry, entries
from .files import GZ, FoamFile, Pieces, open_file
from .moves import (
    ZONES,
    Moves,
    inverse,
    moved_dictionary,
    moved_field,
    moved_labels,
    moved_mesh,
    moved_points,
    moved_set,
    moved_zones,
)


def losses(mesh: Mesh, **_options: object) -> list[str]:
    """What a case has no room for, and what in the case another order would make wrong."""
    case = _case_of_mesh(mesh)
    # a case that comes in another order than it should is put in order
    moved = any((i.index[1:] < i.index[:-1]).any() for i in mesh.lists if i.name == IN_CASE)
    if moved and not _ascends(mesh.map(FACES).table):
        lost = ["the order of the faces"]
    else:
        lost = []
    lost += [f"values '{d.name}' on '{d.set}'" for d in mesh.dats if d.name != CENTROID]
    lost += [f"groups '{t.name}' on '{t.set}'" for t in mesh.tags]
    lost += [f"index list '{i.name}'" for i in mesh.lists if i.name != IN_CASE]
    stale = [entry.place.as_posix() for entry in entries(case) if entry.role == "lost"]
    return lost + ([f"{', '.join(stale)} (in the old numbering)"] if stale else [])


def _case_of_mesh(mesh: Mesh) -> FoamCase:
    """The case that the mesh is of; raises MeshprepError where there is none any more."""
    case = case_of(mesh)
    lists = {i.set: i.index for i in mesh.lists if i.name == IN_CASE}
    sizes = {s: mesh.size(s) for s in ("cells", "faces") if s in mesh.sets and mesh.size(s)}
    if case is None or sizes != {s: index.size for s, index in lists.items()}:
        raise MeshprepError(
            "only the mesh of a case that was read can be written as one: use another "
            "format"
        )
    new = lists["cells"]
    # Each processor folder keeps its cells: their numbers in the case are one range.
    base = 0
    for size in case.part_sizes if len(case.parts) > 1 else ():
        own = new[base : base + size] - base
        base = base + size
        if own.min() < 0 or own.max() >= size:
            raise MeshprepError(
                "cells of one processor folder are in another: keep them apart"
            )
    # Faces of patches keep their order, which boundary conditions and other files go by.
    for name, table in case.tables.items():
        if name != FACES and not np.array_equal(new[table], mesh.map(name).table):
            raise MeshprepError(
                f"map '{name}' is in another order than in the case: keep it"
            )
    if case.tables.keys() != mesh.maps.keys():
        raise MeshprepError(
            "there are other maps than those of the case: use another format"
        )
    return case


def again(mesh: Mesh) -> dict[str, str]:
    """The region to read of the written case."""
    case = case_of(mesh)
    if case is not None and case.region:
        return {"region": case.region}
    return {}


def reduced(mesh: Mesh) -> Mesh:
    """The mesh as reading the written case gives it."""
    made = _reduce_to_case(mesh)
    lists = [replace(i, index=np.arange(i.index.size, dtype=np.int32)) for i in made.lists]
    return replace(made, lists=tuple(lists))


def _reduce_to_case(mesh: Mesh) -> Mesh:
    """The mesh without what a case has no place for, its faces by their cells."""
    # OpenFOAM wants inner faces in upper triangular order: by owner, then by neighbour.
    table = mesh.map(FACES).table
    if not _ascends(table):
        sides = lower_first(table)
        order = Ordering.from_new_to_old(
            np.lexsort(sides.T[::-1]).astype(np.int32), "faces"
        )
        mesh = mesh.renumber({"faces": order})
    dats = [d for d in mesh.dats if d.name == CENTROID]
    lists = [i for i in mesh.lists if i.name == IN_CASE]
    return replace(mesh, dats=tuple(dats), tags=(), lists=tuple(lists))


def _ascends(rows: Int32s) -> bool:
    """Whether pairs are sorted by their first, lower number and then by the second."""
    low, high = rows.T
    equal = low[1:] == low[:-1]
    ascends = (low[1:] > low[:-1]) | (equal & (high[1:] >= high[:-1]))
    return bool((low < high).all() and ascends.all())


def write(mesh: Mesh, path: Path) -> None:
    """Copy the case with mesh, zones, sets and fields in the order of the mesh."""
    case = _case_of_mesh(mesh)
    made = _reduce_to_case(mesh)
    back = {i.set: inverse(i.index) for i in made.lists}
    cells = back["cells"]
    faces = back.get("faces", np.empty(0, np.int32))
    moves = dict[Path, Moves]()
    base = 0
    first = 0
    for part in case.parts:
        own = cells[base : base + part.n_cells] - np.int32(base)
        inner = faces[first : first + part.neighbour.size] - np.int32(first)
        moves[part.folder] = Moves.of(part, own, inner)
        base = base + part.n_cells
        first = first + part.neighbour.size
    kept = [entry for entry in entries(case) if entry.role != "lost"]
    each(_write_entry, [(entry, path / entry.place, moves) for entry in kept])


def _write_entry(entry: Entry, target: Path, moves: Mapping[Path, Moves]) -> None:
    """Write a file or folder of the case: moved, or a copy."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if entry.mesh is not None:
        file, pieces = _moved(entry, moves[entry.mesh.folder])
        file.save(target, pieces)
    elif entry.path.is_dir() and not entry.path.is_symlink():
        shutil.copytree(entry.path, target, symlinks=True)
    else:
        shutil.copy2(entry.path, target, follow_symlinks=False)


def _moved(entry: Entry, moves: Moves) -> tuple[FoamFile, Pieces]:
    """A file that moves, and what it is to hold in the new order."""
    name = entry.path.name.removesuffix(GZ)
    if entry.role == "mesh":
        return moved_mesh(moves, name)
    elements = moves.owner.size + moves.points.size
    file = open_file(entry.path.with_name(name), elements=elements)
    if entry.role == "points":
        return file, moved_points(file, moves)
    if entry.role == "labels":
        return file, moved_labels(file, moves, name)
    if entry.role == "zones":
        return file, moved_zones(file, moves, ZONES[name])
    if entry.role == "set":
        return file, moved_set(file, moves)
    if entry.role == "dictionary":
        return file, moved_dictionary(file, moves)
    return file, moved_field(file, moves)


def write_cell_map(order: Int32s, target: Path) -> None:
    """A ``cellMap`` as ``renumberMesh`` reads it: for each new cell its old number."""
    head = (
        "FoamFile\n{\n    version     2.0;\n"
        "    format      ascii;\n    class       labelList;\n"
        f'    location    "{CONSTANT}";\n    object      cellMap;\n}}\n\n'
    )
    file: Any = FoamFile(
        path=target, name=target.name, raw=bytearray(), header={"format": "ascii"}, start=0
    )
    file.save(target, [head.encode(), *file.list_of(order), b"\n"])
