"""NGSolve: Poisson's equation with quadratic elements, by conjugate gradients."""

import ngsolve
from client_run import main
from netgen.read_gmsh import ReadGmsh
from ngsolve import dx, grad

PRODUCTS = 10


def solve(mesh_file, own_order, clock):
    """Zero on the whole border."""
    with clock.phase("reading"):
        mesh = ngsolve.Mesh(ReadGmsh(str(mesh_file)))
    with clock.phase("assembly"):
        space = ngsolve.H1(mesh, order=2, dirichlet="left|right|walls")
        u = space.TrialFunction()
        v = space.TestFunction()
        stiffness = ngsolve.BilinearForm(grad(u) * grad(v) * dx, symmetric=False)
        stiffness.Assemble()
        load = ngsolve.LinearForm(v * dx).Assemble()
    with clock.phase("products"):
        product = load.vec.CreateVector()
        for _ in range(PRODUCTS):
            product.data = stiffness.mat * load.vec
    with clock.phase("solving"):
        diagonal = stiffness.mat.CreateSmoother(space.FreeDofs())
        solution = ngsolve.GridFunction(space)
        inverse = ngsolve.CGSolver(stiffness.mat, diagonal, maxiter=2000, tol=1e-10)
        solution.vec.data = inverse * load.vec
    return {
        "unknowns": space.ndof,
        "energy": ngsolve.InnerProduct(solution.vec, load.vec),
        "mean square": ngsolve.Integrate(solution**2, mesh),
    }


if __name__ == "__main__":
    main(solve)
