"""The tuner of CSR products, replayed against tables of times: no clock, no GPU."""

import numpy as np
import product_times
import pytest

from meshprep_runtime import MeshprepError
from meshprep_runtime.matrix.cuda_text import CsrThreads, fixed_rule
from meshprep_runtime.matrix.search import ProductTuner


def replayed(table, seconds=None):
    """Every trial of one search, with the times that a table, or a function, gives."""
    tuner = ProductTuner(table.itemsize)
    rows, nonzeros = table.lengths.size, table.nonzeros
    while True:
        threads = tuner.threads("values", rows, nonzeros)
        if tuner.settled:
            assert threads == tuner.best.threads
            return tuner
        tuner.tell((seconds or table.seconds)(threads))


@pytest.mark.slow
def test_calls_that_it_takes():
    tables = product_times.tables()
    assert len(tables) == 44
    share = []
    for table in tables:
        tuner = replayed(table)
        found = np.minimum.accumulate([trial.seconds for trial in tuner.trials])
        calls = np.minimum([1, 6, 10], found.size) - 1
        share.append(table.best() / found[calls])
    rule, six, ten = np.mean(share, axis=0)
    # The tables leave something to find; what R14 found by calls 5 and 8.
    assert rule < 0.85
    assert six >= 0.95
    assert ten >= 0.98


@pytest.mark.slow
def test_noise_of_three_per_cent():
    """The choice loses no more than the noise, and is not worse than the rule."""
    lost = []
    for i, table in enumerate(product_times.tables()):
        rng = np.random.default_rng(i)
        noisy = replayed(table, lambda t, r=rng, m=table: m.seconds(t) * r.uniform(1, 1.03))
        chosen = table.seconds(noisy.best.threads)
        rule = fixed_rule(table.lengths.size, table.nonzeros)
        assert chosen <= 1.03 * table.seconds(rule)
        lost.append(chosen / replayed(table).best.seconds)
    assert np.mean(lost) <= 1.03


def steps(seconds, rows=10**6, nonzeros=10**7):
    """What is tried for a function of the parameters."""
    tuner = ProductTuner(4)
    while True:
        threads = tuner.threads(0, rows, nonzeros)
        if tuner.settled:
            return [trial.threads for trial in tuner.trials]
        tuner.tell(seconds(threads))


def test_repeat_goes_first_where_it_matters():
    tried = steps(lambda t: abs(t.repeat - 5) + 10)
    assert tried[:4] == [CsrThreads(128, 4, repeat) for repeat in (20, 10, 5, 2)]
    tried = steps(lambda t: abs(t.repeat - 80) + 10)
    assert tried[:5] == [CsrThreads(128, 4, repeat) for repeat in (20, 10, 40, 80, 160)]


def test_else_coop_with_larger_blocks():
    tried = steps(lambda t: 10 - t.coop / 10)
    coops = [(128, 4), (128, 4), (192, 8), (192, 16), (192, 32)]
    assert [(t.block_size, t.coop) for t in tried[:5]] == coops
    tried = steps(lambda t: 10 + t.coop)
    assert [t.coop for t in tried[:5]] == [4, 4, 8, 2, 1]


def test_blocks_within_bounds():
    tried = steps(lambda t: 1000 - t.block_size)
    assert max(t.block_size for t in tried) == 512
    assert min(t.block_size for t in steps(lambda t: 10 + t.block_size)) == 96
    assert len(set(tried)) == len(tried)


def test_another_matrix_starts_anew():
    tuner = ProductTuner()
    for subject in (("a", 10**6, 10**7), ("b", 10**6, 10**7), ("b", 10**6, 10**7 + 1)):
        assert tuner.threads(*subject) == fixed_rule(*subject[1:])
        tuner.tell(2.0)
        # a second question without a call in between is the same trial
        second = tuner.threads(*subject)
        assert second == tuner.threads(*subject) != fixed_rule(*subject[1:])
        assert [trial.seconds for trial in tuner.trials] == [2.0]


def test_times_and_sizes_that_cannot_be():
    tuner = ProductTuner()
    tuner.threads("a", 100, 1000)
    for seconds in (0.0, -1.0, float("nan")):
        with pytest.raises(MeshprepError, match="give a positive time"):
            tuner.tell(seconds)
    with pytest.raises(MeshprepError, match="itemsize is 2"):
        ProductTuner(2)


def test_what_is_told_after_the_search_is_not_counted():
    table = product_times.tables()[32]
    tuner = replayed(table)
    many = len(tuner.trials)
    tuner.tell(1e-9)
    assert len(tuner.trials) == many
