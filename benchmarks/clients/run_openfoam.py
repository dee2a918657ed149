"""OpenFOAM: steps of icoFoam, incompressible laminar flow driven by a moving wall."""

import re
import tempfile
from pathlib import Path

from client_run import call, main

# Where Debian has what belongs to it.
HOME = {"WM_PROJECT_DIR": "/usr/share/openfoam"}
HEADER = "FoamFile {{ version 2.0; format ascii; class {kind}; object {name}; }}\n"
FILES = {
    "system/controlDict": (
        "dictionary",
        """application icoFoam; startFrom startTime; startTime 0; stopAt endTime;
endTime 0.003; deltaT 0.001; writeControl none; writeInterval 1000; writePrecision 16;
functions { speed {
  type volFieldValue; libs (fieldFunctionObjects); fields (U); operation volIntegrate;
  regionType all; writeFields false; log true; writePrecision 12;
  executeControl onEnd; writeControl onEnd; } }
""",
    ),
    "system/fvSchemes": (
        "dictionary",
        """ddtSchemes { default Euler; } gradSchemes { default Gauss linear; }
divSchemes { default Gauss linear; } laplacianSchemes { default Gauss linear corrected; }
interpolationSchemes { default linear; } snGradSchemes { default corrected; }
""",
    ),
    "system/fvSolution": (
        "dictionary",
        """solvers {
  p { solver PCG; preconditioner DIC; tolerance 1e-13; relTol 0; }
  pFinal { $p; }
  U { solver PBiCGStab; preconditioner DILU; tolerance 1e-15; relTol 0; } }
PISO { nCorrectors 2; nNonOrthogonalCorrectors 0; pRefCell 0; pRefValue 0; }
""",
    ),
    "constant/transportProperties": ("dictionary", "nu nu [0 2 -1 0 0 0 0] 0.01;\n"),
    "0/U": (
        "volVectorField",
        """dimensions [0 1 -1 0 0 0 0]; internalField uniform (0 0 0);
boundaryField {
  right { type fixedValue; value uniform (0 1 0); }
  "left|walls" { type noSlip; } }
""",
    ),
    "0/p": (
        "volScalarField",
        """dimensions [0 2 -2 0 0 0 0]; internalField uniform 0;
boundaryField { ".*" { type zeroGradient; } }
""",
    ),
}


def write_case(folder: Path) -> None:
    """All that OpenFOAM wants besides the mesh."""
    for name, (kind, text) in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(HEADER.format(kind=kind, name=path.name) + text)


def solve(mesh_file, own_order, clock):
    """The wall at x = 1 moves."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_case(folder)
        with clock.phase("reading"):
            call("gmshToFoam", mesh_file, inside=folder, **HOME)
            if own_order:
                call("renumberMesh", "-overwrite", inside=folder, **HOME)
        with clock.phase("icoFoam"):
            printed = call("icoFoam", inside=folder, **HOME)
    found = re.findall(r"volIntegrate\(\w*\) of U = \(([^)]*)\)", printed)
    momentum = [float(value) for value in found[-1].split()]
    return {"momentum in y": momentum[1], "in x": momentum[0], "in z": momentum[2]}


if __name__ == "__main__":
    main(solve)
