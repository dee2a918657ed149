"""Loops on a GPU: CUDA C from one template for every strategy, launched by CuPy.

The text can be run on the CPU with checks, and compiled, where there is no GPU. CuPy is imported
when arrays of a GPU are first met.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..tuning.choose_gpu import Choice, choose
    from .detect import on_device
    from .element import PythonKernel
    from .executor import DeviceExecutor, DeviceOptions
    from .function import DeviceFunction
    from .programs import CudaProgram, Launch, program
    from .strategies import COMMITS, STRATEGIES, refusal


__all__ = [
    "COMMITS",
    "STRATEGIES",
    "Choice",
    "CudaProgram",
    "DeviceExecutor",
    "DeviceFunction",
    "DeviceOptions",
    "Launch",
    "PythonKernel",
    "choose",
    "on_device",
    "program",
    "refusal",
]

_HOME = {
    "COMMITS": ".strategies",
    "Choice": "..tuning.choose_gpu",
    "DeviceExecutor": ".executor",
    "DeviceFunction": ".function",
    "DeviceOptions": ".executor",
    "Launch": ".programs",
    "CudaProgram": ".programs",
    "PythonKernel": ".element",
    "STRATEGIES": ".strategies",
    "choose": "..tuning.choose_gpu",
    "on_device": ".detect",
    "program": ".programs",
    "refusal": ".strategies",
}


def __getattr__(name: str) -> Any:
    # A solver on the CPU asks which strategies there are, and must not load the code for a GPU.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name], __name__), name)
