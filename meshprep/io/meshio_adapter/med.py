"""MED through meshio, and what it does otherwise than MED's own library.

Volumes have their base turned round in MED files. Families of cells have negative numbers and are
listed, with groups or without. A field that nodes and cells have in common goes by two names, as
Gmsh takes such values for one array.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh.cells import shape_of
from .numbers import BETWEEN, NUMBERS, TakenNumbers, taken_numbers
from .own import meshio

_med = meshio.med._med

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


class _Partial(meshio.Mesh):
    """A mesh that may have values on some blocks of cells alone, None on the others."""

    def __init__(self, points: Any, cells: Any, *, cell_data: Any, **more: Any) -> None:
        super().__init__(points, cells, **more)
        self.cell_data = cell_data


def read(path: str) -> Any:
    """Read a MED file as meshio does, volumes in VTK's order and groups by our numbers."""
    with h5py.File(path, "r") as file:
        for name in _step(file)["MAI"]:
            if name not in _med.med_to_meshio_type:
                raise MeshprepError(
                    f"holds cells of MED's type '{name}', which are not supported: "
                    "split polygons and polyhedra into triangles and tetrahedra"
                )
    readers = {"_read_nodal_data": _node_values, "_read_cell_data": _cell_values}
    with _instead(Mesh=_Partial, _read_families=_families, **readers):
        mesh = _med.read(path)
    mesh.field_data.pop("med:nom", None)
    with h5py.File(path, "r") as file:
        mesh.fields, mesh.left_out = read_fields(file)
        mesh.left_out += read_numbers(_step(file), mesh)
        mesh.about = _about(file)
        families, own = _cell_families(file, mesh)
    _turn(mesh)
    used = {i for ids in families for i in np.unique(ids).tolist()} - {0}
    numbers = _in_memory(own, mesh.cell_tags, used)
    mesh.cell_tags = {numbers.get(i, i): names for i, names in mesh.cell_tags.items() if names}
    mesh.point_tags = {i: names for i, names in mesh.point_tags.items() if names}
    mesh.cell_data["cell_tags"] = [_renumbered(ids, numbers) for ids in families]
    held = {name for i in used for name in mesh.cell_tags.get(numbers[i], ())}
    groups = {name for names in mesh.cell_tags.values() for name in names}
    mesh.left_out += [f"group '{name}' without cells" for name in sorted(groups - held)]
    for name in [n for n in mesh.cell_data if n.endswith(_OF_CELLS)]:
        if name.removesuffix(_OF_CELLS) in mesh.point_data:
            mesh.cell_data[name.removesuffix(_OF_CELLS)] = mesh.cell_data.pop(name)
    return mesh


def _about(file: Any) -> dict[str, Any]:
    """The name of the mesh under ``name``, and its attributes."""
    name, mesh = next(iter(file["ENS_MAA"].items()))
    return {"name": name} | {key: mesh.attrs[key] for key in _OF_MESH if key in mesh.attrs}


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


@contextmanager
def _instead(**parts: Any) -> Iterator[None]:
    """Give meshio these parts instead of its own."""
    before = {name: getattr(_med, name) for name in parts}
    try:
        vars(_med).update(parts)
        yield
    finally:
        vars(_med).update(before)


def _step(file: Any) -> Any:
    """The group of nodes and cells, in a mesh that may have steps."""
    mesh = next(iter(file["ENS_MAA"].values()))
    return mesh if "NOE" in mesh else next(iter(mesh.values()))


def _node_values(support: Any, profiles: Any) -> NDArray:
    n = _step(support.file)["NOE/COO"].attrs["NBR"]
    values = values_on(support["NOE"], profiles, int(n))
    return values.reshape(len(values), -1)


def _cell_values(support: Any, profiles: Any) -> NDArray:
    cell_type = support.name.rpartition("/")[2].partition(".")[2]
    n = _step(support.file)["MAI"][cell_type]["NOD"].attrs["NBR"]
    values = values_on(support, profiles, int(n))
    return values[:, 0] if values.shape[1] == 1 else values


def _cell_families(file: Any, mesh: Any) -> tuple[list[NDArray], dict[int, int]]:
    """The family of each cell, and the number in memory of those that :func:`write` made.

    meshio shifts families where a type of cells has none.
    """
    types = zip(_step(file)["MAI"].values(), mesh.cells, strict=True)
    of_cells = [t["FAM"][()] if "FAM" in t else np.zeros(len(c), int) for t, c in types]
    families = next(iter(file["FAS"].values())).get("ELEME", {}) if "FAS" in file else {}
    found = {int(f.attrs["NUM"]): _FAMILY.fullmatch(name) for name, f in families.items()}
    return of_cells, {number: int(match[1]) for number, match in found.items() if match}


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


def write(path: str, mesh: meshio.Mesh) -> None:
    """Write a MED file as MED's own library reads it; the mesh is changed.

    It is made in memory: HDF5 prints at exit, or crashes, when the disk is full.
    """
    buffer = BytesIO()
    _turn(mesh)
    numbers = taken_numbers(mesh)
    for name in mesh.point_data.keys() & mesh.cell_data.keys():
        mesh.cell_data[f"{name}{_OF_CELLS}"] = mesh.cell_data.pop(name)
    cell_tags = mesh.cell_data["cell_tags"]
    names = getattr(mesh, "cell_tags", {}), getattr(mesh, "point_tags", {})
    families = _negative(sorted({i for ids in cell_tags for i in np.unique(ids).tolist()} - {0}))
    mesh.cell_data["cell_tags"] = [_renumbered(ids, families) for ids in cell_tags]
    mesh.cell_tags = mesh.point_tags = {}
    _med.write(buffer, mesh)
    nodes = set(np.unique(mesh.point_data["point_tags"]).tolist()) | set(names[1])
    with h5py.File(buffer, "a") as file:
        write_fields(file, getattr(mesh, "fields", {}))
        step = _step(file)
        types = [step["MAI"][_med.meshio_to_med_type[block.type]] for block in mesh.cells]
        write_numbers(step, types, numbers)
        for i, number in families.items():
            key = f"ELEME/group {i}"
            _write_family(file["FAS/mesh"], key, number, names[0].get(i, ()))
        for i in sorted(nodes - {0}):
            _write_family(file["FAS/mesh"], f"NOEUD/family {i}", i, names[1].get(i, ()))
        if about := getattr(mesh, "about", {}):
            _name(file, about)
    Path(path).write_bytes(buffer.getbuffer())


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


def read_fields(file: Any) -> tuple[dict[str, tuple[str, dict[str, Any]]], list[str]]:
    """Step and attributes of each field with one step, and what is left out of the others."""
    found, lost = {}, []
    for name, field in file.get("CHA", {}).items():
        steps = list(field)
        if len(steps) != 1:
            lost.append(f"the steps of '{name}'")
            continue
        attributes = {key: field.attrs[key] for key in _OF_FIELD if key in field.attrs}
        both = {t for t in field[steps[0]] if f"NOE.{t.partition('.')[2]}" in field[steps[0]]}
        if any(support.startswith("MAI.") for support in both):
            lost.append(f"values '{name}' of cells, beside those at their nodes")
        step = field[steps[0]].attrs
        found[name] = steps[0], attributes | {key: step[key] for key in _OF_STEP if key in step}
    return found, lost


def values_on(support: Any, profiles: Any, n: int) -> NDArray:
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


def write_fields(file: Any, fields: Mapping[str, tuple[str, Mapping[str, Any]]]) -> None:
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


def read_numbers(step: Any, mesh: Any) -> list[str]:
    """Give nodes and cells the numbers that they have in the file; returns what fits neither."""
    nodes = _number(step["NOE"], len(mesh.points))
    cells = [
        _number(one, len(block.data))
        for one, block in zip(step["MAI"].values(), mesh.cells, strict=True)
    ]
    lost = []
    for what, data, numbers in (
        ("nodes", mesh.point_data, [nodes]),
        ("cells", mesh.cell_data, cells),
    ):
        given = [one for one in numbers if one is not None]
        every = np.concatenate([*given, np.empty(0, int)])
        if all(np.array_equal(one, np.arange(1, one.size + 1)) for one in given):
            continue
        if len(given) < len(numbers) or np.unique(every).size < every.size or NUMBERS in data:
            lost.append(f"the numbers of the {what}")
        else:
            data[NUMBERS] = given[0] if what == "nodes" else given
    mesh.numbered = True
    return lost


def _number(group: Any, n: int) -> NDArray | None:
    found = group["NUM"][()] if "NUM" in group else None
    return found if found is None or found.shape == (n,) else None


def write_numbers(step: Any, groups: Sequence[Any], numbers: TakenNumbers) -> None:
    """The numbers of nodes and of the blocks of cells, whose groups these are."""
    nodes, cells = numbers
    given = [] if nodes is None else [(step["NOE"], nodes)]
    given += [] if cells is None else list(zip(groups, cells, strict=True))
    for group, values in given:
        made = group.create_dataset("NUM", data=values.astype(np.int64))
        made.attrs.create("CGT", 1)
        made.attrs.create("NBR", len(values))
