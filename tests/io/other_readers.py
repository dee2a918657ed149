"""What programs other than ours see in a file: nodes, cells and every value, in our terms.

Each reader finds the nodes of a cell by its own tables (edges, faces, places in the reference
cell), so that the order of nodes is told by whoever will use the file.
"""

import importlib
import io
import os
import warnings
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field
from urllib.parse import unquote

import numpy as np
import pytest

from meshprep.mesh.cells import SHAPES, shape_of

IN_CI = "MESHPREP_REQUIRE_READERS"
# Corners of each face that has a node at its middle, in the order of these nodes.
MIDDLES = {
    "quad9": [(0, 1, 2, 3)],
    "triangle7": [(0, 1, 2)],
    "wedge18": [(0, 1, 4, 3), (1, 2, 5, 4), (2, 0, 3, 5)],
    "hexahedron24": [(0, 3, 4, 7), (1, 2, 5, 6), (0, 1, 4, 5), (2, 3, 6, 7)],
    "hexahedron27": [
        *[
            (0, 3, 4, 7),
            (1, 2, 5, 6),
            (0, 1, 4, 5),
            (2, 3, 6, 7),
            (0, 1, 2, 3),
            (4, 5, 6, 7),
        ],
        tuple(range(8)),
    ],
}


@dataclass
class Seen:
    """What a reader sees; ``cells`` are (type, nodes) in the order of the file."""

    points: np.ndarray
    cells: list[tuple[str, list[int]]]
    node_values: dict[str, np.ndarray] = field(default_factory=dict)
    cell_values: dict[str, np.ndarray] = field(default_factory=dict)


@contextmanager
def quiet():
    """Without the warnings of others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def package(name: str):
    """Import a package that only tests need; skip where it does not install, except in CI."""
    try:
        with quiet():
            return importlib.import_module(name)
    except (ImportError, OSError):
        if IN_CI in os.environ:
            raise
        pytest.skip(f"{name} is not here: pip install 'meshprep[readers]'")


def parts_of(cell_type: str) -> list[tuple[int, ...]]:
    """The corners whose mean is the place of each node, in our order."""
    shape = shape_of(cell_type)
    nodes = int(cell_type.removeprefix(shape.name) or shape.n_corners)
    middles = MIDDLES.get(cell_type, [])
    edges = shape.edges[: nodes - shape.n_corners - len(middles)]
    return [*((i,) for i in range(shape.n_corners)), *edges, *middles]


# VTK.

_VTK_READERS = {
    "vtk": ("vtkIOLegacy", "vtkUnstructuredGridReader"),
    "vtu": ("vtkIOXML", "vtkXMLUnstructuredGridReader"),
    "xdmf": ("vtkIOXdmf2", "vtkXdmfReader"),
    "exodus": ("vtkIOExodus", "vtkExodusIIReader"),
    "cgns": ("vtkIOCGNSReader", "vtkCGNSReader"),
}
# How VTK sees a linear wedge of a file of its own: the first triangle looks outwards.
_OUTWARDS = [0, 2, 1, 3, 5, 4]


def vtk(path, format_name: str) -> Seen:
    """What VTK and ParaView see."""
    module, name = _VTK_READERS[format_name]
    reader = getattr(package(f"vtkmodules.{module}"), name)()
    support = package("vtkmodules.util.numpy_support")
    reader.SetFileName(str(path))
    if format_name == "exodus":
        reader.UpdateInformation()
        reader.SetSqueezePoints(False)
        reader.GenerateGlobalElementIdArrayOn()
        for kind in (reader.NODAL, reader.ELEM_BLOCK):
            reader.SetAllArrayStatus(kind, 1)
    if format_name == "cgns":
        reader.UpdateInformation()
        reader.EnableAllBases()
        reader.EnableAllPointArrays()
        reader.EnableAllCellArrays()
    reader.Update()
    grids = list(_grids(reader.GetOutputDataObject(0)))
    cells, values = [], []
    for grid in grids:
        cells += [
            _vtk_cell(grid.GetCell(i), format_name) for i in range(grid.GetNumberOfCells())
        ]
        values.append(_vtk_values(grid.GetCellData(), support))
    first = grids[0]
    joined = {key: np.concatenate([v[key] for v in values]) for key in values[0]}
    # Blocks of Exodus come by their numbers.
    order = np.argsort(joined.get("GlobalElementId", np.arange(len(cells))))
    return Seen(
        np.array([first.GetPoint(i) for i in range(first.GetNumberOfPoints())]),
        [cells[i] for i in order],
        _vtk_values(first.GetPointData(), support),
        {key: array[order] for key, array in joined.items()},
    )


def _grids(data):
    if not data.IsA("vtkMultiBlockDataSet"):
        yield data
        return
    for i in range(data.GetNumberOfBlocks()):
        if data.GetBlock(i) is not None:
            yield from _grids(data.GetBlock(i))


def _vtk_values(data, support) -> dict[str, np.ndarray]:
    arrays = [data.GetArray(i) for i in range(data.GetNumberOfArrays())]
    return {a.GetName(): support.vtk_to_numpy(a) for a in arrays}


# How the names of VTK's classes end; readers of lines make polygons of two corners.
_VTK_SHAPES = {"Vertex": "vertex", "Line": "line", "Edge": "line", "Polygon": "line"}
_VTK_SHAPES |= {
    "Triangle": "triangle",
    "Quad": "quad",
    "Tetra": "tetra",
    "Pyramid": "pyramid",
}
_VTK_SHAPES |= {"Wedge": "wedge", "Hexahedron": "hexahedron"}


def _vtk_cell(cell, format_name: str) -> tuple[str, list[int]]:
    ids = [cell.GetPointId(i) for i in range(cell.GetNumberOfPoints())]
    shape = next(s for end, s in _VTK_SHAPES.items() if cell.GetClassName().endswith(end))
    corners = SHAPES[shape].n_corners
    cell_type = shape if len(ids) == corners else f"{shape}{len(ids)}"
    if cell_type == "wedge" and format_name in ("vtk", "vtu"):
        ids = [ids[i] for i in _OUTWARDS]
    if len(ids) == corners:
        return cell_type, ids
    found = _vtk_middles(cell, ids, corners)
    whole = frozenset(range(corners))
    places = [tuple(part) for part in parts_of(cell_type)[corners:]]
    row = [
        ids[-1] if frozenset(p) == whole else found[frozenset(ids[i] for i in p)]
        for p in places
    ]
    return cell_type, [*ids[:corners], *row]


def _vtk_middles(cell, ids: list[int], corners: int) -> dict[frozenset[int], int]:
    """The node in the middle of the corners of each edge and face."""
    out = {}
    if cell.GetCellDimension() == 1:
        return {frozenset(ids[:2]): ids[2]}
    for count, get in (
        (cell.GetNumberOfEdges(), cell.GetEdge),
        (cell.GetNumberOfFaces(), cell.GetFace),
    ):
        for i in range(count):
            part = get(i)
            points = [part.GetPointId(j) for j in range(part.GetNumberOfPoints())]
            ends = [p for p in points if p in ids[:corners]]
            # A face of nine nodes has the last one in its middle, an edge the third.
            with_middle = 3 if len(ends) == 2 else 2 * len(ends) + 1
            if len(points) == with_middle:
                out[frozenset(ends)] = points[-1]
    return out


# Gmsh.


def gmsh(path) -> Seen:
    """What Gmsh sees, elements by number; groups as the cell values ``physical``."""
    module = package("gmsh")
    module.initialize(["gmsh", "-v", "1"], readConfigFiles=False, interruptible=False)
    try:
        module.open(str(path))
        return _gmsh_model(module)
    finally:
        module.finalize()


def _gmsh_model(module) -> Seen:
    mesh = module.model.mesh
    tags, places, _ = mesh.getNodes()
    # Of nodes without cells nothing is left in some formats.
    points = np.full((int(max(tags)), 3), np.nan)
    points[np.asarray(tags, dtype=int) - 1] = np.reshape(places, (-1, 3))
    place = {int(tag): int(tag) - 1 for tag in tags}
    found: dict[int, tuple[str, list[int], str]] = {}
    for dim, entity in module.model.getEntities():
        groups = module.model.getPhysicalGroupsForEntity(dim, entity)
        names = [module.model.getPhysicalName(dim, g) or str(g) for g in groups]
        for kind, elements, nodes in zip(*mesh.getElements(dim, entity), strict=True):
            cell_type, columns = _gmsh_type(module, kind)
            for element, row in zip(
                elements, np.reshape(nodes, (len(elements), -1)), strict=True
            ):
                ids = [place[int(row[c])] for c in columns]
                found[int(element)] = cell_type, ids, ", ".join(names)
    elements = sorted(found)
    node_values, cell_values = _gmsh_views(module, place, elements)
    cell_values["physical"] = np.array([found[e][2] for e in elements])
    return Seen(
        points,
        [found[e][:2] for e in elements],
        node_values,
        cell_values,
    )


_GMSH_SHAPES = {
    "Line": "line",
    "Triangle": "triangle",
    "Quadrilateral": "quad",
    "Point": "vertex",
}
_GMSH_SHAPES |= {"Tetrahedron": "tetra", "Pyramid": "pyramid", "Prism": "wedge"}
_GMSH_SHAPES |= {"Hexahedron": "hexahedron"}


def _gmsh_type(module, kind: int) -> tuple[str, list[int]]:
    """Our type, and Gmsh's column of each of our nodes, by the places in the reference cell."""
    name, dim, _, n, local, _ = module.model.mesh.getElementProperties(kind)
    shape = _GMSH_SHAPES[name.split()[0]]
    corners = SHAPES[shape].n_corners
    cell_type = shape if n == corners else f"{shape}{n}"
    local = np.reshape(local, (n, max(dim, 1)))
    means = np.array([local[list(part)].mean(axis=0) for part in parts_of(cell_type)])
    distance = np.abs(means[:, None] - local[None]).max(axis=2)
    assert distance.min(axis=1).max() < 1e-9
    return cell_type, distance.argmin(axis=1).tolist()


def _gmsh_views(module, place, elements) -> tuple[dict, dict]:
    values: tuple[dict, dict] = {}, {}
    rows = {e: i for i, e in enumerate(elements)}
    for view in module.view.getTags():
        name = module.view.option.getString(view, "Name")
        kind, tags, data, _, width = module.view.getHomogeneousModelData(view, 0)
        on_nodes = kind == "NodeData"
        where = place if on_nodes else rows
        out = values[0 if on_nodes else 1].setdefault(
            name, np.full((len(where), width), np.nan)
        )
        out[[where[int(t)] for t in tags]] = np.reshape(data, (len(tags), -1))
    return values


# meshio.


# What meshio takes as it stands in the file, though the formats have another order: see
# test_written_by_gmsh.
AS_THEY_STAND = {("su2", "wedge"): [0, 2, 1, 3, 5, 4], ("abaqus", "line3"): [0, 2, 1]}


def meshio(path, format_name: str) -> Seen:
    """What meshio sees: blocks one after the other."""
    module = package("meshio")
    with quiet(), redirect_stderr(io.StringIO()):
        mesh = module.read(path, file_format=format_name)
    cells = []
    for c in mesh.cells:
        columns = AS_THEY_STAND.get((format_name, c.type), slice(None))
        cells += [(c.type, row) for row in np.asarray(c.data)[:, columns].tolist()]
    return Seen(
        np.asarray(mesh.points),
        cells,
        {unquote(name): np.asarray(values) for name, values in mesh.point_data.items()},
        {unquote(name): np.concatenate(values) for name, values in mesh.cell_data.items()},
    )
