"""XDMF files: one grid whose numbers are text, or in HDF5 files beside it."""

from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ElementTree, SubElement, parse

import h5py
import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.file.atomic import check_input

from ...mesh.cells import check_node_count, node_count
from ..text.cursor import Cursor
from ..text.tokens import ASCII
from ..text.writer import NumberWriter
from .file_mesh import Cells, FileMesh
from .harden import check_hdf5

# By name and by XDMF's number, as they stand in cells of several types.
_NAMES = {
    **{"vertex": "Polyvertex 1", "line": "Polyline 2", "line3": "Edge_3 22"},
    **{"triangle": "Triangle 4", "quad": "Quadrilateral 5", "tetra": "Tetrahedron 6"},
    **{"pyramid": "Pyramid 7", "wedge": "Wedge 8", "hexahedron": "Hexahedron 9"},
    **{"quad9": "Quadrilateral_9 23", "triangle6": "Triangle_6 24", "quad8": "Quadrilateral_8 25"},
    **{"tetra10": "Tetrahedron_10 26", "pyramid13": "Pyramid_13 27", "wedge15": "Wedge_15 28"},
    **{"wedge18": "Wedge_18 29", "hexahedron20": "Hexahedron_20 30"},
    **{"hexahedron24": "Hexahedron_24 31", "hexahedron27": "Hexahedron_27 32"},
}
_TYPES = {name.split()[0]: cell_type for cell_type, name in _NAMES.items()}
_SHORT = {"Tri": "Triangle", "Quad": "Quadrilateral", "Tet": "Tetrahedron", "Hex": "Hexahedron"}
_NUMBER = {cell_type: int(name.split()[1], 16) for cell_type, name in _NAMES.items()}
_OF_NUMBER = {number: cell_type for cell_type, number in _NUMBER.items()}
_KINDS = {"Int": "i", "UInt": "u", "Float": "f"}


def refuse_unknown(root: Element) -> None:
    """Raise MeshprepError for what would be read as another mesh, and values of one name."""
    for topology in root.iter("Topology"):
        base, order = topology.get("BaseOffset", "0").strip(), topology.get("Order", "").split()
        if base != "0":
            raise MeshprepError(f"counts nodes from {base}: write numbers that begin at 0")
        if order != [str(i) for i in range(len(order))]:
            raise MeshprepError(f"has nodes of cells in the order {' '.join(order)}: leave it out")
    names = [(a.get("Center"), a.get("Name")) for a in root.iter("Attribute")]
    for center, name in names:
        if names.count((center, name)) > 1:
            raise MeshprepError(f"has several attributes '{name}' of one kind: rename them")


def check_dimensions(item: Element, shape: Sequence[int]) -> None:
    """Raise MeshprepError where an item declares another number of values than a dataset has."""
    declared = item.get("Dimensions", "").split()
    if np.prod([int(d) for d in declared], dtype=object) != np.prod(shape, dtype=object):
        raise MeshprepError(
            f"declares {' x '.join(declared)} numbers where {(item.text or '').strip()} has "
            f"{' x '.join(map(str, shape))}: correct one of them"
        )


def read(path: Path) -> FileMesh:
    """Read an XDMF file of version 2 or 3 with one grid."""
    root = parse(path).getroot()
    refuse_unknown(root)
    grids = list(root.iter("Grid"))
    if len(grids) != 1:
        raise MeshprepError(f"has {len(grids)} grids: write a file for one of them")
    mesh, of_cells = FileMesh(np.empty(0), []), dict[str, NDArray[Any]]()
    for item in grids[0]:
        center, name, kind = item.get("Center"), item.get("Name", ""), item.get("Type", "XYZ")
        if item.tag == "Time":
            mesh.left_out.append("the time")
        elif item.tag == "Topology":
            kind = item.get("TopologyType", kind)
            data = _values(item, path)
            mesh.cells = list(_mixed(data)) if kind == "Mixed" else [Cells(_type(kind), data)]
        elif item.tag == "Geometry":
            kind = item.get("GeometryType", kind)
            if kind not in ("XY", "XYZ"):
                raise MeshprepError(f"has a geometry of type {kind}: write it as XYZ")
            mesh.points = _values(item, path)
        elif item.tag == "Attribute" and center in ("Node", "Cell"):
            values = _values(item, path)
            values = values.reshape(len(values), -1) if values.ndim > 2 else values
            (mesh.point_data if center == "Node" else of_cells)[name] = values
        elif item.tag == "Attribute" and center == "Grid":
            mesh.left_out.append(f"values '{name}' of the whole mesh")
        else:
            raise MeshprepError(f"has a section {item.tag}, which is not known: take it out")
    ends = np.cumsum([len(c.data) for c in mesh.cells])
    for name, values in of_cells.items():
        if len(values) != ends[-1]:
            raise MeshprepError(f"values '{name}' do not fit the {ends[-1]} cells")
        mesh.cell_data[name] = np.split(values, ends[:-1])
    return mesh


def _type(name: str) -> str:
    shape, line, digits = name.partition("_")
    return _TYPES[f"{_SHORT.get(shape, shape)}{line}{digits}"]


def _mixed(data: NDArray[Any]) -> Iterator[Cells]:
    """Blocks from (type, nodes) one after the other; points and lines say how many they have."""
    words, at = data.reshape(-1).tolist(), 0
    rows: dict[str, list[list[int]]] = {}
    cells = 0
    while at < len(words):
        cells += 1
        cell_type = _OF_NUMBER.get(words[at])
        if cell_type is None:
            raise MeshprepError(f"cell {cells} is of XDMF's type {words[at]}, which is not known")
        at += 1
        if cell_type in ("vertex", "line"):
            check_node_count(f"cell {cells}", cell_type, words[at] if at < len(words) else 0)
            at += 1
        nodes = words[at : at + node_count(cell_type)]
        check_node_count(f"cell {cells}", cell_type, len(nodes))
        at += len(nodes)
        rows.setdefault(cell_type, []).append(nodes)
    return (Cells(cell_type, np.array(own)) for cell_type, own in rows.items())


def _values(parent: Element, path: Path) -> NDArray[Any]:
    """The numbers of the only item of an element."""
    (item,) = parent
    text = item.text or ""
    form = item.get("Format", "XML")
    if form == "HDF":
        name, _, place = text.strip().partition(":")
        beside = path.resolve().parent / name
        try:
            check_input(beside)
        except MeshprepError as error:
            raise MeshprepError(f"its data file {name} {error}") from None
        check_hdf5(beside)
        with h5py.File(beside, "r") as file:
            found: NDArray[Any] = file[place][()]
        check_dimensions(item, found.shape)
        return found
    if form != "XML" or "Reference" in item.attrib:
        raise MeshprepError(
            "keeps numbers in raw binary files or elsewhere: write it with HDF5 or XML data"
        )
    # XDMF 2 and 3 differ in the name of this
    name = item.get("DataType") or item.get("NumberType") or "Float"
    dtype = np.dtype(f"{_KINDS[name]}{item.get('Precision', '4')}")
    dims = [int(d) for d in item.get("Dimensions", "").split()]
    if dtype.kind == "f":
        # a copy, since kernels are compiled anew for arrays that refuse writing
        cursor = Cursor(path, np.array(np.frombuffer(text.encode(), np.uint8)))
        n = int(np.prod(dims, dtype=object))
        values = cursor.doubles(n).astype(dtype, copy=False)
        if cursor.behind_blank(cursor.pos) < cursor.data.size:
            raise ValueError(f"there are more numbers than the {n} that are declared")
        return values.reshape(dims)
    return np.fromstring(text, dtype, sep=" ").reshape(dims)


def write(path: Path, mesh: FileMesh) -> None:
    """Write an XDMF file, numbers as text in as few digits as say them exactly."""
    root = Element("Xdmf", Version="3.0")
    grid = SubElement(SubElement(root, "Domain"), "Grid", Name="Grid")
    width = mesh.points.shape[1]
    _put(SubElement(grid, "Geometry", GeometryType="XYZ"[:width]), mesh.points)
    count = str(sum(len(c.data) for c in mesh.cells))
    name, table = "Mixed", mesh.cells[0].data
    if len(mesh.cells) == 1:
        name = _NAMES[mesh.cells[0].type].split()[0]
    else:
        table = np.concatenate([_numbered(c).reshape(-1) for c in mesh.cells])
    topology = SubElement(grid, "Topology", TopologyType=name, NumberOfElements=count)
    if name == "Polyline":
        topology.set("NodesPerElement", "2")
    _put(topology, table)
    whole = {name: np.concatenate(blocks) for name, blocks in mesh.cell_data.items()}
    for center, data in (("Node", mesh.point_data), ("Cell", whole)):
        for name, values in data.items():
            shape = {1: "Scalar", 3: "Vector", 6: "Tensor6", 9: "Tensor"}
            kind = shape.get(values.shape[1] if values.ndim == 2 else 1, "Matrix")
            attributes = {"Name": name, "AttributeType": kind, "Center": center}
            _put(SubElement(grid, "Attribute", attributes), values)
    ElementTree(root).write(path, encoding="utf-8")


def _numbered(cells: Cells) -> NDArray[Any]:
    """The number of its type before each cell, and that of its nodes where it may have any."""
    n = cells.data.shape[1]
    before = [_NUMBER[cells.type], *([n] if cells.type in ("vertex", "line") else [])]
    return np.column_stack([np.full((len(cells.data), len(before)), before), cells.data])


def _put(parent: Element, values: NDArray[Any]) -> None:
    """Give an element its numbers."""
    if values.dtype == np.uint64 and not (values > np.iinfo(np.int64).max).any():
        # VTK knows signed ones alone of this length: it reads others as zeros
        values = values.astype(np.int64)
    kind = next(name for name, letter in _KINDS.items() if letter == values.dtype.kind)
    dims = " ".join(map(str, values.shape))
    precision = str(values.dtype.itemsize)
    item = SubElement(
        parent, "DataItem", DataType=kind, Dimensions=dims, Format="XML", Precision=precision
    )
    rows = values.reshape(len(values), -1)
    if values.dtype == np.uint64:
        item.text = "\n".join(" ".join(map(str, row)) for row in rows.tolist())
        return
    file = BytesIO()
    none = np.empty((len(rows), 0), np.int64)
    NumberWriter(file, ASCII).rows(*((none, rows) if kind == "Float" else (rows,)))
    item.text = "\n" + file.getvalue().decode()
