"""Cuts of the leading set that ranks find together, each for the elements at home there."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from meshprep_runtime.types.maps import Float64s, Int32s, offsets_of

from ...kernels import Bools, Int64s, UInt64s, kernel
from ...kernels.arrays import sort_by, stable_argsort
from ...reorder.curve import curve_keys
from ..assign.inherit import finite_centroids, run_ends, runs
from ..borders import refined
from ..ranks import Ranks, agreed
from ..subject import SplitSubject
from .homes import Homes

Numbers = Int64s


def leading_owners(subject: SplitSubject, weights: Float64s, cut: str, ranks: Ranks) -> Int32s:
    """The part of every element of the leading set that is at home here; see :data:`CUTS`.

    The same parts as :func:`..steps.owners_of_leading_set` finds, for any number of ranks.
    """
    some = np.flatnonzero(weights).astype(np.int32)
    n = subject.sizes[subject.leading_set]
    own = Homes(n, ranks).own
    if some.size == 1:
        found = np.zeros(len(own), np.int32)
    elif some.size >= n:
        found = np.arange(own.start, own.stop, dtype=np.int32)
    else:
        found = _cut_into_parts(subject, weights[some], cut, ranks)
    return some[found]


def _cut_into_parts(subject: SplitSubject, weights: Float64s, cut: str, ranks: Ranks) -> Int32s:
    """The cut for at least two parts and fewer than elements."""
    if cut == "refined" and subject.from_parts:
        # runs of the file's parts
        own = Homes(subject.sizes[subject.leading_set], ranks).own
        found = runs(subject.sizes[subject.leading_set], weights, own)
        return refined(subject, found, weights, ranks)
    where = agreed(ranks, lambda: finite_centroids(subject, cut))
    found = CUTS[cut](where, weights, ranks)
    return refined(subject, found, weights, ranks) if cut == "refined" else found


def _along_curve(where: Float64s, shares: Float64s, ranks: Ranks) -> Int32s:
    """Runs along Hilbert's curve, in 64 rounds of counted keys; equal keys keep their order."""
    low, high = _boxes(where, np.zeros(len(where), np.int64), 1, ranks)
    box = low[0], high[0]
    keys = agreed(ranks, lambda: curve_keys(where, box))
    order = stable_argsort(keys[:, None]) if keys.size else np.empty(0, np.int32)
    ends = run_ends(sum(ranks.allgather(keys.size)), shares)
    begin = np.zeros(ends.size, np.int64)
    cuts = _first_of_all(keys[order], (begin, begin + keys.size), ends, ranks)
    found = np.empty(keys.size, np.int32)
    found[order] = np.searchsorted(cuts, np.arange(keys.size), side="right")
    return found


def _bisected(where: Float64s, shares: Float64s, ranks: Ranks) -> Int32s:
    """Bisection [G10 section 6] of all regions of a level at once, in 64 rounds of counted keys."""
    first, last = np.zeros(1, np.int64), np.array([shares.size])
    region = np.zeros(len(where), np.int64)
    while (last - first > 1).any():
        middle = np.where(last - first > 1, (first + last) // 2, last)
        ends = zip(first, middle, last, strict=True)
        lower = [float(shares[a:m].sum() / shares[a:b].sum()) for a, m, b in ends]
        region = 2 * region + _in_upper_half(where, region, lower, ranks)
        first, last = (np.stack(pair, axis=1).ravel() for pair in ((first, middle), (middle, last)))
        # a region of one part stays as it is
        kept = last > first
        region = (np.cumsum(kept) - 1)[region]
        first, last = first[kept], last[kept]
    return first[region].astype(np.int32)


def _in_upper_half(where: Float64s, region: Numbers, lower: Sequence[float], ranks: Ranks) -> Bools:
    """The elements that are not in the lower share of their region along its longest axis."""
    count = np.bincount(region, minlength=len(lower))
    size = np.sum(ranks.allgather(count), axis=0)
    low, high = _boxes(where, region, len(lower), ranks)
    keys = np.zeros(len(where), np.uint64)
    if where.shape[1]:
        axis = np.argmax(high - low, axis=1)
        keys = _ascending(where[np.arange(len(where)), axis[region]])
    ends = offsets_of(count)
    grouped = keys[sort_by(region.astype(np.int32), count.size)[1]]
    for begin, end in pairwise(ends):
        grouped[begin:end].sort()
    wanted = np.array([round(share * int(n)) for share, n in zip(lower, size, strict=True)])
    cuts = _first_of_all(grouped, (ends[:-1], ends[1:]), wanted, ranks)
    some = cuts < ends[1:]
    # no finite number has this key
    first = np.full(cuts.size, np.iinfo(np.uint64).max, np.uint64)
    first[some] = grouped[cuts[some]]
    # so many of the keys that are equal to the first beyond are in the lower share
    equal = cuts - _insertion_place(grouped, (ends[:-1], ends[1:]), first, behind=False)
    return _not_below(keys, region, first, equal)


@kernel
def _not_below(keys: UInt64s, region: Int64s, first: UInt64s, equal: Int64s) -> Bools:
    """Mask of keys above ``first`` in their region, or equal and after the ``equal`` first ones."""
    out = np.empty(keys.size, np.bool_)
    for i in range(keys.size):
        r = region[i]
        out[i] = keys[i] >= first[r]
        if keys[i] == first[r] and equal[r] > 0:
            equal[r] -= 1
            out[i] = False
    return out


def _boxes(
    where: Float64s, region: Numbers, regions: int, ranks: Ranks
) -> tuple[Float64s, Float64s]:
    """The lowest and highest coordinates (regions, d) of all ranks' elements of each region."""
    low = np.full((regions, where.shape[1]), np.inf)
    high = -low
    for axis in range(where.shape[1]):
        np.minimum.at(low[:, axis], region, where[:, axis])
        np.maximum.at(high[:, axis], region, where[:, axis])
    every = ranks.allgather((low, high))
    return np.min([one for one, _ in every], axis=0), np.max([one for _, one in every], axis=0)


def _ascending(values: Float64s) -> UInt64s:
    """Whole numbers in the order of finite floats; both zeros are one."""
    bits = (values + 0.0).view(np.uint64)
    top = np.uint64(1 << 63)
    return np.where(bits & top, ~bits, bits | top)


def _first_of_all(
    keys: UInt64s, segment: tuple[Numbers, Numbers], ends: Numbers, ranks: Ranks
) -> Numbers:
    """Where the first ``ends`` keys of all ranks end among the keys of this one.

    The key at each end is found by bisection. Equal keys count from the lowest rank on. ``keys``
    ascend in each segment; ``segment`` says where the keys that each end counts begin and stop.
    """
    one = np.uint64(1)
    low = np.zeros(ends.size, np.uint64)
    high = np.full(ends.size, max(ranks.allgather(keys.max(initial=low.dtype.type(0)))))
    while (low < high).any():
        middle = low + ((high - low) >> one)
        count = sum(
            ranks.allgather(_insertion_place(keys, segment, middle, behind=True) - segment[0])
        )
        beyond = count > ends
        high = np.where(beyond, middle, high)
        low = np.where(beyond | (low == high), low, middle + one)
    below = _insertion_place(keys, segment, low, behind=False)
    equal = _insertion_place(keys, segment, low, behind=True) - below
    every = ranks.allgather((below - segment[0], equal))
    left = ends - sum(b for b, _ in every) - sum(e for _, e in every[: ranks.rank])
    return below + np.clip(left, 0, equal)


def _insertion_place(
    keys: UInt64s, segment: tuple[Numbers, Numbers], values: UInt64s, *, behind: bool
) -> Numbers:
    """Insertion points of values in their segments, before or behind equal keys."""
    low, high = segment
    while (low < high).any():
        middle = (low + high) >> 1
        key = keys[np.minimum(middle, keys.size - 1)]
        right = (low < high) & ((key <= values) if behind else (key < values))
        low, high = (
            np.where(right, middle + 1, low),
            np.where(right, high, np.minimum(middle, high)),
        )
    return low


CUTS: dict[str, Callable[[Float64s, Float64s, Ranks], Int32s]] = {
    "curve": _along_curve,
    "rcb": _bisected,
    "refined": _bisected,
}
