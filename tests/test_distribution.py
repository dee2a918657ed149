"""Histograms over blocks and the lanes of warps, against counting by hand."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshprep.distribution import histograms, warp_efficiency


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
    return sizes, draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))


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
    assert found["computing"] == pytest.approx(lanes / issued)
    assert found["increments"] == pytest.approx(lanes / rounds)


def test_warps_of_nothing():
    assert warp_efficiency(_variant([], [])) == {"computing": None, "increments": None}


@given(st.lists(st.tuples(st.integers(1, 500), st.integers(1, 500)), min_size=1, max_size=60))
def test_every_block_is_in_its_bin(pairs):
    sizes, loads = zip(*pairs, strict=True)
    variant = _variant(sizes, [0] * sum(sizes), loads)
    found = histograms(variant, columns=2)
    values = {
        "reuse": [2 * n / m for n, m in pairs],
        "staged_points": loads,
        "thread_colours": [1] * len(pairs),
    }
    assert set(found) == set(values)
    for name, expected in values.items():
        edges, blocks = found[name]["edges"], found[name]["blocks"]
        assert len(edges) == len(blocks) + 1 <= 42
        assert np.allclose(np.diff(edges), edges[1] - edges[0])
        assert sum(blocks) == len(pairs)
        for (low, high), count in zip(pairwise(edges), blocks, strict=True):
            inside = [v for v in expected if low + 1e-9 <= v < high - 1e-9]
            near = [v for v in expected if low - 1e-9 <= v <= high + 1e-9]
            assert len(inside) <= count <= len(near)


def test_colours_stand_in_the_middle_of_their_bins():
    found = histograms(_variant([3, 2], [0, 1, 2, 0, 1]), columns=0)["thread_colours"]
    assert found == {"edges": [1.5, 2.5, 3.5], "blocks": [1, 1]}


def test_nothing_indirect_has_no_reuse():
    assert "reuse" not in histograms(_variant([3, 2], [0] * 5), columns=0)
