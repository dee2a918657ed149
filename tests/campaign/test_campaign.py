"""Random combinations of meshes, loops and options: nothing wrong may come out.

``make fuzz`` runs as many as there is time for, in every strategy.
"""

import random

import pytest
from damage import try_plans
from random_cases import random_case, run_case

from meshprep.pipeline.steps import prepare

CHUNK = 10
COUNT, IN_CI, EVERY_DAY = 400, 120, 10


def _marks(first):
    if first < EVERY_DAY:
        return ()
    return pytest.mark.slow if first < IN_CI else pytest.mark.long


CHUNKS = [pytest.param(first, marks=_marks(first)) for first in range(0, COUNT, CHUNK)]


@pytest.mark.parametrize("first", CHUNKS)
def test_random_combinations(first):
    outcomes = [
        run_case(random_case(seed), ("hierarchical",)) for seed in range(first, first + CHUNK)
    ]
    # what is refused has reasons, and is the smaller part
    assert outcomes.count("right") >= CHUNK // 2


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 5))]
)
def test_damaged_plans_are_refused_or_found_out(seed, tmp_path):
    case = random_case(seed)
    made = prepare(case.mesh, case.requests, case.options, keep_order=case.keep_order)
    try_plans(made.plan, tmp_path, random.Random(seed), 40)
