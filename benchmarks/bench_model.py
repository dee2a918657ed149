"""Predicted transactions beside those that [S19] measured on a P100, kernel by kernel.

    python benchmarks/bench_model.py [scale [case [block size]]]

``scale`` makes the meshes smaller; counts are then put beside the paper's share of elements.
Another block size than the paper's shows which one its reuse is of.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common import report

from meshprep import Options, prepare
from meshprep.io.generate import generate
from meshprep.loops.request_maps import plan_request_maps
from meshprep.loops.requests import LoopRequest, read_requests
from meshprep.mesh import Mesh
from meshprep.metrics.traffic import traffic
from meshprep.staging.build_variant import baseline_variant
from meshprep_runtime.plan import LoopPlan

KERNELS = Path(__file__).parent.parent / "examples" / "kernels"
# Local maps and thread colours of four bytes: the widths that fit what was measured.
PAPER = 4


@dataclass(frozen=True)
class Case:
    """A kernel of the paper: its table, loop, mesh, block size and what was measured.

    ``elements`` are the paper's. ``measured`` gives, by order and layout, thousands of
    reads and of writes; ``reuse`` by order. ``more`` are direct arguments that the paper counts
    and the example does without.
    """

    table: str
    program: str
    loop: str
    mesh: str
    size: dict[str, int]
    elements: int
    block_size: int
    reuse: dict[str, float]
    measured: dict[tuple[str, str], tuple[float, float] | None]
    mesh_options: tuple[tuple[str, str], ...] = ()
    more: tuple[dict[str, Any], ...] = ()


CASES = (
    Case(
        *("2", "airfoil", "res_calc", "airfoil", {"i": 800, "j": 1200}, 5_757_200, 480),
        reuse={"none": 2.0, "blocks": 3.6},
        measured={
            ("none", "aos"): (21_142, 5_807),
            ("none", "soa"): (21_275, 5_871),
            ("blocks", "aos"): (13_885, 3_429),
            ("blocks", "soa"): (14_325, 3_628),
        },
    ),
    Case(
        *("3", "volna", "space_discretization", "delaunay2d", {"cells": 2_400_000}),
        *(3_589_735, 307),
        reuse={"gps": 1.5, "blocks": 2.8},
        measured={
            ("gps", "aos"): (9_114, 2_438),
            ("gps", "soa"): (9_166, 2_512),
            ("blocks", "aos"): (7_493, 1_542),
            ("blocks", "soa"): (7_617, 1_640),
        },
        more=({"dat": "boundary", "dtype": "i4", "access": "read"},),
    ),
    Case(
        *("4", "lulesh", "integrate_stress", "box", {"nx": 170, "ny": 170, "nz": 170}),
        *(4_913_000, 320),
        reuse={"none": 2.6, "blocks": 4.8},
        measured={
            ("none", "aos"): (33_546, 12_674),
            ("none", "soa"): (35_395, 12_706),
            ("blocks", "aos"): (22_883, 8_052),
            ("blocks", "soa"): (25_006, 8_703),
        },
    ),
    Case(
        *(
            "-",
            "bookleaf",
            "getacc_scatter",
            "box",
            {"nx": 2000, "ny": 2000},
            4_000_000,
            256,
        ),
        reuse={"none": 2.0, "blocks": 3.5},
        measured={("none", "aos"): None, ("blocks", "aos"): None},
        mesh_options=(("type", "quad"),),
    ),
)


def main(scale: float = 1.0, chosen: str = "", block_size: str = "") -> None:
    """Print and save the table."""
    cases = [case for case in CASES if chosen in case.loop]
    if block_size:
        cases = [replace(case, block_size=int(block_size)) for case in cases]
    report("model", [row for case in cases for row in _rows(case, scale)])


def _rows(case: Case, scale: float) -> Iterator[dict[str, Any]]:
    mesh, request = _mesh(case, scale), _request(case)
    plans = {order: _plan(mesh, request, order, case.block_size) for order in case.reuse}
    for (order, layout), paper in case.measured.items():
        plan, found = plans[order]
        given = plan.loop, plan.maps, plan.sizes, plan.variant()
        ours, own = (
            traffic(*given, layout=layout, local=PAPER, colour=PAPER),
            traffic(*given, layout=layout),
        )
        yield {
            "table": case.table,
            "loop": case.loop,
            "order": order,
            "layout": layout,
            "elements": plan.sizes[plan.loop.over],
            "reuse": found["reuse"],
            "paper's reuse": case.reuse[order],
            **_beside("reads", ours.reads, paper and paper[0], case, plan, order),
            **_beside("writes", ours.writes, paper and paper[1], case, plan, order),
            "reads as plans store them, k": round(own.read / 1000),
            "block colours": found["block_colours"],
            "thread colours": found["thread_colours"],
        }


def _beside(
    what: str,
    ours: Mapping[str, int],
    paper: float | None,
    case: Case,
    plan: LoopPlan,
    order: str,
) -> dict[str, Any]:
    """Our count, the paper's, their ratio, and that of our model at the paper's reuse factor.

    The last scales what is reached through maps, so that it tells the model from the order.
    """
    count = sum(ours.values())
    row = {f"{what}, k": round(count / 1000), f"paper's {what}, k": paper}
    if paper is None:
        return row | {f"{what} / paper's": None, f"{what} at its reuse": None}
    theirs = 1000 * paper * plan.sizes[plan.loop.over] / case.elements
    change = _figures(plan)["reuse"] / case.reuse[order] - 1
    at_its_reuse = count + ours["indirect"] * change
    return row | {
        f"{what} / paper's": count / theirs,
        f"{what} at its reuse": at_its_reuse / theirs,
    }


def _mesh(case: Case, scale: float) -> Mesh:
    factor = scale ** (1 / len(case.size))
    size = {name: max(4, round(count * factor)) for name, count in case.size.items()}
    return generate(case.mesh, **size, **dict(case.mesh_options))


def _request(case: Case) -> LoopRequest:
    found = read_requests(KERNELS / f"{case.program}.toml")
    request = next(r for r in found if r.name == case.loop)
    args = [*request.values["args"], *case.more]
    return replace(request, values={**request.values, "args": args})


def _plan(
    mesh: Mesh, request: LoopRequest, order: str, block_size: int
) -> tuple[LoopPlan, dict[str, Any]]:
    """A plan of the order as generated, as GPS leaves it, or of our blocks; and its figures."""
    if order == "none":
        full, (spec,) = plan_request_maps(mesh, [request])
        sizes = full.sizes
        maps = {name: full.map(name) for name in spec.loop.maps}
        variant = baseline_variant(spec.loop, maps, sizes, block_size)
        plan = LoopPlan(spec.loop, sizes, maps, {variant.name: variant}, variant.name)
    else:
        target = "cpu" if order == "gps" else "gpu"
        options = Options(
            target=target,
            block_size=block_size,
            partition_options={} if order == "gps" else {"effort": "fast"},
        )
        plan = prepare(mesh, [request], options).plan[request.name]
    return plan, _figures(plan)


def _figures(plan: LoopPlan) -> dict[str, Any]:
    """Reuse of the points that the loop writes, as the paper gives it, and colours."""
    variant = plan.variant()
    written = next(iter(plan.loop.conflict_columns))
    loads = variant.staging[plan.maps[written].to_set].points.size
    return {
        "reuse": plan.maps[written].table.size / loads,
        "block_colours": variant.n_block_colours,
        "thread_colours": float(variant.thread_colours.mean()),
    }


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0, *sys.argv[2:4])
