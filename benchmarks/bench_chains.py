"""Airfoil tile by tile: bytes and redundancy of tile sizes, times beside the untiled loops.

    python benchmarks/bench_chains.py [CELLS THREADS [ITERATIONS]]

Without arguments: every figure of docs/research/tiles.md, on one thread and on two. Times on one
thread are of processor, not of the clock, and the least of several turns, since tiles and loops
take turns: waiting and other programs count little. Run it on an idle machine all the same. With
more threads, times are of the clock, those of the inspector, too. Two chains a size: all dats
stored; ``qold``, ``adt`` dropped with ``res`` zero.

One more figure says what tiles can gain at most: the time a cell on meshes that lie in cache as a
whole.
"""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numba
from common import report

from airfoil import LOOPS, Airfoil, prepared_airfoil
from meshprep.pipeline.steps import Prepared
from meshprep_runtime import Loop, SetMap
from meshprep_runtime.program.chains.inspect import with_maps
from meshprep_runtime.program.chains.numbers import number
from meshprep_runtime.program.chains.tiles import TilePlan
from meshprep_runtime.program.chains.tiling import cut
from meshprep_runtime.program.timings import useful_bytes

# Cells and threads.
CASES = ((120_000, 1), (720_000, 1), (720_000, 2))
LENGTH = 9
SIZES = (1024, 4096, 16384, 65536)
DROPPED, ZERO = ("qold", "adt"), ("res",)
TURNS, STEPS = 5, 4
IN_CACHE = (3_000, 9_000)


KINDS = ("tiles", "tiles, lean")
LOOPS_ALONE = ("loops, cpu order", "loops, gpu order")


class Way:
    """One way to run the iterations, and what they took."""

    def __init__(
        self, prepared: Prepared, kind: str, size: int | None, threads: int
    ) -> None:
        alone = "sequential" if threads == 1 else "hierarchical"
        self.flow = Airfoil(prepared, alone if size is None else "auto")
        self.kind, self.size = kind, size
        self.clock = time.process_time if threads == 1 else time.perf_counter
        self.chain: Any = None
        if size is not None:
            dats = self.flow.program_dats
            kept = {"dropped": [dats[d] for d in DROPPED], "zero": [dats[d] for d in ZERO]}
            more = kept if kind == KINDS[1] else {}
            self.chain = self.flow.program.chain(LENGTH, tile_size=size, **more)
        self.residuals: list[float] = []
        self.best = float("inf")
        self.first = self._seconds(1)

    @property
    def run(self) -> Any:
        """The chain on its tiles; None for loops alone."""
        return None if self.chain is None else next(iter(self.chain.tiled.values()))

    def turn(self, steps: int) -> None:
        """Run some iterations, and keep the best time of one."""
        self.best = min(self.best, self._seconds(steps) / steps)

    def _seconds(self, steps: int) -> float:
        start = self.clock()
        self.residuals += self._steps(steps)
        return self.clock() - start

    def _steps(self, steps: int) -> Iterator[float]:
        if self.chain is None:
            return self.flow.steps(steps)
        with self.chain:
            return iter(list(self.flow.steps(steps)))


def main(cells: int = 0, threads: int = 1, iterations: int = TURNS * STEPS) -> None:
    """Print and save a table of each case."""
    rows: list[dict[str, Any]] = []
    cases = []
    for case in ((cells, threads),) if cells else CASES:
        own, told = run_case(*case, iterations)
        rows += own
        cases.append(told)
    report("chains", rows, cases=cases)
    for told in cases:
        print(
            f"{told['cells']} cells, threads: {told['threads']}: {told['verdict']}; with all data "
            f"in cache loops take {told['in_cache_ms']:.2f} ms, {told['by_cache']:.2f} times less"
        )


def run_case(
    cells: int, threads: int, iterations: int
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A row for each way to run one mesh on some threads, and what they say together."""
    numba.set_num_threads(threads)
    prepared = prepared_airfoil(cells, block_size=512, target="gpu")
    banded = prepared_airfoil(cells)
    ways = [Way(banded, LOOPS_ALONE[0], None, threads)]
    ways += [Way(prepared, LOOPS_ALONE[1], None, threads)]
    ways += [Way(prepared, kind, size, threads) for size in SIZES for kind in KINDS]
    for _ in range(0, iterations, STEPS):
        for way in ways:
            way.turn(STEPS)
    rows = [{"cells": cells, "threads": threads, **_row(way, ways)} for way in ways]
    best = min(ways[2:], key=lambda w: w.best)
    verdict = "faster" if best.best < min(w.best for w in ways[:2]) else "slower"
    floor = in_cache(threads) * ways[0].flow.n
    return rows, {
        "cells": cells,
        "threads": threads,
        "verdict": f"the best tiles ({best.kind} of {best.size}) are {verdict} than loops",
        "in_cache_ms": floor,
        "by_cache": untiled_ms(ways) / floor,
    }


def untiled_ms(ways: list[Way]) -> float:
    """The best iteration of the loops alone."""
    return 1e3 * min(w.best for w in ways[:2])


def in_cache(threads: int) -> float:
    """Milliseconds a cell and iteration where nothing comes from memory.

    From the difference of two meshes that both fit into the second-level cache, so that what a call
    costs in Python does not count.
    """
    ways = [Way(prepared_airfoil(n), LOOPS_ALONE[0], None, threads) for n in IN_CACHE]
    for _ in range(4 * TURNS):
        for way in ways:
            way.turn(4 * STEPS)
    small, large = ways
    return 1e3 * (large.best - small.best) / (large.flow.n - small.flow.n)


def _inspector_seconds(way: Way) -> float | None:
    """That cutting the tiles takes, by the clock of the way; the least of three times."""
    if way.run is None:
        return None
    plan, loops = way.flow.program.plan, way.run.tiles.loops
    numbers = number(loops, plan.sizes, plan.maps)
    found = []
    for _ in range(3):
        start = way.clock()
        plans = [plan[loop.name] for loop in loops]
        tiles = cut(numbers, plans, way.size or 1, way.run.tiles.kept)
        with_maps(tiles, plan.maps, plan.sizes)
        found.append(way.clock() - start)
    return min(found)


INDEX_BYTES = 4


def untiled_bytes(
    loops: Sequence[Loop], maps: Mapping[str, SetMap], sizes: Mapping[str, int]
) -> int:
    """What loops move that share nothing in cache: useful bytes, and all maps of each loop."""
    return sum(
        useful_bytes(loop, maps, sizes)
        + sum(INDEX_BYTES * maps[m].table.size for m in loop.maps)
        for loop in loops
    )


def tiled_bytes(
    tiles: TilePlan, maps: Mapping[str, SetMap], home: Mapping[str, str]
) -> int:
    """What tiles move whose elements stay in cache: the schedule, copies and stored values once.

    ``home`` is the set of each dat.
    """
    nbytes = {arg.name: arg.nbytes for loop in tiles.loops for arg in loop.args}
    copied = sum(nbytes[d] * int(s.count.sum()) for d, s in tiles.copies.items())
    stored = sum(
        nbytes[d] * int(tiles.sets[home[d]].own.sum())
        for d in tiles.written - tiles.kept.all
    )
    # Only copies and stores look up which element a local one is.
    listed = {home[d] for d in tiles.copies} | {home[d] for d in tiles.written}
    lists = sum(INDEX_BYTES * int(tiles.sets[s].offset[-1]) for s in listed)
    used = [maps[m] for m in dict.fromkeys(m for loop in tiles.loops for m in loop.maps)]
    tables = sum(
        int(tiles.rows_of(m.name).sum()) * m.arity * tiles.index_type(m.to_set).itemsize
        for m in used
    )
    chosen = sum(s.nbytes for s in (*tiles.runs, *tiles.copies.values()))
    return copied + stored + lists + tables + chosen


def _row(way: Way, ways: list[Way]) -> dict[str, Any]:
    plan, run = way.flow.program.plan, way.run
    inspector = _inspector_seconds(way)
    untiled = min(w.best for w in ways[:2])
    loops = [plan.loops[n].loop for n in (LOOPS[0], *LOOPS[1:], *LOOPS[1:])]
    bytes_moved = untiled_bytes(loops, plan.maps, plan.sizes)
    if run is not None:
        bytes_moved = tiled_bytes(
            run.tiles, plan.maps, number(run.tiles.loops, plan.sizes, plan.maps).dats
        )
    return {
        "way": way.kind,
        "tile size": way.size,
        "tiles": None if run is None else run.tiles.n_tiles,
        "redundancy": 1.0 if run is None else run.tiles.redundancy(plan.sizes),
        "bytes a cell": bytes_moved / way.flow.n,
        "inspector, s": inspector,
        "inspector, iterations": None if inspector is None else inspector / untiled,
        "ms": 1e3 * way.best,
        "against loops": untiled / way.best,
        "rms": f"{way.residuals[-1]:.5e}",
    }


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
