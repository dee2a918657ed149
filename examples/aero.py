"""Aero whole: a potential flow around NACA0012, Newton's method with conjugate gradients inside.

    python examples/aero.py --cells 720000

Eight loops on the mesh of Airfoil: matrices of the cells are stored and never added up. Inner
iterations stop at a tenth of the residual, or at 200. Prints the root mean square of each Newton
step, the inner iterations, and the time of each loop.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from kernels import aero as kernels
from meshprep.io.generate import generate
from meshprep.io.generate.airfoil import FARFIELD
from meshprep.loops.requests import read_requests
from meshprep.mesh import Dat, Mesh
from meshprep.pipeline.steps import Options, Prepared, prepare
from meshprep.topology import derive
from meshprep_runtime import Program

REQUESTS = Path(__file__).parent / "kernels" / "aero.toml"
LOOPS = (
    "res_calc",
    "spmv",
    "dirichlet",
    "init_cg",
    "dot_pv",
    "update_ur",
    "update_p",
    "update",
)
MOST_INNER, INNER_TOLERANCE = 200, 0.1


class Aero:
    """The potential at the nodes, in the numbering of a plan, and the loops that improve it."""

    def __init__(self, prepared: Prepared, strategy: str = "auto") -> None:
        x = np.ascontiguousarray(prepared.mesh.coordinates[:, :2])
        program = self.program = Program(prepared.plan)
        self.nodes = len(x)
        phi = kernels.MACH * x[:, 0]
        self.x, self.phi = (
            program.dat("nodes", 2, values=x),
            program.dat("nodes", values=phi),
        )
        self.k = program.dat("cells", 10)
        self.res, self.u, self.v, self.p = (program.dat("nodes") for _ in range(4))
        self.c1, self.c2, self.c3, self.rms = (program.reduced() for _ in range(4))
        self.loops = {
            name: program.loop(getattr(kernels, name), name, strategy=strategy)
            for name in LOOPS
        }

    def steps(self, newton: int = 20) -> Iterator[tuple[float, int]]:
        """Improve the potential; yields the root mean square and the inner iterations of each."""
        run = self.loops
        for _ in range(newton):
            run["res_calc"](x=self.x, phi=self.phi, k=self.k, res=self.res)
            run["dirichlet"](value=self.res)
            inner = self._solve()
            self.rms.set(0.0)
            run["update"](u=self.u, phi=self.phi, res=self.res, rms=self.rms)
            yield float(np.sqrt(self.rms.value[0] / self.nodes)), inner

    def _solve(self) -> int:
        """Conjugate gradients for the step u; returns their iterations."""
        run = self.loops
        self.c1.set(0.0)
        run["init_cg"](res=self.res, u=self.u, v=self.v, p=self.p, c1=self.c1)
        first = old = float(self.c1.value[0])
        inner = 0
        while old > INNER_TOLERANCE**2 * first and inner < MOST_INNER:
            run["spmv"](k=self.k, p=self.p, v=self.v)
            run["dirichlet"](value=self.v)
            self.c2.set(0.0)
            run["dot_pv"](p=self.p, v=self.v, c2=self.c2)
            self.c3.set(0.0)
            alpha = old / float(self.c2.value[0])
            run["update_ur"](
                p=self.p, u=self.u, res=self.res, v=self.v, alpha=alpha, c3=self.c3
            )
            new = float(self.c3.value[0])
            run["update_p"](res=self.res, p=self.p, beta=new / old)
            old, inner = new, inner + 1
        return inner


def prepared_aero(cells: int, block_size: int = 4096) -> Prepared:
    """The mesh of Airfoil with its far nodes as a set, in a better order, and the plan."""
    full = derive(generate("airfoil", cells=cells), ["boundary_edges->nodes"])
    tag = full.tag("physical", "boundary_edges")
    far = full.map("boundary_edges->nodes").table[tag.first_ids() == FARFIELD]
    nodes = np.unique(far)[:, None].astype(np.int32)
    sets = {"cells": full.size("cells"), "nodes": full.size("nodes"), "fixed": len(nodes)}
    maps = {"cells->nodes": full.map("cells->nodes").table, "fixed->nodes": nodes}
    mesh = Mesh(sets, maps, [Dat("coordinates", "nodes", full.coordinates[:, :2])])
    return prepare(
        mesh, read_requests(REQUESTS), Options(block_size=block_size, target="cpu")
    )


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cells", type=int, default=720_000)
    parser.add_argument("--newton", type=int, default=20, help="steps")
    parser.add_argument("--strategy", default="auto")
    given = parser.parse_args()
    flow = Aero(prepared_aero(given.cells), given.strategy)
    for i, (rms, inner) in enumerate(flow.steps(given.newton), start=1):
        print(f"{i:4} rms {rms:.5e}, {inner} inner iterations", flush=True)
    print(flow.program.timings())


if __name__ == "__main__":
    main()
