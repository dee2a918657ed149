"""A small mesh, and its plan with a matrix."""

import pytest
from matrix_loops import stiffness

from meshprep.io.generate import generate
from meshprep.pipeline.steps import Options, prepare


@pytest.fixture(scope="session")
def mesh():
    return generate("delaunay2d", cells=300, seed=1)


@pytest.fixture(scope="session")
def plan(mesh):
    return prepare(mesh, [stiffness(fixed="boundary")], Options(block_size=64)).plan
