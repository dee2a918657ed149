"""Checkpoints: what they hold, and that a program goes on from them, bit for bit."""

import json
import os
import subprocess
import sys
from collections import Counter
from functools import partial
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import stopped_program
from stopped_program import LOOPS, begin, chain_of, run, run_chain

from meshprep_runtime import Access, Arg, Loop, MeshprepError, Program
from meshprep_runtime.program.chains.records import Assign, ReducedGlobal
from meshprep_runtime.program.checkpoints import checkpoints, generations
from meshprep_runtime.program.checkpoints.generations import older
from meshprep_runtime.program.checkpoints.steps import Step, Steps
from meshprep_runtime.program.dat import make_dat


@pytest.fixture
def plan(slow):
    grid = slow.quads(4, 3)
    return slow.plan(grid.sizes, grid.tables, LOOPS, (4,))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.h5"


def test_a_checkpoint_waits_for_the_cheapest_call(plan, path, monkeypatch):
    program = Program(plan, checkpoint=path, every=0.0)
    q, res = program.dat("cells", 1, "i8"), program.dat("cells", 1, "i8")
    loop = program.loop(stopped_program.gather, "gather", strategy="sequential")
    monkeypatch.setattr(checkpoints, "calls_to_wait", lambda *given, **named: 3)
    for _ in range(6):
        # it writes nothing, so that nothing is saved before there are two periods
        assert not path.exists()
        loop(q=q, res=res)
    with h5py.File(path) as saved:
        assert saved.attrs["entry"] == 5


@pytest.mark.parametrize("stop", [1, 2, 5, 9])
def test_a_stopped_program_ends_as_if_it_had_not_stopped(plan, path, stop):
    expected = run(plan, None, 12)
    assert run(plan, path, 12, stop, every=0.0) is None
    for again in (stop + 1, 11):
        run(plan, path, 12, again, every=0.0)
    assert run(plan, path, 12, every=0.0) == expected
    assert older(path).exists()


def test_what_is_saved(plan, path):
    run(plan, path, 6, every=0.0)
    with h5py.File(path) as saved:
        # 0: q, 1: res, 3: some, whose write is not full; 2: old is written fully
        assert sorted(saved["dats"]) == ["0", "1", "3"]
        entry, calls = int(saved.attrs["entry"]), saved["calls"][:]
        assert calls.size == entry
        assert json.loads(saved.attrs["loops"])[1].split()[0] == "take"


def test_nothing_is_saved_before_it_is_due(plan, path):
    run(plan, path, 6, every=1000.0)
    assert not path.exists()


def test_a_checkpoint_that_is_asked_for(plan, path):
    program = Program(plan, checkpoint=path, every=1000.0)
    q, res = program.dat("cells", 1, "i8"), program.dat("cells", 1, "i8")
    loop = program.loop(stopped_program.gather, "gather", strategy="sequential")
    loop(q=q, res=res)
    program.checkpoint_here()
    assert not path.exists()
    loop(q=q, res=res)
    with h5py.File(path) as saved:
        assert list(saved["dats"]) == ["1"]
        assert saved.attrs["entry"] == 1
    with pytest.raises(MeshprepError, match="the program has no file for checkpoints"):
        Program(plan).checkpoint_here()


def period_of(plan, path):
    """A program, and the calls of its period."""
    program, (q, res, old, some), total, (gather, take) = begin(plan, path, every=1000.0)
    return program, [
        partial(gather, q=q, res=res),
        partial(take, res=res, q=q, old=old, some=some, total=total),
        partial(gather, q=old, res=some),
    ]


def test_places_are_what_checkpoints_there_save(plan, path):
    """Saving at every place takes the dats and the bytes that the dry run said."""
    n, found = plan.sizes["cells"], []
    for i in range(3):
        program, calls = period_of(plan, path)
        place = program.checkpoint_places(lambda calls=calls: [call() for call in calls])[i]
        for k, call in enumerate(3 * calls):
            if k == 3 + i:
                program.checkpoint_here()
            call()
        with h5py.File(path) as saved:
            assert saved.attrs["entry"] == 3 + i
            names = [
                ["q", "res", "old", "some"][k] for k in sorted(map(int, saved["dats"]))
            ]
            nbytes = sum(data.size * data.dtype.itemsize for data in saved["dats"].values())
        assert place == (i, ["gather", "take", "gather"][i], tuple(names), nbytes)
        found.append(nbytes // (8 * n))
        path.unlink()
    assert found == [3, 3, 4]


def test_places_of_what_is_no_period(plan, path):
    program, calls = period_of(plan, path)
    with program.chain(2), pytest.raises(MeshprepError, match="outside of it"):
        program.checkpoint_places(calls[0])
    with pytest.raises(MeshprepError, match="'q' cannot be saved in a checkpoint"):
        program.checkpoint_places(
            partial(calls[0], q=np.zeros(plan.sizes["cells"], np.int64))
        )
    with pytest.raises(MeshprepError, match="no loop of this program was called"):
        Program(plan).checkpoint_places(calls[0])


def test_stopped_while_a_checkpoint_is_written(plan, path, monkeypatch):
    run(plan, path, 5, every=0.0)
    before = path.read_bytes()

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(generations, "write_seal", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(plan, path, 12, every=0.0)
    assert path.read_bytes() == before
    # between the two names
    os.replace(path, older(path))
    assert run(plan, path, 12, every=0.0) == run(plan, None, 12)


def test_the_older_one_is_taken_when_the_newest_is_damaged(plan, path):
    run(plan, path, 9, every=0.0)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert run(plan, path, 12, every=0.0) == run(plan, None, 12)
    for one in (path, older(path)):
        one.write_bytes(bytes(content))
    with pytest.raises(
        MeshprepError, match=r"run\.h5: no checkpoint, or damaged: remove it"
    ):
        Program(plan, checkpoint=path)
    path.write_bytes(b"meshprep-checkpoint 9\n".ljust(512, b"\0"))
    with pytest.raises(MeshprepError, match="a checkpoint of another version"):
        Program(plan, checkpoint=path)


def other(q1, q2, res1, res2):
    res1[0] += 2 * q2[0]
    res2[0] += q1[0]


def test_checkpoints_of_others_are_refused(plan, path, slow, monkeypatch):
    run(plan, path, 9, every=0.0)
    grid = slow.quads(3, 3)
    others = slow.plan(grid.sizes, grid.tables, LOOPS, (4,), seed=1)
    if others.mesh_hash == plan.mesh_hash:
        object.__setattr__(others, "mesh_hash", "another")
    with pytest.raises(MeshprepError, match=r"run\.h5: a checkpoint of another mesh"):
        Program(others, checkpoint=path)
    other.__name__ = "gather"
    monkeypatch.setattr(stopped_program, "gather", other)
    with pytest.raises(MeshprepError, match="another program: call 1 is of loop 'gather'"):
        run(plan, path, 9, every=0.0)


def test_what_cannot_be_saved(plan, path):
    program = Program(plan, checkpoint=path)
    q, res = program.dat("cells", 1, "i8"), np.zeros(12, np.int64)
    loop = program.loop(stopped_program.gather, "gather", strategy="sequential")
    with pytest.raises(
        MeshprepError, match="argument 'res' cannot be saved in a checkpoint"
    ):
        loop(q=q, res=res)


@pytest.mark.parametrize("kind", ["tiles", pytest.param("auto", marks=pytest.mark.slow)])
def test_a_stopped_chain_in_tiles_ends_as_if_it_had_not_stopped(plan, path, kind):
    expected = run_chain("loops", plan, None, 12)
    assert run_chain(kind, plan, None, 12) == expected
    for stop in (1, 2, 5, 9):
        assert run_chain(kind, plan, path, 12, stop, every=0.0) is None
    assert run_chain(kind, plan, path, 12, every=0.0) == expected


@pytest.mark.parametrize("call", [5, 8])
def test_a_chain_that_an_exception_ends_goes_on_from_its_checkpoint(plan, path, call):
    """The loops of the last tiles have run one by one, which no other run does."""

    def steps(last, checkpoint):
        program, (q, res, old, some), total, loops = begin(plan, checkpoint, every=0.0)
        given = {"res": res, "q": q, "old": old, "some": some, "total": total}
        with program.chain(3, tile_size=4):
            for n in range(9):
                if n == last:
                    raise KeyboardInterrupt
                loops[n % 2](**(given if n % 2 else {"res": res, "q": q}))
        return q.values().tolist()

    expected = steps(None, None)
    with pytest.raises(KeyboardInterrupt):
        steps(call, path)
    assert steps(None, path) == expected


def test_a_full_disk_ends_with_an_error_and_leaves_what_was_saved(plan, path):
    """A limit on the size of files stands for a full disk, as for plans."""
    plan.save(path.parent / "plan.h5")
    code = f"""
import resource, sys
import numpy as np
from meshprep_runtime import MeshprepError, Plan, Program, run_ranks
from meshprep_runtime.program import fields
from meshprep_runtime.program.checkpoints.generations import Checkpoint
plan = Plan.load({str(path.parent / "plan.h5")!r})
def save(limit):
    files = Program(plan, checkpoint={str(path)!r}).checkpoints._files
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    files.write(Checkpoint(["take"], [b""], {{0: np.arange(1.0, 1000.0)}}))
save(resource.RLIM_INFINITY)
for limit in range(0, 8000, 200):
    try:
        save(limit)
    except MeshprepError as error:
        assert str(error) == {f"{path}: cannot write: File too large"!r}, error
    else:
        sys.exit(f"wrote past {{limit}}")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(p.name for p in path.parent.iterdir()) == ["plan.h5", "run.h5"]
    assert generations.read_checkpoint(path).dats[0][-1] == 999


def test_what_tiles_drop_is_not_saved_and_what_is_zero_takes_no_room(plan, path):
    run_chain("tiles", plan, path, 6, every=0.0)
    with h5py.File(path) as saved:
        # 0: q, 1: res, 3: some; 2: old is dropped
        assert sorted(saved["dats"]) == ["0", "1", "3"]
        assert [saved[f"dats/{i}"].id.get_storage_size() for i in (0, 1)] == [96, 0]
        assert not saved["dats/1"][:].any()
        names = [name.rpartition(" ")[0] for name in json.loads(saved.attrs["loops"])]
        assert names == ["gather...take, 2 loops in tiles", "take"]
    with pytest.raises(
        MeshprepError, match=r"'gather', in the checkpoint it is 'gather\.\.\.take"
    ):
        run_chain("loops", plan, path, 6)


def test_what_was_dropped_has_no_values_after_a_restart_either(plan, path, monkeypatch):
    monkeypatch.setattr(checkpoints, "WINDOW", 2)
    for again in (False, True):
        program, (q, res, old, some), total, loops = begin(plan, path, every=1000.0)
        given = {"res": res, "q": q, "old": old, "some": some, "total": total}
        with chain_of(program, "tiles", old, res):
            loops[0](q=q, res=res)
            loops[1](**given)
        if not again:
            program.checkpoint_here()
        for _ in range(3):
            loops[0](q=q, res=res)
        with pytest.raises(
            MeshprepError, match="its values were dropped at the end of a chain"
        ):
            old.values()
        # nobody met it before the window was over
        with h5py.File(path) as saved:
            assert sorted(saved["dats"]) == ["0", "1", "3"]
            assert saved.attrs["entry"] == 1


def test_a_chain_needs_what_a_loop_reads_before_another_writes_all_of_it():
    steps, total = Steps(), ReducedGlobal(np.zeros(1))
    steps.dats.append(make_dat("cells", (3, 3), 1, "i8"))
    loops = [
        Loop("read", "cells", (Arg("old", Access.READ, 1, "i8"),)),
        Loop("write", "cells", (Arg("old", Access.WRITE, 1, "i8", full=True),)),
    ]
    calls = [
        SimpleNamespace(
            loop=SimpleNamespace(loop=loop, par_loop=SimpleNamespace(kernel=other)),
            given={"old": steps.dats[0]},
        )
        for loop in loops
    ]
    first, second = (steps.of_chain(some, [], []) for some in (calls, calls[::-1]))
    assert (first.full, second.full) == ({0: False}, {0: True})
    assert (first.title, first.changed) == ("read...write, 2 loops in tiles", {0})
    assert steps.of_chain(calls, steps.dats, []).name != first.name
    assigned = steps.of_chain([Assign(total, np.ones(1)), *calls], [], [])
    assert [id(values) for values in assigned.globals] == [id(total.stored)]


def test_what_loops_alone_did_not_drop_is_saved_and_restored(path):
    """As with tile_size="auto", which may run the loops of a chain alone."""
    plan = SimpleNamespace(mesh_hash="mesh", sizes={"cells": 3})
    zero, own = frozenset(), frozenset({0})
    makes = Step("makes 1", {0: True}, zero, own, own, True, [])
    reads = Step("reads 2", {0: False}, zero, zero, zero, False, [])
    seen = []
    for _ in range(2):
        made = checkpoints.Checkpoints(path, 1000.0, plan)
        dat = make_dat("cells", (3, 3), 1, "i8")
        made.steps.dats.append(dat)
        made.run(makes, lambda dat=dat: dat.values(write=True).fill(5 + len(seen)))
        made.here()
        made.run(reads, lambda dat=dat: seen.append(dat.values().ravel().tolist()))
    assert seen == [[5, 5, 5]] * 2


def test_no_checkpoint_is_promised_after_a_loop_that_raised(path):
    plan = SimpleNamespace(mesh_hash="mesh", sizes={"cells": 3})
    made, own = checkpoints.Checkpoints(path, 1000.0, plan), frozenset({0})
    made.steps.dats.append(make_dat("cells", (3, 3), 1, "i8"))
    step = Step("makes 1", {0: True}, frozenset(), own, own, True, [])
    with pytest.raises(ZeroDivisionError):
        made.run(step, lambda: 1 // 0)
    with pytest.raises(
        MeshprepError, match="no checkpoint can begin after a loop that raised"
    ):
        made.here()
    made.run(step, lambda: None)
    assert not path.exists()


def test_dats_that_a_checkpoint_could_not_tell_apart_are_refused(plan, path):
    program, values = Program(plan, checkpoint=path), np.zeros(2 * plan.sizes["cells"])
    dat = program.dat("cells", values=values[: plan.sizes["cells"]])
    program.dat("cells", values=values[plan.sizes["cells"] :])
    with pytest.raises(
        MeshprepError, match="its values share memory with another dat: pass a"
    ):
        program.dat("cells", values=dat.array[::1])


def killed(plan, folder, steps, times, *kind):
    plan.save(folder / "plan.h5")
    longest = 0.3 if kind else 0.05
    words = [sys.executable, stopped_program.__file__, folder, steps, times, longest, *kind]
    done = subprocess.run([*map(str, words)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def test_killed_at_any_moment(plan, tmp_path):
    times, states = killed(plan, tmp_path, 40, 6)
    assert times >= 3
    assert states == [run(plan, None, 40)] * len(states)


@pytest.mark.slow
def test_killed_at_any_moment_in_tiles(plan, tmp_path):
    times, states = killed(plan, tmp_path, 40, 6, "tiles")
    assert times >= 3
    assert states == [run_chain("loops", plan, None, 40)] * len(states)


@pytest.mark.long
def test_killed_at_a_hundred_moments(plan, tmp_path):
    times, states = killed(plan, tmp_path, 80, 130)
    assert times >= 100
    assert states == [run(plan, None, 80)] * len(states)


def test_what_checkpoints_cost_when_none_is_due(plan, path):
    """Fifteen functions of Python, 10 us a call: nothing waits, copies or looks at files."""
    program = Program(plan, checkpoint=path, every=1000.0)
    q, res = program.dat("cells", 1, "i8"), program.dat("cells", 1, "i8")
    loop = program.loop(stopped_program.gather, "gather", strategy="sequential")
    loop(q=q, res=res)
    own, called = program.checkpoints, Counter()
    sys.setprofile(lambda frame, event, _: called.update([event]))
    try:
        for _ in range(100):
            step = own.steps.of_loop(
                loop.loop, stopped_program.gather, {"q": q, "res": res}
            )
            own.run(step, lambda: None)
    finally:
        sys.setprofile(None)
    assert called["call"] <= 20 * 100, called
