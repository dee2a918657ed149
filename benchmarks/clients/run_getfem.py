"""GetFEM, by Debian's Python: Poisson's equation with quadratic elements, conjugate gradients."""

import getfem
import numpy as np
from client_run import main


def solve(mesh_file, own_order, clock):
    """Zero on the whole border."""
    with clock.phase("reading"):
        mesh = getfem.Mesh("import", "gmsh", str(mesh_file))
        if own_order:
            mesh.optimize_structure()
        mesh.set_region(1, mesh.outer_faces())
    with clock.phase("assembly"):
        elements = getfem.MeshFem(mesh, 1)
        elements.set_fem(getfem.Fem("FEM_PK(3,2)"))
        points = getfem.MeshIm(mesh, getfem.Integ("IM_TETRAHEDRON(5)"))
        model = getfem.Model("real")
        model.add_fem_variable("u", elements)
        model.add_Laplacian_brick(points, "u")
        model.add_initialized_data("source", [1.0])
        model.add_source_term_brick(points, "u", "source")
        model.add_Dirichlet_condition_with_simplification("u", 1)
        model.assembly()
    with clock.phase("solving"):
        model.solve("lsolver", "cg/ildlt", "max_res", 1e-12)
    u = model.variable("u")
    energy = getfem.asm("generic", points, 0, "u", -1, model)
    return {"unknowns": elements.nbdof(), "energy": energy, "largest": np.max(u)}


if __name__ == "__main__":
    main(solve)
