"""The decorators of every compiled function of meshprep.

A ``kernel`` is called from Python; a ``helper`` only by kernels and helpers, so that it
needs no wrapper for Python. Both are numba's ``njit`` with numba's own cache. The cache
lies in a folder named by a digest of all that went into a kernel (:mod:`machine_code`), so
that no change is missed.
"""

import hashlib
import inspect
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import update_wrapper
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from meshprep_runtime._numba import compiling
from meshprep_runtime._numba.installed import cache_beside_source
from meshprep_runtime.kernel import cache

from .machine_code import digest, folder, forget_unused, tuples

__all__ = [
    "KERNELS",
    "arrayless",
    "clock",
    "from_python",
    "helper",
    "inlined",
    "kernel",
    "merged",
]

Function = TypeVar("Function", bound=Callable[..., Any])

# All kernels of the modules that were imported.
KERNELS: list[Any] = []


def kernel(function: Function) -> Function:
    """Compile a function that Python calls; it runs without the GIL.

    Of a helper it makes a second function.
    """
    compiled = from_python(function)
    KERNELS.append(compiled)
    return compiled


def helper(function: Function) -> Function:
    """Compile a function that only kernels and helpers call."""
    return _helper(function, compiling.count_references(True))


def arrayless(function: Function) -> Function:
    """A helper that makes no arrays: references to arrays are not counted in it.

    One that takes many arrays compiles in half the time, and calls of it cost less.
    """
    return _helper(function, compiling.count_references(False))


def inlined(function: Function) -> Function:
    """A helper of innermost loops: its code goes into the caller's, whatever its size.

    It must not make arrays: references to arrays are not counted in it, since counting
    would cost an atomic addition for each array of each call.
    """
    return _helper(function, compiling.FORCE_INLINE | compiling.count_references(False))


def merged(function: Function) -> Function:
    """A helper that one caller has, and that brings other helpers together.

    numba copies its statements into the caller's, so that LLVM optimises what it calls once
    and not twice. Of large helpers the copying takes longer than that.
    """
    return _helper(function, {"inline": "always"})


def from_python(function: Function) -> Function:
    """A function that Python can call, of a function or of a helper under test."""
    return cast(Function, CachedKernel(getattr(function, "py_func", function)))


def clock() -> float:
    """``time.perf_counter`` without the seconds of compilation, and of waits for it."""
    return time.perf_counter() - _COMPILING.seconds()


def _helper(function: Function, options: dict[str, Any]) -> Function:
    """Compile a helper with further options of numba."""
    jit: Any = numba.njit
    dispatcher = jit(**(compiling.INNER | options))(function)

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise TypeError(f"{function.__qualname__} is a helper: only kernels can call it")

    compiling.refuse_python(dispatcher, refuse)
    return cast(Function, dispatcher)


class CachedKernel:
    """A kernel that numba compiles and keeps by its documented means.

    numba keeps machine code beside the file that a function names as its source. Here this
    is a file in a folder named by a digest of the kernel, and of meshprep's named tuples,
    which numba knows only by their names. numba stores the types of a call under the next
    free number, so that two processes at once could take one number for two types. So a
    process that compiles locks the folder, and seals it before others may write. The first
    call locks it before it looks for machine code: where two processes need a kernel at
    once, one compiles it and the other waits for that.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._dispatcher: Any = None
        self._folder: Path | None = None
        # A signal handler may call the kernel while its thread makes the dispatcher.
        self._making = threading.RLock()
        # Whether the kernel has been called in this process, so that its code is there.
        self._called = False
        # The thread that is compiling, and its lock.
        self._locked: tuple[int, cache.Lock] | None = None

    def __call__(self, *args: Any, **named: Any) -> Any:
        dispatcher = self._dispatcher or self._make()
        try:
            if not self._called:
                self._compile_once(dispatcher, args, named)
            return dispatcher(*args, **named)
        except OSError as error:
            # Kernels open no files: numba could not write machine code.
            if self._folder is None:
                raise
            cache.keep_nothing(cache.named_root() or self._folder, error)
            self._dispatcher = None
            return self._make()(*args, **named)
        finally:
            if self._locked is not None:
                self._keep()

    @property
    def stats(self) -> Any:
        """Calls by types of arguments: found in the cache, and not found."""
        return compiling.cache_use(self._dispatcher or self._make())

    @property
    def overloads(self) -> dict[Any, Any]:
        """The compiled functions by types of arguments."""
        if self._dispatcher is None:
            return {}
        return compiling.overloads(self._dispatcher)

    @property
    def signatures(self) -> list[Any]:
        """The types of arguments that it was compiled for."""
        return list(self.overloads)

    def lock(self) -> None:
        """Lock the folder; called when numba begins to compile the kernel for new types."""
        if self._folder is not None and not self._is_locked_here():
            self._locked = (threading.get_ident(), cache.Lock(self._folder))
            forget_unused(self._folder.parents[1])

    def _is_locked_here(self) -> bool:
        """Whether this thread holds the lock of the folder."""
        return self._locked is not None and self._locked[0] == threading.get_ident()

    def _compile_once(
        self, dispatcher: Any, args: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        """Compile for the types of a first call, or load what another process compiled."""
        call_arguments = inspect.signature(self.py_func).bind(*args, **named).args
        types = tuple(map(numba.typeof, call_arguments))
        if self._folder is None:
            compiling.compiled_function(dispatcher, types)
            self._called = True
            return
        # A signal handler may call the kernel while its thread compiles it.
        if self._is_locked_here():
            return
        with _COMPILING.waiting():
            lock = cache.Lock(self._folder)
        # Another thread may have done it while this one waited for the lock.
        if self._called:
            with lock:
                return
        self._locked = (threading.get_ident(), lock)
        forget_unused(self._folder.parents[1])
        compiling.compiled_function(dispatcher, types)
        self._called = True
        self._keep()

    def _make(self) -> Any:
        """The dispatcher, which is made once, also for threads that need it at once."""
        with self._making:
            if self._dispatcher is None:
                self._dispatcher = self._new_dispatcher()
            return self._dispatcher

    def _new_dispatcher(self) -> Any:
        """A dispatcher with a cache in the kernel's folder, if there is one."""
        function = self.py_func
        parent = folder()
        key = hashlib.sha256(f"{tuples()} {digest(function)}".encode()).hexdigest()[:32]
        name = f"{function.__module__}.{function.__qualname__}-{key}"
        source = None
        if parent is not None:
            source = cache.source(parent / name, f"# {name}\n")
        self._folder = None if source is None else source.parent
        if source is not None:
            cache.mark_used(source.parent)
            function = compiling.with_source(function, source)
        jit: Any = numba.njit
        options = compiling.NO_WRAPPER_FOR_C | {"nogil": True, "cache": source is not None}
        with cache_beside_source():
            dispatcher = jit(**options)(function)
        _COMPILING.kernel_of[dispatcher] = self
        return dispatcher

    def _keep(self) -> None:
        """Seal the folder that this thread has locked, if it has compiled."""
        if self._locked is not None and self._is_locked_here():
            lock = self._locked[1]
            self._locked = None
            with lock:
                if compiling.was_compiled(self._dispatcher):
                    cache.seal(lock.folder)


class _Compiling:
    """Adds up the seconds of compilation, and locks the folders of kernels meanwhile.

    Seconds in which another process compiles what this one waits for count, too; those in
    which several threads compile or wait count once.
    """

    def __init__(self) -> None:
        # How many threads compile or wait, since when one does, and seconds before that.
        self._count = 0
        self._begun = 0.0
        self._spent = 0.0
        # A signal handler may compile while its thread counts.
        self._counting = threading.RLock()
        # The kernel of each dispatcher.
        self.kernel_of: dict[Any, CachedKernel] = {}

    def begin(self, dispatcher: Any) -> None:
        """Called when numba begins to compile."""
        self._enter()
        kernel = self.kernel_of.get(dispatcher)
        if kernel is not None:
            kernel.lock()

    def end(self) -> None:
        """Called when numba has compiled."""
        self._leave()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the seconds of a wait for another process."""
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def seconds(self) -> float:
        """The seconds of all compilation and waits so far."""
        with self._counting:
            if self._count == 0:
                return self._spent
            return self._spent + time.perf_counter() - self._begun

    def _enter(self) -> None:
        with self._counting:
            if self._count == 0:
                self._begun = time.perf_counter()
            self._count += 1

    def _leave(self) -> None:
        with self._counting:
            self._count -= 1
            if self._count == 0:
                self._spent += time.perf_counter() - self._begun


_COMPILING = _Compiling()
compiling.watch_compilation(_COMPILING.begin, _COMPILING.end)
compiling.collect_no_garbage_while_compiling()
