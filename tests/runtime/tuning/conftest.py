"""Tuning without running what is tuned."""

import pytest

from meshprep_runtime.tuning import tune as tuning


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
