"""Writing XDMF files, numbers as text in as few digits as say them exactly."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ElementTree, SubElement, register_namespace

import numpy as np
from numpy.typing import NDArray

from ...mesh.cells import shape_of
from ..cell_blocks.file_mesh import Cells, FileMesh, PartValues
from ..text.tokens import ASCII
from ..text.writer import NumberWriter
from .items import KINDS
from .topology import NAMES, numbered

_INCLUDE = "http://www.w3.org/2001/XInclude"
_SHAPES = {1: "Scalar", 3: "Vector", 6: "Tensor6", 9: "Tensor"}
# The grid of the mesh, which is the first one, and its name where it has none.
_MESH = "/Xdmf/Domain/Grid[1]"
_NAME = "mesh"


def write(mesh: FileMesh, path: Path) -> None:
    """Write an XDMF file: a grid for each part, and a series if there are several times."""
    register_namespace("xi", _INCLUDE)
    root = Element("Xdmf", Version="3.0")
    domain = SubElement(root, "Domain")
    # The first grid is the mesh: blocks of a lower dimension that a part holds stand in
    # the grid of this part alone.
    home = _homes(mesh)
    series = len(mesh.times) > 1
    grid = SubElement(domain, "Grid", Name=mesh.grid or _NAME, GridType="Uniform")
    width = mesh.points.shape[1]
    _put_numbers(SubElement(grid, "Geometry", GeometryType="XYZ"[:width]), mesh.points)
    main = [k for k in range(len(mesh.cells)) if k not in home]
    _put_topology(grid, [mesh.cells[k] for k in main])
    if not series and mesh.times[0]:
        SubElement(grid, "Time", Value=repr(float(mesh.times[0])))
    _put_whole_values(grid, mesh)
    of_cells = {}
    for name, blocks in mesh.cell_data.items():
        of_cells[name] = np.concatenate([blocks[k] for k in main])
    if not series:
        _put_attributes(grid, mesh.point_data, of_cells)
    # A series has its values at its steps; parts stand before it.
    for name in dict.fromkeys(part.grid for part in mesh.parts):
        _put_part(
            domain=domain,
            mesh=mesh,
            name=name,
            at_home=[k for k in home if home[k] == name],
        )
    if series:
        _put_series(domain, mesh, of_cells)
    ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _homes(mesh: FileMesh) -> dict[int, str]:
    """The blocks of cells in the grid of a part, which holds all of them, and its name."""
    highest = max(shape_of(c.type).dim for c in mesh.cells)
    home: dict[int, str] = {}
    for part in mesh.parts:
        cells = mesh.cells[part.block]
        if len(part.rows) == len(cells.data) and shape_of(cells.type).dim < highest:
            home.setdefault(part.block, part.grid)
    return home


def _put_part(domain: Element, mesh: FileMesh, name: str, at_home: list[int]) -> None:
    """The grid of some cells with the values that are on them alone."""
    grid = SubElement(domain, "Grid", Name=name, GridType="Uniform")
    _refer(grid, f"{_MESH}/Geometry")
    grid_parts = [part for part in mesh.parts if part.grid == name]
    # the rows of each block, those of all its values being the same
    rows = {part.block: part.rows for part in grid_parts}
    blocks = [
        Cells(mesh.cells[block].type, mesh.cells[block].data[index])
        for block, index in rows.items()
    ]
    _put_topology(grid, blocks)
    values = _values_of_part(grid_parts, list(rows))
    for key, data in mesh.cell_data.items():
        if len(at_home) == len(rows) and key not in values:
            values[key] = np.concatenate([data[k][rows[k]] for k in rows])
    _put_attributes(grid, {}, values)


def _values_of_part(own: list[PartValues], blocks: list[int]) -> dict[str, NDArray[Any]]:
    by_name: dict[str, dict[int, NDArray[Any]]] = {}
    for part in own:
        by_name.setdefault(part.name, {})[part.block] = part.values
    values = {}
    for name, by_block in by_name.items():
        values[name] = np.concatenate([by_block[block] for block in blocks])
    return values


def _put_series(domain: Element, mesh: FileMesh, of_cells: dict[str, NDArray[Any]]) -> None:
    """A grid for each time, which refers to the mesh and has the values of that step."""
    series = SubElement(
        domain, "Grid", Name="TimeSeries", GridType="Collection", CollectionType="Temporal"
    )
    for step, time in enumerate(mesh.times):
        grid = SubElement(series, "Grid", Name=mesh.grid or _NAME, GridType="Uniform")
        _refer(grid, f"{_MESH}/*[self::Topology or self::Geometry]")
        SubElement(grid, "Time", Value=repr(float(time)))
        _put_attributes(grid, _at(mesh.point_data, step), _at(of_cells, step))


def _at(data: Mapping[str, NDArray[Any]], step: int) -> dict[str, NDArray[Any]]:
    """The values of a step of time, by their own names."""
    values_at_time = {}
    for key, values in data.items():
        name, _, number = key.partition("\0")
        if int(number or 0) == step:
            values_at_time[name] = values
    return values_at_time


def _refer(grid: Element, path: str) -> None:
    SubElement(grid, f"{{{_INCLUDE}}}include", xpointer=f"xpointer({path})")


def _put_topology(grid: Element, blocks: list[Cells]) -> None:
    count = str(sum(len(c.data) for c in blocks))
    if len(blocks) == 1:
        name = NAMES[blocks[0].type][0]
        table = blocks[0].data
    else:
        name = "Mixed"
        table = np.concatenate([numbered(c).reshape(-1) for c in blocks])
    topology = SubElement(grid, "Topology", TopologyType=name, NumberOfElements=count)
    if name in ("Polyline", "Polyvertex"):
        topology.set("NodesPerElement", str(blocks[0].data.shape[1]))
    _put_numbers(topology, table)


def _put_whole_values(grid: Element, mesh: FileMesh) -> None:
    for name, values in mesh.whole_values.items():
        if values.dtype.kind == "U":
            for text in values.reshape(-1).tolist():
                SubElement(grid, "Information", Name=name, Value=text)
        else:
            _put_attribute(grid=grid, name=name, center="Grid", values=_wide(values))


def _wide(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers of a type that all readers know."""
    if values.dtype.kind in "iu":
        if values.dtype == np.uint64:
            return values
        return values.astype(np.int64)
    return values.astype(np.float64)


def _put_attributes(
    grid: Element,
    of_nodes: Mapping[str, NDArray[Any]],
    of_cells: Mapping[str, NDArray[Any]],
) -> None:
    for center, data in (("Node", of_nodes), ("Cell", of_cells)):
        for name, values in data.items():
            _put_attribute(grid=grid, name=name, center=center, values=values)


def _put_attribute(grid: Element, name: str, center: str, values: NDArray[Any]) -> None:
    kind = _SHAPES.get(values.shape[1] if values.ndim == 2 else 1, "Matrix")
    attributes = {"Name": name, "AttributeType": kind, "Center": center}
    _put_numbers(SubElement(grid, "Attribute", attributes), values)


def _put_numbers(parent: Element, values: NDArray[Any]) -> None:
    """Give an element its numbers."""
    if values.dtype == np.uint64 and not (values > np.iinfo(np.int64).max).any():
        # VTK knows signed ones alone of this length: it reads others as zeros
        values = values.astype(np.int64)
    # Precision is the number of bytes, Dimensions the shape with the last axis running
    # fastest.
    kind = next(name for name, letter in KINDS.items() if letter == values.dtype.kind)
    item = SubElement(
        parent,
        "DataItem",
        DataType=kind,
        Dimensions=" ".join(map(str, values.shape)),
        Format="XML",
        Precision=str(values.dtype.itemsize),
    )
    rows = values.reshape(len(values), -1)
    if values.dtype == np.uint64:
        item.text = "\n".join(" ".join(map(str, row)) for row in rows.tolist())
        return
    file = BytesIO()
    none = np.empty((len(rows), 0), np.int64)
    NumberWriter(file, ASCII).rows(*((none, rows) if kind == "Float" else (rows,)))
    item.text = "\n" + file.getvalue().decode()
