"""Several ranks make the file of one, and agree on what fails: as threads, and under MPI."""

from functools import partial
from pathlib import Path
from threading import Barrier

import pytest
from numba import get_num_threads
from thread_ranks import on_ranks

from meshprep.distribute.job import run as jobs
from meshprep.distribute.job.run import SplitJob, run
from meshprep.distribute.job.split import SplitOptions
from meshprep.distribute.ranks import ALONE, agreed, in_turn, of_root, own_parts
from meshprep.io import write
from meshprep.io.generate import generate
from meshprep.loops.options import Options
from meshprep.loops.requests import LoopRequest, simple_request
from meshprep_runtime.errors import MeshprepError

ROOT = Path(__file__).parents[2]
LOOPS = (simple_request("edges->cells"),)


@pytest.fixture(scope="module")
def mesh_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("ranks") / "wing.msh"
    write(generate("delaunay2d", cells=300, seed=0), path)
    return path


def job(mesh, output, **values):
    return SplitJob(mesh, output, (2, 5), LOOPS, options=Options(block_size=32), **values)


@pytest.fixture(scope="module")
def made(mesh_file):
    run(job(mesh_file, mesh_file.with_name("one.parts.h5")))
    return mesh_file.with_name("one.parts.h5").read_bytes()


@pytest.mark.parametrize(
    "size", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 7))]
)
def test_the_bytes_do_not_depend_on_the_number_of_ranks(mesh_file, made, tmp_path, size):
    output = tmp_path / "wing.parts.h5"
    found = on_ranks(size, lambda rank: run(job(mesh_file, output), ranks=rank))
    assert output.read_bytes() == made
    assert [one.figures for one in found] == [found[0].figures] * size
    more = SplitJob(output, output, (3,), options=Options(block_size=32))
    on_ranks(size, lambda rank: run(more, ranks=rank))
    alone = tmp_path / "alone.parts.h5"
    alone.write_bytes(made)
    run(SplitJob(alone, alone, (3,), options=Options(block_size=32)))
    assert output.read_bytes() == alone.read_bytes()


def fail_on(rank_of_part, error):
    def figures(batch):
        if rank_of_part in batch.parts:
            raise error
        return real(batch)

    real = jobs.batch_figures
    return figures


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (
            MeshprepError("a fault of the input"),
            MeshprepError,
            "rank 1: a fault of the input",
        ),
        (
            OSError(28, "No space left on device"),
            MeshprepError,
            "rank 1: No space left on device",
        ),
        (ZeroDivisionError("oops"), RuntimeError, "rank 1: ZeroDivisionError: oops"),
    ],
)
def test_all_ranks_raise_what_one_meets(
    mesh_file, tmp_path, monkeypatch, error, kind, message
):
    monkeypatch.setattr(jobs, "batch_figures", fail_on(1, error))
    output = tmp_path / "wing.parts.h5"
    found = on_ranks(3, lambda rank: run(job(mesh_file, output), ranks=rank))
    assert [(type(one), str(one), one.agreed) for one in found] == [
        (kind, message, True)
    ] * 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["begin_file", "copy_slices", "seal_parts", "_prove"])
def test_a_disk_that_is_full_leaves_nothing(mesh_file, tmp_path, monkeypatch, step):
    def full(*given, **named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(jobs, step, full)
    output = tmp_path / "wing.parts.h5"
    for size in (1, 2):
        found = on_ranks(size, lambda rank: run(job(mesh_file, output), ranks=rank))
        assert {type(one) for one in found} == {MeshprepError}
        assert {"No space left on device" in str(one) for one in found} == {True}
        assert list(tmp_path.iterdir()) == []


def test_bad_input_is_said_once_and_alike(mesh_file, tmp_path):
    bad = tmp_path / "bad.msh"
    bad.write_text("no mesh")
    found = on_ranks(2, lambda rank: run(job(bad, tmp_path / "x.parts.h5"), ranks=rank))
    assert str(found[0]) == str(found[1])
    assert str(bad) in str(found[0])
    assert "rank" not in str(found[0])


def test_parts_are_worked_on_at_once_and_given_in_turn():
    threads, told = get_num_threads(), []
    count = min(threads, 5)
    together = Barrier(count, timeout=60)

    def work(part):
        if part < 2 + count:
            together.wait()
        return part, get_num_threads()

    found = list(in_turn(work, range(2, 7), told.append))
    assert found == [(part, threads // count) for part in range(2, 7)]
    assert told == [0.0, 0.2, 0.4, 0.6, 0.8]
    assert list(in_turn(work, range(0), told.append)) == []
    with pytest.raises(KeyError):
        list(in_turn(lambda part: {}[part], range(3), told.append))


def test_votes():
    assert agreed(ALONE, lambda: 3) == 3
    assert on_ranks(3, lambda ranks: of_root(ranks, lambda: ranks.rank)) == [0, 0, 0]
    assert on_ranks(3, lambda ranks: list(own_parts(ranks, 5))) == [[0, 1], [2, 3], [4]]

    def two(ranks):
        def work():
            if ranks.rank:
                raise MeshprepError(f"of {ranks.rank}")

        return agreed(ranks, work)

    assert [str(one) for one in on_ranks(3, two)] == ["rank 1: of 1"] * 3


@pytest.fixture(
    scope="module", params=["mpich", pytest.param("openmpi", marks=pytest.mark.long)]
)
def mpiexec(request, mpi_launcher, tmp_path_factory):
    """``mpiexec(ranks, *words)``: the program on so many ranks."""
    launch = mpi_launcher(
        request.param, tmp_path_factory.mktemp(request.param), ROOT / "cli"
    )
    return partial(launch, program=("-m", "mpi4py", "-m", "meshprep_cli.main"))


@pytest.mark.slow
def test_ranks_of_mpi_make_the_same_file_and_speak_with_one_voice(
    mpiexec, mesh_file, made, tmp_path
):
    output = tmp_path / "wing.parts.h5"
    words = (
        "split",
        mesh_file,
        "--parts",
        "2,5",
        "--loop",
        "edges:cells",
        "--block-size",
        32,
    )
    done = mpiexec(2, *words, "-q", "-o", output)
    assert (done.returncode, done.stdout.count("wrote")) == (0, 1), done.stderr
    assert output.read_bytes() == made
    done = mpiexec(2, *words, "-q", "-o", output)
    assert (done.returncode, done.stderr.count("exists already")) == (2, 1)
    assert list(tmp_path.iterdir()) == [output]


def test_loops_that_add_to_matrices_are_sliced_as_they_are_split(mesh_file, tmp_path):
    matrix = {
        "mat": "K",
        "rows": "cells->nodes",
        "columns": "cells->nodes",
        "access": "inc",
    }
    loops = (LoopRequest("stiffness", {"over": "cells", "args": [matrix]}, "stiffness"),)
    alone, output = tmp_path / "alone.parts.h5", tmp_path / "sliced.parts.h5"
    how = SplitOptions("rcb")
    run(SplitJob(mesh_file, alone, (2, 5), loops, how))
    sliced = SplitJob(mesh_file, output, (2, 5), loops, how, slices=True)
    on_ranks(2, lambda rank: run(sliced, ranks=rank))
    assert output.read_bytes() == alone.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("mpiexec", ["mpich", "openmpi"], indirect=True)
def test_ranks_of_mpi_that_hold_slices_make_the_same_file(mpiexec, mesh_file, tmp_path):
    alone, output = tmp_path / "alone.parts.h5", tmp_path / "wing.parts.h5"
    run(job(mesh_file, alone, how=SplitOptions("refined")))
    words = (
        "split",
        mesh_file,
        "--parts",
        "2,5",
        "--loop",
        "edges:cells",
        "--block-size",
        32,
    )
    done = mpiexec(2, *words, "--slices", "-q", "-o", output)
    assert done.returncode == 0, done.stderr
    assert output.read_bytes() == alone.read_bytes()
    done = mpiexec(2, "check", output, "-q")
    assert (done.returncode, done.stdout) == (0, f"{output}: right (2 and 5 parts)\n"), (
        done.stderr
    )
    data = bytearray(output.read_bytes())
    data[len(data) // 2] ^= 1
    output.write_bytes(data)
    done = mpiexec(2, "check", output, "-q")
    assert (done.returncode, done.stderr.count("damaged")) == (2, 1), done.stderr
