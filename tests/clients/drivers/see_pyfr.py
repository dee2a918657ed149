"""PyFR: what ``pyfr import`` makes of a file, which has no cells of the border."""

import subprocess
import sys
import tempfile
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


def look(path):
    """PyFR numbers the nodes by their tags, from 0."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "mesh.pyfrm"
        command = [str(Path(sys.executable).parent / "pyfr"), "import", path, str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        with h5py.File(out) as file:
            points = file["nodes"][()]["location"]
            cells = {
                SHAPES[name]: group[()]["nodes"] for name, group in file["eles"].items()
            }
    return [[*point, 0.0][:3] for point in points.tolist()], cells


if __name__ == "__main__":
    main(look)
