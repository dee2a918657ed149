"""Our own blocks: bisection, then annealed moves that count the very loads [S19] asks to reduce.

[S19] ends by asking for a partitioner that suits blocks of a few hundred elements. This one
minimises the number of distinct points over all blocks, the connectivity of the hypergraph whose
nets are the points, and never builds a graph of elements.

1. Directions and heat are tried on a sample of the mesh (:mod:`start`).
2. Recursive bisection into blocks of equal size, 1 % below the cap (:mod:`bisection`).
3. Phases of annealing (:mod:`anneal`) on groups of blocks, grouped another way each time.
4. The best of what was seen is kept, and the cap proved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bisection import bisect
from .blocks_of import Blocks, blocks_of
from .connected import scattered_blocks
from .connectivity import distinct_rows
from .groups import refine_groups
from .loads import weighted_loads_of
from .options import Option
from .problem import BlockProblem
from .repair import repair
from .start import Geometry, Start, block_count, choose_start

GROUP_ELEMENTS = 40_000
# Sweeps at the end that only gain.
COLD_SWEEPS = 6


@dataclass(frozen=True)
class Effort:
    """How long to search: sweeps with heat, and over how many phases."""

    sweeps: int
    phases: int


EFFORTS: Mapping[str, Effort] = {
    "fast": Effort(sweeps=8, phases=2),
    "default": Effort(sweeps=32, phases=4),
    "strong": Effort(sweeps=200, phases=10),
}

OPTIONS: Mapping[str, Option] = {
    "effort": Option(str, "default", "how long to search", choices=tuple(EFFORTS)),
}


def blocks(problem: BlockProblem, options: Mapping[str, Any]) -> Blocks:
    """Blocks of at most S elements that load as few points as we can find.

    Parameters
    ----------
    problem : BlockProblem
        Without coordinates, graph distances stand in for them.
    options : mapping
        Every name of :data:`OPTIONS`.

    Returns
    -------
    Blocks
        Numbered along the bisection tree, so that neighbouring numbers are neighbouring blocks;
        at most one more than 1 % over ceil(n/S). ``notes``: weighted loads before and after
        the moves, the start chosen, and how many blocks are in pieces.

    Notes
    -----
    O(n (log n_blocks + sweeps * arity)); the same result for a seed whatever the number of threads.
    """
    n_blocks = block_count(problem.n, problem.block_size)
    if n_blocks <= 1 or not problem.table.size:
        return blocks_of(np.arange(problem.n) // problem.block_size, problem.n)
    geometry = _geometry(problem)
    effort = EFFORTS[options["effort"]]
    start = choose_start(geometry, problem.block_size, problem.seed)
    block = geometry.cut(start.turn, n_blocks)
    first = _loads(geometry, block, n_blocks)
    best, last = _refine(geometry, block, first, n_blocks, problem, effort, start)
    made = blocks_of(best, int(best.max()) + 1, keep_numbers=True)
    notes = {
        "loads_at_start": first,
        "loads": last,
        "turn": start.turn,
        "heat": start.heat,
        "scattered": scattered_blocks(
            geometry.table, problem.n_points, made.new_to_old, made.block_offset
        ),
    }
    return replace(made, notes=notes)


def _geometry(problem: BlockProblem) -> Geometry:
    table = distinct_rows(problem.table)
    weight = problem.point_bytes
    if weight is None:
        weight = np.ones(problem.n_points, dtype=np.int32)
    return Geometry.of(table, weight, problem.coordinates)


def _loads(geometry: Geometry, block: NDArray[np.int32], n_blocks: int) -> int:
    return int(weighted_loads_of(geometry.table, geometry.weight, block, n_blocks))


def _refine(
    geometry: Geometry,
    start_block: NDArray[np.int32],
    first: int,
    n_blocks: int,
    problem: BlockProblem,
    effort: Effort,
    start: Start,
) -> tuple[NDArray[np.int32], int]:
    """Anneal in phases; returns the better of the end and the start, and its loads."""
    block, loads = start_block.copy(), first
    total = effort.sweeps
    for phase in range(effort.phases):
        groups = _group(geometry, block, n_blocks, phase)
        begin = total * phase // effort.phases
        end = total * (phase + 1) // effort.phases
        end += COLD_SWEEPS if phase == effort.phases - 1 else 0
        schedule = (start.heat, begin, end, total)
        seed = (problem.seed + 1_000_003 * phase) % 2**31
        loads -= refine_groups(
            geometry.table, geometry.weight, block, groups, problem.block_size, schedule, seed
        )
    if np.bincount(block).max() > problem.block_size:
        mended = repair(problem.table, problem.n_points, block, n_blocks, problem.block_size)
        block, loads = mended.block, _loads(geometry, mended.block, mended.n_blocks)
    return (block, loads) if loads <= first else (start_block, first)


def _group(
    geometry: Geometry, block: NDArray[np.int32], n_blocks: int, phase: int
) -> NDArray[np.int32]:
    """Groups of neighbouring blocks, cut in directions that differ from phase to phase."""
    n_groups = min(n_blocks, -(-block.size // GROUP_ELEMENTS))
    size = np.maximum(np.bincount(block, minlength=n_blocks), 1)
    middle = [
        np.bincount(block, weights=axis, minlength=n_blocks) / size
        for axis in geometry.coordinates.T
    ]
    where = np.ascontiguousarray(np.stack(middle, axis=1), dtype=np.float64)
    d = where.shape[1]
    directions, _ = np.linalg.qr(np.random.default_rng(phase).normal(size=(d, d)))
    no_points = np.empty((n_blocks, 0), dtype=np.int32)
    nowhere = np.empty((0, d), dtype=np.float64)
    return bisect(no_points, nowhere, where, directions, n_groups)
