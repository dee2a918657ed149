"""Checkpoints of programs on ranks: one entry for all, whenever one of them is killed."""

import os

import numpy as np
import pytest
import stopped_program
from slow_parts import World
from stopped_program import LOOPS, program_of, run

from meshprep_runtime import DistributedError, DistributedPlan, MeshprepError, run_ranks
from meshprep_runtime.program.checkpoints import generations
from meshprep_runtime.program.checkpoints.checkpoints import Clock, calls_to_skip
from meshprep_runtime.program.checkpoints.generations import older
from meshprep_runtime.program.mpi import ALONE

STEPS, FEW = 6, 3


@pytest.fixture(scope="module")
def parts(slow):
    """``parts(k)``: the same cells for so many ranks, their owners at random."""
    grid, made = slow.quads(6, 4), {}

    def make(ranks):
        if ranks not in made:
            rng = np.random.default_rng(ranks)
            sizes = {s: grid.sizes[s] for s in ("edges", "cells")}
            owner = {s: rng.integers(0, ranks, n) for s, n in sizes.items()}
            tables = {"edges->cells": grid.tables["edges->cells"]}
            world = World(sizes, tables, LOOPS, owner, ranks)
            made[ranks] = [world.part(p, slow.variant) for p in range(ranks)]
        return made[ranks]

    return make


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.h5"


def on_ranks(parts, path, steps=STEPS, stop=None, seed=0, kind=None):
    """The state of every rank."""

    def main(comm):
        plan = DistributedPlan(parts[comm.rank], comm)
        return program_of(kind)(plan, path, steps, stop, every=0.0)

    return run_ranks(len(parts), main, seed=seed)


def killed_at(monkeypatch, moment, parts, path, kind=None):
    """Run until some rank is about to give a file its name, for the ``moment``-th time."""
    replace, left = os.replace, [moment]

    def killed(*files):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        replace(*files)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        try:
            on_ranks(parts, path, FEW, seed=moment, kind=kind)
        except KeyboardInterrupt:
            return True
    return False


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_stopped_ranks_end_as_if_they_had_not_stopped(parts, path, ranks):
    expected = on_ranks(parts(ranks), None)
    for stop in (2, 5):
        on_ranks(parts(ranks), path, stop=stop)
    assert on_ranks(parts(ranks), path) == expected
    own = (
        [path] if ranks == 1 else [path.with_name(f"run.h5.rank{r}") for r in range(ranks)]
    )
    assert sorted(path.parent.glob("run.h5*")) == sorted([*own, *map(older, own)])


@pytest.mark.slow
def test_killed_wherever_a_file_gets_its_name(parts, path, monkeypatch):
    """Once anywhere, and again soon after it has gone on."""
    expected, moment = on_ranks(parts(3), None, FEW), 1
    while killed_at(monkeypatch, moment, parts(3), path):
        killed_at(monkeypatch, 1 + moment % 7, parts(3), path)
        assert on_ranks(parts(3), path, FEW) == expected
        for one in path.parent.glob("run.h5*"):
            one.unlink()
        moment += 1
    # Two names a rank and checkpoint, but one for the first one.
    assert moment > 3 * (1 + 2 + 2)


@pytest.mark.slow
def test_ranks_that_wait_go_on_wherever_one_was_killed(parts, path, monkeypatch):
    expected = on_ranks(parts(3), None, FEW, kind="loops")
    for moment in (1, 4, 8, 12):
        assert killed_at(monkeypatch, moment, parts(3), path, "loops")
        assert on_ranks(parts(3), path, FEW, kind="loops") == expected
        for one in path.parent.glob("run.h5*"):
            one.unlink()


def test_tiles_are_refused_on_ranks(parts):
    with pytest.raises(
        MeshprepError, match="a program on ranks has no tiles: leave tile_size"
    ):
        on_ranks(parts(2), None, FEW, kind="tiles")


def test_ranks_go_on_together_from_what_all_have(parts, path):
    expected = on_ranks(parts(2), None)
    on_ranks(parts(2), path, stop=5)
    other = path.with_name("run.h5.rank1")
    other.write_bytes(other.read_bytes()[:-1])
    assert on_ranks(parts(2), path) == expected
    for one in (other, older(other)):
        one.write_bytes(b"no checkpoint")
    with pytest.raises(
        DistributedError, match=r"rank 1 of 2: .*rank1: no checkpoint, or damaged"
    ):
        on_ranks(parts(2), path)
    other.unlink()
    older(other).unlink()
    with pytest.raises(
        DistributedError, match=r"have no checkpoint in common: remove that of rank"
    ):
        on_ranks(parts(2), path)
    path.with_name("run.h5.rank0").unlink()
    older(path.with_name("run.h5.rank0")).unlink()
    assert on_ranks(parts(2), path) == expected


def refusals(parts, path, every=600.0):
    """What each rank is told."""

    def main(comm):
        try:
            return run(DistributedPlan(parts[comm.rank], comm), path, STEPS, every=every)
        except MeshprepError as error:
            return str(error)

    return set(run_ranks(len(parts), main))


def test_checkpoints_of_others_are_refused_on_all_ranks(parts, path, slow, monkeypatch):
    on_ranks(parts(3), path)
    for ranks in (2, 4):
        (told,) = refusals(parts(ranks), path)
        assert f"a checkpoint of 3 ranks, not of {ranks}: run on as many, or remove" in told
    (told,) = refusals(parts(1), path)
    assert "run.h5.rank0: a checkpoint of several ranks, not of 1" in told
    rng = np.random.default_rng(9)
    one = parts(3)[0]
    owner = {s: rng.integers(0, 3, n) for s, n in one.sizes.items()}
    tables = {"edges->cells": slow.quads(6, 4).tables["edges->cells"]}
    world = World(dict(one.sizes), tables, LOOPS, owner, 3)
    (told,) = refusals([world.part(p, slow.variant) for p in range(3)], path)
    assert told.startswith("rank 0 of 3: ")
    assert told.endswith("of another mesh, or other parts of it: remove it to begin anew")

    def other(q1, q2, res1, res2):
        res1[0] += 2 * q2[0]
        res2[0] += q1[0]

    other.__name__ = "gather"
    monkeypatch.setattr(stopped_program, "gather", other)
    (told,) = refusals(parts(3), path)
    assert "a checkpoint of another program: call 1 is of loop 'gather'" in told


def test_a_checkpoint_of_one_rank_is_not_one_of_several(parts, path):
    on_ranks(parts(1), path)
    (told,) = refusals(parts(2), path)
    assert told.endswith(
        "run.h5: a checkpoint of one rank, not of 2: run on as many, or remove it to begin anew"
    )


def test_a_disk_that_is_full_on_one_rank(parts, path, monkeypatch):
    on_ranks(parts(2), path, stop=3)
    expected = on_ranks(parts(2), None)
    write = generations.write_checkpoint

    def full(staged, *given):
        if "rank1" in staged.name:
            raise OSError(28, "No space left on device")
        write(staged, *given)

    with monkeypatch.context() as patch:
        patch.setattr(generations, "write_checkpoint", full)
        (told,) = refusals(parts(2), path, every=0.0)
    assert told.startswith("rank 1 of 2: ")
    assert "No space left on device" in told
    assert on_ranks(parts(2), path) == expected


def test_ranks_look_at_the_clock_of_rank_0_seldom(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    class Asked:
        rank, size, times = 0, 2, 0

        def bcast(self, value, root):
            self.times += 1
            return value

    comm = Asked()
    shared, alone = Clock(100.0, comm), Clock(100.0, ALONE)
    for call in range(1, 20_000):
        now[0] = call * 0.01
        due = shared.is_due()
        assert due == alone.is_due()
        if due:
            break
    assert call == 10_000
    assert comm.times < 40
    # at a pace that does not change, it never skips more than half of the calls that are left
    assert calls_to_skip(100, 1.0, 100.0) == 100
    assert calls_to_skip(100, 1.0, 2.0) == 50
    assert calls_to_skip(100, 1.0, 0.5) == 0
