"""Compiles the text of a loop with its kernel, or takes the machine code from disk."""

import functools
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from .._numba.compiling import FORCE_INLINE, INNER, NO_WRAPPER_FOR_C, garbage_waits
from .._numba.lowering import (
    array_of,
    call_and_ask,
    call_type,
    function_of_c,
    intrinsic,
    ir,
    nothing,
    pointer_to,
    row_length,
    unpacked,
    value_type,
)
from .._numba.messages import is_of_numba
from .._numba.tuples import together
from ..kernel import cache
from ..kernel.analysis import fresh, reach, stable
from .source import vectors
from .source.text import TEAM, launcher_constants

INT64 = ir.IntType(64)
R = TypeVar("R")


@intrinsic
def fetch_add(typing: Any, counters: Any, at: Any) -> Any:
    """Add one to a counter; returns its old value.

    Threads that see the new value see all that was written before.
    """

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        counter = _counter(context, builder, signature, args)
        return builder.atomic_rmw("add", counter, INT64(1), "acq_rel")

    return types.int64(counters, types.intp), make


@intrinsic
def look(typing: Any, counters: Any, at: Any) -> Any:
    """The value of a counter; also shows all that was written before it was set."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        counter = _counter(context, builder, signature, args)
        return builder.load_atomic(counter, "acquire", 8)

    return types.int64(counters, types.intp), make


@intrinsic
def swap(typing: Any, counters: Any, at: Any, old: Any, new: Any) -> Any:
    """Set a counter to ``new`` if it is ``old``; returns whether it was."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        counter = _counter(context, builder, signature, args)
        old_and_success = builder.cmpxchg(counter, args[2], args[3], "acq_rel", "acquire")
        return builder.extract_value(old_and_success, 1)

    return types.boolean(counters, types.intp, types.int64, types.int64), make


@intrinsic
def rest(typing: Any) -> Any:
    """Let another thread have the core, if a thread waits for it."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if sys.platform != "win32":
            builder.call(function_of_c(builder, "sched_yield", ir.IntType(32)), [])
        return nothing(context)

    return types.void(), make


@intrinsic
def raises(typing: Any, function: Any, *given: Any) -> Any:
    """Call a compiled function; True where it raises an exception, which is dropped.

    A thread that left with the exception would let the others wait for its turn.
    """
    inner = call_type(typing, function, given)

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return call_and_ask(
            context=context,
            builder=builder,
            function=function,
            inner=inner,
            given=given,
            values=unpacked(builder, args[1], len(given)),
        )

    return types.boolean(function, types.StarArgTuple(given)), make


@intrinsic
def array_at(typing: Any, words: Any, at: Any, kind: Any) -> Any:
    """The array of a type whose address and shape stand in ``words`` from ``at`` on."""
    array = kind.instance_type

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first_word = builder.gep(args[0], [args[1]], inbounds=True)
        pointers = (
            builder.gep(first_word, [INT64(k)], inbounds=True)
            for k in range(1 + array.ndim)
        )
        address, *shape = map(builder.load, pointers)
        data = builder.inttoptr(address, value_type(context, array.dtype).as_pointer())
        return array_of(
            context=context, builder=builder, kind=array, data=data, shape=shape
        )

    return array(words, types.intp, kind), make


@intrinsic(prefer_literal=True)
def table_entry(typing: Any, table: Any, row: Any, column: Any) -> Any:
    """``table[row, column]``, without checks; column is a literal."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arity = row_length(context, builder, table, args[0])
        row_start = builder.mul(args[1], arity)
        place = builder.add(row_start, INT64(column.literal_value))
        return builder.load(pointer_to(context, builder, table, args[0], place))

    return table.dtype(table, types.intp, column), make


@intrinsic
def invoke(
    typing: Any, function: Any, who: Any, first: Any, last: Any, counters: Any, words: Any
) -> Any:
    """Call a function that :func:`build_native` compiled; arrays are given by address."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = INT64.as_pointer()
        kind = ir.FunctionType(INT64, [*[INT64] * 3, pointer, pointer])
        memory = [builder.inttoptr(address, pointer) for address in args[4:]]
        return builder.call(
            builder.inttoptr(args[0], kind.as_pointer()), [*args[1:4], *memory]
        )

    return types.int64(*[types.int64] * 6), make


def _counter(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """A pointer to ``args[0][args[1]]``, where ``args[0]`` is an array or a pointer."""
    return pointer_to(context, builder, signature.args[0], args[0], args[1])


@dataclass(frozen=True)
class Inlined:
    """A kernel that the text calls from ``elements``; both names end in ``suffix``."""

    kernel: Callable[..., None]
    fastmath: bool
    single: bool
    suffix: str = ""


@dataclass(frozen=True)
class Request:
    """A text to compile, and how.

    ``text`` defines functions. Either it defines ``run``, which is called from Python; or
    ``body`` is the body of ``run``, which is called by its address, with the arrays
    ``names``.
    """

    text: str
    kernels: tuple[Inlined, ...]
    fastmath: bool = False  # of the functions that call ``elements``
    boundscheck: bool = False
    body: str = ""
    names: tuple[str, ...] = ()

    def reached(self) -> Hashable:
        """The keys of :func:`reach` for the kernels."""
        return tuple(reach(inlined.kernel) for inlined in self.kernels)

    def options(self) -> tuple[Hashable, ...]:
        """All fields, but without the kernels themselves."""
        options_of_kernels = tuple((k.fastmath, k.single, k.suffix) for k in self.kernels)
        return (
            self.text,
            options_of_kernels,
            self.fastmath,
            self.boundscheck,
            self.body,
            self.names,
        )

    def key(self) -> Hashable:
        """Equal for requests that give the same machine code."""
        return (self.reached(), self.options())


@dataclass(frozen=True, eq=False)
class Native:
    """Machine code ``run(who, first, last, counters, words)``, see :mod:`.source.text`."""

    address: int
    code: Any  # keeps the machine code alive


def build(request: Request, arrays: Sequence[NDArray[Any]]) -> Callable[..., Any]:
    """The compiled ``run(number, *arrays)`` for arrays of these types.

    It does not check what it is called with.
    """
    run: Callable[..., Any] = _compile_or_load(request, tuple(map(numba.typeof, arrays)))
    return run


def build_native(request: Request, arrays: Sequence[NDArray[Any]]) -> Native:
    """The compiled ``request.body`` for arrays of these types, called by its address."""
    code = _compile_or_load(request, tuple(map(numba.typeof, arrays)))
    return Native(code.address, code)


def words_of(arrays: Iterable[NDArray[Any]]) -> list[int]:
    """The address and shape of each array, as :func:`array_at` reads them.

    Takes a microsecond for each array.
    """
    words: list[int] = []
    for array in arrays:
        words.append(array.ctypes.data)
        words.extend(array.shape)
    return words


class TeamLaunchers(NamedTuple):
    """The compiled functions of :data:`.source.text.TEAM` for a loop on several threads."""

    launch: Callable[..., int]
    listen: Callable[..., None]


@functools.cache
def caller() -> Callable[..., int]:
    """The launcher of loops on one thread, compiled or from disk once in a process."""
    return _launchers("call")["call"]


@functools.cache
def team_launchers() -> TeamLaunchers:
    """The launchers of loops on several threads, compiled or from disk once in a process.

    They are apart from :func:`caller`, since the first calls of a loop take one thread.
    """
    return TeamLaunchers(**_launchers("launch", "listen"))


def _launchers(*names: str) -> dict[str, Callable[..., Any]]:
    # Signatures are given, so that compiling does not wait for the first call.
    number = numba.int64
    words = numba.int64[::1]
    launch = (
        number,  # function
        number,  # first
        number,  # last
        words,  # counters
        words,  # words
        words,  # boxes
        number,  # helpers
        number,  # known
        numba.boolean,  # sleepers
    )
    signatures = {
        "call": (words, words),
        "launch": launch,
        "listen": (words, number, number),
    }
    return compiled_functions(
        text=TEAM,
        signatures={name: signatures[name] for name in names},
        names=names_in_texts(),
        nogil=True,
    )


def compiled_functions(
    text: str,
    signatures: Mapping[str, tuple[Any, ...]],
    names: Mapping[str, Any],
    *,
    nogil: bool,
) -> dict[str, Callable[..., Any]]:
    """The functions of a text, compiled for their signatures or taken from disk.

    ``names`` are the values of the names that the text uses without defining them.
    """

    def make(kept: Any) -> dict[str, Callable[..., Any]]:
        if kept is None:
            scope: dict[str, Any] = {}
            file = "<meshprep functions>"
        else:
            scope = vars(kept)
            file = str(kept.__file__)
        scope |= names
        # numba takes functions of a file, so that machine code can be kept beside it.
        exec(compile(text, file, "exec"), scope)
        options = NO_WRAPPER_FOR_C | {"nogil": nogil, "error_model": "numpy"}
        return {
            name: cache.compiled(
                function=scope[name], signature=signature, kept=kept, options=options
            )
            for name, signature in signatures.items()
        }

    return _once_more_without(cache.module(cache.digest_of((text,)), text), make)


def _compile_or_load(request: Request, arrays: tuple[Any, ...]) -> Any:
    """The machine code of a request for arrays of these types."""
    # Code is kept on disk where its kernels have a key that holds in other processes.
    content = stable(request.reached())
    kept = None
    if content is not None and not request.boundscheck:
        name = cache.digest_of((content, request.options(), ", ".join(map(str, arrays))))
        kept = cache.module(name, _whole_text(request, arrays))
    return _once_more_without(kept, lambda kept: _compile(request, kept, arrays))


def _once_more_without(kept: Any, make: Callable[[Any], R]) -> R:
    """``make(kept)``; where the module on disk cannot be used, ``make(None)``."""
    with garbage_waits():
        try:
            return make(kept)
        except Exception as error:
            if kept is None or is_of_numba(error):
                raise
            # The folder was removed or is full, or a file was cut off.
            cache.forget(kept)
            return make(None)


def _whole_text(request: Request, arrays: tuple[Any, ...]) -> str:
    """The text of a request, with ``run`` where the request has the body of it."""
    if not request.body:
        return request.text
    lines = ["def run(who, first, last, counters, words):"]
    # An array takes a word for its address, and one for each axis.
    at = 0
    for i, (name, array) in enumerate(zip(request.names, arrays, strict=True)):
        lines.append(f"    {name} = array_at(words, {at}, T{i})")
        at += 1 + array.ndim
    return "\n".join([request.text, "", "", *lines, request.body])


def _compile(request: Request, kept: Any, arrays: tuple[Any, ...]) -> Any:
    """Compile a request in the scope of a module that is kept on disk, or without one."""
    common: dict[str, Any] = {
        # Division by zero gives inf or nan, as in NumPy: threads cannot raise.
        "error_model": "numpy",
        "nogil": True,
        "fastmath": request.fastmath,
    }
    if kept is None:
        scope: dict[str, Any] = {}
        module = __name__
        file = "<meshprep loop>"
    else:
        scope = vars(kept)
        module = kept.__name__
        file = kept.__file__
    known = names_in_texts()
    taken = known.keys() & set(request.names)
    assert not taken, f"arrays have names of the functions {taken}"
    scope |= known
    scope |= {f"T{i}": array for i, array in enumerate(arrays)}

    # Compile the kernels, which ``elements`` calls by name.
    for inlined in request.kernels:

        def compile_one(
            function: Any, own: dict[str, Any], fast: bool = inlined.fastmath
        ) -> Any:
            options = common | {
                "boundscheck": request.boundscheck,
                "fastmath": fast,
            }
            # A call costs more than the helper itself: its rows are passed as structures.
            options |= FORCE_INLINE
            return numba.jit(**(options | own | INNER))(function)

        scope[f"kernel{inlined.suffix}"] = fresh(
            kernel=inlined.kernel, jit=compile_one, single=inlined.single, module=module
        )

    # Define the functions of the text; compile ``elements``, which ``run`` calls. The
    # second step of a strategy has no elements.
    exec(compile(_whole_text(request, arrays), file, "exec"), scope)
    for inlined in request.kernels:
        name = f"elements{inlined.suffix}"
        if name in scope:
            options = common | INNER | {"fastmath": inlined.fastmath}
            scope[name] = numba.jit(**options)(scope[name])

    # Compile ``run`` itself, without a wrapper that checks: binding has checked the arrays.
    if request.body:
        words = types.CPointer(types.int64)
        signature = types.int64(*[types.int64] * 3, words, words)
        return cache.compiled_native(
            function=scope["run"], signature=signature, kept=kept, options=common
        )
    return cache.compiled(
        function=scope["run"],
        signature=(numba.int64, *arrays),
        kept=kept,
        options=common | NO_WRAPPER_FOR_C,
    )


def names_in_texts() -> dict[str, Any]:
    """The values of the names that the generated texts use."""
    names: dict[str, Any] = {"np": np, "U": np.uint64}
    names |= launcher_constants()
    names |= {
        # Turns are shared, and waited for, by atomic steps.
        "fetch_add": fetch_add,
        "look": look,
        "swap": swap,
        "rest": rest,
        "table_entry": table_entry,
        "raises": raises,
        "array_at": array_at,
        "invoke": invoke,
    }
    names |= {
        # Rows are found by their numbers.
        "least": vectors.least,
        "mapped": vectors.mapped,
        "four_from": vectors.four_from,
        "four_of": vectors.four_of,
        "ordered4": vectors.ordered4,
        "mapped4": vectors.mapped4,
    }
    names |= {
        # Rows are loaded and stored as vectors.
        "together": together,
        "stack": vectors.stack,
        "row": vectors.row,
        "spread": vectors.spread,
        "fetch": vectors.fetch,
        "load4": vectors.load4,
        "load4_spread": vectors.load4_spread,
        "store4": vectors.store4,
        "to_rows": vectors.to_rows,
        "add_row": vectors.add_row,
        "copy_row": vectors.copy_row,
        "load_row": vectors.load_row,
        "store_row": vectors.store_row,
        "copy_spread": vectors.copy_spread,
        "add_spread": vectors.add_spread,
        "clear": vectors.clear,
    }
    return names
