"""Mt-KaHyPar as a second opinion: a hypergraph partitioner of the highest quality, then a hard cap.

Elements are the vertices and points the nets, so that its connectivity objective (km1) is the
loads less the points in use: what :mod:`blocks` minimises too.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray

from meshprep_runtime.errors import import_package
from meshprep_runtime.maps import rows_of_entries

from ..mesh.incidence import transpose
from .blocks_of import Blocks, blocks_of
from .options import Option
from .problem import BlockProblem
from .repair import repair

PRESETS: Mapping[str, str] = {
    "deterministic": "DETERMINISTIC",
    "deterministic-quality": "DETERMINISTIC_QUALITY",
    "large-k": "LARGE_K",
    "default": "DEFAULT",
    "quality": "QUALITY",
    "highest-quality": "HIGHEST_QUALITY",
}

OPTIONS: Mapping[str, Option] = {
    "preset": Option(
        str,
        "deterministic",
        "Mt-KaHyPar's configuration; only the deterministic ones give the same blocks every time",
        choices=tuple(PRESETS),
    ),
    "tolerance": Option(
        float, 1.01, "as many blocks as blocks of S/tolerance elements need", low=1.0, high=2.0
    ),
}


def kahypar(problem: BlockProblem, options: Mapping[str, Any]) -> Blocks:
    """Blocks from Mt-KaHyPar with the connectivity objective, none larger than S.

    Coordinates are not used. ``notes`` of the blocks: parts asked for, elements moved by the
    repair, and what it split and merged. Its Python interface takes the nets as lists: about 40
    bytes for each incidence besides what Mt-KaHyPar needs itself. Raises MissingPackageError where
    the package ``mtkahypar`` is not installed.
    """
    package = _package()
    n, cap = problem.n, problem.block_size
    n_parts = math.ceil(n / max(1.0, cap / options["tolerance"]))
    nets, weights = _nets(problem) if n_parts > 1 and cap > 1 else ([], [])
    if not nets:
        n_parts = math.ceil(n / cap)
        return blocks_of(np.arange(n) // cap, n_parts, {"asked": n_parts})
    context = _context(package, PRESETS[options["preset"]])
    # The largest part allowed is (1 + epsilon) times the mean, rounded up.
    epsilon = (cap + 0.1) / math.ceil(n / n_parts) - 1
    context.set_partitioning_parameters(n_parts, epsilon, package.Objective.KM1)
    package.set_seed(problem.seed)
    graph = _start(package).create_hypergraph(context, n, len(nets), nets, [1] * n, weights)
    part = np.asarray(graph.partition(context).get_partition(), dtype=np.int32)
    repaired = repair(problem.table, problem.n_points, part, n_parts, cap)
    return blocks_of(repaired.block, repaired.n_blocks, {"asked": n_parts, **repaired.notes})


def _package() -> Any:
    """Mt-KaHyPar; raises MissingPackageError where it is not installed."""
    message = "partitioner 'kahypar' needs Mt-KaHyPar: pip install meshprep[kahypar]"
    return import_package("mtkahypar", message)


def _start(package: Any) -> Any:
    """Its pool of threads; made by the first call in a process, and the same one from then on."""
    return package.initialize(get_num_threads(), False)


def _context(package: Any, preset: str) -> Any:
    context = _start(package).context_from_preset(getattr(package.PresetType, preset))
    context.logging = False
    return context


def _nets(problem: BlockProblem) -> tuple[list[list[int]], list[int]]:
    """The distinct elements on every point that has two or more, and the point's weight."""
    touching = transpose(problem.table, problem.n_points)
    point = rows_of_entries(touching.offset)
    # Rows are ascending: an element that names a point twice stands beside itself.
    fresh = np.ones(point.size, dtype=bool)
    fresh[1:] = (np.diff(point) != 0) | (np.diff(touching.index) != 0)
    size = np.bincount(point[fresh], minlength=problem.n_points)
    pins = touching.index[fresh & (size[point] > 1)].tolist()
    chosen = np.flatnonzero(size > 1)
    end = np.cumsum(size[chosen])
    nets = [pins[a:b] for a, b in zip((end - size[chosen]).tolist(), end.tolist(), strict=True)]
    return nets, _weights(problem, chosen)


def _weights(problem: BlockProblem, points: NDArray[np.int64]) -> list[int]:
    """The bytes of the points in their largest common unit, or 1 for each."""
    if problem.point_bytes is None:
        return [1] * points.size
    weight = problem.point_bytes[points]
    unit = max(1, int(np.gcd.reduce(weight))) if weight.size else 1
    return (weight // unit).tolist()
