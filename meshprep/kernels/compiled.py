"""The decorators of every compiled function of meshprep.

A ``kernel`` is called from Python; a ``helper`` by kernels and helpers only, which spares it the
way in from Python. Both are numba's ``njit``, with numba's own cache: in a folder named by a digest
of all that went into a kernel (:mod:`machine_code`), so that no change is missed.
"""

import gc
import hashlib
import threading
import time
from collections.abc import Callable
from functools import update_wrapper
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

import numba
from numba.core import event
from numba.core.options import DefaultOptions

from meshprep_runtime.kernel import cache
from meshprep_runtime.kernel.analysis import INNER

from .machine_code import digest, folder, forget_unused, mark_used, tuples

__all__ = ["KERNELS", "clock", "from_python", "helper", "inlined", "kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])

# Whether references to arrays are counted: an atomic addition an array and a call. A helper that is
# not told takes after its caller. Where a version of numba lacks the option, all are counted, and
# code takes twice as long.
COUNTED = hasattr(DefaultOptions, "_nrt")
# Every kernel of the modules that were imported.
KERNELS: list[Any] = []


def kernel(function: Function) -> Function:
    """Compile a function called from Python without the GIL; of a helper, a second function."""
    made = from_python(function)
    KERNELS.append(made)
    return made


def helper(function: Function) -> Function:
    """Compile a function that only kernels and helpers call."""
    return _helper(function)


def inlined(function: Function) -> Function:
    """A helper of innermost loops: its code goes into the caller's, whatever its size.

    It must not make arrays: references to those that it is given are not counted, which would cost
    an atomic addition an array wherever one call leads to another.
    """
    return _helper(function, forceinline=True)


def from_python(function: Function) -> Function:
    """A function, or a helper that is to be tested, as something that Python can call."""
    return cast(Function, CachedKernel(getattr(function, "py_func", function)))


def clock() -> float:
    """``time.perf_counter`` without the seconds in which this process compiled."""
    return time.perf_counter() - _COMPILING.seconds()


def _helper(function: Function, **options: bool) -> Function:
    jit: Any = numba.njit
    counts = {"_nrt": not options.get("forceinline", False)} if COUNTED else {}
    made = jit(**(INNER | options | counts))(function)

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise TypeError(f"{function.__qualname__} is a helper: only kernels can call it")

    # There is nothing that Python could call, and it would try.
    made._insert, made._compile_for_args = (lambda *overload: None), refuse
    return cast(Function, made)


class CachedKernel:
    """A kernel that numba compiles and keeps by its documented means.

    numba keeps machine code beside the file that a function names as its source: here one in a
    folder that a digest names, of the kernel and of meshprep's named tuples, which numba knows by
    their names alone. It adds the types of a call under the next free number, so that
    two processes that do so at once could take one number for two types; whoever compiles locks
    the folder, and seals it before others may write.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._made: Any = None
        # what a thread of this number locked when it began to compile
        self._locked: tuple[int, cache.Lock] | None = None

    def __call__(self, *args: Any, **named: Any) -> Any:
        made = self._made or self._make()
        try:
            return made(*args, **named)
        finally:
            if self._locked is not None:
                self._keep()

    @property
    def stats(self) -> Any:
        """Calls by types of arguments: found in the cache, and not."""
        return (self._made or self._make()).stats

    @property
    def overloads(self) -> dict[Any, Any]:
        """What was compiled, by types of arguments."""
        return {} if self._made is None else dict(self._made.overloads)

    @property
    def signatures(self) -> list[Any]:
        """The types of arguments that it was compiled for."""
        return list(self.overloads)

    def lock(self) -> None:
        """Called where numba begins to compile the kernel for further types."""
        if self._place is not None:
            self._locked = (threading.get_ident(), cache.Lock(self._place))
            forget_unused(self._place.parents[1])

    def _make(self) -> Any:
        function, place = self.py_func, folder()
        key = hashlib.sha256(f"{tuples()} {digest(function)}".encode()).hexdigest()[:32]
        name = f"{function.__module__}.{function.__qualname__}-{key}"
        kept = None if place is None else cache.source(place / name, f"# {name}\n")
        self._place: Path | None = None if kept is None else kept.parent
        if self._place is not None:
            mark_used(self._place)
        own = function if kept is None else _standing_in(kept, function)
        jit: Any = numba.njit
        with cache.beside_its_source():
            made = jit(nogil=True, no_cfunc_wrapper=True, cache=kept is not None)(own)
        _COMPILING.told[made] = self
        self._made = made
        return made

    def _keep(self) -> None:
        """Seal what this thread has compiled."""
        if self._locked is not None and self._locked[0] == threading.get_ident():
            lock, self._locked = self._locked[1], None
            with lock:
                cache.seal(lock.folder)


def _standing_in(file: Path, function: Callable[..., Any]) -> Any:
    """A copy of the function that names another file as its source."""
    assert isinstance(function, FunctionType)
    own = function.__code__.replace(co_filename=str(file))
    twin = FunctionType(
        own, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    return update_wrapper(twin, function, updated=())


class _Compiling(event.Listener):
    """Adds up the seconds; numba compiles one function at a time, with those that it calls."""

    def __init__(self) -> None:
        self._depth, self._begun, self._spent = 0, 0.0, 0.0
        self._collecting = False
        # kernels to tell, by what numba made of them
        self.told: dict[Any, CachedKernel] = {}

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._begun = time.perf_counter()
            # looking for garbage meanwhile takes a tenth of the time, and finds little
            self._collecting = gc.isenabled()
            gc.disable()
            if (kernel := self.told.get((event.data or {}).get("dispatcher"))) is not None:
                kernel.lock()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._spent += time.perf_counter() - self._begun
            if self._collecting:
                gc.enable()

    def seconds(self) -> float:
        under_way = time.perf_counter() - self._begun if self._depth else 0.0
        return self._spent + under_way


_COMPILING = _Compiling()
event.register("numba:compile", _COMPILING)
