"""Airfoil's ``res_calc`` in Fortran beside the same formulas in C, over the ranges of one plan.

Both are compiled with the same flags, and take turns. Processor seconds of one thread, the least of
several calls. Bars: the same bits where the compilers fuse no products with sums
(``-ffp-contract=off``: else each chooses which), on any number of threads; in Fortran at most 1.1
times the time in C.

    python benchmarks/bench_fortran.py [CELLS]
"""

import ctypes
import functools
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import EXAMPLES, fastest, report

from airfoil import coordinates, prepared_airfoil

INCLUDE = EXAMPLES.parent / "include" / "meshprep"
FLAGS = ("-O3", "-march=native")
UNFUSED = "-ffp-contract=off"
LANGUAGES = ("c", "fortran")
TURNS = 21


def build(flags: tuple[str, ...], folder: Path) -> ctypes.CDLL:
    """A library with both loops."""
    here = Path(__file__).parent
    find_hdf5 = ["pkg-config", "--cflags", "--libs", "hdf5"]
    found = subprocess.run(find_hdf5, capture_output=True, text=True)
    hdf5 = shlex.split(found.stdout) or ["-lhdf5"]
    # A program may inline what it calls; a library may only if it says so.
    common = [*flags, "-fPIC", "-fno-semantic-interposition"]
    in_c = folder / "in_c.o"
    source = str(here / "airfoil_fluxes.c")
    words = ["gcc", *common, "-c", source, f"-I{INCLUDE}", "-o", str(in_c), *hdf5]
    subprocess.run(words, check=True)
    sources = [
        INCLUDE / "meshprep.f90",
        EXAMPLES / "fortran" / "airfoil.f90",
        here / "airfoil_fluxes.f90",
    ]
    library = folder / "fluxes.so"
    words = ["gfortran", *common, "-fopenmp", "-shared", f"-J{folder}"]
    words += [*map(str, sources), str(in_c), "-o", str(library), *hdf5]
    subprocess.run(words, check=True)
    return ctypes.CDLL(str(library))


class Fluxes:
    """Both loops on a plan, with a random state of the flow."""

    def __init__(self, flags: tuple[str, ...], plan_file: Path, x: np.ndarray, cells: int):
        with tempfile.TemporaryDirectory() as folder:
            self._library = build(flags, Path(folder))
        reason = ctypes.create_string_buffer(256)
        for language in LANGUAGES:
            start = getattr(self._library, f"start_in_{language}")
            if not start(os.fsencode(plan_file), reason):
                raise SystemExit(f"error: {reason.value.decode()}")
        random = np.random.default_rng(0)
        self.x = np.ascontiguousarray(x)
        self.q = random.random((cells, 4)) + np.array([1.0, 0.0, 0.0, 3.0])
        self.adt = random.random(cells)
        self.res = np.zeros((cells, 4))

    def run(self, language: str) -> np.ndarray:
        """Add the fluxes to the residuals, which are returned."""
        loop = getattr(self._library, f"fluxes_in_{language}")
        arrays = (self.x, self.q, self.adt, self.res)
        loop(*(ctypes.c_void_p(array.ctypes.data) for array in arrays))
        return self.res

    def result(self, language: str) -> np.ndarray:
        """The residuals of one call that begins with zeros."""
        self.res[:] = 0.0
        return self.run(language).copy()


def processor_seconds(work: Callable[[], Any]) -> float:
    """Seconds that this process computed."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main(cells: int = 720_000) -> None:
    """Print and save the table."""
    os.environ["OMP_NUM_THREADS"] = "1"
    prepared = prepared_airfoil(cells)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        plan_file = Path(folder) / "airfoil.plan.h5"
        prepared.plan.save(plan_file)
        for flags in (FLAGS, (*FLAGS, UNFUSED)):
            size = prepared.plan.sizes["cells"]
            fluxes = Fluxes(flags, plan_file, coordinates(prepared), size)
            in_c, in_fortran = (fluxes.result(language) for language in LANGUAGES)
            works: dict[str, Callable[[], Any]] = {
                language: functools.partial(fluxes.run, language) for language in LANGUAGES
            }
            seconds = fastest(works, TURNS, processor_seconds)
            rows.append(
                {
                    "flags": " ".join(flags),
                    "C, ms": 1e3 * seconds["c"],
                    "Fortran, ms": 1e3 * seconds["fortran"],
                    "Fortran over C": seconds["fortran"] / seconds["c"],
                    "same bits": in_c.tobytes() == in_fortran.tobytes(),
                    "largest difference": float(np.abs(in_c - in_fortran).max()),
                }
            )
    report("fortran", rows)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
