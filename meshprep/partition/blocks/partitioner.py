"""Our own blocks: bisection, then annealed moves that count the loads [S19] asks to reduce.

[S19] ends by asking for a partitioner that suits blocks of a few hundred elements. This one
minimises the number of distinct points over all blocks, the connectivity of the hypergraph whose
nets are the points, and never builds a graph of elements.

1. Directions, temperature and centroid weight are tried on a sample of the mesh (:mod:`start`).
2. Recursive bisection into blocks of equal size, 1 % below the cap (:mod:`bisection`).
3. Phases of annealing (:mod:`search`) on groups of blocks, grouped another way each time.
4. Blocks are made connected (:mod:`reconnect`), and both caps proved (:mod:`caps`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...kernels import clock
from ..blocks_of import Blocks, blocks_of
from ..connectivity import distinct_rows
from ..options import Option
from ..problem import BlockProblem
from ..repair import repair
from .caps import room_for_bytes, split_for_bytes
from .components import count_components
from .search import EFFORTS, Search, loads_now
from .start import Geometry, block_count, choose_start

FOREVER = 1e9

OPTIONS: Mapping[str, Option] = {
    "effort": Option(str, "default", "how long to search", choices=tuple(EFFORTS)),
    "time_limit": Option(
        float, FOREVER, "seconds after which the best so far is taken", low=0.0, high=FOREVER
    ),
    "colour_weight": Option(
        float, 0.0, "price of one more thread colour in a block, in points", low=0.0, high=1e6
    ),
    "staged_bytes": Option(
        int, 0, "most bytes of points in a block; 0 for no cap", low=0, high=2**31 - 1
    ),
}


def blocks(problem: BlockProblem, options: Mapping[str, Any]) -> Blocks:
    """Blocks of at most S elements that load as few points as we can find.

    Parameters
    ----------
    problem : BlockProblem
        Without coordinates, graph distances stand in for them.
    options : mapping
        Every name of :data:`OPTIONS`. With a time limit that is reached, the result depends on
        the machine; otherwise only on the seed.

    Returns
    -------
    Blocks
        Numbered along the bisection tree, so that neighbouring numbers are neighbouring blocks;
        at most 1 % over ceil(n/S), or one if that is less, unless ``staged_bytes`` asks for more.
        ``notes``: weighted loads before and after the moves, the start chosen, how many blocks
        are fragmented, and what each cap cost.

    Raises
    ------
    MeshprepError
        When one element alone stages more than ``staged_bytes``.

    Notes
    -----
    O(n (log n_blocks + sweeps * arity)); the same result for a seed whatever the number of threads.
    """
    begin = clock()
    cap, n_blocks = problem.block_size, block_count(problem.n, problem.block_size)
    if not problem.n or not problem.table.size:
        return blocks_of(np.arange(problem.n) // cap, problem.n)
    geometry = _geometry(problem)
    limit = int(options["staged_bytes"])
    if limit:
        cap = room_for_bytes(geometry, cap, limit)
        n_blocks = block_count(problem.n, cap)
    if n_blocks <= 1:
        return _single(problem)
    effort, colour = EFFORTS[options["effort"]], options["colour_weight"]
    hurried = options["time_limit"] < FOREVER
    trial_sweeps = EFFORTS["fast"].sweeps if hurried else effort.sweeps
    start = choose_start(geometry, cap, problem.seed, trial_sweeps, colour)
    block = geometry.cut(start.rotation, n_blocks)
    first = loads_now(geometry, block, n_blocks)
    search = Search(
        geometry, n_blocks, cap, problem.seed, start, colour, begin + options["time_limit"],
        problem.progress,
    )  # fmt: skip
    block = search.run(block, effort)
    if np.bincount(block).max() > cap:
        repaired = repair(geometry.table, problem.n_points, block, n_blocks, cap)
        block, n_blocks = repaired.block, repaired.n_blocks
    if limit:
        block, n_blocks = split_for_bytes(geometry, block, n_blocks, limit)
    notes = {
        "loads_at_start": first,
        "loads": loads_now(geometry, block, n_blocks),
        "turn": start.rotation,
        "heat": start.temperature,
        "pull": start.centroid_weight,
        "sweeps": search.sweeps,
        "scattered": int(
            (count_components(geometry.table, problem.n_points, block, n_blocks) > 1).sum()
        ),
    }
    return blocks_of(block, n_blocks, notes, keep_numbers=True)


def _single(problem: BlockProblem) -> Blocks:
    """All elements fit one block."""
    table = distinct_rows(problem.table)
    block = np.zeros(problem.n, np.int32)
    components = count_components(table, problem.n_points, block, 1)
    return blocks_of(block, 1, {"scattered": int((components > 1).sum())})


def _geometry(problem: BlockProblem) -> Geometry:
    table = distinct_rows(problem.table)
    weight, written = problem.point_bytes, problem.written
    if weight is None:
        weight = np.ones(problem.n_points, dtype=np.int32)
    if written is None:
        written = np.ones(problem.n_points, dtype=np.bool_)
    return Geometry.of(table, weight, written, problem.coordinates)
