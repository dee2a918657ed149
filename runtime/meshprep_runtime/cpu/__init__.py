"""Loops on the CPU: strategies, generated code, compiled by numba on first use."""

from .strategies import ORDERED, STRATEGIES, refusal

__all__ = [
    "ORDERED",
    "STRATEGIES",
    "refusal",
]
