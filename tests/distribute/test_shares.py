"""The model of a run beside an event simulation; weights from times; auto-balance."""

import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshprep.distribute.shares import (
    RankTimes,
    auto_balance,
    best_weights,
    kinds_of,
    weights_alone,
    weights_from,
)
from meshprep.distribute.shares.timings import timings_of
from meshprep_runtime.errors import MeshprepError


def simulated(times):
    """A run of events: each rank goes on as far as what the others have sent allows."""
    ranks, loops = range(times.ranks), len(times.exchanges)
    clock, place, began = [0.0] * times.ranks, [0] * times.ranks, {}
    while min(place) < loops:
        for rank in random.sample(ranks, times.ranks):
            step = place[rank]
            if step == loops:
                continue
            began.setdefault((step, rank), clock[rank])
            others = [began.get((step, r)) for r in ranks if r != rank and times.exchanges[step]]
            if None not in others:
                computed = clock[rank] + times.interior[step, rank]
                clock[rank] = max([computed, *others]) + times.boundary[step, rank]
                place[rank] += 1
    return max(clock)


@given(st.integers(1, 6), st.integers(0, 7), st.integers(0, 10**6))
def test_the_model_is_a_run_of_events(ranks, loops, seed):
    rng = np.random.default_rng(seed)
    sends = rng.random(loops) < 0.5
    inside, outside = rng.random((2, loops, ranks))
    times = RankTimes(inside, outside * sends[:, None], sends, np.full(ranks, 1 / ranks))
    assert times.seconds() == pytest.approx(simulated(times), abs=1e-9)


def test_a_wait_is_hidden_where_the_interior_is_long_enough():
    def run(interior):
        inside = np.array([[1.0, 3.0], [interior, interior]])
        outside = np.array([[0.0, 0.0], [0.5, 0.25]])
        return RankTimes(inside, outside, np.array([False, True]), np.full(2, 0.5)).seconds()

    # Rank 0 begins the second loop at 1 and rank 1 at 3.
    assert run(4.0) == pytest.approx(3 + 4 + 0.25)
    assert run(0.25) == pytest.approx(3 + 0.5)


def times_of(rates, share):
    """One loop without messages on ranks of these rates."""
    share = np.asarray(share, np.float64) / np.sum(share)
    inside = (np.asarray(rates) * share)[None]
    return RankTimes(inside, 0 * inside, np.zeros(1, bool), share)


def test_the_published_times_give_the_published_weight():
    # [R14 6.3]: a GPU alone takes 34 s, the cores of a CPU 144 s.
    weights = weights_alone([144.0, 34.0])
    assert weights.round(2).tolist() == [1.0, 4.24]
    times = times_of([144.0, 34.0], [1.0, 1.0])
    assert best_weights(times) == pytest.approx([1.0, 144 / 34], rel=2e-3)
    share = weights / weights.sum()
    assert times.seconds(share) == pytest.approx(27.5, abs=0.01)


@given(
    rates=st.lists(st.floats(1.0, 50.0), min_size=1, max_size=4),
    ranks=st.integers(1, 4),
)
def test_without_waits_the_best_weights_let_all_end_at_once(rates, ranks):
    rate = np.repeat(rates, ranks)
    kinds = np.repeat(np.arange(len(rates)), ranks)
    times = times_of(rate, np.ones(rate.size))
    weights = best_weights(times, kinds)
    seconds = times.seconds(weights / weights.sum())
    assert weights.min() == pytest.approx(1.0)
    assert seconds == pytest.approx(1 / (1 / rate).sum(), rel=2e-3)


@given(st.integers(0, 10**6))
def test_with_waits_the_best_weights_are_those_of_a_search_by_hand(seed):
    rng = np.random.default_rng(seed)
    sends = np.array([False, True, True])
    inside, outside = rng.random((3, 2)), rng.random((3, 2)) * sends[:, None]
    times = RankTimes(inside, outside, sends, np.array([0.5, 0.5]))
    weights = best_weights(times, np.array([0, 1]))
    found = times.seconds(weights / weights.sum())
    by_hand = [times.seconds(np.array([s, 1 - s])) for s in np.linspace(0.02, 0.98, 97)]
    assert found <= 1.005 * min(by_hand)


def test_ranks_of_like_rates_are_of_one_kind():
    times = times_of([10.0, 2.0, 10.5, 2.1, 5.0], np.ones(5))
    assert kinds_of(times).tolist() == [0, 2, 0, 2, 1]
    assert best_weights(times)[[0, 1]] == pytest.approx(best_weights(times)[[2, 3]])


@pytest.mark.parametrize("ranks", [9, 20])
def test_ranks_of_very_many_speeds_all_end_at_once(ranks):
    rates = 1.3 ** np.arange(ranks)
    assert kinds_of(times_of(rates, np.ones(ranks))).max() == ranks - 1
    weights = best_weights(times_of(rates, np.ones(ranks)))
    assert weights == pytest.approx(rates[-1] / rates, rel=0.02)


def test_weights_of_many_kinds_are_searched_where_ranks_wait():
    rng = np.random.default_rng(2)
    inside, outside = (1.3 ** np.arange(11) * rng.random((2, 11)) for _ in range(2))
    times = RankTimes(inside, outside, np.ones(2, bool), np.full(11, 1 / 11))
    assert kinds_of(times).max() == 8
    even, found = 1 / times.rates, best_weights(times)
    before, after = (times.seconds(w / w.sum()) for w in (even, found))
    assert after < 0.9 * before


@pytest.mark.parametrize("slow", [2.0, 3.7, 6.0])
@pytest.mark.parametrize("borders", [0.0, 0.15])
def test_auto_balance_comes_near_the_best_of_all_weights(slow, borders):
    """A slowed rank beside a fast one, with borders that do not shrink as their parts do."""

    def run(weights):
        share = weights / weights.sum()
        edge = borders * np.minimum(share, 1 - share) ** (2 / 3)
        inside, outside = share * [slow, 1.0], edge * [slow, 1.0]
        times = RankTimes(inside[None], outside[None], np.ones(1, bool), share)
        return times, times.seconds()

    found = auto_balance(run, np.array([0, 1]), [slow, 1.0])
    tried = np.linspace(1, 8, 281)
    seconds = [run(np.array([1.0, w]))[1] for w in tried]
    best = int(np.argmin(seconds))
    assert found.runs <= 2
    assert found.seconds <= 1.05 * seconds[best]
    assert found.weights[1] / found.weights[0] == pytest.approx(tried[best], rel=0.1)


def test_auto_balance_keeps_the_faster_of_two_runs():
    asked = []

    def run(weights):
        asked.append(weights)
        return times_of([4.0, 1.0], weights), float(len(asked))

    found = auto_balance(run, np.array([0, 1]), [2.0, 1.0])
    assert found.runs == 2
    assert found.weights.tolist() == asked[0].tolist() == [1.0, 2.0]
    assert asked[1] == pytest.approx([1.0, 4.0], rel=2e-3)
    # what it would ask for next is what it had
    assert (auto_balance(run, np.array([0, 1]), [4.0, 1.0]).runs, len(asked)) == (1, 3)


def written(rows):
    """Timings as a program writes them, of ranks that took so many seconds for so much."""

    def loop(calls, core, boundary, messages, elements):
        seconds = {"core": core, "boundary": boundary, "exec": 0.0, "wait": 5.0, "other": 0.0}
        return {"calls": calls, "messages": messages, "elements": elements} | seconds

    flux = [loop(10, s, 0.1 * s, 4, {"core": n, "exec": 3}) for s, n in rows]
    update = [loop(20, s, 0.0, 0, {"core": n}) for s, n in rows]
    loops = {"flux": flux, "update": update}
    return {"loops": {k: {str(r): t for r, t in enumerate(v)} for k, v in loops.items()}}


def test_weights_come_from_the_timings_of_a_program(tmp_path):
    path = tmp_path / "timings.json"
    path.write_text(json.dumps(written([(2.0, 100), (2.0, 300)])))
    assert weights_from(path, 2) == pytest.approx([1.0, 3.0], rel=0.02)
    times = timings_of(written([(2.0, 100), (2.0, 300)]))
    assert times.share.tolist() == [0.25, 0.75]
    assert times.exchanges.tolist() == [True, False]
    assert times.rates == pytest.approx([(0.2 + 0.02 + 0.2) / 0.25, 0.42 / 0.75])
    with pytest.raises(MeshprepError, match="of 2 ranks, but there are 4 parts"):
        weights_from(path, 4)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "it is not JSON"),
        ("[]", "does not hold the times"),
        ('{"loops": {"flux": {"0": {}}}}', "does not hold the times"),
        ('{"loops": {}}', "no loop ran"),
        (json.dumps(written([(2.0, 100), (2.0, 0)])), "rank 1 owned or took nothing.*: time a run"),
        (json.dumps(written([(0.0, 100), (2.0, 5)])), "rank 0 owned or took nothing"),
    ],
)
def test_timings_that_cannot_be_used_are_refused_in_a_line(tmp_path, content, words):
    path = tmp_path / "timings.json"
    path.write_text(content)
    with pytest.raises(MeshprepError, match=words) as raised:
        weights_from(path, 2)
    assert "\n" not in str(raised.value)
    assert str(path) in str(raised.value)


def test_a_file_of_timings_that_is_not_there(tmp_path):
    with pytest.raises(MeshprepError, match="cannot read timings"):
        weights_from(tmp_path / "none.json", 2)


def test_times_alone_must_be_above_0():
    with pytest.raises(MeshprepError, match="above 0"):
        weights_alone([1.0, 0.0])
