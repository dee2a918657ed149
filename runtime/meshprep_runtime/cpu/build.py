"""From the text of a loop and a kernel to machine code, taken from disk where it is known."""

import functools
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from ..kernel import cache
from ..kernel.analysis import INNER, fresh, reach, stable
from .source import vectors
from .source.text import BOXES, COUNTERS, TEAM

INT64 = ir.IntType(64)


@intrinsic
def fetch_add(typing: Any, counters: Any, at: Any) -> Any:
    """Add one to a counter; returns what it was. What was written before is seen after."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature, args)
        return builder.atomic_rmw("add", place, INT64(1), "acq_rel")

    return types.int64(counters, types.intp), make


@intrinsic
def look(typing: Any, counters: Any, at: Any) -> Any:
    """The present value of a counter, and all that was written before it got it."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_place(context, builder, signature, args), "acquire", 8)

    return types.int64(counters, types.intp), make


@intrinsic
def swap(typing: Any, counters: Any, at: Any, old: Any, new: Any) -> Any:
    """Set a counter if it has the old value; returns whether it had."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature, args)
        found = builder.cmpxchg(place, args[2], args[3], "acq_rel", "acquire")
        return builder.extract_value(found, 1)

    return types.boolean(counters, types.intp, types.int64, types.int64), make


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


@intrinsic
def array_at(typing: Any, words: Any, at: Any, kind: Any) -> Any:
    """The array of a type whose address and shape stand at a place of some words."""
    array = kind.instance_type

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        start = builder.gep(args[0], [args[1]], inbounds=True)
        places = (builder.gep(start, [INT64(k)], inbounds=True) for k in range(1 + array.ndim))
        address, *shape = map(builder.load, places)
        size = INT64(context.get_abi_sizeof(context.get_data_type(array.dtype)))
        strides, count = [size], INT64(1)
        for length in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        for length in shape:
            count = builder.mul(count, length)
        made = cgutils.create_struct_proxy(array)(context, builder)
        made.data = builder.inttoptr(address, made.data.type)
        made.nitems, made.itemsize = count, size
        made.shape = cgutils.pack_array(builder, shape)
        made.strides = cgutils.pack_array(builder, strides)
        return made._getvalue()

    return array(words, types.intp, kind), make


@intrinsic
def invoke(
    typing: Any, function: Any, who: Any, first: Any, last: Any, counters: Any, words: Any
) -> Any:
    """Call what :func:`build_native` made, by addresses."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = INT64.as_pointer()
        kind = ir.FunctionType(INT64, [*[INT64] * 3, pointer, pointer])
        memory = [builder.inttoptr(address, pointer) for address in args[4:]]
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), [*args[1:4], *memory])

    return types.int64(*[types.int64] * 6), make


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind, data = signature.args[0], args[0]
    if isinstance(kind, types.Array):
        data = cgutils.create_struct_proxy(kind)(context, builder, data).data
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
    """What to compile, and how.

    ``text`` defines functions. Its ``run`` is called from Python; or ``body`` is that of one which
    is called by its address, on the arrays ``names``.
    """

    text: str
    kernels: tuple[Inlined, ...]
    fastmath: bool = False  # of what calls ``elements``
    boundscheck: bool = False
    body: str = ""
    names: tuple[str, ...] = ()

    def reached(self) -> Hashable:
        """What :func:`reach` gives for the kernels."""
        return tuple(reach(one.kernel) for one in self.kernels)

    def options(self) -> tuple[Hashable, ...]:
        """All but the kernels."""
        words = tuple((one.fastmath, one.single, one.suffix) for one in self.kernels)
        return (self.text, words, self.fastmath, self.boundscheck, self.body, self.names)

    def key(self) -> Hashable:
        """Equal for requests that give the same machine code."""
        return (self.reached(), self.options())


@dataclass(frozen=True, eq=False)
class Native:
    """Machine code ``run(who, first, last, counters, words)``, see :mod:`.source.text`."""

    address: int
    code: Any  # keeps it

    def __deepcopy__(self, memo: Any) -> "Native":
        """The same: it holds no arrays."""
        return self


def build(request: Request, arrays: Sequence[NDArray[Any]]) -> Callable[..., Any]:
    """The compiled ``run(number, *arrays)`` for arrays of these types; it checks nothing."""
    made: Callable[..., Any] = _build(request, tuple(map(numba.typeof, arrays)))
    return made


def build_native(request: Request, arrays: Sequence[NDArray[Any]]) -> Native:
    """The same for ``request.body``, called by its address."""
    code = _build(request, tuple(map(numba.typeof, arrays)))
    return Native(code.address, code)


def words_of(arrays: Iterable[NDArray[Any]]) -> list[int]:
    """Addresses and shapes, as :func:`array_at` finds them; a microsecond an array."""
    return [word for a in arrays for word in (a.ctypes.data, *a.shape)]


class Launchers(NamedTuple):
    """The functions of ``TEAM``."""

    call: Callable[..., int]
    launch: Callable[..., int]
    listen: Callable[..., None]


@functools.cache
def launchers() -> Launchers:
    """Compiled once a process, or taken from disk."""
    kept = cache.module(cache.name_of((TEAM,)), TEAM)
    made: Launchers = _once_more_without(kept, _launchers)
    return made


def _launchers(kept: Any) -> Launchers:
    scope: dict[str, Any] = {} if kept is None else vars(kept)
    scope |= names_in_texts()
    file = "<meshprep team>" if kept is None else str(kept.__file__)
    exec(compile(TEAM, file, "exec"), scope)
    number, words = numba.int64, numba.int64[::1]
    signatures = {
        "call": (words, words),
        "launch": (*[number] * 3, *[words] * 3, number, number, numba.boolean),
        "listen": (words, number, number),
    }
    options = {"nogil": True, "error_model": "numpy"}
    return Launchers(*(cache.compiled(scope[n], s, kept, options) for n, s in signatures.items()))


def _build(request: Request, arrays: tuple[Any, ...]) -> Any:
    known = stable(request.reached())
    kept = None
    if known is not None and not request.boundscheck:
        name = cache.name_of((known, request.options(), ", ".join(map(str, arrays))))
        kept = cache.module(name, _text(request, arrays))
    return _once_more_without(kept, lambda kept: _compile(request, kept, arrays))


def _once_more_without(kept: Any, make: Callable[[Any], Any]) -> Any:
    """``make(kept)``, or without what lies on disk where that is of no use."""
    try:
        return make(kept)
    except Exception as error:
        if kept is None or isinstance(error, numba.errors.NumbaError):
            raise
        # the folder went away, is full, or a file was cut off
        cache.forget(kept)
        return make(None)


def _text(request: Request, arrays: tuple[Any, ...]) -> str:
    if not request.body:
        return request.text
    lines, at = ["def run(who, first, last, counters, words):"], 0
    for i, (name, array) in enumerate(zip(request.names, arrays, strict=True)):
        lines.append(f"    {name} = array_at(words, {at}, T{i})")
        at += 1 + array.ndim
    return "\n".join([request.text, "", "", *lines, request.body])


def _compile(request: Request, kept: Any, arrays: tuple[Any, ...]) -> Any:
    # Division by zero gives inf or nan, as in NumPy: threads cannot raise.
    common: dict[str, Any] = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
    common["fastmath"] = request.fastmath
    scope: dict[str, Any] = {} if kept is None else vars(kept)
    scope |= names_in_texts() | {f"T{i}": array for i, array in enumerate(arrays)}
    module = __name__ if kept is None else kept.__name__
    for one in request.kernels:

        def compile_one(function: Any, own: dict[str, Any], fast: bool = one.fastmath) -> Any:
            # A helper that is called costs more than it does: its rows travel as structures.
            checked = {"boundscheck": request.boundscheck, "forceinline": True, "fastmath": fast}
            return numba.jit(**(common | checked | own | INNER))(function)

        scope[f"kernel{one.suffix}"] = fresh(one.kernel, compile_one, one.single, module)
    file = "<meshprep loop>" if kept is None else kept.__file__
    exec(compile(_text(request, arrays), file, "exec"), scope)
    for one in request.kernels:
        # the second step of a strategy has no elements
        if (name := f"elements{one.suffix}") in scope:
            options = common | INNER | {"fastmath": one.fastmath}
            scope[name] = numba.jit(**options)(scope[name])
    # Straight into the machine code: what the arrays are has been checked on binding.
    if request.body:
        words = types.CPointer(types.int64)
        signature = types.int64(*[types.int64] * 3, words, words)
        del common["no_cfunc_wrapper"]
        return cache.compiled_native(scope["run"], signature, kept, common)
    return cache.compiled(scope["run"], (numba.int64, *arrays), kept, common)


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
    found: dict[str, Any] = {"np": np, "U": np.uint64} | COUNTERS | BOXES
    found |= {"fetch_add": fetch_add, "look": look, "swap": swap, "rest": rest, "raises": raises}
    found |= {"array_at": array_at, "invoke": invoke}
    return found | {name: getattr(vectors, name) for name in helpers}
