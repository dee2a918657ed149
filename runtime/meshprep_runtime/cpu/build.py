"""From the text of a loop and a kernel to machine code, taken from disk where it is known."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from ..kernel import cache
from ..kernel.analysis import INNER, fresh, reach, stable
from . import atomics, vectors
from .source import COUNTERS


@dataclass(frozen=True)
class Request:
    """What to compile, and how."""

    kernel: Callable[..., None]
    text: str
    boundscheck: bool
    fastmath: bool
    single: bool

    def key(self) -> Hashable:
        """Equal for requests that give the same machine code."""
        return (reach(self.kernel), *self.options())

    def options(self) -> tuple[Hashable, ...]:
        """All but the kernel."""
        return (self.text, self.boundscheck, self.fastmath, self.single)


def build(request: Request, arrays: Sequence[NDArray[Any]]) -> Callable[..., None]:
    """The compiled ``run(who, *arrays)`` for arrays of these types; it checks nothing."""
    signature = (numba.int64, *(numba.typeof(a) for a in arrays))
    known = stable(reach(request.kernel))
    kept = None
    if known is not None and not request.boundscheck:
        name = cache.name_of((known, request.options(), cache.describe_types(signature)))
        kept = cache.module(name, request.text)
    try:
        return _compile(request, kept, signature)
    except Exception as error:
        if kept is None or isinstance(error, numba.errors.NumbaError):
            raise
        # What lies on disk is of no use: the folder went away, is full, or a file was cut off.
        cache.forget(kept)
        return _compile(request, None, signature)


def _compile(request: Request, kept: Any, signature: tuple[Any, ...]) -> Callable[..., None]:
    # Division by zero gives inf or nan, as in NumPy: threads cannot raise.
    common: dict[str, Any] = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
    common["fastmath"] = request.fastmath
    scope: dict[str, Any] = {} if kept is None else vars(kept)
    scope |= names_in_texts()

    def compile_one(function: Any, own: dict[str, Any]) -> Any:
        # A helper that is called costs more than it does: its rows travel as structures.
        checked = {"boundscheck": request.boundscheck, "forceinline": True}
        return numba.jit(**(common | checked | own | INNER))(function)

    module = __name__ if kept is None else kept.__name__
    scope["kernel"] = fresh(request.kernel, compile_one, request.single, module)
    file = "<meshprep loop>" if kept is None else kept.__file__
    exec(compile(request.text, file, "exec"), scope)
    if "elements" in scope:
        scope["elements"] = numba.jit(**(common | INNER))(scope["elements"])
    # Straight into the machine code: what the arrays are has been checked on binding.
    entry: Callable[..., None] = cache.compiled(scope["run"], signature, kept, common)
    return entry


def names_in_texts() -> dict[str, Any]:
    """What the generated texts use."""
    found = {"np": np, "U": np.uint64}
    helpers = ("stack", "row", "spread", "fetch", "load4", "store4", "copy_row")
    found |= COUNTERS | {n: getattr(vectors, n) for n in helpers}
    return found | {n: getattr(atomics, n) for n in ("fetch_add", "look", "rest", "raises")}
