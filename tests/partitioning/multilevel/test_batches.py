"""Batches: the clusters chosen are those that a slow draw finds, in the order of the sweep."""

import numpy as np
import pytest

from meshprep.kernels.compiled import from_python
from meshprep.partitioning.multilevel.refinement.counts import Counts
from meshprep.partitioning.multilevel.refinement.sweep import (
    BATCH,
    INSIDE,
    LEAST_GAIN,
    THRESHOLDS,
    UNKNOWN,
    Sweep,
    acceptance_thresholds,
    choose_batch,
    invalidate_neighbours,
    new_batch,
)

# Python cannot call helpers as they are.
new_batch, choose_batch = from_python(new_batch), from_python(choose_batch)
invalidate_neighbours = from_python(invalidate_neighbours)

N, HOLDS = BATCH + 100, 8
SWEEP = Sweep(0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 1.0)


def ring():
    """Clusters around a ring, each with one point and beside the two next ones."""
    one_each, nothing = np.arange(N + 1, dtype=np.uint32), np.empty(0, np.int64)
    i = np.arange(N)
    beside = np.stack([(i - 1) % N, (i + 1) % N], axis=1).astype(np.uint32).ravel()
    return Counts(
        one_each, np.zeros(N, np.uint32), 2 * one_each, beside, np.empty(0, np.int32),
        np.ones(N, np.int32), np.zeros(N, np.uint32), nothing, nothing, nothing,
        np.empty(0, np.int32), np.zeros(8, np.int32), np.empty(0),
    )  # fmt: skip


def batch_with(seed):
    """A batch with scores of all kinds."""
    kinds = np.array([INSIDE, UNKNOWN, -1.0, -0.2, 0.05, 0.5], np.float32)
    batch = new_batch(ring(), acceptance_thresholds())
    batch.best[:] = np.random.default_rng(seed).choice(kinds, N)
    return batch


def next_random(random):
    """The generator that draws, in Python's integers."""
    for shift in (13, -7, 17):
        random ^= (random << shift if shift > 0 else random >> -shift) & (2**64 - 1)
    return random


@pytest.mark.parametrize("number", [4, 5])
@pytest.mark.parametrize("begin", [0, BATCH])
def test_a_run_is_drawn_as_a_slow_draw_finds_it(number, begin):
    batch = batch_with(begin + number)
    before, random, wanted, draws = batch.best.copy(), 12345, [], []
    for place in range(begin, min(N, begin + BATCH)):
        i = N - 1 - place if number % 2 else place
        if before[i] == INSIDE:
            continue
        random = next_random(random)
        draw = batch.quantile[(random >> 20) % THRESHOLDS]
        if before[i] + SWEEP.temperature * draw > LEAST_GAIN or (i + number) % HOLDS == 0:
            wanted.append(i)
            draws.append(draw)
    last, count = choose_batch(ring(), batch, SWEEP, number, HOLDS, begin, np.uint64(12345))
    assert last == random
    assert 20 < count < BATCH
    assert batch.cluster[:count].tolist() == wanted
    assert batch.draw[:count].tolist() == draws
    # these have no score until they were looked at, the others keep theirs
    assert (batch.best[wanted] == UNKNOWN).all()
    others = np.setdiff1d(np.arange(N), wanted)
    assert (batch.best[others] == before[others]).all()


@pytest.mark.parametrize(
    ("number", "moved", "ahead", "entered"),
    [
        (4, 10, (11, BATCH), [11]),
        (5, 10, (N - 10, N), [9]),
        (4, BATCH - 1, (BATCH, BATCH), []),
        (4, 30, (31, BATCH), []),
    ],
)
def test_neighbours_of_a_move_are_looked_at_in_the_same_run(number, moved, ahead, entered):
    batch = batch_with(1)
    batch.best[:] = INSIDE
    # one that is to be looked at anyway is not entered again
    batch.best[31] = UNKNOWN
    random, count = invalidate_neighbours(
        ring(), batch, moved, ahead, number, 3, np.uint64(12345)
    )
    assert count == 3 + len(entered)
    assert batch.cluster[3:count].tolist() == entered
    assert (random == 12345) == (not entered)
    assert (batch.best[[moved - 1, moved, moved + 1]] == UNKNOWN).all()
    assert np.count_nonzero(batch.best == UNKNOWN) == 3 + (moved != 30)
