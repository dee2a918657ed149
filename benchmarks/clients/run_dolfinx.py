"""dolfinx, by Debian's Python: Poisson's equation with quadratic elements, conjugate gradients."""

import ufl
from client_run import main
from dolfinx import fem, mesh
from dolfinx.fem.petsc import LinearProblem
from gmsh_text import read_gmsh
from mpi4py import MPI

OPTIONS = {"ksp_type": "cg", "pc_type": "jacobi", "ksp_rtol": 1e-10}


def solve(mesh_file, own_order, clock):
    """Zero on the whole border."""
    with clock.phase("reading"):
        points, cells, _ = read_gmsh(mesh_file)
        shape = ufl.Mesh(ufl.VectorElement("Lagrange", ufl.tetrahedron, 1))
        domain = mesh.create_mesh(MPI.COMM_WORLD, cells["tetrahedron"], points, shape)
        domain.topology.create_connectivity(2, 3)
        border = mesh.exterior_facet_indices(domain.topology)
    # The compiler of the forms keeps what it has compiled.
    with clock.phase("compiling"):
        space = fem.FunctionSpace(domain, ("Lagrange", 2))
        u = ufl.TrialFunction(space)
        v = ufl.TestFunction(space)
        stiffness = ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx
        load = fem.Constant(domain, 1.0) * v * ufl.dx
        dofs = fem.locate_dofs_topological(space, 2, border)
        fixed = fem.dirichletbc(0.0, dofs, space)
        problem = LinearProblem(stiffness, load, bcs=[fixed], petsc_options=OPTIONS)
    with clock.phase("assembly and solving"):
        solution = problem.solve()
    energy = fem.assemble_scalar(fem.form(solution * ufl.dx))
    return {
        "unknowns": space.dofmap.index_map.size_global,
        "energy": energy,
        "largest": solution.x.array.max(),
    }


if __name__ == "__main__":
    main(solve)
