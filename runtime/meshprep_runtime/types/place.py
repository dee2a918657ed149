"""Where an array lies: in the memory of a GPU, or of the host."""

from typing import Any

import numpy as np

# DLPack's numbers for memory of CUDA, managed memory included.
DLPACK_CUDA = (2, 13)
HOST = (np.ndarray, int, float, np.generic)


def on_device(value: Any) -> bool:
    """True for arrays in the memory of a GPU."""
    if isinstance(value, HOST):
        return False
    if cupy_pointer(value) is not None:
        return True
    try:
        if getattr(value, "__cuda_array_interface__", None) is not None:
            return True
    except Exception:  # Libraries refuse to tell in words of their own; the binder asks again.
        pass
    ask = getattr(value, "__dlpack_device__", None)
    return ask is not None and ask()[0] in DLPACK_CUDA


def cupy_pointer(value: Any) -> object:
    """The address of a CuPy array: its interface takes long to make."""
    return getattr(getattr(value, "data", None), "ptr", None)
