"""Airfoil: against the same scheme in whole arrays, and what must hold for any scheme."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import airfoil
import jacobi
import volna
from airfoil import LOOPS, Airfoil, coordinates, prepared_airfoil, read_airfoil
from kernels import airfoil as kernels
from meshprep import Options, prepare, read_requests
from meshprep.io.generate import generate
from meshprep.pipeline import workflow
from meshprep.reporting.meshes import bare
from meshprep_runtime import MeshprepError
from meshprep_runtime.cuda import DeviceFunction, program

FREE = kernels.FREE_STREAM


@pytest.fixture(scope="module")
def small():
    return prepared_airfoil(1200, 128)


def pressure(q):
    return 0.4 * (q[:, 3] - 0.5 * (q[:, 1] ** 2 + q[:, 2] ** 2) / q[:, 0])


def flux(q1, q2, dx, dy, mu):
    """Of the airfoil page: the mean of both fluxes plus mu times the difference."""

    def one(q):
        p, vol = pressure(q), (q[:, 1] * dy - q[:, 2] * dx) / q[:, 0]
        parts = (
            vol * q[:, 0],
            vol * q[:, 1] + p * dy,
            vol * q[:, 2] - p * dx,
            vol * (q[:, 3] + p),
        )
        return np.column_stack(parts)

    return 0.5 * (one(q1) + one(q2)) + mu[:, None] * (q1 - q2)


class WholeArrays:
    """The scheme with NumPy, written from the equations and not from the kernels."""

    def __init__(self, prepared):
        plan = prepared.plan
        t = {name: m.table for name, m in plan.maps.items()}
        x = coordinates(prepared)
        self.cells, self.inner, self.outer = (
            SimpleNamespace(
                side=np.roll(x[t["cells->nodes"]], -1, axis=1) - x[t["cells->nodes"]]
            ),
            SimpleNamespace(cell=t["edges->cells"].T, d=self.step(x, t["edges->nodes"])),
            SimpleNamespace(
                cell=t["boundary_edges->cells"][:, 0],
                d=self.step(x, t["boundary_edges->nodes"]),
            ),
        )
        self.wall = plan.tags["boundary_edges"]["physical"] == 1
        self.q = np.tile(FREE, (plan.sizes["cells"], 1))

    @staticmethod
    def step(x, nodes):
        return (x[nodes[:, 1]] - x[nodes[:, 0]]).T

    def residual(self, adt):
        (left, right), q = self.inner.cell, self.q
        f = flux(q[left], q[right], *self.inner.d, 0.025 * (adt[left] + adt[right]))
        res = np.zeros_like(q)
        np.add.at(res, left, f)
        np.subtract.at(res, right, f)
        cell, (dx, dy) = self.outer.cell, self.outer.d
        far = flux(q[cell], np.tile(FREE, (len(cell), 1)), dx, dy, 0.05 * adt[cell])
        p, none = pressure(q[cell]), np.zeros(len(cell))
        wall = np.column_stack([none, p * dy, -p * dx, none])
        np.add.at(res, cell, np.where(self.wall[:, None], wall, far))
        return res

    def iterate(self):
        old = self.q
        for _ in range(2):
            q, d = self.q, self.cells.side
            u, v = q[:, 1] / q[:, 0], q[:, 2] / q[:, 0]
            c = np.sqrt(1.4 * pressure(q) / q[:, 0])
            speed = np.abs(u[:, None] * d[..., 1] - v[:, None] * d[..., 0])
            adt = (speed + c[:, None] * np.hypot(d[..., 0], d[..., 1])).sum(axis=1) / 0.9
            change = self.residual(adt) / adt[:, None]
            self.q = old - change
        return float(np.sqrt((change**2).sum() / len(old)))


def test_whole_arrays_give_the_same(small):
    theirs = WholeArrays(small)
    ours = Airfoil(small, "hierarchical")
    for rms in ours.steps(20):
        assert rms == pytest.approx(theirs.iterate(), rel=1e-11)
    np.testing.assert_allclose(ours.dats["q"], theirs.q, rtol=1e-12, atol=1e-13)


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    """Airfoil on OP2's mesh as it stands: cells, edges and nodes keep their numbers."""
    path = tmp_path_factory.mktemp("op2") / "new_grid.h5"
    workflow.generate("airfoil", path, values={"cells": 1200})
    loops = read_requests(airfoil.KERNELS / "airfoil.toml")
    options = Options(block_size=64, partition="blocks")
    prepared = prepare(read_airfoil(path), loops, options, keep_order=True)
    assert all(order.is_identity for order in prepared.plan.ordering.values())
    lists = {name: prepared.plan[name].variant().elements is not None for name in LOOPS}
    assert lists == {n: n in ("adt_calc", "res_calc", "bres_calc") for n in LOOPS}
    return prepared


@pytest.mark.long
def test_a_mesh_that_keeps_its_order_gives_the_same_flow(small, listed):
    ours, theirs = Airfoil(listed, "hierarchical"), Airfoil(small, "hierarchical")
    for rms, expected in zip(ours.steps(5), theirs.steps(5), strict=True):
        assert rms == pytest.approx(expected, rel=1e-9)


def test_a_hundred_iterations(small):
    """A stored value, which the whole arrays gave too."""
    *_, last = Airfoil(small, "hierarchical").steps(100)
    assert f"{last:.5e}" == "1.44069e-04"


FILES = {
    "airfoil.msh": (None, {}),
    "new_grid.dat": (None, {}),
    "new_grid.h5": (None, {}),
    # In this order sizes do not tell where OP2's maps lead.
    "shuffled.h5": (["pbecell=bedges->cells", "pbedge=bedges->nodes"], {"shuffle": "true"}),
}


@pytest.mark.parametrize("name", FILES)
def test_a_mesh_file_gives_the_same_flow(small, tmp_path, name):
    sets, options = FILES[name]
    path = tmp_path / name
    workflow.generate("airfoil", path, values={"cells": 1200, **options})
    given = prepared_airfoil(0, 128, mesh=read_airfoil(path, sets))
    for rms, expected in zip(
        Airfoil(given, "hierarchical").steps(5),
        Airfoil(small, "hierarchical").steps(5),
        strict=True,
    ):
        assert rms == pytest.approx(expected, rel=1e-9)


def test_files_that_are_no_airfoil(tmp_path, monkeypatch):
    for kind, said in (
        ("mixed2d", "cells->nodes"),
        ("delaunay2d", "index 3 is past the last"),
    ):
        path = tmp_path / f"{kind}.msh"
        workflow.generate(
            kind,
            path,
            values={"nx": "3", "ny": "3"} if kind == "mixed2d" else {"cells": "50"},
        )
        monkeypatch.setattr(sys, "argv", ["airfoil.py", str(path)])
        with pytest.raises(SystemExit, match=said):
            airfoil.main()
    with pytest.raises(MeshprepError, match="no groups of boundary edges"):
        Airfoil(
            prepared_airfoil(0, 16, mesh=bare(generate("box", nx=3, ny=3, type="quad")))
        )


def test_the_kernels_do_what_they_say(small):
    flow = Airfoil(small, "hierarchical")
    list(flow.steps(3))
    # not 0, so that a sum that is set instead would show
    flow.dats["res"][:] = 1.0
    for name in LOOPS:
        loop = flow.loops[name].par_loop
        loop.check_access(200, **{s.name: flow.dats[s.name] for s in loop.slots})


def test_the_free_stream_stays_where_it_meets_no_wall(small):
    """A closed cell in a uniform flow gets as much as it gives."""
    flow = Airfoil(small, "hierarchical")
    flow.dats["adt"][:] = 1.0
    flow.loops["res_calc"](**flow._given["res_calc"])
    flow.dats["bound"] = np.full_like(flow.dats["bound"], 2)
    given = {**flow._given["bres_calc"], "bound": flow.dats["bound"]}
    flow.loops["bres_calc"](**given)
    np.testing.assert_allclose(flow.dats["res"], 0, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("lists", [False, True])
def test_whole_on_a_device(device, lists, listed):
    """Loop by loop, from a state that is not uniform, then some iterations together."""
    prepared = listed if lists else prepared_airfoil(600, 128, "gpu")
    ours, theirs = Airfoil(prepared, device=device), Airfoil(prepared, "sequential")
    rng = np.random.default_rng(0)
    q = FREE * (1 + 0.1 * rng.random(theirs.dats["q"].shape))
    theirs.dats["q"][:] = q
    ours.dats["q"].set(q)
    for name in LOOPS:
        ours.loops[name](**ours._given[name])
        theirs.loops[name](**theirs._given[name])
        for dat, values in theirs.dats.items():
            found = ours.dats[dat] if dat == "rms" else ours.dats[dat].get()
            np.testing.assert_allclose(
                found, values, rtol=1e-12, atol=1e-13, err_msg=f"{dat} after {name}"
            )
    assert ours.dats["rms"][0] > 0
    for rms, expected in zip(ours.steps(3), theirs.steps(3), strict=True):
        assert rms == pytest.approx(expected, rel=1e-11)
    assert all(seconds > 0 for seconds in ours.seconds.values())
    assert ours.loops["res_calc"].par_loop.on_gpu.strategy == "hierarchical"
    assert ours.loops["adt_calc"].par_loop.on_gpu.strategy == "global-atomics"


@pytest.mark.parametrize("arch", ["sm_90", pytest.param("sm_75", marks=pytest.mark.long)])
def test_machine_code_without_spills(small, arch, compiled):
    text = (airfoil.KERNELS / "airfoil.cu").read_text(encoding="utf-8")
    for name in LOOPS:
        strategy = "hierarchical" if name.endswith("res_calc") else "global-atomics"
        made = program(DeviceFunction(name, text), small.plan[name], strategy)
        found = compiled(made, arch)
        assert found.spilled == 0
        assert found.registers <= 64


@pytest.mark.parametrize("example", [airfoil, jacobi, volna])
def test_without_a_gpu(example, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    files = ["basin.msh", "wave.toml"] if example is volna else []
    monkeypatch.setattr(sys, "argv", [example.__name__, *files, "--device", "gpu"])
    with pytest.raises(
        SystemExit, match="error: running loops on a GPU needs CuPy: pip install"
    ):
        example.main()
