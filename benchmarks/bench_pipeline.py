"""The whole ``meshprep reorder`` on a million triangles and a million tets: time and memory.

Bar: peak memory under 300 MB plus 12 times the arrays of the mesh and its loop. The peer is METIS
k-way alone, on the element graph that it needs: what a user would otherwise run to get blocks.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from pathlib import Path

import pymetis
from common import mesh_file, program, report, run_process

from meshprep.incidence import element_graph
from meshprep.io import read
from meshprep.topology import derive

CASES = [
    ("delaunay2d", "edges->cells"),
    ("delaunay3d", "faces->cells"),
    ("delaunay3d", "cells->nodes"),
]
SIZE = 256
CUTS = ("contiguous", "metis", "blocks")


def main() -> None:
    """Print and save the table."""
    rows = []
    for kind, loop in CASES:
        path = mesh_file(kind, 1_000_000)
        arrays = _array_bytes(path, loop) / 2**20
        _, peer_mb, out = run_process(sys.executable, __file__, "metis", path, loop)
        peer = {"METIS alone s": float(out), "METIS alone MB": peer_mb}
        rows += [_case(path, loop, name, arrays) | peer for name in CUTS]
    report("pipeline", rows)


def _case(path: Path, loop: str, partition: str, arrays: float) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        words = [program(), "reorder", path, "-q", "--json", "--loop", loop]
        words += ["--partition", partition, "--block-size", SIZE]
        words += ["-o", Path(folder, "a.msh"), "--plan", Path(folder, "a.plan.h5")]
        seconds, peak, out = run_process(*words)
    (figures,) = json.loads(out)["metrics"]["loops"][loop].values()
    return {
        "mesh": path.stem,
        "loop": loop,
        "partition": partition,
        "seconds": seconds,
        "peak MB": peak,
        "bar MB": 300 + 12 * arrays,
        "reuse before": figures["before"]["reuse"],
        "reuse after": figures["after"]["reuse"],
    }


def _array_bytes(path: Path, loop: str) -> int:
    """Coordinates, cells and the loop's map."""
    mesh = derive(read(path), [loop])
    arrays = {id(m.table): m.table.nbytes for m in mesh.maps.values()}
    return sum(arrays.values()) + mesh.coordinates.nbytes


def metis(path: str, loop: str) -> None:
    """METIS k-way on the element graph, as the peer."""
    mesh = derive(read(Path(path)), [loop])
    table, n_to = mesh.map(loop).table, mesh.size(mesh.map(loop).to_set)
    start = time.perf_counter()
    graph = element_graph(table, n_to)
    parts = math.ceil(len(table) / SIZE)
    pymetis.part_graph(parts, pymetis.CSRAdjacency(graph.offset, graph.index), recursive=False)
    print(time.perf_counter() - start)


if __name__ == "__main__":
    metis(*sys.argv[2:]) if sys.argv[1:2] == ["metis"] else main()
