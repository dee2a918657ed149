"""Airfoil on ranks of one process, from a file of parts: results, counts, order, faults."""

import sys
import threading
import time

import effort
import numpy as np
import pytest
from rank_programs import refused

from airfoil import Airfoil, prepared_airfoil
from kernels import airfoil as kernels
from meshprep_runtime import (
    DistributedError,
    DistributedPlan,
    MeshprepError,
    MissingPackageError,
    Program,
    run_ranks,
)
from meshprep_runtime.cpu.executor import HostCall
from meshprep_runtime.errors import UnknownNameError
from meshprep_runtime.plan.parts import parts_table, read_part
from meshprep_runtime.program import classes
from meshprep_runtime.program.exchange import Transfer
from meshprep_runtime.program.loopback import LoopbackComm


@pytest.fixture(scope="module")
def expected(airfoil_mesh):
    flow = Airfoil(prepared_airfoil(0, 128, mesh=airfoil_mesh), "sequential")
    return list(flow.steps(6)), flow.dats["q"]


def flow_of(comm, path):
    plan = DistributedPlan.load(path, comm)
    return plan, Airfoil.on_ranks(plan, "sequential")


@pytest.mark.parametrize("increments", ["exec", "reverse"])
@pytest.mark.parametrize("ranks", effort.first([4, 1, 2, 7]))
def test_airfoil_gives_the_same_flow(
    airfoil_parts, expected, ranks, increments, monkeypatch
):
    monkeypatch.setattr(classes, "LEAST_ELEMENTS", 16)

    def main(comm):
        _, flow = flow_of(comm, airfoil_parts(increments))
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
def test_one_message_a_neighbour_and_loop(airfoil_parts, increments):
    def main(comm):
        plan, flow = flow_of(comm, airfoil_parts(increments))
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


def test_receives_first_then_core_in_pieces_then_the_wait(airfoil_parts, monkeypatch):
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
        _, flow = flow_of(comm, airfoil_parts("exec"))
        list(flow.steps(1))
        first = len(trace)
        flow._given["res_calc"]["q"].touch()
        flow.loops["res_calc"](**flow._given["res_calc"])
        (ranges,) = flow.loops["res_calc"].runner._ranges.values()
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


@pytest.mark.slow
def test_messages_hide_behind_core(airfoil_parts, monkeypatch):
    """A message that takes less than core has come when core is done; it takes its time else."""
    run = HostCall.run
    # far longer than the loop itself takes, also beside other programs
    delay = 0.2

    def waits(seconds_of_core):
        """Seconds that each rank waits in a loop whose core takes so long."""

        def slowly(self, *given):
            time.sleep(seconds_of_core)
            run(self, *given)

        def main(comm):
            _, flow = flow_of(comm, airfoil_parts("exec"))
            list(flow.steps(2))
            before = flow.loops["res_calc"].times.wait
            flow._given["res_calc"]["q"].touch()
            comm.Barrier()
            monkeypatch.setattr(HostCall, "run", slowly)
            flow.loops["res_calc"](**flow._given["res_calc"])
            return flow.loops["res_calc"].times.wait - before

        monkeypatch.setattr(HostCall, "run", run)
        return run_ranks(2, main, delay=delay)

    assert min(waits(0.0)) > delay / 2
    assert min(waits(delay)) < delay / 2


def load_errors(ranks, path):
    told = run_ranks(
        ranks, lambda comm: refused(comm, lambda c: DistributedPlan.load(path(c), c))
    )
    assert len(set(told)) == 1
    return told[0]


def test_another_number_of_ranks(airfoil_parts):
    told = load_errors(3, lambda _: airfoil_parts("exec"))
    assert "split into 1, 2, 4 and 7 parts, not 3" in told
    assert "meshprep split" in told
    assert "--parts 3" in told


def test_unknown_names_are_answered_by_those_there_are(airfoil_parts):
    def work(comm):
        plan = DistributedPlan.load(airfoil_parts("exec"), comm)
        asked = {
            "set": (
                lambda: plan.sizes["x"],
                lambda: plan.set_part("x"),
                lambda: plan.numbers("x"),
            ),
            "map": (lambda: plan.part.maps["x"], lambda: plan["res_calc"].maps["x"]),
            "loop": (lambda: plan.part.loops["x"],),
        }
        for kind, ways in asked.items():
            for ask in ways:
                with pytest.raises(
                    UnknownNameError, match=f"there is no {kind} 'x': choose .*e"
                ):
                    ask()
        with pytest.raises(
            UnknownNameError, match=r"the plan has no loop 'x': it has .*res_calc"
        ):
            plan["x"]

    run_ranks(2, work)


def test_files_that_differ_or_are_missing(airfoil_parts, tmp_path):
    told = load_errors(
        4, lambda comm: airfoil_parts("reverse" if comm.rank == 2 else "exec")
    )
    assert told.startswith("rank 2 of 4: ")
    assert told.endswith("is another file here than on rank 0: give all ranks the same")
    told = load_errors(
        2, lambda comm: airfoil_parts("exec") if comm.rank == 0 else tmp_path / "no.h5"
    )
    assert told.startswith("rank 1 of 2: cannot read parts")
    assert "no.h5" in load_errors(2, lambda _: tmp_path / "no.h5")


def test_a_slice_that_is_damaged(airfoil_parts, tmp_path):
    content = bytearray(airfoil_parts("exec").read_bytes())
    table = parts_table(airfoil_parts("exec"), 4)
    sizes = [table.extent(i, 2)[1] for i in range(len(table.datasets))]
    at, size = table.extent(int(np.argmax(sizes)), 2)
    content[at + size - 1] ^= 1
    path = tmp_path / "flipped.parts.h5"
    path.write_bytes(content)
    told = load_errors(4, lambda _: path)
    assert told.startswith("rank 2 of 4: ")
    assert "damaged" in told
    path.write_bytes(content[: at + size // 2])
    assert "flipped.parts.h5" in load_errors(4, lambda _: path)


def test_an_array_that_does_not_fit_on_one_rank(airfoil_parts):
    def main(comm):
        plan = DistributedPlan.load(airfoil_parts("exec"), comm)
        rows = plan.set_part("cells").owned + (comm.rank == 1)
        return refused(comm, lambda _: plan.dat("cells", values=np.zeros(rows)))

    told = run_ranks(4, main)
    assert len(set(told)) == 1
    assert told[0].startswith("rank 1 of 4: a dat on 'cells' has values of shape")


def test_an_array_that_takes_no_copies(airfoil_parts):
    """Refused on all ranks, also on those that have no copies."""

    def main(comm):
        plan = DistributedPlan.load(airfoil_parts("exec"), comm)
        array = np.zeros(plan.set_part("cells").size)
        array.flags.writeable = False
        plan.dat("cells", values=array)

    expected = (
        "the array is read-only, but takes copies of other ranks' elements: pass a copy"
    )
    for ranks in (2, 4):
        assert expected in run_ranks(ranks, lambda comm: refused(comm, main))[0]
    assert run_ranks(1, lambda comm: refused(comm, main)) == ["fine"]


def test_two_dats_on_one_array(airfoil_parts):
    """What changes one has not told the other, whose copies on other ranks stay as they were."""

    def main(comm):
        plan = DistributedPlan.load(airfoil_parts("exec"), comm)
        own = plan.set_part("cells")
        values = np.zeros(own.owned)
        first, second = (plan.dat("cells", values=values) for _ in range(2))
        first.values(write=True)[:] = 1
        assert not second.values().any()
        array = np.zeros(own.size)
        kept = plan.dat("cells", values=array)
        told = refused(comm, lambda _: plan.dat("cells", values=array))
        return told, kept.stored is array

    assert run_ranks(1, main) == [("fine", True)]
    said = "dat on 'cells', 1 x float64, aos: its values share memory with another dat: pass a copy"
    for ranks in (2, 4):
        assert run_ranks(ranks, main) == [(f"{said} of them", True)] * ranks


def test_ranks_that_run_other_loops(airfoil_parts):
    """One rank forgets to say that it has changed a dat."""

    def main(comm):
        _, flow = flow_of(comm, airfoil_parts("exec"))
        loop, given = flow.loops["res_calc"], flow._given["res_calc"]
        loop(**given)
        given["q"].touch()
        if comm.rank:
            given["adt"].touch()
        loop(**given)

    with pytest.raises(
        DistributedError, match=r"has sent other dats|bytes came where|waits"
    ):
        run_ranks(2, main)


# What waits for rank 1, which does something else for a while.
WAITS = {
    "update of dat 0": lambda plan, program, dat: plan.update(dat),
    "fetch of dat 0": lambda plan, program, dat: plan.fetch(dat),
    "making a dat on 'cells'": lambda plan, program, dat: program.dat("cells"),
    "timings": lambda plan, program, dat: program.timings(),
    "write_fields": lambda plan, program, dat: plan.write_fields("a.h5", {"q": dat}),
}


@pytest.mark.parametrize("what", WAITS)
def test_what_does_not_come_within_the_timeout(airfoil_parts, monkeypatch, tmp_path, what):
    monkeypatch.chdir(tmp_path)
    path = airfoil_parts("exec")
    parts = [read_part(path, parts_table(path, 2), rank) for rank in range(2)]

    given_up = threading.Event()

    def main(comm):
        plan = DistributedPlan(parts[comm.rank], comm, timeout=0.5)
        program = Program(plan)
        dat = program.dat("cells")
        if comm.rank == 0:
            try:
                WAITS[what](plan, program, dat)
            finally:
                given_up.set()
        else:
            # one rank runs at a time: it hands over where it tests
            request = comm.Irecv(np.empty(1), source=0, tag=99)
            while not given_up.is_set():
                request.Test()
            comm.Barrier()

    with pytest.raises(DistributedError) as error:
        run_ranks(2, main)
    assert str(error.value) == (
        f"rank 0: no message in 0.5 s from rank 1, which {what} waits for"
    )
    assert list(tmp_path.iterdir()) == []


def swapped(given, one, other):
    return {**given, one: given[other], other: given[one]}


def swap_two_dats(plan, flow):
    flow.loops["res_calc"](**swapped(flow._given["res_calc"], "q", "res"))


def swap_where_nothing_is_sent(plan, flow):
    flow.loops["save_soln"](**swapped(flow._given["save_soln"], "q", "qold"))
    flow.loops["res_calc"](**flow._given["res_calc"])


def call_once_more(plan, flow):
    flow.loops["save_soln"](**flow._given["save_soln"])
    flow.loops["res_calc"](**flow._given["res_calc"])


def update_first(plan, flow):
    plan.update(flow._given["res_calc"]["q"])


def fetch_first(plan, flow):
    plan.fetch(flow._given["res_calc"]["q"])


DIFFERENCES = {
    swap_two_dats: r"argument 'q' is dat \d+ here and dat \d+ there",
    swap_where_nothing_is_sent: "in call .* of a loop, which is in call",
    call_once_more: "in call .* of a loop, which is in call",
    update_first: "which is in|waits",
    fetch_first: "which is in|waits",
}


@pytest.mark.parametrize("other", DIFFERENCES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("seed", effort.first(range(3)))
def test_a_rank_that_does_something_else(airfoil_parts, other, seed):
    """An error, never other sums."""

    def main(comm):
        plan, flow = flow_of(comm, airfoil_parts("exec"))
        given = flow._given["res_calc"]
        flow.loops["res_calc"](**given)
        given["q"].touch()
        given["res"].touch()
        if comm.rank == 1:
            other(plan, flow)
        else:
            flow.loops["res_calc"](**given)

    with pytest.raises(DistributedError, match=DIFFERENCES[other]) as error:
        run_ranks(2, main, seed=seed)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("code", [0, 3])
def test_a_rank_that_exits(airfoil_parts, code):
    """The others do not wait for it, nor does its code go unseen."""

    def main(comm, waits):
        plan, flow = flow_of(comm, airfoil_parts("exec"))
        if comm.rank == 1:
            sys.exit(code)
        return plan.fetch(flow._given["res_calc"]["q"]) if waits else "done"

    said = "every rank waits: rank 0 waits for all in fetch of dat .*, rank 1 has ended"
    with pytest.raises(DistributedError, match=said):
        run_ranks(2, lambda comm: main(comm, waits=True))
    if code:
        with pytest.raises(DistributedError, match=r"rank 1 has ended by sys.exit\(3\)"):
            run_ranks(2, lambda comm: main(comm, waits=False))
    else:
        assert run_ranks(2, lambda comm: main(comm, waits=False)) == ["done", None]


def test_what_a_gpu_cannot_take_on_ranks(airfoil_parts, tmp_path, device):
    def main(comm):
        plan = DistributedPlan.load(airfoil_parts("exec"), comm)
        rows = plan.set_part("cells").size
        q = plan.dat("cells", 4, values=device.array(np.zeros((4, rows))), layout="soa")
        loop = Program(plan).loop(kernels.save_soln, "save_soln", layout="soa")
        with pytest.raises(MeshprepError, match="dat 'q' is soa and direct, which parts"):
            loop(q=q, qold=q)
        aos = {
            n: plan.dat("cells", d)
            for n, d in (("qold", 4), ("q", 4), ("res", 4), ("adt", 1))
        }
        for dat in aos.values():
            dat.array = device.array(dat.array)
        loop = Program(plan).loop(kernels.update, "update")
        with pytest.raises(MeshprepError, match="global 'rms' lies on a GPU, which parts"):
            loop(**aos, rms=device.array(np.zeros(1)))
        q.array.set(np.arange(4.0 * rows).reshape(4, rows))
        path = tmp_path / "device.h5"
        plan.write_fields(path, {"q": q}, overwrite=True)
        again = plan.dat("cells", 4)
        plan.read_fields(path, {"q": again})
        q.array.set(np.zeros((4, rows)))
        plan.read_fields(path, {"q": q})
        np.testing.assert_array_equal(q.array.get().T, again.array)

    run_ranks(1, main)


def test_without_mpi4py(airfoil_parts, monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(
        MissingPackageError, match=r"needs mpi4py and an MPI .*: pip install"
    ):
        DistributedPlan.load(airfoil_parts("exec"))


def test_a_strategy_that_does_not_run_by_classes(airfoil_parts):
    def main(comm):
        plan = DistributedPlan.load(airfoil_parts("exec"), comm)
        Airfoil.on_ranks(plan, "two-step").loops["save_soln"](
            q=plan.dat("cells", 4), qold=plan.dat("cells", 4)
        )

    with pytest.raises(
        MeshprepError, match="strategy 'two-step' cannot run a part of a mesh"
    ):
        run_ranks(2, main)
