"""Chains of loops: what is queued, what runs it, and that nobody can tell from the results."""

import copy
import threading
import time
from contextlib import nullcontext
from functools import partial

import effort
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from integer_loops import DIMS, LOOPS, SETS
from random_chains import KERNELS, Case, random_mesh, start_values
from slow_parts import World

from meshprep_runtime import (
    Access,
    Arg,
    DistributedPlan,
    Loop,
    MeshprepError,
    Program,
    run_ranks,
)
from meshprep_runtime.program.chains import launch


def case_of(cells, seed):
    rng = np.random.default_rng(seed)
    return Case(random_mesh(rng, cells), rng)


@pytest.fixture
def case():
    return case_of(12, 0)


def calls_of(case, *names):
    return [case.loops[n].times.calls for n in names]


@settings(
    max_examples=effort.examples(15), deadline=None, suppress_health_check=list(HealthCheck)
)
@given(
    names=st.lists(st.sampled_from(sorted(KERNELS)), min_size=2, max_size=10),
    length=st.integers(1, 10),
    sets=st.integers(0, 10),
)
def test_lazy_is_eager(names, length, sets):
    eager, lazy = case_of(12, 5), case_of(12, 5)
    for i, name in enumerate(names):
        if i == sets:
            eager.globals["update", "total"].set([7, 8])
        eager.call(name)
    with lazy.program.chain(length):
        for i, name in enumerate(names):
            if i == sets:
                lazy.globals["update", "total"].set([7, 8])
            lazy.call(name)
    assert lazy.result() == eager.result()


@pytest.mark.parametrize(
    "look",
    [
        lambda c, chain: c.dats["q"].values(),
        lambda c, chain: c.dats["a"].values(write=True),
        lambda c, chain: c.dats["x"].touch(),
        lambda c, chain: c.dats["near"].array,
        lambda c, chain: c.globals["update", "total"].value,
        lambda c, chain: chain.flush(),
        lambda c, chain: c.program.timings(),
        lambda c, chain: c.call("mark"),
    ],
    ids=["read", "write", "touch", "array", "reduced", "flush", "timings", "length"],
)
def test_what_runs_the_queue(case, look):
    with case.program.chain(length=3) as chain:
        case.call("areas")
        case.call("update")
        assert case.loops["areas"].runner.times.calls == 0
        look(case, chain)
        assert calls_of(case, "areas", "update") == [1, 1]
    assert calls_of(case, "areas", "update") == [1, 1]


def test_what_does_not_run_the_queue(case):
    with case.program.chain():
        case.call("spread")
        case.dats["q"].values()
        assert case.globals["update", "total"].value.tolist() == [3, 3]
        assert case.loops["spread"].runner.times.calls == 0
    assert calls_of(case, "spread") == [1]


def test_arrays_that_nobody_watches_run_at_once(case):
    given = case.arguments("update") | {"total": np.zeros(2, np.int64)}
    with case.program.chain():
        case.call("areas")
        case.loops["update"](**given)
        assert given["total"].tolist() == case.dats["q"].values().sum(axis=1).tolist()
        assert calls_of(case, "areas", "update") == [1, 1]


def test_the_end_of_a_chain_runs_what_was_called_before_an_error(case):
    def stopped():
        with case.program.chain():
            case.call("areas")
            raise KeyError

    with pytest.raises(KeyError):
        stopped()
    assert calls_of(case, "areas") == [1]
    assert case.program.active is None


def test_mistakes_are_told_where_they_are_made(case):
    with (
        case.program.chain(),
        pytest.raises(MeshprepError, match="argument 'qold' is missing"),
    ):
        case.loops["update"](q=case.dats["q"])
    wrong = case.arguments("update") | {"res": case.dats["a"]}
    with (
        case.program.chain(),
        pytest.raises(MeshprepError, match="argument 'res' has shape"),
    ):
        case.loops["update"](**wrong)
    assert calls_of(case, "update") == [0]
    with case.program.chain(), pytest.raises(MeshprepError, match="a chain is under way"):
        case.program.chain().__enter__()
    with pytest.raises(MeshprepError, match="chain is 65, must be a whole number within 1"):
        case.program.chain(65)


def half(q, res, factor):
    if q[0] < 0:
        raise ValueError("negative")
    res[0] += factor[0] * q[0]


@pytest.fixture
def halves(slow):
    grid = slow.quads(3, 2)
    args = (
        Arg("q", Access.READ, 1, "i8"),
        Arg("res", Access.RW, 1, "i8"),
        Arg("factor", Access.READ, 1, "i8", is_global=True),
    )
    plan = slow.plan(grid.sizes, grid.tables, [Loop("half", "cells", args)], (8,))
    return Program(plan)


def test_constants_are_those_of_the_call(halves):
    q, res = (
        halves.dat("cells", 1, "i8", values=np.ones(6, np.int64)),
        halves.dat("cells", 1, "i8"),
    )
    loop, factor, other = (
        halves.loop(half, "half"),
        np.full(1, 3),
        halves.reduced(4, 1, "i8"),
    )
    with halves.chain():
        loop(q=q, res=res, factor=factor)
        factor[0] = 1000
        loop(q=q, res=res, factor=other)
        other.set(2000)
    assert res.values().tolist() == [7] * 6


def test_an_exception_of_a_kernel_names_its_loop(halves):
    q, res = halves.dat("cells", 1, "i8"), halves.dat("cells", 1, "i8")
    bad = halves.dat("cells", 1, "i8", values=np.full(6, -1))
    loop = halves.loop(half, "half")
    with halves.chain() as chain:
        for one in (q, bad, q):
            loop(q=one, res=res, factor=1)
        with pytest.raises(ValueError, match="negative") as raised:
            chain.flush()
    assert raised.value.__notes__ == [
        "in loop 'half', number 2 of 3 of a chain; the loops after it have not run"
    ]
    assert loop.times.calls == 2


@pytest.mark.parametrize("tiles", [None, {"tile_size": 2}])
def test_what_a_loop_changed_before_it_failed_counts_as_changed(halves, tiles):
    values = np.array([1, 1, -1, -1, -1, -1])
    q, res = halves.dat("cells", 1, "i8", values=values), halves.dat("cells", 1, "i8")
    loop = halves.loop(half, "half", strategy="sequential")
    chain = nullcontext() if tiles is None else halves.chain(1, **tiles)
    with chain, pytest.raises(ValueError, match="negative"):
        loop(q=q, res=res, factor=3)
    assert (res.version, res.fresh) == (1, set())


def test_an_interrupt_waits_for_every_thread(monkeypatch):
    """Else tiles would be written while the program goes on."""
    monkeypatch.setattr(launch, "thread_count", lambda: 2)
    begun, ended = threading.Event(), []

    def call(thread, taken):
        if thread == 0:
            begun.wait()
            raise KeyboardInterrupt
        begun.set()
        for _ in range(300):
            # the tiles that are left are not run
            if taken[0] == 9:
                time.sleep(0.05)
                ended.append(thread)
                return
            time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        launch.launch(call, [], 9, np.zeros(2 * launch.LINE, np.int64), [])
    assert ended == [1]


def eager_or_lazy(parts, values, names, length, comm):
    """A program on one rank, queued or not; what it fetches and reduces."""
    plan = DistributedPlan(parts[comm.rank], comm)
    program = Program(plan)
    dats = {}
    for name, v in values.items():
        own = v[plan.numbers(SETS.get(name, "cells"))]
        dats[name] = program.dat(SETS.get(name, "cells"), DIMS[name], "i8", values=own)
    loops = {n: program.loop(KERNELS[n], n, strategy="sequential") for n in set(names)}
    total = program.reduced(5, 2, "i8")
    with program.chain(length) if length else nullcontext():
        for name in names:
            args = loops[name].loop.args
            found = {a.name: dats[a.name] for a in args if not a.is_global}
            loops[name](**found, **{a.name: total for a in args if a.is_global})
    return {n: plan.fetch(d) for n, d in dats.items()}, total.value.tolist()


def test_lazy_is_eager_on_ranks(slow):
    rng = np.random.default_rng(2)
    sizes, maps = random_mesh(rng, 20)
    tables = {m: one.table for m, one in maps.items()}
    owner = {s: rng.integers(0, 3, n) for s, n in sizes.items()}
    world = World(sizes, tables, list(LOOPS.values()), owner, 3)
    parts = [world.part(p, slow.variant) for p in range(3)]
    names, values = (
        ["areas", "update", "spread", "mark", "update"],
        start_values(rng, sizes),
    )
    ways = [
        run_ranks(3, partial(eager_or_lazy, parts, values, names, length))
        for length in (0, 2, 64)
    ]
    for way in ways[1:]:
        for (dats, total), (expected, sums) in zip(way, ways[0], strict=True):
            assert total == sums
            for name, values in dats.items():
                np.testing.assert_array_equal(values, expected[name], err_msg=name)
    assert ways[0][0][1] != [5, 5]


def test_chains_on_a_gpu(halves, device, needs_gxx):
    q, res = (
        halves.dat("cells", 1, "i8", values=device.array(np.full(6, n, np.int64)))
        for n in (2, 1)
    )
    loop = halves.loop(half_on_gpu, "half")
    with halves.chain():
        loop(q=q, res=res, factor=3)
        loop(q=q, res=res, factor=4)
        assert res.values().get().ravel().tolist() == [1 + 2 * 3 + 2 * 4] * 6


def half_on_gpu(q, res, factor):
    res[0] += factor[0] * q[0]


def test_a_global_starts_from_what_its_dtype_holds():
    program = case_of(3, 0).program
    assert program.reduced(0.0, 2, "i8").array.tolist() == [0, 0]
    with pytest.raises(MeshprepError, match=r"starts from 1\.5, which i8 cannot hold"):
        program.reduced(1.5, dtype="i8")
    with pytest.raises(MeshprepError, match="starts from inf, which i4 cannot hold"):
        program.reduced(np.inf, dtype="i4")
    with pytest.raises(MeshprepError, match="dtype of a global 'number' is unknown"):
        program.reduced(1, dtype="number")
    with pytest.raises(MeshprepError, match=r"\[1, 2, 3\], must be one number or 2"):
        program.reduced([1, 2, 3], 2)


def test_a_global_is_set_to_what_its_dtype_holds():
    total = case_of(3, 0).program.reduced(3, 2, "i8")
    with pytest.raises(MeshprepError, match=r"\[1\.0, 2\.5\], which int64 cannot hold"):
        total.set([1.0, 2.5])
    assert total.value.tolist() == [3, 3]
    total.set(2.0)
    assert total.value.tolist() == [2, 2]


def test_a_copy_has_the_values_of_what_was_called_before(halves):
    q, res = (
        halves.dat("cells", 1, "i8", values=np.ones(6, np.int64)),
        halves.dat("cells", 1, "i8"),
    )
    loop = halves.loop(half, "half")
    with halves.chain():
        loop(q=q, res=res, factor=3)
        other = copy.deepcopy(res)
        loop(q=q, res=res, factor=3)
        assert other.values().tolist() == [3] * 6
        assert res.values().tolist() == [6] * 6
