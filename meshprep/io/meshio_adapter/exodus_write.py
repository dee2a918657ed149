"""Writing Exodus II files with netCDF4: element blocks under their numbers and names.

meshio numbers blocks from 0, which Exodus does not allow, loses their names, writes no values of
cells, and leaves the nodes of second order in VTK's order.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...mesh import Mesh, Tag
from .exodus import BLOCK, NODE_SET, TO_FILE
from .numbers import taken_numbers

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


def write(path: str, mesh: Any) -> None:
    """Write a ``meshio.Mesh`` whose cell data ``exodus:block`` are as :func:`blocks` has them.

    Zeros throughout stand for a block each, counted from 1. Numbers of node sets are those of
    ``set_numbers``.
    """
    import netCDF4

    runs = list(_runs(mesh))
    with netCDF4.Dataset(path, "w") as file:
        file.set_auto_mask(False)
        _write_head(file, mesh, len(runs), max(_USUAL_BYTES, *map(_bytes, _all_names(mesh))))
        _write_points(file, mesh.points)
        _write_numbers(file, mesh)
        _write_blocks(file, mesh, runs)
        _write_values(file, mesh, runs)
        _write_node_sets(file, mesh.point_sets, getattr(mesh, "set_numbers", {}))


def _runs(mesh: Any) -> Iterator[tuple[int, slice, int]]:
    """Block of cells, rows in it and number of each element block."""
    for k, (cells, ids) in enumerate(zip(mesh.cells, mesh.cell_data[BLOCK], strict=True)):
        start = _starts(ids).tolist()
        for a, b in zip(start, [*start[1:], len(cells.data)], strict=True):
            yield k, slice(a, b), int(ids[a]) or k + 1


def _all_names(mesh: Any) -> list[str]:
    return [
        *mesh.point_data,
        *mesh.cell_data,
        *mesh.point_sets,
        *mesh.group_names.get(BLOCK, {}).values(),
    ]


def _bytes(name: str) -> int:
    return len(name.encode())


def _write_head(file: Any, mesh: Any, n_blocks: int, longest: int) -> None:
    file.title = "written by meshprep"
    file.api_version = file.version = np.float32(7.06)
    file.floating_point_word_size = np.int32(8)
    file.file_size = np.int32(1)
    file.int64_status = np.int32(0)
    file.maximum_name_length = np.int32(longest)
    sizes = {
        "len_string": _USUAL_BYTES + 1,
        "len_name": longest + 1,
        "len_line": 81,
        "four": 4,
        "time_step": None,
    }
    sizes |= {"num_dim": mesh.points.shape[1], "num_nodes": len(mesh.points)}
    sizes |= {"num_elem": sum(len(c.data) for c in mesh.cells), "num_el_blk": n_blocks}
    for name, size in sizes.items():
        file.createDimension(name, size)
    file.createVariable("time_whole", "f8", ("time_step",))[0] = getattr(mesh, "time", 0.0)


def _write_points(file: Any, points: NDArray) -> None:
    axes = "xyz"[: points.shape[1]]
    _write_names(file, "coor_names", "num_dim", list(axes))
    for axis, values in zip(axes, points.T, strict=True):
        file.createVariable(f"coord{axis}", "f8", ("num_nodes",))[:] = values


def _write_numbers(file: Any, mesh: Any) -> None:
    """Numbers of nodes and of elements, which are then no values any more."""
    nodes, cells = taken_numbers(mesh)
    if nodes is not None:
        file.createVariable("node_num_map", "i4", ("num_nodes",))[:] = nodes
    if cells is not None:
        file.createVariable("elem_num_map", "i4", ("num_elem",))[:] = np.concatenate(cells)


def _write_names(file: Any, key: str, dimension: str, names: Sequence[str]) -> None:
    letters = np.zeros((len(names), len(file.dimensions["len_name"])), dtype="S1")
    for row, name in zip(letters, names, strict=True):
        row[: _bytes(name)] = np.frombuffer(name.encode(), "S1")
    file.createVariable(key, "S1", (dimension, "len_name"))[:] = letters


def _write_blocks(file: Any, mesh: Any, runs: Sequence[tuple[int, slice, int]]) -> None:
    names = mesh.group_names.get(BLOCK, {})
    file.createVariable("eb_status", "i4", ("num_el_blk",))[:] = 1
    numbers = file.createVariable("eb_prop1", "i4", ("num_el_blk",))
    numbers.setncattr("name", "ID")
    numbers[:] = [number for _, _, number in runs]
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


def _write_values(file: Any, mesh: Any, runs: Sequence[tuple[int, slice, int]]) -> None:
    """Values of nodes and of elements, at one time step."""
    if mesh.point_data:
        file.createDimension("num_nod_var", len(mesh.point_data))
        _write_names(file, "name_nod_var", "num_nod_var", list(mesh.point_data))
    for i, values in enumerate(mesh.point_data.values(), 1):
        file.createVariable(f"vals_nod_var{i}", "f8", ("time_step", "num_nodes"))[0] = values
    data = {name: values for name, values in mesh.cell_data.items() if name != BLOCK}
    if not data:
        return
    file.createDimension("num_elem_var", len(data))
    _write_names(file, "name_elem_var", "num_elem_var", list(data))
    file.createVariable("elem_var_tab", "i4", ("num_el_blk", "num_elem_var"))[:] = 1
    for i, values in enumerate(data.values(), 1):
        for b, (k, rows, _) in enumerate(runs, 1):
            dims = ("time_step", f"num_el_in_blk{b}")
            file.createVariable(f"vals_elem_var{i}eb{b}", "f8", dims)[0] = values[k][rows]


def _write_node_sets(file: Any, sets: Mapping[str, NDArray], given: Mapping[str, int]) -> None:
    if not sets:
        return
    file.createDimension("num_node_sets", len(sets))
    file.createVariable("ns_status", "i4", ("num_node_sets",))[:] = 1
    made = file.createVariable("ns_prop1", "i4", ("num_node_sets",))
    made.setncattr("name", "ID")
    made[:] = _set_numbers(list(sets), given)
    names = ["" if NODE_SET.fullmatch(name) else name for name in sets]
    _write_names(file, "ns_names", "num_node_sets", names)
    for i, nodes in enumerate(sets.values(), 1):
        file.createDimension(f"num_nod_ns{i}", len(nodes))
        file.createVariable(f"node_ns{i}", "i4", (f"num_nod_ns{i}",))[:] = nodes + 1


def _set_numbers(names: Sequence[str], given: Mapping[str, int]) -> list[int]:
    """Numbers that the names say or that are given, each once; free ones for the rest."""
    out: dict[str, int] = {}
    for name in names:
        if found := NODE_SET.fullmatch(name):
            out[name] = int(found[1])
    for name in names:
        if given.get(name, 0) > 0 and given[name] not in out.values():
            out.setdefault(name, given[name])
    free = (i for i in range(1, 2 * len(names) + 1) if i not in out.values())
    return [out[name] if name in out else next(free) for name in names]
