"""The share of the mesh that each rank owns, for ranks of unlike speed [R14 6.3]."""

from .balance import auto_balance, best_weights, kinds_of, weights_alone, weights_from
from .timings import RankTimes

__all__ = [
    "RankTimes",
    "auto_balance",
    "best_weights",
    "kinds_of",
    "weights_alone",
    "weights_from",
]
