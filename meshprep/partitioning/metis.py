"""METIS k-way on the dual graph, or on the conflict graph of [S19], then a hard cap.

METIS minimises an edge cut, for which the number of shared points is only a proxy, and
knows no cap: it is asked for parts a little smaller than S, and :mod:`repair` enforces the
cap. Elements with a facet in common are few, and a cut through facets is close to the
points on it; the conflict graph counts a pair of elements once, whether they share a facet
or a corner.
"""

import math
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

from meshprep_runtime.errors import MeshprepError, import_package
from meshprep_runtime.types.maps import INDEX_LIMIT, Float64s, Int32s, read_only

from ..mesh.incidence import Csr, element_graph
from .blocks_of import BlockProblem, Blocks, blocks_of
from .connectivity import distinct_rows
from .multilevel import improved
from .neighbourhood import facet_graph
from .options import Option
from .repair import repair

OPTIONS: Mapping[str, Option] = {
    "graph": Option(
        type=str,
        default="dual",
        help=(
            "neighbours: elements that share a facet (dual), or any point (conflict [S19])"
        ),
        choices=("dual", "conflict"),
    ),
    "tolerance": Option(
        type=float,
        default=1.01,
        help="parts of S/tolerance elements are asked for (1.001 in [S19 eq. 1])",
        low=1.0,
        high=2.0,
    ),
    "improve": Option(
        bool, True, "move elements afterwards so that blocks load fewer points"
    ),
}


def metis(problem: BlockProblem, options: Mapping[str, Any]) -> Blocks:
    """Blocks from METIS, none larger than S.

    Weights and coordinates are not used. ``notes`` of the blocks: parts asked for, elements
    moved by the repair, and what it split and merged. Raises MeshprepError when a conflict
    graph could have more than 2^31-1 pairs, and MissingPackageError where pymetis is not
    installed.

    The graph takes 8 bytes for each pair of neighbours, 4 more while it is widened to
    METIS's integers, and two to three times that inside METIS. A tetrahedron has 4
    neighbours in the dual graph and 70 in the conflict graph.
    """
    # Ask for parts of S' elements [S19 eq. 1]; without neighbours, runs will do.
    require_metis("partitioner 'metis'", "blocks")
    n = problem.n
    target = part_size(problem.block_size, options["tolerance"])
    n_parts = math.ceil(n / target)
    if n_parts > 1 and target > 1:
        graph = _neighbour_graph(problem, options["graph"])
    else:
        graph = None
    if graph is None or not graph.index.size:
        return blocks_of(np.arange(n) // problem.block_size, n_parts, {"asked": n_parts})
    overfill = imbalance(problem.block_size, target)
    block = kway(graph=graph, shares=np.ones(n_parts), overfill=overfill, seed=problem.seed)
    # Bring the parts within the cap, and lower their loads.
    block, n_blocks, notes = repair(
        table=problem.table,
        n_points=problem.n_points,
        block_of_element=block,
        n_asked=n_parts,
        block_size=problem.block_size,
    )
    if options["improve"]:
        block = improved(problem=problem, graph=graph, block=block, n_blocks=n_blocks)
    return blocks_of(block, n_blocks, {"asked": n_parts, **notes})


def require_metis(asked: str, instead: str) -> None:
    """Raise MissingPackageError where the package pymetis is not installed.

    Windows and Arm have no wheels of it. ``asked`` names what needs it, ``instead`` what
    works without.
    """
    import_package(
        "pymetis",
        f"{asked} needs METIS: pip install pymetis, which takes a C++ compiler where there "
        f"is no wheel of it, or choose {instead}",
    )


def has_metis() -> bool:
    """Whether pymetis is installed."""
    return find_spec("pymetis") is not None


def part_size(block_size: int, tolerance: float) -> int:
    """S', the part size for METIS [S19 eq. 1]: the cap less the tolerance, at least 1."""
    return max(1, math.floor(block_size / tolerance))


def imbalance(block_size: int, target: int) -> int:
    """l', the excess over S' that METIS may leave, in thousandths [S19 eq. 2]; at least 1.

    METIS rounds down to whole elements, so a tenth of one is given on top.
    """
    return max(1, math.floor(1000 * ((block_size + 0.1) / target - 1)))


def kway(
    graph: Csr,
    shares: Float64s,
    overfill: int,
    seed: int,
    weights: Int32s | None = None,
) -> Int32s:
    """The part of each element of a graph; parts may exceed their shares by thousandths.

    ``weights`` of the elements are whole numbers; without them all weigh the same. Parts
    may be empty. O(neighbours), and 8 bytes a neighbour twice.
    """
    import pymetis

    wide = pymetis.CSRAdjacency(graph.offset, graph.index.astype(np.int64))
    even = bool((shares == shares[0]).all())
    _, part = pymetis.part_graph(
        shares.size,
        wide,
        vweights=None if weights is None else weights.astype(np.int64),
        tpwgts=None if even else (shares / shares.sum()).tolist(),
        recursive=False,
        options=pymetis.Options(ufactor=overfill, seed=seed),
    )
    return np.asarray(part, dtype=np.int32)


def _neighbour_graph(problem: BlockProblem, kind: str) -> Csr:
    """The neighbours of each element, by facets or by points."""
    if kind == "dual":
        return facet_graph(read_only(distinct_rows(problem.table)), problem.n_points)
    # the conflict graph could be too large
    valence = np.bincount(problem.table.reshape(-1), minlength=problem.n_points)
    pairs = int((valence * (valence - 1)).sum())
    if pairs > INDEX_LIMIT:
        raise MeshprepError(
            f"partitioner 'metis': up to {pairs} pairs of elements share a point, past "
            "2^31-1: set graph=dual, whose neighbours share a facet"
        )
    return element_graph(problem.table, problem.n_points)
