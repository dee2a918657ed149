"""The decorators of every compiled function of meshprep.

A ``kernel`` is called from Python; a ``helper`` by kernels and helpers only, which spares it the
way in from Python and machine code of its own. Machine code lies in files (:mod:`machine_code`)
named by a digest of all that went into it: the code of the kernel and of every helper it reaches,
the constants these read, the types and the processor. So no change is missed, one that a kernel
does not reach compiles nothing, and processes that compile the same write the same file.
"""

import hashlib
import pickle
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any, TypeVar, cast

import llvmlite.binding as llvm
import numba
from numba.core import caching, codegen, compiler, config, event, serialize, types
from numba.core.runtime import rtsys

from meshprep_runtime.kernel.analysis import reach, stable

from .compiler import HelperCompiler, KernelCompiler, libraries
from .machine_code import folder, load, save, shipped

__all__ = ["KERNELS", "clock", "digest", "from_python", "helper", "inlined", "kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])

# In calls between compiled functions these are taken as 64 bits.
NARROW = (types.int8, types.int16, types.int32, types.uint8, types.uint16, types.uint32)
CHECKED = getattr(config, "BOUNDSCHECK", None)
# Every kernel of the modules that were imported.
KERNELS: list[Any] = []


def kernel(function: Function) -> Function:
    """Compile a function that is called from Python; it lets other threads run."""
    made = from_python(function)
    KERNELS.append(made)
    return made


def helper(function: Function) -> Function:
    """Compile a function that only kernels and helpers call."""
    # of what it is not told it takes after its caller
    return _helper(function, _nrt=True)


def inlined(function: Function) -> Function:
    """A helper of innermost loops: its code goes into the caller's, whatever its size.

    It must not make arrays: references to those that it is given are not counted, which would cost
    an atomic addition an array wherever one call leads to another.
    """
    return _helper(function, forceinline=True, _nrt=False)


def from_python(function: Function) -> Function:
    """A function, or a helper that is to be tested, as something that Python can call."""
    jit: Any = numba.njit
    options = {"nogil": True, "no_cfunc_wrapper": True}
    plain = getattr(function, "py_func", function)
    made = jit(pipeline_class=KernelCompiler, **options)(plain)
    made._cache = _Kept(made)
    _take_one_integer(made)
    return cast(Function, made)


def clock() -> float:
    """``time.perf_counter`` without the seconds in which this process compiled."""
    return time.perf_counter() - _COMPILING.seconds()


def _helper(function: Function, **options: bool) -> Function:
    jit: Any = numba.njit
    options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    made = jit(pipeline_class=HelperCompiler, **options)(function)

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise TypeError(f"{function.__qualname__} is a helper: only kernels can call it")

    _take_one_integer(made)
    # There is nothing that Python could call, and it would try.
    made._insert, made._compile_for_args = (lambda *overload: None), refuse
    return cast(Function, made)


def _take_one_integer(made: Any) -> None:
    """Calls with a number from an array, or with a literal, are no reason to compile again."""
    template = made.get_call_template

    def widened(args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        found = template([_wide(a) for a in args], {k: _wide(a) for k, a in kws.items()})
        return (*found[:2], args, kws)

    made.get_call_template = widened


def _wide(argument: Any) -> Any:
    plain = types.unliteral(argument)
    return types.int64 if plain in NARROW else plain


class _Compiling(event.Listener):
    """Adds up the seconds; numba compiles one function at a time, with those that it calls."""

    def __init__(self) -> None:
        self._depth, self._begun, self._spent = 0, 0.0, 0.0

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._begun = time.perf_counter()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._spent += time.perf_counter() - self._begun

    def seconds(self) -> float:
        under_way = time.perf_counter() - self._begun if self._depth else 0.0
        return self._spent + under_way


_COMPILING = _Compiling()
event.register("numba:compile", _COMPILING)


class _Kept(caching._Cache):
    """The machine code of one kernel on disk, one file for all that it depends on."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher

    @property
    def cache_path(self) -> str:
        return str(folder())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel for these types, None where there is none."""
        # what numba would load here, for half a second, serves compiling alone
        rtsys.initialize(target_context)
        triple, *own = target_context.codegen().magic_tuple()
        came = shipped()
        family = "" if came is None else self._name(sig, (triple, came.family, ""))
        for content in load(self._name(sig, (triple, *own)), family):
            # what was compiled may name modules that have moved since
            with suppress(pickle.UnpicklingError, EOFError, ImportError, AttributeError):
                return _rebuilt(target_context, *pickle.loads(content))
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep it for other processes."""
        if folder() is not None and not data.library.has_dynamic_globals:
            name = self._name(sig, data.codegen.magic_tuple())
            # the annotated source is long, and nobody reads it
            save(name, serialize.dumps(data._replace(type_annotation="")._reduce()))

    def _name(self, sig: Any, target: tuple[str, ...]) -> str:
        function = self._dispatcher.py_func
        parts = (digest(self._dispatcher), _describe(sig), target, CHECKED)
        name = hashlib.sha256(repr(parts).encode()).hexdigest()
        return f"{function.__module__}.{function.__qualname__}-{name[:32]}.nbc"

    def enable(self) -> None:
        """Always enabled."""

    def disable(self) -> None:
        """Always enabled."""

    def flush(self) -> None:
        """Nothing is kept in memory."""


def _rebuilt(target_context: Any, stored: Any, function: Any, *others: Any) -> Any:
    """A kernel from its file.

    Its bitcode, half of the time that this would take, is read where a kernel that calls it is
    compiled.
    """
    name, kind, (code, bitcode) = stored
    own = target_context.codegen()
    own._engine._defined_symbols |= {function.llvm_func_name, function.llvm_cpython_wrapper_name}
    bare = name, kind, (code, _no_bitcode())
    # while another kernel is compiled, this one would be taken for a helper
    with libraries(own, partial(codegen.JITCodeLibrary, own)):
        made = compiler.CompileResult._rebuild(target_context, bare, function, *others)
    made.library._get_module_for_linking = cache(partial(llvm.parse_bitcode, bitcode))
    return made


@cache
def _no_bitcode() -> bytes:
    """A module without functions."""
    return bytes(llvm.parse_assembly("").as_bitcode())


@cache
def digest(dispatcher: Any) -> str:
    """A digest of the code of a kernel, and of every function and value that it reaches."""
    known = stable(reach(dispatcher))
    if known is None:
        raise AssertionError(f"{dispatcher}: reaches something that another process cannot name")
    return hashlib.sha256(repr(known).encode()).hexdigest()


def _describe(arguments: Iterable[Any]) -> tuple[object, ...]:
    """The types of a call in words; named tuples with their fields, whose order counts."""
    found: list[object] = []
    for one in arguments:
        inner = _describe(getattr(one, "types", ()))
        found.append((str(one), getattr(one, "fields", ()), inner))
    return tuple(found)
