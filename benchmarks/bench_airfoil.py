"""Airfoil whole from the plan, beside the same five loops in C; its residuals beside OP2's.

The C program is compiled by ``gcc -O3 -march=native`` and runs on one thread over the mesh as it is
generated. Airfoil in C++ (``examples/cpp``) runs the plan on all threads in a process of its own.
Iterations of all take turns in pieces, so that a slow spell of the machine hits all of them.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from common import EXAMPLES, c_library, report

from airfoil import LOOPS, Airfoil, coordinates, prepared_airfoil
from kernels.airfoil import FREE_STREAM
from meshprep.io.generate import generate
from meshprep.loops.request_maps import plan_request_maps
from meshprep.loops.requests import read_requests
from meshprep.pipeline.steps import Prepared

# What OP2's own program prints on 720,000 cells.
OP2 = {
    100: "5.02186e-04",
    200: "3.41746e-04",
    300: "2.63430e-04",
    400: "2.16288e-04",
    500: "1.84659e-04",
    600: "1.60866e-04",
    700: "1.42253e-04",
    800: "1.27627e-04",
    900: "1.15810e-04",
    1000: "1.06011e-04",
}
PIECE = 20


class InC:
    """The same program in C, with the steps and seconds of :class:`Airfoil`."""

    def __init__(self, cells: int) -> None:
        mesh = generate("airfoil", cells=cells)
        full, _ = plan_request_maps(
            mesh, read_requests(EXAMPLES / "kernels" / "airfoil.toml")
        )
        self.n = n = full.sets["cells"].size
        x = coordinates(Prepared(mesh, None))  # type: ignore[arg-type]
        bound = next(t for t in full.tags if t.set == "boundary_edges").first_ids()
        q, qold = np.tile(FREE_STREAM, (n, 1)), np.zeros((n, 4))
        adt, res, self.rms = np.zeros(n), np.zeros((n, 4)), np.zeros(1)
        table = {name: m.table for name, m in full.maps.items()}
        given = {
            "save_soln": ("cells", q, qold),
            "adt_calc": ("cells", table["cells->nodes"], x, q, adt),
            "res_calc": (
                "edges",
                table["edges->nodes"],
                table["edges->cells"],
                x,
                q,
                adt,
                res,
            ),
            "bres_calc": (
                "boundary_edges",
                table["boundary_edges->nodes"],
                table["boundary_edges->cells"],
                *(x, q, adt, res, bound.astype(np.int64), FREE_STREAM),
            ),
            "update": ("cells", qold, q, res, adt, self.rms),
        }
        library = c_library("airfoil.c")
        self.calls = {
            name: (getattr(library, name), full.sets[over].size, *arrays)
            for name, (over, *arrays) in given.items()
        }
        self.seconds = dict.fromkeys(LOOPS, 0.0)

    def steps(self, iterations: int) -> Iterator[float]:
        """As :meth:`Airfoil.steps`."""
        for _ in range(iterations):
            self._run("save_soln")
            for _ in range(2):
                self.rms[0] = 0.0
                for name in LOOPS[1:]:
                    self._run(name)
            yield float(np.sqrt(self.rms[0] / self.n))

    def _run(self, name: str) -> None:
        function, n, *arrays = self.calls[name]
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
        start = time.perf_counter()
        function(ctypes.c_long(n), *pointers)
        self.seconds[name] += time.perf_counter() - start

    def reset(self) -> None:
        """As :meth:`Airfoil.reset`."""
        self.seconds = dict.fromkeys(LOOPS, 0.0)


class InCpp:
    """Airfoil in C++ on the plan, with the steps and seconds of :class:`Airfoil`."""

    def __init__(self, prepared: Prepared, threads: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        program, prefix = (
            str(Path(self.folder.name) / name) for name in ("turns", "airfoil")
        )
        sys.path.append(str(EXAMPLES / "cpp"))
        from prepare import write

        write(prepared, prefix)
        main = Path(__file__).with_name("airfoil_turns.cpp")
        words = [
            "make",
            "-s",
            "-C",
            str(EXAMPLES / "cpp"),
            f"PROGRAM={program}",
            f"MAIN={main}",
        ]
        subprocess.run(words, check=True)
        self.process = subprocess.Popen(
            [program, prefix],
            env=os.environ | {"OMP_NUM_THREADS": str(threads)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._total = self._before = dict.fromkeys(LOOPS, 0.0)

    def steps(self, iterations: int) -> Iterator[float]:
        """As :meth:`Airfoil.steps`."""
        turn, answer = self.process.stdin, self.process.stdout
        for _ in range(iterations):
            turn.write("\n")
            turn.flush()
            rms, *words = answer.readline().split()
            self._total = dict(zip(words[::2], map(float, words[1::2]), strict=True))
            yield float(rms)

    @property
    def seconds(self) -> dict[str, float]:
        """As :attr:`Airfoil.seconds`."""
        return {name: self._total[name] - self._before[name] for name in LOOPS}

    def reset(self) -> None:
        """As :meth:`Airfoil.reset`."""
        self._before = self._total


def main(cells: int = 720_000, iterations: int = 1000) -> None:
    """Print and save the tables."""
    start = time.perf_counter()
    prepared = prepared_airfoil(cells)
    seconds = time.perf_counter() - start
    threads = numba.config.NUMBA_NUM_THREADS
    programs = {
        "C, one thread": (InC(cells), 1),
        "one thread": (Airfoil(prepared), 1),
        f"{threads} threads": (Airfoil(prepared), threads),
        f"C++, {threads} threads": (InCpp(prepared, threads), threads),
    }
    residuals = _run(programs, iterations)
    _print_times(programs, iterations, seconds)
    report("airfoil-rms", _residual_rows(residuals, cells))


def _run(programs: dict[str, Any], iterations: int) -> dict[str, list[float]]:
    """Every program, some iterations each in turn; the residual of every iteration."""
    residuals: dict[str, list[float]] = {name: [] for name in programs}
    steps = {name: program.steps(iterations) for name, (program, _) in programs.items()}
    for done in range(0, iterations, PIECE):
        for name, (program, threads) in programs.items():
            numba.set_num_threads(threads)
            many = min(PIECE, iterations - done)
            residuals[name] += [next(steps[name]) for _ in range(many)]
            if done == 0:
                # The first piece compiles.
                program.reset()
    return residuals


def _print_times(programs: dict[str, Any], iterations: int, preparation: float) -> None:
    counted = iterations - min(PIECE, iterations) or iterations
    rows = []
    for name in (*LOOPS, "all"):
        each = {
            label: sum(p.seconds.values()) if name == "all" else p.seconds[name]
            for label, (p, _) in programs.items()
        }
        calls = counted * (1 if name in ("save_soln", "all") else 2)
        row: dict[str, Any] = {"loop": name}
        row |= {f"{label}, ms": 1e3 * s / calls for label, s in each.items()}
        reference, *ours = each.values()
        python, cpp = ours[-2:]
        row |= {
            f"{label} against C": reference / s
            for label, s in zip([*each][1:], ours, strict=True)
        }
        row["C++ over Python"] = cpp / python
        rows.append(row)
    rows[-1]["preparation, s"] = preparation
    report("airfoil", [{"preparation, s": None} | row for row in rows])


def _residual_rows(residuals: dict[str, list[float]], cells: int) -> list[dict[str, Any]]:
    many = len(next(iter(residuals.values())))
    at = [i for i in OP2 if i <= many] or [many]
    return [
        {
            "iteration": i,
            "OP2": OP2[i] if cells == 720_000 and i in OP2 else None,
            **{name: f"{values[i - 1]:.5e}" for name, values in residuals.items()},
        }
        for i in at
    ]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
