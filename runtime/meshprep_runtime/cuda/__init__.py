"""Loops on a GPU: CUDA C from one template for every strategy, launched by CuPy.

The text can be run on the CPU with checks, and compiled, where there is no GPU. CuPy is imported
when arrays of a GPU are first met.
"""

from ..tuning.choose_gpu import Choice, choose
from .detect import on_device
from .element import PythonKernel
from .executor import DeviceExecutor, DeviceOptions
from .function import DeviceFunction
from .programs import Launch, Program, program
from .strategies import COMMITS, STRATEGIES, refusal

__all__ = [
    "COMMITS",
    "STRATEGIES",
    "Choice",
    "DeviceExecutor",
    "DeviceFunction",
    "DeviceOptions",
    "Launch",
    "Program",
    "PythonKernel",
    "choose",
    "on_device",
    "program",
    "refusal",
]
