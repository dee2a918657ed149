"""netCDF4: the blocks of an Exodus file, one after the other."""

import netCDF4
from seen import CORNERS, main

SHAPES = {
    "TRI": "triangle",
    "QUA": "quad",
    "SHE": "quad",
    "TET": "tetra",
    "PYR": "pyramid",
    "WED": "wedge",
    "HEX": "hexahedron",
    "BAR": "line",
    "BEA": "line",
    "TRU": "line",
}


def look(path):
    """Nodes are numbered from 1 there."""
    with netCDF4.Dataset(path) as file:
        axes = [
            file[f"coord{axis}"][:] for axis in "xyz" if f"coord{axis}" in file.variables
        ]
        points = [[*place, 0.0, 0.0][:3] for place in zip(*axes, strict=True)]
        cells = {}
        block = 1
        while f"connect{block}" in file.variables:
            table = file[f"connect{block}"]
            shape = SHAPES[table.elem_type[:3].upper()]
            rows = table[:, : CORNERS[shape]] - 1
            cells.setdefault(shape, []).extend(rows.tolist())
            block += 1
    return points, cells


if __name__ == "__main__":
    main(look)
