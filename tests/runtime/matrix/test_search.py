"""The search for the threads of a product: against tables of times, and on an emulated GPU."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import exact, random_csr, vector
from matrix_loops import stiffness

from meshprep.io.generate import generate
from meshprep.pipeline.steps import Options, prepare
from meshprep_cuda_check.emulated import EmulatedDevice
from meshprep_runtime import Plan
from meshprep_runtime.cuda.device import use
from meshprep_runtime.matrix import Product, cuda_products, to_gpu
from meshprep_runtime.matrix.cuda_text import CsrThreads, fixed_rule
from meshprep_runtime.matrix.search import MOST_TRIALS, ThreadSearch

COOPS = (1, 2, 4, 8, 16, 32)


def replayed(rows, nonzeros, seconds):
    """The trials of a search, and what it ends with."""
    search = ThreadSearch(rows, nonzeros)
    trials = []
    while not search.settled:
        trials.append(search.proposed)
        search.tell(seconds(search.proposed))
    return trials, search


@given(
    rows=st.integers(1, 10**7),
    mean=st.integers(0, 2000),
    best=st.sampled_from(COOPS),
    steps=st.lists(st.floats(1.01, 3), min_size=6, max_size=6),
    repeats=st.floats(0.8, 1.25),
)
def test_the_best_of_times_with_one_valley(rows, mean, best, steps, repeats):
    """Against all threads a row; a repeat above 1 is slower or faster by a factor."""

    def seconds(threads):
        near, far = sorted((COOPS.index(best), COOPS.index(threads.coop)))
        factor = np.prod(steps[near:far])
        return factor * (repeats if threads.repeat > 1 else 1.0)

    rule = fixed_rule(rows, rows * mean)
    trials, search = replayed(rows, rows * mean, seconds)
    assert trials[0] == rule
    assert len(set(trials)) == len(trials) <= MOST_TRIALS
    assert search.seconds == seconds(search.proposed) == min(map(seconds, trials))
    repeated = min(repeats, 1.0) if rule.repeat > 1 else 1.0
    # Where fewer threads a row cannot repeat, the rule has no repeat to compare.
    assert search.seconds <= seconds(rule)
    if repeats >= 1 or rule.repeat == 1:
        every = [seconds(CsrThreads(128, coop, 1)) for coop in COOPS]
        assert search.seconds == min(every) == repeated


@pytest.mark.parametrize("seed", range(5))
def test_noise_costs_no_more_than_it_is(seed):
    rng = np.random.default_rng(seed)
    times = dict(zip(COOPS, (9.0, 5.0, 3.0, 2.5, 3.5, 6.0), strict=True))
    _, search = replayed(10**5, 10**6, lambda t: times[t.coop] * rng.uniform(1, 1.03))
    assert times[search.proposed.coop] <= 1.03 * min(times.values())


class TimedDevice(EmulatedDevice):
    """An emulated GPU on which products take what a table says, by threads a row."""

    def __init__(self, times):
        super().__init__()
        self.times = times
        self.proposed = []

    def seconds(self, start, end):
        self.wait(end.stream)
        return self.times[self.proposed[-1].coop]


@pytest.fixture
def device(needs_gxx, monkeypatch):
    made = TimedDevice(dict(zip(COOPS, (6.0, 3.0, 2.0, 4.0, 5.0, 7.0), strict=True)))
    program = cuda_products.csr_program

    def note(matrix, threads):
        made.proposed.append(threads)
        return program(matrix, threads)

    monkeypatch.setattr(cuda_products, "csr_program", note)
    with use(made):
        yield made


def test_first_calls_find_the_threads_and_the_plan_keeps_them(device, tmp_path):
    mesh = generate("delaunay2d", cells=100, seed=0)
    plan = prepare(mesh, [stiffness(fixed="boundary")], Options(block_size=32)).plan
    pattern = plan.matrices["K"]
    K = pattern.csr(values=vector(pattern.columns.size))
    product = Product(to_gpu(K))
    x = vector(K.shape[1])
    calls = 0
    while not pattern.tuned:
        assert np.array_equal((product @ device.array(x)).get(), exact(K, x))
        calls += 1
    assert calls <= MOST_TRIALS + 1
    (tuned,) = pattern.tuned
    assert (tuned.device, tuned.dtype, tuned.coop, tuned.repeat) == ("emulated", "f8", 4, 1)
    assert tuned.seconds == 2.0 / cuda_products.TIMED_CALLS
    launched = device.launched
    assert np.array_equal((product @ device.array(x)).get(), exact(K, x))
    assert device.launched == launched + 1
    # Another product, and one of the plan from its file, begin with what was found.
    plan.save(tmp_path / "a.plan.h5")
    loaded = Plan.load(tmp_path / "a.plan.h5").matrices["K"]
    assert loaded.tuned == [tuned]
    for other in (K, loaded.csr(values=K.values)):
        device.proposed.clear()
        again = Product(to_gpu(other))
        assert np.array_equal((again @ device.array(x)).get(), exact(K, x))
        assert device.proposed == [CsrThreads(128, 4, 1)]


def test_values_of_another_type_are_searched_anew(device):
    matrix = random_csr([3] * 40, 50)
    product = Product(to_gpu(matrix))
    x = device.array(vector(50))
    while not matrix.tuned:
        product @ x
    single = replace(matrix, values=matrix.values.astype("f4"))
    product = Product(to_gpu(single))
    x = device.array(vector(50, "f4"))
    while len(matrix.tuned) == 1:
        product @ x
    assert [one.dtype for one in matrix.tuned] == ["f8", "f4"]


def test_given_threads_are_kept(device):
    matrix = random_csr([3] * 40, 50)
    product = Product(to_gpu(matrix), threads=CsrThreads(64, 8, 1))
    for _ in range(3):
        product @ device.array(vector(50))
    assert device.proposed == [CsrThreads(64, 8, 1)]
    assert matrix.tuned == []
