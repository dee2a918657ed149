"""How many elements, or how much weight, each part may and should hold."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import Float64s

from ...kernels import Int32s
from ...partitioning.multilevel.initial.geometry import Sizes

# Weights of all elements, and shares of all parts, add up to about this.
WHOLE = 1 << 30

# A part should hold at least this of its share. It may be well below 1: only the fullest
# part keeps the others waiting.
LEAST = 0.9


class PartSizes(NamedTuple):
    """The parts that get elements, ascending, and how much each may and should hold."""

    part: Int32s
    sizes: Sizes


def part_sizes(
    n: int,
    parts: int,
    weights: ArrayLike | None,
    shares: ArrayLike | None,
    tolerance: float,
) -> PartSizes:
    """Caps, floors and shares of the parts.

    Weights, shares and tolerance are those of :func:`~.search.part_of_element`; without
    weights elements weigh 1, without shares parts are equal. A part should hold at least
    :data:`LEAST` times its share. Parts whose share is 0 are left out; where there are more
    parts than elements, so are the parts with the smallest shares (of equals, the last
    ones). Raises MeshprepError for numbers of parts, weights, shares and tolerances that do
    not fit.
    """
    if parts < 1:
        raise MeshprepError(f"there are {parts} parts to cut into: ask for at least 1")
    if not 1.0 <= tolerance < math.inf:
        raise MeshprepError(f"tolerance is {tolerance}, must be a number from 1")
    share = _checked_weights(values=shares, count=parts, name="shares", one="part")
    if not share.any():
        raise MeshprepError("all shares are 0: one part at least must hold something")
    # Take the parts that get elements, and their shares of the whole.
    largest = np.argsort(-share, kind="stable")[:n]
    part = np.sort(largest[share[largest] > 0])
    share = share[part] / share[part].sum()
    weight = integer_weights(
        _checked_weights(values=weights, count=n, name="weights", one="element")
    )
    target = share * weight.sum(dtype=np.int64)
    heaviest = int(weight.max(initial=1))
    # Caps: the tolerance, and room for one element in the smallest part.
    least = np.maximum(1, np.ceil(target - 1e-6))
    cap = np.maximum(tolerance * target + 1e-6, least + heaviest - 1)
    sizes = Sizes(
        weight=weight,
        cap=cap.astype(np.int64),
        least=(LEAST * target).astype(np.int64),
        share=_scaled(share).astype(np.int64),
    )
    return PartSizes(part.astype(np.int32), sizes)


def _checked_weights(
    values: ArrayLike | None,
    count: int,
    name: str,
    one: str,
) -> Float64s:
    """Weights as floats, 1 where there are none; raises MeshprepError unless they fit."""
    weights = np.ones(count) if values is None else np.asarray(values, np.float64)
    if weights.shape != (count,):
        raise MeshprepError(
            f"{name} have shape {weights.shape}: give one for each {one}, {count}"
        )
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise MeshprepError(
            f"{name}: {one} {at} has {weights[at]}, must be a number from 0"
        )
    return weights


def integer_weights(weight: Float64s) -> Int32s:
    """Weights as int32: unchanged if they are whole and small, else scaled."""
    whole = bool((weight == np.rint(weight)).all())
    if whole and weight.sum() < WHOLE:
        integers = np.maximum(1, weight)
    else:
        integers = _scaled(weight)
    return np.ascontiguousarray(integers, np.int32)


def _scaled(values: Float64s) -> Float64s:
    """Values that add up to about :data:`WHOLE`, rounded, at least 1 each."""
    total = values.sum()
    factor = WHOLE / total if total > 0 else 0.0
    return np.maximum(1, np.rint(values * factor))
