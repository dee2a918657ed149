"""Parts of graphs beside METIS: edges cut and seconds, on graphs that anybody can generate.

    python benchmarks/bench_graphs.py [SCALE] [EFFORT]

``SCALE`` (1) multiplies the vertices of every graph. METIS is its k-way method with 3 % of room, by
pymetis. Both take three seeds in turns: cuts are means, seconds those of the processor, the best of
three. Constants were chosen on the graphs of the set `tuned`; those of the set `held out` were only
looked at afterwards. Ratios are ours over METIS's: below 1 we are better.
"""

import sys
import time
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pymetis
from common import report, table
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial import Delaunay, cKDTree

from meshprep.io.generate import generate
from meshprep.mesh.incidence import point_graph
from meshprep.partitioning import partition_graph

PARTS = (2, 4, 8, 16, 32, 64, 128, 256, 512)
ROOM = 0.03
SEEDS = (0, 1, 2)

Graph = tuple[NDArray[np.int64], NDArray[np.int32]]


def main(scale: float = 1.0, effort: str = "default") -> None:
    """Print and save the table of all graphs, and the means of both sets."""
    rows = []
    for name, kind in (("tuned", tuned(scale)), ("held out", held_out(scale))):
        for graph_name, make in kind.items():
            graph = make()
            for parts in PARTS:
                figures = compare(graph, parts, effort)
                rows.append({"set": name, "graph": graph_name, "parts": parts, **figures})
                print(rows[-1], file=sys.stderr)
    means = [mean_of(rows, name) for name in ("tuned", "held out")]
    suffix = "" if scale == 1 else f"-{scale:g}"
    report(f"graphs-{effort}{suffix}", rows, means=means)
    table(means)


def compare(graph: Graph, parts: int, effort: str) -> dict[str, float]:
    """The edges cut and the seconds of both, which take turns."""
    offset, neighbours = graph
    adjacency = pymetis.CSRAdjacency(offset, neighbours.astype(np.int64))
    cuts: dict[str, list[int]] = {"ours": [], "metis": []}
    seconds: dict[str, list[float]] = {"ours": [], "metis": []}
    excess = 0.0
    for seed in SEEDS:
        begin = time.process_time()
        part = partition_graph(
            offset, neighbours, parts=parts, room=ROOM, effort=effort, seed=seed
        )
        seconds["ours"].append(time.process_time() - begin)
        cuts["ours"].append(edges_cut(graph, part))
        largest = np.bincount(part, minlength=parts).max()
        excess = max(excess, largest - np.ceil((1 + ROOM) * part.size / parts))
        begin = time.process_time()
        _, other = pymetis.part_graph(
            parts,
            adjacency,
            recursive=False,
            options=pymetis.Options(ufactor=round(1000 * ROOM), seed=seed),
        )
        seconds["metis"].append(time.process_time() - begin)
        cuts["metis"].append(edges_cut(graph, np.asarray(other)))
    assert excess <= 0, "a part is over its cap"
    return {
        "vertices": offset.size - 1,
        "cut": float(np.mean(cuts["ours"])),
        "METIS cut": float(np.mean(cuts["metis"])),
        "cut ratio": round(float(np.mean(cuts["ours"]) / np.mean(cuts["metis"])), 4),
        "seconds": round(min(seconds["ours"]), 4),
        "time ratio": round(min(seconds["ours"]) / min(seconds["metis"]), 2),
    }


def edges_cut(graph: Graph, part: NDArray[np.integer]) -> int:
    """The number of edges between parts."""
    offset, neighbours = graph
    row = np.repeat(np.arange(offset.size - 1), np.diff(offset))
    return int(np.count_nonzero(part[row] != part[neighbours])) // 2


def mean_of(rows: list[dict[str, object]], name: str) -> dict[str, object]:
    """Geometric means of the ratios of a set, and its worst graph."""
    of_set = [row for row in rows if row["set"] == name]
    cut = np.array([row["cut ratio"] for row in of_set], float)
    seconds = np.array([row["time ratio"] for row in of_set], float)
    return {
        "set": name,
        "cut ratio": round(float(np.exp(np.log(cut).mean())), 4),
        "worst": float(cut.max()),
        "no worse": f"{int((cut <= 1).sum())} of {cut.size}",
        "time ratio": round(float(np.exp(np.log(seconds).mean())), 2),
    }


def tuned(scale: float) -> dict[str, Callable[[], Graph]]:
    """The graphs on which constants were chosen."""
    n = round(15_000 * scale)
    return {
        "Delaunay": lambda: delaunay(random(1).random((n, 2))),
        "geometric": lambda: geometric(random(2).random((n, 2))),
        "8 nearest in space": lambda: nearest(random(3).random((n, 3)), 8),
        "grid": lambda: grid(round(110 * scale**0.5), round(130 * scale**0.5)),
        "graded Delaunay": lambda: delaunay(graded(n, 4)),
        "dual of tetrahedra": lambda: dual_of_tetrahedra(n // 4, 5),
        "roads": lambda: roads(n, 6),
    }


def held_out(scale: float) -> dict[str, Callable[[], Graph]]:
    """Graphs that were not looked at before the constants were fixed."""
    n = round(20_000 * scale)
    side = round((25_000 * scale) ** (1 / 3))
    return {
        "Delaunay in space": lambda: delaunay(random(11).random((n // 2, 3))),
        "geometric in space": lambda: geometric(random(12).random((n, 3))),
        "6 nearest on a sphere": lambda: nearest(sphere(n, 13), 6),
        "grid in space": lambda: grid(side, side, side),
        "long grid": lambda: grid(round(40 * scale**0.5), round(500 * scale**0.5)),
        "graded Delaunay 2": lambda: delaunay(graded(2 * n, 14)),
        "roads 2": lambda: roads(2 * n, 15),
        "nodes of triangles": lambda: nodes_of("delaunay2d", n),
        "nodes of tetrahedra": lambda: nodes_of("delaunay3d", 2 * n),
    }


def random(seed: int) -> np.random.Generator:
    """A generator of random numbers."""
    return np.random.default_rng(seed)


def graph_of_pairs(n: int, first: NDArray, second: NDArray) -> Graph:
    """The graph of pairs of vertices, which may repeat."""
    ones = np.ones(first.size, np.int8)
    matrix = coo_array((ones, (first, second)), (n, n)).tocsr()
    matrix = (matrix + matrix.T).tocsr()
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)


def delaunay(points: NDArray) -> Graph:
    """The edges of a Delaunay mesh."""
    cells = Delaunay(points).simplices
    first, second = np.triu_indices(cells.shape[1], 1)
    return graph_of_pairs(len(points), cells[:, first].ravel(), cells[:, second].ravel())


def geometric(points: NDArray) -> Graph:
    """Points that are near each other, as DIMACS made its random geometric graphs."""
    n, d = points.shape
    radius = (0.55**2 * np.log(n) / n) ** (1 / d)
    pairs = cKDTree(points).query_pairs(radius, output_type="ndarray")
    return graph_of_pairs(n, pairs[:, 0], pairs[:, 1])


def nearest(points: NDArray, count: int) -> Graph:
    """Each point with its nearest ones."""
    _, index = cKDTree(points).query(points, count + 1)
    rows = np.repeat(np.arange(len(points)), count)
    return graph_of_pairs(len(points), rows, index[:, 1:].ravel())


def grid(*shape: int) -> Graph:
    """A grid in any dimension."""
    index = np.arange(np.prod(shape)).reshape(shape)
    first = []
    second = []
    for axis, length in enumerate(shape):
        first.append(np.take(index, range(1, length), axis).ravel())
        second.append(np.take(index, range(length - 1), axis).ravel())
    return graph_of_pairs(index.size, np.concatenate(first), np.concatenate(second))


def graded(n: int, seed: int) -> NDArray:
    """Points of a disc, which are dense around a hole in its middle."""
    angle = 2 * np.pi * random(seed).random(n)
    radius = 0.05 + random(seed + 100).random(n) ** 3
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def sphere(n: int, seed: int) -> NDArray:
    """Points on a sphere."""
    points = random(seed).normal(size=(n, 3))
    return points / np.linalg.norm(points, axis=1)[:, None]


def dual_of_tetrahedra(n_points: int, seed: int) -> Graph:
    """Tetrahedra that share a face."""
    cells = np.sort(Delaunay(random(seed).random((n_points, 3))).simplices, axis=1)
    faces = np.concatenate([cells[:, corners] for corners in combinations(range(4), 3)])
    owner = np.tile(np.arange(len(cells)), 4)
    order = np.lexsort(faces.T)
    same = (faces[order[1:]] == faces[order[:-1]]).all(axis=1)
    return graph_of_pairs(len(cells), owner[order[:-1]][same], owner[order[1:]][same])


def roads(n: int, seed: int) -> Graph:
    """A random spanning tree of a Delaunay mesh and an eighth of its other edges."""
    offset, index = delaunay(random(seed).random((n, 2)))
    row = np.repeat(np.arange(n), np.diff(offset))
    first = row[row < index]
    second = index[row < index]
    length = random(seed + 100).random(first.size)
    tree = minimum_spanning_tree(coo_array((length, (first, second)), (n, n)).tocsr())
    tree = tree.tocoo()
    extra = random(seed + 200).random(first.size) < 1 / 8
    return graph_of_pairs(
        n, np.append(tree.row, first[extra]), np.append(tree.col, second[extra])
    )


def nodes_of(kind: str, cells: int) -> Graph:
    """Nodes of a generated mesh that share a cell."""
    mesh = generate(kind, cells=cells)
    graph = point_graph(mesh.map("cells->nodes").table, mesh.sets["nodes"].size)
    return graph.offset, graph.index


if __name__ == "__main__":
    main(*(float(word) for word in sys.argv[1:2]), *sys.argv[2:3])
