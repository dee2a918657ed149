"""What blocks that list their elements cost and gain on the CPU, for meshes that keep their order.

An increment of four values through ``edges->cells``, with direct values of some size besides. A
plan with lists is compared with the same blocks over renumbered edges, the cells being where they
are (what the list alone costs); with runs of the mesh's order; with the mesh as it stands; and with
everything renumbered. One thread, processor time; all take turns, and the fastest turn counts.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np
from common import fastest, mesh_of, report, table

from meshprep.loops.reach import maps_by_place
from meshprep.loops.requests import LoopRequest
from meshprep.mesh import Mesh
from meshprep.pipeline.steps import Options, prepare
from meshprep.topology import derive
from meshprep_runtime import LoopPlan, ParLoop

MAP = "edges->cells"
TURNS = 60
# Doubles of an edge, read directly.
DIRECT = (0, 1, 8)
REFERENCE = "edges renumbered"


@dataclass(frozen=True)
class Case:
    """One row, and the work of one turn."""

    order: str
    direct: int
    way: str
    reuse: float | None
    run: Callable[[], None]


def main(cells: int = 500_000) -> None:
    """Print and save the table."""
    numba.set_num_threads(1)
    shuffled = derive(mesh_of("delaunay2d", cells), [MAP])
    banded = prepare(shuffled, [_request(0)], Options(target="cpu")).mesh
    grid = [
        (o, m, d) for o, m in (("shuffled", shuffled), ("banded", banded)) for d in DIRECT
    ]
    predicted = [_predicted(*point) for point in grid]
    table(predicted)
    report(
        "lists", _rows([case for point in grid for case in _cases(*point)]), gpu=predicted
    )


def _request(direct: int) -> LoopRequest:
    args: list[dict[str, Any]] = [
        {"dat": "q", "map": MAP, "dim": 4},
        {"dat": "r", "map": MAP, "dim": 4, "access": "inc"},
    ]
    if direct:
        args.insert(0, {"dat": "w", "dim": direct})
    return LoopRequest("flux", {"over": "edges", "args": args}, "bench")


def _flux(q1: Any, q2: Any, r1: Any, r2: Any) -> None:
    for k in range(4):
        f = 0.5 * (q1[k] - q2[k])
        r1[k] += f
        r2[k] -= f


def _weighted(w: Any, q1: Any, q2: Any, r1: Any, r2: Any) -> None:
    for k in range(4):
        f = w[k % w.size] * (q1[k] - q2[k])
        r1[k] += f
        r2[k] -= f


def _predicted(order: str, mesh: Mesh, direct: int) -> dict[str, Any]:
    """Predicted memory transactions of a call on a GPU, in millions, and block colours."""
    row: dict[str, Any] = {"order": order, "direct f8": direct}
    ways = {
        "runs": (True, None),
        "lists": (True, "blocks"),
        "all renumbered": (False, "blocks"),
    }
    for way, (keep, partition) in ways.items():
        plan = prepare(
            mesh, [_request(direct)], Options(partition=partition), keep_order=keep
        ).plan
        found = plan.metrics.loops["flux"].variants[plan["flux"].default].after
        row |= {
            way: found.traffic["aos"].total / 1e6,
            f"{way}: colours": found.block_colours,
        }
    return row


def _cases(order: str, mesh: Mesh, direct: int) -> list[Case]:
    def planned(keep: bool, partition: str | None) -> LoopPlan:
        options = Options(target="cpu", partition=partition)
        return prepare(mesh, [_request(direct)], options, keep_order=keep).plan["flux"]

    listed = planned(True, "blocks")
    ways = {
        "as it stands": (planned(True, None), "sequential"),
        "runs": (planned(True, None), "hierarchical"),
        "lists": (listed, "hierarchical"),
        REFERENCE: (_moved(listed), "hierarchical"),
        "all renumbered": (planned(False, "blocks"), "hierarchical"),
    }
    return [
        _case(order, direct, way, plan, strategy) for way, (plan, strategy) in ways.items()
    ]


def _moved(plan: LoopPlan) -> LoopPlan:
    """The same blocks, over edges that are numbered as the blocks take them."""
    variant = plan.variant()
    maps = dict(maps_by_place(plan.maps, variant.elements))
    return replace(
        plan, maps=maps, variants={plan.default: replace(variant, elements=None)}
    )


def _case(order: str, direct: int, way: str, plan: LoopPlan, strategy: str) -> Case:
    rng = np.random.default_rng(1)
    n, n_cells = plan.sizes["edges"], plan.sizes["cells"]
    arrays = {"q": rng.random((n_cells, 4)), "r": np.zeros((n_cells, 4))}
    if direct:
        arrays["w"] = rng.random((n, direct))
    loop = ParLoop(_weighted if direct else _flux, plan, strategy=strategy)

    def run() -> None:
        loop(**arrays)

    run()
    reuse = None
    if strategy != "sequential":
        reuse = 2 * n / plan.variant().staging["cells"].points.size
    return Case(order, direct, way, reuse, run)


def _seconds(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _rows(cases: list[Case]) -> list[dict[str, Any]]:
    best = fastest({c: c.run for c in cases}, TURNS, _seconds)
    reference = {(c.order, c.direct): b for c, b in best.items() if c.way == REFERENCE}
    return [
        {
            "order": c.order,
            "direct f8": c.direct,
            "blocks": c.way,
            "reuse": c.reuse,
            "ms": 1e3 * b,
            f"against {REFERENCE}": b / reference[c.order, c.direct],
        }
        for c, b in best.items()
    ]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
