"""The entries of a case, and what happens to each when the mesh is renumbered."""

import gzip
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from meshprep_runtime.plan.file.hidden import PREFIX

from ..text.packed import DAMAGED, read_gz
from .case import CONSTANT, POLY_MESH, FoamCase, PolyMesh, regions_of
from .files import GZ, header_of
from .moves import (
    FIELD,
    LISTS,
    OF_WHOLE,
    ON,
    SETS,
    inner_size,
    names_by_label,
    names_reference,
)

_TIME = re.compile(r"[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?")
_PARTS = re.compile(r"processors?[0-9]+[^/]*")
# Bytes that are looked at first: the header, and in a field the size of its inner values.
_HEAD = 1 << 16
# Fields of finite areas are on faces of patches, which keep their order.
_ON_AREAS = ("area", "edge")
_NUMBERS = rb"(?:label|scalar|vector|bool|\w*[tT]ensor)"
_OPENING = re.compile(rb"\bFoamFile\s*\{")
# The list that a file begins with, and those inside of it.
_FIRST = re.compile(
    rb"(?:\s+|//[^\n]*|/\*.*?\*/)*([0-9]{1,18})\s*(?:[({]|//|\Z)", re.DOTALL
)
_INSIDE = re.compile(rb"\bList<" + _NUMBERS + rb">\s*([0-9]{1,18})\s*[({]")
# Classes of files that begin with a list which is not of numbers.
_NO_NUMBERS = ("polyBoundaryMesh", "faBoundaryMesh", "dictionary")
# Folders with points, faces and edges of their own: of surfaces, patches and finite areas.
_OWN_NUMBERS = {
    "boundaryData",
    "extendedFeatureEdgeMesh",
    "faMesh",
    "finite-area",
    "geometry",
    "triSurface",
}
# What becomes of the files of polyMesh that are known by their names.
_ROLES = {
    "points": "points",
    "points0": "points",
    "faces": "mesh",
    "owner": "mesh",
    "neighbour": "mesh",
    "boundary": "copied",
    "boundaryProcAddressing": "copied",
    "boundaryRegionAddressing": "copied",
    "level0Edge": "copied",
    "cellZones": "zones",
    "faceZones": "zones",
    "pointZones": "zones",
    "refinementHistory": "lost",
    "meshModifiers": "lost",
}
# Of other files in polyMesh, the classes that name neither cells, faces nor points.
_HARMLESS = ("", "dictionary", "polyBoundaryMesh")


@dataclass(frozen=True)
class Entry:
    """A file or folder of a case: its place in it, and the mesh that its numbers belong to.

    ``role`` tells what becomes of it: ``mesh``, ``points``, ``labels``, ``zones``, ``set``,
    ``field`` and ``dictionary`` move, each in its way; ``copied`` stays as it is; ``lost``
    would be wrong in another order and cannot be moved.
    """

    path: Path
    place: Path
    mesh: PolyMesh | None
    role: str


def entries(case: FoamCase) -> Iterator[Entry]:
    """All entries of a case; a folder that is copied or lost as a whole is one entry."""
    return _Walk(case).of_folder(case.root, case.root)


class _Walk:
    """A walk through the folders of a case."""

    def __init__(self, case: FoamCase) -> None:
        self.case = case
        self.roots = {
            part.folder.parents[1 + bool(case.region)]: part for part in case.parts
        }
        self.regions = {root: set(regions_of(root)) for root in (case.root, *self.roots)}
        self.replaced_at = {root: _own_mesh_from(root, case.region) for root in self.roots}

    def of_folder(self, folder: Path, root: Path) -> Iterator[Entry]:
        for path in sorted(folder.iterdir()):
            if path.name.startswith(PREFIX):
                continue
            if path in self.roots:
                yield from self.of_folder(path, path)
            elif path.parent == self.case.root and _PARTS.fullmatch(path.name):
                yield self._entry(path, "lost")
            elif not path.is_dir():
                yield self._of_file(path, root)
            elif _is_in_itself(path) or _is_case(path):
                yield self._entry(path, "copied")
            else:
                yield from self._of_inner(path, root)

    def _of_inner(self, path: Path, root: Path) -> Iterator[Entry]:
        """The entries of a folder.

        It is a single entry where it is empty, lost as a whole, or a link that may stay.
        """
        inner = list(self.of_folder(path, root))
        roles = {entry.role for entry in inner}
        if roles <= {"copied"} and (path.is_symlink() or not inner):
            yield self._entry(path, "copied")
        elif roles == {"lost"} and len(inner) > 1:
            yield self._entry(path, "lost")
        else:
            yield from inner

    def _entry(self, path: Path, role: str, mesh: PolyMesh | None = None) -> Entry:
        return Entry(
            path=path, place=path.relative_to(self.case.root), mesh=mesh, role=role
        )

    def _of_file(self, path: Path, root: Path) -> Entry:
        mesh = self.roots.get(root)
        if mesh is None:
            # beside the folders of processors only the first of them is meant by a number
            mesh = self.case.parts[0]
            if _is_of_reference(path):
                role = "dictionary"
            else:
                role = "copied"
        else:
            role = self._role(path, root, path.relative_to(root).parts)
        return self._entry(path, role, None if role == "copied" else mesh)

    def _role(self, path: Path, root: Path, inner: Sequence[str]) -> str:
        """What becomes of a file at this place beside a mesh."""
        region = self.case.region
        mesh = self.roots[root]
        top, *folders = inner[:-1] or ("",)
        name = path.name.removesuffix(GZ)
        # a region that splitMeshRegions made names cells, faces and points of the whole
        # mesh
        if not region and name in OF_WHOLE:
            of_others = "lost"
        else:
            of_others = "copied"
        others = self.regions[root] - {region}
        if others.intersection(inner[:-1]) or (region and region not in inner[:-1]):
            return of_others
        is_time = _TIME.fullmatch(top) is not None
        if is_time and float(top) >= self.replaced_at[root]:
            return "lost"
        if _is_of_own_mesh(path=path, root=root, mesh=mesh, region=region):
            return of_others
        in_use = is_time or top == CONSTANT
        role = _role_beside(
            path=path, folders=[f for f in folders if f != region], mesh=mesh, in_use=in_use
        )
        # in place of a packed file OpenFOAM reads the other one
        hidden = path.suffix == GZ and path.with_suffix("").is_file()
        if hidden and (in_use or role != "copied"):
            return "lost"
        return role


def _role_beside(path: Path, folders: Sequence[str], mesh: PolyMesh, in_use: bool) -> str:
    """What happens to a file that belongs to a mesh, by its folders, name and content.

    ``in_use`` says that it is among the constants or in a time, where solvers read it.
    """
    name = path.name.removesuffix(GZ)
    if _OWN_NUMBERS.intersection(folders):
        return "copied"
    # particles name the cells that they are in, and are numbered otherwise
    if "lagrangian" in folders and "uniform" not in folders:
        return "lost"
    in_mesh = POLY_MESH in folders
    if in_mesh:
        below = folders[folders.index(POLY_MESH) + 1 :]
    else:
        below = []
    if below not in ([], ["sets"]):
        return "lost"
    if in_mesh and not below and name in _ROLES:
        role = _ROLES[name]
        if role == "mesh" and path.parent != mesh.folder:
            return "lost"
        return role
    if not path.is_file():
        # a link that leads nowhere
        return "copied"
    try:
        head = _read_beginning(path, _HEAD)
    except DAMAGED:
        # who reads it says what is wrong
        if in_use:
            return "field"
        return "copied"
    known = _role_of_class(head=head, name=name, mesh=mesh, in_use=in_use)
    if known is not None:
        return known
    if in_mesh and header_of(head)[0].get("class", "") not in _HARMLESS:
        return "lost"
    return _role_of_content(path, head, mesh)


def _role_of_class(head: bytes, name: str, mesh: PolyMesh, in_use: bool) -> str | None:
    """What becomes of a set, a field, or a list of a known name; None for other files."""
    header, end = header_of(head)
    kind = header.get("class", "")
    if kind in SETS:
        return "set"
    if kind.startswith(_ON_AREAS):
        return "copied"
    if field := FIELD.fullmatch(kind):
        # one of another size that no solver reads is of another mesh
        size = inner_size(head, field)
        fits = size is None or size == mesh.inner_sizes[ON[field[1]]]
        if fits or in_use:
            return "field"
        return "copied"
    if name in LISTS and kind.startswith("label"):
        found = _FIRST.match(head, end)
        fits = found is not None and int(found[1]) == mesh.sizes[LISTS[name]]
        if fits:
            return "labels"
        return "lost"
    if in_use and not end and _OPENING.search(head):
        # a damaged header: who reads it says what is wrong
        return "field"
    return None


def _role_of_content(path: Path, head: bytes, mesh: PolyMesh) -> str:
    """What becomes of a file that is no set or field, by the sizes of the lists in it."""
    header, end = header_of(head)
    kind = header.get("class", "")
    # files without a header are mostly not OpenFOAM's, and may be long: their head tells
    if kind and len(head) == _HEAD:
        raw = _read_whole(path, mesh)
    else:
        raw = head
    sizes = {int(found[1]) for found in _INSIDE.finditer(raw)}
    first = _FIRST.match(raw, end)
    if first is not None and kind not in _NO_NUMBERS:
        sizes.add(int(first[1]))
    of_mesh = {*mesh.sizes.values(), *mesh.inner_sizes.values()} - {0}
    # whole numbers in a list of any size may be those of cells
    if sizes & of_mesh or (kind.startswith("label") and sizes != {0}):
        return "lost"
    if kind and names_by_label(raw):
        return "dictionary"
    return "copied"


def _read_beginning(path: Path, size: int) -> bytes:
    """The first bytes of a file, unpacked."""
    with gzip.open(path) if path.suffix == GZ else path.open("rb") as opened:
        return opened.read(size)


def _read_whole(path: Path, mesh: PolyMesh) -> bytes | bytearray:
    """All bytes of a file, unpacked no further than a file beside this mesh can be."""
    if path.suffix == GZ:
        return read_gz(path, f"{path}:", sum(mesh.sizes.values()))
    return path.read_bytes()


def _is_of_reference(path: Path) -> bool:
    """Whether a file is a dictionary that names the cell of a reference value."""
    if not path.is_file():
        return False
    try:
        raw = _read_beginning(path, _HEAD)
    except DAMAGED:
        return False
    return header_of(raw)[0].get("class") == "dictionary" and names_reference(raw)


def _holds(folder: Path, names: Collection[str]) -> bool:
    """Whether one of these files is there, packed or not."""
    return any(
        (folder / name).is_file() or (folder / f"{name}{GZ}").is_file() for name in names
    )


def _is_of_own_mesh(path: Path, root: Path, mesh: PolyMesh, region: str) -> bool:
    """Whether a folder between the root and this file holds or adjoins another mesh."""
    for folder in path.parents:
        if folder == root:
            break
        for place in (folder, folder / region / POLY_MESH):
            whole = _holds(place, ["faces"]) and _holds(place, ["owner"])
            if whole and place != mesh.folder:
                return True
    return False


def _is_case(folder: Path) -> bool:
    """Whether a folder inside of a case is a case by itself."""
    return (folder / CONSTANT / POLY_MESH).is_dir() or bool(regions_of(folder))


def _is_in_itself(folder: Path) -> bool:
    """Whether this is a link to a folder above it."""
    if not folder.is_symlink():
        return False
    return folder.resolve() in [above.resolve() for above in folder.parents]


def _own_mesh_from(root: Path, region: str) -> float:
    """The first time that has faces of its own; from then on the mesh is another one."""
    times = [path for path in root.iterdir() if _TIME.fullmatch(path.name)]
    with_mesh = [
        float(path.name)
        for path in times
        if _holds(path / region / POLY_MESH, ("faces", "owner", "neighbour"))
    ]
    return min(with_mesh, default=float("inf"))
