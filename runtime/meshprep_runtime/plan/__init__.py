"""The plan: what a solver needs to run its loops in blocks, and its file."""

from .matrices import MatrixPlan
from .model import LoopPlan, Staging, Variant
from .plan import Plan

__all__ = ["LoopPlan", "MatrixPlan", "Plan", "Staging", "Variant"]
