"""Splitting: halos beside METIS k-way on the dual graph, seconds, memory, another K from the file.

    python benchmarks/bench_split.py [CELLS] [LARGEST]

Tetrahedra, hexahedra and triangles of about ``CELLS`` cells (1,000,000) into 8, 64 and 512 parts by
each cut: ghosts (foreign cells behind a cut face, counted once a part) over owned cells, node
copies over nodes, the largest part over the mean, and both ghosts and copies over those of METIS
(bar 1.05, never above 1.10). Then the whole command on 1/10 of ``LARGEST`` (10,000,000) and on
``LARGEST`` tetrahedra into 1,000 parts, each in a process of its own: seconds a cell (linear within
15 %), the peak of memory (bar 250 bytes a cell and 400 MB), and another K from the file (bar 20 %).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from common import mesh_file, mesh_of, report, run_process, timed

from meshprep.distribute.cuts import CUTS, CutProblem, owners_of_leading_set
from meshprep.distribute.subject import subject_of_mesh
from meshprep.io import read
from meshprep.loops import simple_request
from meshprep.mesh import Mesh
from meshprep.pipeline.steps import plan_request_maps

PARTS, MANY, MORE = (8, 64, 512), 1000, 900
PEER = "metis"


def main(cells: int = 1_000_000, largest: int = 10_000_000) -> None:
    """Print and save both tables."""
    side = round(cells ** (1 / 3))
    cases = {
        "tetrahedra": mesh_of("delaunay3d", cells),
        "hexahedra": read(mesh_file("box", nx=side, ny=side, nz=side, type="hexahedron")),
        "triangles": mesh_of("delaunay2d", cells),
    }
    rows = [row for name, mesh in cases.items() for row in _halos(name, mesh)]
    report("split", rows)
    report("split-command", [_command(n) for n in (largest // 10, largest)])


def _halos(name: str, mesh: Mesh) -> list[dict[str, Any]]:
    facets = "edges->cells" if name == "triangles" else "faces->cells"
    full, specs = plan_request_maps(mesh, [simple_request(facets), simple_request("cells->nodes")])
    subject = subject_of_mesh(mesh, full, specs)
    nodes = full.map("cells->nodes")
    rows: list[dict[str, Any]] = []
    for parts in PARTS:
        peer: tuple[float, float] | None = None
        for cut in sorted(CUTS, key=lambda c: c != PEER):
            owner = np.empty(0, np.int32)

            def make(cut: str = cut, parts: int = parts) -> None:
                nonlocal owner
                problem = CutProblem(subject, np.full(parts, 1 / parts))
                owner = owners_of_leading_set(problem, cut)

            seconds = timed(make)
            found = _ghosts(owner, subject.maps[facets].table), _copies(owner, nodes.table)
            peer = peer or found
            size = np.bincount(owner, minlength=parts)
            rows.append(
                {
                    "mesh": name,
                    "parts": parts,
                    "cut": cut,
                    "ghosts %": 100 * found[0],
                    "copies %": 100 * found[1],
                    "ghosts / METIS": found[0] / peer[0],
                    "copies / METIS": found[1] / peer[1],
                    "largest / mean": size.max() / size.mean(),
                    "s": seconds,
                }
            )
    return rows


def _ghosts(owner: np.ndarray, faces: np.ndarray) -> float:
    """Pairs of a part and a foreign cell behind one of its faces, over cells."""
    low, high = faces.T.reshape(-1), faces[:, ::-1].T.reshape(-1)
    cut = owner[low] != owner[high]
    keys = owner[low][cut].astype(np.int64) * owner.size + high[cut]
    return np.unique(keys).size / owner.size


def _copies(owner: np.ndarray, cells: np.ndarray) -> float:
    """Pairs of a part and a node of its cells beyond one a node, over nodes."""
    n = int(cells.max()) + 1
    keys = np.repeat(owner.astype(np.int64), cells.shape[1]) * n + cells.reshape(-1)
    used = np.unique(cells).size
    return (np.unique(keys).size - used) / used


def _command(cells: int) -> dict[str, Any]:
    """The program on a mesh of tetrahedra, and once more on what it made."""
    path = mesh_file("delaunay3d", cells=cells)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "a.parts.h5")
        start = [sys.executable, "-m", "meshprep_cli.main", "split"]
        first, peak, _ = run_process(
            *start, path, "-q", "--parts", MANY, "--loop", "faces->cells", "-o", output
        )
        more, _, _ = run_process(*start, output, "-q", "--parts", MORE)
        size = output.stat().st_size
    return {
        "cells": cells,
        "parts": MANY,
        "s": first,
        "us a cell": 1e6 * first / cells,
        "peak MB": peak,
        "bar MB": 250e-6 * cells + 400,
        "another K / first": more / first,
        "file MB": size / 1e6,
    }


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
