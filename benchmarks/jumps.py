"""Jumps: how often a loop on a core waits for a line of memory that it cannot foresee.

A core keeps the lines that a loop touched last, and fetches ahead of the runs that it goes along,
in either direction. So a loop waits where it touches a line that is neither kept nor beside one
that was fetched not long ago. A band is a few runs, though it touches many lines; an order of few
lines that lie apart makes a loop wait for each of them. The cache is a model with fixed sizes, not
the one of this machine: the same input gives the same count everywhere. Why ``--method auto`` does
not choose by it stands in docs/research/orders.md.
"""

import numba
import numpy as np
from numpy.typing import NDArray

# A cache of 2 MiB: 8 ways, lines of 64 bytes.
LINE_BYTES = 64
WAYS = 8
SETS = 4096
# A line goes on with a run if one beside it was fetched among so many accesses. The three
# sizes are those, of nine tried, whose jumps went with the measured times of most loops.
FORESIGHT = 1 << 16


@numba.njit
def count_jumps(table: NDArray[np.int32], n_points: int, point_bytes: int) -> int:
    """The fetches of a cache that are not beside an earlier one, in a loop over the elements.

    ``table`` is (n_elements, arity); ``point_bytes`` is what the loop moves for a point.
    O(n_elements x arity).
    """
    # The lines of each set of the cache, and when each was touched last.
    kept = np.full((SETS, WAYS), -1, np.int64)
    touched = np.zeros((SETS, WAYS), np.int64)
    # When each line was fetched last; the first line is number one, and one follows the last.
    n_lines = np.int64(n_points) * point_bytes // LINE_BYTES + 3
    fetched = np.full(n_lines, -FORESIGHT, np.int64)
    clock = np.int64(0)
    jumps = 0
    for e in range(table.shape[0]):
        for j in range(table.shape[1]):
            begin = np.int64(table[e, j]) * point_bytes
            first = 1 + begin // LINE_BYTES
            last = 1 + (begin + point_bytes - 1) // LINE_BYTES
            for line in range(first, last + 1):
                clock += 1
                # Find the line in its set, else the way that was touched longest ago.
                own = line % SETS
                way = 0
                for other in range(WAYS):
                    if kept[own, other] == line:
                        way = other
                        break
                    if touched[own, other] < touched[own, way]:
                        way = other
                hit = kept[own, way] == line
                kept[own, way] = line
                touched[own, way] = clock
                # Fetch it where it is not kept.
                if not hit:
                    beside = max(fetched[line - 1], fetched[line + 1])
                    if clock - beside >= FORESIGHT:
                        jumps += 1
                    fetched[line] = clock
    return jumps
