"""Airfoil whole: the mesh, the plan, the five loops, two stages an iteration.

    python examples/airfoil.py --cells 720000 --iterations 1000

Prints the root mean square of the change every 100 iterations, and the time of each loop.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from kernels import airfoil as kernels
from meshprep.generate import generate
from meshprep.loops import read_requests
from meshprep.pipeline import Options, Prepared, prepare
from meshprep_runtime import ParLoop

LOOPS = ("save_soln", "adt_calc", "res_calc", "bres_calc", "update")


class Airfoil:
    """The state of the flow, in the numbering of a plan, and the loops that move it on."""

    def __init__(self, prepared: Prepared, strategy: str = "auto") -> None:
        plan = prepared.plan
        n = plan.sizes["cells"]
        self.n = n
        self.dats = {
            "x": coordinates(prepared),
            "q": np.tile(kernels.FREE_STREAM, (n, 1)),
            "qold": np.zeros((n, 4)),
            "adt": np.zeros(n),
            "res": np.zeros((n, 4)),
            "rms": np.zeros(1),
            "bound": plan.tags["boundary_edges"]["physical"],
        }
        self.loops = {
            name: ParLoop(getattr(kernels, name), plan[name], strategy=strategy) for name in LOOPS
        }
        self.seconds = dict.fromkeys(LOOPS, 0.0)
        self._given = {
            name: {a.name: self.dats[a.name] for a in plan[name].loop.args} for name in LOOPS
        }

    def steps(self, iterations: int) -> Iterator[float]:
        """Move on; yields the root mean square of the second stage's change after each."""
        for _ in range(iterations):
            self._run("save_soln")
            for _ in range(2):
                self.dats["rms"][0] = 0.0
                for name in LOOPS[1:]:
                    self._run(name)
            yield float(np.sqrt(self.dats["rms"][0] / self.n))

    def _run(self, name: str) -> None:
        start = time.perf_counter()
        self.loops[name](**self._given[name])
        self.seconds[name] += time.perf_counter() - start


def coordinates(prepared: Prepared) -> np.ndarray:
    """Node coordinates to six decimals, as OP2's mesh file has them: its sums depend on it."""
    return np.round(prepared.mesh.coordinates[:, :2], 6)


def prepared_airfoil(cells: int, block_size: int = 4096) -> Prepared:
    """The mesh in a better order, with the plan of all five loops."""
    loops = read_requests(Path(__file__).parent / "kernels" / "airfoil.toml")
    mesh = generate("airfoil", cells=cells)
    return prepare(mesh, loops, Options(block_size=block_size, target="cpu"))


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cells", type=int, default=720_000)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--strategy", default="auto")
    given = parser.parse_args()
    flow = Airfoil(prepared_airfoil(given.cells), given.strategy)
    for i, rms in enumerate(flow.steps(given.iterations), start=1):
        if i % 100 == 0:
            print(f"{i:6} {rms:.5e}", flush=True)
    for name, seconds in flow.seconds.items():
        print(f"{name:<10} {seconds:8.3f} s")


if __name__ == "__main__":
    main()
