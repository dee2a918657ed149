"""Dats that are stored as was tuned: the same values whatever lies in memory, and what it took."""

from dataclasses import replace

import numba
import numpy as np
import pytest

from meshprep_runtime import Access, Arg, Loop, MeshprepError, Program
from meshprep_runtime.cuda import DeviceFunction
from meshprep_runtime.plan.tuned import CPU, GPU, Machine, Trial, Tuned
from meshprep_runtime.tuning.lookup import processor

ARGS = (
    Arg("q", Access.READ, 2, "f8", "edges->cells", (0, 1)),
    Arg("res", Access.INC, 2, "f8", "edges->cells", (0, 1)),
)
IN_C = """
__device__ void flux(const double* q1, const double* q2, double* res1, double* res2) {
  res1[0] += q1[0] - 3 * q2[1];
  res2[1] += q1[1];
}
"""


def flux(q1, q2, res1, res2):
    res1[0] += q1[0] - 3 * q2[1]
    res2[1] += q1[1]


def trial(seconds, *soa, strategy="sequential"):
    return Trial(strategy, "", soa, seconds, seconds, 0.0, 3)


@pytest.fixture
def grid(slow):
    return slow.quads(5, 4)


@pytest.fixture
def plan(slow, grid):
    """Two loops of one kernel; on this machine the first wants ``q`` as SoA."""
    loops = [Loop(name, "edges", ARGS) for name in ("flux", "again")]
    made = slow.plan(grid.sizes, grid.tables, loops, (8,))
    here = Machine(CPU, processor(), numba.get_num_threads())
    trials = (trial(1.0, "q"), trial(2.0), trial(3.0, "q", "res"))
    emulated = (trial(1.0, "q", "res", strategy="global-atomics"), trial(2.0))
    tuned = tuple(
        Tuned(machine, "flux", True, of)
        for machine, of in ((here, trials), (Machine(GPU, "emulated"), emulated))
    )
    return replace(made, loops={**made.loops, "flux": replace(made["flux"], tuned=tuned)})


@pytest.fixture
def values():
    return np.arange(40.0).reshape(20, 2)


def expected(grid, values, calls):
    left, right = grid.tables["edges->cells"].T
    res = np.zeros((20, 2))
    np.add.at(res[:, 0], left, values[left, 0] - 3 * values[right, 1])
    np.add.at(res[:, 1], right, values[left, 1])
    return calls * res


def test_what_was_tuned_lies_in_memory_and_nobody_sees_it(plan, grid, values):
    program = Program(plan)
    q = program.dat("cells", 2, values=values.copy(), layout="auto")
    res = program.dat("cells", 2, layout="auto")
    loop = program.loop(flux, "flux")
    assert q.layout == "aos"
    loop(q=q, res=res)
    assert (q.layout, res.layout) == ("soa", "aos")
    assert q.array.shape == (2, 20)
    np.testing.assert_array_equal(q.values(), values)
    np.testing.assert_array_equal(res.values(), expected(grid, values, 1))
    with pytest.raises(ValueError, match="read-only"):
        q.values()[0] = 1
    q.values(write=True)[3] = 7
    assert q.array[:, 3].tolist() == [7, 7]
    assert loop.par_loop.strategy == "sequential"
    first = loop.times.layout
    assert 0 < first < loop.times.seconds
    loop(q=q, res=res)
    assert loop.times.layout == first
    assert program.timings().rows()[0][5] == f"{first:.3f}"


def test_a_loop_with_another_layout_says_what_it_takes(plan, grid, values):
    program = Program(plan)
    q = program.dat("cells", 2, values=values, layout="auto")
    res = program.dat("cells", 2, layout="auto")
    follows = program.loop(flux, "flux", strategy="sequential")
    asks = program.loop(flux, "again", strategy="sequential", layout={"res": "soa"})
    for _ in range(2):
        follows(q=q, res=res)
        asks(q=q, res=res)
    np.testing.assert_array_equal(res.values(), expected(grid, values, 4))
    # what a loop asks for stays; a loop that takes anything asks for nothing
    assert (q.layout, res.layout) == ("aos", "soa")
    assert follows.times.layout > 0
    assert asks.times.layout > 0
    (settled,) = {asks.times.layout}
    asks(q=q, res=res)
    assert asks.times.layout == settled


def test_a_loop_follows_dats_of_one_layout(plan, grid, values):
    program = Program(plan)
    q = program.dat("cells", 2, values=values.T.copy(), layout="soa")
    res = program.dat("cells", 2)
    program.loop(flux, "flux", strategy="sequential")(q=q, res=res)
    np.testing.assert_array_equal(res.values(), expected(grid, values, 1))
    asks = program.loop(flux, "again", strategy="sequential", layout="aos")
    with pytest.raises(MeshprepError, match=r"'q' has shape \(2, 20\), must be \(20, 2\)"):
        asks(q=q, res=res)


@pytest.mark.parametrize("shape", [(20,), (1, 20)])
def test_a_dat_of_one_component_in_either_shape(plan, shape):
    given = np.arange(20.0).reshape(shape)
    dat = Program(plan).dat("cells", 1, values=given, layout="soa")
    assert np.shares_memory(dat.array, given)
    assert dat.array.shape == (20,)
    with pytest.raises(MeshprepError, match=r"has values of shape \(1, 20\)"):
        Program(plan).dat("cells", 1, values=np.ones((1, 20)))


def test_chains_and_tiles(plan, grid, values):
    """A dat that is stored anew between two runs of a chain, and within one."""
    program = Program(plan)
    q = program.dat("cells", 2, values=values, layout="auto")
    res = program.dat("cells", 2, layout="auto")
    follows = program.loop(flux, "flux", strategy="sequential")
    asks = program.loop(flux, "again", strategy="sequential", layout={"q": "soa", "res": "soa"})
    with program.chain(2, tile_size=5) as chain:
        for _ in range(2):
            follows(q=q, res=res)
            follows(q=q, res=res)
        assert len(chain.tiled) == 1
        asks(q=q, res=res)
        follows(q=q, res=res)
        follows(q=q, res=res)
        asks(q=q, res=res)
    assert len(chain.tiled) == 3
    np.testing.assert_array_equal(res.values(), expected(grid, values, 8))


def test_a_checkpoint_holds_what_users_see(plan, grid, values, tmp_path):
    def run(stop):
        program = Program(plan, checkpoint=tmp_path / "run.h5", every=1e9)
        q = program.dat("cells", 2, values=values.copy(), layout="auto")
        res = program.dat("cells", 2, layout="auto")
        loop = program.loop(flux, "flux")
        for call in range(4):
            if call == 2 and stop:
                program.checkpoint_here()
            loop(q=q, res=res)
        return q.values().copy(), res.values().copy(), loop.times.calls

    whole = run(stop=True)
    again = run(stop=False)
    assert (whole[2], again[2]) == (4, 2)
    for ours, theirs in zip(whole[:2], again[:2], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(again[1], expected(grid, values, 4))


@pytest.mark.usefixtures("needs_gxx")
def test_on_a_gpu(plan, grid, values, device):
    program = Program(plan)
    q, res = (
        program.dat("cells", 2, values=device.array(v), layout="auto")
        for v in (values, np.zeros((20, 2)))
    )
    loop = program.loop(DeviceFunction("flux", IN_C), "flux")
    loop(q=q, res=res)
    assert (q.layout, res.layout) == ("soa", "soa")
    assert loop.par_loop.on_gpu.strategy == "global-atomics"
    assert res.values().shape == (20, 2)
    np.testing.assert_array_equal(res.values().get(), expected(grid, values, 1))
    q.values(write=True).set(values + 1)
    loop(q=q, res=res)
    both = expected(grid, values, 1) + expected(grid, values + 1, 1)
    np.testing.assert_array_equal(res.values().get(), both)
    assert loop.times.layout > 0


def test_what_was_not_tuned_is_aos(plan, values):
    program = Program(replace(plan, loops={"again": plan["again"]}))
    q = program.dat("cells", 2, values=values, layout="auto")
    program.loop(flux, "again", strategy="sequential")(q=q, res=program.dat("cells", 2))
    assert q.array is values
    assert q.values() is not values
