"""Products in every store, timed: which they are, what they move, what is kept."""

import numpy as np
import pytest
from matrix_loops import stiffness

from meshprep.io.generate import generate
from meshprep.metrics.product_traffic import store_bytes
from meshprep.pipeline import tune_stores
from meshprep.pipeline.steps import Options, prepare
from meshprep.pipeline.tune_stores import time_stores
from meshprep_cuda_check.emulated import EmulatedDevice
from meshprep_runtime import MeshprepError
from meshprep_runtime.cuda.device import use
from meshprep_runtime.tuning.machines import on_gpu

STORES = ["csr", "ellpack", "lazy-ellpack", "local", "local, half"]


@pytest.fixture
def plan():
    mesh = generate("delaunay2d", cells=60, seed=0)
    return prepare(mesh, [stiffness(fixed="boundary")], Options(block_size=32)).plan


def test_every_store_of_a_plan(plan):
    times = time_stores(plan, "stiffness", runs=2)
    assert times.matrix == "K"
    assert times.machine.kind == "cpu"
    assert sorted(trial.store for trial in times.trials) == STORES
    moved = {store.store: store.product for store in store_bytes(plan.matrices["K"])}
    assert {trial.store: trial.bytes for trial in times.trials} == moved
    least = [trial.timing.least for trial in times.trials]
    assert least == sorted(least)
    assert all(trial.timing.runs == 2 and trial.timing.least > 0 for trial in times.trials)
    assert plan.matrices["K"].tuned == []


def test_on_a_gpu_csr_finds_its_threads(plan, needs_gxx, monkeypatch):
    monkeypatch.setattr(tune_stores, "SAMPLE_SECONDS", 1e-9)
    device = EmulatedDevice()
    backend = on_gpu(device, device.array, np.copyto, device.synchronize)
    with use(device):
        times = time_stores(plan, "stiffness", device=backend, runs=1)
    assert sorted(trial.store for trial in times.trials) == STORES
    assert times.machine.name == "emulated"
    (tuned,) = plan.matrices["K"].tuned
    assert tuned.device == "emulated"


def test_loops_that_share_a_matrix_have_no_elements_of_their_own():
    mesh = generate("delaunay2d", cells=60, seed=0)
    other = stiffness(fixed="boundary", name="mass")
    plan = prepare(mesh, [stiffness(fixed="boundary"), other], Options(block_size=32)).plan
    times = time_stores(plan, "mass", runs=1)
    assert sorted(trial.store for trial in times.trials) == ["csr", "ellpack"]


def test_half_of_large_elements_is_left_out_on_a_processor():
    """Squares of degree 4 have 25 dofs."""
    mesh = generate("box", nx=4, ny=4, nz=0, type="quad")
    loops = [stiffness("cells->dofs4")]
    plan = prepare(mesh, loops, Options(block_size=32)).plan
    times = time_stores(plan, "stiffness", runs=1)
    assert sorted(trial.store for trial in times.trials) == STORES[:-1]


def test_a_loop_without_a_matrix_is_refused():
    mesh = generate("delaunay2d", cells=60, seed=0)
    plan = prepare(mesh, ["edges->cells"], Options(block_size=32)).plan
    with pytest.raises(MeshprepError, match="adds to 0 matrices"):
        time_stores(plan, "edges->cells")
