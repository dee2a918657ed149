"""Forms of scikit-fem through a plan against scikit-fem's own matrices."""

import numpy as np
import pytest
import skfem
from skfem.models.poisson import laplace, mass

from meshprep import FormAssembly, MeshprepError, from_skfem, prepare


@skfem.BilinearForm
def advection(u, v, w):
    """Not symmetric."""
    return u.grad[0] * v + 2 * u.grad[1] * v * w.x[0]


def meshes():
    rng = np.random.default_rng(5)
    for mesh in (skfem.MeshTri().refined(3), skfem.MeshQuad().refined(3)):
        moved = mesh.p.copy()
        inner = mesh.interior_nodes()
        moved[:, inner] += rng.uniform(-0.02, 0.02, (2, inner.size))
        yield type(mesh)(moved, mesh.t)


TRIANGLES, QUADS = meshes()
TETS = skfem.MeshTet().refined(2)
CASES = [
    (TRIANGLES, skfem.ElementTriP1()),
    (TRIANGLES, skfem.ElementTriP2()),
    (QUADS, skfem.ElementQuad1()),
    (QUADS, skfem.ElementQuad2()),
    (TETS, skfem.ElementTetP1()),
    (TRIANGLES, skfem.ElementVector(skfem.ElementTriP1())),
]


@pytest.mark.parametrize(("mesh", "element"), CASES)
def test_forms_are_assembled_as_by_scikit_fem(mesh, element):
    basis = skfem.Basis(mesh, element)
    assemble = FormAssembly(basis)
    assert assemble.plan.verify() == []
    vector = isinstance(element, skfem.ElementVector)
    forms = (
        [skfem.models.elasticity.linear_elasticity()]
        if vector
        else [laplace, mass, advection]
    )
    for form in forms:
        wanted = form.assemble(basis)
        assert abs(assemble(form) - wanted).max() <= 1e-12 * abs(wanted).max()


def test_fixed_dofs_have_no_row_and_no_column():
    basis = skfem.Basis(TRIANGLES, skfem.ElementTriP2())
    fixed = basis.get_dofs().flatten()
    free = np.setdiff1d(np.arange(basis.N), fixed)
    made = FormAssembly(basis, fixed=fixed)(laplace)
    wanted = laplace.assemble(basis)[free][:, free]
    assert made.shape == (free.size, free.size)
    assert abs(made - wanted).max() < 1e-12


def test_rows_of_another_basis_than_columns():
    """The gradient of the pressure against velocities; parameters go to the form."""
    trial = skfem.Basis(TRIANGLES, skfem.ElementTriP1(), intorder=4)
    test = trial.with_element(skfem.ElementTriP2())

    @skfem.BilinearForm
    def gradient(p, v, w):
        return w.factor * p.grad[0] * v

    made = FormAssembly(trial, test)(gradient, factor=3.0)
    wanted = gradient.assemble(trial, test, factor=3.0)
    assert made.shape == wanted.shape == (test.N, trial.N)
    assert abs(made - wanted).max() < 1e-12
    with pytest.raises(MeshprepError, match="128 and 64 elements"):
        FormAssembly(
            skfem.Basis(TRIANGLES, skfem.ElementTriP1()),
            skfem.Basis(QUADS, skfem.ElementQuad1()),
        )


def test_what_is_no_basis_no_form_and_no_mesh():
    with pytest.raises(MeshprepError, match="a basis of scikit-fem is needed"):
        FormAssembly(TRIANGLES)
    assemble = FormAssembly(skfem.Basis(TRIANGLES, skfem.ElementTriP1()))
    with pytest.raises(MeshprepError, match=r"put @skfem\.BilinearForm before it"):
        assemble(lambda u, v, w: u * v)
    with pytest.raises(MeshprepError, match=r"mesh is a MeshTri1: pass meshprep\.read"):
        prepare(TRIANGLES, ["cells->nodes"])
    mesh = from_skfem(TRIANGLES)
    assert (
        repr(mesh) == "Mesh(sets nodes 81, cells 128; maps cells->nodes; dats coordinates)"
    )
