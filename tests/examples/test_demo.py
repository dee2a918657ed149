"""What the demonstration says of its times."""

import pytest

from demo import verdict
from meshprep_runtime.plan.tuned import Timing

SLOW, SURE = Timing.of([9.0, 9.5, 9.5, 9.6, 10.0]), Timing.of([1.9, 1.9, 1.9, 1.9, 1.9])
ROUGH = Timing.of([1.9, 1.9, 1.9, 30.0, 30.0])


def test_the_verdict_has_the_factors():
    said = verdict(SLOW, Timing.of([3.8] * 5), SURE)
    assert "runs this loop 5.0 times as fast as the input order" in said
    assert "by the order alone: 2.5 times as fast" in said


@pytest.mark.parametrize("last", [ROUGH, SLOW])
def test_a_busy_machine_gives_no_factor(last):
    said = verdict(SLOW, SURE, last)
    assert said.startswith("This machine was too busy to tell")
    assert "times as fast" not in said
    assert "by the order alone: too noisy to tell" in verdict(SLOW, ROUGH, SURE)
