"""Executed instructions: what the plan says of loads, atomics and barriers."""

import os
from pathlib import Path

import numpy as np
import pytest

from meshprep_runtime import MissingPackageError
from meshprep_runtime.cuda import DeviceFunction, program

FLOW = DeviceFunction(
    "flow",
    """\
__device__ double mean(double a, double b) { return 0.5 * (a + b); }
__device__ void flow(const double* x1, const double* x2, const double* q1, const double* q2,
                     const double* adt1, const double* adt2, double* res1, double* res2) {
  for (int k = 0; k < 4; ++k) {
    const double f = (q1[k] - q2[k]) * (x1[0] - x2[1]) + mean(adt1[0], adt2[0]);
    res1[k] += f;
    res2[k] -= f;
  }
}
""",
)
BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
pytestmark = pytest.mark.usefixtures("needs_gxx")


@pytest.fixture
def count(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from executed import executed

    def count(plan, strategy, **options):
        made = program(FLOW, plan["res_calc"], strategy, **options)
        shapes = {"x": (35, 2), "q": (24, 4), "adt": (24, 1), "res": (24, 4)}
        try:
            return executed(
                made, **{k: np.ones(shape) for k, shape in shapes.items()}
            ), made
        except MissingPackageError as error:
            if "MESHPREP_REQUIRE_C" in os.environ:
                raise
            pytest.skip(str(error))

    return count


def test_without_blocks(count, airfoil):
    """38 edges in two warps; an atomic for each of four components of two cells."""
    found, _ = count(airfoil, "global-atomics", threads=64, vectors=False)
    assert found.threads["global atomic"] == 8
    # A component of two points, q and adt of two cells, and all points of an edge at once.
    assert found.threads["global load"] == 2 + 8 + 2 + 1
    assert found.threads["floating"] >= 4 * 2
    assert "barrier" not in found.threads
    assert found.total == sum(found.threads.values())
    # The second warp has six edges, but issues for 32 lanes.
    issued = found.warps * 38 / 64
    assert issued == pytest.approx(round(issued))
    assert found.total * 1.4 < found.warps < found.total * 64 / 38


@pytest.mark.parametrize("strategy", ["hierarchical", "block-permute"])
def test_several_elements_a_thread(strategy, count, airfoil):
    """Threads meet after staging, and in each round after each colour that they go through."""
    found, made = count(airfoil, strategy, variant="s8", threads=3)
    v = airfoil["res_calc"].variants["s8"]
    barriers = 0
    for b, colours in enumerate(v.thread_colours):
        own = v.thread_colour[v.block_offset[b] : v.block_offset[b + 1]].astype(int)
        if strategy == "block-permute":
            # Sorted: from the first colour of the round to the last.
            rounds = [np.sort(own)[i : i + 3] for i in range(0, own.size, 3)]
            barriers += 1 + sum(int(r[-1] - r[0]) + 1 for r in rounds)
        else:
            barriers += 1 + -(-own.size // 3) * int(colours)
    assert made.threads == 3
    assert found.threads["barrier"] == pytest.approx(3 * barriers / 38)


def test_blocks_by_colour(count, airfoil):
    """Loops are weighed by their rounds, which the plan tells."""
    found, made = count(airfoil, "hierarchical", variant="s8")
    v = airfoil["res_calc"].variants["s8"]
    barriers = made.threads * (v.n_blocks + int(v.thread_colours.sum()))
    assert found.threads["barrier"] == pytest.approx(barriers / 38)
    points = {name: np.diff(staging.point_offset) for name, staging in v.staging.items()}
    both = int(np.maximum(points["cells"], points["nodes"]).sum())
    cells = int(points["cells"].sum())
    # What every thread asks of its block, and every edge of its colour and points; of a cell its
    # number, two pieces of q and res, and adt, of a node its number and x; the number once more.
    loads = 2 * made.threads * v.n_blocks + 2 * 38 + both * (6 + 2) + cells
    assert found.threads["global load"] == pytest.approx(loads / 38, rel=0.05)
    assert found.threads["global store"] == pytest.approx(2 * cells / 38)
    assert "global atomic" not in found.threads
