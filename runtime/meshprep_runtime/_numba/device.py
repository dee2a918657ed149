"""numba-cuda: a kernel in Python as code for a GPU, without the GPU.

``cuda.jit`` and ``cuda.compile`` are public
(https://nvidia.github.io/numba-cuda/user/cuda_compilation.html). The rest of what they
need here is not: numba-cuda compiles the functions that a kernel calls for the device of
this machine, of which there may be none, and knows few functions of NumPy.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..errors import MissingPackageError
from .installed import import_numba

# NVIDIA's libraries, by the names that cuda-pathfinder gives them.
LIBRARIES = ("nvrtc", "nvvm", "nvJitLink")
# Functions of NumPy that numba-cuda knows only as functions of ``math``.
_FUNCTIONS = {
    np.sqrt: math.sqrt,
    np.exp: math.exp,
    np.expm1: math.expm1,
    np.log1p: math.log1p,
    np.absolute: math.fabs,
    np.fabs: math.fabs,
}


def import_numba_cuda() -> Any:
    """``numba.cuda`` of the package numba-cuda; raises MissingPackageError without it.

    numba has an older ``numba.cuda`` of its own, which the package replaces when Python
    starts.
    """
    import_numba()
    try:
        import numba_cuda  # noqa: F401
        from cuda import pathfinder
        from numba import cuda
        from numba.cuda.np import arrayobj  # noqa: F401
    except ModuleNotFoundError as error:
        raise _missing(str(error)) from error
    except AttributeError as error:
        # numba-cuda uses names that newer releases of NumPy do not have.
        raise _missing(
            f"this release does not know NumPy {np.__version__}: {error}"
        ) from error
    # Load the libraries now: without them the first kernel would fail far from here.
    for name in LIBRARIES:
        try:
            pathfinder.load_nvidia_dynamic_lib(name)
        except RuntimeError as error:
            raise _missing(f"no library {name}") from error
    _complete_functions()
    return cuda


def _missing(what: str) -> MissingPackageError:
    return MissingPackageError(
        f"compiling a Python kernel for a GPU needs numba-cuda and its libraries ({what}): "
        "pip install 'meshprep-runtime[check]'"
    )


def _complete_functions() -> None:
    """Give numba-cuda the functions of NumPy that it knows only as functions of ``math``.

    A kernel that runs on the CPU should run on a GPU as it is. The documentation says that
    numba-cuda has them: https://github.com/numba/numba/issues/8492
    """
    from numba import types
    from numba.cuda.mathimpl import get_unary_impl_for_fn_and_ty
    from numba.cuda.ufuncs import ufunc_db

    def lowered(function: Any, kind: Any) -> Callable[..., Any]:
        return lambda context, builder, sig, args: get_unary_impl_for_fn_and_ty(
            function, kind
        )(context, builder, sig, args)

    for ufunc, function in _FUNCTIONS.items():
        loops = {
            "f->f": lowered(function, types.float32),
            "d->d": lowered(function, types.float64),
        }
        ufunc_db().setdefault(ufunc, loops)


@contextmanager
def compiling_for(capability: tuple[int, int]) -> Iterator[None]:
    """Let numba-cuda compile helpers for devices of this compute capability.

    ``cuda.compile`` takes a capability, but the functions that a kernel calls
    (``cuda.jit(device=True)``) are compiled for the current device, for which the driver
    is asked: https://github.com/numba/numba/pull/8387. The compiler's lock is held
    meanwhile, since the function that is replaced is the whole process's.
    """
    from numba.cuda import dispatcher
    from numba.cuda.core.compiler_lock import global_compiler_lock

    # numba-cuda asks the current device what it can do: answer for it, while no other
    # thread compiles.
    with global_compiler_lock:
        get_current_device = dispatcher.get_current_device
        dispatcher.get_current_device = lambda: SimpleNamespace(
            compute_capability=capability
        )
        try:
            yield
        finally:
            dispatcher.get_current_device = get_current_device


def device_tools() -> SimpleNamespace:
    """What intrinsics need of a compiler for a GPU, as :data:`.lowering.HOST` is for a CPU.

    numba-cuda has copies of numba's modules: those of numba lower to calls that a GPU does
    not have.
    """
    from numba import types
    from numba.cuda import cgutils  # type: ignore[attr-defined]
    from numba.cuda.extending import intrinsic
    from numba.cuda.np.arrayobj import populate_array

    return SimpleNamespace(
        cgutils=cgutils, types=types, intrinsic=intrinsic, populate_array=populate_array
    )
