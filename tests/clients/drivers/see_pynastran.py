"""pyNastran: grids and elements of a bulk data file, by their numbers."""

from pyNastran.bdf.bdf import read_bdf
from seen import CORNERS, main

SHAPES = {
    "CTRIA3": "triangle",
    "CTRIA6": "triangle",
    "CQUAD4": "quad",
    "CQUAD8": "quad",
    "CTETRA": "tetra",
    "CPYRAM": "pyramid",
    "CPENTA": "wedge",
    "CHEXA": "hexahedron",
    "CROD": "line",
    "CBAR": "line",
    "CBEAM": "line",
}


def look(path):
    """A deck, not punched cards alone; nothing of it is checked against properties."""
    model = read_bdf(path, xref=False, debug=None)
    numbers = sorted(model.nodes)
    row_of = {number: row for row, number in enumerate(numbers)}
    cells = {}
    for number in sorted(model.elements):
        element = model.elements[number]
        shape = SHAPES[element.type]
        nodes = element.node_ids[: CORNERS[shape]]
        cells.setdefault(shape, []).append([row_of[node] for node in nodes])
    return [model.nodes[number].xyz for number in numbers], cells


if __name__ == "__main__":
    main(look)
