"""How numba compiles a function: options, machine code on disk, and events meanwhile."""

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import update_wrapper
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

R = TypeVar("R")

# Options for functions that only compiled ones call: no way in from Python or C, since
# each is a wrapper that takes time to compile. The documentation of ``numba.jit`` has
# neither; a maintainer names the first in https://github.com/numba/numba/issues/2078.
INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# The option for functions that Python calls and that C does not.
NO_WRAPPER_FOR_C: dict[str, Any] = {"no_cfunc_wrapper": True}
# The option for functions that become part of their caller, whatever their size. Public
# since numba 0.62; before it was there without a word in the documentation:
# https://github.com/numba/numba/pull/7538. ``inline="always"`` inlines before types are
# known, which compiles slowly and helps LLVM no more.
FORCE_INLINE: dict[str, Any] = {"forceinline": True}

# The names of the files of machine code, an index (``.nbi``) and code (``.nbc``), and of
# the folder beside the source where they lie:
# https://numba.readthedocs.io/en/0.62.0/developer/caching.html
MACHINE_CODE_FILES = "*.nb[ci]"
MACHINE_CODE_FOLDER = "__pycache__"
# Modules of compilers that hold a lock in Python: an exception that a signal raises there
# leaves it taken, and the next compilation waits for ever. There is no way to ask whether
# a lock is taken; https://github.com/numba/llvmlite/pull/690 shows how llvmlite holds it.
LOCKED_MODULES = ("llvmlite.binding.ffi", "numba.core.compiler_lock")

# The time of modification of every source, in seconds since 1970.
_SOURCE_TIME = 1.0e9
# The event of numba that says that a function is being compiled.
_COMPILE = "numba:compile"


def count_references(counts: bool) -> dict[str, Any]:
    """The option to count references to arrays, or not; nothing where numba lacks it.

    Counting takes an atomic addition for each array of a call, which makes helpers twice
    as slow: https://github.com/numba/numba/issues/9393. A function without the option
    takes that of its caller. The public interface can only leave them counted; the
    underscore of ``_nrt`` says that it is numba's own
    (https://github.com/numba/numba/pull/1077).
    """
    from numba.core.options import DefaultOptions

    if hasattr(DefaultOptions, "_nrt"):
        return {"_nrt": counts}
    return {}


def options_of(function: Any) -> dict[str, Any]:
    """The options with which a user has compiled a function; none for a plain function.

    A dispatcher does not show them in its public interface.
    """
    return dict(getattr(function, "targetoptions", {}))


def refuse_python(dispatcher: Any, refuse: Callable[..., None]) -> None:
    """Let Python's calls of a function with the options ``INNER`` run ``refuse`` instead.

    By itself such a call ends the process by a segmentation fault:
    https://github.com/numba/numba/issues/2541. The dispatcher must not enter what it
    compiles into its table of functions for Python, and asks ``_compile_for_args`` about
    calls that are not in the table.
    """
    dispatcher._insert = lambda *overload: None
    dispatcher._compile_for_args = refuse


def _call(function: Callable[[], R]) -> R:
    return function()


# Slots of a frame that gets 2 MB of memory of its own, of which it fills half.
_SLOTS = 140_000
_call_with_room = FunctionType(_call.__code__.replace(co_stacksize=_SLOTS), globals())


def with_room_for_frames(function: Callable[[], R]) -> R:
    """``function()``, with the frames of all that it calls in one piece of memory.

    CPython takes memory for the frames of functions in pieces of 16 KB, and gives each back
    as soon as it is empty. The calls of numba are deep: where they cross the end of a piece
    in a loop, the next one is taken and given back in each turn, 390,000 times in a first
    reorder, which was a tenth of its time. A frame that needs more gets a larger piece, and
    there is room behind it.
    """
    made: R = _call_with_room(function)
    return made


def compiled_function(dispatcher: Any, signature: tuple[Any, ...]) -> Any:
    """The compiled function for these types, which checks nothing it is called with.

    A dispatcher looks at the type of each argument in every call
    (https://github.com/numba/numba/pull/1273), which binding has done once. numba has no
    public name for the function behind it.
    """
    with_room_for_frames(lambda: dispatcher.compile(signature))
    return dispatcher.overloads[signature].entry_point


def overloads(dispatcher: Any) -> dict[Any, Any]:
    """What a function was compiled to, by types of arguments; not in the documentation."""
    return dict(dispatcher.overloads)


def cache_use(dispatcher: Any) -> Any:
    """How often a function was found on disk (``cache_hits``), and not (``cache_misses``).

    Counters by types of arguments. numba writes the same to a log only
    (``NUMBA_DEBUG_CACHE``).
    """
    return dispatcher.stats


def was_compiled(dispatcher: Any) -> bool:
    """True where a function was compiled for some types, and not only taken from disk."""
    return bool(cache_use(dispatcher).cache_misses)


def came_from_disk(native: Any) -> bool:
    """True for a function of ``numba.cfunc`` whose machine code was on disk."""
    return bool(native.cache_hits)


def date_source(path: Path) -> None:
    """Give a source the same time of modification everywhere.

    Before 0.68, numba's index holds the time and the size of the source, and machine code
    of another time is not taken; later ones hold a digest of the source instead
    (https://github.com/numba/numba/pull/10659), and need no date. With the same time,
    machine code from another machine fits.
    """
    if path.stat().st_mtime != _SOURCE_TIME:
        os.utime(path, (_SOURCE_TIME, _SOURCE_TIME))


def with_source(function: Callable[..., Any], file: Path) -> Any:
    """A copy of a function that names another file as its source.

    numba keeps machine code beside the file that the code object names, and has no option
    for another place: https://github.com/numba/numba/issues/9350.
    """
    assert isinstance(function, FunctionType)
    code = function.__code__.replace(co_filename=str(file))
    twin = FunctionType(
        code,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    return update_wrapper(twin, function, updated=())


def watch_compilation(began: Callable[[Any], None], ended: Callable[[], None]) -> None:
    """Call ``began(dispatcher)`` and ``ended()`` around each compilation, from now on.

    numba compiles one function at a time, with those that it calls: these count as part of
    the function. ``dispatcher`` is None where numba names none. The events are described
    in https://numba.readthedocs.io/en/0.60.0/developer/event_api.html, for developers of
    numba; users have no other way to know that a call compiles.
    """
    from numba.core import event

    event.register(_COMPILE, _listener(began, ended))


@contextmanager
def compilation_watched(
    began: Callable[[Any], None], ended: Callable[[], None]
) -> Iterator[None]:
    """:func:`watch_compilation` until the context ends."""
    from numba.core import event

    with event.install_listener(_COMPILE, _listener(began, ended)):
        yield


def _listener(began: Callable[[Any], None], ended: Callable[[], None]) -> Any:
    """A listener of numba that passes on the outermost events."""
    from numba.core import event

    class Outermost(event.Listener):
        """Counts the functions that are being compiled inside of each other."""

        depth = 0

        def on_start(self, event: Any) -> None:
            if self.depth == 0:
                began((event.data or {}).get("dispatcher"))
            self.depth += 1

        def on_end(self, event: Any) -> None:
            self.depth -= 1
            if self.depth == 0:
                ended()

    return Outermost()


@contextmanager
def garbage_waits() -> Iterator[None]:
    """Pause Python's search for garbage until the context ends.

    Compiling makes many objects that stay, and so many searches that find little.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def collect_no_garbage_while_compiling() -> None:
    """Pause Python's search for garbage during each compilation, from now on.

    The search takes a tenth of the time of compilation, and finds little. numba itself
    leaves the collector as it is.
    """
    was_enabled = False

    def pause(dispatcher: Any) -> None:
        nonlocal was_enabled
        was_enabled = gc.isenabled()
        gc.disable()

    def resume() -> None:
        if was_enabled:
            gc.enable()

    watch_compilation(pause, resume)
