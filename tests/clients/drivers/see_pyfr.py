"""PyFR: what ``pyfr import`` makes of a file, which has no cells of the border."""

import sys
import tempfile
from importlib.metadata import entry_points
from pathlib import Path

import h5py
from seen import main

SHAPES = {
    "tri": "triangle",
    "quad": "quad",
    "tet": "tetra",
    "pyr": "pyramid",
    "pri": "wedge",
    "hex": "hexahedron",
}
# The command, which takes a second to start, in this process.
(COMMAND,) = entry_points(group="console_scripts", name="pyfr")


def look(path):
    """PyFR numbers the nodes by their tags, from 0."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "mesh.pyfrm"
        sys.argv = ["pyfr", "import", path, str(out)]
        COMMAND.load()()
        with h5py.File(out) as file:
            points = file["nodes"][()]["location"]
            cells = {
                SHAPES[name]: group[()]["nodes"] for name, group in file["eles"].items()
            }
    return [[*point, 0.0][:3] for point in points.tolist()], cells


if __name__ == "__main__":
    main(look)
