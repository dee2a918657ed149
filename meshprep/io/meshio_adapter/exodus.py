"""Exodus II files, read and written with netCDF4: element blocks keep their numbers and names.

meshio leaves these out, and node sets without names and side sets, numbers blocks from 0, which
Exodus does not allow, gives values that only some blocks have to other blocks, writes none of
cells, and takes nodes of second order for VTK's.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh import Mesh, Tag
from ...mesh.cells import node_count, shape_of
from .file_mesh import NUMBERS, Cells, FileMesh, SideSet
from .harden import check_hdf5

BLOCK = "exodus:block"
# Group 0 stands for none in memory: block 0 of a file is this one there, and the other way round.
ZERO = 2**31 - 1
# The names of sets that have a number alone.
NODE_SET, SIDE_SET = re.compile(r"node set ([1-9]\d*)"), re.compile(r"side set ([1-9]\d*)")
# Column ``i`` of a file is column ``TO_FILE[t][i]`` in memory, which has VTK's order.
TO_FILE: dict[str, list[int]] = {
    "wedge15": [*range(9), 12, 13, 14, 9, 10, 11],
    "hexahedron20": [*range(12), *range(16, 20), *range(12, 16)],
    "hexahedron27": [*range(12), *range(16, 20), *range(12, 16), 26, 24, 25, 20, 21, 22, 23],
}


def read(path: Path) -> FileMesh:
    """A mesh with blocks as the cell data ``exodus:block`` and their names.

    Values of a later time step have a zero byte and its number behind their name; ``left_out`` says
    in words what is not read.
    """
    import netCDF4

    check_hdf5(path)
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        _check_sizes(file, path.stat().st_size)
        keys = sorted((k for k in file.variables if re.fullmatch(r"connect\d+", k)), key=_index)
        blocks = [_index(k) for k in keys]
        ids = _ids(file, "eb_prop1", blocks)
        cells = [_block(file[k], number) for k, number in zip(keys, ids, strict=True)]
        sizes = [len(c.data) for c in cells]
        sets = _node_sets(file)
        mesh = FileMesh(
            _points(file),
            cells,
            _node_values(file),
            _cell_values(file, blocks, ids, sizes),
            point_sets={name: nodes for name, (_, nodes) in sets.items()},
            set_numbers={name: number for name, (number, _) in sets.items()},
        )
        mesh.left_out = [*_take_numbers(file, mesh, sizes), *left_out(file)]
        mesh.times = _times(file)
        mesh.side_sets, odd = _side_sets(file, sum(sizes))
        mesh.left_out += odd
        names = _names(file, "eb_names")
        mesh.left_out += _empty(file, names, blocks)
        named = {i: names[b - 1] for i, b in zip(ids, blocks, strict=True) if b <= len(names)}
        mesh.group_names = {BLOCK: {i: name for i, name in named.items() if name}}
        # one block a type, counted from 1 and without a name, says no more than the types
        counted = list(range(1, len({c.type for c in mesh.cells}) + 1))
        if list(ids) == counted and not mesh.group_names[BLOCK]:
            del mesh.cell_data[BLOCK]
    return mesh


def _empty(file: Any, names: Sequence[str], blocks: Sequence[int]) -> list[str]:
    """Element blocks and node sets that nothing is in."""
    sets = [_index(k) for k in file.variables if re.fullmatch(r"node_ns\d+", k)]
    out = []
    for kind, dimension, ids, there, known in (
        ("element block", "num_el_blk", "eb_prop1", blocks, names),
        ("node set", "num_node_sets", "ns_prop1", sets, _names(file, "ns_names")),
    ):
        count = len(file.dimensions[dimension]) if dimension in file.dimensions else 0
        for place in sorted(set(range(1, count + 1)) - set(there)):
            number = int(file[ids][place - 1]) if ids in file.variables else place
            name = f" '{known[place - 1]}'" if place <= len(known) and known[place - 1] else ""
            out.append(f"{kind} {number}{name}, which is empty")
    return out


def _check_sizes(file: Any, size: int) -> None:
    """A classic file is not compressed, so that its variables must fit into it."""
    if file.data_model.startswith("NETCDF4"):
        return
    declared = sum(v.size * v.dtype.itemsize for v in file.variables.values())
    if declared > size:
        raise MeshprepError(
            f"declares {declared} bytes of values in {size} bytes: the file is truncated or damaged"
        )


def _index(key: str) -> int:
    found = re.search(r"\d+$", key)
    return int(found[0]) if found else 1


def _points(file: Any) -> NDArray[np.float64]:
    if "coord" in file.variables:
        return np.asarray(file["coord"][:], dtype=np.float64).T
    dim = len(file.dimensions["num_dim"])
    return np.column_stack([file[f"coord{axis}"][:] for axis in "xyz"[:dim]]).astype(np.float64)


def _block(variable: Any, number: int) -> Cells:
    nodes = np.asarray(variable[:]) - 1
    if nodes.ndim != 2:
        raise MeshprepError(
            f"the elements of block {number} are of type {variable.elem_type}, whose nodes are not "
            "in rows: split them into triangles, quads or the like"
        )
    cell_type = _type(str(variable.elem_type).upper(), nodes.shape[1], number)
    back = np.argsort(TO_FILE.get(cell_type, range(nodes.shape[1])))
    return Cells(cell_type, nodes[:, back])


# Names of shapes, without the number of nodes that some files append.
_SHAPES = {
    **dict.fromkeys(("SPHERE", "CIRCLE"), "vertex"),
    **dict.fromkeys(("BAR", "BEAM", "TRUSS", "EDGE"), "line"),
    **dict.fromkeys(("TRI", "TRIANGLE", "TRISHELL"), "triangle"),
    **dict.fromkeys(("QUAD", "SHELL"), "quad"),
    **dict.fromkeys(("TET", "TETRA"), "tetra"),
    **dict.fromkeys(("PYRAMID", "PYRA"), "pyramid"),
    "WEDGE": "wedge",
    **dict.fromkeys(("HEX", "HEXAHEDRON"), "hexahedron"),
}


def _type(name: str, nodes: int, block: int) -> str:
    kind, digits = re.fullmatch(r"(.*?)(\d*)", name).groups()  # type: ignore[union-attr]
    for cell_type in CELL_TYPES:
        same = shape_of(cell_type).name == _SHAPES.get(kind) and int(digits or nodes) == nodes
        if same and node_count(cell_type) == nodes:
            return cell_type
    raise MeshprepError(
        f"the elements of block {block} are of type {name} with {nodes} nodes, which is not "
        "supported: use other elements, or correct their type"
    )


def _names(file: Any, key: str) -> list[str]:
    if key not in file.variables:
        return []
    return [b"".join(c).decode("utf-8", "replace").strip("\0 ") for c in file[key][:]]


def stepped(name: str, step: int) -> str:
    """The name of values at a time step, counted from 0."""
    return f"{name}\0{step}" if step else name


def _node_values(file: Any) -> dict[str, NDArray]:
    out = {}
    for i, name in enumerate(_names(file, "name_nod_var"), 1):
        key = f"vals_nod_var{i}"
        for step in range(_steps(file)):
            values = None
            if key in file.variables and step < len(file[key]):
                values = np.asarray(file[key][step])
            elif "vals_nod_var" in file.variables and step < len(file["vals_nod_var"]):
                values = np.asarray(file["vals_nod_var"][step, i - 1])
            if values is not None and not (step and np.isnan(values).all()):
                out[stepped(name, step)] = values
    return out


def _steps(file: Any) -> int:
    return len(file.dimensions["time_step"]) if "time_step" in file.dimensions else 1


def _cell_values(
    file: Any, blocks: Sequence[int], ids: Sequence[int], sizes: Sequence[int]
) -> dict[str, list[NDArray]]:
    """Numbers of the blocks, and values with NaN where a block has none."""
    out = {BLOCK: [np.full(n, ids[i]) for i, n in enumerate(sizes)]}
    for i, name in enumerate(_names(file, "name_elem_var"), 1):
        keys = [f"vals_elem_var{i}eb{b}" for b in blocks]
        for step in range(_steps(file)):
            if not any(k in file.variables and step < len(file[k]) for k in keys):
                continue
            values = [
                np.asarray(file[k][step]) if k in file.variables else np.full(n, np.nan)
                for k, n in zip(keys, sizes, strict=True)
            ]
            if not step or not all(np.isnan(v).all() for v in values):
                out[stepped(name, step)] = values
    return out


def _ids(file: Any, key: str, places: Sequence[int]) -> list[int]:
    """The numbers of these blocks or sets; from 1 where the file gives none."""
    if key not in file.variables:
        return list(range(1, len(places) + 1))
    given = [int(i) or ZERO for i in file[key][:]]
    if (
        len(given) < max(places, default=0)
        or min(given, default=0) < 0
        or len(set(given)) < len(given)
    ):
        raise MeshprepError(f"the numbers '{key}' must be positive, and each another: correct them")
    return [given[p - 1] for p in places]


def _node_sets(file: Any) -> dict[str, tuple[int, NDArray]]:
    """Number and nodes of each node set by its name."""
    found = _named_sets(file, r"node_ns\d+", "ns", "node")
    nodes = {name: np.asarray(file[f"node_ns{place}"][:]) for name, (_, place) in found.items()}
    return {name: (found[name][0], n.astype(np.int64) - 1) for name, n in nodes.items()}


def _named_sets(file: Any, pattern: str, kind: str, word: str) -> dict[str, tuple[int, int]]:
    """Number and place of each set of a kind by its name."""
    places = sorted(_index(k) for k in file.variables if re.fullmatch(pattern, k))
    names, ids = _names(file, f"{kind}_names"), _ids(file, f"{kind}_prop1", places)
    out: dict[str, tuple[int, int]] = {}
    for place, number in zip(places, ids, strict=True):
        name = names[place - 1] if place <= len(names) else ""
        name = f"{word} set {number}" if not name or name in out else name
        out[name] = number, place
    return out


def _side_sets(file: Any, n: int) -> tuple[dict[str, SideSet], list[str]]:
    """Side sets by name, and in words what of them is not read."""
    out, odd = {}, []
    for name, (number, place) in _named_sets(file, r"elem_ss\d+", "ss", "side").items():
        elements = np.asarray(file[f"elem_ss{place}"][:]).astype(np.int64) - 1
        known = f"side_ss{place}" in file.variables
        sides = np.asarray(file[f"side_ss{place}"][:] if known else [], np.int64)
        if sides.shape != elements.shape or (elements < 0).any() or (elements >= n).any():
            raise MeshprepError(
                f"the side set '{name}' does not name a side of one of {n} elements in each row: "
                "the file is damaged"
            )
        factors = file.variables.get(f"dist_fact_ss{place}")
        if factors is not None and (factors[:] != 1).any():
            odd.append(f"distribution factors of the side set '{name}'")
        out[name] = number, elements, sides
    return out, odd


def _times(file: Any) -> list[float]:
    """The times of the steps; 0 where there are none."""
    times = file["time_whole"][:] if "time_whole" in file.variables else ()
    return [float(t) for t in times] or [0.0]


def _take_numbers(file: Any, mesh: FileMesh, sizes: Sequence[int]) -> list[str]:
    """Give nodes and elements the numbers that they have in the file; returns what fits neither."""
    ends, lost = np.cumsum(sizes), []
    places: tuple[tuple[str, dict[str, Any], int], ...] = (
        ("node_num_map", mesh.point_data, len(mesh.points)),
        ("elem_num_map", mesh.cell_data, int(ends[-1])),
    )
    for key, data, n in places:
        numbers = np.asarray(file[key][:]) if key in file.variables else np.arange(1, n + 1)
        if NUMBERS not in data and np.unique(numbers).size == numbers.size == n:
            data[NUMBERS] = numbers if key[0] == "n" else np.split(numbers, ends[:-1])
        elif not np.array_equal(numbers, np.arange(1, n + 1)):
            lost.append(f"'{key}'")
    mesh.numbered = True
    return lost


# Variables that are read, and those that hold nothing of the mesh.
_READ = re.compile(
    r"coord[xyz]?|connect\d+|(eb|ns|ss)_(prop1|names|status)|node_ns\d+|(node|elem)_num_map"
    r"|(elem|side|dist_fact)_ss\d+"
    r"|name_(nod|elem)_var|vals_nod_var\d*|vals_elem_var\d+eb\d+|time_whole"
    r"|elem_var_tab|coor_names|(qa|info)_records"
)


def left_out(file: Any) -> list[str]:
    """What of a file is not read; variables that nobody knows by their names.

    Raises MeshprepError for polyhedra, without which it would be another mesh.
    """
    names = [name for name in file.variables if not _READ.fullmatch(name)]
    if any(name.startswith("facconn") for name in names):
        raise MeshprepError("holds polyhedra, which are not supported: split them into tetrahedra")
    return [f"'{name}'" for name in names if not _is_default(name, file)]


def _is_default(name: str, file: Any) -> bool:
    """Whether a variable holds what it would without being there."""
    values = np.asarray(file[name][:])
    if re.fullmatch(r"dist_fact_ns\d+", name):
        return bool((values == 1).all())
    if name in ("elem_map", "node_map"):
        return np.array_equal(values.ravel(), np.arange(1, values.size + 1))
    return values.size == 0


# Names that other readers of Exodus files know, too.
_TYPES = {
    **{"vertex": "SPHERE", "line": "BAR2", "line3": "BEAM3", "triangle": "TRI3"},
    **{"triangle6": "TRI6", "quad": "QUAD4", "quad8": "QUAD8", "quad9": "QUAD9"},
    **{"tetra": "TETRA", "tetra10": "TETRA10", "pyramid": "PYRAMID", "pyramid13": "PYRAMID13"},
    **{"wedge": "WEDGE", "wedge15": "WEDGE15", "hexahedron": "HEX8"},
    **{"hexahedron20": "HEX20", "hexahedron27": "HEX27"},
}
CELL_TYPES = tuple(_TYPES)
# Names that a file can hold: at most 255 bytes, and blanks at the ends mean nothing.
NAME = r"(?!\s)[^\x00-\x1f\x7f-\x9f]{1,63}(?<!\s)"
# What readers that ask for no length have room for.
_USUAL_BYTES = 32


def blocks(mesh: Mesh) -> tuple[list[Tag], list[str]]:
    """The blocks that a file of this mesh gets, as tags, and what of its own is lost, in words.

    An element block is a run of cells. So the groups of a set become blocks where the cells of
    each stand together; else the set is one block under a new number. O(cells).
    """
    own = {s.name: mesh.tag(BLOCK, s.name) for s in mesh.cell_sets}
    ids = {name: t.first_ids() for name, t in own.items() if t is not None}
    kept: dict[str, Tag] = {}
    taken: set[int] = set()
    for name, values in ids.items():
        starts = values[_starts(values)]
        numbers = set(starts.tolist())
        if values.min() > 0 and len(numbers) == len(starts) and not numbers & taken:
            taken |= numbers
            kept[name] = own[name]  # type: ignore[assignment]
    out = []
    for s in mesh.cell_sets:
        free = next(i for i in range(1, len(taken) + 2) if i not in taken)
        taken |= set() if s.name in kept else {free}
        out.append(kept.get(s.name) or Tag.from_ids(BLOCK, s.name, np.full(s.size, free)))
    lost = [
        f"the blocks '{BLOCK}' of '{name}', whose cells the order mixes: the file gets one block"
        for name, values in ids.items()
        if name not in kept and values.any()
    ]
    plain = all(t.group_id.tolist() == [i] and not t.names for i, t in enumerate(out, 1))
    return ([] if plain else out), lost


def _starts(values: NDArray) -> NDArray[np.int64]:
    """Where runs of equal numbers start."""
    return np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))


def write(path: Path, mesh: FileMesh) -> None:
    """Write a mesh whose cell data ``exodus:block`` are as :func:`blocks` has them.

    Zeros throughout stand for a block each, counted from 1. Numbers of node sets are those of
    ``set_numbers``.
    """
    import netCDF4

    runs = list(_runs(mesh))
    with netCDF4.Dataset(path, "w") as file:
        file.set_auto_mask(False)
        _write_head(file, mesh, len(runs))
        axes = "xyz"[: mesh.points.shape[1]]
        _write_names(file, "coor_names", "num_dim", list(axes))
        for axis, values in zip(axes, mesh.points.T, strict=True):
            file.createVariable(f"coord{axis}", "f8", ("num_nodes",))[:] = values
        # numbers of nodes and of elements, which are then no values any more
        nodes, elements = mesh.take_numbers()
        if nodes is not None:
            file.createVariable("node_num_map", "i4", ("num_nodes",))[:] = nodes
        if elements is not None:
            file.createVariable("elem_num_map", "i4", ("num_elem",))[:] = np.concatenate(elements)
        _write_blocks(file, mesh, runs)
        _write_values(file, mesh, runs)
        _write_node_sets(file, mesh.point_sets, mesh.set_numbers)
        _write_side_sets(file, mesh.side_sets)


def _runs(mesh: FileMesh) -> Iterator[tuple[int, slice, int]]:
    """Block of cells, rows in it and number of each element block."""
    for k, (cells, ids) in enumerate(zip(mesh.cells, mesh.cell_data[BLOCK], strict=True)):
        start = _starts(ids).tolist()
        for a, b in zip(start, [*start[1:], len(cells.data)], strict=True):
            yield k, slice(a, b), int(ids[a]) or k + 1


def _write_head(file: Any, mesh: FileMesh, n_blocks: int) -> None:
    names = [*mesh.point_data, *mesh.cell_data, *mesh.point_sets, *mesh.side_sets]
    names += mesh.group_names.get(BLOCK, {}).values()
    longest = max(_USUAL_BYTES, *(len(name.encode()) for name in names))
    file.title = "written by meshprep"
    file.api_version = file.version = np.float32(7.06)
    file.floating_point_word_size = np.int32(8)
    file.file_size = np.int32(1)
    file.int64_status = np.int32(0)
    file.maximum_name_length = np.int32(longest)
    sizes = {"len_string": _USUAL_BYTES + 1, "len_name": longest + 1, "len_line": 81, "four": 4}
    file.createDimension("time_step", None)
    sizes |= {"num_dim": mesh.points.shape[1], "num_nodes": len(mesh.points)}
    sizes |= {"num_elem": sum(len(c.data) for c in mesh.cells), "num_el_blk": n_blocks}
    for name, size in sizes.items():
        file.createDimension(name, size)
    file.createVariable("time_whole", "f8", ("time_step",))[:] = mesh.times


def _write_names(file: Any, key: str, dimension: str, names: Sequence[str]) -> None:
    letters = np.zeros((len(names), len(file.dimensions["len_name"])), dtype="S1")
    for row, name in zip(letters, (n.encode() for n in names), strict=True):
        row[: len(name)] = np.frombuffer(name, "S1")
    file.createVariable(key, "S1", (dimension, "len_name"))[:] = letters


def _write_blocks(file: Any, mesh: FileMesh, runs: Sequence[tuple[int, slice, int]]) -> None:
    names = mesh.group_names.get(BLOCK, {})
    file.createVariable("eb_status", "i4", ("num_el_blk",))[:] = 1
    numbers = file.createVariable("eb_prop1", "i4", ("num_el_blk",))
    numbers.setncattr("name", "ID")
    numbers[:] = [number % ZERO for _, _, number in runs]
    _write_names(file, "eb_names", "num_el_blk", [names.get(n, "") for _, _, n in runs])
    for i, (k, rows, _) in enumerate(runs, 1):
        cell_type = mesh.cells[k].type
        nodes = mesh.cells[k].data[rows]
        nodes = nodes[:, TO_FILE[cell_type]] if cell_type in TO_FILE else nodes
        file.createDimension(f"num_el_in_blk{i}", len(nodes))
        file.createDimension(f"num_nod_per_el{i}", nodes.shape[1])
        made = file.createVariable(f"connect{i}", "i4", (f"num_el_in_blk{i}", f"num_nod_per_el{i}"))
        made.elem_type = _TYPES[cell_type]
        made[:] = nodes + 1


def _write_values(file: Any, mesh: FileMesh, runs: Sequence[tuple[int, slice, int]]) -> None:
    """Values of nodes and of elements at the time steps; NaN at those where there are none."""
    steps = range(len(file.dimensions["time_step"]))

    def write(key: str, dimension: str, name: str, data: Mapping[str, Any]) -> None:
        made = file.createVariable(key, "f8", ("time_step", dimension))
        for step in steps:
            values = data.get(stepped(name, step))
            made[step] = np.nan if values is None else values

    names = list(dict.fromkeys(name.partition("\0")[0] for name in mesh.point_data))
    if names:
        file.createDimension("num_nod_var", len(names))
        _write_names(file, "name_nod_var", "num_nod_var", names)
    for i, name in enumerate(names, 1):
        write(f"vals_nod_var{i}", "num_nodes", name, mesh.point_data)
    data = {name: values for name, values in mesh.cell_data.items() if name != BLOCK}
    names = list(dict.fromkeys(name.partition("\0")[0] for name in data))
    if not names:
        return
    file.createDimension("num_elem_var", len(names))
    _write_names(file, "name_elem_var", "num_elem_var", names)
    file.createVariable("elem_var_tab", "i4", ("num_el_blk", "num_elem_var"))[:] = 1
    parts = [{at: values[k][rows] for at, values in data.items()} for k, rows, _ in runs]
    for i, name in enumerate(names, 1):
        for b, own in enumerate(parts, 1):
            write(f"vals_elem_var{i}eb{b}", f"num_el_in_blk{b}", name, own)


def _write_node_sets(file: Any, sets: Mapping[str, NDArray], given: Mapping[str, int]) -> None:
    _write_set_heads(file, "ns", "num_node_sets", list(sets), given, NODE_SET)
    for i, nodes in enumerate(sets.values(), 1):
        file.createDimension(f"num_nod_ns{i}", len(nodes))
        file.createVariable(f"node_ns{i}", "i4", (f"num_nod_ns{i}",))[:] = nodes + 1


def _write_side_sets(file: Any, sets: Mapping[str, SideSet]) -> None:
    given = {name: number for name, (number, *_) in sets.items()}
    _write_set_heads(file, "ss", "num_side_sets", list(sets), given, SIDE_SET)
    for i, (_, elements, sides) in enumerate(sets.values(), 1):
        file.createDimension(f"num_side_ss{i}", len(elements))
        for key, values in (("elem", elements + 1), ("side", sides)):
            file.createVariable(f"{key}_ss{i}", "i4", (f"num_side_ss{i}",))[:] = values


def _write_set_heads(
    file: Any,
    kind: str,
    dimension: str,
    names: Sequence[str],
    given: Mapping[str, int],
    pattern: re.Pattern[str],
) -> None:
    """Numbers and names of the sets of a kind; those that are of the pattern have numbers alone."""
    if not names:
        return
    file.createDimension(dimension, len(names))
    file.createVariable(f"{kind}_status", "i4", (dimension,))[:] = 1
    made = file.createVariable(f"{kind}_prop1", "i4", (dimension,))
    made.setncattr("name", "ID")
    made[:] = [number % ZERO for number in _set_numbers(names, given, pattern)]
    words = ["" if pattern.fullmatch(name) else name for name in names]
    _write_names(file, f"{kind}_names", dimension, words)


def _set_numbers(
    names: Sequence[str], given: Mapping[str, int], pattern: re.Pattern[str]
) -> list[int]:
    """Numbers that the names say or that are given, each once; free ones for the rest."""
    out: dict[str, int] = {}
    for name in names:
        if found := pattern.fullmatch(name):
            out[name] = int(found[1])
    for name in names:
        if given.get(name, 0) > 0 and given[name] not in out.values():
            out.setdefault(name, given[name])
    free = (i for i in range(1, 2 * len(names) + 1) if i not in out.values())
    return [out[name] if name in out else next(free) for name in names]
