"""Akantu: explicit steps of an elastic body that is let go."""

import tempfile
from pathlib import Path

import akantu
import numpy as np
from client_run import main

STEPS = 100
MATERIAL = """material elastic [
  name = fluid
  rho = 1
  E = 1
  nu = 0.3
]
"""


def solve(mesh_file, own_order, clock):
    """The side at x = 0 is held, the rest begins with a speed."""
    with tempfile.TemporaryDirectory() as folder:
        material = Path(folder) / "material.dat"
        material.write_text(MATERIAL)
        akantu.parseInput(str(material))
    with clock.phase("reading"):
        mesh = akantu.Mesh(3)
        mesh.read(str(mesh_file))
    with clock.phase("preparing"):
        model = akantu.SolidMechanicsModel(mesh)
        model.initFull(akantu._explicit_lumped_mass)
        model.setTimeStep(0.5 * model.getStableTimeStep())
        for axis in (akantu._x, akantu._y, akantu._z):
            model.applyBC(akantu.FixedValue(0.0, axis), "left")
        model.getVelocity()[:, 1] = mesh.getNodes()[:, 0]
    with clock.phase("steps"):
        for _ in range(STEPS):
            model.solveStep()
    return {
        "kinetic energy": model.getEnergy("kinetic"),
        "potential energy": model.getEnergy("potential"),
        "farthest": np.max(model.getDisplacement()),
    }


if __name__ == "__main__":
    main(solve)
