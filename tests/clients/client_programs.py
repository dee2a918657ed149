"""Install the programs of others that work with meshprep; ``make clients`` runs it.

``python client_programs.py FOLDER`` makes an environment in FOLDER with those that PyPI has and
with meshprep itself, for the pages of ``docs/use``, and says which of the others are missing here
and how to get them.
"""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
# What a driver in ``drivers/`` imports.
PACKAGES = {
    # For the pages of docs/use; where it is installed PyVista finds grid.meshprep.
    "meshprep": ["-e", str(ROOT / "runtime"), "-e", str(ROOT)],
    "akantu": ["akantu"],
    "anuga": ["anuga"],
    "fipy": ["fipy"],
    "gmsh": ["gmsh"],
    "jax": ["jax"],
    "meshio": ["meshio"],
    "meshlane": ["meshlane"],
    "mfem": ["mfem"],
    "netcdf4": ["netCDF4"],
    "ngsolve": ["ngsolve"],
    "pyfr": ["pyfr", "mpich"],
    "pynastran": ["pyNastran"],
    "pyvista": ["pyvista"],
    "skfem": ["scikit-fem"],
    "warp": ["warp-lang"],
}
# From PyPI torch brings 4 GB of CUDA's libraries, so only where it is asked for.
LARGE = {"torch": ["torch", "torch-geometric"]}
# Built from its sources for minutes, so only where it is asked for.
COMPILED = {"sfepy": ["sfepy"]}
# Where Debian's code_saturne has its preprocessor, which is not in the path.
CODE_SATURNE = "/usr/lib/code_saturne"
# A command of each program that Debian has, and its package.
PROGRAMS = {
    "gmsh": "gmsh",
    "cs_preprocess": "code-saturne",
    "FreeFem++-nw": "freefem++",
    "gmshToFoam": "openfoam",
    "cgnscheck": "cgns-convert",
    "getdp": "getdp",
    "ccx": "calculix-ccx",
}
# A package of Debian's own Python, and Debian's package.
MODULES = {"dolfinx": "python3-dolfinx", "getfem": "python3-getfem++"}
PYTHON_OF_DEBIAN = "/usr/bin/python3"


def find(command: str) -> str | None:
    """Where a command is, or None."""
    return shutil.which(command) or shutil.which(command, path=CODE_SATURNE)


def debian_has(module: str) -> bool:
    """Whether Debian's own Python finds a package."""
    look = f"import importlib.util; assert importlib.util.find_spec({module!r})"
    if not Path(PYTHON_OF_DEBIAN).exists():
        return False
    words = [PYTHON_OF_DEBIAN, "-c", look]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def install(folder: Path, packages: dict[str, list[str]]) -> list[str]:
    """Those that could not be installed."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    everything = [name for names in packages.values() for name in names]
    # One call of pip finds versions that go together.
    if subprocess.run([*pip, "--no-compile", *everything], check=False).returncode == 0:
        return []
    failed = []
    for client, names in packages.items():
        if subprocess.run([*pip, "--no-compile", *names], check=False).returncode:
            failed.append(client)
    return failed


def main(folder: str, *more: str) -> None:
    """Install, and say what is missing."""
    wanted = PACKAGES
    if "--compiled" in more:
        wanted = wanted | COMPILED
    if "--large" in more:
        wanted = wanted | LARGE
    for client in install(Path(folder), wanted):
        print(f"{client}: PyPI has no version of it for this Python")
    for command, package in PROGRAMS.items():
        if find(command) is None:
            print(f"{command} is not here: apt-get install {package}")
    for module, package in MODULES.items():
        if not debian_has(module):
            print(f"{module} is not here: apt-get install {package}")


if __name__ == "__main__":
    main(*sys.argv[1:])
