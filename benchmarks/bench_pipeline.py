"""The whole ``meshprep reorder`` on a million triangles and a million tets: time and memory.

Bar: peak memory under 300 MB plus 12 times the arrays of the mesh and its loop. The peer is METIS
k-way alone, with the dual graph that it needs: what a user would otherwise run to get blocks.
"""

import json
import math
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pymetis
from common import mesh_file, program, report, run_process

from meshprep.io import read
from meshprep.partitioning.neighbourhood import facet_graph
from meshprep.topology import derive

CASES = [
    ("delaunay2d", "edges->cells"),
    ("delaunay3d", "faces->cells"),
    ("delaunay3d", "cells->nodes"),
]
SEVERAL = ("quad->nodes", "triangle->nodes", "edges->cells")
SIZE = 256
CUTS = ("contiguous", "metis", "blocks")


def main() -> None:
    """Print and save the table."""
    rows = []
    for kind, loop in CASES:
        path = mesh_file(kind, cells=1_000_000)
        arrays = _array_bytes(path, loop) / 2**20
        _, peer_mb, out = run_process(sys.executable, __file__, "metis", path, loop)
        peer = {"METIS alone s": float(out), "METIS alone MB": peer_mb}
        rows += [_case(path, [loop], name, arrays) | peer for name in CUTS]
    path = mesh_file("mixed2d", nx=816, ny=816, shuffle=True)
    arrays = sum(_array_bytes(path, loop) for loop in SEVERAL) / 2**20
    rows.append(_case(path, SEVERAL, "blocks", arrays))
    report("pipeline", rows)


def _case(
    path: Path, loops: Sequence[str], partition: str, arrays: float
) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        words = [program(), "reorder", path, "-q", "--json"]
        words += [word for loop in loops for word in ("--loop", loop)]
        words += ["--partition", partition, "--block-size", SIZE]
        words += ["-o", Path(folder, "a.msh"), "--plan", Path(folder, "a.plan.h5")]
        seconds, peak, out = run_process(*words)
    metrics = json.loads(out)["metrics"]
    (figures,) = metrics["loops"][loops[0]].values()
    return {
        "mesh": path.stem,
        "loops": ", ".join(loops),
        "partition": partition,
        "seconds": seconds,
        "proof s": metrics["seconds"]["proof"],
        "proof %": 100 * metrics["seconds"]["proof"] / seconds,
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
    """METIS k-way on the dual graph, as the peer."""
    mesh = derive(read(Path(path)), [loop])
    table, n_to = mesh.map(loop).table, mesh.size(mesh.map(loop).to_set)
    start = time.perf_counter()
    graph = facet_graph(table, n_to)
    parts = math.ceil(len(table) / SIZE)
    pymetis.part_graph(
        parts, pymetis.CSRAdjacency(graph.offset, graph.index), recursive=False
    )
    print(time.perf_counter() - start)


if __name__ == "__main__":
    metis(*sys.argv[2:]) if sys.argv[1:2] == ["metis"] else main()
