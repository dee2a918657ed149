"""Loops on the CPU: strategies, generated code, compiled by numba on first use."""

from .executor import Executor, choose_strategy
from .source import STRATEGIES

__all__ = ["STRATEGIES", "Executor", "choose_strategy"]
