"""The whole way once: generate a mesh, reorder it as a user would, time a loop before and after.

    make demo

Everything lands in the folder ``demo``.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numba import get_num_threads, njit

from meshprep_runtime import ParLoop, Plan

FOLDER = Path("demo")
MESH, PLAN, LOOPS = FOLDER / "delaunay.msh", FOLDER / "delaunay.plan.h5", FOLDER / "loops.toml"
REPORT = FOLDER / "report.html"
CELLS = 400_000

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


@njit
def plain_loop(edge_cells, weight, state, balance):
    """The same loop as a solver without meshprep has it."""
    for e in range(edge_cells.shape[0]):
        left, right = edge_cells[e]
        for k in range(4):
            flux = weight[e] * (state[left, k] - state[right, k])
            balance[left, k] -= flux
            balance[right, k] += flux


def main() -> int:
    """Run the demonstration; returns 0 when the result is right."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    LOOPS.write_text(LOOP_TEXT)
    command("generate", "delaunay2d", "--cells", CELLS, "-o", MESH)
    command("reorder", MESH, "--loops", LOOPS)
    command("check", PLAN, "--mesh", MESH)
    command("report", PLAN, "--mesh", MESH, "--html", REPORT, show=False)
    return run_loop(Plan.load(PLAN))


def command(*args: object, show: bool = True) -> None:
    """Show and run a meshprep command."""
    words = [str(a) for a in args]
    print(f"\n$ meshprep {' '.join(words)}", flush=True)
    program = Path(sys.executable).with_name("meshprep")
    subprocess.run([program, *words], check=True, stdout=None if show else subprocess.DEVNULL)


def run_loop(plan: Plan) -> int:
    """Run the loop in the input order and from the plan; compare times and results."""
    cells, edges = plan.ordering["cells"], plan.ordering["edges"]
    edge_cells = plan.maps["edges->cells"].table
    random = np.random.default_rng(1)
    state, weight = random.random((cells.size, 4)), random.random(edges.size)
    before = cells.new_to_old[edge_cells][edges.old_to_new]
    new_state, new_weight = cells.apply(state), edges.apply(weight)
    loop = ParLoop(diffusion, plan["diffusion"])

    balance, new_balance, from_plan = (np.zeros_like(state) for _ in range(3))
    runs: dict[str, Callable[[], None]] = {
        "input order, plain loop, 1 thread": lambda: plain_loop(before, weight, state, balance),
        "plan's order, plain loop, 1 thread": lambda: plain_loop(
            edge_cells, new_weight, new_state, new_balance
        ),
        f"from the plan, ParLoop, {get_num_threads()} threads": lambda: loop(
            weight=new_weight, state=new_state, balance=from_plan
        ),
    }
    for run in runs.values():
        run()
    error = max(
        float(np.abs(cells.restore(other) - balance).max()) for other in (new_balance, from_plan)
    )
    seconds = {name: best_of(9, run) for name, run in runs.items()}
    first, ordered, last = seconds.values()
    print(f"\nloop 'diffusion', {edges.size:,} edges, on this processor")
    for name, value in seconds.items():
        print(f"  {name:<38} {1e3 * value:7.2f} ms a call   {first / value:5.2f} times as fast")
    right = error < 1e-12
    same = "the same result" if right else f"ANOTHER RESULT (largest difference {error:.1e})"
    prepared = sum(plan.metrics.seconds.values())
    print(
        f"\nReport: {REPORT}\nThe plan runs this loop {first / last:.1f} times as fast as the "
        f"input order on one thread ({first / ordered:.1f} times by the order alone), with {same}; "
        f"{prepared:.1f} s of preparation are repaid after {prepared / (first - last):,.0f} calls."
    )
    return 0 if right else 1


def best_of(times: int, work: Callable[[], None]) -> float:
    """Seconds of the fastest of several calls."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    sys.exit(main())
