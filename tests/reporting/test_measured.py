"""The first sentence of reports: what was gained, what it cost, whether it pays and for whom."""

from dataclasses import replace

import pytest

from meshprep import prepare
from meshprep.io.generate import generate
from meshprep.metrics.cost import Measured
from meshprep.reporting import conclusion
from meshprep_runtime.plan.tuned import Timing


@pytest.fixture(scope="module")
def plan():
    return prepared("cpu", "edges->cells")


def prepared(target, *loops, seconds=3.0):
    made = prepare(generate("delaunay2d", cells=300, seed=1), loops, target=target).plan
    return replace(made, metrics=replace(made.metrics, seconds={"all": seconds}))


def timing(median, runs=7):
    return Timing(0.99 * median, median, 1.01 * median, runs)


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


@pytest.mark.parametrize("times", [measured(2e-3, 1.99e-3), measured(2e-3, 1e-3, runs=4)])
def test_noise_is_no_difference(plan, times):
    text = conclusion(plan, {"edges->cells": times})
    assert text.startswith(
        "Does not pay on one thread of this CPU: its loop moves its data in "
    )
    assert "a call in either order, and preparing took 3.0 s." in text
    assert times.saved == 0


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
