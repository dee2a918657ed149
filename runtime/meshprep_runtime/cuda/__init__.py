"""Loops as CUDA C: one template for every strategy, and a run of that text on the CPU with checks.

Nothing here needs a GPU or its tools, and nothing launches on one.
"""

from .element import PythonKernel
from .program import DeviceFunction, Launch, Program, program
from .strategies import COMMITS, STRATEGIES, refusal

__all__ = [
    "COMMITS",
    "STRATEGIES",
    "DeviceFunction",
    "Launch",
    "Program",
    "PythonKernel",
    "program",
    "refusal",
]
