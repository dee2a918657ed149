"""Flows between blocks: the pressures found are those at which every block gives its surplus."""

import numpy as np
import pytest

from meshprep.kernels.compiled import from_python
from meshprep.partition.blocks.anneal.groups import ADDED, balancing, borders_of
from meshprep.partition.blocks.anneal.moves import INSIDE, UNKNOWN
from meshprep.partition.blocks.counts import Counts

# Python cannot call helpers as they are.
balancing, borders_of = from_python(balancing), from_python(borders_of)


def state_of(block, pairs, facets, n_blocks):
    """Clusters of one element, their blocks and neighbours; the rest is not looked at."""
    both = sorted([(i, j, f) for (i, j), f in zip(pairs, facets, strict=True)])
    both = sorted(both + [(j, i, f) for i, j, f in both])
    rows = np.array([row for row, _, _ in both], dtype=np.int64)
    count, nothing = np.bincount(rows, minlength=len(block)), np.zeros(n_blocks, np.int64)
    size = np.bincount(block, minlength=n_blocks).astype(np.int64)
    unused = np.zeros(0, np.int32)
    return Counts(
        unused.astype(np.uint32), unused.astype(np.uint32),
        np.concatenate([[0], np.cumsum(count)]).astype(np.uint32),
        np.array([j for _, j, _ in both], dtype=np.uint32),
        np.array([f for _, _, f in both], dtype=np.int32),
        np.ones(len(block), np.int32), np.asarray(block, dtype=np.uint32), size,
        np.full(n_blocks, 10), nothing, unused, unused, np.zeros(n_blocks),
    )  # fmt: skip


def best_of(state):
    """Scores that are not known, but of clusters with all neighbours in their own block."""
    at, beside, block = state.offset.astype(int), state.neighbours, state.block
    inside = [(block[beside[at[i] : at[i + 1]]] == block[i]).all() for i in range(block.size)]
    return np.where(inside, INSIDE, UNKNOWN).astype(np.float32)


def laplacian(state, pairs, facets):
    """Facets between blocks as a dense matrix, one pair after the other."""
    matrix = np.zeros((state.size.size,) * 2)
    for (i, j), f in zip(pairs, facets, strict=True):
        a, b = int(state.block[i]), int(state.block[j])
        if a != b:
            also = ADDED if matrix[a, b] == 0 else 0.0
            matrix[[a, b], [b, a]] -= f + also
    return matrix - np.diag(matrix.sum(axis=1))


def test_a_row_of_blocks_hands_the_surplus_on():
    block = np.repeat(np.arange(5), [12, 8, 8, 8, 4])
    pairs = [(i, i + 1) for i in range(len(block) - 1)]
    state = state_of(block, pairs, [1] * len(pairs), 5)
    found = balancing(state, borders_of(state, best_of(state)), 1e-4)
    # four elements cross each border of one facet
    assert found == pytest.approx(np.array([2, 1, 0, -1, -2]) * 4 / (1 + ADDED), abs=0.05)


@pytest.mark.parametrize("seed", range(20))
def test_flows_leave_every_block_as_full_as_those_connected_to_it(seed):
    random = np.random.default_rng(seed)
    n, n_blocks = 60, int(random.integers(2, 9))
    block = np.concatenate([np.arange(n_blocks), random.integers(0, n_blocks, n - n_blocks)])
    # of two halves, which do not touch, each has blocks of its own where there are enough
    half = block < n_blocks // 2
    drawn = {tuple(sorted(random.choice(n, 2, replace=False))) for _ in range(80)}
    pairs = sorted((int(i), int(j)) for i, j in drawn if half[i] == half[j])
    facets = random.integers(1, 5, len(pairs)).tolist()
    state = state_of(block, pairs, facets, n_blocks)
    found = balancing(state, borders_of(state, best_of(state)), 1e-4)
    matrix = laplacian(state, pairs, facets)
    # the least squares solution of least norm has the mean 0 wherever blocks are connected
    wanted = np.linalg.pinv(matrix, rcond=1e-9) @ state.size
    assert found == pytest.approx(wanted, abs=0.03 * max(1e-9, np.abs(wanted).max()))
