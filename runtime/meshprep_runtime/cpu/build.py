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
class Inlined:
    """A kernel that the text calls through ``elements``, both with this suffix."""

    kernel: Callable[..., None]
    fastmath: bool
    single: bool
    suffix: str = ""


@dataclass(frozen=True)
class Request:
    """What to compile, and how."""

    text: str
    kernels: tuple[Inlined, ...]
    fastmath: bool = False  # of what calls ``elements``
    boundscheck: bool = False

    def reached(self) -> Hashable:
        """What :func:`reach` gives for the kernels."""
        return tuple(reach(one.kernel) for one in self.kernels)

    def options(self) -> tuple[Hashable, ...]:
        """All but the kernels."""
        words = tuple((one.fastmath, one.single, one.suffix) for one in self.kernels)
        return (self.text, words, self.fastmath, self.boundscheck)

    def key(self) -> Hashable:
        """Equal for requests that give the same machine code."""
        return (self.reached(), self.options())


def build(request: Request, arrays: Sequence[NDArray[Any]]) -> Callable[..., Any]:
    """The compiled ``run(who, *arrays)`` for arrays of these types; it checks nothing."""
    signature = (numba.int64, *(numba.typeof(a) for a in arrays))
    known = stable(request.reached())
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


def _compile(request: Request, kept: Any, signature: tuple[Any, ...]) -> Callable[..., Any]:
    # Division by zero gives inf or nan, as in NumPy: threads cannot raise.
    common: dict[str, Any] = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
    common["fastmath"] = request.fastmath
    scope: dict[str, Any] = {} if kept is None else vars(kept)
    scope |= names_in_texts()
    module = __name__ if kept is None else kept.__name__
    for one in request.kernels:

        def compile_one(function: Any, own: dict[str, Any], fast: bool = one.fastmath) -> Any:
            # A helper that is called costs more than it does: its rows travel as structures.
            checked = {"boundscheck": request.boundscheck, "forceinline": True, "fastmath": fast}
            return numba.jit(**(common | checked | own | INNER))(function)

        scope[f"kernel{one.suffix}"] = fresh(one.kernel, compile_one, one.single, module)
    file = "<meshprep loop>" if kept is None else kept.__file__
    exec(compile(request.text, file, "exec"), scope)
    for one in request.kernels:
        # the second step of a strategy has no elements
        if (name := f"elements{one.suffix}") in scope:
            options = common | INNER | {"fastmath": one.fastmath}
            scope[name] = numba.jit(**options)(scope[name])
    # Straight into the machine code: what the arrays are has been checked on binding.
    entry: Callable[..., Any] = cache.compiled(scope["run"], signature, kept, common)
    return entry


def names_in_texts() -> dict[str, Any]:
    """What the generated texts use."""
    found = {"np": np, "U": np.uint64}
    helpers = (
        "stack",
        "row",
        "spread",
        "fetch",
        "load4",
        "store4",
        "to_rows",
        "add_row",
        "copy_row",
    )
    found |= COUNTERS | {n: getattr(vectors, n) for n in helpers}
    return found | {n: getattr(atomics, n) for n in ("fetch_add", "look", "rest", "raises")}
