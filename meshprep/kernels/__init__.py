"""Compiled functions: how they are compiled and kept, and run on all cores."""

from meshprep_runtime.kernel.compiler import import_numba

# what is wrong with numba, or its environment, is one line
import_numba()

from meshprep_runtime.types.maps import (  # noqa: E402
    Bools,
    Float32s,
    Float64s,
    Int32s,
    Int64s,
    UInt8s,
    UInt64s,
)

from .arrays import UInt32s  # noqa: E402
from .compiled import KERNELS, clock, helper, inlined, kernel  # noqa: E402

__all__ = [
    "KERNELS",
    "Bools",
    "Float32s",
    "Float64s",
    "Int32s",
    "Int64s",
    "UInt8s",
    "UInt32s",
    "UInt64s",
    "clock",
    "helper",
    "inlined",
    "kernel",
]
