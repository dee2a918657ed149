"""Checks of one array of a plan, as cheap as they can be."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import PlanError


def check_offset(where: str, offset: NDArray[Any], end: int) -> None:
    """Raise PlanError unless an offset starts at 0, never falls and ends at ``end``."""
    check_array(where, offset, "i8", (offset.size,))
    if not offset.size or offset[0] != 0 or offset[-1] != end:
        raise PlanError(f"{where} does not go from 0 to {end}")
    falls = offset[1:] < offset[:-1]
    if falls.any():
        raise PlanError(f"{where} falls after entry {int(np.argmax(falls))}")


def check_array(where: str, values: NDArray[Any], dtype: str, shape: tuple[int, ...]) -> None:
    """Raise PlanError unless an array has this type and shape."""
    wanted = np.dtype(dtype)
    if values.dtype != wanted or values.shape != shape:
        raise PlanError(
            f"{where} is {values.dtype} of shape {values.shape}, must be {wanted} of shape {shape}"
        )


def check_below(where: str, values: NDArray[Any], end: int) -> None:
    """Raise PlanError unless all values are from 0 to ``end - 1``."""
    if values.size and (values.min() < 0 or values.max() >= end):
        at = int(np.argmax((values < 0) | (values >= end)))
        raise PlanError(f"{where}: entry {at} is {values[at]}, outside 0..{end - 1}")
