"""GetDP: Poisson's equation with quadratic elements, by conjugate gradients."""

import re
import tempfile
from pathlib import Path

from client_run import call, main

PROBLEM = """
Group { Inside = Region[4]; Border = Region[{1, 2, 3}]; Mesh = Region[{Inside, Border}]; }
Jacobian { { Name Volume; Case { { Region Mesh; Jacobian Vol; } } } }
Integration { { Name Points; Case { { Type Gauss; Case {
  { GeoElement Tetrahedron; NumberOfPoints 4; } } } } } }
Constraint { { Name Zero; Case { { Region Border; Value 0; } } } }
FunctionSpace { { Name H1; Type Form0;
  BasisFunction {
    { Name s; NameOfCoef a; Function BF_Node; Support Mesh; Entity NodesOf[Mesh]; }
    { Name t; NameOfCoef b; Function BF_Node_2E; Support Mesh; Entity EdgesOf[Mesh]; } }
  Constraint {
    { NameOfCoef a; EntityType NodesOf; NameOfConstraint Zero; }
    { NameOfCoef b; EntityType EdgesOf; NameOfConstraint Zero; } } } }
Formulation { { Name Poisson; Type FemEquation;
  Quantity { { Name u; Type Local; NameOfSpace H1; } }
  Equation {
    Galerkin { [Dof{d u}, {d u}]; In Inside; Jacobian Volume; Integration Points; }
    Galerkin { [-1, {u}]; In Inside; Jacobian Volume; Integration Points; } } } }
Resolution { { Name Poisson; System { { Name A; NameOfFormulation Poisson; } }
  Operation {
    Evaluate[$start = GetCpuTime[]]; Generate[A]; Evaluate[$middle = GetCpuTime[]]; Solve[A];
    Print[{$middle - $start}, Format "assembly: %g"];
    Print[{GetCpuTime[] - $middle}, Format "solving: %g"];
    SaveSolution[A]; } } }
PostProcessing { { Name Energy; NameOfFormulation Poisson; Quantity { { Name e;
  Value { Integral { [{u}]; In Inside; Jacobian Volume; Integration Points; } } } } } }
PostOperation { { Name Energy; NameOfPostProcessing Energy;
  Operation { Print[e[Inside], OnGlobal, Format Table, File "energy.txt"]; } } }
"""
ITERATIVE = ["-ksp_type", "cg", "-pc_type", "jacobi", "-ksp_rtol", "1e-10"]


def solve(mesh_file, own_order, clock):
    """Zero on the whole border."""
    with tempfile.TemporaryDirectory() as folder:
        problem = Path(folder) / "poisson.pro"
        problem.write_text(PROBLEM)
        words = [problem, "-msh", mesh_file, "-solve", "Poisson", "-pos", "Energy"]
        printed = call("getdp", *words, *ITERATIVE, "-v", 5, inside=folder)
        energy = (Path(folder) / "energy.txt").read_text().split()[-1]
    for phase in ("assembly", "solving"):
        clock.seconds[phase] = float(re.findall(rf"{phase}: ([\d.]+)", printed)[-1])
    unknowns = re.findall(r"(\d+) Dofs", printed)[-1]
    return {"unknowns": int(unknowns), "energy": float(energy)}


if __name__ == "__main__":
    main(solve)
