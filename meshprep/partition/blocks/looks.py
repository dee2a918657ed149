"""Which clusters a sweep looks at: drawn for a run of them at once, so that memory is ready.

Most clusters beside other blocks are passed over, and a processor guesses badly which. A run is
drawn without a branch, and the lists of the points of those drawn are read at once, before the
first of them is looked at: one by one, each look would wait for memory.
"""

from typing import Any, NamedTuple

import numpy as np

from ...kernels import Float64s, Int64s, UInt32s, helper, inlined
from ...kernels.arithmetic import log
from .counts import FIRST, Counts
from .moves import INSIDE, LEAST_GAIN, UNKNOWN, MoveMemory, Sweep

THRESHOLDS = 4096
# Clusters of a run.
RUN = 256

# the same for kernels
_log = inlined(log)


class Looks(NamedTuple):
    """The clusters of a run that are looked at, each once, and what is drawn for each.

    What a move may cost is that times the temperature. ``quantile`` is what is drawn from, and
    ``memory`` has the scores. Nobody reads ``ready`` (1,): without it, a compiler would leave out
    what makes memory ready.
    """

    cluster: UInt32s
    draw: Float64s
    quantile: Float64s
    ready: Int64s
    memory: MoveMemory


@helper
def new_looks(memory: MoveMemory, quantile: Float64s) -> Looks:
    """Room for a run, and for one more, which is written before it is known to be looked at."""
    cluster, draw = np.empty(RUN + 1, np.uint32), np.empty(RUN + 1, np.float64)
    return Looks(cluster, draw, quantile, np.zeros(1, np.int64), memory)


@helper
def acceptance_thresholds() -> Float64s:
    """Quantiles of the exponential distribution, to draw what a move may cost."""
    quantile = np.empty(THRESHOLDS, np.float64)
    for k in range(THRESHOLDS):
        quantile[k] = -_log((k + 0.5) / THRESHOLDS)
    return quantile


@inlined
def draw_looks(
    state: Counts,
    looks: Looks,
    sweep: Sweep,
    number: int,
    holds: int,
    begin: int,
    random: np.uint64,
) -> tuple[np.uint64, int]:
    """Draw for the run from place ``begin`` of sweep ``number``; the random state, how many.

    A cluster is looked at where what is drawn and its score may be enough, and in every
    ``holds``-th sweep. Its score is unknown from then on. O(clusters of the run + points of those
    looked at).
    """
    n, best, at_border, count = state.block.size, looks.memory.best, 0, 0
    for place in range(begin, min(n, begin + RUN)):
        i: Any = np.uint32(place_in_sweep(n, place, number))
        looks.cluster[at_border] = i
        at_border += best[i] != INSIDE
    for k in range(at_border):
        i = looks.cluster[k]
        looks.cluster[count] = i
        random = _draw(looks, count, random)
        enough = best[i] + sweep.temperature * looks.draw[count] > LEAST_GAIN
        count += enough | ((i + number) % holds == 0)
    for k in range(count):
        best[looks.cluster[k]] = UNKNOWN
    read = 0
    for k in range(count):
        i = looks.cluster[k]
        for s in range(state.point_offset[i], state.point_offset[i + 1]):
            read += state.lists[state.points[s] + FIRST]
    looks.ready[0] = read
    return random, count


@inlined
def place_in_sweep(n: int, cluster: int, number: int) -> int:
    """When a cluster's turn is, or whose turn it is: every second sweep runs backwards."""
    return n - 1 - cluster if number % 2 == 1 else cluster


@inlined
def forget_neighbours(
    state: Counts,
    looks: Looks,
    cluster: int,
    ahead: tuple[int, int],
    number: int,
    count: int,
    random: np.uint64,
) -> tuple[np.uint64, int]:
    """The scores of a moved cluster and its neighbours are unknown; those ``ahead`` are looked at.

    These have their turn from one place up to another, and are entered behind the ``count`` ones
    that are there. Returns the random state and the new count.
    """
    n, best = state.block.size, looks.memory.best
    best[cluster] = UNKNOWN
    for s in range(state.offset[cluster], state.offset[cluster + 1]):
        j = state.neighbours[s]
        place = place_in_sweep(n, j, number)
        if (best[j] != UNKNOWN) & (place >= ahead[0]) & (place < ahead[1]):
            looks.cluster[count] = j
            random = _draw(looks, count, random)
            count += 1
        best[j] = UNKNOWN
    return random, count


@inlined
def _draw(looks: Looks, k: int, random: np.uint64) -> np.uint64:
    """Draw for the ``k``-th cluster; returns the next random state."""
    random ^= random << np.uint64(13)
    random ^= random >> np.uint64(7)
    random ^= random << np.uint64(17)
    looks.draw[k] = looks.quantile[(random >> np.uint64(20)) & np.uint64(THRESHOLDS - 1)]
    return random
