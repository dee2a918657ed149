"""FiPy: steps of diffusion, implicit, by conjugate gradients."""

import fipy
from client_run import main

STEPS = 5


def solve(mesh_file, own_order, clock):
    """One on the left, zero on the right."""
    with clock.phase("reading"):
        mesh = fipy.Gmsh2D(str(mesh_file))
    with clock.phase("steps"):
        u = fipy.CellVariable(mesh=mesh, value=0.0)
        x = mesh.faceCenters[0]
        u.constrain(1.0, where=mesh.exteriorFaces & (x < 1e-6))
        u.constrain(0.0, where=mesh.exteriorFaces & (x > 1 - 1e-6))
        equation = fipy.TransientTerm() == fipy.DiffusionTerm(coeff=1.0)
        solver = fipy.LinearPCGSolver(tolerance=1e-10, iterations=2000)
        for _ in range(STEPS):
            equation.solve(var=u, dt=0.01, solver=solver)
    volumes = mesh.cellVolumes
    values = u.value
    return {"mean": (volumes * values).sum(), "mean square": (volumes * values**2).sum()}


if __name__ == "__main__":
    main(solve)
