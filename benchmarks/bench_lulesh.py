"""LULESH whole, a cycle of the blast: an unchanged mesh, LULESH's own way, and the plan.

    python benchmarks/bench_lulesh.py [CELLS_A_SIDE ...]

Hexahedra in random order, as their author would run them: one loop after the other, in the order of
the mesh, on one thread; the same in LULESH's own numbering, x fastest. Beside them the plan's order
in two ways: corner forces that are summed at the nodes, as LULESH has them for threads, in numba's
loops, and the loops of the plan. Cycles take turns; seconds are the least of them. All must give
the same gas.
"""

import sys
import time
from typing import Any

import lulesh_corners
import numba
import numpy as np
from common import mesh_file, report

from lulesh import Blast, box, scaled
from meshprep.io import read

SIDES = (45, 90)
CYCLES = 10
# Before the first cycle that counts: the blast has left its cell, all loops are compiled.
FIRST_CYCLES = 30
PHASES = ("nodal step", "elements", "time step")


def main(*sides: int) -> None:
    """Print and save the table."""
    rows = []
    for side in sides or SIDES:
        rows += _rows(side)
    report("lulesh", rows, cycles=CYCLES)


def _rows(side: int) -> list[dict[str, Any]]:
    """Phases of a cycle, and the loops where the plan has them."""
    unit = read(
        mesh_file("box", nx=side, ny=side, nz=side, type="hexahedron", shuffle=True)
    )
    mesh = scaled(unit)
    threads = numba.config.NUMBA_NUM_THREADS
    unchanged = {"keep_order": True, "strategy": "sequential"}
    blasts = {
        "as given": (Blast(mesh, **unchanged), 1),
        "x fastest": (Blast(box(side), **unchanged), 1),
        "corners": (lulesh_corners.Corners(mesh), 1),
        "plan": (Blast(mesh), 1),
        f"corners, {threads} threads": (lulesh_corners.Corners(mesh), threads),
        f"plan, {threads} threads": (Blast(mesh), threads),
    }
    seconds = _least_seconds(blasts)
    _check({name: blast for name, (blast, _) in blasts.items()})
    rows = []
    for part in [*PHASES, "cycle", *blasts["plan"][0].loops]:
        ms = {name: _milliseconds(seconds[name], part) for name in blasts}
        row: dict[str, Any] = {"cells a side": side, "part": part}
        row |= {f"{name}, ms": value for name, value in ms.items()}
        # Of LULESH's way only the phases are timed.
        for name, value in ms.items():
            if name != "as given" and value is not None:
                row[f"{name}, times"] = ms["as given"] / value
        rows.append(row)
    return rows


def _least_seconds(
    blasts: dict[str, tuple[Blast, int]],
) -> dict[str, dict[str, float]]:
    """The least seconds that a phase or a loop took in a cycle; all take turns."""
    least: dict[str, dict[str, float]] = {name: {} for name in blasts}
    for cycle in range(FIRST_CYCLES + CYCLES):
        for name, (blast, threads) in blasts.items():
            numba.set_num_threads(threads)
            took = _seconds_of_cycle(blast)
            if cycle < FIRST_CYCLES:
                continue
            for part, seconds in took.items():
                least[name][part] = min(least[name].get(part, np.inf), seconds)
    return least


def _seconds_of_cycle(blast: Blast) -> dict[str, float]:
    """Of a cycle, its phases, and its loops where the plan has them."""
    blast.program.reset()
    blast.choose_step()
    works = (blast.move_nodes, blast.update_elements, blast.constrain_step)
    took = {}
    for phase, work in zip(PHASES, works, strict=True):
        start = time.perf_counter()
        work()
        took[phase] = time.perf_counter() - start
    blast.cycles += 1
    took["cycle"] = sum(took.values())
    if not isinstance(blast, lulesh_corners.Corners):
        took |= {name: loop.times.seconds for name, loop in blast.loops.items()}
    return took


def _milliseconds(seconds: dict[str, float], part: str) -> float | None:
    return 1e3 * seconds[part] if part in seconds else None


def _check(blasts: dict[str, Blast]) -> None:
    """Energies by the places of the cells, whatever their numbers."""
    wanted = _sorted_energies(blasts["as given"])
    for name, blast in blasts.items():
        found = _sorted_energies(blast)
        if not np.allclose(found, wanted, rtol=0, atol=1e-10 * wanted.max()):
            sys.exit(f"error: {name}: the gas is another one")


def _sorted_energies(blast: Blast) -> np.ndarray:
    places = blast.known["x"][blast.full.map("cells->nodes").table].mean(axis=1)
    order = np.lexsort(np.round(places, 9).T)
    return blast.values("energy")[order].ravel()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
