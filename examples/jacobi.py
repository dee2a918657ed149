"""Jacobi's iteration on a square of n x n cells, values on the inner points [G10 section 5].

    python examples/jacobi.py --cells 100 --iterations 2000
    python examples/jacobi.py --device gpu

Laplace's equation with the value 1 around the square, so that 1 is the answer everywhere. From zero
the error falls by cos(pi / n) an iteration. The points are shuffled first: the plan orders them.
"""

import argparse
import sys
from collections.abc import Iterator
from math import cos, pi
from pathlib import Path

import numpy as np

import meshprep
from kernels import jacobi as kernels
from meshprep import Mesh, Options
from meshprep_runtime import MeshprepError, Program
from meshprep_runtime.cuda.device import Device, current

LOOPS = Path(__file__).parent / "kernels" / "jacobi.toml"


def laplace(n: int, seed: int = 0) -> tuple[Mesh, np.ndarray, np.ndarray]:
    """The entries of the matrix as a mesh, their values, and the right-hand side."""
    number = np.full((n + 1, n + 1), -1)
    number[1:-1, 1:-1] = (
        np.random.default_rng(seed).permutation((n - 1) ** 2).reshape(n - 1, -1)
    )
    inside = number[1:-1, 1:-1].ravel()
    beside = [number[1 + i : n + i, 1 + j : n + j].ravel() for i, j in NEIGHBOURS]
    pairs = np.concatenate(
        [np.column_stack([inside, other]) for other in (inside, *beside)]
    )
    a = np.where(pairs[:, 0] == pairs[:, 1], 1.0, -0.25)
    inner = pairs[:, 1] >= 0
    # What the entries of the points around would take is on the right-hand side.
    b = np.bincount(pairs[~inner, 0], -a[~inner], len(inside))
    sets = {"rows": len(inside), "entries": inner.sum()}
    return Mesh(sets, {"entries->rows": pairs[inner]}), a[inner], b


NEIGHBOURS = ((-1, 0), (1, 0), (0, -1), (0, 1))


class Jacobi:
    """The iteration for the matrix of a mesh, in the numbering of a plan.

    With a device the dats lie there; what is reduced stays on the host.
    """

    def __init__(
        self,
        mesh: Mesh,
        a: np.ndarray,
        b: np.ndarray,
        block_size: int | None = None,
        device: Device | None = None,
        **options: str,
    ) -> None:
        requests = meshprep.read_requests(LOOPS)
        size, target = (4096, "cpu") if device is None else (256, "gpu")
        made = Options(block_size=block_size or size, target=target)
        plan = meshprep.prepare(mesh, requests, made).plan
        program = Program(plan)
        self.rows = plan.ordering["rows"]
        values = {"a": plan.ordering["entries"].apply(a), "b": self.rows.apply(b)}
        values |= {"u": np.zeros(len(b)), "change": np.zeros(len(b))}
        put = np.asarray if device is None else device.array
        self.dats = {name: put(v) for name, v in values.items()}
        self.multiply = program.loop(kernels.multiply, "multiply", **options)
        self.update = program.loop(kernels.update, "update", **options)

    def steps(self, iterations: int) -> Iterator[tuple[float, float]]:
        """Move on; yields the root of the sum of squares of the change, and the largest change."""
        for _ in range(iterations):
            square, largest = np.zeros(1), np.zeros(1)
            self.multiply(**{name: self.dats[name] for name in ("a", "u", "change")})
            given = {name: self.dats[name] for name in ("b", "u", "change")}
            self.update(**given, square=square, largest=largest)
            yield float(square[0] ** 0.5), float(largest[0])

    @property
    def u(self) -> np.ndarray:
        """The values, in the order of the mesh."""
        u = self.dats["u"]
        return np.array(self.rows.restore(u if isinstance(u, np.ndarray) else u.get()))


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cells", type=int, default=100, help="a side")
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    given = parser.parse_args()
    try:
        device = current() if given.device == "gpu" else None
    except MeshprepError as error:
        sys.exit(f"error: {error}")
    jacobi = Jacobi(*laplace(given.cells), device=device)
    last = 0.0
    for i, (root, largest) in enumerate(jacobi.steps(given.iterations), start=1):
        if i % max(1, given.iterations // 10) == 0:
            print(
                f"{i:6} change {root:.5e}, largest {largest:.5e}, fell by {root / last:.6f}"
            )
        last = root
    print(
        f"cos(pi / n) is {cos(pi / given.cells):.6f}; error {np.abs(jacobi.u - 1).max():.5e}"
    )


if __name__ == "__main__":
    main()
