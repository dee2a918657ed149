"""What every benchmark shares: timing, the machine, a table, a JSON file."""

import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from meshprep.io import read, write
from meshprep.io.generate import generate
from meshprep.mesh import Mesh
from meshprep.pipeline.steps import about
from meshprep_cli.console import show_table
from meshprep_runtime.tuning.lookup import processor_name

RESULTS = Path(__file__).parent / "results"
CACHE = Path(__file__).parent.parent / "build" / "bench-meshes"
# Benchmarks import the examples once they have imported this.
EXAMPLES = Path(__file__).parent.parent / "examples"
sys.path.append(str(EXAMPLES))


def best(work: Callable[[], Any], times: int = 3) -> float:
    """Seconds of the fastest of several runs, after one that is not counted (compilation)."""
    work()
    return min(timed(work) for _ in range(times))


def timed(work: Callable[[], Any]) -> float:
    """Seconds of one run."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def fastest(
    works: dict[Any, Callable[[], Any]],
    turns: int,
    seconds: Callable[[Callable[[], Any]], float] = timed,
) -> dict[Any, float]:
    """Seconds of the fastest turn of each; all take turns, so that a busy machine slows all."""
    every = [{name: seconds(work) for name, work in works.items()} for _ in range(turns)]
    return {name: min(turn[name] for turn in every) for name in works}


def csr_product_bytes(rows: int, nonzeros: int, itemsize: int) -> int:
    """Bytes that a CSR product moves where every value of x is moved once [R14 4.6]."""
    return nonzeros * (itemsize + 4) + rows * (2 * itemsize + 4)


def mesh_of(kind: str, cells: int) -> Mesh:
    """A generated mesh, kept as a binary Gmsh file so that later benchmarks start at once."""
    return read(mesh_file(kind, cells=cells))


def mesh_file(kind: str, **options: object) -> Path:
    """The file of a generated mesh; Delaunay meshes are shuffled."""
    path = CACHE / f"{'-'.join([kind, *map(str, options.values())])}.msh"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        write(generate(kind, seed=1, **options), path)
    return path


def run_process(
    *words: object, env: dict[str, str] | None = None
) -> tuple[float, float, str]:
    """Run a command; returns seconds, its peak memory in MB and its standard output."""
    start = time.perf_counter()
    code = (
        "import resource, subprocess, sys;"
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE);"
        "sys.stdout.buffer.write(done.stdout);"
        "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss;"
        "print(); print(peak); sys.exit(done.returncode)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, *map(str, words)],
        stdout=subprocess.PIPE,
        env=os.environ | (env or {}),
        check=True,
    )
    seconds = time.perf_counter() - start
    out, _, peak = done.stdout.decode().rstrip("\n").rpartition("\n")
    return seconds, int(peak) / 1024, out


def run_on_ranks(ranks: int, *words: object) -> tuple[float, float, str]:
    """Run a Python program on ranks of one thread each, under MPI; see :func:`run_process`."""
    own = shutil.which("mpiexec.hydra", path=str(Path(sys.prefix) / "bin"))
    launcher = own or shutil.which("mpiexec")
    if launcher is None:
        sys.exit("error: no mpiexec: pip install 'meshprep-runtime[mpi]' mpich")
    libraries = (
        f"{Path(sys.prefix) / 'lib'}{os.pathsep}{os.environ.get('LD_LIBRARY_PATH', '')}"
    )
    environment = {"NUMBA_NUM_THREADS": "1", "LD_LIBRARY_PATH": libraries}
    environment |= {"MPI4PY_MPIABI": "mpich"} if own else {}
    return run_process(launcher, "-n", ranks, sys.executable, *words, env=environment)


def program() -> Path:
    """The ``meshprep`` program of this environment."""
    return Path(sys.executable).with_name("meshprep")


def c_library(name: str) -> ctypes.CDLL:
    """A C file of this folder, compiled for this machine: what loops are compared with."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "loops.so"
        words = ["gcc", "-O3", "-march=native", "-shared", "-fPIC", "-o", str(library)]
        subprocess.run([*words, str(Path(__file__).with_name(name)), "-lm"], check=True)
        # It stays loaded when its file is gone.
        return ctypes.CDLL(str(library))


def machine() -> dict[str, Any]:
    """Processor, cores, memory and versions."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": processor_name(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory, 1),
    } | about()


def report(name: str, rows: Sequence[dict[str, Any]], **more: Any) -> None:
    """Print the rows as a table and write them, with the machine, to ``results/NAME.json``.

    ``more`` goes into the file as it is.
    """
    table(rows)
    print(f"-> benchmarks/results/{save(name, rows, **more).name}")


def save(name: str, rows: Sequence[dict[str, Any]], **more: Any) -> Path:
    """Write the rows to ``results/NAME.json``; see :func:`report`."""
    RESULTS.mkdir(exist_ok=True)
    content = {"benchmark": name, "machine": machine(), **more, "rows": list(rows)}
    path = RESULTS / f"{name}.json"
    # A run that is ended meanwhile leaves the file as it was.
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(as_json(content))
    os.replace(unfinished, path)
    return path


def as_json(content: dict[str, Any]) -> str:
    """JSON with a line for each value, and for each row of a table."""
    lines = []
    for name, value in content.items():
        text = json.dumps(value, default=float)
        if isinstance(value, list) and value:
            rows = [f"\n  {json.dumps(row, default=float)}" for row in value]
            text = f"[{','.join(rows)}\n ]"
        lines.append(f" {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def table(rows: Sequence[dict[str, Any]]) -> None:
    """Print the rows; the keys of the first are the columns."""
    header = list(rows[0])
    show_table("", header, [[_text(row.get(key)) for key in header] for row in rows])


def peak_memory() -> float:
    """Peak memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool | str | int | np.integer):
        return str(value)
    return f"{value:.4g}"
