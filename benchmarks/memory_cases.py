"""Predicted bytes of a GPU's memory, and times, beside those of a cycle simulator.

The simulator (GPGPU-Sim 4.2, privately run) executed this project's kernels on a fortieth of a
V100: res_calc of Airfoil, 20,000 cells, f8, AoS, blocks of 256, caches cold. What it counted stands
here; it had to be given a bandwidth of 22.45 GB/s, of which a copy reached 20.65.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from meshprep import Options, prepare
from meshprep.io.generate import generate
from meshprep.loops import read_requests
from meshprep.metrics.memory import memory_traffic
from meshprep.metrics.occupancy import DeviceLimits
from meshprep.metrics.ranking import Way, predicted_seconds
from meshprep.pipeline.steps import plan_request_maps
from meshprep.pipeline.variants import baseline_variant
from meshprep_runtime.plan import LoopPlan

FILE = Path(__file__).parent.parent / "examples" / "kernels" / "airfoil.toml"
CELLS, BLOCK_SIZE, KIB = 20_000, 256, 1024
# Two slices of cache at 1.13 GHz; the simulated rate is the fast end of what is assumed.
SIMULATED = DeviceLimits(
    *(2, 96 * KIB, 96 * KIB, 256, 0, 4),
    bandwidth=20.65,
    cache=192 * KIB,
    atomics=(2.26, 2.26),
)
# From cold caches a launch waits for memory several times before it moves much.
LAUNCH_SECONDS = 15e-6


@dataclass(frozen=True)
class Case:
    """One simulated call: MB read and written, microseconds, launches."""

    order: str
    strategy: str
    commit: str
    launches: int
    microseconds: float
    read: float
    written: float


CASES = (
    Case("blocks", "global-atomics", "colours", 1, 227, 2.45, 0.59),
    Case("blocks", "staged-gather", "atomics", 1, 247, 3.05, 0.67),
    Case("blocks", "staged-gather", "colours", 5, 257, 3.02, 0.67),
    Case("blocks", "hierarchical", "atomics", 1, 257, 2.66, 0.67),
    Case("blocks", "hierarchical", "colours", 5, 270, 2.64, 0.67),
    Case("blocks", "hierarchical-inc", "colours", 5, 275, 3.02, 0.67),
    Case("blocks", "two-step", "colours", 2, 468, 5.51, 3.16),
    Case("blocks", "global-colouring", "colours", 7, 663, 9.64, 2.54),
    Case("gps", "global-atomics", "colours", 1, 220, 2.41, 0.57),
    Case("gps", "hierarchical", "colours", 3, 345, 4.03, 1.13),
    Case("input", "global-atomics", "colours", 1, 218, 2.41, 0.57),
    Case("input", "hierarchical-inc", "colours", 3, 348, 4.62, 1.21),
    Case("input", "hierarchical", "colours", 3, 439, 4.34, 1.20),
    Case("shuffled", "global-atomics", "colours", 1, 1111, 7.45, 2.13),
    Case("shuffled", "hierarchical-inc", "colours", 94, 1534, 7.78, 1.74),
)


@cache
def plan_of(order: str, cells: int = CELLS) -> LoopPlan:
    """The loop in our blocks, in the order of GPS, or as generated or shuffled."""
    mesh = generate("airfoil", cells=cells, shuffle=order == "shuffled")
    request = next(r for r in read_requests(FILE) if r.name == "res_calc")
    if order in ("blocks", "gps"):
        target = "gpu" if order == "blocks" else "cpu"
        options = Options(block_size=BLOCK_SIZE, target=target)
        return prepare(mesh, [request], options).plan["res_calc"]
    full, (spec,) = plan_request_maps(mesh, [request])
    sizes = {name: s.size for name, s in full.sets.items()}
    maps = {name: full.map(name) for name in spec.loop.maps}
    variant = baseline_variant(spec.loop, maps, sizes, BLOCK_SIZE)
    return LoopPlan(spec.loop, sizes, maps, {variant.name: variant}, variant.name)


def rows() -> Iterator[dict[str, Any]]:
    """A row for each simulated call."""
    for case in CASES:
        plan = plan_of(case.order)
        variant = plan.variant()
        moved = memory_traffic(plan, variant, case.strategy, SIMULATED.cache, commit=case.commit)
        found = predicted_seconds(
            plan, Way(case.strategy, variant, case.commit), SIMULATED, 60, LAUNCH_SECONDS
        )
        if found is None:
            raise ValueError(f"no block fits: {case}")
        yield {
            "order": case.order,
            "strategy": case.strategy,
            "commit": case.commit,
            "launches": len(moved.launches),
            "simulated launches": case.launches,
            "MB": moved.nbytes / 1e6,
            "simulated MB": case.read + case.written,
            "MB / simulated": moved.nbytes / 1e6 / (case.read + case.written),
            "us": 1e6 * found[0],
            "simulated us": case.microseconds,
        }


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's: 1 where both have the same order."""
    ranks = [_ranks(np.asarray(values)) for values in (first, second)]
    return float(np.corrcoef(*ranks)[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    """Places in the order, equal ones sharing theirs."""
    return (values[:, None] > values).sum(axis=1) + 0.5 * (values[:, None] == values).sum(axis=1)
