"""Every kernel is compiled once: for one list of argument types, whatever the mesh and options.

Nothing is taken from files: what calls a kernel that lies in a file shows no types of it.
"""

import os
import subprocess
import sys

import pytest

# Reorders and cuts meshes as the program does; names the kernels with several signatures.
RUNS = """
import sys
from pathlib import Path
import numpy as np
from meshprep import io
from meshprep.distribute.owners.cuts import CutProblem, owners_of_leading_set
from meshprep.distribute.subject import subject_of_mesh
from meshprep.io import write
from meshprep.io.generate import generate
from meshprep.io.source import MeshSource
from meshprep.kernels import KERNELS
from meshprep.loops.requests import simple_request
from meshprep.loops.options import Options
from meshprep.loops.request_maps import plan_request_maps
from meshprep.arrays.ordering import order
from meshprep.arrays.partitioning import partition
from meshprep.pipeline.check_file import check
from meshprep.pipeline.workflow import Job, run

place = Path(sys.argv[1])
plane, space = place / "plane.msh", place / "space.msh"
write(generate("delaunay2d", cells=1500), plane)
write(generate("delaunay3d", cells=900), space)

def reorder(mesh, *loops, keep=False, **options):
    output = None if keep else place / "out.msh"
    asked = tuple(map(simple_request, loops))
    source = MeshSource(mesh)
    job = Job(source, output, place / "plan.h5", asked, Options(**options), overwrite=True)
    assert check(run(job).written[-1], source).findings == []

small = {"block_size": 64}
reorder(plane)
for mesh in (plane, space):
    reorder(mesh, **small)
    reorder(mesh, partition="contiguous", sort_by_colour=True, **small)
reorder(plane, keep=True, **small)
reorder(plane, "cells->nodes", keep=True, partition="blocks", sort_by_colour=True, **small)
reorder(plane, "edges->cells", "edges->nodes", own_blocks=True, **small)
reorder(plane, method="rcm", target="cpu", **small)
reorder(plane, method="sloan", partition="metis", **small)
reorder(plane, method="hilbert", partition="metis", **small)

def cut(mesh, *loops):
    read = io.read(mesh)
    subject = subject_of_mesh(read, *plan_request_maps(read, [simple_request(t) for t in loops]))
    problem = CutProblem(subject, np.array([0.5, 0.25, 0.125, 0.125]))
    assert owners_of_leading_set(problem, "annealed").max() == 3
    assert owners_of_leading_set(problem, "refined").max() == 3

cut(plane, "edges->cells", "cells->nodes")
cut(space, "faces->cells")
cut(space, "cells->nodes")
read = io.read(plane)
for target in ("cpu", "gpu"):
    order(read.map("cells->nodes").table.copy(), read.coordinates, target=target)
ends = read.map("cells->nodes").table[:, :2].T
weights = np.ones((ends.max() + 1, 2), np.int64)
for effort in ("fast", "default", "strong"):
    partition(edge_index=ends, parts=5, effort=effort)
    partition(edge_index=ends, parts=3, weights=weights, shares=[1, 1, 2], room=0.5)
# What stands in for a solver's loop is compiled for the arguments of each loop.
MADE_FOR_A_LOOP = "meshprep.pipeline.measure"
used = [k for k in KERNELS if k.overloads and k.py_func.__module__ != MADE_FOR_A_LOOP]
print(len(used))
for kernel in used:
    if len(kernel.overloads) > 1:
        print(kernel.py_func.__module__, kernel.py_func.__qualname__, *kernel.signatures)
# Helpers are not kernels, but numba's dispatchers, which modules import from each other.
helpers = {
    id(value): value
    for name, module in sys.modules.items() if name.startswith("meshprep.")
    for value in vars(module).values()
    if hasattr(value, "overloads") and hasattr(value, "targetoptions")
}
for helper in helpers.values():
    if len(helper.overloads) > 1:
        print("helper", helper.py_func.__qualname__, *helper.overloads, sep="; ")
"""

# Helpers for values of several types, for vertices that are numbers of 32 bits in one kernel and
# of 64 in another, and small ones for constants.
FOR_SEVERAL_TYPES = {
    "_bits",
    "_coordinate",
    "_next_block",
    "_of_blocks",
    "_put_bytes",
    "_remove_from_queue",
    "bit",
    "breadth_first",
    "facets_between",
    "first_not_below",
    "largest",
    "position_in_sweep",
    "pseudo_diameter",
    "put_int",
    "scan_offsets",
    "smallest",
    "sort",
}


@pytest.mark.long
def test_every_kernel_and_nearly_every_helper_has_one_signature(tmp_path):
    made = subprocess.run(
        [sys.executable, "-c", RUNS, tmp_path],
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(sys.path), "MESHPREP_CACHE_DIR": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    count, *several = made.stdout.splitlines()
    assert int(count) > 50
    helpers = [line for line in several if line.startswith("helper; ")]
    assert several[: len(several) - len(helpers)] == []
    names = {line.split("; ")[1] for line in helpers}
    assert names <= FOR_SEVERAL_TYPES, helpers
