"""The table of locality methods."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .curve import along_curve
from .gps import gps
from .problem import LocalityProblem, Method
from .rcb import rcb
from .rcm import rcm
from .sloan import sloan


def _gps(problem: LocalityProblem) -> NDArray[np.int32]:
    return gps(problem.graph)


def _hilbert(problem: LocalityProblem) -> NDArray[np.int32]:
    """Neighbours on the curve are neighbours in space."""
    return along_curve(problem, "hilbert", turning=True)


def _morton(problem: LocalityProblem) -> NDArray[np.int32]:
    """Cheaper, but the curve jumps between its cells."""
    return along_curve(problem, "morton", turning=False)


def _none(problem: LocalityProblem) -> NDArray[np.int32]:
    return np.arange(problem.n_points, dtype=np.int32)


METHODS: dict[str, Method] = {
    "gps": Method(_gps, "Gibbs-Poole-Stockmeyer: small bandwidth and profile, no coordinates"),
    "rcm": Method(rcm, "reverse Cuthill-McKee: cheaper than gps, wider, no coordinates"),
    "sloan": Method(sloan, "Sloan: the smallest profile, wide, no coordinates"),
    "hilbert": Method(_hilbert, "along a Hilbert curve through the coordinates", True),
    "morton": Method(_morton, "by the interleaved bits of the coordinates", True),
    "rcb": Method(rcb, "recursive coordinate bisection", True),
    "none": Method(_none, "keep the order of the input"),
}
