"""The whole way once: generate a mesh, reorder it as a user would, time a loop before and after.

    make demo

Everything lands in the folder ``demo``.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numba import njit

from meshprep_runtime import ParLoop, Plan
from meshprep_runtime.cpu.pool import SETTLED, thread_count
from meshprep_runtime.plan.tuned import Timing

FOLDER = Path("demo")
MESH, PLAN, LOOPS = (
    FOLDER / "delaunay.msh",
    FOLDER / "delaunay.plan.h5",
    FOLDER / "loops.toml",
)
REPORT = FOLDER / "report.html"
CELLS = 400_000
TURNS = 15

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
    # the loop itself is timed below, in place of what would stand in for it
    command("reorder", MESH, "--loops", LOOPS, "--no-measure")
    command("check", PLAN, "--mesh", MESH)
    command("report", PLAN, "--mesh", MESH, "--html", REPORT, show=False)
    return run_loop(Plan.load(PLAN))


def command(*args: object, show: bool = True) -> None:
    """Show and run a meshprep command."""
    words = [str(a) for a in args]
    print(f"\n$ meshprep {' '.join(words)}", flush=True)
    program = Path(sys.executable).with_name("meshprep")
    subprocess.run(
        [program, *words], check=True, stdout=None if show else subprocess.DEVNULL
    )


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
        "input order, plain loop, 1 thread": lambda: plain_loop(
            before, weight, state, balance
        ),
        "plan's order, plain loop, 1 thread": lambda: plain_loop(
            edge_cells, new_weight, new_state, new_balance
        ),
        f"from the plan, ParLoop, up to {thread_count()} threads": lambda: loop(
            weight=new_weight, state=new_state, balance=from_plan
        ),
    }
    for run in runs.values():
        run()
    error = max(
        float(np.abs(cells.restore(other) - balance).max())
        for other in (new_balance, from_plan)
    )
    timings = in_turns(runs)
    print(f"\nloop 'diffusion', {edges.size:,} edges, on this processor: ms a call")
    print(f"  {'':<39} median, least to most of {TURNS}")
    first, ordered, last = timings.values()
    for name, timing in timings.items():
        least, median, most = (1e3 * t for t in (timing.least, timing.median, timing.most))
        factor = "" if timing is first else as_fast(timing, first)
        print(f"  {name:<39} {median:7.2f}, {least:.2f} to {most:.2f}   {factor}")
    right = error < 1e-12
    same = (
        "the same result" if right else f"ANOTHER RESULT (largest difference {error:.1e})"
    )
    print(f"\nReport: {REPORT}\n{verdict(first, ordered, last)}, with {same}.")
    if last.times_as_fast(first) is not None and last.median < first.median:
        prepared = sum(plan.metrics.seconds.values())
        calls = prepared / (first.median - last.median)
        print(f"{prepared:.1f} s of preparation are repaid after {calls:,.0f} calls.")
    return 0 if right else 1


def verdict(first: Timing, ordered: Timing, last: Timing) -> str:
    """What the times say of the plan."""
    if last.times_as_fast(first) is None:
        return (
            "This machine was too busy to tell how fast the plan runs this loop against the input "
            "order: times of the same work differ by more"
        )
    return (
        f"The plan runs this loop {as_fast(last, first)} as the input order on one thread "
        f"(by the order alone: {as_fast(ordered, first)})"
    )


def as_fast(fast: Timing, slow: Timing) -> str:
    """A factor, where noise cannot have made it."""
    factor = fast.times_as_fast(slow)
    return "too noisy to tell" if factor is None else f"{factor:.1f} times as fast"


def in_turns(works: Mapping[str, Callable[[], None]]) -> dict[str, Timing]:
    """How long calls take, in turns, after some in which a loop finds out how many threads pay."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(-SETTLED, TURNS):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            if turn >= 0:
                seconds[name].append(time.perf_counter() - start)
    return {name: Timing.of(times) for name, times in seconds.items()}


if __name__ == "__main__":
    sys.exit(main())
