"""Small blocks, k = n/256, by everybody's partitioner: a table, and a picture of time and quality.

    python benchmarks/bench_small_blocks.py [CELLS]

Six meshes of about ``CELLS`` (20,000) cells, in a locality order, are cut into blocks of at most
256 cells. METIS, SCOTCH, KaHIP and KaMinPar get the graph of cells that share a facet, Mt-KaHyPar
the points as nets; all are asked for 3 % more parts than needed and told that no part may have more
than 256. Quality is what a loop feels: the points that all blocks load. All run on one thread, and
seconds are those of the processor, the graph included, the least of two runs. The picture is
``docs/research/small-blocks.png``. What is not installed (extra ``bench``) is left out.
"""

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from common import mesh_of, report
from mesher import mesher_file
from numba import set_num_threads
from numpy.typing import NDArray
from partition_cases import Start, shuffled
from partition_peers import (
    Cut,
    Peer,
    asked,
    kahypar_blocks,
    kaminpar_blocks,
    metis_parts,
    timed_graph,
)

from meshprep.io import read
from meshprep.io.generate import generate
from meshprep.kernels.parallel import keep_freed
from meshprep.mesh import Mesh
from meshprep.mesh.incidence import Csr
from meshprep.partitioning import BlockProblem, blocks_of, loads, partition

mpl.use("Agg")
import matplotlib.pyplot as plt

PICTURE = Path(__file__).parents[1] / "docs" / "research" / "small-blocks.png"
PACKAGES = ("scotchpy", "kahip", "kaminpar", "mtkahypar")
BLOCK_SIZE = 256
# Parts more than n/S that peers are asked for.
SPARE = 1.03
# A run that took longer is not repeated, in seconds.
SHORT = 0.3
# Of each family of partitioners: a colour and a marker.
LOOKS = {
    "blocks": ("#00796b", "o"),
    "METIS": ("#6d4c41", "s"),
    "SCOTCH": ("#c62828", "D"),
    "KaHIP": ("#ef6c00", "^"),
    "KaMinPar": ("#1565c0", "v"),
    "Mt-KaHyPar": ("#6a1b9a", "P"),
}
# Of points whose blocks are over the cap.
TRANSPARENT = 0.25

Row = dict[str, Any]


def main(cells: int = 20_000) -> None:
    """Print and save the table, and draw the picture."""
    keep_freed()
    set_num_threads(1)
    absent = [name for name in PACKAGES if not find_spec(name)]
    if absent:
        print(f"left out, not installed: {', '.join(absent)}", file=sys.stderr)
    # Compile everything before anything is timed.
    small = _start(generate("delaunay2d", cells=2000)).problem
    for peer in _ours(small):
        peer.cut()
    timed_graph(small, 1)
    rows = [row for name, make in MESHES.items() for row in _rows(name, make(cells))]
    report("small_blocks", rows, absent=absent)
    draw(rows, PICTURE)
    print(f"-> docs/research/{PICTURE.name}")


def _hexahedra(cells: int) -> Mesh:
    side = round(cells ** (1 / 3))
    return generate("box", nx=side, ny=side, nz=side, type="hexahedron")


MESHES: dict[str, Callable[[int], Mesh]] = {
    "triangles around an airfoil": lambda n: read(mesher_file("airfoil-triangles", n)),
    "triangles on a surface": lambda n: read(mesher_file("skin-triangles", n)),
    "Delaunay triangles": partial(mesh_of, "delaunay2d"),
    "tetrahedra around holes": lambda n: read(mesher_file("holes-tetrahedra", n)),
    "Delaunay tetrahedra": partial(mesh_of, "delaunay3d"),
    "hexahedra of a box": _hexahedra,
}


def _start(mesh: Mesh) -> Start:
    return shuffled("", mesh, "cells->nodes", BLOCK_SIZE).ordered("hilbert")


def _rows(name: str, mesh: Mesh) -> Iterator[Row]:
    """The rows of a mesh: those of others beside METIS, then ours."""
    problem = _start(mesh).problem
    graph, graph_seconds = timed_graph(problem, 1, time.process_time)
    metis = None
    for peer in (*_peers(problem, graph, graph_seconds), *_ours(problem)):
        blocks, seconds = peer.cut()
        if seconds < SHORT:
            seconds = min(seconds, peer.cut()[1])
        block = blocks.block_of_element
        sizes = np.bincount(block)
        rows = np.ascontiguousarray(problem.table[blocks.new_to_old])
        loaded = loads(rows, problem.n_points, blocks.block_offset)
        metis = metis or loaded
        row = {
            "mesh": name,
            "cells": problem.n,
            "by": peer.label,
            "blocks": blocks.n_blocks,
            "largest": int(sizes.max()),
            "over the cap": int((sizes > BLOCK_SIZE).sum()),
            "reuse": round(rows.size / loaded, 3),
            "loads %": round(100 * (loaded / metis - 1), 2),
            "facets cut": _cut(graph, block),
            "seconds": round(seconds, 3),
        }
        print(row, file=sys.stderr)
        yield row


def _cut(graph: Csr, block: NDArray[np.int32]) -> int:
    """Facets between two blocks."""
    first = np.repeat(np.arange(graph.n_rows), np.diff(graph.offset))
    return int(np.count_nonzero(block[first] != block[graph.index])) // 2


def _ours(problem: BlockProblem) -> Iterator[Peer]:
    for effort in ("fast", "default", "strong"):
        yield Peer(f"blocks {effort}", 1, partial(_our_blocks, problem, effort))


def _our_blocks(problem: BlockProblem, effort: str) -> Cut:
    begin = time.process_time()
    blocks = partition(problem, "blocks", {"effort": effort})
    return blocks, time.process_time() - begin


def _peers(problem: BlockProblem, graph: Csr, graph_seconds: float) -> Iterator[Peer]:
    """Those that are installed, METIS first."""
    given = problem, graph, graph_seconds
    yield Peer("METIS", 1, partial(_metis, *given))
    if find_spec("scotchpy"):
        for strategy in ("DEFAULT", "QUALITY"):
            label = f"SCOTCH {strategy.lower()}"
            yield Peer(label, 1, partial(_scotch, *given, strategy))
    if find_spec("kahip"):
        for mode in ("FAST", "ECO"):
            yield Peer(f"KaHIP {mode.lower()}", 1, partial(_kahip, *given, mode))
    clock = time.process_time
    if find_spec("kaminpar"):
        for preset in ("default", "largek"):
            cut = partial(
                kaminpar_blocks,
                problem,
                preset,
                threads=1,
                graph=graph,
                graph_seconds=graph_seconds,
                spare=SPARE,
                clock=clock,
            )
            yield Peer(f"KaMinPar {preset}", 1, cut)
    if find_spec("mtkahypar"):
        for preset in ("DEFAULT", "DETERMINISTIC", "LARGE_K"):
            cut = partial(
                kahypar_blocks,
                problem,
                objective="km1",
                threads=1,
                preset=preset,
                spare=SPARE,
                clock=clock,
            )
            yield Peer(f"Mt-KaHyPar {preset.lower()}", 1, cut)


def _room(problem: BlockProblem, n_parts: int) -> float:
    """The most that a part may have, over the mean."""
    return n_parts * problem.block_size / problem.n


def _metis(problem: BlockProblem, graph: Csr, graph_seconds: float) -> Cut:
    begin = time.process_time()
    n_parts = asked(problem, SPARE)
    part = metis_parts(graph, n_parts, _room(problem, n_parts))
    seconds = time.process_time() - begin
    return blocks_of(part, n_parts), graph_seconds + seconds


def _scotch(problem: BlockProblem, graph: Csr, graph_seconds: float, strategy: str) -> Cut:
    import scotchpy

    n_parts = asked(problem, SPARE)
    begin = time.process_time()
    known = scotchpy.Graph()
    known.build(verttab=graph.offset, edgetab=graph.index.astype(np.int64))
    wanted = scotchpy.Strat()
    flag = getattr(scotchpy, f"STRAT{strategy}")
    wanted.graph_map_build(flag, n_parts, _room(problem, n_parts) - 1)
    part = np.empty(problem.n, np.int64)
    known.part(n_parts, wanted, part)
    seconds = time.process_time() - begin
    return blocks_of(part, n_parts), graph_seconds + seconds


def _kahip(problem: BlockProblem, graph: Csr, graph_seconds: float, mode: str) -> Cut:
    import kahip

    # Its Python interface takes lists, which do not count.
    n_parts = asked(problem, SPARE)
    lists = graph.offset.tolist(), [1] * graph.index.size, graph.index.tolist()
    weights = [1] * problem.n
    room = _room(problem, n_parts) - 1
    quiet = True
    seed = 0
    begin = time.process_time()
    _, part = kahip.kaffpa(
        weights, *lists, n_parts, room, quiet, seed, getattr(kahip, mode)
    )
    seconds = time.process_time() - begin
    return blocks_of(np.array(part), n_parts), graph_seconds + seconds


def draw(rows: list[Row], path: Path) -> None:
    """Draw a panel for each mesh: seconds to the right, points saved upwards."""
    names = list(dict.fromkeys(row["mesh"] for row in rows))
    figure, axes = plt.subplots(2, 3, figsize=(12, 7.2), layout="constrained")
    for axis, name in zip(axes.flat, names, strict=False):
        own = [row for row in rows if row["mesh"] == name]
        for row in own:
            family, _, variant = row["by"].partition(" ")
            colour, marker = LOOKS[family]
            alpha = TRANSPARENT if row["over the cap"] else 1.0
            where = row["seconds"], -row["loads %"]
            axis.scatter(*where, s=60, color=colour, marker=marker, alpha=alpha, lw=0)
            axis.annotate(
                variant,
                where,
                xytext=(5, 4),
                textcoords="offset points",
                fontsize=7,
                alpha=alpha,
            )
        axis.axhline(0, color="grey", lw=0.6, zorder=0)
        axis.set_xscale("log")
        axis.margins(0.18, 0.12)
        axis.set_title(f"{name}, {own[0]['cells']:,} cells", fontsize=10)
        axis.grid(alpha=0.25)
    for axis in axes[:, 0]:
        axis.set_ylabel("fewer loads than METIS, %")
    for axis in axes[1]:
        axis.set_xlabel("seconds of one core")
    present = {row["by"].partition(" ")[0] for row in rows}
    handles = [
        mpl.lines.Line2D([], [], color=colour, marker=marker, ls="", label=family)
        for family, (colour, marker) in LOOKS.items()
        if family in present
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
