"""Jumps of a loop, beside a cache of dictionaries that forgets what was used longest ago."""

from collections import OrderedDict, defaultdict
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def bench(monkeypatch):
    """The module of the benchmarks."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import jumps

    return jumps


def slow_jumps(bench, accesses, point_bytes):
    """Of points one after the other."""
    kept = defaultdict(OrderedDict)
    fetched = {}
    clock = jumps = 0
    for point in accesses:
        own_bytes = range(point * point_bytes, (point + 1) * point_bytes)
        for line in sorted({byte // bench.LINE_BYTES for byte in own_bytes}):
            clock += 1
            ways = kept[(line + 1) % bench.SETS]
            if line in ways:
                ways.move_to_end(line)
                continue
            if len(ways) == bench.WAYS:
                ways.popitem(last=False)
            ways[line] = True
            beside = [fetched[one] for one in (line - 1, line + 1) if one in fetched]
            jumps += all(clock - then >= bench.FORESIGHT for then in beside)
            fetched[line] = clock
    return jumps


def of_points(bench, points):
    """Jumps of a loop over elements of one point each, a line a point."""
    table = np.asarray(points, np.int32).reshape(-1, 1)
    return bench.count_jumps(table, int(table.max()) + 1, bench.LINE_BYTES)


@pytest.mark.parametrize("point_bytes", [1, 8, 24, 64, 200])
@pytest.mark.parametrize("half_sets", [0, 1, 2])
def test_jumps_are_those_of_a_slow_cache(bench, point_bytes, half_sets):
    """With a step of all sets the points meet in one set, so that lines are given up."""
    random = np.random.default_rng(point_bytes)
    step = max(1, half_sets * bench.SETS // 2)
    table = random.integers(0, 40, (300, 3)).astype(np.int32) * step
    expected = slow_jumps(bench, table.ravel().tolist(), point_bytes)
    assert bench.count_jumps(table, 40 * step, point_bytes) == expected


def test_a_stream_jumps_once_and_two_streams_twice(bench):
    ahead = np.arange(5000)
    assert of_points(bench, ahead) == 1
    both = np.stack([ahead, 9000 + ahead], axis=1).ravel()
    assert of_points(bench, both) == 2
    assert of_points(bench, ahead[::-1]) == 1
    # In steps of two lines none is beside another.
    assert of_points(bench, 2 * ahead) == 5000


def test_what_the_cache_keeps_is_not_fetched_again(bench):
    lines = bench.SETS * bench.WAYS
    apart = 2 * np.arange(lines // 2)
    assert of_points(bench, np.tile(apart, 3)) == lines // 2
    # Twice as many lines of every second set turn each other out.
    assert of_points(bench, np.tile(2 * np.arange(lines), 3)) == 3 * lines


def test_a_stream_that_stops_for_long_is_a_jump_again(bench):
    for pause, jumps in ((bench.FORESIGHT - 2, 2), (bench.FORESIGHT - 1, 3)):
        assert of_points(bench, [0] + [100] * pause + [1]) == jumps


def test_a_loop_without_elements_or_bytes_does_not_jump(bench):
    assert bench.count_jumps(np.empty((0, 2), np.int32), 3, 8) == 0
    assert bench.count_jumps(np.array([[0], [2], [1]], np.int32), 3, 0) == 0
