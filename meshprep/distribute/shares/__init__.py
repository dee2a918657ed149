"""The share of the mesh that each rank owns, for ranks of unlike speed [R14 6.3]."""

from .balance import Balance, auto_balance, best_weights, kinds_of, weights_alone, weights_from
from .model import ExecutionModel, LoopTime
from .timings import RankTimes, read_timings

__all__ = [
    "Balance",
    "ExecutionModel",
    "LoopTime",
    "RankTimes",
    "auto_balance",
    "best_weights",
    "kinds_of",
    "read_timings",
    "weights_alone",
    "weights_from",
]
