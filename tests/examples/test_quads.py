"""Three forms of integration: one matrix, and what each takes of a GPU."""

import numpy as np
import pytest

from meshprep.io.generate import generate
from meshprep.loops.requests import LoopRequest
from meshprep.pipeline.steps import Options, prepare
from meshprep_cuda_check.checked import run_checked
from meshprep_runtime.cuda import program
from quads import FORMS, gradients, laplacian, quadrature


def planned(degree):
    """A shuffled grid of quads with perturbed nodes, and a loop that adds to K."""
    dofs = f"cells->dofs{degree}"
    args = [
        {"dat": "x", "map": "cells->nodes", "dim": 2},
        {"mat": "K", "rows": dofs, "columns": dofs, "access": "inc"},
    ]
    request = LoopRequest("laplacian", {"over": "cells", "args": args}, "test")
    mesh = generate("box", nx=4, ny=3, nz=0, type="quad", shuffle=True)
    done = prepare(mesh, [request], Options(block_size=32))
    x = done.mesh.coordinates[:, :2] + np.random.default_rng(0).uniform(-0.2, 0.2, (20, 2))
    return done.plan["laplacian"], np.ascontiguousarray(x)


def by_numpy(plan, x, degree):
    """The matrices of all elements, and their sums."""
    s, t, weight = quadrature(degree)
    slopes = gradients(degree, np.stack([s, t], axis=1))
    a, b, c, d = (x[plan.maps["cells->nodes"].table[:, k], None] for k in range(4))
    s, t = s[:, None], t[:, None]
    by_s, by_t = (1 - t) * (b - a) + t * (c - d), (1 - s) * (d - a) + s * (c - b)
    jacobian = np.stack([by_s, by_t], axis=3)
    mapped = np.einsum("qir,eqrd->eqid", slopes, np.linalg.inv(jacobian))
    scale = np.abs(np.linalg.det(jacobian)) * weight
    local = np.einsum("eq,eqid,eqjd->eij", scale, mapped, mapped)
    total = np.zeros(plan.matrices["K"].columns.size)
    np.add.at(total, plan.matrices["K"].place["laplacian"], local.reshape(len(local), -1))
    return total


CASES = [(p, form) for p in (1, 2, 3, 4) for form in FORMS]
SHORT = [(2, form) for form in FORMS]


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize(
    ("degree", "form"),
    [*SHORT, *(pytest.param(*c, marks=pytest.mark.long) for c in CASES if c not in SHORT)],
)
def test_every_form_gives_the_matrix_of_numpy(degree, form):
    plan, x = planned(degree)
    values = np.zeros(plan.matrices["K"].columns.size)
    run_checked(program(laplacian(degree, form), plan, "hierarchical"), x=x, K=values)
    wanted = by_numpy(plan, x, degree)
    assert np.abs(values - wanted).max() < 1e-12 * np.abs(wanted).max()
    made = plan.matrices["K"].csr()
    made.values[:] = values
    dense = made.to_scipy().toarray()
    assert np.abs(dense - dense.T).max() < 1e-13 * np.abs(dense).max()
    assert np.abs(dense.sum(axis=1)).max() < 1e-12 * np.abs(dense).max()


@pytest.mark.long
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_registers_of_the_redundant_form_do_not_grow_with_the_degree(compiled, arch):
    """[R14 4.4.1]: what the local form keeps grows with the points."""
    found = {
        form: [
            compiled(program(laplacian(p, form), planned(p)[0], "global-atomics"), arch)
            for p in (2, 3, 4)
        ]
        for form in ("local", "redundant")
    }
    least, *more = (c.registers for c in found["redundant"])
    assert max(more) <= least + 4
    assert all(c.spilled == 0 for c in found["redundant"])
    quadratic, cubic, quartic = found["local"]
    assert quadratic.registers > 2 * least
    assert cubic.registers > quadratic.registers + 40
    assert quartic.spilled > 0
