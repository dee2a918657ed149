"""Random combinations of meshes, loops and options: nothing wrong may come out.

``make fuzz`` runs as many as there is time for, in every strategy.
"""

import random

import pytest
from damage import try_plans
from random_cases import random_case, run_case
from random_kernels import outcomes_of_kernels

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
        run_case(random_case(seed), ("hierarchical",))
        for seed in range(first, first + CHUNK)
    ]
    # what is refused has reasons, and is the smaller part
    assert outcomes.count("right") >= CHUNK // 2


# A kernel takes seconds to compile, in all of its forms; test_forms.py has more of them.
KERNELS = 5
SOME_KERNELS = [
    0,
    pytest.param(5, marks=pytest.mark.slow),
    *(pytest.param(first, marks=pytest.mark.long) for first in range(10, 100, KERNELS)),
]


@pytest.mark.parametrize("first", SOME_KERNELS)
def test_random_kernels_have_the_bits_of_a_plain_loop(first):
    """In every form, some strategies, and on one to eight threads."""
    count = KERNELS if first else 3
    found = dict(outcomes_of_kernels(range(first, first + count), every=False))
    wrong = {seed: out for seed, out in found.items() if out not in ("right", "refused")}
    assert not wrong
    assert [*found.values()].count("right") >= count // 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2, 3, 5])
def test_damaged_plans_are_refused_or_found_out(seed, tmp_path):
    case = random_case(seed)
    made = prepare(case.mesh, case.requests, case.options, keep_order=case.keep_order)
    try_plans(made.plan, tmp_path, random.Random(seed), 40)
