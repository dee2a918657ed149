"""Tuning without running what is tuned."""

import pytest
from flux_loop import FLUX

from meshprep_runtime import Loop
from meshprep_runtime.tuning import tune as tuning


@pytest.fixture
def flux_plan(slow):
    """The flux over edges of a grid, in blocks of 4 and 8."""
    grid = slow.quads(5, 4)
    return slow.plan(grid.sizes, grid.tables, [Loop("flux", "edges", FLUX)], (4, 8))["flux"]


@pytest.fixture
def scripted(monkeypatch):
    """Loops do not run; ``seconds(candidate)`` says how long each run takes."""

    def script(seconds):
        prepared = []

        def fake(race, candidate):
            prepared.append(candidate)
            return lambda: seconds(candidate)

        monkeypatch.setattr(tuning._Race, "_prepared", fake)
        return prepared

    return script
