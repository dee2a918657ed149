"""The solvers of others that are measured and tested: how each is got, and what it solves."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
PYTHON_OF_DEBIAN = Path("/usr/bin/python3")
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NGS_NUM_THREADS": "1",
}


class Client(NamedTuple):
    """A solver of others.

    Attributes
    ----------
    name : str
        As its authors write it.
    driver : str
        The program ``run_DRIVER.py`` of this folder.
    install : str
        The line that gets it.
    case : str
        What it solves.
    shape : str
        The cells: ``"triangles"`` or ``"tetrahedra"``.
    cells : int
        About how many cells it is measured with.
    ending : str
        Of the file that it opens.
    own_order : str
        What it calls the renumbering of its own that a user can ask for, or nothing.
    command : str
        The command that must be there, or nothing for a Python package.
    package : str
        The Python package that must be there, or nothing for a program.
    of_system : bool
        Whether the package is one of Debian's Python and not of ``make clients``.
    """

    name: str
    driver: str
    install: str
    case: str
    shape: str = "tetrahedra"
    cells: int = 200_000
    ending: str = ".msh"
    own_order: str = ""
    command: str = ""
    package: str = ""
    of_system: bool = False


POISSON = "Poisson, quadratic elements, CG"

CLIENTS = (
    Client(
        name="scikit-fem",
        driver="skfem",
        install="pip install scikit-fem",
        case=POISSON,
        cells=100_000,
        package="skfem",
    ),
    Client(
        name="MFEM",
        driver="mfem",
        install="pip install mfem",
        case=POISSON,
        own_order="its Hilbert order",
        package="mfem",
    ),
    Client(
        name="NGSolve",
        driver="ngsolve",
        install="pip install ngsolve",
        case=POISSON,
        package="ngsolve",
    ),
    Client(
        name="FreeFem++",
        driver="freefem",
        install="apt-get install freefem++",
        case=POISSON,
        cells=100_000,
        command="FreeFem++-nw",
    ),
    Client(
        name="GetDP",
        driver="getdp",
        install="apt-get install getdp",
        case=POISSON,
        command="getdp",
    ),
    Client(
        name="GetFEM",
        driver="getfem",
        install="apt-get install python3-getfem++",
        case=POISSON,
        cells=50_000,
        own_order="optimize_structure",
        package="getfem",
        of_system=True,
    ),
    Client(
        name="OpenFOAM",
        driver="openfoam",
        install="apt-get install openfoam",
        case="icoFoam, 3 steps, PCG",
        own_order="renumberMesh",
        command="icoFoam",
    ),
    Client(
        name="Akantu",
        driver="akantu",
        install="pip install akantu",
        case="an elastic body, explicit steps",
        package="akantu",
    ),
    Client(
        name="ANUGA",
        driver="anuga",
        install="pip install anuga",
        case="shallow water, explicit steps",
        shape="triangles",
        cells=100_000,
        own_order="its rcm",
        package="anuga",
    ),
    Client(
        name="FiPy",
        driver="fipy",
        install="pip install fipy",
        case="diffusion, implicit steps, PCG",
        shape="triangles",
        cells=100_000,
        package="fipy",
    ),
    Client(
        name="code_saturne",
        driver="code_saturne",
        install="apt-get install code-saturne",
        case="laminar flow, 3 steps",
        own_order="its RCM, by user code",
        command="code_saturne",
    ),
    Client(
        name="dolfinx",
        driver="dolfinx",
        install="apt-get install python3-dolfinx",
        case=POISSON,
        cells=100_000,
        package="dolfinx",
        of_system=True,
    ),
    Client(
        name="CalculiX",
        driver="calculix",
        install="apt-get install calculix-ccx",
        case="linear elasticity, its direct solver",
        cells=50_000,
        ending=".inp",
        command="ccx",
    ),
    Client(
        name="SfePy",
        driver="sfepy",
        install="pip install sfepy",
        case="Poisson, quadratic elements, CG of SciPy",
        cells=100_000,
        package="sfepy",
    ),
)


class ClientError(Exception):
    """A driver failed; the text is what it wrote to stderr."""


def run_client(
    client: Client, python: Path, mesh_file: Path, own_order: bool = False
) -> dict[str, Any]:
    """What a driver prints on a mesh: its ``result`` and, of each phase, its ``seconds``.

    ``python`` is that of ``make clients``. Raises ClientError where the driver fails.
    """
    if client.of_system:
        python = PYTHON_OF_DEBIAN
    words = [str(python), str(HERE / f"run_{client.driver}.py"), str(mesh_file)]
    if own_order:
        words.append("--own-order")
    # FiPy starts `gmsh`, which pip puts beside this Python.
    path = os.pathsep.join([str(python.parent), os.environ.get("PATH", os.defpath)])
    environment = os.environ | ONE_THREAD | {"PATH": path}
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ClientError(done.stderr.strip()[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def make_gmsh_mesh(python: Path, shape: str, cells: int, path: Path) -> None:
    """Have Gmsh write a mesh of about ``cells`` cells; ``python`` is one that has it."""
    words = [str(python), str(HERE / "client_meshes.py"), shape, str(cells), str(path)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
