"""Cases that OpenFOAM itself makes, checks and continues, where it is installed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from foam_files import STYLES, boxes, put, write_everything, write_field, write_mesh

from meshprep.io.source import MeshSource
from meshprep.loops.options import Options
from meshprep.pipeline.check_file import check
from meshprep.pipeline.workflow import Job, run

pytestmark = pytest.mark.skipif(
    shutil.which("rhoCentralFoam") is None, reason="OpenFOAM is not installed"
)
ETC = (
    {"WM_PROJECT_DIR": "/usr/share/openfoam"}
    if Path("/usr/share/openfoam").is_dir()
    else {}
)
STEPS = 10

SYSTEM = {
    "controlDict": """application rhoCentralFoam; startFrom latestTime; startTime 0;
stopAt endTime; endTime 0.01; deltaT 0.001; writeControl timeStep; writeInterval 10;
writeFormat FORMAT; writePrecision 17; writeCompression off; timePrecision 6; adjustTimeStep no;""",
    "fvSchemes": """fluxScheme Kurganov; ddtSchemes { default Euler; }
gradSchemes { default Gauss linear; } divSchemes { default none; div(tauMC) Gauss linear; }
laplacianSchemes { default Gauss linear corrected; } snGradSchemes { default corrected; }
interpolationSchemes { default linear; reconstruct(rho) vanLeer; reconstruct(U) vanLeerV;
reconstruct(T) vanLeer; }""",
    "fvSolution": """solvers { "(rho|rhoU|rhoE)" { solver diagonal; }
U { solver smoothSolver; smoother GaussSeidel; nSweeps 2; tolerance 1e-9; relTol 0; }
e { $U; tolerance 1e-10; } h { $e; } }""",
    "renumberMeshDict": """method manual; manualCoeffs { dataFile "cellMap"; } writeMaps false;""",
}
CONSTANT = {
    "thermophysicalProperties": """thermoType { type hePsiThermo; mixture pureMixture;
transport const; thermo hConst; equationOfState perfectGas; specie specie;
energy sensibleInternalEnergy; } mixture { specie { molWeight 11640.3; }
thermodynamics { Cp 2.5; Hf 0; } transport { mu 0.001; Pr 1; } }""",
    "turbulenceProperties": "simulationType laminar;",
}


def foam(case, *command):
    """What a program of OpenFOAM prints."""
    done = subprocess.run(
        [*command, "-case", str(case)],
        capture_output=True,
        text=True,
        env={**os.environ, **ETC},
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def dictionary(case, place, text):
    head = "FoamFile { version 2.0; format ascii; class dictionary; object x; }\n"
    put(case / place, (head + text + "\n").encode(), STYLES["text"])


def settings(case, style="text"):
    for name, text in SYSTEM.items():
        kind = "binary" if STYLES[style].binary else "ascii"
        dictionary(case, f"system/{name}", text.replace("FORMAT", kind))
    for name, text in CONSTANT.items():
        dictionary(case, f"constant/{name}", text)


def flow(case, style="text"):
    """A gas in a box with a jet, and what OpenFOAM needs to compute it."""
    write_mesh(boxes(12, 8, 6), case, STYLES[style])
    settings(case, style)
    fields = {
        "p": ("volScalarField", "[1 -1 -2 0 0 0 0]", "1", "zeroGradient"),
        "T": ("volScalarField", "[0 0 0 1 0 0 0]", "1", "fixedValue; value uniform 1.5"),
        "U": (
            "volVectorField",
            "[0 1 -1 0 0 0 0]",
            "(0 0 0)",
            "fixedValue; value uniform (2 1 0)",
        ),
    }
    for name, (kind, units, value, inlet) in fields.items():
        text = (
            f"FoamFile {{ version 2.0; format ascii; class {kind}; object {name}; }}\n"
            f"dimensions {units};\ninternalField uniform {value};\nboundaryField\n"
            f"{{ inlet {{ type {inlet}; }} walls {{ type zeroGradient; }} }}\n"
        )
        put(case / "0" / name, text.encode(), STYLES["text"])


def reordered(case, **more):
    new = case.with_name(f"{case.name}-new")
    plan = case.with_name(f"{case.name}.plan.h5")
    output = None if "cell_map" in more else new
    run(Job(MeshSource(case), output, plan, options=Options(target="cpu"), **more))
    return new, plan


def residuals(case):
    dictionary(
        case,
        "system/controlDict",
        (case / "system/controlDict")
        .read_text()
        .partition("}")[2]
        .replace("endTime 0.01", "endTime 0.02"),
    )
    found = re.findall(
        r"Solving for (\w+), Initial residual = ([^,]*)", foam(case, "rhoCentralFoam")
    )
    return [(name, float(value)) for name, value in found]


@pytest.mark.parametrize("style", ["text", "binary"])
def test_a_solver_goes_on_in_the_new_order(style, tmp_path):
    case = tmp_path / "case"
    flow(case, style)
    foam(case, "rhoCentralFoam")
    new, plan = reordered(case)
    assert "Mesh OK." in foam(new, "checkMesh")
    assert check(plan, MeshSource(new)).findings == []
    before, after = residuals(case), residuals(new)
    assert len(before) == len(after) >= 3 * STEPS
    for (name, one), (other, two) in zip(before, after, strict=True):
        assert name == other
        # what is left behind inner iterations depends on the order
        assert two == pytest.approx(one, rel=1e-5, abs=2e-7)
    first = [(one[1], two[1]) for one, two in zip(before[:6], after[:6], strict=True)]
    assert any(one > 1e-6 for one, _ in first)
    assert all(two == pytest.approx(one, rel=1e-9, abs=1e-13) for one, two in first)


@pytest.mark.parametrize("style", ["text", "binary", "packed text"])
def test_zones_and_sets_are_read_by_checkmesh(style, tmp_path):
    write_everything(boxes(5, 4, 3), tmp_path / "case", STYLES[style])
    settings(tmp_path / "case")
    new, _ = reordered(tmp_path / "case")
    said = [
        foam(case, "checkMesh", "-constant", "-allTopology")
        for case in (tmp_path / "case", new)
    ]
    assert all("Mesh OK." in text for text in said)
    sizes = [re.findall(r"(some\w*)\s+(\d+)\s+(\d+)", text) for text in said]
    assert sizes[0] == sizes[1] != []


def test_renumbermesh_takes_our_cell_map(tmp_path):
    case = tmp_path / "case"
    flow(case)
    _, plan = reordered(case, cell_map=case / "constant" / "cellMap")
    foam(case, "renumberMesh", "-overwrite", "-dict", "system/renumberMeshDict")
    assert check(plan, MeshSource(case)).findings == []


def test_a_decomposed_case_goes_on_and_is_put_together(tmp_path):
    case = tmp_path / "case"
    flow(case)
    dictionary(
        case,
        "system/decomposeParDict",
        "numberOfSubdomains 3; method simple; simpleCoeffs { n (3 1 1); delta 0.001; }",
    )
    foam(case, "rhoCentralFoam")
    inner = len(boxes(12, 8, 6).neighbour)
    calculated = "inlet { type calculated; value uniform 2; } walls { $inlet; }\n"
    flux = (
        "phi",
        "surfaceScalarField",
        [0.5 * f - 100 for f in range(inner)],
        STYLES["text"],
    )
    write_field(case, *flux, oriented=True, time="0.01", patches=calculated)
    foam(case, "decomposePar", "-latestTime")
    shutil.rmtree(case / "constant/polyMesh")
    new, plan = reordered(case)
    assert check(plan, MeshSource(new)).findings == []
    for folder in (case, new):
        write_mesh(boxes(12, 8, 6), folder, STYLES["text"])
        shutil.rmtree(folder / "0.01", ignore_errors=True)
        foam(folder, "reconstructPar", "-latestTime")
    for name in ("rho", "U", "phi"):
        assert (new / "0.01" / name).read_text() == (case / "0.01" / name).read_text()
