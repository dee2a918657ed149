"""From the text of a loop and a kernel to machine code, taken from disk where it is known."""

import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from ..kernel import cache
from ..kernel.analysis import INNER, fresh, reach, stable
from . import vectors
from .source import COUNTERS


@intrinsic
def fetch_add(typing: Any, counters: Any, at: Any) -> Any:
    """Add one to a counter; returns what it was. What was written before is seen after."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature, args)
        return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "acq_rel")

    return types.int64(counters, types.intp), make


@intrinsic
def look(typing: Any, counters: Any, at: Any) -> Any:
    """The present value of a counter, and all that was written before it got it."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_place(context, builder, signature, args), "acquire", 8)

    return types.int64(counters, types.intp), make


@intrinsic
def rest(typing: Any) -> Any:
    """Let another thread have the core, if one waits for it."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if sys.platform != "win32":
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), make


@intrinsic
def raises(typing: Any, function: Any, *given: Any) -> Any:
    """Call a compiled function; True for an exception, dropped, for which others would wait."""
    inner = function.get_call_type(typing, given, {})

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        compiled = function.dispatcher.overloads[tuple(inner.args)]
        context.active_code_library.add_linking_library(compiled.library)
        values = cgutils.unpack_tuple(builder, args[1], len(given))
        cast = [
            context.cast(builder, v, t, w)
            for v, t, w in zip(values, given, inner.args, strict=True)
        ]
        status, _ = context.call_internal_no_propagate(builder, compiled.fndesc, inner, cast)
        return status.is_error

    return types.boolean(function, types.StarArgTuple(given)), make


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind = next(t for t in signature.args if isinstance(t, types.Array))
    data = cgutils.create_struct_proxy(kind)(context, builder, args[0]).data
    return builder.gep(data, [args[1]], inbounds=True)


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
    helpers = [
        "stack",
        "row",
        "spread",
        "fetch",
        "load4",
        "store4",
        "to_rows",
        "add_row",
        "copy_row",
    ]
    shared = {"fetch_add": fetch_add, "look": look, "rest": rest, "raises": raises}
    found = {"np": np, "U": np.uint64} | COUNTERS | shared
    return found | {name: getattr(vectors, name) for name in helpers}
