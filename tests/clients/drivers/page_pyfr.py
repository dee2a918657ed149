"""The page on PyFR: the commands, and the parts that they leave in PyFR's file."""

import shlex
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
from pages_of_use import steps

# A mesh as PyFR wants it: its cells in a group ``fluid``, its border in others.
maker = Path(__file__).with_name("make_meshes.py")
subprocess.run([sys.executable, str(maker), "."], check=True, stdout=subprocess.DEVNULL)
Path("two_squares-22-ascii.msh").rename("square.msh")
((name, code),) = [step for step in steps("use/pyfr.md") if step[0]]
Path(name).write_text(code)
(commands,) = [content for name, content in steps("use/pyfr.md") if not name]
# The option of the text, on a mesh of two types of cells.
Path("half_quads-22-ascii.msh").rename("mixed.msh")
weighed = [
    "python pyfr_meshprep.py import mixed.msh mixed.pyfrm",
    "python pyfr_meshprep.py partition add -p meshprep -e quad:3 -e tri:2 mixed.pyfrm 2",
]
for line in [*weighed, *commands.splitlines()]:
    words = shlex.split(line)
    assert words[0] == "python"
    done = subprocess.run(
        [sys.executable, *words[1:]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
assert "fast_last" in done.stdout, done.stdout
with h5py.File("square.pyfrm") as file:
    n = sum(len(group) for group in file["eles"].values())
    for partitioning, shares in {"4": [1, 1, 1, 1], "fast_last": [1, 1, 2]}.items():
        regions = file[f"partitionings/{partitioning}/eles"].attrs["regions"]
        sizes = regions[:, -1] - regions[:, 0]
        most = 1.03 * n * np.array(shares) / sum(shares) + 1
        assert sizes.sum() == n
        assert (sizes <= most).all(), sizes
with h5py.File("mixed.pyfrm") as file:
    sizes = {name: len(group) for name, group in file["eles"].items()}
    regions = file["partitionings/2/eles"].attrs["regions"]
    # Types stand in the order of their names: quads, then triangles.
    weights = np.diff(regions, axis=1) @ [3, 2]
    assert weights.sum() == 3 * sizes["quad"] + 2 * sizes["tri"]
    assert weights.max() <= 1.03 * weights.sum() / 2 + 3, weights
