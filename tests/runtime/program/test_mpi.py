"""Real ranks, under MPICH and Open MPI: the same programs as on ranks of one process."""

import json
import pickle
import re
from pathlib import Path

import h5py
import mpi_balance
import numpy as np
import poisson_on_ranks
import pytest
import stopped_program
from rank_programs import PROGRAM, on_one_rank, random_mesh, start_values

from airfoil import KERNELS, Airfoil, prepared_airfoil
from meshprep.distribute.job.run import SplitJob, run
from meshprep.distribute.job.split import SplitOptions
from meshprep.io import read
from meshprep.loops.options import Options
from meshprep.loops.requests import LoopRequest, read_requests
from meshprep.pipeline import workflow
from meshprep_runtime.plan.parts import parts_table, read_part

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[3]


@pytest.fixture(
    scope="module", params=["mpich", pytest.param("openmpi", marks=pytest.mark.slow)]
)
def mpiexec(request, mpi_launcher, tmp_path_factory):
    """``mpiexec(ranks, *words)``: run Python on ranks, at most so many seconds."""
    folder = tmp_path_factory.mktemp(request.param)
    return mpi_launcher(request.param, folder, ROOT / "examples", HERE)


@pytest.fixture(scope="module")
def airfoil_parts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mpi")
    workflow.generate("airfoil", folder / "airfoil.msh", values={"cells": 1200})
    requests = read_requests(KERNELS / "airfoil.toml")
    options = Options(block_size=32)
    output = folder / "airfoil.parts.h5"
    run(SplitJob(folder / "airfoil.msh", output, (2, 4), requests, SplitOptions(), options))
    return output, folder / "airfoil.msh"


@pytest.fixture(scope="module")
def squares(tmp_path_factory):
    """``squares(cells)``: a file of triangles."""
    folder = tmp_path_factory.mktemp("square")

    def make(cells):
        path = folder / f"square{cells}.msh"
        if not path.exists():
            workflow.generate("delaunay2d", path, values={"cells": cells})
        return path

    return make


@pytest.fixture(scope="module")
def poisson_parts(tmp_path_factory):
    square = tmp_path_factory.mktemp("poisson") / "square.msh"
    poisson_on_ranks.make_square(square)
    output = square.with_name("square.parts.h5")
    run(SplitJob(square, output, (2, 4), (poisson_on_ranks.REQUEST,)))
    mesh = read(square)
    alone = {
        form: poisson_on_ranks.on_one_rank(mesh, form) for form in poisson_on_ranks.FORMS
    }
    output.with_name("alone").write_bytes(pickle.dumps(alone))
    return output, square


def test_programs_on_ranks(mpiexec, airfoil_parts, poisson_parts):
    parts, mesh = airfoil_parts
    square_parts, square = poisson_parts
    # Compiles, too, so that the ranks need not.
    one = Airfoil(prepared_airfoil(0, 128, mesh=read(mesh)), "sequential")
    expected = [f"{rms:.5e}" for rms in one.steps(4)]
    rng = np.random.default_rng(0)
    sizes, tables = random_mesh(rng, 5)
    on_one_rank(sizes, tables, start_values(rng, sizes), PROGRAM)
    done = mpiexec(4, HERE / "mpi_program.py", parts, square, square_parts)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {"mpich": "MPICH", "openmpi": "Open MPI"}[mpiexec.kind] in found["library"]
    for ranks in (2, 3, 4):
        assert found[f"integers {ranks}"] is True
        assert found[f"extremes {ranks}"] is True
    for ranks in (2, 4):
        assert found[f"poisson {ranks}"] == dict.fromkeys(poisson_on_ranks.FORMS, True)
        assert found[f"flow {ranks}"] == [[expected, 4 * 4 - 1, True]] * ranks
    (told,) = set(found["refused"])
    assert "not 3: add that by 'meshprep split" in told


def test_fields_that_all_ranks_write(mpiexec, airfoil_parts, tmp_path):
    """By MPI-IO: the same bytes from two and four ranks; none where one rank cannot write."""
    done = mpiexec(4, HERE / "mpi_fields.py", airfoil_parts[0], tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["by MPI"] == [True] * 6
    with h5py.File(tmp_path / "4.h5") as file:
        cells = np.arange(file["q"].shape[0])
        expected = {"q": np.sqrt(cells[:, None] + np.arange(3.0)), "squares": cells**2}
        for name, values in expected.items():
            np.testing.assert_array_equal(file[name][:], values.reshape(cells.size, -1))
            np.testing.assert_array_equal(np.load(tmp_path / f"4.{name}.npy"), file[name])
    assert (tmp_path / "2.h5").read_bytes() == (tmp_path / "4.h5").read_bytes()
    (told,) = set(found["told"])
    assert told.startswith(f"rank 3 of 4: {tmp_path / 'full.h5'}: cannot write: ")
    assert "\n" not in told
    assert [path for path in tmp_path.iterdir() if path.name[0] in ".f"] == []


@pytest.mark.parametrize("fault", ["raise", "kill"])
def test_no_rank_waits_for_one_that_failed(mpiexec, airfoil_parts, fault):
    # the rank that waits would do so for longer than it may run
    done = mpiexec(2, HERE / "mpi_fault.py", airfoil_parts[0], fault, seconds=60)
    assert done.returncode != 0
    if fault == "raise":
        assert "ValueError: no such cell" in done.stderr


FAULTS = {
    "absent": (
        "rank 0: other ranks have not come to DistributedPlan.load in 3 s, which waits for all"
    ),
    "exit": "rank 0: fetch of dat 0 waits for rank 1, which has ended",
    "late": "rank 0: no message in 3 s from rank 1, which fetch of dat 0 waits for",
    "other": "awaits a message of rank ., which is in something else: all ranks must call",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_wait_ends(mpiexec, airfoil_parts, fault):
    done = mpiexec(2, HERE / "mpi_fault.py", airfoil_parts[0], fault, seconds=100)
    assert done.returncode != 0
    assert re.search(FAULTS[fault], done.stderr)


def requests_of(loops):
    return tuple(LoopRequest(one.name, one.to_dict(), one.name) for one in loops)


@pytest.mark.slow
def test_ranks_go_on_after_one_was_killed_while_it_wrote(mpiexec, squares, tmp_path):
    parts = tmp_path / "square.parts.h5"
    run(SplitJob(squares(600), parts, (2,), requests_of(stopped_program.LOOPS)))
    program = HERE / "mpi_checkpoints.py"
    assert mpiexec(2, program, parts, tmp_path, "kill").returncode != 0
    assert (tmp_path / "run.h5.rank1.1").exists()
    done = mpiexec(2, program, parts, tmp_path, "finish")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, True]


SLOW = ("2", "3.7", "6")


def seconds_by_work(plan, slow):
    """What the ranks of a part take, by the work that they really have."""
    table = parts_table(plan, 2)
    elements = [
        read_part(plan, table, rank).loops["flux"].plan.sizes["edges"] for rank in (0, 1)
    ]
    return max(slow * elements[0], elements[1])


def slowest_seconds(timings):
    """What the rank took that computed longest."""
    ranks = json.loads(timings.read_text())["loops"]["flux"].values()
    return max(sum(rank[name] for name in ("core", "boundary", "exec")) for rank in ranks)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mpiexec", ["mpich", pytest.param("openmpi", marks=pytest.mark.long)], indirect=True
)
def test_parts_by_the_times_of_a_run_are_nearly_the_best(mpiexec, squares, tmp_path):
    """One rank works 2, 3.7 and 6 times as much an edge."""
    requests, timings = requests_of([mpi_balance.FLUX]), tmp_path / "timings"
    square, equal = squares(4000), tmp_path / "equal.parts.h5"
    run(SplitJob(square, equal, (2,), requests, SplitOptions("rcb")))
    edges = parts_table(equal, 2).description["sets"]["edges"]
    words = [word for slow in SLOW for word in (slow, equal)]
    done = mpiexec(2, HERE / "mpi_balance.py", timings, *words)
    assert done.returncode == 0, done.stderr
    for slow in SLOW:
        parts, ratio = tmp_path / f"{slow}.parts.h5", float(slow)
        how = SplitOptions("rcb", weights=f"auto:{tmp_path}/timings{slow}")
        run(SplitJob(square, parts, (2,), requests, how))
        best = edges * ratio / (1 + ratio)
        assert seconds_by_work(parts, ratio) <= 1.05 * best
        assert seconds_by_work(equal, ratio) > 1.3 * best
    before = sum(slowest_seconds(tmp_path / f"timings{slow}") for slow in SLOW)
    words = [word for slow in SLOW for word in (slow, tmp_path / f"{slow}.parts.h5")]
    assert mpiexec(2, HERE / "mpi_balance.py", timings, *words).returncode == 0
    after = sum(slowest_seconds(tmp_path / f"timings{slow}") for slow in SLOW)
    assert after < 0.45 * before
