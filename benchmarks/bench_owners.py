"""Parts of a graph without coordinates: ghosts and seconds of the search that `split` takes.

Beside it the partitioner of graphs and METIS's k-way method with the same room. A ghost is a vertex
of another part beside a vertex of a part. All take two seeds in turns: ghosts are means, seconds
those of the processor, the better of two.
"""

import time
from collections.abc import Callable

import numpy as np
import pymetis
from bench_graphs import ROOM, Graph, tuned
from common import report
from numpy.typing import NDArray

from meshprep.distribute.owners.search import part_of_element
from meshprep.mesh.incidence import Csr
from meshprep.partitioning import partition_graph

GRAPHS = ("Delaunay", "8 nearest in space", "roads", "grid", "dual of tetrahedra")
PARTS = (8, 64)
SEEDS = (0, 1)


def main() -> None:
    """Print and save the table."""
    graphs = tuned(1.0)
    rows = []
    for name in GRAPHS:
        graph = graphs[name]()
        rows += [{"graph": name, "parts": n, **compare(graph, n)} for n in PARTS]
    report("owners", rows)


def compare(graph: Graph, parts: int) -> dict[str, float]:
    """The ghosts and the seconds of all three, which take turns."""
    offset, neighbours = graph
    adjacency = pymetis.CSRAdjacency(offset, neighbours.astype(np.int64))

    def annealed(seed: int) -> NDArray[np.int32]:
        rows = Csr(offset, neighbours)
        return part_of_element(rows, parts, tolerance=1 + ROOM, seed=seed)

    def of_graphs(seed: int) -> NDArray[np.int32]:
        return partition_graph(offset, neighbours, parts=parts, room=ROOM, seed=seed)

    def metis(seed: int) -> NDArray[np.int32]:
        options = pymetis.Options(ufactor=round(1000 * ROOM), seed=seed)
        _, part = pymetis.part_graph(parts, adjacency, recursive=False, options=options)
        return np.asarray(part, np.int32)

    cutters: dict[str, Callable[[int], NDArray[np.int32]]] = {
        "annealed": annealed,
        "of graphs": of_graphs,
        "METIS": metis,
    }
    ghosts: dict[str, list[int]] = {name: [] for name in cutters}
    seconds: dict[str, list[float]] = {name: [] for name in cutters}
    # The first call of each loads its machine code.
    for cut in cutters.values():
        cut(0)
    for seed in SEEDS:
        for name, cut in cutters.items():
            begin = time.process_time()
            part = cut(seed)
            seconds[name].append(time.process_time() - begin)
            ghosts[name].append(ghosts_of(graph, part))
    figures: dict[str, float] = {}
    for name in cutters:
        figures[name] = float(np.mean(ghosts[name]))
        figures[f"{name}, s"] = round(min(seconds[name]), 4)
    return figures


def ghosts_of(graph: Graph, part: NDArray[np.int32]) -> int:
    """The pairs of a part and a vertex of another part beside it."""
    offset, neighbours = graph
    row = np.repeat(np.arange(offset.size - 1), np.diff(offset))
    cut = part[row] != part[neighbours]
    pairs = part[row[cut]].astype(np.int64) * (offset.size - 1) + neighbours[cut]
    return int(np.unique(pairs).size)


if __name__ == "__main__":
    main()
