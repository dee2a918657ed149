"""Loops take dats as they are stored: the same values whatever lies in memory."""

import numpy as np
import pytest

from meshprep_runtime import Access, Arg, Loop, MeshprepError, Program
from meshprep_runtime.cuda import DeviceFunction

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


@pytest.fixture
def grid(slow):
    return slow.quads(5, 4)


@pytest.fixture
def plan(slow, grid):
    loops = [Loop(name, "edges", ARGS) for name in ("flux", "again")]
    return slow.plan(grid.sizes, grid.tables, loops, (8,))


@pytest.fixture
def values():
    return np.arange(40.0).reshape(20, 2)


def expected(grid, values, calls):
    left, right = grid.tables["edges->cells"].T
    res = np.zeros((20, 2))
    np.add.at(res[:, 0], left, values[left, 0] - 3 * values[right, 1])
    np.add.at(res[:, 1], right, values[left, 1])
    return calls * res


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


@pytest.mark.usefixtures("needs_gxx")
def test_on_a_gpu(plan, grid, values, device):
    program = Program(plan)
    given = (values.T.copy(), np.zeros((2, 20)))
    q, res = (program.dat("cells", 2, values=device.array(v), layout="soa") for v in given)
    loop = program.loop(DeviceFunction("flux", IN_C), "flux", strategy="global-atomics")
    loop(q=q, res=res)
    assert res.values().shape == (2, 20)
    np.testing.assert_array_equal(res.values().get().T, expected(grid, values, 1))
