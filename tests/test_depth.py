"""From a command to the innermost move: so many functions a reader opens, one after another."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from meshprep.io import write
from meshprep.io.generate import generate

ROOT = Path(__file__).parents[1]
MOST_CALLS = 10

# Runs a command with kernels as Python has them, up to the first move of a cluster to another
# block; prints the functions that led to it, the innermost first.
TRACED = """
import os
import sys
import numba

class Plain:
    get_call_template = None

    def __init__(self, function):
        self.py_func = function

    def __call__(self, *args, **kwargs):
        if self.py_func.__name__ == "move":
            frame = sys._getframe(1)
            while frame is not None:
                print(frame.f_code.co_filename, frame.f_code.co_qualname, file=sys.__stderr__)
                frame = frame.f_back
            os._exit(0)
        return self.py_func(*args, **kwargs)

numba.njit = lambda *function, **options: Plain(*function) if function else Plain
from meshprep_cli.main import main

sys.exit(main(sys.argv[1:]))
"""


def calls_to_move(*command):
    """The functions of meshprep from a command to the first move of a cluster."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "NUMBA_NUM_THREADS": "1",
    }
    made = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TRACED, *map(str, command)],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [line for line in made.stderr.splitlines() if line.startswith(str(ROOT))]
    found = [line.split(maxsplit=1) for line in lines]
    # a comprehension is part of the function that it stands in, a kernel's call of the kernel
    left_out = (">", "CachedKernel.__call__")
    names = [f"{Path(path).stem}.{name}" for path, name in found if not name.endswith(left_out)]
    return ["counts.move", *names[: names.index("reorder.run") + 1]][::-1]


@pytest.mark.parametrize(
    ("kind", "options", "search"),
    [
        ("delaunay2d", {"cells": 300}, "search.Search.multilevel"),
        ("box", {"nx": 20, "ny": 20, "nz": 0, "type": "quad"}, "annealing.Annealing.improve"),
    ],
)
def test_ten_calls_lead_from_a_command_to_the_innermost_move(kind, options, search, tmp_path):
    mesh = tmp_path / "mesh.msh"
    write(generate(kind, **options), mesh)
    names = calls_to_move("reorder", mesh, "--block-size", "64", "-q")
    assert names[:3] == ["reorder.run", "workflow.run", "steps.draft"]
    assert search in names
    assert len(names) - 1 <= MOST_CALLS, names
