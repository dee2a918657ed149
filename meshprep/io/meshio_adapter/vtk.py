"""Legacy VTK files through meshio, and what it takes for granted in them and in VTU files.

meshio cuts the nodes of a cell by its type alone, knows few of the types of numbers that VTK
writes, and takes names as they stand, where VTK writes a blank as ``%20``.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh.cells import check_node_count, node_count
from .own import meshio

_main, _vtk_42, _vtk_51 = meshio.vtk._main, meshio.vtk._vtk_42, meshio.vtk._vtk_51
vtk_to_meshio_type = meshio._vtk_common.vtk_to_meshio_type

# VTK's types of numbers; its identifiers go to the file as 32 bits.
TYPES = {
    **{"char": "int8", "signed_char": "int8", "unsigned_char": "uint8"},
    **{"short": "int16", "unsigned_short": "uint16", "int": "int32", "unsigned_int": "uint32"},
    **{"long": "int64", "unsigned_long": "uint64", "vtkidtype": "int32"},
    **{"vtktypeint64": "int64", "vtktypeuint64": "uint64"},
}
# What VTK writes into names as it is.
_PLAIN = "".join(chr(i) for i in range(33, 127) if chr(i) not in '"%')
# What is read past, by keyword, and how messages of it begin.
_COLOURS = {"LOOKUP_TABLE": "lookup table", "COLOR_SCALARS": "colours"}

_TWICE = "has several arrays of one name: rename them"


def read(file: Any) -> meshio.Mesh:
    """Read a legacy VTK file as meshio does, with the names that VTK shows."""
    mesh = _main.read_buffer(file)
    for data in (mesh.point_data, mesh.cell_data):
        named = {unquote(name): in_rows(values) for name, values in data.items()}
        if len(named) < len(data):
            raise MeshprepError(_TWICE)
        data.clear()
        data.update(named)
    mesh.whole_values, mesh.field_data = mesh.field_data, {}
    return mesh


def in_rows(values: Any) -> Any:
    """Tensors of 3 x 3 numbers as rows of nine; of cells they are a list of blocks."""
    if isinstance(values, list):
        return [in_rows(block) for block in values]
    return values.reshape(len(values), -1) if values.ndim > 2 else values


def write(path: str, mesh: meshio.Mesh) -> None:
    """Write a legacy VTK file as meshio does, with names that VTK reads as they are."""
    point_data, cell_data = _quoted(mesh.point_data), _quoted(mesh.cell_data)
    made = meshio.Mesh(mesh.points, mesh.cells, point_data=point_data, cell_data=cell_data)
    _main.write(path, made)


def _quoted(data: Mapping[str, Any]) -> dict[str, Any]:
    return {quote(name, safe=_PLAIN): values for name, values in data.items()}


class _Once(dict[str, Any]):
    """Arrays by name, none of which takes the place of another."""

    def update(self, more: Mapping[str, Any]) -> None:  # type: ignore[override]
        """Add arrays; raises MeshprepError where there is one of that name."""
        if self.keys() & more.keys():
            raise MeshprepError(_TWICE)
        super().update(more)


def _once(info: type) -> Callable[[], Any]:
    """What meshio keeps a file's arrays in, so that it refuses names that stand twice."""

    def made() -> Any:
        out = info()
        out.point_data, out.cell_data_raw, out.field_data = _Once(), _Once(), _Once()
        return out

    return made


def _all_fields(original: Callable[..., Any]) -> Callable[..., Any]:
    def read(file: Any, count: int, is_ascii: bool) -> Any:
        found = original(file, count, is_ascii)
        if len(found) < count:
            raise MeshprepError(_TWICE)
        return found

    return read


def _telling(module: Any, original: Callable[..., None]) -> Callable[..., None]:
    """Tell of colours, which meshio leaves out, and misreads in every second kind of file."""

    def read(file: Any, info: Any) -> None:
        if info.section not in _COLOURS:
            original(file, info)
            return
        rows, width = int(info.split[2]), 4
        if info.section == "COLOR_SCALARS":
            rows, width = info.num_items, rows
        how: dict[str, Any] = {"dtype": float, "sep": " "} if info.is_ascii else {"dtype": "u1"}
        module.np.fromfile(file, count=rows * width, **how)
        module.warn(f"{_COLOURS[info.section]} '{unquote(info.split[1])}'")

    return read


def _tell_names(module: Any, file: Any) -> None:
    """Tell of names of components, which stand in notes that meshio passes over."""
    for line in iter(lambda: file.readline().strip(), b""):
        if line == b"COMPONENT_NAMES":
            module.warn("names of components")


def _checking(original: Callable[..., Any], check: Callable[..., tuple]) -> Callable[..., Any]:
    return lambda *args: original(*check(*args))


def _wanted() -> NDArray[np.int64]:
    """Nodes of a cell by VTK's number; 0 where meshprep does not know it or it may have any."""
    out = np.zeros(256, dtype=np.int64)
    for number, name in vtk_to_meshio_type.items():
        with suppress(MeshprepError):
            out[number] = node_count(name)
    return out


_NODES = _wanted()


def _nodes_of(types: NDArray) -> NDArray[np.int64]:
    return _NODES[np.where((types >= 0) & (types < _NODES.size), types, 0)]


def _check_offsets(
    connectivity: NDArray, offsets: NDArray | None, types: NDArray, data: Mapping[str, NDArray]
) -> tuple[Any, ...]:
    """What meshio is to cut, where ``offsets`` fit the types of the cells. O(n)."""
    if offsets is None:
        # A structured grid, whose cells meshio makes with their sizes before them.
        connectivity = connectivity.reshape(len(types), -1)[:, 1:]
        offsets = np.arange(1, len(types) + 1) * connectivity.shape[1]
        connectivity = connectivity.reshape(-1)
    sizes = np.diff(offsets.astype(np.int64), prepend=0)
    _check_data(len(types), data)
    if len(sizes) == len(types):
        _check_sizes(sizes, types)
    if len(sizes) and offsets[-1] != len(connectivity):
        raise MeshprepError(
            f"its cells have {offsets[-1]} nodes together, but {len(connectivity)} are given: "
            "the file is truncated or damaged"
        )
    return connectivity, offsets, types, data


def _check_sizes(sizes: NDArray[np.int64], types: NDArray) -> None:
    wanted = _nodes_of(types)
    if np.array_equal(sizes, wanted) and wanted.all():
        return
    bad = np.flatnonzero(np.where(wanted > 0, sizes != wanted, sizes < 1))
    if bad.size:
        number = int(types[bad[0]])
        name = vtk_to_meshio_type.get(number, str(number))
        check_node_count(f"cell {bad[0] + 1}", name, int(sizes[bad[0]]))


def _check_counted(
    connectivity: NDArray, types: NDArray, data: Mapping[str, NDArray]
) -> tuple[Any, ...]:
    """The same where the number of its nodes stands before each cell; left alone where types are
    not known. O(n)."""
    wanted = _nodes_of(types)
    _check_data(len(types), data)
    if len(types) and wanted.all():
        start = np.cumsum(wanted + 1) - (wanted + 1)
        here = start < len(connectivity)
        sizes = np.where(here, connectivity[np.where(here, start, 0)], wanted)
        _check_sizes(sizes, types)
        if wanted.sum() + len(wanted) != len(connectivity):
            raise MeshprepError(
                f"its {len(types)} cells take {wanted.sum() + len(wanted)} numbers, but "
                f"{len(connectivity)} are given: the file is truncated or damaged"
            )
    return connectivity, types, data


def _check_data(n: int, data: Mapping[str, NDArray]) -> None:
    for name, values in data.items():
        if len(values) != n:
            raise MeshprepError(
                f"values '{name}' are {len(values)}, but there are {n} cells: "
                "the file is truncated or damaged"
            )


# What it takes for meshio to read the types that VTK writes, and to look at the sizes of cells.
for _module in (_vtk_42, _vtk_51):
    _module.vtk_to_numpy_dtype_name.update(TYPES)
    _module.Info = _once(_module.Info)
    _module._read_fields = _all_fields(_module._read_fields)
    _module._read_section = _telling(_module, _module._read_section)
    _module._skip_meta = partial(_tell_names, _module)
_vtk_42.translate_cells = _checking(_vtk_42.translate_cells, _check_counted)
for _module in (_vtk_51, meshio.vtu._vtu):
    _module.vtk_cells_from_data = _checking(_module.vtk_cells_from_data, _check_offsets)
