"""Where the elements of a curved structured mesh stand, from who meets whom alone.

Sites are the elements themselves (quads, hexahedra by their nodes) or the points that elements
with two points join (faces by their cells, edges by their nodes). From one site and its
neighbours, two rules place all others: the neighbour opposite to a placed one stands a step
further on, and the fourth corner of a square stands where the other three say.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..incidence import element_graph, transpose
from .lattice import Lattice
from .ports import (
    MOST_PORTS,
    opposite_by_corners,
    opposite_by_squares,
    ports_of_cells,
    ports_of_pairs,
)

# Of the pairs of neighbours, this share must be neighbours on the lattice: the two sides of a cut
# and the ends of a ring are not, the irregular nodes of a paved mesh spoil far more.
REGULAR = 0.9
UNPLACED = np.iinfo(np.int32).min
MOST_AXES = 3
RARE = 0.01


def lattice_of_pairs(ends: NDArray[np.int32], n_points: int) -> Lattice | None:
    """The lattice of elements that join two points each, or None where these form none.

    Parameters
    ----------
    ends : (n, 2) int32
    n_points : int

    Returns
    -------
    Lattice or None
        An element stands on the site of the end with the lower position.

    O(n).
    """
    used = np.bincount(ends.ravel(), minlength=n_points) > 0
    ends = (np.cumsum(used) - 1).astype(np.int32)[ends]
    touching = transpose(ends, int(np.count_nonzero(used)))
    port = ports_of_pairs(touching.offset, touching.index, ends)
    placed = _placed(port, opposite_by_squares(port)) if port.size else None
    if placed is None:
        return None
    position, part = placed
    a, b = ends.T
    own = np.where((position[a] <= position[b]).all(axis=1), a, b)
    return Lattice(position[own], part[own], position.shape[1])


def lattice_of_cells(corners: NDArray[np.int32], n_points: int) -> Lattice | None:
    """The lattice of quads or hexahedra by their nodes, or None where these form none.

    Parameters
    ----------
    corners : (n, 4) or (n, 8) int32
        The nodes of a cell in any order.
    n_points : int

    O(n).
    """
    # On tetrahedra, or with a point of everyone, the graph would be large and of no use.
    if np.bincount(corners.ravel()).max() > 2 * corners.shape[1]:
        return None
    graph = element_graph(corners, n_points)
    port = ports_of_cells(graph.offset, graph.index, corners)
    placed = _placed(port, opposite_by_corners(port, corners)) if port.size else None
    return None if placed is None else Lattice(*placed, 1)


def _placed(
    port: NDArray[np.int32], opposite: NDArray[np.int8]
) -> tuple[NDArray[np.int32], NDArray[np.int32]] | None:
    """Positions and parts of all sites, if they are those of a lattice."""
    n_ports = np.count_nonzero(port >= 0, axis=1)
    pairs = np.count_nonzero(opposite >= 0, axis=1) // 2
    # Begin in the interior, where most is known, but at no odd site such as the tail of a C.
    known = n_ports * MOST_PORTS + pairs
    rare = np.bincount(known) < RARE * known.size
    seeds = np.argsort(np.where(rare[known], 0, -known), kind="stable").astype(np.int32)
    n_axes = int(n_ports[seeds[0]] - pairs[seeds[0]])
    if not 1 <= n_axes <= MOST_AXES:
        return None
    position, part = _walk(port, opposite, seeds, n_axes)
    if _count_regular(port, position, part) < REGULAR * n_ports.sum():
        return None
    lowest = np.full((int(part.max()) + 1, n_axes), -UNPLACED - 1, np.int64)
    np.minimum.at(lowest, part, position)
    position = (position - lowest[part]).astype(np.int32)
    key = np.column_stack([part, position])[np.lexsort((*position.T, part))]
    return None if (key[1:] == key[:-1]).all(axis=1).any() else (position, part)


@njit(cache=True)
def _walk(
    port: NDArray[np.int32], opposite: NDArray[np.int8], seeds: NDArray[np.int32], n_axes: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Place every site; a new part begins where the two rules lead no further.

    Lines along the first axis are completed before the next ones are begun, so that the two ends
    of a ring, or the two sides of a cut, meet in a straight seam.
    """
    n = seeds.size
    position = np.full((n, n_axes), UNPLACED, np.int32)
    part = np.full(n, -1, np.int32)
    done = np.zeros(n, np.bool_)
    queues = np.empty((2, n), np.int32)
    count = np.zeros(2, np.int64)
    n_parts = 0
    for seed in seeds:
        if part[seed] >= 0:
            continue
        part[seed] = n_parts
        _place_star(port, opposite, seed, position, part, queues, count)
        n_parts += 1
        while count[0] + count[1]:
            if not count[0]:
                for i in range(count[1]):
                    queues[0, i] = queues[1, count[1] - 1 - i]
                count[0], count[1] = count[1], 0
            count[0] -= 1
            s = queues[0, count[0]]
            _extend(port, opposite, s, position, part, queues, count)
            done[s] = True
            for t in port[s]:
                if t >= 0 and done[t] and _steps(position, part, s, t) == 1:
                    _extend(port, opposite, t, position, part, queues, count)
    return position, part


@njit(cache=True)
def _place_star(
    port: NDArray[np.int32],
    opposite: NDArray[np.int8],
    seed: int,
    position: NDArray[np.int32],
    part: NDArray[np.int32],
    queues: NDArray[np.int32],
    count: NDArray[np.int64],
) -> None:
    """The first site of a part at 0, and its neighbours along the axes: pairs before singles."""
    position[seed] = 0
    queues[0, count[0]] = seed
    count[0] += 1
    axis = 0
    step = np.zeros(position.shape[1], np.int32)
    for paired in (True, False):
        for i in range(port.shape[1]):
            j = opposite[seed, i]
            t = port[seed, i]
            if t < 0 or (j >= 0) != paired or j > i or axis == step.size or part[t] >= 0:
                continue
            step[:] = 0
            step[axis] = 1
            _place(t, step, part[seed], axis == 0, position, part, queues, count)
            if paired and part[port[seed, j]] < 0:
                _place(port[seed, j], -step, part[seed], axis == 0, position, part, queues, count)
            axis += 1


@njit(cache=True)
def _place(
    site: int,
    where: NDArray[np.int32],
    number: int,
    in_line: bool,
    position: NDArray[np.int32],
    part: NDArray[np.int32],
    queues: NDArray[np.int32],
    count: NDArray[np.int64],
) -> None:
    position[site] = where
    part[site] = number
    row = 0 if in_line else 1
    queues[row, count[row]] = site
    count[row] += 1


@njit(cache=True)
def _extend(
    port: NDArray[np.int32],
    opposite: NDArray[np.int8],
    s: int,
    position: NDArray[np.int32],
    part: NDArray[np.int32],
    queues: NDArray[np.int32],
    count: NDArray[np.int64],
) -> None:
    """Place what the placed neighbours of ``s`` determine."""
    for i in range(port.shape[1]):
        t = port[s, i]
        if t < 0 or _steps(position, part, s, t) != 1:
            continue
        j = opposite[s, i]
        if j >= 0 and part[port[s, j]] < 0:
            where = 2 * position[s] - position[t]
            in_line = position[s, 0] != position[t, 0]
            _place(port[s, j], where, part[s], in_line, position, part, queues, count)
        for k in range(i):
            u = port[s, k]
            if k == j or u < 0 or _steps(position, part, s, u) != 1:
                continue
            v = _fourth(port, s, t, u)
            if v >= 0 and part[v] < 0 and _steps(position, part, t, u) == 2:
                where = position[t] + position[u] - position[s]
                _place(v, where, part[s], False, position, part, queues, count)


@njit(cache=True)
def _fourth(port: NDArray[np.int32], s: int, t: int, u: int) -> int:
    """The neighbour that ``t`` and ``u`` share besides ``s``; -1 without one, or with several."""
    found = -1
    for v in port[t]:
        if v >= 0 and v != s:
            for w in port[u]:
                if v == w:
                    if found >= 0:
                        return -1
                    found = v
    return found


@njit(cache=True)
def _steps(position: NDArray[np.int32], part: NDArray[np.int32], s: int, t: int) -> int:
    """Steps along the axes from one placed site to another; -1 where these are in no one part."""
    if part[t] < 0 or part[s] != part[t]:
        return -1
    steps = 0
    for axis in range(position.shape[1]):
        steps += abs(position[s, axis] - position[t, axis])
    return steps


@njit(cache=True)
def _count_regular(
    port: NDArray[np.int32], position: NDArray[np.int32], part: NDArray[np.int32]
) -> int:
    count = 0
    for s in range(port.shape[0]):
        for t in port[s]:
            count += t >= 0 and _steps(position, part, s, t) == 1
    return count
