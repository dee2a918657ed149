"""Weights of vertices and shares of parts: what each part may hold."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from .inputs import as_numpy

# Weights are scaled to integers and back: a part may be over by this share of its cap.
ROUNDING = 1e-6
# Weights that are no whole numbers, or large ones, are scaled to add up to this.
WHOLE = 1 << 40


class PartCaps(NamedTuple):
    """What each part should and may hold, for each column of weights."""

    target: NDArray[np.float64]  # (parts, columns): its share of the whole
    most: NDArray[np.float64]  # (parts, columns)


def weight_columns(weights: Any, n: int) -> NDArray[np.float64]:
    """Weights as columns, (n, columns); 1 for each vertex where there are none."""
    if weights is None:
        return np.ones((n, 1))
    # Refuse what are not numbers, one row of them for each vertex.
    columns = as_numpy(weights)
    if columns.dtype.kind not in "iuf" or columns.ndim not in (1, 2) or len(columns) != n:
        raise MeshprepError(
            f"weights have shape {columns.shape} and dtype {columns.dtype}: give a number, "
            f"or a row of numbers, for each of {n} vertices"
        )
    columns = columns.reshape(n, -1).astype(np.float64)
    if not columns.shape[1]:
        raise MeshprepError("weights have no column: leave them out for equal weights")
    # Name the first weight that cannot be balanced.
    wrong = ~(np.isfinite(columns) & (columns >= 0))
    if wrong.any():
        vertex, column = np.argwhere(wrong)[0]
        raise MeshprepError(
            f"weights: vertex {vertex} has {columns[vertex, column]}, must be a number "
            "from 0"
        )
    return columns


def whole_weights(column: NDArray[np.float64]) -> NDArray[np.int64]:
    """Weights as whole numbers: unchanged where they are, else scaled. 0 stays 0."""
    total = column.sum()
    whole = bool((column == np.rint(column)).all())
    if whole and total < WHOLE:
        return column.astype(np.int64)
    return np.rint(column * (WHOLE / total)).astype(np.int64)


def part_shares(shares: Any, parts: int) -> NDArray[np.float64]:
    """The shares of the parts, which add up to 1."""
    if isinstance(parts, bool) or int(parts) != parts or parts < 1:
        raise MeshprepError(f"parts is {parts}, must be a whole number from 1")
    if shares is None:
        return np.full(parts, 1 / parts)
    # Shares are in proportion: scale them so that they add up to 1.
    share = as_numpy(shares).astype(np.float64)
    if share.shape != (parts,):
        raise MeshprepError(
            f"shares have shape {share.shape}: give one for each part, {parts}"
        )
    if not np.isfinite(share).all() or (share < 0).any() or not share.any():
        raise MeshprepError("shares must be numbers from 0, of which one at least is more")
    return share / share.sum()


def part_caps(
    columns: NDArray[np.float64], *, parts: int, shares: Any, room: float
) -> PartCaps:
    """The targets and caps of the parts.

    A part may hold its share and ``room`` of it, or else so much that a vertex more fits
    beside its share: no other cap could always be met.
    """
    if not 0 <= room < math.inf:
        raise MeshprepError(f"room is {room}, must be a number from 0, such as 0.03")
    share = part_shares(shares, parts)
    target = share[:, None] * columns.sum(axis=0)[None, :]
    heaviest = columns.max(axis=0, initial=0.0)
    most = (1 + room) * target
    if (columns == np.rint(columns)).all():
        # Of whole numbers the next one is still a fair share.
        most = np.ceil(most - 1e-6)
        most = np.maximum(most, np.ceil(target - 1e-6) + np.maximum(heaviest - 1, 0))
    else:
        most = np.maximum(most, target + heaviest)
    most[share == 0] = 0.0
    return PartCaps(target=target, most=most * (1 + ROUNDING))
