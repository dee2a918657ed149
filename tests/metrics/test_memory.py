"""Predicted bytes between memory and cache: by hand, and beside a simulator's."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from meshprep.metrics.memory import memory_traffic
from meshprep.metrics.occupancy import DEVICES, Occupancy, memory_seconds
from meshprep.metrics.traffic import plan_sectors, uses_of
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
    # A warp's nine lines, and its 32nd of the maps: held from there on, not a byte below.
    held = 9 * 128 + maps
    assert memory_traffic(row, row.variant(), "global-atomics", held).written == 1025
    assert memory_traffic(row, row.variant(), "global-atomics", held - 1).written == 32 * 33


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
    with pytest.raises(MeshprepError, match="layout 'rows' is unknown"):
        memory_traffic(row, row.variant(), "hierarchical", LARGE, layout="rows")


def test_the_last_warp_finds_what_the_first_left(row):
    """The last edge of a ring closes it: 31 warps lie between the two that share cell 0."""
    table = row.maps["edges->cells"].table % 1024
    maps = {"edges->cells": SetMap("edges->cells", "edges", "cells", table)}
    ring = replace(row, maps=maps, sizes={"edges": 1024, "cells": 1024})
    assert memory_traffic(ring, row.variant(), "global-atomics", LARGE).written == 1024


@pytest.fixture(scope="module")
def direct(row):
    """The edges read three f8 and write an f4 of their own; six f4 a cell are added to."""
    args = (
        Arg("w", Access.READ, 3, "f8"),
        Arg("old", Access.WRITE, 1, "f4"),
        Arg("res", Access.INC, 6, "f4", "edges->cells", (0, 1)),
    )
    return replace(row, loop=Loop("direct", "edges", args))


# Of w, of old, of the edges' two cells, of res; 32 edges are a warp.
W, OLD, MAPS, RES = 1024 * 24 // 32, 1024 * 4 // 32, 2 * 1024 * 4 // 32, -(-1025 * 24 // 32)


def test_values_of_the_elements(direct):
    found = memory_traffic(direct, direct.variant(), "global-atomics", LARGE)
    assert (found.read, found.written) == (W + MAPS + RES, OLD + RES)
    # Four f4 of a row at once, and two.
    assert found.atomics == 2 * 2 * 1024
    soa = memory_traffic(direct, direct.variant(), "global-atomics", LARGE, layout="soa")
    assert soa.atomics == 6 * 2 * 1024


@pytest.mark.parametrize(
    ("strategy", "maps"), [("global-colouring", 2 * MAPS), ("full-permute", MAPS)]
)
def test_a_launch_for_each_colour_of_the_set(direct, strategy, maps):
    """Every second edge has the first colour: its warps touch all sectors of twice as many edges.

    Maps are found like that, too, unless they lie in the order of the colours.
    """
    listed = 1024 * 4 // 32
    found = memory_traffic(direct, direct.variant(), strategy, LARGE)
    assert found.launches == (2, 2)
    assert (found.read, found.written) == (W + MAPS + RES + listed, OLD + RES)
    cold = memory_traffic(direct, direct.variant(), strategy, 0)
    # A row of old begins every fourth sector of a warp's; those of w lie on three of four.
    sums = 16 * 48 + 16 * 49
    assert (cold.read, cold.written) == (2 * W + maps + sums + listed, 2 * OLD + sums)


def test_blocks_that_list_their_elements(direct):
    """Every fourth edge in a block: four blocks fetch the same sectors of what lies by edge."""
    order = np.arange(1024, dtype=np.int32).reshape(256, 4).T.ravel()
    variant = replace(direct.variant(), elements=order)
    found = memory_traffic(direct, variant, "hierarchical-unstaged", 0)
    # Four rows of w are three sectors, two of which two blocks touch; of res cells e and e + 1.
    sums = 256 * (2 + 3 + 2 + 2)
    of_blocks = plan_sectors(direct.loop, [], variant) + 1024 * 4 // 32
    assert found.read == 2 * W + MAPS + sums + of_blocks
    assert found.written == 4 * OLD + sums
    # Where blocks keep sums in shared memory, they fetch each cell once, and no map.
    staged = memory_traffic(direct, variant, "hierarchical-inc", LARGE)
    kept = uses_of(direct.loop, direct.maps)[-1:]
    of_blocks = plan_sectors(direct.loop, kept, variant) + 1024 * 4 // 32
    assert (staged.read, staged.written) == (W + RES + of_blocks, OLD + RES)


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
