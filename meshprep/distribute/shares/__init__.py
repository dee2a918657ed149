"""The share of the mesh that each rank owns, for ranks of unlike speed [R14 6.3]."""

from .balance import auto_balance, best_weights, kinds_of, weights_alone, weights_from
from .model import ExecutionModel, LoopTime
from .timings import RankTimes

__all__ = [
    "ExecutionModel",
    "LoopTime",
    "RankTimes",
    "auto_balance",
    "best_weights",
    "kinds_of",
    "weights_alone",
    "weights_from",
]
