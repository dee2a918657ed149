"""Reading OpenFOAM cases: the polyMesh of a case, a region, or all processor folders."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...kernels import Float64s, Int32s, Int64s, kernel
from ...kernels.parallel import at_once
from ...mesh import Dat, ElementSet, IndexList, Mesh, SetMap
from ...mesh.geometry import CENTROID
from ...mesh.model import UPPER_TRIANGULAR
from .files import FoamFile, as_index, open_file

CASE = "OpenFOAM case"
# The lists that tell where the cells and interior faces of the case went.
IN_CASE = "order of the case"
CONSTANT, POLY_MESH, FACES = "constant", "polyMesh", "faces->cells"
_KEPT = ("cells", "faces", "nodes")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_PATCH = re.compile(r"(\"[^\"]*\"|[^\s{}()\"]+)\s*\{\s*$")
_DAMAGED = "the mesh is damaged, write it again"


@dataclass(frozen=True, eq=False)
class PolyMesh:
    """One polyMesh as its files have it."""

    folder: Path
    files: dict[
        str, tuple[FoamFile, int]
    ]  # by name, without its list, and where that stood
    owner: Int32s
    neighbour: Int32s
    face_offset: Int64s
    face_points: Int32s
    n_points: int
    n_cells: int
    patches: dict[str, tuple[int, int]]  # by name, the first face and how many
    centre: Float64s  # (n_cells, 3), of the box of each cell

    @property
    def sizes(self) -> dict[str, int]:
        """How many cells, faces and points there are."""
        return {"cells": self.n_cells, "faces": self.owner.size, "points": self.n_points}

    @property
    def inner_sizes(self) -> dict[str, int]:
        """How many values a field has on them: of the faces only those inside count."""
        return {**self.sizes, "faces": self.neighbour.size}


@dataclass(frozen=True, eq=False)
class FoamCase:
    """A case that was read: one mesh, or those of the processor folders in one."""

    root: Path
    region: str  # empty for the mesh of the case itself
    parts: tuple[PolyMesh, ...]
    tables: dict[str, Int32s]  # faces->cells and PATCH->cells, as read

    @property
    def part_sizes(self) -> list[int]:
        return [part.n_cells for part in self.parts]


def case_folder(path: Path) -> Path | None:
    """The folder of the case that a path stands for, None where it stands for none.

    That is the folder itself, its polyMesh, or a file ``.foam`` in it.
    """
    found = _root_and_region(path)
    if found is None:
        return None
    root, region = found
    has_mesh = (root / CONSTANT / region / POLY_MESH).is_dir()
    if has_mesh or _processors(root) or regions_of(root):
        return root
    return None


def regions_of(root: Path) -> list[str]:
    """The names of the regions that have a mesh of their own, in order."""
    return sorted(
        p.parent.name for p in root.glob(f"{CONSTANT}/*/{POLY_MESH}") if p.is_dir()
    )


def _root_and_region(path: Path) -> tuple[Path, str] | None:
    if path.suffix == ".foam" and path.is_file():
        return path.parent, ""
    if not path.is_dir():
        return None
    if path.name in ("", "..") or path.resolve().name == POLY_MESH:
        path = path.resolve()
    if path.name != POLY_MESH:
        return path, ""
    # The polyMesh of a region is in constant/REGION, that of the case in constant.
    above = path.parent
    if above.name == CONSTANT:
        return (above.parent, "")
    return (above.parent.parent, above.name)


def _processors(root: Path) -> list[Path]:
    """The folders processor0, processor1, ... that have a mesh."""
    found = [p for p in root.glob("processor*") if re.fullmatch(r"processor[0-9]+", p.name)]
    whole = [p for p in found if (p / CONSTANT / POLY_MESH).is_dir()]
    return sorted(whole, key=lambda p: int(p.name.removeprefix("processor")))


def read(path: Path, region: str = "") -> Mesh:
    """The sets, maps and places of a case; its files stay in ``extras`` for the writer.

    Sets are ``cells``, ``faces`` (the interior ones) and one for each patch; maps lead to
    the cells, from the owner's and the neighbour's side. Points, zones and fields are no
    part of the mesh: the writer moves them with the cells and faces. ``region`` is that of
    a case's folder.
    """
    case = read_case(path, region)
    n_cells = sum(case.part_sizes)
    sets = [ElementSet("cells", n_cells)]
    maps = []
    for name, table in case.tables.items():
        source = name.removesuffix("->cells")
        sets.append(ElementSet(source, len(table)))
        maps.append(SetMap(name=name, from_set=source, to_set="cells", table=table))
    places = Dat(CENTROID, "cells", _concatenate([part.centre for part in case.parts]))
    lists = [
        IndexList(IN_CASE, s.name, np.arange(s.size, dtype=np.int32))
        for s in sets[:2]
        if s.size
    ]
    extras = {
        CASE: {"points, zones, sets and fields": case},
        UPPER_TRIANGULAR: {FACES: tuple(case.part_sizes)},
    }
    return Mesh(sets=sets, maps=maps, dats=[places], lists=lists, extras=extras)


def read_case(path: Path, region: str = "") -> FoamCase:
    root, named = _root_and_region(path) or (path, "")
    region = named or region
    whole = root / CONSTANT / region / POLY_MESH
    # what tools leave there beside regions is no mesh
    has_mesh = any(whole.glob("faces*")) or any(whole.glob("owner*"))
    regions = regions_of(root)
    if has_mesh or (whole.is_dir() and (region or not regions)):
        folders = [whole]
    else:
        folders = [p / CONSTANT / POLY_MESH for p in _processors(root)]
    if not folders and regions:
        raise MeshprepError(
            f"has the regions {', '.join(regions)}, each with a mesh of its own: name one, "
            f"as {root / CONSTANT / regions[0] / POLY_MESH}"
        )
    if not folders:
        raise MeshprepError(
            f"there is no {CONSTANT}/{POLY_MESH}: name the folder of a case"
        )
    # The cells of a part are numbered behind those of the parts before it.
    parts = tuple(_read_mesh(folder, root) for folder in folders)
    tables: dict[str, list[Int32s]] = {FACES: []}
    base = 0
    for part in parts:
        # Inner faces come first and have an owner and a neighbour; those of patches
        # follow, and have an owner alone.
        n = part.neighbour.size
        sides = np.stack([part.owner[:n], part.neighbour], axis=1)
        sides += np.int32(base)
        tables[FACES].append(sides)
        for name, (start, size) in part.patches.items():
            own = part.owner[start : start + size, None] + np.int32(base)
            known = name in _KEPT or "->" in name or "/" in name
            tables.setdefault(f"{'patch ' * known}{name}->cells", []).append(own)
        base += part.n_cells
    return FoamCase(
        root=root,
        region=region,
        parts=parts,
        tables={name: _concatenate(found) for name, found in tables.items()},
    )


def _concatenate(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    """The arrays one after the other; one alone is not copied."""
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays)


def _read_mesh(folder: Path, root: Path) -> PolyMesh:
    """Read and check faces, owners, neighbours, points and patches of a polyMesh."""
    # Read the four lists; faces and points are the long ones.
    names = ("points", "faces", "owner", "neighbour")
    files = {name: open_file(folder / name, root) for name in names}
    ends = dict[str, int]()
    (offset, points, ends["faces"]), (positions, ends["points"]) = at_once(
        files["faces"].faces,
        lambda: files["points"].numbers(files["points"].start, "scalar", 3),
    )
    n_faces = offset.size - 1
    sides = dict[str, Int32s]()
    for name in ("owner", "neighbour"):
        values, ends[name] = files[name].numbers(files[name].start, "label", limit=n_faces)
        labels = values[:, 0]
        if name == "neighbour" and labels.size == n_faces:
            # as old versions write it: -1 for each face of a patch
            labels = labels[: n_faces - _count_last(labels, -1)]
        sides[name] = as_index(files[name], labels, 2 * n_faces)
    owner, neighbour = sides.values()
    if owner.size != n_faces or not n_faces:
        raise MeshprepError(
            f"{files['owner'].name}: holds {owner.size} labels for {n_faces} faces: "
            f"{_DAMAGED}"
        )
    # Refuse numbers that do not fit each other, before cells are measured by them.
    own_neighbour = np.flatnonzero(owner[: neighbour.size] == neighbour)
    if own_neighbour.size:
        face = own_neighbour[0]
        raise MeshprepError(
            f"{files['owner'].name}: face {face} has cell {owner[face]} on both sides"
        )
    xyz = np.require(positions, np.float64, ["A", "C"])
    if points.max(initial=0) >= len(xyz):
        raise MeshprepError(
            f"{files['faces'].name}: a face has point {points.max()} of {len(xyz)}: "
            f"{_DAMAGED}"
        )
    if not (finite := np.isfinite(xyz)).all():
        face = int(np.argmin(finite.all(axis=1)))
        raise MeshprepError(
            f"{files['points'].name}: point {face} is {xyz[face].tolist()}: {_DAMAGED}"
        )
    n_cells = int(max(owner.max(), neighbour.max(initial=0))) + 1
    # every cell has a face, so that damaged numbers are told before they are allocated for
    if n_cells > n_faces + neighbour.size:
        raise MeshprepError(
            f"{files['owner'].name}: names cell {n_cells - 1}, but there are {n_faces} "
            f"faces: {_DAMAGED}"
        )
    # Find the centre of each cell, and take the lists out of what is kept of the files.
    centre = _centres(
        file=files["faces"],
        mesh=(owner, neighbour, offset, points),
        xyz=xyz,
        n_cells=n_cells,
    )
    patches = _patches(folder=folder, root=root, n_interior=neighbour.size, n_faces=n_faces)
    kept = {name: file.without_list(ends[name]) for name, file in files.items()}
    return PolyMesh(
        folder=folder,
        files=kept,
        owner=owner,
        neighbour=neighbour,
        face_offset=offset,
        face_points=points,
        n_points=len(xyz),
        n_cells=n_cells,
        patches=patches,
        centre=centre,
    )


def _count_last(values: NDArray[Any], value: int) -> int:
    """How many of the last values are equal to this one."""
    others = np.flatnonzero(values != value)
    if others.size:
        return int(values.size - 1 - others[-1])
    return values.size


def _centres(
    file: FoamFile, mesh: tuple[Int32s, Int32s, Int64s, Int32s], xyz: Float64s, n_cells: int
) -> Float64s:
    """The centre of the box of each cell: exact, whatever the order of faces and points."""
    centre = np.full((n_cells, 3), np.inf)
    high = np.full((n_cells, 3), -np.inf)
    bad = int(_find_centres(*mesh, xyz, centre, high))
    if bad < 0:
        return centre
    n_faces = mesh[0].size
    if bad >= n_faces:
        raise MeshprepError(f"{file.name}: cell {bad - n_faces} has no faces: {_DAMAGED}")
    raise MeshprepError(
        f"{file.name}: face {bad} has too few points, or one of them twice: {_DAMAGED}"
    )


@kernel
def _find_centres(
    owner: Int32s,
    neighbour: Int32s,
    offset: Int64s,
    points: Int32s,
    xyz: Float64s,
    low: Float64s,
    high: Float64s,
) -> int:
    """Grow the box of every cell by the points of its faces; write its centre to ``low``.

    Returns -1, or a bad face; a cell without faces counts as one behind all faces.
    """
    for face in range(owner.size):
        begin = offset[face]
        end = offset[face + 1]
        if end - begin < 3:
            return face
        for i in range(begin + 1, end):
            for earlier in range(begin, i):
                if points[i] == points[earlier]:
                    return face
        # columns by themselves: one visit to each point, and no loop over three numbers
        x0 = x1 = xyz[points[begin], 0]
        y0 = y1 = xyz[points[begin], 1]
        z0 = z1 = xyz[points[begin], 2]
        for i in range(begin + 1, end):
            x = xyz[points[i], 0]
            y = xyz[points[i], 1]
            z = xyz[points[i], 2]
            x0 = min(x0, x)
            y0 = min(y0, y)
            z0 = min(z0, z)
            x1 = max(x1, x)
            y1 = max(y1, y)
            z1 = max(z1, z)
        for side in range(2 if face < neighbour.size else 1):
            if side:
                cell = neighbour[face]
            else:
                cell = owner[face]
            low[cell, 0] = min(low[cell, 0], x0)
            low[cell, 1] = min(low[cell, 1], y0)
            low[cell, 2] = min(low[cell, 2], z0)
            high[cell, 0] = max(high[cell, 0], x1)
            high[cell, 1] = max(high[cell, 1], y1)
            high[cell, 2] = max(high[cell, 2], z1)
    for cell in range(len(low)):
        if low[cell, 0] > high[cell, 0]:
            return owner.size + cell
        for axis in range(3):
            low[cell, axis] = 0.5 * low[cell, axis] + 0.5 * high[cell, axis]
    return -1


def _patches(
    folder: Path, root: Path, n_interior: int, n_faces: int
) -> dict[str, tuple[int, int]]:
    """The faces of each patch; raises MeshprepError where patches leave gaps or overlap."""
    file = open_file(folder / "boundary", root)
    text = _COMMENT.sub(" ", file.raw[file.start :].decode("latin-1"))
    count = re.match(r"\s*([0-9]{1,9})\s*\(", text)
    patches = dict[str, tuple[int, int]]()
    # Patches follow each other behind the inner faces, without gaps.
    next_face = n_interior
    for name, entries in _dictionaries(text[count.end() :] if count else ""):
        start, size = (
            _entry(file=file, entries=entries, key=key, name=name)
            for key in ("startFace", "nFaces")
        )
        if start != next_face or name in patches:
            raise MeshprepError(
                f"{file.name}: patch '{name}' begins at face {start}, must begin at "
                f"{next_face}: repair it"
            )
        patches[name] = (start, size)
        next_face = start + size
    if count is None or len(patches) != int(count[1]) or next_face != n_faces:
        raise MeshprepError(
            f"{file.name}: has {len(patches)} patches up to face {next_face} of {n_faces}: "
            f"{_DAMAGED}"
        )
    return patches


def _dictionaries(text: str) -> Iterator[tuple[str, str]]:
    """Name and entries of each dictionary of a list; those inside count as entries."""
    depth = begin = 0
    name = None
    for brace in re.finditer(r"[{}]", text):
        if brace[0] == "{":
            if depth == 0:
                name = _PATCH.search(text, begin, brace.end())
                begin = brace.end()
            depth += 1
        else:
            depth -= 1
            if depth == 0 and name is not None:
                yield name[1].strip('"'), text[begin : brace.start()]
                begin = brace.end()


def _entry(file: FoamFile, entries: str, key: str, name: str) -> int:
    found = re.findall(rf"(?<!\S){key}\s+([0-9]{{1,18}})\s*;", entries)
    if len(found) != 1:
        raise MeshprepError(f"{file.name}: patch '{name}' needs one entry {key}: repair it")
    return int(found[0])


def case_of(mesh: Mesh) -> FoamCase | None:
    """The case that a mesh was read from, None for another mesh."""
    found = next(iter(mesh.extras.get(CASE, {}).values()), None)
    if isinstance(found, FoamCase):
        return found
    return None
