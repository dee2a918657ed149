"""Airfoil on ranks of one process, from a file of parts: results, counts, order, faults."""

import errno
import sys
import threading
import time

import h5py
import numpy as np
import pytest

from airfoil import KERNELS, Airfoil, prepared_airfoil
from kernels import airfoil as kernels
from meshprep.distribute.job import SplitJob, run
from meshprep.distribute.steps import SplitOptions
from meshprep.io import read
from meshprep.loops import read_requests
from meshprep.loops.options import Options
from meshprep.pipeline import workflow
from meshprep_runtime import (
    DistributedError,
    DistributedPlan,
    MeshprepError,
    MissingPackageError,
    Program,
    run_ranks,
)
from meshprep_runtime.cpu.executor import HostCall
from meshprep_runtime.plan.named import UnknownNameError
from meshprep_runtime.plan.parts import parts_table
from meshprep_runtime.program import classes, fields
from meshprep_runtime.program.exchange import Transfer
from meshprep_runtime.program.loopback import LoopbackComm

CELLS, BLOCK = 1200, 32


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("parts")


@pytest.fixture(scope="module")
def mesh(folder):
    workflow.generate("airfoil", folder / "airfoil.msh", values={"cells": CELLS})
    return read(folder / "airfoil.msh")


@pytest.fixture(scope="module")
def parts(folder, mesh):
    """``parts("exec")``: the file of 1, 2, 4 and 7 parts."""
    made = {}

    def make(increments):
        if increments not in made:
            made[increments] = folder / f"{increments}.parts.h5"
            requests = read_requests(KERNELS / "airfoil.toml")
            how = SplitOptions(increments=increments)
            options = Options(block_size=BLOCK)
            source = folder / "airfoil.msh"
            run(SplitJob(source, made[increments], (1, 2, 4, 7), requests, how, options))
        return made[increments]

    return make


@pytest.fixture(scope="module")
def expected(mesh):
    flow = Airfoil(prepared_airfoil(0, 128, mesh=mesh), "sequential")
    return list(flow.steps(6)), flow.dats["q"]


def flow_of(comm, path, mesh):
    plan = DistributedPlan.load(path, comm)
    return plan, Airfoil.on_ranks(plan, mesh, "sequential")


@pytest.mark.parametrize("increments", ["exec", "reverse"])
@pytest.mark.parametrize("ranks", [1, 2, 4, 7])
def test_airfoil_gives_the_same_flow(parts, mesh, expected, ranks, increments, monkeypatch):
    monkeypatch.setattr(classes, "LEAST_ELEMENTS", 16)

    def main(comm):
        _, flow = flow_of(comm, parts(increments), mesh)
        return list(flow.steps(6)), flow.program.timings()

    iterations = 6
    found = run_ranks(ranks, main, seed=ranks)
    for rms, _ in found:
        assert [f"{r:.5e}" for r in rms] == [f"{r:.5e}" for r in expected[0]]
    for rank, (_, timings) in enumerate(found):
        own = {name: of_rank[rank] for name, of_rank in timings.loops.items()}
        # q is up to date the first time; res_calc asks before bres_calc.
        assert own["res_calc"].dats_exchanged == 4 * iterations - 1
        assert own["res_calc"].calls == 2 * iterations
        for name in ("save_soln", "adt_calc", "bres_calc", "update"):
            assert own[name].dats_exchanged == 0


@pytest.mark.parametrize("increments", ["exec", "reverse"])
def test_one_message_a_neighbour_and_loop(parts, mesh, increments):
    def main(comm):
        plan, flow = flow_of(comm, parts(increments), mesh)
        list(flow.steps(3))
        own = plan.set_part("cells")
        to = {*own.send_exec.parts.tolist(), *own.send_halo.parts.tolist()}
        back = {*own.receive_exec.parts.tolist(), *own.receive_halo.parts.tolist()}
        how = plan.part.loops["res_calc"].increments
        return len(to), len(back) if how == "reverse" else 0, flow.loops["res_calc"].times

    found = run_ranks(4, main)
    for to, back, times in found:
        # two stages of three iterations
        assert times.messages == 6 * (to + back)
    assert sum(to for to, _, _ in found) > 0
    assert (sum(back for _, back, _ in found) > 0) == (increments == "reverse")


def note(monkeypatch, owner, name, trace):
    """Have the calls of a method in a trace, by the thread that is the rank."""
    before = getattr(owner, name)

    def noted(self, *given, **named):
        trace.append((threading.current_thread(), name, id(given[0]) if given else 0))
        return before(self, *given, **named)

    monkeypatch.setattr(owner, name, noted)


def test_receives_first_then_core_in_pieces_then_the_wait(parts, mesh, monkeypatch):
    monkeypatch.setattr(classes, "LEAST_ELEMENTS", 64)
    trace = []
    for owner, names in (
        (LoopbackComm, ("Irecv", "Isend")),
        (Transfer, ("test", "finish")),
        (HostCall, ("run",)),
    ):
        for name in names:
            note(monkeypatch, owner, name, trace)

    def main(comm):
        _, flow = flow_of(comm, parts("exec"), mesh)
        list(flow.steps(1))
        first = len(trace)
        flow._given["res_calc"]["q"].touch()
        flow.loops["res_calc"](**flow._given["res_calc"])
        (ranges,) = flow.loops["res_calc"]._runner._ranges.values()
        names = {id(ranges.boundary): "boundary", id(ranges.exec): "exec"}
        own = [e for e in trace[first:] if e[0] is threading.current_thread()]
        return [names.get(at, "core") if name == "run" else name for _, name, at in own]

    found = run_ranks(2, main)
    # An edge between two ranks is one of them's own, and the other executes it, too.
    assert any("exec" in events for events in found)
    for events in found:
        core = events.count("core")
        assert core > 2
        pieces = ["core", "test"] * core
        last = ["exec"] * events.count("exec")
        assert len(last) < 2
        assert events == ["Irecv", "Isend", *pieces, "finish", "boundary", *last]


def test_messages_hide_behind_core(parts, mesh, monkeypatch):
    """A message that takes less than core has come when core is done; it takes its time else."""

    def main(comm):
        _, flow = flow_of(comm, parts("exec"), mesh)
        list(flow.steps(2))
        before = flow.loops["res_calc"].times.wait
        flow._given["res_calc"]["q"].touch()
        flow.loops["res_calc"](**flow._given["res_calc"])
        return flow.loops["res_calc"].times.wait - before

    late = run_ranks(2, main, delay=0.03)
    run = HostCall.run

    def slowly(self, *given):
        time.sleep(0.03)
        run(self, *given)

    monkeypatch.setattr(HostCall, "run", slowly)
    hidden = run_ranks(2, main, delay=0.03)
    assert min(late) > 0.02
    assert min(hidden) < 0.01


def refused(comm, call):
    try:
        call(comm)
    except DistributedError as error:
        return str(error)
    return "fine"


def load_errors(ranks, path):
    told = run_ranks(ranks, lambda comm: refused(comm, lambda c: DistributedPlan.load(path(c), c)))
    assert len(set(told)) == 1
    return told[0]


def test_another_number_of_ranks(parts):
    told = load_errors(3, lambda _: parts("exec"))
    assert "split into 1, 2, 4 and 7 parts, not 3" in told
    assert "meshprep split" in told
    assert "--parts 3" in told


def test_unknown_names_are_answered_by_those_there_are(parts):
    def work(comm):
        plan = DistributedPlan.load(parts("exec"), comm)
        asked = {
            "set": (lambda: plan.sizes["x"], lambda: plan.set_part("x"), lambda: plan.numbers("x")),
            "map": (lambda: plan.part.maps["x"], lambda: plan["res_calc"].maps["x"]),
            "loop": (lambda: plan.part.loops["x"],),
        }
        for kind, ways in asked.items():
            for ask in ways:
                with pytest.raises(UnknownNameError, match=f"there is no {kind} 'x': choose .*e"):
                    ask()
        with pytest.raises(UnknownNameError, match=r"the plan has no loop 'x': it has .*res_calc"):
            plan["x"]

    run_ranks(2, work)


def test_files_that_differ_or_are_missing(parts, folder):
    told = load_errors(4, lambda comm: parts("reverse" if comm.rank == 2 else "exec"))
    assert told.startswith("rank 2 of 4: ")
    assert told.endswith("is another file here than on rank 0: give all ranks the same")
    told = load_errors(2, lambda comm: parts("exec") if comm.rank == 0 else folder / "no.h5")
    assert told.startswith("rank 1 of 2: cannot read parts")
    assert "no.h5" in load_errors(2, lambda _: folder / "no.h5")


def test_a_slice_that_is_damaged(parts, folder):
    content = bytearray(parts("exec").read_bytes())
    table = parts_table(parts("exec"), 4)
    sizes = [table.extent(i, 2)[1] for i in range(len(table.datasets))]
    at, size = table.extent(int(np.argmax(sizes)), 2)
    content[at + size - 1] ^= 1
    path = folder / "flipped.parts.h5"
    path.write_bytes(content)
    told = load_errors(4, lambda _: path)
    assert told.startswith("rank 2 of 4: ")
    assert "damaged" in told
    path.write_bytes(content[: at + size // 2])
    assert "flipped.parts.h5" in load_errors(4, lambda _: path)


def test_an_array_that_does_not_fit_on_one_rank(parts, mesh):
    def main(comm):
        plan = DistributedPlan.load(parts("exec"), comm)
        rows = plan.set_part("cells").owned + (comm.rank == 1)
        return refused(comm, lambda _: plan.dat("cells", values=np.zeros(rows)))

    told = run_ranks(4, main)
    assert len(set(told)) == 1
    assert told[0].startswith("rank 1 of 4: a dat on 'cells' has values of shape")


def test_ranks_that_run_other_loops(parts, mesh):
    """One rank forgets to say that it has changed a dat."""

    def main(comm):
        _, flow = flow_of(comm, parts("exec"), mesh)
        loop, given = flow.loops["res_calc"], flow._given["res_calc"]
        loop(**given)
        given["q"].touch()
        if comm.rank:
            given["adt"].touch()
        loop(**given)

    with pytest.raises(DistributedError, match=r"has sent other dats|bytes came where|waits"):
        run_ranks(2, main)


def test_a_message_that_does_not_come(parts):
    def main(comm):
        plan = DistributedPlan.load(parts("exec"), comm, timeout=0.2)
        dat = plan.dat("cells")
        if comm.rank == 0:
            plan.update(dat)
        else:
            time.sleep(0.3)
            comm.Barrier()

    with pytest.raises(DistributedError, match=r"rank 0: no message in 0.2 s from rank 1"):
        run_ranks(2, main)


def test_fields_by_the_numbers_of_the_mesh(parts, folder):
    """Written by four ranks, read by seven and by one; fetched on one."""
    path = folder / "fields.h5"
    cells = np.arange(parts_table(parts("exec"), 4).description["sets"]["cells"] * 2.0)
    cells = cells.reshape(-1, 2)

    def write(comm):
        plan = DistributedPlan.load(parts("exec"), comm)
        n = plan.sizes["nodes"]
        q = plan.dat("cells", 2, values=cells[plan.numbers("cells")])
        own = np.ascontiguousarray(cells[plan.numbers("cells")].T)
        soa = plan.dat("cells", 2, values=own, layout="soa")
        ids = plan.dat("nodes", 1, "i4", values=np.arange(n, dtype="i4")[plan.numbers("nodes")])
        plan.write_fields(path, {"q": q, "ids": ids, "soa": soa})
        told = refused(comm, lambda _: plan.write_fields(path, {"q": q}))
        return plan.fetch(q, root=1), told

    found = run_ranks(4, write)
    np.testing.assert_array_equal(found[1][0], cells)
    assert found[0][0] is None
    assert all("exists" in told for _, told in found)
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["q"][:], cells)
        np.testing.assert_array_equal(file["soa"][:], cells)
        nodes = file["ids"][:, 0]
        np.testing.assert_array_equal(nodes, np.arange(nodes.size))

    def again(comm):
        plan = DistributedPlan.load(parts("exec"), comm)
        q, soa = plan.dat("cells", 2), plan.dat("cells", 2, layout="soa")
        plan.read_fields(path, {"q": q, "soa": soa})
        np.testing.assert_array_equal(q.array, soa.array.T)
        own = plan.set_part("cells")
        np.testing.assert_array_equal(q.values(), cells[own.original])
        array = np.full((own.size, 2), -1.0)
        array[: own.owned] = q.values()
        plan.exchange(array, "cells")
        np.testing.assert_array_equal(array, q.array)
        assert (array >= 0).all()
        for layout in ("aos", "soa"):
            one = np.where(np.arange(own.size)[:, None] < own.owned, array[:, :1], -1.0)
            plan.exchange(one, "cells", layout=layout)
            np.testing.assert_array_equal(one, array[:, :1])
        return (
            refused(comm, lambda _: plan.read_fields(path, {"p": q})),
            refused(comm, lambda _: plan.read_fields(path, {"ids": q})),
        )

    for ranks in (1, 7):
        for missing, misfit in run_ranks(ranks, again):
            assert "has no dataset 'p'" in missing
            assert "dataset 'ids' has shape" in misfit


@pytest.mark.parametrize("userblock", [0, 512])
def test_fields_that_do_not_lie_in_one_piece_are_refused(parts, tmp_path, userblock):
    """Files of MATLAB have a user block, behind which HDF5 gives offsets of nothing."""
    path = tmp_path / "fields.h5"

    def read_them(comm):
        plan = DistributedPlan.load(parts("exec"), comm)
        q = plan.dat("cells")
        told = {}
        n = plan.sizes["cells"]
        with h5py.File(path, "w", userblock_size=userblock) as file:
            file["whole"] = np.arange(float(n))
            file.create_dataset("chunks", data=np.arange(float(n)), chunks=(100,))
            file.create_dataset("unwritten", (n,), "f8")
            file.create_dataset("elsewhere", (n,), "f8", external=[(tmp_path / "raw", 0, 8 * n)])
            file.create_group("group")
        plan.read_fields(path, {"whole": q})
        np.testing.assert_array_equal(q.values(), plan.numbers("cells"))
        for name in ("chunks", "unwritten", "elsewhere", "group"):
            told[name] = refused(comm, lambda _, name=name: plan.read_fields(path, {name: q}))
        return told

    (told,) = run_ranks(1, read_them)
    for name in ("chunks", "unwritten", "elsewhere"):
        assert f"dataset '{name}' is stored in chunks, filtered, elsewhere or not" in told[name]
    assert "'group' is a group, must be a dataset" in told["group"]


def test_what_a_gpu_cannot_take_on_ranks(parts, folder, device):
    def main(comm):
        plan = DistributedPlan.load(parts("exec"), comm)
        rows = plan.set_part("cells").size
        q = plan.dat("cells", 4, values=device.array(np.zeros((4, rows))), layout="soa")
        loop = Program(plan).loop(kernels.save_soln, "save_soln", layout="soa")
        with pytest.raises(MeshprepError, match="dat 'q' is soa and direct, which parts"):
            loop(q=q, qold=q)
        aos = {n: plan.dat("cells", d) for n, d in (("qold", 4), ("q", 4), ("res", 4), ("adt", 1))}
        for dat in aos.values():
            dat.array = device.array(dat.array)
        loop = Program(plan).loop(kernels.update, "update")
        with pytest.raises(MeshprepError, match="global 'rms' lies on a GPU, which parts"):
            loop(**aos, rms=device.array(np.zeros(1)))
        q.array.set(np.arange(4.0 * rows).reshape(4, rows))
        path = folder / "device.h5"
        plan.write_fields(path, {"q": q}, overwrite=True)
        again = plan.dat("cells", 4)
        plan.read_fields(path, {"q": again})
        q.array.set(np.zeros((4, rows)))
        plan.read_fields(path, {"q": q})
        np.testing.assert_array_equal(q.array.get().T, again.array)

    run_ranks(1, main)


def test_without_mpi4py(parts, monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(MissingPackageError, match=r"needs mpi4py and an MPI .*: pip install"):
        DistributedPlan.load(parts("exec"))


def test_a_strategy_that_does_not_run_by_classes(parts, mesh):
    def main(comm):
        plan = DistributedPlan.load(parts("exec"), comm)
        Airfoil.on_ranks(plan, mesh, "two-step").loops["save_soln"](
            q=plan.dat("cells", 4), qold=plan.dat("cells", 4)
        )

    with pytest.raises(MeshprepError, match="strategy 'two-step' cannot run a part of a mesh"):
        run_ranks(2, main)


def test_a_disk_that_is_full(parts, folder, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    path = folder / "full.h5"

    def main(comm):
        plan = DistributedPlan.load(parts("exec"), comm)
        dat = plan.dat("cells", 4)
        return refused(comm, lambda _: plan.write_fields(path, {"q": dat}))

    monkeypatch.setattr(fields, "ELEMENTS_AT_ONCE", 100)
    monkeypatch.setattr(fields, "_put", full)
    told = run_ranks(4, main)
    assert set(told) == {"rank 0 of 4: OSError: [Errno 28] No space left on device"}
    assert not path.exists()
