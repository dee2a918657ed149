"""METIS k-way on the dual graph, or on the conflict graph of [S19], then a hard cap.

METIS minimises an edge cut, for which the number of shared points is only a proxy, and knows no
cap: it is asked for parts a little smaller than S, and :mod:`repair` enforces the cap. Elements
with a facet in common are few, and a cut through facets is close to the points on it; the conflict
graph counts a pair of elements once, whether they share a facet or a corner.
"""

import math
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError, import_package
from meshprep_runtime.types.maps import INDEX_LIMIT, read_only

from ..mesh.incidence import Csr, element_graph
from .blocks import improved
from .blocks_of import BlockProblem, Blocks, blocks_of
from .connectivity import distinct_rows
from .neighbourhood import facet_graph
from .options import Option
from .repair import repair

OPTIONS: Mapping[str, Option] = {
    "graph": Option(
        str,
        "dual",
        "neighbours: elements that share a facet (dual), or any point (conflict [S19])",
        choices=("dual", "conflict"),
    ),
    "tolerance": Option(
        float,
        1.01,
        "parts of S/tolerance elements are asked for (1.001 in [S19 eq. 1])",
        low=1.0,
        high=2.0,
    ),
    "objective": Option(
        str, "cut", "what METIS minimises: edge cut, or volume", choices=("cut", "volume")
    ),
    "recursive": Option(bool, False, "recursive bisection instead of k-way"),
    "iterations": Option(int, 10, "refinement passes on each level", low=1, high=1000),
    "cuts": Option(int, 1, "partitions tried, of which the best is kept", low=1, high=100),
    "improve": Option(bool, True, "move elements afterwards so that blocks load fewer points"),
}


def metis(problem: BlockProblem, options: Mapping[str, Any]) -> Blocks:
    """Blocks from METIS, none larger than S.

    Weights and coordinates are not used. ``notes`` of the blocks: parts asked for, elements moved
    by the repair, and what it split and merged. Raises MeshprepError when a conflict graph could
    have more than 2^31-1 pairs, and MissingPackageError where pymetis is not installed.

    The graph takes 8 bytes for each pair of neighbours, 4 more while it is widened to METIS's
    integers, and two to three times that inside METIS. A tetrahedron has 4 neighbours in the dual
    graph and 70 in the conflict graph.
    """
    package = pymetis("partitioner 'metis'", "blocks")
    n, target = problem.n, part_size(problem.block_size, options["tolerance"])
    n_parts = math.ceil(n / target)
    graph = _graph(problem, options["graph"]) if n_parts > 1 and target > 1 else None
    if graph is None or not graph.index.size:
        return blocks_of(np.arange(n) // problem.block_size, n_parts, {"asked": n_parts})
    asked = n_parts, target
    block = _part(package, problem, graph, asked, options)
    repaired = repair(problem.table, problem.n_points, block, n_parts, problem.block_size)
    block = repaired.block
    if options["improve"]:
        block = improved(problem, graph, block, repaired.n_blocks)
    return blocks_of(block, repaired.n_blocks, {"asked": n_parts, **repaired.notes})


def pymetis(asked: str, instead: str) -> Any:
    """The package pymetis, which has no wheels for Windows and Arm; or MissingPackageError."""
    return import_package(
        "pymetis",
        f"{asked} needs METIS: pip install pymetis, which takes a C++ compiler where there is no "
        f"wheel of it, or choose {instead}",
    )


def has_metis() -> bool:
    """Whether pymetis is installed."""
    return find_spec("pymetis") is not None


def part_size(block_size: int, tolerance: float) -> int:
    """S', the size METIS is asked for [S19 eq. 1]: the cap less the tolerance, at least 1."""
    return max(1, math.floor(block_size / tolerance))


def imbalance(block_size: int, target: int) -> int:
    """l', the excess over S' that METIS may leave, in thousandths [S19 eq. 2]; at least 1.

    METIS rounds down to whole elements, so a tenth of one is given on top.
    """
    return max(1, math.floor(1000 * ((block_size + 0.1) / target - 1)))


def _part(
    package: Any,
    problem: BlockProblem,
    graph: Csr,
    asked: tuple[int, int],
    options: Mapping[str, Any],
) -> NDArray[np.int32]:
    """The part of every element, for ``asked`` parts and their size."""
    n_parts, target = asked
    settings = package.Options(
        ufactor=imbalance(problem.block_size, target),
        seed=problem.seed,
        niter=options["iterations"],
        ncuts=options["cuts"],
        objtype=int(options["objective"] == "volume"),
    )
    wide = package.CSRAdjacency(graph.offset, graph.index.astype(np.int64))
    _, part = package.part_graph(n_parts, wide, recursive=options["recursive"], options=settings)
    return np.asarray(part).astype(np.int32)


def _graph(problem: BlockProblem, kind: str) -> Csr:
    """The neighbours of each element."""
    if kind == "dual":
        return facet_graph(read_only(distinct_rows(problem.table)), problem.n_points)
    # the conflict graph could be too large
    valence = np.bincount(problem.table.reshape(-1), minlength=problem.n_points)
    pairs = int((valence * (valence - 1)).sum())
    if pairs > INDEX_LIMIT:
        raise MeshprepError(
            f"partitioner 'metis': up to {pairs} pairs of elements share a point, past 2^31-1: "
            "set graph=dual, whose neighbours share a facet"
        )
    return element_graph(problem.table, problem.n_points)
