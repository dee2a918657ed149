"""Plans for the kernels of examples/kernels, on small generated meshes."""

from pathlib import Path

import pytest

from meshprep.io.generate import generate
from meshprep.loops import read_requests
from meshprep.pipeline.steps import Options, prepare

KERNELS = Path(__file__).parents[2] / "examples" / "kernels"


@pytest.fixture(scope="session")
def prepared():
    """``prepared(program, kind, **mesh_options)``: the mesh in a better order, and its plan."""

    def make(program, kind, block_size=40, **options):
        loops = read_requests(KERNELS / f"{program}.toml")
        return prepare(generate(kind, **options), loops, Options(block_size=block_size))

    return make
