"""The plan: what a solver needs to run its loops in blocks, and its file."""

from .model import LoopPlan, Plan, Staging, Variant

__all__ = ["LoopPlan", "Plan", "Staging", "Variant"]
