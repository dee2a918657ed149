"""Points along Morton's curve: an order from coordinates alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .curve import along_curve
from .problem import LocalityProblem


def morton(problem: LocalityProblem) -> NDArray[np.int32]:
    """Order points by the interleaved bits of their coordinates.

    Cheaper than :func:`hilbert.hilbert`, but the curve jumps between its cells. See
    :func:`curve.along_curve` for what is returned, raised, and the cost.
    """
    return along_curve(problem, "morton", turning=False)
