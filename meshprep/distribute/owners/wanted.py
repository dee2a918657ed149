"""What each part is to hold: shares and weights as whole numbers, and caps that can be kept."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meshprep_runtime.errors import MeshprepError

from ...partition.blocks.sizes import Sizes

# Weights of all elements, and shares of all parts, add up to about this.
WHOLE = 1 << 30
# What a part should hold at least, of its share. Only the fullest part keeps the others waiting.
LEAST = 0.9


class Wanted(NamedTuple):
    """The parts that get elements, ascending, and the sizes of these."""

    part: NDArray[np.int32]
    sizes: Sizes


def wanted_sizes(
    n: int, parts: int, weights: ArrayLike | None, shares: ArrayLike | None, tolerance: float
) -> Wanted:
    """Sizes of the parts.

    Weights, shares and tolerance are those of :func:`~.cut.part_of_element`; without weights
    elements weigh 1, without shares parts are equal. A part should not hold less than :data:`LEAST`
    times its share. Parts whose share is 0 are left out. So are those with the smallest shares (of
    equals, the last ones) where there are more parts than elements. Raises MeshprepError for
    numbers of parts, weights, shares and tolerances that do not fit.
    """
    if parts < 1:
        raise MeshprepError(f"there are {parts} parts to cut into: ask for at least 1")
    if not 1.0 <= tolerance < math.inf:
        raise MeshprepError(f"tolerance is {tolerance}, must be a number from 1")
    share = _checked(shares, parts, "shares", "part")
    if not share.any():
        raise MeshprepError("all shares are 0: one part at least must hold something")
    largest = np.argsort(-share, kind="stable")[:n]
    part = np.sort(largest[share[largest] > 0])
    share = share[part] / share[part].sum()
    weight = _whole(_checked(weights, n, "weights", "element"))
    target = share * weight.sum(dtype=np.int64)
    heaviest = int(weight.max(initial=1))
    cap = np.maximum(tolerance * target + 1e-6, np.ceil(target - 1e-6) + heaviest - 1)
    bounds = (a.astype(np.int64) for a in (cap, LEAST * target, _scaled(share)))
    sizes = Sizes(weight, *bounds)
    return Wanted(part.astype(np.int32), sizes)


def _checked(values: ArrayLike | None, count: int, name: str, one: str) -> NDArray[np.float64]:
    found = np.ones(count) if values is None else np.asarray(values, np.float64)
    if found.shape != (count,):
        raise MeshprepError(f"{name} have shape {found.shape}: give one for each {one}, {count}")
    wrong = ~(np.isfinite(found) & (found >= 0))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise MeshprepError(f"{name}: {one} {at} has {found[at]}, must be a number from 0")
    return found


def _whole(weight: NDArray[np.float64]) -> NDArray[np.int32]:
    """Weights as whole numbers: as they are where they are whole and not too many."""
    small = weight.sum() < WHOLE and bool((weight == np.rint(weight)).all())
    found = np.maximum(1, weight) if small else _scaled(weight)
    return np.ascontiguousarray(found, np.int32)


def _scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    total = values.sum()
    return np.maximum(1, np.rint(values * (WHOLE / total if total > 0 else 0.0)))
