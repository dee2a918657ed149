"""Parts that a cut left empty get elements of the fullest parts."""

import numpy as np

from meshprep_runtime.types.maps import Float64s

from ...kernels import Int32s
from ..ranks import Ranks


def filled(part: Int32s, shares: Float64s, ranks: Ranks) -> Int32s:
    """The part of each element at home here, where no part is empty.

    METIS leaves parts empty where parts have few elements, and rounding does where shares
    are small. An empty part gets elements of the part that has the most for its share: the
    last ones, as many as the empty part's share of what both should hold, and at least one.
    Shares are above 0, and there are at least as many elements as parts. The result is the
    same for any number of ranks, whose elements stand one after the other. O(n / ranks) for
    each part that was empty.
    """
    counts_of_ranks = ranks.allgather(np.bincount(part, minlength=shares.size))
    counts = np.stack(counts_of_ranks).sum(axis=0)
    filled_part = part
    for empty in np.flatnonzero(counts == 0).tolist():
        if filled_part is part:
            filled_part = part.copy()
        # Choose the part that gives elements, and how many.
        several = np.flatnonzero(counts > 1)
        source = int(several[np.argmax(counts[several] / shares[several])])
        fraction = shares[empty] / (shares[empty] + shares[source])
        moving = max(1, int(counts[source] * fraction))
        of_source = np.flatnonzero(filled_part == source)
        # The last elements of all ranks move: first those of the ranks behind this one.
        later = sum(ranks.allgather(of_source.size)[ranks.rank + 1 :])
        here = min(of_source.size, max(0, moving - later))
        first_moving = of_source.size - here
        filled_part[of_source[first_moving:]] = empty
        counts[source] -= moving
        counts[empty] = moving
    return filled_part
