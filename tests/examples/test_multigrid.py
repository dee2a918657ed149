"""Two levels of triangles: the operators, the map between them, and how fast it converges."""

import sys

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import spsolve

import multigrid
from meshprep.io.generate import generate
from multigrid import TwoLevels, operator, refine, with_edges

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.slow]


def matrix(mesh):
    """The operator as a sparse matrix, from its weights."""
    known, (a, b) = operator(mesh), mesh.map("edges->nodes").table.T
    n = mesh.size("nodes")
    off = sparse.coo_array((-known.weight, (a, b)), (n, n)).tocsr()
    off = off + off.T
    return (off - sparse.diags_array(off.sum(axis=1))).tocsr(), known


def square(n):
    return generate("box", nx=n, ny=n, type="triangle")


def factors(levels, cycles=10):
    norms = np.array(list(levels.cycles(cycles)))
    return norms[1:] / norms[:-1]


def test_a_fine_level_halves_every_edge():
    coarse = with_edges(generate("delaunay2d", cells=60, seed=3))
    fine, between = refine(coarse)
    n = coarse.size("nodes")
    assert fine.size("nodes") == n + coarse.size("edges")
    assert fine.size("cells") == 4 * coarse.size("cells")
    assert fine.size("edges") == 2 * coarse.size("edges") + 3 * coarse.size("cells")
    x = coarse.coordinates[:, :2]
    np.testing.assert_allclose(fine.coordinates, x[between.table].mean(axis=1))
    assert operator(fine).area.sum() == pytest.approx(1.0)
    # the coarse operator is the fine one between functions that are linear on coarse triangles
    rows = np.arange(len(between.table))
    half = np.full(len(rows), 0.5)
    up = sum(sparse.coo_array((half, (rows, c)), (len(rows), n)) for c in between.table.T)
    fine_matrix, coarse_matrix = matrix(fine)[0], matrix(coarse)[0]
    difference = (up.T @ fine_matrix @ up - coarse_matrix).toarray()
    np.testing.assert_allclose(difference, 0, atol=1e-12 * abs(coarse_matrix).max())


@pytest.mark.parametrize(
    ("mesh", "most"),
    [
        (lambda _: square(8), 0.2),
        (lambda _: square(16), 0.2),
        (lambda jiggled: jiggled(12), 0.3),
    ],
)
def test_a_cycle_reduces_the_residual_whatever_the_size(mesh, most, jiggled):
    found = factors(TwoLevels(mesh(jiggled), block_size=64))
    assert found[4:].max() < most


def test_smoothing_alone_is_slow():
    fine = TwoLevels(square(16), block_size=64).fine
    fine.source[:] = fine.area
    norms = [fine.smooth() for _ in range(200)]
    assert norms[-1] / norms[-2] > 0.98


def test_the_solution_is_that_of_a_direct_solver(jiggled):
    levels = TwoLevels(jiggled(12), block_size=64)
    list(levels.cycles(20))
    whole, known = matrix(levels.mesh)
    free = known.inverse > 0
    expected = np.zeros(len(free))
    expected[free] = spsolve(whole[free][:, free], known.area[free])
    np.testing.assert_allclose(levels.x, expected, rtol=1e-9, atol=1e-12)
    # the known largest value of this problem on the unit square
    assert levels.x.max() == pytest.approx(0.0736713, rel=0.02)


def test_each_level_has_a_plan_and_the_kernels_do_what_they_say():
    levels = TwoLevels(square(8), block_size=64)
    list(levels.cycles(1))
    fine, coarse = levels.fine, levels.coarse
    plans = (fine.program.plan, coarse.program.plan, levels.program.plan)
    assert [list(plan.loops) for plan in plans] == [["stiffness", "smooth"]] * 2 + [
        ["restrict", "prolong"]
    ]
    assert all(plan.verify() == [] for plan in plans)
    arrays = {"weight": fine.weight, "x": fine.x, "coarse": coarse.x, **fine._nodes()}
    arrays["square"] = np.zeros(1)
    for loop in (fine._stiffness, fine._smooth, levels._restrict, levels._prolong):
        loop.par_loop.check_access(**{s.name: arrays[s.name] for s in loop.par_loop.slots})


def test_the_program_prints_its_factors(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["multigrid.py", "--side", "12", "--cycles", "3"])
    multigrid.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("   0 residual ")
    assert float(lines[2].rpartition(" ")[2]) < 0.5
    assert "stiffness" in "".join(lines[3:])
