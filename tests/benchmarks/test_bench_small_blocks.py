"""The benchmarks of small blocks and of meshlets: caps that are counted, a picture of all rows."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def scripts(monkeypatch, tmp_path):
    """Both scripts as modules, with their meshes in a folder of the test."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import bench_meshlets
    import bench_small_blocks
    import common

    monkeypatch.setattr(common, "CACHE", tmp_path)
    return bench_small_blocks, bench_meshlets


def strip(n):
    """A strip of squares as two triangles each, and where its points are."""
    low = np.arange(n)
    cells = np.concatenate(
        [
            np.column_stack([2 * low, 2 * low + 1, 2 * low + 2]),
            np.column_stack([2 * low + 1, 2 * low + 2, 2 * low + 3]),
        ]
    ).astype(np.int32)
    points = np.column_stack([np.arange(2 * n + 2) // 2, np.arange(2 * n + 2) % 2])
    return cells, points.astype(float)


@pytest.mark.slow
def test_every_partitioner_keeps_the_cap_or_is_counted(scripts, tmp_path):
    small, _ = scripts
    rows = list(small._rows("a mesh", small.mesh_of("delaunay2d", 2000)))
    by = {row["by"]: row for row in rows}
    assert {"METIS", "blocks fast", "blocks default", "blocks strong"} <= by.keys()
    assert (find_spec("kahip") is not None) == ("KaHIP eco" in by)
    for row in rows:
        assert (row["largest"] > small.BLOCK_SIZE) == (row["over the cap"] > 0)
        # Of 2,000 triangles about 3,000 sides; blocks of 256 cut few of them.
        assert 0 < row["facets cut"] < 400
    assert by["METIS"]["loads %"] == 0
    assert by["blocks default"]["over the cap"] == 0
    small.draw(rows, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_points_of_blocks_are_counted_once_a_block(scripts):
    _, meshlets = scripts
    cells, _ = strip(4)
    block = np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int32)
    assert meshlets._points_of_blocks(cells, block).tolist() == [6, 6]


def test_the_largest_size_that_fits_is_the_last_before_one_that_does_not(scripts):
    _, meshlets = scripts
    surface = meshlets.Surface("strip", *strip(200))
    # A run of S triangles of a strip has S + 2 points.
    size, points = meshlets._largest_that_fits(surface, 40, 18)
    assert size == 16
    assert points.max() <= 18


def test_a_bar_needs_as_few_meshlets_and_fewer_vertices(scripts):
    _, meshlets = scripts
    peer = {"meshlets": 100, "vertices": 6000}
    met = {"meshlets": 100, "vertices": 5880}
    assert meshlets._against(met, peer)["bar"] == "met"
    assert meshlets._against(met | {"meshlets": 101}, peer)["bar"] == "MISSED"
    assert meshlets._against(met | {"vertices": 5900}, peer)["bar"] == "MISSED"
    assert meshlets._against(met, None)["bar"] == "-"
