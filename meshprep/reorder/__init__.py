"""Numbering the sets of a mesh: locality first, then grouping by blocks.

``METHODS`` names the locality orders; ``locality_order`` runs one and keeps it where it gains.
"""

from .choose import LocalityResult, locality_order
from .envelope import Envelope, envelope
from .gps import gps
from .grouping import group_points
from .lexicographic import from_set_order
from .methods import METHODS
from .problem import LocalityProblem, Method
from .propagate import keep_parts, propagate

__all__ = [
    "METHODS",
    "Envelope",
    "LocalityProblem",
    "LocalityResult",
    "Method",
    "envelope",
    "from_set_order",
    "gps",
    "group_points",
    "keep_parts",
    "locality_order",
    "propagate",
]
