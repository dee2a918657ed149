"""Lets the tests of this folder import the meshes they share, and what spoils files."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "campaign"))
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def read_here(monkeypatch):
    """Read HDF5 files in this process: to start another for each takes most of a test's time.

    For files that cannot crash a library; hdf/test_child.py has both ways. It is what meshprep
    does where Python is part of another program, and cannot be started.
    """
    monkeypatch.setattr(sys, "executable", "")
