"""The solvers of others that are measured and tested: how each is got, and what it solves."""

from typing import NamedTuple


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
        own_order="its rcm",
        package="anuga",
    ),
    Client(
        name="FiPy",
        driver="fipy",
        install="pip install fipy",
        case="diffusion, implicit steps, PCG",
        shape="triangles",
        package="fipy",
    ),
)
