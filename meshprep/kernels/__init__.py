"""Compiled functions: how they are compiled and kept, and run on all cores."""

from .compiled import KERNELS, clock, helper, inlined, kernel
from .machine_code import folder

__all__ = ["KERNELS", "clock", "folder", "helper", "inlined", "kernel"]
