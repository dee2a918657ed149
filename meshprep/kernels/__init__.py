"""Compiled functions: how they are compiled and kept, and run on all cores."""

from .arrays import Bools, Float64s, Int32s, Int64s, UInt8s, UInt64s
from .compiled import KERNELS, clock, helper, inlined, kernel
from .machine_code import folder

_ARRAYS = ["Bools", "Float64s", "Int32s", "Int64s", "UInt64s", "UInt8s"]
__all__ = [*_ARRAYS, "KERNELS", "clock", "folder", "helper", "inlined", "kernel"]
