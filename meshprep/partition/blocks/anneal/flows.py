"""Balancing flows between blocks, and the pressures that drive them.

Elements move between blocks only across borders. Where blocks form a row, as in channels, vessels
and networks, a surplus must pass many blocks, for which pressure that follows each block's own
size is too slow. So pressures are solved for all blocks at once: the flow across a border is the
difference of pressure times its facets, and all flows together remove the surplus over the mean
(Hu & Blake, "An improved diffusion algorithm for dynamic load balancing", 1999).
"""

from typing import NamedTuple

import numpy as np

from ....kernels import Float32s, Float64s, Int32s, Int64s, helper
from ....kernels.arrays import breadth_first, scan_offsets
from ..counts import Counts
from .moves import INSIDE

# Most steps of conjugate gradients, which is how many blocks away a surplus is felt.
STEPS = 60
# Added to the facet count of every border, so that one-facet borders get no extreme pressure.
ADDED = 3.0
# Added to the diagonal, in facets, so that blocks without neighbours have a solution.
LEAK = 1e-3


class Borders(NamedTuple):
    """The blocks beside each block: ``beside[offset[b]:offset[b + 1]]``, and ``facets`` there."""

    offset: Int64s
    beside: Int32s
    facets: Float64s


@helper
def borders_of(state: Counts, best: Float32s) -> Borders:
    """The borders between the blocks of a group. O(facets of clusters that are not ``INSIDE``)."""
    n_blocks = state.size.size
    begin = np.zeros(n_blocks + 1, np.int64)
    for i in range(state.block.size):
        if best[i] == INSIDE:
            continue
        own = state.block[i]
        for s in range(state.offset[i], state.offset[i + 1]):
            begin[own + 1] += state.block[state.neighbours[s]] != own
    scan_offsets(begin)
    found, ahead = np.empty(begin[-1], np.int32), begin[:-1].copy()
    count = np.empty(begin[-1], np.float64)
    for i in range(state.block.size):
        if best[i] == INSIDE:
            continue
        own = state.block[i]
        for s in range(state.offset[i], state.offset[i + 1]):
            other = state.block[state.neighbours[s]]
            if other != own:
                found[ahead[own]] = other
                count[ahead[own]] = state.facets[s] if state.facets.size > 0 else 1
                ahead[own] += 1
    return _joined(begin, found, count)


@helper
def _joined(begin: Int64s, found: Int32s, count: Float64s) -> Borders:
    """Borders with the facets of equal neighbours summed; overwrites its arguments."""
    n_blocks, used = begin.size - 1, 0
    at, offset = np.full(n_blocks, -1, np.int64), np.zeros(n_blocks + 1, np.int64)
    for b in range(n_blocks):
        for s in range(begin[b], begin[b + 1]):
            other, facets = found[s], count[s]
            if at[other] < offset[b]:
                at[other] = used
                found[used], count[used] = other, ADDED
                used += 1
            count[at[other]] += facets
        offset[b + 1] = used
    return Borders(offset, found[:used], count[:used])


@helper
def balancing(state: Counts, borders: Borders, left: float) -> Float64s:
    """The pressure of each block at which flows across facets make all as full as the mean.

    The mean is that of connected blocks, whose mean pressure is 0. The square root of ``left`` is
    the share of the surplus that may remain.
    Conjugate gradients, scaled by the facets of each block. O(borders) for each step.
    """
    n_blocks = state.size.size
    scale, r = np.full(n_blocks, LEAK), state.size / state.cap
    _less_mean(borders, r)
    for b in range(n_blocks):
        for s in range(borders.offset[b], borders.offset[b + 1]):
            scale[b] += borders.facets[s]
        r[b] *= state.cap[b]
    pressure, z = np.zeros(n_blocks, np.float64), r / scale
    direction, product = z.copy(), (r * z).sum()
    least = left * product
    for _ in range(STEPS):
        if product <= least:
            break
        image = scale * direction
        for b in range(n_blocks):
            for s in range(borders.offset[b], borders.offset[b + 1]):
                image[b] -= borders.facets[s] * direction[borders.beside[s]]
        step = product / (direction * image).sum()
        pressure += step * direction
        r -= step * image
        z = r / scale
        before, product = product, (r * z).sum()
        direction = z + product / before * direction
    _less_mean(borders, pressure)
    return pressure


@helper
def _less_mean(borders: Borders, value: Float64s) -> None:
    """Subtract from the value of each block the mean of its connected component."""
    n_blocks, graph = value.size, (borders.offset, borders.beside)
    level, queue = np.full(n_blocks, -1, np.int32), np.empty(n_blocks, np.int64)
    for root in range(n_blocks):
        if level[root] < 0:
            end = breadth_first(graph, root, level, queue, n_blocks + 1)[3]
            value[queue[:end]] -= value[queue[:end]].mean()
