"""Airfoil tile by tile: bytes and redundancy of tile sizes, times beside the untiled loops.

Times are of processor, not of the clock, and the least of several turns, since tiles and loops take
turns on one thread: waiting and other programs count little. Run it on an idle machine all the
same. Two chains a size: all dats stored, and ``qold``, ``adt`` dropped with ``res`` zero.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from common import report

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "examples"))

from airfoil import LOOPS, Airfoil, prepared_airfoil  # noqa: E402
from meshprep.pipeline.steps import Prepared  # noqa: E402
from meshprep_runtime.program.chains.traffic import tiled_bytes, untiled_bytes  # noqa: E402

LENGTH = 9
SIZES = (1024, 4096, 16384, 65536)
DROPPED, ZERO = ("qold", "adt"), ("res",)
TURNS, STEPS = 5, 4


class Way:
    """One way to run the iterations, and what they took."""

    def __init__(self, prepared: Prepared, size: int | None, lean: bool) -> None:
        self.flow = Airfoil(prepared, "sequential" if size is None else "auto")
        self.size, self.lean = size, lean
        self.chain: Any = None
        if size is not None:
            dats = self.flow.program_dats
            kept = {"dropped": [dats[d] for d in DROPPED], "zero": [dats[d] for d in ZERO]}
            self.chain = self.flow.program.chain(LENGTH, tile_size=size, **(kept if lean else {}))
        self.residuals: list[float] = []
        self.best = float("inf")
        self.first = self._seconds(1)

    def turn(self, steps: int) -> None:
        """Run some iterations, and keep the best time of one."""
        self.best = min(self.best, self._seconds(steps) / steps)

    def _seconds(self, steps: int) -> float:
        start = time.process_time()
        self.residuals += self._run(steps)
        return time.process_time() - start

    def _run(self, steps: int) -> Iterator[float]:
        if self.chain is None:
            return self.flow.steps(steps)
        with self.chain:
            return iter(list(self.flow.steps(steps)))


def main(cells: int = 120_000, iterations: int = TURNS * STEPS) -> None:
    """Print and save the table."""
    numba.set_num_threads(1)
    prepared = prepared_airfoil(cells, block_size=512, target="gpu")
    ways = [Way(prepared_airfoil(cells), None, False), Way(prepared, None, False)]
    ways += [Way(prepared, size, lean) for size in SIZES for lean in (False, True)]
    for _ in range(0, iterations, STEPS):
        for way in ways:
            way.turn(STEPS)
    rows = [_row(way, ways, prepared) for way in ways]
    best = min(ways[2:], key=lambda w: w.best)
    verdict = "faster" if best.best < min(w.best for w in ways[:2]) else "slower"
    report("chains", rows, verdict=f"the best tiles ({best.size}) are {verdict} than loops")
    print(f"the best tiles ({best.size}) are {verdict} than loops")


def _row(way: Way, ways: list[Way], prepared: Prepared) -> dict[str, Any]:
    plan = prepared.plan
    untiled = min(w.best for w in ways[:2])
    names: Callable[[Way], str] = lambda w: "tiles" + (", lean" if w.lean else "")  # noqa: E731
    loops = [plan.loops[n].loop for n in (LOOPS[0], *LOOPS[1:], *LOOPS[1:])]
    row: dict[str, Any] = {
        "way": names(way) if way.size else f"loops, {'cpu' if way is ways[0] else 'gpu'} order",
        "tile size": way.size,
        "tiles": None,
        "redundancy": 1.0,
        "bytes a cell": untiled_bytes(loops, plan.maps, plan.sizes) / way.flow.n,
    }
    if way.chain is not None:
        (run,) = way.chain.tiled.values()
        row["tiles"] = run.tiles.n_tiles
        row["redundancy"] = run.tiles.redundancy(plan.sizes)
        row["bytes a cell"] = tiled_bytes(run.tiles, plan.maps) / way.flow.n
        row["inspector, s"] = run.seconds
    else:
        row["inspector, s"] = None
    row |= {"ms": 1e3 * way.best, "against loops": untiled / way.best}
    return row | {"rms": f"{way.residuals[-1]:.5e}"}


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
