"""Compiled functions: how they are compiled and kept, and run on all cores."""

from .compiled import KERNELS, clock, folder, helper, inlined, kernel

__all__ = ["KERNELS", "clock", "folder", "helper", "inlined", "kernel"]
