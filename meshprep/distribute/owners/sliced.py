"""Cuts of the leading set that ranks find together, each for the elements at home there.

The parts are the same for any number of ranks: what decides is counted over all of them.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from meshprep_runtime.types.maps import Float64s, Int32s, offsets_of

from ...kernels import Bools, Int64s, UInt64s, kernel
from ...kernels.arrays import sort_by, stable_argsort
from ...ordering.curve import curve_keys
from ..homes import Homes
from ..ranks import Ranks, agreed
from ..subject import SplitSubject
from .fill import filled
from .inherit import finite_centroids, run_ends, runs
from .refine import refined

Numbers = Int64s


def leading_owners(
    subject: SplitSubject,
    weights: Float64s,
    cut: str,
    ranks: Ranks,
) -> Int32s:
    """The part of every element of the leading set that is at home here; see :data:`CUTS`.

    The same parts as :func:`~.cuts.owners_of_leading_set` finds, for any number of ranks.
    """
    with_share = np.flatnonzero(weights).astype(np.int32)
    n = subject.sizes[subject.leading_set]
    home = Homes(n, ranks).own
    # Cut among the parts that have a share.
    if with_share.size == 1:
        part = np.zeros(len(home), np.int32)
    elif with_share.size >= n:
        part = np.arange(home.start, home.stop, dtype=np.int32)
    else:
        part = _cut_into_parts(
            subject=subject,
            weights=weights[with_share],
            cut=cut,
            ranks=ranks,
        )
        part = filled(part, weights[with_share], ranks)
    return with_share[part]


def _cut_into_parts(
    subject: SplitSubject,
    weights: Float64s,
    cut: str,
    ranks: Ranks,
) -> Int32s:
    """The cut for at least two parts and fewer than elements."""
    if cut == "refined" and subject.from_parts:
        # A file of parts is in an order of locality: begin with runs of it.
        n = subject.sizes[subject.leading_set]
        part = runs(n, weights, Homes(n, ranks).own)
        return refined(subject=subject, part=part, shares=weights, ranks=ranks)
    where = agreed(ranks, lambda: finite_centroids(subject, cut))
    part = CUTS[cut](where, weights, ranks)
    if cut == "refined":
        return refined(subject=subject, part=part, shares=weights, ranks=ranks)
    return part


def _along_curve(where: Float64s, shares: Float64s, ranks: Ranks) -> Int32s:
    """Runs along Hilbert's curve; equal keys keep their order.

    64 rounds in which all ranks count keys.
    """
    low, high = _boxes(
        where=where,
        region=np.zeros(len(where), np.int64),
        regions=1,
        ranks=ranks,
    )
    # Sort the keys of this rank.
    box = low[0], high[0]
    keys = agreed(ranks, lambda: curve_keys(where, box))
    if keys.size:
        order = stable_argsort(keys[:, None])
    else:
        order = np.empty(0, np.int32)
    # Find where the runs of all ranks end among them.
    ends = run_ends(sum(ranks.allgather(keys.size)), shares)
    begin = np.zeros(ends.size, np.int64)
    cuts = _first_of_all(
        keys=keys[order],
        segment=(begin, begin + keys.size),
        ends=ends,
        ranks=ranks,
    )
    part = np.empty(keys.size, np.int32)
    part[order] = np.searchsorted(cuts, np.arange(keys.size), side="right")
    return part


def _bisected(where: Float64s, shares: Float64s, ranks: Ranks) -> Int32s:
    """Bisection [G10 section 6], all regions of a level at once.

    64 rounds for each level, in which all ranks count keys.
    """
    # Region ``r`` holds the parts from ``first[r]`` to below ``last[r]``.
    first = np.zeros(1, np.int64)
    last = np.array([shares.size])
    region = np.zeros(len(where), np.int64)
    while (last - first > 1).any():
        middle = np.where(last - first > 1, (first + last) // 2, last)
        # Cut each region along its longest axis, by the shares of its lower parts.
        lower = []
        for begin, mid, end in zip(first, middle, last, strict=True):
            share_of_lower = shares[begin:mid].sum() / shares[begin:end].sum()
            lower.append(float(share_of_lower))
        region = 2 * region + _in_upper_half(
            where=where,
            region=region,
            lower=lower,
            ranks=ranks,
        )
        # The halves of each region follow each other; of a region of one part, one is
        # empty.
        both_first = np.stack([first, middle], axis=1).ravel()
        both_last = np.stack([middle, last], axis=1).ravel()
        has_parts = both_last > both_first
        number_of_region = np.cumsum(has_parts) - 1
        region = number_of_region[region]
        first = both_first[has_parts]
        last = both_last[has_parts]
    return first[region].astype(np.int32)


def _in_upper_half(
    where: Float64s,
    region: Numbers,
    lower: Sequence[float],
    ranks: Ranks,
) -> Bools:
    """Mask of elements beyond the lower share of their region on its longest axis."""
    # Keys: coordinates along the longest axis of the region of all ranks.
    count = np.bincount(region, minlength=len(lower))
    size = np.sum(ranks.allgather(count), axis=0)
    low, high = _boxes(where=where, region=region, regions=len(lower), ranks=ranks)
    keys = np.zeros(len(where), np.uint64)
    if where.shape[1]:
        axis = np.argmax(high - low, axis=1)
        keys = _ascending(where[np.arange(len(where)), axis[region]])
    # Sort them in each region.
    ends = offsets_of(count)
    _, by_region = sort_by(region.astype(np.int32), count.size)
    grouped = keys[by_region]
    for begin, end in pairwise(ends):
        grouped[begin:end].sort()
    # Find where the lower share of all ranks ends among them.
    in_lower = []
    for share, n in zip(lower, size.tolist(), strict=True):
        in_lower.append(round(share * n))
    cuts = _first_of_all(
        keys=grouped,
        segment=(ends[:-1], ends[1:]),
        ends=np.array(in_lower),
        ranks=ranks,
    )
    # The first key beyond it; the largest number is the key of no finite coordinate.
    beyond = cuts < ends[1:]
    no_key = np.iinfo(np.uint64).max
    first = np.full(cuts.size, no_key, np.uint64)
    first[beyond] = grouped[cuts[beyond]]
    # How many keys that are equal to it are in the lower share.
    equal = cuts - _insertion_place(
        keys=grouped,
        segment=(ends[:-1], ends[1:]),
        values=first,
        behind=False,
    )
    return _not_below(keys=keys, region=region, first=first, equal=equal)


@kernel
def _not_below(
    keys: UInt64s,
    region: Int64s,
    first: UInt64s,
    equal: Int64s,
) -> Bools:
    """Mask of keys from ``first`` of their region on, without the first ``equal`` equals.

    ``equal`` is used up.
    """
    out = np.empty(keys.size, np.bool_)
    for i in range(keys.size):
        r = region[i]
        out[i] = keys[i] >= first[r]
        if keys[i] == first[r] and equal[r] > 0:
            equal[r] -= 1
            out[i] = False
    return out


def _boxes(
    where: Float64s,
    region: Numbers,
    regions: int,
    ranks: Ranks,
) -> tuple[Float64s, Float64s]:
    """The lowest and highest coordinates (regions, d) of each region, over all ranks."""
    low = np.full((regions, where.shape[1]), np.inf)
    high = -low
    for axis in range(where.shape[1]):
        np.minimum.at(low[:, axis], region, where[:, axis])
        np.maximum.at(high[:, axis], region, where[:, axis])
    boxes = ranks.allgather((low, high))
    lowest = np.min([low for low, _ in boxes], axis=0)
    highest = np.max([high for _, high in boxes], axis=0)
    return lowest, highest


def _ascending(values: Float64s) -> UInt64s:
    """Whole numbers in the order of finite floats; both zeros are one."""
    # Adding 0.0 turns -0.0 into 0.0. Bits of negative floats ascend as these fall.
    bits = (values + 0.0).view(np.uint64)
    sign = np.uint64(1 << 63)
    return np.where(bits & sign, ~bits, bits | sign)


def _first_of_all(
    keys: UInt64s,
    segment: tuple[Numbers, Numbers],
    ends: Numbers,
    ranks: Ranks,
) -> Numbers:
    """Where the first ``ends`` keys of all ranks end among the keys of this one.

    The key at each end is found by bisection. Equal keys count from the lowest rank on.
    ``keys`` ascend in each segment; ``segment`` says where the keys that each end counts
    begin and stop.
    """
    # Bisect the key at each end, from the keys of all ranks that are not above it.
    unit = np.uint64(1)
    begin = segment[0]
    highest_here = keys.max(initial=np.uint64(0))
    low = np.zeros(ends.size, np.uint64)
    high = np.full(ends.size, max(ranks.allgather(highest_here)))
    while (low < high).any():
        middle = low + ((high - low) >> unit)
        behind = _insertion_place(keys=keys, segment=segment, values=middle, behind=True)
        count = sum(ranks.allgather(behind - begin))
        beyond = count > ends
        high = np.where(beyond, middle, high)
        low = np.where(beyond | (low == high), low, middle + unit)
    # All lower keys are before the end, and of equal ones those of the lowest ranks.
    below = _insertion_place(keys=keys, segment=segment, values=low, behind=False)
    behind = _insertion_place(keys=keys, segment=segment, values=low, behind=True)
    equal = behind - below
    counts = ranks.allgather((below - begin, equal))
    n_below = sum(below_of_rank for below_of_rank, _ in counts)
    n_equal_before = sum(equal_of_rank for _, equal_of_rank in counts[: ranks.rank])
    return below + np.clip(ends - n_below - n_equal_before, 0, equal)


def _insertion_place(
    keys: UInt64s,
    segment: tuple[Numbers, Numbers],
    values: UInt64s,
    *,
    behind: bool,
) -> Numbers:
    """Insertion points of values in their segments, before or behind equal keys."""
    # A binary search in all segments at once; those that are done stay as they are.
    low, high = segment
    while (low < high).any():
        middle = (low + high) >> 1
        key = keys[np.minimum(middle, keys.size - 1)]
        if behind:
            to_the_right = key <= values
        else:
            to_the_right = key < values
        right = (low < high) & to_the_right
        low = np.where(right, middle + 1, low)
        high = np.where(right, high, np.minimum(middle, high))
    return low


CUTS: dict[str, Callable[[Float64s, Float64s, Ranks], Int32s]] = {
    "curve": _along_curve,
    "rcb": _bisected,
    "refined": _bisected,
}
