"""Tiles of two small loops: dats that are dropped or zero, exceptions, and what is refused."""

import numpy as np
import pytest

from meshprep_cuda_check.emulated import EmulatedDevice
from meshprep_runtime import Access, Arg, Loop, LoopPlan, MeshprepError, Program
from meshprep_runtime.program.chains.numbers import number
from meshprep_runtime.program.chains.owners import tile_owners

READ, WRITE, RW, INC = Access.READ, Access.WRITE, Access.RW, Access.INC
GATHER = (
    Arg("q", READ, 1, "i8", "edges->cells", (0, 1)),
    Arg("res", INC, 1, "i8", "edges->cells", (0, 1)),
)
TAKE = (
    Arg("res", RW, 1, "i8"),
    Arg("q", RW, 1, "i8"),
    Arg("old", WRITE, 1, "i8", full=True),
    Arg("limit", READ, 1, "i8", is_global=True),
    Arg("most", Access.MAX, 1, "i8", is_global=True),
)


def gather(q1, q2, res1, res2):
    res1[0] += q2[0]
    res2[0] += q1[0]


def take(res, q, old, limit, most):
    if q[0] > limit[0]:
        raise ValueError("too large")
    old[0] = q[0]
    most[0] = max(most[0], q[0])
    q[0] = (q[0] + res[0]) % 101
    res[0] = 0


class Flow:
    """Cells that add up what their neighbours have."""

    def __init__(self, slow, plan=None, q=None):
        if plan is None:
            grid = slow.quads(6, 5)
            loops = [Loop("gather", "edges", GATHER), Loop("take", "cells", TAKE)]
            plan = slow.plan(grid.sizes, grid.tables, loops, (4,))
        self.program = Program(plan)
        q = np.arange(plan.sizes["cells"]) % 17 if q is None else q
        self.q = self.program.dat("cells", 1, "i8", values=q)
        self.res, self.old = (self.program.dat("cells", 1, "i8") for _ in range(2))
        self.most = self.program.reduced(0, 1, "i8")
        self.gather = self.program.loop(gather, "gather", strategy="sequential")
        self.take = self.program.loop(take, "take", strategy="sequential")

    def step(self, limit=1000):
        self.gather(q=self.q, res=self.res)
        self.take(res=self.res, q=self.q, old=self.old, limit=limit, most=self.most)

    def tiled(self, **options):
        return self.program.chain(4, tile_size=6, **options)

    def run(self, chain, times=4):
        with chain:
            for _ in range(times):
                self.step()
                self.step()

    def result(self, *dats):
        return [d.values().tolist() for d in (self.q, *dats)], self.most.value.tolist()


@pytest.fixture
def flow(slow):
    return Flow(slow)


@pytest.fixture
def eager(slow):
    made = Flow(slow)
    for _ in range(8):
        made.step()
    return made


@pytest.mark.long
def test_dropped_and_zero_dats_change_nothing_else(flow, eager):
    chain = flow.tiled(dropped=[flow.old], zero=[flow.res])
    flow.run(chain)
    (run,) = chain.tiled.values()
    assert run.tiles.n_tiles == 6
    assert set(run.tiles.copies) == {"q"}
    assert flow.result(flow.res) == eager.result(eager.res)
    with pytest.raises(
        MeshprepError, match="its values were dropped at the end of a chain"
    ):
        flow.old.values()
    flow.step()
    eager.step()
    assert flow.result(flow.old) == eager.result(eager.old)


def test_tiles_that_store_a_dat_again_bring_it_back(flow, eager):
    flow.old.dropped = True
    flow.run(flow.tiled())
    assert flow.result(flow.old) == eager.result(eager.old)


def test_what_is_not_zero_is_told(flow):
    flow.res.values(write=True)[3] = 1
    with pytest.raises(
        MeshprepError, match="dat 'res' is declared zero, but is not zero before"
    ):
        flow.run(flow.tiled(zero=[flow.res]))
    chain = flow.program.chain(3, tile_size=6, zero=[flow.res])
    flow.res.values(write=True)[3] = 0
    with chain:
        flow.gather(q=flow.q, res=flow.res)
        flow.gather(q=flow.q, res=flow.res)
        with pytest.raises(
            MeshprepError, match="'res' is declared zero, but is not zero after"
        ):
            flow.gather(q=flow.q, res=flow.res)


def test_an_exception_names_its_loop(flow):
    """Tiles have changed nothing then."""
    before = flow.result()
    with flow.tiled():
        flow.step()
        flow.gather(q=flow.q, res=flow.res)
        with pytest.raises(ValueError, match="too large") as raised:
            flow.take(res=flow.res, q=flow.q, old=flow.old, limit=-1, most=flow.most)
    assert raised.value.__notes__ == [
        "in loop 'take', number 4 of 4 of a chain; the loops after it have not run"
    ]
    assert flow.result() == before


def test_another_dat_makes_another_schedule(flow):
    other = flow.program.dat("cells", 1, "i8")
    with flow.tiled() as chain:
        flow.step()
        flow.step()
        flow.step()
        flow.gather(q=flow.q, res=other)
        flow.take(res=other, q=flow.q, old=flow.old, limit=999, most=flow.most)
    assert len(chain.tiled) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dropped": ["res"]}, "dat 'res' cannot be dropped at the end of the chain"),
        ({"zero": ["other"]}, "cannot be dropped or zero: no loop of the chain writes it"),
        ({"tile_size": 0}, "tile_size is 0, must be a whole number from 1"),
        ({"tile_size": "large"}, "tile_size is 'large', must be a number or 'auto'"),
    ],
)
def test_options_that_are_refused(flow, options, said):
    flow.other = flow.program.dat("cells", 1, "i8")
    made = {
        n: [getattr(flow, d) for d in v] if n != "tile_size" else v
        for n, v in options.items()
    }

    def run():
        flow.run(flow.program.chain(4, **{"tile_size": 6} | made))

    with pytest.raises(MeshprepError, match=said):
        run()


def test_a_tile_may_be_larger_than_any_set():
    loop = Loop("take", "cells", (Arg("q", Access.RW),))
    plan = LoopPlan(loop, {"cells": 30}, {}, {}, "")
    owner = tile_owners(number([loop], plan.sizes, {}), [plan], 10**20)
    assert owner["cells"].tolist() == [0] * 30


def test_arguments_that_are_refused(flow):
    with flow.tiled():
        with pytest.raises(
            MeshprepError, match="tiles need dats and reduced globals of the program"
        ):
            flow.gather(q=flow.q, res=np.zeros(30, np.int64))
        on_gpu = flow.program.dat(
            "cells", 1, "i8", values=EmulatedDevice().array(np.arange(30))
        )
        with pytest.raises(
            MeshprepError, match="tiles run on the host, but 'q' is on a GPU"
        ):
            flow.gather(q=on_gpu, res=flow.res)
    twin = flow.program.dat("cells", 1, "i8", values=flow.q.array)

    def share():
        with flow.tiled():
            flow.step()
            flow.gather(q=twin, res=flow.res)
            flow.gather(q=flow.q, res=flow.res)

    with pytest.raises(MeshprepError, match="dats 'q' and 'q_3' share memory"):
        share()


def test_other_arrays_for_dats_between_runs(flow, slow):
    """Compiled tiles check nothing: what they are given is checked when a dat gets it."""
    chain, other = flow.tiled(), Flow(slow)
    flow.run(chain)
    other.run(other.tiled())
    n = len(flow.q.array)
    fixed = np.zeros((n, 1), np.int64)
    fixed.flags.writeable = False
    wrong = (
        np.zeros((n, 3), np.int64)[:, :1],
        np.zeros((3, 1), np.int64),
        np.zeros((n, 1)),
    )
    for array in (*wrong, fixed, [1]):
        with pytest.raises(MeshprepError, match="another array for it"):
            flow.old.array = array
    flow.old.array = np.full((n, 1), -1)
    flow.run(chain)
    other.run(other.tiled())
    for name in ("q", "res", "old"):
        ours, theirs = getattr(flow, name).values(), getattr(other, name).values()
        np.testing.assert_array_equal(ours.ravel(), theirs.ravel())
    flow.old.array = flow.res.array
    with pytest.raises(MeshprepError, match="share memory, and tiles write"):
        flow.run(chain)


def test_tiles_never_write_to_an_array_that_the_program_has_seen(flow, eager):
    """It may be what the program starts from again."""
    chain, start, seen = flow.tiled(), flow.q.array, []
    for times in (1, 1, 2):
        seen.append((flow.q.array, flow.q.array.copy()))
        flow.run(chain, times)
    for array, before in seen:
        np.testing.assert_array_equal(array, before)
    flow.q.array = start
    flow.res.values(write=True)[:] = 0
    flow.run(chain)
    assert flow.result(flow.res)[0] == eager.result(eager.res)[0]
