"""Points along a Hilbert curve: an order from coordinates alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .curve import along_curve
from .problem import LocalityProblem


def hilbert(problem: LocalityProblem) -> NDArray[np.int32]:
    """Order points along a Hilbert curve: neighbours on the curve are neighbours in space.

    See :func:`curve.along_curve` for what is returned, raised, and the cost.
    """
    return along_curve(problem, "hilbert", turning=True)
