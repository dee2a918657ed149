"""A limit of time is used and kept, whatever a sweep of each level takes."""

from types import SimpleNamespace

import numpy as np
import pytest

from meshprep.partition.blocks.anneal import annealing as budgets
from meshprep.partition.blocks.anneal.annealing import Budget

LIMIT, PARTS = 10.0, 4


@pytest.mark.parametrize("setup", [0.0, 4.0])
@pytest.mark.parametrize("seconds", [(3e-8, 3e-8), (1e-8, 4e-8), (4e-8, 1e-8)])
def test_time_that_is_left_is_used(monkeypatch, setup, seconds):
    now = [0.0]
    monkeypatch.setattr(budgets, "clock", lambda: now[0])
    budget = Budget(1.0, LIMIT, lambda share: None)
    now[0] = setup
    level = SimpleNamespace(points=np.empty(3000), neighbours=np.empty(1000))
    todo = [(level, SimpleNamespace(sweeps=20.0)), (level, SimpleNamespace(sweeps=40.0))]
    for k, a_look in enumerate(seconds):
        total, begin = budget.sweeps(todo[k:], 0.0), 0
        for part in range(PARTS):
            end = begin + round((total - begin) / (PARTS - part))
            now[0] += (end - begin) * 4000 * a_look
            budget.spend(level, end - begin)
            begin = end
            if part < PARTS - 1:
                total = begin + budget.sweeps(todo[k:], begin / total)
    assert 0.85 * LIMIT < now[0] < 1.01 * LIMIT
