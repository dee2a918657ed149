"""Reading OpenFOAM cases: the polyMesh of a case, of a region, or of every processor folder."""

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
    files: dict[str, tuple[FoamFile, int]]  # by name, without its list, and where that stood
    owner: Int32s
    neighbour: Int32s
    face_offset: Int64s
    face_points: Int32s
    n_points: int
    n_cells: int
    patches: dict[str, tuple[int, int]]  # by name, the first face and how many
    centre: Float64s  # (n_cells, 3), of the box of each cell


@dataclass(frozen=True, eq=False)
class FoamCase:
    """A case that was read: one mesh, or that of each processor folder one after the other."""

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
    return root if (root / CONSTANT / region / POLY_MESH).is_dir() or _processors(root) else None


def _root_and_region(path: Path) -> tuple[Path, str] | None:
    if path.suffix == ".foam" and path.is_file():
        return path.parent, ""
    if not path.is_dir():
        return None
    if path.name in ("", "..") or path.resolve().name == POLY_MESH:
        path = path.resolve()
    if path.name != POLY_MESH:
        return path, ""
    above = path.parent
    return (above.parent, "") if above.name == CONSTANT else (above.parent.parent, above.name)


def _processors(root: Path) -> list[Path]:
    """The folders processor0, processor1, ... that have a mesh."""
    found = [p for p in root.glob("processor*") if re.fullmatch(r"processor[0-9]+", p.name)]
    whole = [p for p in found if (p / CONSTANT / POLY_MESH).is_dir()]
    return sorted(whole, key=lambda p: int(p.name.removeprefix("processor")))


def read(path: Path, region: str = "") -> Mesh:
    """The sets, maps and places of a case; its files stay in ``extras`` for the writer.

    Sets are ``cells``, ``faces`` (the interior ones) and one for each patch; maps lead to the
    cells, from the owner's and the neighbour's side. Points, zones and fields are no part of the
    mesh: the writer moves them with the cells and faces. ``region`` is that of a case's folder.
    """
    case = read_case(path, region)
    n_cells = sum(case.part_sizes)
    sets = [ElementSet("cells", n_cells)]
    maps = []
    for name, table in case.tables.items():
        source = name.removesuffix("->cells")
        sets.append(ElementSet(source, len(table)))
        maps.append(SetMap(name, source, "cells", table))
    places = Dat(CENTROID, "cells", _joined([part.centre for part in case.parts]))
    lists = [
        IndexList(IN_CASE, s.name, np.arange(s.size, dtype=np.int32)) for s in sets[:2] if s.size
    ]
    extras = {
        CASE: {"points, zones, sets and fields": case},
        UPPER_TRIANGULAR: {FACES: tuple(case.part_sizes)},
    }
    return Mesh(sets, maps, [places], lists=lists, extras=extras)


def read_case(path: Path, region: str = "") -> FoamCase:
    root, named = _root_and_region(path) or (path, "")
    region = named or region
    whole = root / CONSTANT / region / POLY_MESH
    folders = [whole] if whole.is_dir() else [p / CONSTANT / POLY_MESH for p in _processors(root)]
    if not folders:
        raise MeshprepError(f"there is no {CONSTANT}/{POLY_MESH}: name the folder of a case")
    parts = tuple(_read_mesh(folder, root) for folder in folders)
    tables: dict[str, list[Int32s]] = {FACES: []}
    base = 0
    for part in parts:
        n = part.neighbour.size
        sides = np.stack([part.owner[:n], part.neighbour], axis=1)
        sides += np.int32(base)
        tables[FACES].append(sides)
        for name, (start, size) in part.patches.items():
            own = part.owner[start : start + size, None] + np.int32(base)
            known = name in _KEPT or "->" in name or "/" in name
            tables.setdefault(f"{'patch ' * known}{name}->cells", []).append(own)
        base += part.n_cells
    return FoamCase(root, region, parts, {name: _joined(found) for name, found in tables.items()})


def _joined(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    """The arrays one after the other; one alone is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _read_mesh(folder: Path, root: Path) -> PolyMesh:
    names = ("points", "faces", "owner", "neighbour")
    files = {name: open_file(folder / name, root) for name in names}
    ends = dict[str, int]()
    (offset, points, ends["faces"]), (found, ends["points"]) = at_once(
        files["faces"].faces, lambda: files["points"].numbers(files["points"].start, "scalar", 3)
    )
    n_faces = offset.size - 1
    sides = dict[str, Int32s]()
    for name in ("owner", "neighbour"):
        values, ends[name] = files[name].numbers(files[name].start, "label", limit=n_faces)
        sides[name] = as_index(files[name], values[:, 0], 2 * n_faces)
    owner, neighbour = sides.values()
    if owner.size != n_faces or not n_faces:
        raise MeshprepError(
            f"{files['owner'].name}: holds {owner.size} labels for {n_faces} faces: {_DAMAGED}"
        )
    for at in np.flatnonzero(owner[: neighbour.size] == neighbour)[:1]:
        raise MeshprepError(f"{files['owner'].name}: face {at} has cell {owner[at]} on both sides")
    xyz = np.require(found, np.float64, ["A", "C"])
    if points.max(initial=0) >= len(xyz):
        raise MeshprepError(
            f"{files['faces'].name}: a face has point {points.max()} of {len(xyz)}: {_DAMAGED}"
        )
    if not (finite := np.isfinite(xyz)).all():
        at = int(np.argmin(finite.all(axis=1)))
        raise MeshprepError(f"{files['points'].name}: point {at} is {xyz[at].tolist()}: {_DAMAGED}")
    n_cells = int(max(owner.max(), neighbour.max(initial=0))) + 1
    # every cell has a face, so that damaged numbers are told before they are allocated for
    if n_cells > n_faces + neighbour.size:
        raise MeshprepError(
            f"{files['owner'].name}: names cell {n_cells - 1}, but there are {n_faces} faces: "
            f"{_DAMAGED}"
        )
    centre = _centres(files["faces"], (owner, neighbour, offset, points), xyz, n_cells)
    patches = _patches(folder, root, neighbour.size, n_faces)
    kept = {name: file.without_list(ends[name]) for name, file in files.items()}
    return PolyMesh(
        folder, kept, owner, neighbour, offset, points, len(xyz), n_cells, patches, centre
    )


def _centres(
    file: FoamFile, mesh: tuple[Int32s, Int32s, Int64s, Int32s], xyz: Float64s, n_cells: int
) -> Float64s:
    """The centre of the box of each cell: exact, whatever the order of faces and points."""
    centre, high = np.full((n_cells, 3), np.inf), np.full((n_cells, 3), -np.inf)
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
    """Grow the box of every cell by the points of its faces, and put its centre into ``low``.

    Returns -1, or a bad face; a cell without faces counts as one behind all faces.
    """
    for f in range(owner.size):
        begin, end = offset[f], offset[f + 1]
        if end - begin < 3:
            return f
        for i in range(begin + 1, end):
            for j in range(begin, i):
                if points[i] == points[j]:
                    return f
        # columns by themselves: one visit to each point, and no loop over three numbers
        x0 = x1 = xyz[points[begin], 0]
        y0 = y1 = xyz[points[begin], 1]
        z0 = z1 = xyz[points[begin], 2]
        for i in range(begin + 1, end):
            x, y, z = xyz[points[i], 0], xyz[points[i], 1], xyz[points[i], 2]
            x0, y0, z0 = min(x0, x), min(y0, y), min(z0, z)
            x1, y1, z1 = max(x1, x), max(y1, y), max(z1, z)
        for side in range(2 if f < neighbour.size else 1):
            cell = neighbour[f] if side else owner[f]
            low[cell, 0], high[cell, 0] = min(low[cell, 0], x0), max(high[cell, 0], x1)
            low[cell, 1], high[cell, 1] = min(low[cell, 1], y0), max(high[cell, 1], y1)
            low[cell, 2], high[cell, 2] = min(low[cell, 2], z0), max(high[cell, 2], z1)
    for cell in range(len(low)):
        if low[cell, 0] > high[cell, 0]:
            return owner.size + cell
        for j in range(3):
            low[cell, j] = 0.5 * low[cell, j] + 0.5 * high[cell, j]
    return -1


def _patches(folder: Path, root: Path, n_interior: int, n_faces: int) -> dict[str, tuple[int, int]]:
    """The faces of each patch; raises MeshprepError unless they follow each other to the end."""
    file = open_file(folder / "boundary", root)
    text = _COMMENT.sub(" ", file.raw[file.start :].decode("latin-1"))
    count = re.match(r"\s*([0-9]{1,9})\s*\(", text)
    patches, at = dict[str, tuple[int, int]](), n_interior
    for name, entries in _dictionaries(text[count.end() :] if count else ""):
        start, size = (_entry(file, entries, key, name) for key in ("startFace", "nFaces"))
        if start != at or name in patches:
            raise MeshprepError(
                f"{file.name}: patch '{name}' begins at face {start}, must begin at {at}: repair it"
            )
        patches[name], at = (start, size), start + size
    if count is None or len(patches) != int(count[1]) or at != n_faces:
        raise MeshprepError(
            f"{file.name}: has {len(patches)} patches up to face {at} of {n_faces}: {_DAMAGED}"
        )
    return patches


def _dictionaries(text: str) -> Iterator[tuple[str, str]]:
    """Name and entries of each dictionary of a list; those inside count as entries."""
    depth = begin = 0
    name = None
    for found in re.finditer(r"[{}]", text):
        if found[0] == "{":
            if depth == 0:
                name = _PATCH.search(text, begin, found.end())
                begin = found.end()
            depth += 1
        else:
            depth -= 1
            if depth == 0 and name is not None:
                yield name[1].strip('"'), text[begin : found.start()]
                begin = found.end()


def _entry(file: FoamFile, entries: str, key: str, name: str) -> int:
    found = re.findall(rf"(?<!\S){key}\s+([0-9]{{1,18}})\s*;", entries)
    if len(found) != 1:
        raise MeshprepError(f"{file.name}: patch '{name}' needs one entry {key}: repair it")
    return int(found[0])


def case_of(mesh: Mesh) -> FoamCase | None:
    """The case that a mesh was read from, None for another mesh."""
    found = next(iter(mesh.extras.get(CASE, {}).values()), None)
    return found if isinstance(found, FoamCase) else None
