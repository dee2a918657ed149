"""Orders of the sets of a mesh: locality first, then grouping by blocks.

``METHODS`` names the locality orders; ``locality_order`` runs one or all of them, and
applies the best where it gains.
"""

from .choose import METHOD_NAMES, OrderCandidate, locality_order
from .figures import FOLLOW, Figures, LocalityProblem, Method, figures
from .gps import gps
from .grouping import group_points
from .lexicographic import from_set_order, order_by_ends
from .propagate import followers, keep_parts, propagate, touch_order
from .registry import METHODS

__all__ = [
    "FOLLOW",
    "METHODS",
    "METHOD_NAMES",
    "Figures",
    "LocalityProblem",
    "Method",
    "OrderCandidate",
    "figures",
    "followers",
    "from_set_order",
    "gps",
    "group_points",
    "keep_parts",
    "locality_order",
    "order_by_ends",
    "propagate",
    "touch_order",
]
