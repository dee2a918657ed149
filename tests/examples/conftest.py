"""Plans for the kernels of examples/kernels, on small generated meshes."""

from pathlib import Path

import numba
import numpy as np
import pytest

from meshprep.io.generate import generate
from meshprep.loops.requests import read_requests
from meshprep.mesh import Dat, Mesh
from meshprep.pipeline.steps import Options, prepare
from meshprep_cuda_check.emulated import EmulatedDevice
from meshprep_runtime.cuda.device import use

KERNELS = Path(__file__).parents[2] / "examples" / "kernels"


@pytest.fixture(scope="session")
def prepared():
    """``prepared(program, kind, **mesh_options)``: the mesh in a better order, and its plan."""

    def make(program, kind, block_size=40, **options):
        loops = read_requests(KERNELS / f"{program}.toml")
        return prepare(generate(kind, **options), loops, Options(block_size=block_size))

    return make


@pytest.fixture(scope="session")
def jiggled():
    """``jiggled(n)``: a square of 2 n^2 triangles whose inner nodes are moved by chance."""

    def make(n):
        mesh = generate("box", nx=n, ny=n, type="triangle", shuffle=True)
        x = mesh.coordinates.copy()
        inner = ((x[:, :2] > 1e-9) & (x[:, :2] < 1 - 1e-9)).all(axis=1)
        by = np.random.default_rng(n).uniform(-0.2 / n, 0.2 / n, (len(x), 2))
        x[:, :2] += by * inner[:, None]
        sets, maps = mesh.sets.values(), mesh.maps.values()
        return Mesh(sets, maps, [Dat("coordinates", "nodes", x)], mesh.tags)

    return make


@pytest.fixture(scope="module")
def one_thread():
    """Thousands of short loops: on a busy machine threads would mostly wait for each other."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


@pytest.fixture
def device(needs_gxx):
    """Runs CUDA C under g++, with checks."""
    with use(EmulatedDevice()) as made:
        yield made
