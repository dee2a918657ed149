"""NVIDIA's product of a sparse matrix and a vector, called so that a graph can record it.

CuPy refuses its own calls of cuSPARSE while a stream is recorded, and a call of it from Python
takes longer than many products do. So the C functions are called here.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from meshprep_runtime import MeshprepError

# Values of cuSPARSE's and CUDA's enumerations.
NO_TRANSPOSE, INDEX_32, BASE_ZERO, FLOAT_64 = 0, 2, 0, 1
ALGORITHMS = {"CSR 1": 2, "CSR 2": 3}
Word, Long = ctypes.c_void_p, ctypes.c_int64


def product(
    parts: tuple[Any, Any, Any], x: Any, y: Any, algorithm: str, stream: int
) -> Callable[[], None]:
    """What computes ``y = A x`` on a stream, after what has to be done once.

    Parameters
    ----------
    parts
        Values (f8), columns and offsets (i4) of the rows, CuPy's.
    x, y
        Vectors of f8, CuPy's.
    algorithm
        A name in ``ALGORITHMS``.
    stream
        The address of CUDA's stream.
    """
    import cupy

    # CuPy knows where the library is, and loads it.
    cupy.cuda.device.get_cusparse_handle()
    library = ctypes.CDLL("libcusparse.so.12")

    def call(name: str, *arguments: Any) -> None:
        status = getattr(library, f"cusparse{name}")(*arguments)
        if status:
            raise MeshprepError(f"cuSPARSE: cusparse{name} returned {status}")

    handle, matrix, vector, sums = Word(), Word(), Word(), Word()
    call("Create", ctypes.byref(handle))
    call("SetStream", handle, Word(stream))
    values, columns, offsets = (Word(a.data.ptr) for a in parts)
    shape = (Long(y.size), Long(x.size), Long(parts[0].size))
    kinds = (INDEX_32, INDEX_32, BASE_ZERO, FLOAT_64)
    call("CreateCsr", ctypes.byref(matrix), *shape, offsets, columns, values, *kinds)
    call("CreateDnVec", ctypes.byref(vector), Long(x.size), Word(x.data.ptr), FLOAT_64)
    call("CreateDnVec", ctypes.byref(sums), Long(y.size), Word(y.data.ptr), FLOAT_64)
    one, zero, nbytes = ctypes.c_double(1.0), ctypes.c_double(0.0), ctypes.c_size_t()
    factors = (ctypes.byref(one), matrix, vector, ctypes.byref(zero), sums)
    given = (handle, NO_TRANSPOSE, *factors, FLOAT_64, ALGORITHMS[algorithm])
    call("SpMV_bufferSize", *given, ctypes.byref(nbytes))
    scratch = cupy.zeros(max(1, nbytes.value), np.uint8)
    cupy.cuda.Stream.null.synchronize()
    call("SpMV_preprocess", *given, Word(scratch.data.ptr))
    kept = (parts, x, y, scratch)

    def run() -> None:
        assert kept
        call("SpMV", *given, Word(scratch.data.ptr))

    return run
