"""Sums over edges with JAX's ``segment_sum``, before and after an order (``docs/use/jax.md``).

    python benchmarks/bench_jax.py [TRIANGLES]

The edges of a triangulation by Gmsh, in the mesher's order and in a random one, and then as the
page orders them. All run in turns, and the least processor time of each counts. Needs JAX.
"""

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from bench_numpy import processor_time
from common import fastest, report
from mesher import mesher_file
from numpy.typing import NDArray

import meshprep

TURNS = 15


def main(triangles: int = 460_000) -> None:
    """Print and save the table."""
    jax.config.update("jax_enable_x64", True)
    mesh = meshprep.read(mesher_file("airfoil-triangles", triangles))
    points = mesh.coordinates
    assert points is not None
    cells = mesh.map("cells->nodes").table
    sides = cells[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    edges = np.unique(np.sort(sides), axis=0)

    # The same edges in a random order of points and of edges.
    random = np.random.default_rng(0)
    number = random.permutation(len(points))
    shuffled = number[edges][random.permutation(len(edges))]
    places = np.empty_like(points)
    places[number] = points

    works = {
        "the mesher's order": _work(edges, points[:, 0], False),
        "a random order": _work(shuffled, places[:, 0], False),
    }
    for method in ("gps", "hilbert"):
        ordered = meshprep.order(shuffled, places, method=method)
        by_points = np.sort(ordered.cells, axis=1)
        assert (np.diff(by_points[:, 0]) >= 0).all()
        u = ordered.ordering["points"].apply(places[:, 0])
        works[f"meshprep.order, {method}"] = _work(by_points, u, True)
    total = {name: float(np.abs(work()).sum()) for name, work in works.items()}
    assert np.allclose(list(total.values()), total["a random order"])

    seconds = fastest(works, TURNS, processor_time)
    rows = [
        {
            "edges": len(edges),
            "order": name,
            "ms": 1e3 * s,
            "times the mesher's": seconds["the mesher's order"] / s,
            "times a random one": seconds["a random order"] / s,
        }
        for name, s in seconds.items()
    ]
    report("jax", rows)


def _work(
    edges: NDArray[Any], u: NDArray[np.float64], is_sorted: bool
) -> Callable[[], NDArray[np.float64]]:
    """A function that sums what flows over the edges, as the page does."""
    ends = jnp.asarray(edges.astype(np.int32))
    values = jnp.asarray(u)
    n = len(u)

    @jax.jit
    def change(u: Any, ends: Any) -> Any:
        flux = u[ends[:, 1]] - u[ends[:, 0]]
        low = jax.ops.segment_sum(flux, ends[:, 0], n, indices_are_sorted=is_sorted)
        high = jax.ops.segment_sum(flux, ends[:, 1], n)
        return low - high

    return lambda: np.asarray(change(values, ends).block_until_ready())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
