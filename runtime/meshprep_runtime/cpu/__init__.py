"""Loops on the CPU: strategies, generated code, compiled by numba on first use."""

from .executor import CpuOptions, Executor, HostCall, choose_strategy
from .schedule import NEED_BLOCKS, SCHEDULES, refusal

STRATEGIES = tuple(SCHEDULES)

__all__ = [
    "NEED_BLOCKS",
    "STRATEGIES",
    "CpuOptions",
    "Executor",
    "HostCall",
    "choose_strategy",
    "refusal",
]
