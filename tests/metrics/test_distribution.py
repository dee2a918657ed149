"""Histograms over blocks and the lanes of warps, against counting by hand."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.metrics.measures import histograms, warp_efficiency
from meshprep_runtime.plan.metrics import Histogram, WarpEfficiency


def _variant(sizes, colours, loads=None):
    offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    staging = {}
    if loads is not None:
        points = np.concatenate([[0], np.cumsum(loads)]).astype(np.int64)
        staging = {"cells": SimpleNamespace(point_offset=points)}
    counts = [len(set(colours[a:b])) for a, b in pairwise(offset)]
    return SimpleNamespace(
        block_offset=offset,
        n_blocks=len(sizes),
        thread_colour=np.array(colours, np.uint8),
        thread_colours=np.array(counts, np.int32),
        staging=staging,
    )


@st.composite
def _blocks(draw):
    sizes = draw(st.lists(st.integers(1, 90), min_size=1, max_size=8))
    n = sum(sizes)
    return sizes, draw(
        st.lists(st.integers(0, 5) | st.integers(60, 200), min_size=n, max_size=n)
    )


@settings(deadline=None)
@given(_blocks())
def test_lanes_counted_one_by_one(blocks):
    sizes, colours = blocks
    lanes = issued = rounds = 0
    at = 0
    for size in sizes:
        block = colours[at : at + size]
        for start in range(0, size, 32):
            warp = block[start : start + 32]
            lanes += len(warp)
            issued += 32
            rounds += 32 * len(set(warp))
        at += size
    found = warp_efficiency(_variant(sizes, colours))
    assert found.computing == pytest.approx(lanes / issued)
    assert found.increments == pytest.approx(lanes / rounds)


def test_warps_of_nothing():
    assert warp_efficiency(_variant([], [])) == WarpEfficiency(None, None)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 500), st.integers(1, 500)), min_size=1, max_size=60)
)
def test_every_block_is_in_its_bin(pairs):
    sizes, loads = zip(*pairs, strict=True)
    variant = _variant(sizes, [0] * sum(sizes), loads)
    found = histograms(variant, columns=2)
    values = {
        "reuse": [2 * n / m for n, m in pairs],
        "staged_points": loads,
        "thread_colours": [1] * len(pairs),
    }
    for name, expected in values.items():
        own = getattr(found, name)
        width, bins, blocks = own.width, own.bins, own.blocks
        assert width == (0.01 if name == "reuse" else 1)
        assert sum(blocks) == len(pairs)
        assert all(blocks)
        assert list(bins) == sorted(set(bins))
        for place, count in zip(bins, blocks, strict=True):
            inside = [
                v
                for v in expected
                if width * place + 1e-7 <= v < width * (place + 1) - 1e-7
            ]
            near = [v for v in expected if -1e-7 <= v - width * place <= width + 1e-7]
            assert len(inside) <= count <= len(near)


def test_colours_by_number():
    found = histograms(_variant([3, 2, 2], [0, 1, 2, 0, 1, 0, 1]), columns=0).thread_colours
    assert found == Histogram(width=1, bins=(2, 3), blocks=(2, 1))


def test_nothing_indirect_has_no_reuse():
    assert histograms(_variant([3, 2], [0] * 5), columns=0).reuse is None
