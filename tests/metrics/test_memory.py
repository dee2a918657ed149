"""Predicted bytes between memory and cache: by hand, and beside a simulator's."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from meshprep.metrics.memory import memory_traffic
from meshprep.metrics.occupancy import DEVICES, Occupancy, memory_seconds
from meshprep.metrics.traffic import plan_sectors
from meshprep.pipeline.variants import baseline_variant
from meshprep_runtime import Access, Arg, Loop, LoopPlan, MatrixPlan, MeshprepError, SetMap

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LARGE = 2**30


@pytest.fixture(scope="module")
def row():
    """A row of 1,024 edges in blocks of 256; a cell is a sector that is added to."""
    n = 1024
    table = np.column_stack([np.arange(n), np.arange(n) + 1])
    maps = {"edges->cells": SetMap("edges->cells", "edges", "cells", table)}
    sizes = {"edges": n, "cells": n + 1}
    loop = Loop("sum", "edges", (Arg("res", Access.INC, 4, "f8", "edges->cells", (0, 1)),))
    variant = baseline_variant(loop, maps, sizes, 256)
    return LoopPlan(loop, sizes, maps, {variant.name: variant}, variant.name)


def test_atomics_move_each_sector_once_where_the_cache_holds_a_run(row):
    maps = 2 * 4 * 1024 // 32
    found = memory_traffic(row, row.variant(), "global-atomics", LARGE)
    assert (found.read, found.written) == (1025 + maps, 1025)
    # An instruction of a warp for each column and component meets 32 sectors.
    assert found.atomics == 2 * 4 * 1024
    assert found.launches == (4,)
    assert found.nbytes == 32 * (2 * 1025 + maps)
    # Warps touch 33 sectors each where nothing stays for the next.
    cold = memory_traffic(row, row.variant(), "global-atomics", 0)
    assert (cold.read, cold.written) == (32 * 33 + maps, 32 * 33)


def test_blocks_by_colour_and_by_atomics(row):
    """Every second block goes first: what they share with the others is gone by then."""
    variant = row.variant()
    ways = {
        (commit, size): memory_traffic(row, variant, "hierarchical", size, commit=commit)
        for commit in ("colours", "atomics")
        for size in (0, 32 * 400, LARGE)
    }
    written = {way: found.written for way, found in ways.items()}
    assert written["colours", 0] == written["atomics", 0] == 4 * 257
    assert written["colours", LARGE] == written["atomics", LARGE] == 1025
    # Room for the block before: 0 2 1 3 share one cell so, 0 1 2 3 all three.
    assert written["colours", 32 * 400] == 4 * 257 - 1
    assert written["atomics", 32 * 400] == 1025
    assert ways["colours", 0].launches == (2, 2)
    assert ways["atomics", 0].launches == (4,)
    assert ways["colours", 0].atomics == 0
    # Three cells lie in two blocks each.
    assert ways["atomics", 0].atomics == 4 * 2 * 3


def test_a_temporary_array(row):
    """Two rows of a sector an edge are written and read; then sums at each cell."""
    found = memory_traffic(row, row.variant(), "two-step", 0)
    listed = 2 * 1024 * 4 // 32 + -(-1026 * 4 // 32)
    assert found.written == 2 * 1024 + 1025
    assert found.read == 2 * 1024 + 1025 + listed
    assert found.launches == (4, 5)


def test_components_in_arrays_of_their_own(row):
    found = memory_traffic(row, row.variant(), "hierarchical-unstaged", LARGE, layout="soa")
    assert found.written == 4 * -(-1025 * 8 // 32)
    with pytest.raises(MeshprepError, match="strategy 'warps' is unknown"):
        memory_traffic(row, row.variant(), "warps", LARGE)


@pytest.fixture(scope="module")
def assembling(row):
    """The edges add to four nonzeros each, of which every edge has its own sector."""
    n, points = 1024, np.arange(1025, dtype=np.int32)
    place = {"assemble": np.arange(4 * n, dtype=np.int32).reshape(n, 4)}
    columns = np.zeros(4 * n, np.int32)
    matrix = MatrixPlan(
        "K", "cells", "cells", points, points, np.zeros(1026, np.int64), columns, place
    )
    name = "edges->cells"
    loop = Loop("assemble", "edges", (Arg("K", Access.INC, 2, "f8", name, (0, 1), columns=name),))
    return replace(row, loop=loop, matrices={"K": matrix})


@pytest.mark.parametrize(
    ("strategy", "commit", "atomics"),
    [
        ("global-atomics", "colours", 4 * 1024),
        ("hierarchical", "atomics", 4 * 1024),
        ("hierarchical", "colours", 0),
    ],
)
def test_nonzeros_are_not_staged(assembling, strategy, commit, atomics):
    places = 4 * 4 * 1024 // 32
    found = memory_traffic(assembling, assembling.variant(), strategy, LARGE, commit=commit)
    of_blocks = plan_sectors(assembling.loop, [], assembling.variant())
    assert found.written == 1024
    assert found.read == 1024 + places + (of_blocks if strategy == "hierarchical" else 0)
    assert found.atomics == atomics


def test_launches_that_leave_multiprocessors_idle():
    """At least half of the warps have to be at work, averaged over the waves of a launch."""
    device = DEVICES["V100"]
    held = Occupancy(4, 32, 0.5, ("registers",))
    one = memory_seconds(1e9, [320], device, held, 1e9)
    assert one == pytest.approx(1.0)
    # One block more takes a second wave.
    assert memory_seconds(1e9, [321], device, held, 1e9) == pytest.approx(640 / 321)
    # Ten launches of 32 blocks each leave nine tenths of the device idle.
    assert memory_seconds(1e9, [32] * 10, device, held, 1e9) == pytest.approx(10.0)
    full = Occupancy(8, 64, 1.0, ("threads",))
    assert memory_seconds(1e9, [640, 320], device, full, 1e9) == pytest.approx(1.0)
    assert memory_seconds(1e9, [], device, held, 1e9) == 1.0


@pytest.mark.slow
def test_bytes_and_times_of_a_simulator(monkeypatch):
    """Within a tenth in each of fifteen calls, and the same order of times."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import memory_cases

    rows = list(memory_cases.rows())
    assert len(rows) == 15
    assert {
        (r["order"], r["strategy"], r["commit"]): r["MB / simulated"]
        for r in rows
        if abs(r["MB / simulated"] - 1) > 0.1
    } == {}
    times = [[r[name] for r in rows] for name in ("us", "simulated us")]
    assert memory_cases.rank_correlation(*times) >= 0.8
