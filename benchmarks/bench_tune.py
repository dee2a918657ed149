"""What tuning finds on this CPU for the five kernels of [S19], beside the rule of ``"auto"``.

Meshes have a tenth of the paper's elements. The rule's choice is one of the candidates, so that
both times come from one search.
"""

import sys
import time
from typing import Any

import numpy as np
from common import report
from gpu_cases import CASES, Case, mesh_of, values_of

from meshprep import Options, prepare
from meshprep.pipeline.tune import tune_plan
from meshprep_runtime import ParLoop


def main(scale: float = 0.1) -> None:
    """Print and save the table."""
    report("tune", [_row(case, scale) for case in CASES])


def _row(case: Case, scale: float) -> dict[str, Any]:
    mesh = mesh_of(case, scale)
    plan = prepare(mesh, [case.request], Options(target="cpu")).plan
    values = {
        name: np.ascontiguousarray(v) for name, v in values_of(plan[case.loop]).items()
    }
    rule = ParLoop(case.kernel, plan[case.loop]).strategy
    start = time.perf_counter()
    done = tune_plan(plan, case.loop, case.kernel, values=values)
    seconds = time.perf_counter() - start
    trials, best = done.tuned.trials, done.tuned.best
    own = plan[case.loop].default
    usual = next(
        t for t in trials if t.strategy == rule and t.variant in ("", own) and not t.soa
    )
    return {
        "loop": case.loop,
        "elements": plan.sizes[plan[case.loop].loop.over],
        "rule": f"{rule} {usual.variant}".strip(),
        "rule, ms": 1e3 * usual.seconds,
        "tuned": f"{best.strategy} {best.variant}".strip(),
        "SoA": " ".join(best.soa) or "-",
        "tuned, ms": 1e3 * best.seconds,
        "gain": usual.seconds / best.seconds,
        "spread": best.spread,
        "slowest tried": max(t.seconds for t in trials) / best.seconds,
        "candidates": len(trials),
        "tuning, s": seconds,
    }


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
