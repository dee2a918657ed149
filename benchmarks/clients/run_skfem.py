"""scikit-fem: Poisson's equation with quadratic elements, by conjugate gradients."""

import numpy as np
import skfem
from client_run import main
from scipy.sparse import diags_array
from scipy.sparse.linalg import cg
from skfem.helpers import dot, grad


@skfem.BilinearForm
def stiffness(u, v, _):
    """The Laplace operator."""
    return dot(grad(u), grad(v))


@skfem.LinearForm
def load(v, _):
    """A source of one everywhere."""
    return v


def solve(mesh_file, own_order, clock):
    """Zero on the whole border."""
    with clock.phase("reading"):
        mesh = skfem.Mesh.load(mesh_file)
    with clock.phase("assembly"):
        basis = skfem.Basis(mesh, skfem.ElementTetP2())
        matrix = stiffness.assemble(basis).tocsr()
        right_side = load.assemble(basis)
        inner = basis.complement_dofs(basis.get_dofs())
        matrix = matrix[inner][:, inner]
        right_side = right_side[inner]
    with clock.phase("solving"):
        diagonal = diags_array(1 / matrix.diagonal())
        u, failed = cg(matrix, right_side, rtol=1e-10, M=diagonal)
        assert not failed
    return {"unknowns": len(u), "energy": u @ right_side, "largest": np.max(u)}


if __name__ == "__main__":
    main(solve)
