"""Compiled functions: how they are compiled and kept, and run on all cores."""

from .accepted_numba import check_numba
from .arrays import Bools, Float32s, Float64s, Int32s, Int64s, UInt8s, UInt32s, UInt64s
from .compiled import KERNELS, clock, helper, inlined, kernel

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
    "check_numba",
    "clock",
    "helper",
    "inlined",
    "kernel",
]
