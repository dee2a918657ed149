"""The whole way once: generate a mesh, reorder it as a user would, run a loop from its plan.

    make demo

Everything lands in the folder ``demo``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from meshprep_runtime import ParLoop, Plan

FOLDER = Path("demo")
MESH, PLAN, LOOPS = FOLDER / "delaunay.msh", FOLDER / "delaunay.plan.h5", FOLDER / "loops.toml"

# A finite-volume loop: every edge reads the state of its two cells and adds a flux to both.
LOOP_TEXT = """\
[loop.diffusion]
over = "edges"
args = [
  { dat = "weight",  dim = 1, access = "read" },
  { dat = "state",   map = "edges->cells", dim = 4, access = "read" },
  { dat = "balance", map = "edges->cells", dim = 4, access = "inc" },
]
"""


def diffusion(weight, left, right, balance_left, balance_right):
    """The body for one edge."""
    for k in range(4):
        flux = weight[0] * (left[k] - right[k])
        balance_left[k] -= flux
        balance_right[k] += flux


def main() -> int:
    """Run the demonstration; returns 0 when the result is right."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    LOOPS.write_text(LOOP_TEXT)
    command("generate", "delaunay2d", "--cells", "200000", "-o", MESH)
    command("reorder", MESH, "--loops", LOOPS)
    command("check", PLAN, "--mesh", MESH)
    return run_loop(Plan.load(PLAN))


def command(*args: object) -> None:
    """Show and run a meshprep command."""
    words = [str(a) for a in args]
    print(f"\n$ meshprep {' '.join(words)}", flush=True)
    program = Path(sys.executable).with_name("meshprep")
    subprocess.run([program, *words], check=True)


def run_loop(plan: Plan) -> int:
    """Run the loop in blocks and in sequence, and compare."""
    edges, cells = plan.sizes["edges"], plan.sizes["cells"]
    random = np.random.default_rng(1)
    weight = random.random(edges)
    state = plan.ordering["cells"].apply(random.random((cells, 4)))
    left, right = plan.maps["edges->cells"].table.T
    reference = np.zeros((cells, 4))
    flux = weight[:, None] * (state[left] - state[right])
    np.subtract.at(reference, left, flux)
    np.add.at(reference, right, flux)

    print("\nloop 'diffusion' from the saved plan, on the CPU")
    worst = 0.0
    for strategy in ("sequential", "hierarchical"):
        loop = ParLoop(diffusion, plan["diffusion"], strategy=strategy)
        balance = np.zeros((cells, 4))
        loop(weight=weight, state=state, balance=balance)
        error = float(np.abs(balance - reference).max())
        seconds = best_of(5, lambda: loop(weight=weight, state=state, balance=balance))  # noqa: B023
        worst = max(worst, error)
        print(f"  {strategy:<13} {1e3 * seconds:6.2f} ms a call, largest difference {error:.1e}")
    right_answer = worst < 1e-12
    print("  the result", "equals" if right_answer else "DIFFERS FROM", "the sequential reference")
    return 0 if right_answer else 1


def best_of(times: int, work) -> float:
    """Seconds of the fastest of several calls."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    sys.exit(main())
