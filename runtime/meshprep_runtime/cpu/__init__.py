"""Loops on the CPU: strategies, generated code, compiled by numba on first use."""

from .strategies import NEED_BLOCKS, ORDERED, SCHEDULES, refusal

STRATEGIES = tuple(SCHEDULES)

__all__ = [
    "NEED_BLOCKS",
    "ORDERED",
    "STRATEGIES",
    "refusal",
]
