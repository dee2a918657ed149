"""pyvista, by VTK's readers and meshio: the cells of the grid, block after block."""

import pyvista
from seen import CORNERS, main
from vtkmodules import vtkCommonDataModel as vtk

SHAPES = {
    vtk.VTK_VERTEX: "vertex",
    vtk.VTK_LINE: "line",
    vtk.VTK_TRIANGLE: "triangle",
    vtk.VTK_QUAD: "quad",
    vtk.VTK_TETRA: "tetra",
    vtk.VTK_PYRAMID: "pyramid",
    vtk.VTK_WEDGE: "wedge",
    vtk.VTK_HEXAHEDRON: "hexahedron",
    vtk.VTK_QUADRATIC_EDGE: "line",
    vtk.VTK_QUADRATIC_TRIANGLE: "triangle",
    vtk.VTK_QUADRATIC_QUAD: "quad",
    vtk.VTK_QUADRATIC_TETRA: "tetra",
    vtk.VTK_QUADRATIC_HEXAHEDRON: "hexahedron",
}


def grids(data):
    """The grids of a file that has several of them."""
    if not isinstance(data, pyvista.MultiBlock):
        yield data
        return
    for block in data:
        if block is not None:
            yield from grids(block)


def look(path):
    """A grid of Exodus or CGNS has the points that its cells use."""
    points = []
    cells = {}
    for grid in grids(pyvista.read(path)):
        first = len(points)
        points.extend(grid.points)
        for i in range(grid.n_cells):
            cell = grid.GetCell(i)
            shape = SHAPES[cell.GetCellType()]
            nodes = [first + cell.GetPointId(k) for k in range(CORNERS[shape])]
            cells.setdefault(shape, []).append(nodes)
    return points, cells


if __name__ == "__main__":
    main(look)
