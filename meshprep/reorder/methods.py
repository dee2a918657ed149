"""The table of locality methods."""

from functools import partial

import numpy as np

from .curve import along_curve
from .gps import gps
from .problem import Method
from .rcb import rcb
from .rcm import rcm
from .sloan import sloan

_HILBERT = partial(along_curve, method="hilbert", turning=True)
# Cheaper, but the curve jumps between its cells.
_MORTON = partial(along_curve, method="morton", turning=False)
METHODS: dict[str, Method] = {
    "gps": Method(
        lambda p: gps(p.graph),
        "Gibbs-Poole-Stockmeyer: small bandwidth and profile, no coordinates",
    ),
    "rcm": Method(rcm, "reverse Cuthill-McKee: cheaper than gps, wider, no coordinates"),
    "sloan": Method(sloan, "Sloan: the smallest profile, wide, no coordinates"),
    "hilbert": Method(_HILBERT, "along a Hilbert curve through the coordinates", True),
    "morton": Method(_MORTON, "by the interleaved bits of the coordinates", True),
    "rcb": Method(rcb, "recursive coordinate bisection", True),
    "none": Method(
        lambda problem: np.arange(problem.n_points, dtype=np.int32), "keep the order of the input"
    ),
}
