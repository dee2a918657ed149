"""Compiled functions: decorators, the cache of machine code, and work on all cores."""

from meshprep_runtime._numba.installed import import_numba

# A fault of numba, or of its environment, is an error of one line.
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
from .compiled import (  # noqa: E402
    KERNELS,
    arrayless,
    clock,
    helper,
    inlined,
    kernel,
    merged,
)

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
    "arrayless",
    "clock",
    "helper",
    "inlined",
    "kernel",
    "merged",
]
