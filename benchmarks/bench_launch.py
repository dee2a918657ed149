"""What a call of a loop costs on the host: Airfoil's res_calc on a mesh of 24 cells.

Beside it a function compiled by ``numba.njit`` that gets the same arrays and does nothing, and the
first call of a process with code on disk.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count, cycle

import numba
import numpy as np
from common import EXAMPLES, fastest, report

from kernels.airfoil import FREE_STREAM, res_calc
from meshprep.io.generate import generate
from meshprep.loops.requests import LoopRequest, read_requests
from meshprep.pipeline.steps import Options, prepare
from meshprep_runtime import LoopPlan, ParLoop, Program

STEP = {
    "over": "cells",
    "args": [
        {"dat": "u", "access": "rw"},
        {"dat": "v", "access": "read"},
        {"global": "dt", "access": "read"},
    ],
}
# Loops of a sequence, as of an iteration of Airfoil.
REPLAYED = 9
REPLAY = f"Program.replay, sequential, a loop of {REPLAYED}"
CALLS = 2000
TURNS = 15
IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def main() -> None:
    """Print and save the table."""
    asked = [
        *read_requests(EXAMPLES / "kernels" / "airfoil.toml")[:1],
        LoopRequest("step", STEP),
    ]
    prepared = prepare(
        generate("airfoil", cells=24), asked, Options(block_size=8, target="cpu")
    )
    plan = prepared.plan["res_calc"]
    arrays = _arrays(plan)
    works = {"numba.njit, same arrays": _numba(plan, arrays)}
    for strategy in ("sequential", "hierarchical"):
        works[f"ParLoop, {strategy}"] = _loop(plan, strategy, arrays)
    works["ParLoop, sequential, new arrays"] = _fresh(plan, arrays)
    again = ParLoop(res_calc, plan, strategy="sequential")
    works["ParLoop, sequential, new views"] = lambda: again(
        **{n: v[:] for n, v in arrays.items()}
    )
    works["ParLoop, sequential, another number"] = _numbers(prepared.plan["step"])
    program = Program(prepared.plan)
    loop = program.loop(res_calc, "res_calc", strategy="sequential")
    sets = {
        a.name: plan.maps[a.map].to_set if a.map else plan.loop.over for a in plan.loop.args
    }
    dats = {
        name: program.dat(sets[name], v[0].size, values=v) for name, v in arrays.items()
    }
    works["Program, sequential"] = lambda: loop(**dats)
    works[REPLAY] = program.replay(lambda: [loop(**dats) for _ in range(REPLAYED)])
    for work in works.values():
        for _ in range(8):
            work()
    best = fastest(works, TURNS, _seconds)
    best[REPLAY] /= REPLAYED
    own = best["numba.njit, same arrays"]
    rows = [
        {"call": n, "us": 1e6 * s, "against numba.njit": s / own} for n, s in best.items()
    ]
    rows += [
        {"call": f"import {name}", "us": 1e6 * _import(name), "against numba.njit": None}
        for name in ("meshprep_runtime", "numpy, h5py", "numba")
    ]
    report("launch", rows)


def _arrays(plan: LoopPlan) -> dict[str, np.ndarray]:
    n = plan.sizes["cells"]
    q = np.tile(FREE_STREAM, (n, 1))
    x = np.random.default_rng(0).random((plan.sizes["nodes"], 2))
    return {"x": x, "q": q, "adt": np.ones(n), "res": np.zeros((n, 4))}


def _numba(plan: LoopPlan, arrays: dict[str, np.ndarray]) -> Callable[[], None]:
    @numba.njit
    def nothing(*given: np.ndarray) -> None:
        pass

    given = [m.table for m in plan.maps.values()] + list(arrays.values())
    return lambda: nothing(*given)


def _loop(
    plan: LoopPlan, strategy: str, arrays: dict[str, np.ndarray]
) -> Callable[[], None]:
    loop = ParLoop(res_calc, plan, strategy=strategy)
    return lambda: loop(**arrays)


def _fresh(plan: LoopPlan, arrays: dict[str, np.ndarray]) -> Callable[[], None]:
    """Three sets of arrays in turn, so that each call has to check what it gets."""
    loop = ParLoop(res_calc, plan, strategy="sequential")
    turn = cycle([arrays, _arrays(plan), _arrays(plan)])

    def work() -> None:
        loop(**next(turn))

    return work


def step(u: np.ndarray, v: np.ndarray, dt: np.ndarray) -> None:
    u[0] += dt[0] * v[0]


def _numbers(plan: LoopPlan) -> Callable[[], None]:
    """A time step that is another one in each call."""
    loop, (u, v) = (
        ParLoop(step, plan, strategy="sequential"),
        np.ones((2, plan.sizes["cells"])),
    )
    steps = count(1)
    return lambda: loop(u=u, v=v, dt=1.0 / next(steps))


def _seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        work()
    return (time.perf_counter() - start) / CALLS


def _import(name: str) -> float:
    """Seconds of an import in a process of its own, the fastest of five."""
    words = [sys.executable, "-c", IMPORT.format(name)]
    return min(float(subprocess.check_output(words)) for _ in range(5))


if __name__ == "__main__":
    main()
