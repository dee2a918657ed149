"""Factors that noise could have made are not told."""

import numpy as np
import pytest

from meshprep_runtime.plan.tuned import CHANCE, Timing, Trial

FAST = Timing.of([1.0, 1.1, 1.2, 1.05, 1.4])


def test_the_factor_is_that_of_the_medians():
    slow = Timing.of([2.0, 2.2, 2.75, 2.1, 9.0])
    assert (FAST.least, FAST.median, FAST.most, FAST.runs) == (1.0, 1.1, 1.4, 5)
    assert FAST.times_as_fast(slow) == pytest.approx(2.0)
    assert slow.times_as_fast(FAST) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "other",
    [
        [1.4, 2.0, 2.0, 2.0, 2.0],  # its fastest run took as long as a run of the other
        [0.5, 300.0, 300.0, 300.0, 300.0],
        [2.0, 2.0, 2.0, 2.0],  # too few: equal ways lie apart in one case of 63
    ],
)
def test_what_noise_could_have_made_is_none(other):
    assert FAST.times_as_fast(Timing.of(other)) is None
    assert Timing.of(other).times_as_fast(FAST) is None


@pytest.mark.parametrize(
    ("few", "many"), [(5, 5), (3, 18), (2, 20), (9, 9), (14, 14), (30, 20)]
)
def test_equal_ways_hardly_ever_seem_different(few, many):
    rng = np.random.default_rng(0)
    told = 0
    for _ in range(3000):
        one, other = (Timing.of(rng.lognormal(0, 1, count)) for count in (few, many))
        told += one.times_as_fast(other) is not None
    assert told / 3000 < 1.5 * CHANCE


def test_disturbed_runs_among_many_do_not_decide():
    fast = Timing.of([1.0] * 9 + [40.0] * 5)
    slow = Timing.of([2.0] * 14)
    assert fast.times_as_fast(slow) == 2.0
    assert slow.times_as_fast(fast) == 0.5
    assert fast.is_less(slow)
    assert not slow.is_less(fast)
    # half of the runs must be faster than all of the other
    assert Timing.of([1.0] * 6 + [40.0] * 8).times_as_fast(slow) is None


def test_the_runs_of_a_trial():
    trial = Trial("sequential", "", (), 1.0, 1.25, 0.5, 9)
    assert trial.timing == Timing(1.0, 1.25, 1.5, 9)
