"""The page "From np.add.at to a ParLoop", step by step: what each step gains over NumPy.

The blocks of ``docs/use/numpy.md`` run as they stand, with more points, and the loop of
``docs/use/numba.md`` in its form for edges. All take turns on one thread, and the least processor
time of each counts, so that others on the machine change little. The last row is wall time on all
threads over that on one.
"""

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from common import fastest, report, timed

import meshprep
from meshprep_runtime import ParLoop

PAGE = Path(__file__).parents[1] / "docs" / "use" / "numpy.md"
# Of a ParLoop that finds out which form of its code is the fastest.
CALLS = 40
TURNS = 12


def main(points: int = 1_000_000) -> None:
    """Print and save the table."""
    text = PAGE.read_text(encoding="utf-8")
    student, order, plan = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    student = student.replace("(3000, 2)", f"({points}, 2)")

    # The names of each step, with the arrays as that step has them.
    given: dict[str, Any] = {}
    exec(student, given)
    ordered: dict[str, Any] = {}
    exec(student + order, ordered)
    planned = ordered.copy()
    exec(plan, planned)

    numba.set_num_threads(1)
    loop = _par_loop(planned)
    ways = {
        "np.add.at": lambda: given["change_of"](given["u"]),
        "np.add.at, ordered": lambda: ordered["change_of"](ordered["u"]),
        "numba, colour after colour": _by_colours(ordered),
        "ParLoop": loop,
    }
    for _ in range(CALLS):
        loop()
    seconds = fastest(ways, TURNS, processor_time)
    rows = [
        {"step": name, "ms": 1e3 * s, "times": seconds["np.add.at"] / s}
        for name, s in seconds.items()
    ]

    # The loop alone on more threads, by the clock.
    on_one = fastest({"": loop}, TURNS, timed)[""]
    threads = numba.config.NUMBA_NUM_THREADS
    numba.set_num_threads(threads)
    for _ in range(CALLS):
        loop()
    on_all = fastest({"": loop}, TURNS, timed)[""]
    name = f"ParLoop, {threads} threads over one, wall time"
    rows.append({"step": name, "ms": 1e3 * on_all, "times": on_one / on_all})
    report("numpy", rows)


def processor_time(work: Callable[[], Any]) -> float:
    """Seconds of the processor that this process takes for one run."""
    start = time.process_time()
    work()
    return time.process_time() - start


def _by_colours(names: dict[str, Any]) -> Callable[[], Any]:
    """Edges of one colour at once, in the order of the colours."""
    colour = meshprep.colour(names["edges"])
    by_colour = np.argsort(colour, kind="stable")
    first = np.searchsorted(colour[by_colour], np.arange(colour.max() + 2))
    edges = names["edges"][by_colour]
    flow = names["flow"][by_colour]
    u = names["u"]

    def work() -> Any:
        change = np.zeros_like(u)
        carry_by_colours(u, edges, flow, first, change)
        return change

    return work


@numba.njit(parallel=True, cache=True)
def carry_by_colours(u: Any, edges: Any, flow: Any, first: Any, change: Any) -> None:
    """The loop of the page on numba, for edges."""
    for k in range(len(first) - 1):
        for e in numba.prange(first[k], first[k + 1]):
            a = edges[e, 0]
            b = edges[e, 1]
            carried = flow[e] * (u[a] if flow[e] > 0 else u[b])
            change[a] -= carried
            change[b] += carried


def _par_loop(names: dict[str, Any]) -> Callable[[], Any]:
    loop = ParLoop(names["carry"], names["plan"]["carry"])
    u = names["u"]
    flow = names["flow"]

    def work() -> Any:
        change = np.zeros_like(u)
        loop(u=u, flow=flow, change=change)
        return change

    return work


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
