"""SfePy: Poisson's equation with quadratic elements, by conjugate gradients of SciPy."""

import numpy as np
from client_run import main
from sfepy.discrete import Equation, Equations, FieldVariable, Integral, Material, Problem
from sfepy.discrete.conditions import Conditions, EssentialBC
from sfepy.discrete.fem import FEDomain, Field, Mesh
from sfepy.solvers.ls import ScipyIterative
from sfepy.solvers.nls import Newton
from sfepy.terms import Term


def solve(mesh_file, own_order, clock):
    """Zero on the whole border."""
    with clock.phase("reading"):
        mesh = Mesh.from_file(str(mesh_file))
    with clock.phase("preparing"):
        domain = FEDomain("domain", mesh)
        omega = domain.create_region("Omega", "all")
        border = domain.create_region("Border", "vertices of surface", "facet")
        field = Field.from_args("field", np.float64, "scalar", omega, approx_order=2)
        u = FieldVariable("u", "unknown", field)
        v = FieldVariable("v", "test", field, primary_var_name="u")
        source = Material("source", value=1.0)
        points = Integral("points", order=2)
        laplace = Term.new("dw_laplace(v, u)", points, omega, v=v, u=u)
        load = Term.new("dw_volume_lvf(source.value, v)", points, omega, source=source, v=v)
        equations = Equations([Equation("poisson", laplace - load)])
        linear = ScipyIterative({"method": "cg", "i_max": 2000, "eps_r": 1e-10})
        newton = Newton({"i_max": 1, "eps_a": 1e-8}, lin_solver=linear)
        problem = Problem("poisson", equations=equations)
        problem.set_bcs(ebcs=Conditions([EssentialBC("fixed", border, {"u.all": 0.0})]))
        problem.set_solver(newton)
    with clock.phase("assembly and solving"):
        state = problem.solve(save_results=False, verbose=False)
    solution = state()
    energy = problem.evaluate("ev_integrate.2.Omega(u)", u=u, mode="eval")
    return {
        "unknowns": len(solution),
        "energy": float(np.real(energy)),
        "largest": np.max(solution),
    }


if __name__ == "__main__":
    main(solve)
