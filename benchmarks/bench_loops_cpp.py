"""Loops in C++: par_loop against the loop that its author would write, on the same plan.

Both are compiled into one program (bench_loops_cpp.cpp) by ``g++ -O3 -march=native``; calls take
turns. Bars: on one thread no loop below 0.95 of its author's, none with rows of 16 values or more
below 0.8, and 1.05 in the geometric mean; on two threads 1.8 in the geometric mean.

    python benchmarks/bench_loops_cpp.py [CELLS,CELLS] [THREADS,THREADS] [FLAGS]
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from common import EXAMPLES, mesh_of, report

from meshprep import Options, prepare
from meshprep.mesh import ElementSet, Mesh, SetMap

CELLS, THREADS, SECONDS = (20_000, 200_000), (1, 2), 0.3
FLAGS = "-O3 -march=native"
BARS = {
    "least": 0.95,
    "least of wide rows": 0.8,
    "mean, 1 thread": 1.05,
    "mean, 2 threads": 1.8,
}
E, N = "edges->cells", "cells->nodes"


def _dat(
    access: str, name: str, to: str | None = None, dim: int = 1, dtype: str = "f8"
) -> Any:
    return {
        "dat": name,
        "dim": dim,
        "dtype": dtype,
        "access": access,
        **({"map": to} if to else {}),
    }


def _loop(over: str, *args: Any) -> dict[str, Any]:
    return {"over": over, "args": list(args)}


def _upwind(dtype: str) -> dict[str, Any]:
    return _loop(
        "edges",
        _dat("read", "u", E, 1, dtype),
        _dat("inc", "r", E, 1, dtype),
        _dat("read", "g", None, 3, dtype),
    )


SMOOTH = (2, 4, 8, 16, 32, 64)
TRIANGLES = {
    "upwind": _upwind("f8"),
    "upwind4": _upwind("f4"),
    "degree": _loop("edges", _dat("inc", "n", E, 1, "i4")),
    **{
        f"smooth{d}": _loop("edges", _dat("read", "x", E, d), _dat("inc", "y", E, d))
        for d in SMOOTH
    },
    "euler": _loop(
        "edges", _dat("read", "q", E, 4), _dat("inc", "r", E, 4), _dat("read", "n", None, 2)
    ),
    "species": _loop("edges", _dat("inc", "y", E, 16), _dat("read", "w", None, 16)),
    "average": _loop("cells", _dat("read", "x", N), _dat("write", "y")),
    "lumped": _loop("cells", _dat("inc", "m", N), _dat("read", "x")),
    "axpy": _loop("cells", _dat("read", "x"), _dat("rw", "y")),
    "dot": _loop(
        "cells", _dat("read", "x"), _dat("read", "y"), {"global": "s", "access": "inc"}
    ),
    "step": _loop(
        "cells", _dat("read", "x"), _dat("read", "y"), {"global": "s", "access": "min"}
    ),
    "gradient": _loop(
        "edges", _dat("read", "u", E), _dat("read", "g", None, 3), _dat("inc", "r", E, 3)
    ),
    "matvec": _loop(
        "edges",
        _dat("read", "u", E, 4),
        _dat("read", "g", None, 16),
        _dat("inc", "r", E, 4),
    ),
    "push": _loop(
        "edges",
        {**_dat("read", "u", E), "index": [0]},
        {**_dat("inc", "r", E), "index": [1]},
    ),
    "two_maps": _loop(
        "edges",
        {**_dat("read", "p", "edges->nodes", 2), "index": [1, 0]},
        _dat("read", "u", E),
        _dat("inc", "r", E),
    ),
}
PULL = {
    f"pull{d}": _loop("cells", _dat("read", "x", N, d), _dat("inc", "y", N, d))
    for d in (1, 4, 16, 32, 64)
}
WIDE = ("smooth16", "smooth32", "smooth64", "species", "pull16", "pull32", "pull64")


def main(*given: str) -> None:
    """Print and save the table."""
    cells = [*map(int, given[0].split(","))] if given else CELLS
    threads = [*map(int, given[1].split(","))] if len(given) > 1 else THREADS
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        program = _program(Path(folder), " ".join(given[2:]) or FLAGS)
        cases = ((n, case) for n in cells for case in _cases(n))
        for size, (kind, mesh, loops) in cases:
            path = Path(folder) / f"{kind}{size}.plan.h5"
            prepare(mesh, loops, Options(target="cpu")).plan.save(path)
            for count in threads:
                rows += _rows(program, path, kind, count, loops)
    report("loops_cpp", rows, means=_means(rows), bars=BARS)


def _cases(n: int) -> Iterator[tuple[str, Mesh, Mapping[str, Any]]]:
    yield "triangles", mesh_of("delaunay2d", n), TRIANGLES
    yield "tetrahedra", mesh_of("delaunay3d", n), PULL
    yield "hexahedra", _hexahedra(n), PULL


def _hexahedra(cells: int) -> Mesh:
    n = round(cells ** (1 / 3))
    at = np.arange((n + 1) ** 3).reshape(n + 1, n + 1, n + 1)
    corners = [
        at[i : n + i, j : n + j, k : n + k] for i in (0, 1) for j in (0, 1) for k in (0, 1)
    ]
    table = np.stack([c.ravel() for c in corners], axis=1).astype(np.int32)
    sets = [ElementSet("cells", len(table)), ElementSet("nodes", at.size)]
    return Mesh(sets, [SetMap("cells->nodes", "cells", "nodes", table)])


def _program(folder: Path, flags: str) -> Path:
    program, main = folder / "loops", Path(__file__).with_suffix(".cpp")
    words = [
        "make",
        "-s",
        "-C",
        str(EXAMPLES / "cpp"),
        f"PROGRAM={program}",
        f"MAIN={main}",
    ]
    subprocess.run([*words, f"CXXFLAGS={flags}"], check=True)
    return program


def _rows(
    program: Path, plan: Path, kind: str, threads: int, loops: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    words = [str(program), str(plan), str(SECONDS), str(threads), kind, *loops]
    said = subprocess.check_output(
        words, text=True, env=os.environ | {"OMP_NUM_THREADS": str(threads)}
    )
    for line in said.splitlines():
        name, form, elements, *took = line.split()
        own, own_middle, ours, middle = map(float, took)
        yield {
            "loop": f"{name} {kind}",
            "elements": int(elements),
            "threads": threads,
            "form": form,
            "own, us": 1e6 * own,
            "par_loop, us": 1e6 * ours,
            "own / par_loop": own / ours,
            "of medians": own_middle / middle,
        }


def _means(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Geometric means, and the least ratio of one thread."""
    found = {}
    for threads in sorted({row["threads"] for row in rows}):
        some = [row for row in rows if row["threads"] == threads]
        for what in ("own / par_loop", "of medians"):
            ratios = [row[what] for row in some]
            wide = [row[what] for row in some if row["loop"].split()[0] in WIDE]
            light = [row[what] for row in some if row["loop"].split()[0] not in WIDE]
            name = f"{threads} threads, {what}"
            found[f"{name}, mean"] = float(np.exp(np.log(ratios).mean()))
            found[f"{name}, least"] = min(light, default=np.nan)
            found[f"{name}, least of wide rows"] = min(wide, default=np.nan)
    print(*(f"{k}: {v:.2f}" for k, v in found.items()), sep="\n")
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
