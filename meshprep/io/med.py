"""MED through meshio, and what it does otherwise than MED's own library.

Volumes have their base turned round in MED files. Families of cells have negative numbers
and are listed, with groups or without. A field that nodes and cells have in common goes by
two names, as Gmsh takes such values for one array.
"""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..mesh import Mesh
from ..mesh.cells import shape_of
from .cell_blocks import Cells, FileMesh, block_format
from .cell_blocks.limits import (
    ANY_NAME,
    drop_group_names,
    drop_lists,
    drop_unused_group_names,
    unfit_group_names,
)
from .format import Capabilities, Values
from .format.names import BETWEEN, MED_FIELDS, MED_MESH, NUMBERS
from .format.reduce import bad_lists, without_counts
from .hdf import Item, load
from .meshio_formats import write_med

_MED = {
    "vertex": "PO1",
    "line": "SE2",
    "line3": "SE3",
    "triangle": "TR3",
    "triangle6": "TR6",
    "quad": "QU4",
    "quad8": "QU8",
    "tetra": "TE4",
    "tetra10": "T10",
    "hexahedron": "HE8",
    "hexahedron20": "H20",
    "pyramid": "PY5",
    "pyramid13": "P13",
    "wedge": "PE6",
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
# Bytes that the name of a group takes.
_NAME_BYTES = 80
# Names of groups that can be written and read back.
_GROUP_NAME = re.compile(r"(?! )[^\x00-\x1f\x7f-\x9f]+(?<!\s)")
# The name of a family of cells that we wrote, with the number of the group in memory.
_FAMILY = re.compile(r"group (-?\d+)")
# What a file says of its mesh, besides its name.
_OF_MESH = ("DES", "NOM", "REP", "UNI", "UNT")
# What nothing here looks at, in words; all else goes by its path.
_WORDS = {
    "EQS": "equivalences, such as pairs of nodes of periodic boundaries",
    "JNT": "joints, which are pairs of nodes or cells of two domains",
    "NUM_DATA": "numerical parameters",
    "GAUSS": "places of values inside cells",
    "PROFILS": "profiles",
    "STRUCT_ELEM": "structural elements",
}


def read(path: Path) -> FileMesh:
    """Read a MED file, volumes in VTK's order and groups by our numbers."""
    file = load(path, "hdf5")
    mesh = _read_med(file)
    mesh.left_out += _left_out(file)
    return mesh


def _left_out(file: Item) -> list[str]:
    """What of a file nothing has looked at, in words."""
    if "INFOS_GENERALES" in file:
        file["INFOS_GENERALES"].skip()
    return [_WORDS.get(item.path, f"'{item.path}'") for item in file.untouched()]


def _read_med(file: Item) -> FileMesh:
    for location, count in (
        ("meshes", len(file["ENS_MAA"])),
        ("steps of it", len(_step_groups(file))),
    ):
        if count != 1:
            raise MeshprepError(
                f"holds {count} {location}: write each into a file of its own"
            )
    # Read the nodes, and a block of cells for each type.
    name, whole = next(file["ENS_MAA"].items())
    (step,) = _step_groups(file)
    nodes = step["NOE"]
    blocks = list(step["MAI"].items())
    for kind, _ in blocks:
        if kind not in _TYPES:
            raise MeshprepError(
                f"holds cells of MED's type '{kind}', which are not supported: "
                "split polygons and polyhedra into triangles and tetrahedra"
            )
    cells = [
        Cells(_TYPES[kind], _rows_of_columns(group["NOD"]) - 1) for kind, group in blocks
    ]
    mesh = FileMesh(_rows_of_columns(nodes["COO"]), cells)
    if "FAM" in nodes:
        mesh.point_data["point_tags"] = nodes["FAM"].values
    # Read what is on them: fields, numbers, names, and the families that are groups, which
    # stand in FAS by the name of the mesh.
    families = step.get("FAS") or file.get(f"FAS/{name}") or Item("", {})
    mesh.fields, mesh.left_out = _read_fields(file, mesh, [kind for kind, _ in blocks])
    mesh.left_out += _read_numbers(nodes, [group for _, group in blocks], mesh)
    mesh.about = {"name": name} | {k: whole.attrs[k] for k in _OF_MESH if k in whole.attrs}
    of_cells = []
    for (_, group), block in zip(blocks, cells, strict=True):
        none = np.zeros(len(block.data), int)
        of_cells.append(group["FAM"].values if "FAM" in group else none)
    _turn_volumes(mesh)
    _read_families(families, of_cells, mesh)
    # Values of nodes and cells that we wrote under two names have one again.
    for key in [n for n in mesh.cell_data if n.endswith(_OF_CELLS)]:
        if key.removesuffix(_OF_CELLS) in mesh.point_data:
            mesh.cell_data[key.removesuffix(_OF_CELLS)] = mesh.cell_data.pop(key)
    return mesh


def _read_families(root: Item, of_cells: Sequence[NDArray], mesh: FileMesh) -> None:
    """Give cells their groups by our numbers; give nodes and cells the names of groups."""
    if "FAMILLE_ZERO" in root:
        # what is in no group
        root["FAMILLE_ZERO"].skip()
    # A cell has the number of one family, negative in MED, and the family has the names
    # of its groups; 0 is the family without groups.
    listed = root.get("ELEME") or Item("", {})
    names = _families(listed)
    used = _distinct_numbers(of_cells) - {0}
    our_numbers = {}
    for key, family in listed.items():
        if match := _FAMILY.fullmatch(key):
            our_numbers[int(family.attrs["NUM"])] = int(match[1])
    numbers = _family_numbers(our_numbers, names, used)
    mesh.cell_tags = {numbers.get(i, i): groups for i, groups in names.items() if groups}
    of_nodes = _families(root.get("NOEUD") or Item("", {}))
    mesh.point_tags = {i: groups for i, groups in of_nodes.items() if groups}
    mesh.cell_data["cell_tags"] = [_renumber_families(ids, numbers) for ids in of_cells]
    # Tell which groups no cell is in, as a mesh has no place for these.
    names_of_empty = set().union(*mesh.cell_tags.values())
    for i in used:
        names_of_empty.difference_update(mesh.cell_tags.get(numbers[i], ()))
    mesh.left_out += [f"group '{name}' without cells" for name in sorted(names_of_empty)]


def _distinct_numbers(arrays: Sequence[NDArray]) -> set[int]:
    """The numbers that stand in these arrays, each once."""
    numbers: set[int] = set()
    for array in arrays:
        numbers.update(np.unique(array).tolist())
    return numbers


def _step_groups(file: Item) -> list[Item]:
    """The groups of nodes and cells of a mesh, which may have steps."""
    _, mesh = next(file["ENS_MAA"].items())
    if "NOE" in mesh:
        return [mesh]
    return [step for _, step in mesh.items()]


def _rows_of_columns(data: Item) -> NDArray[Any]:
    """The rows of a table that stands column by column."""
    rows: NDArray[Any] = data.values.reshape(int(data.attrs["NBR"]), -1, order="F")
    return rows


def _write_mesh_name(file: Any, about: Mapping[str, Any]) -> None:
    """Give the mesh that was written its name and attributes."""
    # Fields and families refer to the mesh by its name.
    attributes = {key: value for key, value in about.items() if key in _OF_MESH}
    file["ENS_MAA/mesh"].attrs.update(attributes)
    for field in file["CHA"].values():
        field.attrs["MAI"] = np.bytes_(about["name"].encode())
    for root in ("ENS_MAA", "FAS"):
        file.move(f"{root}/mesh", f"{root}/{about['name']}")


def _families(root: Item) -> dict[int, list[str]]:
    """Groups of each family by number; meshio fails on a family that has none."""
    out = {}
    for family in root.children.values():
        names = _group_names(family)
        if several := [name for name in names if BETWEEN in name]:
            raise MeshprepError(
                f"has a group '{several[0]}', whose name reads as those of two: write no "
                "blank after a comma"
            )
        out[int(family.attrs["NUM"])] = names
    return out


def _group_names(family: Item) -> list[str]:
    """Names of the groups of a family: a row each, in MED 2 one behind the other."""
    listed = family.get("GRO/NOM")
    if listed is None:
        return []
    letters = listed.values.tobytes()
    starts = range(0, len(letters) - _NAME_BYTES + 1, _NAME_BYTES)
    return [_decoded_name(letters[i : i + _NAME_BYTES].partition(b"\0")[0]) for i in starts]


def _decoded_name(name: bytes) -> str:
    try:
        return name.decode().strip()
    except UnicodeDecodeError:
        return name.decode("latin-1").strip()


def _family_numbers(
    own: Mapping[int, int], names: Mapping[int, Sequence[str]], used: Iterable[int]
) -> dict[int, int]:
    """The number in memory of each family of cells: its own without the minus where unused.

    Families of the same groups are one: MED's writers make one for each part of a geometry.
    """
    # Families that we wrote have their numbers back; all others get the next free one.
    out = dict(own)
    number_of_names = {tuple(names[i]): number for i, number in own.items() if names.get(i)}
    for i in sorted({*names, *used} - {0, *own}, key=abs):
        groups = tuple(names.get(i, ()))
        taken = set(out.values())
        free = next(n for n in itertools.count(abs(i)) if n not in taken)
        if groups:
            out[i] = number_of_names.setdefault(groups, free)
        else:
            out[i] = free
    return out


def _renumber_families(ids: NDArray, numbers: Mapping[int, int]) -> NDArray[np.int64]:
    out = np.asarray(ids).astype(np.int64)
    for number in numbers.keys() & set(out.tolist()):
        out[np.asarray(ids) == number] = numbers[number]
    return out


def write(mesh: FileMesh, path: Path) -> None:
    """Write a MED file as MED's own library reads it; the mesh is changed.

    It is made in memory: HDF5 prints at exit, or crashes, when the disk is full.
    """
    # Bring the mesh into the form of MED: volumes turned, families below zero.
    _turn_volumes(mesh)
    numbers = mesh.take_numbers()
    for name in mesh.point_data.keys() & mesh.cell_data.keys():
        mesh.cell_data[f"{name}{_OF_CELLS}"] = mesh.cell_data.pop(name)
    cell_tags = mesh.cell_data["cell_tags"]
    families = _negative(sorted(_distinct_numbers(cell_tags) - {0}))
    mesh.cell_data["cell_tags"] = [_renumber_families(ids, families) for ids in cell_tags]
    buffer = BytesIO()
    write_med(mesh, buffer)
    # Complete what meshio leaves out: attributes, numbers, names of families.
    nodes = set(np.unique(mesh.point_data["point_tags"]).tolist()) | set(mesh.point_tags)
    with h5py.File(buffer, "a") as file:
        _write_fields(file, mesh.fields)
        # meshio gives the mesh one step
        (step,) = file["ENS_MAA/mesh"].values()
        groups = [step["MAI"][_MED[block.type]] for block in mesh.cells]
        if numbers[0] is None:
            numbered_groups = []
        else:
            numbered_groups = [(step["NOE"], numbers[0])]
        if numbers[1] is not None:
            numbered_groups += zip(groups, numbers[1], strict=True)
        for group, values in numbered_groups:
            dataset = group.create_dataset("NUM", data=values.astype(np.int64))
            dataset.attrs.create("CGT", 1)
            dataset.attrs.create("NBR", len(values))
        for i, number in families.items():
            key = f"ELEME/group {i}"
            _write_family(
                root=file["FAS/mesh"],
                key=key,
                number=number,
                groups=mesh.cell_tags.get(i, ()),
            )
        for i in sorted(nodes - {0}):
            _write_family(
                root=file["FAS/mesh"],
                key=f"NOEUD/family {i}",
                number=i,
                groups=mesh.point_tags.get(i, ()),
            )
        if mesh.about:
            _write_mesh_name(file, mesh.about)
    path.write_bytes(buffer.getvalue())


def _negative(ids: Sequence[int]) -> dict[int, int]:
    """A negative number for each group, its own where that is one."""
    used_ids = {i for i in ids if i < 0}
    out = {}
    for i in ids:
        if i < 0:
            number = i
        else:
            number = -i
        while i > 0 and number in used_ids:
            number -= 1
        used_ids.add(number)
        out[i] = number
    return out


def _write_family(root: Any, key: str, number: int, groups: Sequence[str]) -> None:
    family = root.create_group(key)
    family.attrs.create("NUM", number)
    listed = family.create_group("GRO")
    listed.attrs.create("NBR", len(groups))
    rows = listed.create_dataset("NOM", (len(groups),), dtype=f"{_NAME_BYTES}int8")
    for row, name in enumerate(groups):
        rows[row] = np.frombuffer(name.encode().ljust(_NAME_BYTES, b"\0"), dtype=np.int8)


def _turn_volumes(mesh: Any) -> None:
    for k, block in enumerate(mesh.cells):
        order = _column_order(block.type)
        if order is None or block.data.shape[1] != len(order):
            continue
        block.data = block.data[:, order]
        for values in mesh.cell_data.values():
            # Values at each node of a cell go with the nodes.
            if getattr(values[k], "ndim", 0) == 3 and values[k].shape[1] == len(order):
                values[k] = values[k][:, order]


def _column_order(cell_type: str) -> list[int] | None:
    """The column in memory of each column of MED, and the other way round."""
    shape = shape_of(cell_type)
    if shape.name not in _CORNERS:
        return None
    corners = _CORNERS[shape.name]
    if cell_type == shape.name:
        return list(corners)
    # A node in the middle goes where its edge goes.
    place = {frozenset(edge): shape.n_corners + i for i, edge in enumerate(shape.edges)}
    return [*corners, *(place[frozenset((corners[a], corners[b]))] for a, b in shape.edges)]


# meshio passes over the names and units of components, the time of the only step, and the
# numbers of nodes and cells. Values that a profile gives to a part of a set are put into
# their places.
_WHOLE = "MED_NO_PROFILE_INTERNAL"
# What values are on; in MED 2 this stands above the steps of a field, later below them.
_SUPPORTS = ("NOE", "MAI.")
_OF_FIELD = ("NOM", "UNI", "UNT", "NCO")
_OF_STEP = ("NDT", "NOR", "PDT")


def _read_fields(
    file: Item, mesh: FileMesh, kinds: Sequence[str]
) -> tuple[dict[str, Any], list[str]]:
    """Read values; return step and attributes of one-step fields, and what is left out."""
    fields_found = {}
    lost = []
    profiles = file.get("PROFILS")
    sizes = [len(cells.data) for cells in mesh.cells]
    fields = file.get("CHA") or Item("", {})
    for name, field in fields.items():
        steps = sorted(field)
        if any(key.startswith(_SUPPORTS) for key in steps):
            lost.append(f"values '{name}', which stand as in MED 2")
            field.skip()
            continue
        # Steps of one field are values with names of their own, of nodes or of a type.
        for i, key in enumerate(steps):
            step = field[key]
            if len(steps) == 1:
                called = name
            else:
                called = f"{name}[{i}] - {step.attrs['PDT']:g}"
            for support in step:
                place, _, kind = support.partition(".")
                if place == "NOE" and not kind:
                    values = _values_on(step[support], profiles, len(mesh.points))
                    mesh.point_data[called] = values.reshape(len(values), -1)
                    continue
                block = kinds.index(kind)
                values = _values_on(step[support], profiles, sizes[block])
                values_of_field = mesh.cell_data.setdefault(called, [None] * len(kinds))
                if values.shape[1] == 1:
                    values_of_field[block] = values[:, 0]
                else:
                    values_of_field[block] = values
        if len(steps) != 1:
            lost.append(f"the steps of '{name}'")
            continue
        # A field of one step keeps its attributes and comes back as it was.
        attributes = {key: field.attrs[key] for key in _OF_FIELD if key in field.attrs}
        step = field[steps[0]]
        if any(t.startswith("MAI.") and f"NOE.{t[4:]}" in step for t in step):
            lost.append(f"values '{name}' of cells, beside those at their nodes")
        more = {key: step.attrs[key] for key in _OF_STEP if key in step.attrs}
        fields_found[name] = steps[0], attributes | more
    return fields_found, lost


def _values_on(support: Item, profiles: Item | None, n: int) -> NDArray:
    """Values of ``n`` nodes or cells of a type: (n, values at each, components).

    NaN where a profile leaves them out. Raises MeshprepError where it names others.
    """
    # A profile lists the nodes or cells that have values, counted from 1.
    profile = bytes(support.attrs["PFL"]).decode()
    data = support[profile]
    index = np.arange(n)
    if profile != _WHOLE and profiles is not None:
        index = profiles[profile]["PFL"].values - 1
    wrong = index[(index < 0) | (index >= n)]
    if wrong.size:
        raise MeshprepError(
            f"profile '{profile}' names number {wrong[0] + 1} of 1 to {n}: correct it"
        )
    # Values stand component by component, NGA of them in each cell.
    shape = (index.size, int(data.attrs.get("NGA", 1)), -1)
    values = data["CO"].values.reshape(shape, order="F")
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
            if key in _OF_FIELD:
                place = field
            else:
                place = field[step]
            place.attrs[key] = value


def _read_numbers(nodes: Item, groups: Sequence[Item], mesh: FileMesh) -> list[str]:
    """Give nodes and cells the numbers of the file; return the names that fit neither."""
    # NUM are the numbers by which users know nodes and cells. MED counts the cells of each
    # type by themselves: numbers that two types have in common are none of ours.
    number_lists = [
        _number_dataset(group, len(c.data))
        for group, c in zip(groups, mesh.cells, strict=True)
    ]
    lost = list[str]()
    of_nodes = _number_dataset(nodes, len(mesh.points))
    places: tuple[tuple[str, dict[str, Any], list[Any]], ...] = (
        ("nodes", mesh.point_data, [of_nodes]),
        ("cells", mesh.cell_data, number_lists),
    )
    for kind, data, numbers in places:
        present = [one for one in numbers if one is not None]
        all_numbers = np.concatenate([*present, np.empty(0, int)])
        if all(np.array_equal(one, np.arange(1, one.size + 1)) for one in present):
            continue
        if (
            len(present) < len(numbers)
            or np.unique(all_numbers).size < all_numbers.size
            or NUMBERS in data
        ):
            lost.append(f"the numbers of the {kind}")
        else:
            data[NUMBERS] = present[0] if kind == "nodes" else present
    mesh.numbered = True
    return lost


def _number_dataset(group: Item, n: int) -> NDArray | None:
    numbers = group["NUM"].values if "NUM" in group else None
    if numbers is None or numbers.shape == (n,):
        return numbers
    return None


def limits(mesh: Mesh) -> tuple[Mesh, list[str]]:
    """The mesh with names of groups and lists that MED has a place for; the losses."""
    mesh, lost = drop_unused_group_names(mesh)
    mesh = without_counts(mesh)
    # a group may be in several families, whose numbers these are
    fits = partial(_is_group_name, from_med=MED_MESH in mesh.extras)
    unfit_names = unfit_group_names(mesh, fits, shared=True)
    mesh, lost_names = drop_group_names(mesh, unfit_names)
    mesh, lost_lists = drop_lists(mesh, bad_lists(mesh, ANY_NAME))
    return mesh, [*lost, *lost_names, *lost_lists]


def _is_group_name(name: str, from_med: bool) -> bool:
    """Whether MED can hold a name; names from MED files may be of several groups."""
    if from_med:
        parts = name.split(BETWEEN)
    else:
        parts = [name]
    return all(
        _GROUP_NAME.fullmatch(part)
        and BETWEEN not in part
        and len(part.encode()) <= _NAME_BYTES
        for part in parts
    )


# Names of fields are those of groups in HDF5, where one or two dots stand for a place.
_VALUES = Values(kinds="f", name=r"(?!\.{1,2}$)[^/\x00-\x1f]{1,64}", numbers=2**31 - 1)
FORMAT = block_format(
    read=read,
    write=write,
    carries=Capabilities(
        cell_types=tuple(_MED),
        # HDF5 gives the groups of a file in the order of their names: H20, HE8, ..., TR6
        type_order=tuple(sorted(_MED, key=_MED.__getitem__)),
        node_values=_VALUES,
        cell_values=_VALUES,
        tag="cell_tags",
        node_tag="point_tags",
        group_names=True,
        plane=True,
        extras=(MED_FIELDS, MED_MESH),
    ),
    limits=limits,
)
