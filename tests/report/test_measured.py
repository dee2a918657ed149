"""What reorder says of the times that it measured."""

from dataclasses import replace

import pytest

from meshprep import prepare
from meshprep.io.generate import generate
from meshprep.metrics.cost import Measured
from meshprep.report import measured_lines
from meshprep_runtime.plan.tuned import Timing

GPU = "; on a GPU, ask 'meshprep tune --device gpu'"


@pytest.fixture(scope="module")
def plan():
    return prepared("gpu")


def prepared(target):
    made = prepare(generate("delaunay2d", cells=300, seed=1), target=target).plan
    return replace(made, metrics=replace(made.metrics, seconds={"all": 3.0}))


def timing(median, runs=7):
    return Timing(0.99 * median, median, 1.01 * median, runs)


def measured(before, after, **how):
    return Measured(timing(before, **how), timing(after, **how))


def test_a_faster_call_is_repaid(plan):
    (line,) = measured_lines(plan, {"flux": measured(5e-3, 2e-3)})
    assert line == (
        "loop flux: moving its data takes 5 ms a call in the input order, 2 ms in the plan's, on "
        "one thread here: 2.5 times as fast; prepared in 3.0 s, repaid after about 1,000 calls, as "
        "measured" + GPU
    )


def test_a_slower_call_is_never_repaid(plan):
    (line,) = measured_lines(plan, {"flux": measured(2e-3, 5e-3)})
    assert "2 ms a call in the input order, 5 ms in the plan's" in line
    assert "on one thread here: 2.5 times as long; prepared in 3.0 s, which no number of" in line


@pytest.mark.parametrize("times", [measured(2e-3, 1.99e-3), measured(5e-3, 2e-3, runs=4)])
def test_noise_is_no_difference(plan, times):
    (line,) = measured_lines(plan, {"flux": times})
    assert "ms a call on one thread here, in either order; prepared" in line
    assert "which no number of calls repays" in line
    assert times.saved == 0


def test_all_loops_repay_the_preparation_together():
    both = {"flux": measured(5e-3, 2e-3), "step": measured(4e-3, 1e-3)}
    lines = measured_lines(prepared("cpu"), both)
    assert [line.split(":")[0] for line in lines] == ["loop flux", "loop step", "all loops"]
    wanted = (
        "all loops: prepared in 3.0 s, repaid after about 500 calls of all its loops, as measured"
    )
    assert lines[-1] == wanted


def test_nothing_is_said_of_what_was_not_measured(plan):
    assert measured_lines(plan, {}) == []
