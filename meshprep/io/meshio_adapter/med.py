"""MED through meshio, and what it does otherwise than MED's own library.

Volumes have their base turned round in MED files. Families of cells have negative numbers and are
listed, with groups or without. A field that nodes and cells have in common goes by two names, as
Gmsh takes such values for one array.
"""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh.cells import shape_of
from .file_mesh import NUMBERS, Cells, FileMesh
from .harden import check_hdf5
from .incoming import BETWEEN
from .outgoing import as_meshio

_MED = {
    **{"vertex": "PO1", "line": "SE2", "line3": "SE3", "triangle": "TR3", "triangle6": "TR6"},
    **{"quad": "QU4", "quad8": "QU8", "tetra": "TE4", "tetra10": "T10", "hexahedron": "HE8"},
    **{"hexahedron20": "H20", "pyramid": "PY5", "pyramid13": "P13", "wedge": "PE6"},
    "wedge15": "P15",
}
_TYPES = {name: cell_type for cell_type, name in _MED.items()}
# Corners of a volume in memory, in the order of MED; twice is the order again.
_CORNERS = {
    "tetra": (0, 2, 1, 3),
    "pyramid": (0, 3, 2, 1, 4),
    "wedge": (0, 2, 1, 3, 5, 4),
    "hexahedron": (0, 3, 2, 1, 4, 7, 6, 5),
}
_OF_CELLS = " of cells"
# The name of a family of cells that we wrote, with the number of the group in memory.
_FAMILY = re.compile(r"group (-?\d+)")
# What a file says of its mesh, besides its name.
_OF_MESH = ("DES", "NOM", "UNI", "UNT")


def read(path: Path) -> FileMesh:
    """Read a MED file, volumes in VTK's order and groups by our numbers."""
    check_hdf5(path)
    with h5py.File(path, "r") as file:
        return _read(file)


def _read(file: Any) -> FileMesh:
    for what, count in (("meshes", len(file["ENS_MAA"])), ("steps of it", len(_steps(file)))):
        if count != 1:
            raise MeshprepError(f"holds {count} {what}: write each into a file of its own")
    name, whole = next(iter(file["ENS_MAA"].items()))
    (step,) = _steps(file)
    nodes, blocks = step["NOE"], list(step["MAI"].items())
    for kind, _ in blocks:
        if kind not in _TYPES:
            raise MeshprepError(
                f"holds cells of MED's type '{kind}', which are not supported: "
                "split polygons and polyhedra into triangles and tetrahedra"
            )
    cells = [Cells(_TYPES[kind], _rows(group["NOD"]) - 1) for kind, group in blocks]
    mesh = FileMesh(_rows(nodes["COO"], int(whole.attrs["ESP"])), cells)
    if "FAM" in nodes:
        mesh.point_data["point_tags"] = nodes["FAM"][()]
    fas = step.get("FAS") or file.get(f"FAS/{name}") or {}
    mesh.fields, mesh.left_out = _read_fields(file, mesh, [kind for kind, _ in blocks])
    mesh.left_out += _read_numbers(nodes, [group for _, group in blocks], mesh)
    mesh.about = {"name": name} | {k: whole.attrs[k] for k in _OF_MESH if k in whole.attrs}
    sizes = zip(blocks, cells, strict=True)
    none = (np.zeros(len(c.data), int) for c in cells)
    families = [
        group["FAM"][()] if "FAM" in group else zero
        for ((_, group), _), zero in zip(sizes, none, strict=True)
    ]
    _turn(mesh)
    listed = fas.get("ELEME", {})
    names, used = _families(listed), {i for ids in families for i in np.unique(ids).tolist()} - {0}
    found = {int(f.attrs["NUM"]): _FAMILY.fullmatch(key) for key, f in listed.items()}
    own = {number: int(match[1]) for number, match in found.items() if match}
    numbers = _in_memory(own, names, used)
    mesh.cell_tags = {numbers.get(i, i): groups for i, groups in names.items() if groups}
    of_nodes = _families(fas.get("NOEUD", {}))
    mesh.point_tags = {i: groups for i, groups in of_nodes.items() if groups}
    mesh.cell_data["cell_tags"] = [_renumbered(ids, numbers) for ids in families]
    held = {name for i in used for name in mesh.cell_tags.get(numbers[i], ())}
    every = {name for groups in mesh.cell_tags.values() for name in groups}
    mesh.left_out += [f"group '{name}' without cells" for name in sorted(every - held)]
    for key in [n for n in mesh.cell_data if n.endswith(_OF_CELLS)]:
        if key.removesuffix(_OF_CELLS) in mesh.point_data:
            mesh.cell_data[key.removesuffix(_OF_CELLS)] = mesh.cell_data.pop(key)
    return mesh


def _steps(file: Any) -> list[Any]:
    """The groups of nodes and cells of a mesh, which may have steps."""
    mesh = next(iter(file["ENS_MAA"].values()))
    return [mesh] if "NOE" in mesh else list(mesh.values())


def _rows(data: Any, width: int = -1) -> NDArray[Any]:
    """The rows of a table that stands column by column."""
    rows: NDArray[Any] = data[()].reshape(int(data.attrs["NBR"]), width, order="F")
    return rows


def _name(file: Any, about: Mapping[str, Any]) -> None:
    """Give the mesh that was written its name and attributes."""
    attributes = {key: value for key, value in about.items() if key in _OF_MESH}
    file["ENS_MAA/mesh"].attrs.update(attributes)
    for field in file["CHA"].values():
        field.attrs["MAI"] = np.bytes_(about["name"].encode())
    for root in ("ENS_MAA", "FAS"):
        file.move(f"{root}/mesh", f"{root}/{about['name']}")


def _families(root: Any) -> dict[int, list[str]]:
    """Groups of each family by number; meshio fails on a family that has none."""
    out = {}
    for family in root.values():
        rows = family["GRO/NOM"][()] if "GRO/NOM" in family else ()
        names = [_text(bytes(row.astype(np.uint8)).partition(b"\0")[0]) for row in rows]
        if several := [name for name in names if BETWEEN in name]:
            raise MeshprepError(
                f"has a group '{several[0]}', whose name reads as those of two: write no blank "
                "after a comma"
            )
        out[int(family.attrs["NUM"])] = names
    return out


def _text(name: bytes) -> str:
    try:
        return name.decode().strip()
    except UnicodeDecodeError:
        return name.decode("latin-1").strip()


def _in_memory(
    own: Mapping[int, int], names: Mapping[int, Sequence[str]], used: Iterable[int]
) -> dict[int, int]:
    """The number in memory of each family of cells: its own without the minus, where it is free.

    Families of the same groups are one: MED's writers make one for each part of a geometry.
    """
    out = dict(own)
    known = {tuple(names[i]): number for i, number in own.items() if names.get(i)}
    for i in sorted({*names, *used} - {0, *own}, key=abs):
        groups = tuple(names.get(i, ()))
        taken = set(out.values())
        free = next(n for n in itertools.count(abs(i)) if n not in taken)
        out[i] = known.setdefault(groups, free) if groups else free
    return out


def _renumbered(ids: NDArray, numbers: Mapping[int, int]) -> NDArray[np.int64]:
    out = np.asarray(ids).astype(np.int64)
    for number in numbers.keys() & set(out.tolist()):
        out[np.asarray(ids) == number] = numbers[number]
    return out


def write(path: Path, mesh: FileMesh) -> None:
    """Write a MED file as MED's own library reads it; the mesh is changed.

    It is made in memory: HDF5 prints at exit, or crashes, when the disk is full.
    """
    import meshio

    _turn(mesh)
    numbers = mesh.take_numbers()
    for name in mesh.point_data.keys() & mesh.cell_data.keys():
        mesh.cell_data[f"{name}{_OF_CELLS}"] = mesh.cell_data.pop(name)
    cell_tags = mesh.cell_data["cell_tags"]
    families = _negative(sorted({i for ids in cell_tags for i in np.unique(ids).tolist()} - {0}))
    mesh.cell_data["cell_tags"] = [_renumbered(ids, families) for ids in cell_tags]
    buffer = BytesIO()
    meshio.med.write(buffer, as_meshio(mesh))
    nodes = set(np.unique(mesh.point_data["point_tags"]).tolist()) | set(mesh.point_tags)
    with h5py.File(buffer, "a") as file:
        _write_fields(file, mesh.fields)
        (step,) = _steps(file)
        groups = [step["MAI"][_MED[block.type]] for block in mesh.cells]
        given = [] if numbers[0] is None else [(step["NOE"], numbers[0])]
        given += [] if numbers[1] is None else list(zip(groups, numbers[1], strict=True))
        for group, values in given:
            made = group.create_dataset("NUM", data=values.astype(np.int64))
            made.attrs.create("CGT", 1)
            made.attrs.create("NBR", len(values))
        for i, number in families.items():
            key = f"ELEME/group {i}"
            _write_family(file["FAS/mesh"], key, number, mesh.cell_tags.get(i, ()))
        for i in sorted(nodes - {0}):
            _write_family(file["FAS/mesh"], f"NOEUD/family {i}", i, mesh.point_tags.get(i, ()))
        if mesh.about:
            _name(file, mesh.about)
    path.write_bytes(buffer.getvalue())


def _negative(ids: Sequence[int]) -> dict[int, int]:
    """A negative number for each group, its own where that is one."""
    taken = {i for i in ids if i < 0}
    out = {}
    for i in ids:
        number = i if i < 0 else -i
        while i > 0 and number in taken:
            number -= 1
        taken.add(number)
        out[i] = number
    return out


def _write_family(root: Any, key: str, number: int, groups: Sequence[str]) -> None:
    family = root.create_group(key)
    family.attrs.create("NUM", number)
    listed = family.create_group("GRO")
    listed.attrs.create("NBR", len(groups))
    rows = listed.create_dataset("NOM", (len(groups),), dtype="80int8")
    for row, name in enumerate(groups):
        rows[row] = np.frombuffer(name.encode().ljust(80, b"\0"), dtype=np.int8)


def _turn(mesh: Any) -> None:
    for k, block in enumerate(mesh.cells):
        order = _order(block.type)
        if order is None or block.data.shape[1] != len(order):
            continue
        block.data = block.data[:, order]
        for values in mesh.cell_data.values():
            # Values at each node of a cell go with the nodes.
            if getattr(values[k], "ndim", 0) == 3 and values[k].shape[1] == len(order):
                values[k] = values[k][:, order]


def _order(cell_type: str) -> list[int] | None:
    """The column in memory of each column of MED, and the other way round."""
    shape = shape_of(cell_type)
    if shape.name not in _CORNERS:
        return None
    corners = _CORNERS[shape.name]
    if cell_type == shape.name:
        return list(corners)
    place = {frozenset(edge): shape.n_corners + i for i, edge in enumerate(shape.edges)}
    return [*corners, *(place[frozenset((corners[a], corners[b]))] for a, b in shape.edges)]


# meshio passes over the names and units of components, the time of the only step, and the numbers
# of nodes and cells. Values that a profile gives to a part of a set are put into their places.
_WHOLE = "MED_NO_PROFILE_INTERNAL"
_OF_FIELD, _OF_STEP = ("NOM", "UNI", "UNT", "NCO"), ("NDT", "NOR", "PDT")


def _read_fields(file: Any, mesh: FileMesh, kinds: Sequence[str]) -> tuple[dict[str, Any], list]:
    """Read values; step and attributes of each field with one step, and what is left out."""
    found, lost = {}, []
    profiles, sizes = file.get("PROFILS"), [len(cells.data) for cells in mesh.cells]
    for name, field in file.get("CHA", {}).items():
        steps = sorted(field)
        for i, key in enumerate(steps):
            step = field[key]
            called = name if len(steps) == 1 else f"{name}[{i}] - {step.attrs['PDT']:g}"
            for support in step:
                place, _, kind = support.partition(".")
                if place == "NOE" and not kind:
                    values = _values_on(step[support], profiles, len(mesh.points))
                    mesh.point_data[called] = values.reshape(len(values), -1)
                    continue
                at = kinds.index(kind)
                values = _values_on(step[support], profiles, sizes[at])
                own = mesh.cell_data.setdefault(called, [None] * len(kinds))
                own[at] = values[:, 0] if values.shape[1] == 1 else values
        if len(steps) != 1:
            lost.append(f"the steps of '{name}'")
            continue
        attributes = {key: field.attrs[key] for key in _OF_FIELD if key in field.attrs}
        step = field[steps[0]]
        if any(t.startswith("MAI.") and f"NOE.{t[4:]}" in step for t in step):
            lost.append(f"values '{name}' of cells, beside those at their nodes")
        more = {key: step.attrs[key] for key in _OF_STEP if key in step.attrs}
        found[name] = steps[0], attributes | more
    return found, lost


def _values_on(support: Any, profiles: Any, n: int) -> NDArray:
    """Values of nodes or of the cells of a type, ``n`` of them: (n, values at each, components).

    NaN where a profile leaves them out. Raises MeshprepError where it names others.
    """
    profile = bytes(support.attrs["PFL"]).decode()
    data = support[profile]
    index = np.arange(n) if profile == _WHOLE else profiles[profile]["PFL"][()] - 1
    for wrong in index[(index < 0) | (index >= n)][:1]:
        raise MeshprepError(f"profile '{profile}' names number {wrong + 1} of 1 to {n}: correct it")
    shape = (index.size, int(data.attrs.get("NGA", 1)), -1)
    values = data["CO"][()].reshape(shape, order="F")
    if profile == _WHOLE:
        return values
    out = np.full((n, *values.shape[1:]), np.nan, np.result_type(values, np.float32))
    out[index] = values
    return out


def _write_fields(file: Any, fields: Mapping[str, tuple[str, Mapping[str, Any]]]) -> None:
    """Give the fields that are there these steps and attributes."""
    for name, (step, attributes) in fields.items():
        field = file.get(f"CHA/{name}")
        if field is None or field.attrs["NCO"] != attributes.get("NCO"):
            continue
        written = next(iter(field))
        if written != step:
            field.move(written, step)
        for key, value in attributes.items():
            place = field if key in _OF_FIELD else field[step]
            place.attrs[key] = value


def _read_numbers(nodes: Any, groups: Sequence[Any], mesh: FileMesh) -> list[str]:
    """Give nodes and cells the numbers that they have in the file; returns what fits neither."""
    given = [_number(group, len(c.data)) for group, c in zip(groups, mesh.cells, strict=True)]
    lost, of_nodes = list[str](), _number(nodes, len(mesh.points))
    places: tuple[tuple[str, dict[str, Any], list[Any]], ...] = (
        ("nodes", mesh.point_data, [of_nodes]),
        ("cells", mesh.cell_data, given),
    )
    for what, data, numbers in places:
        known = [one for one in numbers if one is not None]
        every = np.concatenate([*known, np.empty(0, int)])
        if all(np.array_equal(one, np.arange(1, one.size + 1)) for one in known):
            continue
        if len(known) < len(numbers) or np.unique(every).size < every.size or NUMBERS in data:
            lost.append(f"the numbers of the {what}")
        else:
            data[NUMBERS] = known[0] if what == "nodes" else known
    mesh.numbered = True
    return lost


def _number(group: Any, n: int) -> NDArray | None:
    found = group["NUM"][()] if "NUM" in group else None
    return found if found is None or found.shape == (n,) else None
