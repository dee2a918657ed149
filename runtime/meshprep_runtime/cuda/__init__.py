"""Loops on a GPU: CUDA C from one template for every strategy, launched by CuPy.

The text can be run on the CPU with checks, and compiled, where there is no GPU. CuPy is
imported when arrays of a GPU are first met.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..kernel.analysis import DeviceFunction
    from .build import compile_program
    from .programs import CudaProgram, program
    from .strategies import COMMITS, STRATEGIES, refusal

__all__ = [
    "COMMITS",
    "STRATEGIES",
    "CudaProgram",
    "DeviceFunction",
    "compile_program",
    "program",
    "refusal",
]

# The module of each name, which is loaded when the name is first used.
_HOME = {
    "COMMITS": ".strategies",
    "STRATEGIES": ".strategies",
    "CudaProgram": ".programs",
    "DeviceFunction": "..kernel.analysis",
    "compile_program": ".build",
    "program": ".programs",
    "refusal": ".strategies",
}


def __getattr__(name: str) -> Any:
    # A solver on the CPU asks for the names of strategies, and must not load the code for a
    # GPU.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name], __name__), name)
