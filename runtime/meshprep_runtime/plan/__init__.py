"""The plan: what a solver needs to run its loops in blocks, and its file."""

from .model import LoopPlan, Staging, Variant
from .plan import Plan

__all__ = ["LoopPlan", "Plan", "Staging", "Variant"]
