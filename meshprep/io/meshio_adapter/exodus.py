"""Reading Exodus II files with netCDF4.

meshio leaves out the numbers and names of blocks, node sets without names and side sets, and it
gives values that only some blocks have to other blocks; so only writing is left to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

BLOCK = "exodus:block"


def read(path: str) -> Any:
    """A ``meshio.Mesh`` with blocks as the cell data ``exodus:block`` and their names.

    Values are those of the first time step; ``left_out`` lists the rest in words.
    """
    import meshio
    import netCDF4

    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        _check_sizes(file, Path(path).stat().st_size)
        keys = sorted((k for k in file.variables if re.fullmatch(r"connect\d+", k)), key=_index)
        cells = [_block(file[k]) for k in keys]
        blocks = [_index(k) for k in keys]
        mesh = meshio.Mesh(
            _points(file),
            cells,
            point_data=_node_values(file),
            cell_data=_cell_values(file, blocks, [len(c[1]) for c in cells]),
            point_sets=_node_sets(file),
        )
        mesh.left_out = _left_out(file)
        mesh.group_names = {BLOCK: _block_names(file, blocks)}
        if _says_nothing(mesh, _ids(file, "eb_prop1", len(blocks))):
            del mesh.cell_data[BLOCK]
    return mesh


def _says_nothing(mesh: Any, ids: Sequence[int]) -> bool:
    """One block a type of cell, counted from 1 and without a name: no more than the types say."""
    types = {c.type for c in mesh.cells}
    plain = len(types) == len(ids) and list(ids) == list(range(1, len(ids) + 1))
    return plain and not mesh.group_names[BLOCK]


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


def _block(variable: Any) -> tuple[str, NDArray]:
    nodes = np.asarray(variable[:]) - 1
    kind = re.sub(r"\d+$", "", str(variable.elem_type).upper())
    return _type(kind, nodes.shape[1]), nodes


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
_LINEAR = {"vertex": 1, "line": 2, "triangle": 3, "quad": 4, "tetra": 4, "pyramid": 5}
_LINEAR |= {"wedge": 6, "hexahedron": 8}
_HIGHER = (
    *("line3", "triangle6", "quad8", "quad9", "tetra10", "pyramid13", "wedge15"),
    *("hexahedron20", "hexahedron27"),
)


def _type(kind: str, nodes: int) -> str:
    shape = _SHAPES.get(kind, "")
    if _LINEAR.get(shape) == nodes:
        return shape
    if f"{shape}{nodes}" not in _HIGHER:
        raise MeshprepError(
            f"holds elements of type {kind} with {nodes} nodes, which are not supported"
        )
    return f"{shape}{nodes}"


def _names(file: Any, key: str) -> list[str]:
    if key not in file.variables:
        return []
    return [b"".join(c).decode("utf-8", "replace").strip("\0 ") for c in file[key][:]]


def _node_values(file: Any) -> dict[str, NDArray]:
    out = {}
    for i, name in enumerate(_names(file, "name_nod_var"), 1):
        key = f"vals_nod_var{i}"
        if key in file.variables and len(file[key]):
            out[name] = np.asarray(file[key][0])
        elif "vals_nod_var" in file.variables and len(file["vals_nod_var"]):
            out[name] = np.asarray(file["vals_nod_var"][0, i - 1])
    return out


def _cell_values(
    file: Any, blocks: Sequence[int], sizes: Sequence[int]
) -> dict[str, list[NDArray]]:
    """Numbers of the blocks, and values with NaN where a block has none."""
    ids = _ids(file, "eb_prop1", len(blocks))
    out = {BLOCK: [np.full(n, ids[i]) for i, n in enumerate(sizes)]}
    for i, name in enumerate(_names(file, "name_elem_var"), 1):
        keys = [f"vals_elem_var{i}eb{b}" for b in blocks]
        if any(k in file.variables and len(file[k]) for k in keys):
            out[name] = [
                np.asarray(file[k][0]) if k in file.variables else np.full(n, np.nan)
                for k, n in zip(keys, sizes, strict=True)
            ]
    return out


def _ids(file: Any, key: str, count: int) -> list[int]:
    """The numbers of blocks or sets; from 1 where the file gives none, or twice the same."""
    given = [int(i) for i in file[key][:]] if key in file.variables else []
    right = len(given) == count and len(set(given)) == count and all(i > 0 for i in given)
    return given if right else list(range(1, count + 1))


def _block_names(file: Any, blocks: Sequence[int]) -> dict[int, str]:
    ids, names = _ids(file, "eb_prop1", len(blocks)), _names(file, "eb_names")
    return {i: n for i, n in zip(ids, names, strict=False) if n}


def _node_sets(file: Any) -> dict[str, NDArray]:
    keys = sorted((k for k in file.variables if re.fullmatch(r"node_ns\d+", k)), key=_index)
    names, ids = _names(file, "ns_names"), _ids(file, "ns_prop1", len(keys))
    out = {}
    for i, key in enumerate(keys):
        name = names[i] if i < len(names) and names[i] else f"node set {ids[i]}"
        out[name] = np.asarray(file[key][:]).astype(np.int64) - 1
    return out


def _left_out(file: Any) -> list[str]:
    out = []
    steps = len(file.dimensions["time_step"]) if "time_step" in file.dimensions else 0
    if steps > 1:
        out.append(f"time steps 2 to {steps}")
    sides = sum(bool(re.fullmatch(r"elem_ss\d+", k)) for k in file.variables)
    if sides:
        out.append(f"{sides} side sets")
    return out
