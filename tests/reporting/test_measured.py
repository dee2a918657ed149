"""The first sentence of reports: what was gained, what it cost, whether it pays and for whom."""

from dataclasses import replace

import numpy as np
import pytest

from meshprep import prepare
from meshprep.io.generate import generate
from meshprep.metrics.cost import Measured, TimingOutcome
from meshprep.pipeline.measure import CALLS
from meshprep.reporting import conclusion
from meshprep_runtime.plan.tuned import Timing


@pytest.fixture(scope="module")
def plan():
    return prepared("cpu", "edges->cells")


def prepared(target, *loops, seconds=3.0):
    made = prepare(generate("delaunay2d", cells=300, seed=1), loops, target=target).plan
    return replace(made, metrics=replace(made.metrics, seconds={"all": seconds}))


def timing(least, runs=7):
    return Timing(least, 1.01 * least, 1.02 * least, runs)


def measured(before, after, **how):
    return Measured(timing(before, **how), timing(after, **how))


def test_a_faster_call_pays(plan):
    assert conclusion(plan, {"edges->cells": measured(5e-3, 2e-3)}) == (
        "Pays after about 1,000 calls on one thread of this CPU: its loop moves its data in 2 ms a "
        "call in place of 5 ms, 2.5 times as fast, and preparing took 3.0 s."
    )


def test_a_slower_call_does_harm(plan):
    assert conclusion(plan, {"edges->cells": measured(2e-3, 5e-3)}) == (
        "Does harm, so keep the input order, on one thread of this CPU: its loop moves its data in "
        "5 ms a call in place of 2 ms, 2.5 times as long, and preparing took 3.0 s."
    )


def test_two_orders_that_take_as_long_make_no_difference(plan):
    times = measured(2e-3, 1.95e-3)
    assert conclusion(plan, {"edges->cells": times}) == (
        "Makes no difference on one thread of this CPU: its loop moves its data in 2 ms a call "
        "in either order, and preparing took 3.0 s."
    )
    assert times.saved == 0


# Runs of 12 ms before, and of 3 ms after, some of them disturbed by another program.
DISTURBED = [
    ([12.0, 12.1, 12.2, 12.3, 12.4], [3.0, 3.0, 3.1, 3.1, 12.1], "3.9 to 4.1"),
    ([12.0, 20.0, 30.0, 30.0, 30.0], [11.0, 14.0, 22.0, 30.0, 31.0], "0.5 to 2.7"),
    ([2.0, 2.0, 2.0], [1.0, 1.0, 1.0], "2.0 to 2.0"),
]


@pytest.mark.parametrize(("before", "after", "factors"), DISTURBED)
def test_noise_is_told_as_noise(plan, before, after, factors):
    times = Measured(
        Timing.of([t / 1e3 for t in before]), Timing.of([t / 1e3 for t in after])
    )
    text = conclusion(plan, {"edges->cells": times})
    assert text.startswith(f"Too noisy to tell ({factors} times as fast) on one thread")
    assert "try again when the machine has no other work, and preparing took" in text
    assert times.saved == 0


def test_a_disturbed_run_among_many_does_not_decide(plan):
    before = [12.0 + 0.1 * k for k in range(CALLS)]
    after = [3.0 + 0.1 * k for k in range(CALLS - 3)] + [12.1, 14.0, 31.0]
    times = Measured(
        Timing.of([t / 1e3 for t in before]), Timing.of([t / 1e3 for t in after])
    )
    text = conclusion(plan, {"edges->cells": times})
    assert text.startswith("Pays after about 330 calls")
    assert "3 ms a call in place of 12 ms, 4.0 times as fast" in text


def test_verdicts_on_a_busy_machine_never_contradict_each_other():
    """Calls of 2 and 1 ms, and of 1 ms each, which other programs lengthen at random."""
    random = np.random.default_rng(3)

    def outcomes(seconds_before, seconds_after, busy):
        found = set()
        for _ in range(300):
            lengthened = 1 + busy * random.pareto(1.5, (2, CALLS))
            before = Timing.of(seconds_before * lengthened[0])
            after = Timing.of(seconds_after * lengthened[1])
            found.add(Measured(before, after).outcome)
        return found

    for busy in (0.02, 0.1, 0.5):
        assert outcomes(2e-3, 1e-3, busy) <= {TimingOutcome.FASTER, TimingOutcome.NOISY}
        assert outcomes(1e-3, 2e-3, busy) <= {TimingOutcome.SLOWER, TimingOutcome.NOISY}
    assert outcomes(2e-3, 1e-3, 0.02) == {TimingOutcome.FASTER}
    assert outcomes(1e-3, 1e-3, 0.02) <= {TimingOutcome.ALIKE, TimingOutcome.NOISY}


def test_loops_repay_the_preparation_together():
    loops = {"edges->cells": measured(5e-3, 2e-3), "cells->nodes": measured(4e-3, 1e-3)}
    plan = prepared("cpu", *loops)
    said = "Pays after about 500 calls on one thread of this CPU: its 2 loops move their data in "
    assert conclusion(plan, loops).startswith(f"{said}3 ms a call in place of 9 ms")
    one = conclusion(plan, {"cells->nodes": loops["cells->nodes"]})
    assert "1 of its 2 loops move their data in 1 ms" in one


def test_a_gpu_is_spoken_of_where_the_plan_is_for_one():
    plan = prepared("gpu", "edges->cells")
    (sides,) = plan.metrics.sides()
    factor = sides.after.traffic["aos"].total / sides.before.traffic["aos"].total
    text = conclusion(plan, {"edges->cells": measured(5e-3, 2e-3)})
    wanted = (
        f"; on a GPU {1 - factor:.0%} fewer memory transactions are predicted (".replace(
            "%", " %"
        )
    )
    assert text.count(wanted) == 1


def test_without_times_the_sentence_says_so(plan):
    said = "Preparing took 3.0 s; what a call saves was not measured."
    assert conclusion(plan, {}) == said
    assert conclusion(prepared("cpu", "edges->cells", seconds=0.0), {}) == (
        "What a call saves was not measured."
    )
