"""Start-up: help, and how long a newcomer's first ``meshprep reorder`` takes, from nothing.

Every run is a process of its own, with a folder for machine code that is empty at first. The first
run compiles in a process a core; the same run with one process and no such folder tells what the
compiler alone takes. First calls of ``meshprep.order`` and of loops (`first_calls.py`) are in
processes of their own, too. The wheel is what ``make wheel`` builds, installed in an environment
that finds everything else where this one does.
"""

import os
import resource
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import first_calls
from common import best, mesh_file, program, report, run_process

from meshprep.io.generate import generate
from meshprep.pipeline.steps import prepare

ROOT = Path(__file__).parents[1]
CELLS = 200_000
WARM_RUNS = 3
# What `python -m meshprep_cli.main` does, and the seconds of processor in which numba compiled.
COMPILING = """
import sys, time
from meshprep_cli.main import main
from meshprep_runtime._numba.compiling import watch_compilation
begun, spent = [], []
watch_compilation(
    lambda dispatcher: begun.append(time.process_time()),
    lambda: spent.append(time.process_time() - begun.pop()),
)
main(sys.argv[1:])
print(sum(spent))
"""
# The seconds of processor of a first `meshprep.order`.
ORDER = """
import time
import numpy as np
from scipy.spatial import Delaunay
import meshprep
triangles = Delaunay(np.random.default_rng(1).random((3000, 2))).simplices
start = time.process_time()
meshprep.order(triangles)
print(time.process_time() - start)
"""


@dataclass(frozen=True)
class Run:
    """One run of a command: seconds of wall clock and of processor, and kernels compiled."""

    wall: float
    processor: float
    compiled: int


def main() -> None:
    """Print and save the table."""
    python = sys.executable
    numpy = best(lambda: run_process(python, "-c", "import numpy"), 7)
    shown = best(lambda: run_process(program(), "--help"), 7)
    imported = best(lambda: run_process(python, "-c", "import meshprep_runtime"), 7)
    rows = [
        _row("python -c 'import numpy'", numpy),
        _row("meshprep --help", shown, 0.4),
        _row("import meshprep_runtime", imported, 0.3),
    ]
    mesh = mesh_file("delaunay2d", cells=CELLS)
    with tempfile.TemporaryDirectory() as folder:
        rows += _from_the_clone(mesh, Path(folder) / "clone")
        rows += _first_calls(Path(folder))
        rows += _from_a_wheel(mesh, Path(folder) / "wheel")
    report("start", rows, cells=CELLS, load_average=os.getloadavg())


def _from_the_clone(mesh: Path, folder: Path) -> list[dict[str, Any]]:
    folder.mkdir()
    alone = {"MESHPREP_CACHE_DIR": "", "NUMBA_NUM_THREADS": "1"}
    words = ("reorder", mesh, "-q", "--force", *_outputs(folder))
    _, _, told = run_process(sys.executable, "-c", COMPILING, *words, env=alone)
    command = (sys.executable, "-m", "meshprep_cli.main")
    first, warm = _first_and_warm(command, mesh, folder)
    return [
        _row("compiling, processor, in one process", float(told.split()[-1]), 60),
        _row("first reorder, processor of all processes", first.processor, 25),
        _row("first reorder", first.wall, 20),
        _row("warm reorder, processor", warm.processor),
        _row("warm reorder", warm.wall),
        _row("kernels compiled in a warm reorder", warm.compiled, 0),
    ]


def _first_calls(folder: Path) -> list[dict[str, Any]]:
    """Seconds of processor of first calls from Python, each with an empty folder."""
    plan = folder / "loops.plan.h5"
    prepare(generate("delaunay2d", cells=20_000, seed=1), first_calls.LOOPS).plan.save(plan)
    script = Path(first_calls.__file__)
    calls = {
        "first meshprep.order, processor": (("-c", ORDER), 5),
        "first call of a loop of ten lines, processor": ((script, plan, "flux"), 1.5),
        "first call of a loop of 37 parameters": ((script, plan, "exchange"), 4),
    }
    rows = []
    for number, (what, (words, bar)) in enumerate(calls.items()):
        empty = {"MESHPREP_CACHE_DIR": str(folder / f"call{number}")}
        _, _, told = run_process(sys.executable, *words, env=empty)
        rows.append(_row(what, float(told.split()[0]), bar))
    return rows


def _from_a_wheel(mesh: Path, folder: Path) -> list[dict[str, Any]]:
    python = _installed(folder)
    # without the folder that the benchmark runs in, which may be the clone
    first, warm = _first_and_warm((python, "-P", "-m", "meshprep_cli.main"), mesh, folder)
    return [
        _row("first reorder from a wheel", first.wall),
        _row("warm reorder from a wheel", warm.wall),
        _row("first / warm, from a wheel", first.wall / warm.wall, 1.5),
        _row("kernels compiled from a wheel", first.compiled, 0),
    ]


def _first_and_warm(
    command: tuple[object, ...], mesh: Path, folder: Path
) -> tuple[Run, Run]:
    """The first run, and the fastest of some more."""
    words = (*command, "reorder", mesh, "-q", "--force", *_outputs(folder))
    first = _run(words, folder)
    return first, min(
        (_run(words, folder) for _ in range(WARM_RUNS)), key=lambda run: run.wall
    )


def _run(words: tuple[object, ...], folder: Path) -> Run:
    cache = folder / "cache"
    before, files = _children(), set(cache.rglob("*.nbc"))
    wall, _, _ = run_process(*words, env=_environment(folder))
    spent, new = _children() - before, set(cache.rglob("*.nbc")) - files
    # what came with a wheel is unpacked there
    shipped = {
        name for a in folder.rglob("shipped/*.zip") for name in ZipFile(a).namelist()
    }
    made = [f for f in new if f.relative_to(f.parents[2]).as_posix() not in shipped]
    return Run(wall, spent, len(made))


def _environment(folder: Path) -> Mapping[str, str]:
    """An installed wheel must not see the clone."""
    path = "" if (folder / "environment").exists() else os.environ.get("PYTHONPATH", "")
    return {"MESHPREP_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": path}


def _installed(folder: Path) -> Path:
    """The Python of an environment with the wheels that ``make wheel`` builds."""
    wheels = folder / "wheels"
    given = [f"DIST={wheels}", f"BUILD={folder}/build", f"VENV={sys.prefix}", "TASKS="]
    as_it_is = ["-o", f"{sys.prefix}/.meshprep-installed"]
    words = ["make", "-C", ROOT, "wheel", *given, *as_it_is]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    venv.create(folder / "environment", symlinks=True)
    python = folder / "environment" / "bin" / "python"
    packages = Path(
        sysconfig.get_path("purelib", vars={"base": str(folder / "environment")})
    )
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-deps",
    ]
    subprocess.run([*pip, *wheels.glob("*.whl")], check=True)
    return python


def _outputs(folder: Path) -> tuple[object, ...]:
    return ("-o", folder / "a.msh", "--plan", folder / "a.plan.h5")


def _children() -> float:
    """Seconds of processor of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _row(what: str, value: float, bar: float | None = None) -> dict[str, Any]:
    met = None if bar is None else "met" if value <= bar else "missed"
    return {"what": what, "seconds or number": value, "bar": bar, "": met}


if __name__ == "__main__":
    main()
