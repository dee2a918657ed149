"""What the threads of one parallel region share: counters, and a call whose failure all see."""

import sys
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


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
    """Call a compiled function; True when it raised an exception, which is dropped.

    One that leaves a thread is lost, and the others would wait for ever for its range.
    """
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
