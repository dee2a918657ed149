"""A user's kernel: everything its result depends on, and a fresh compilation of it.

numba keeps what a function's globals were when it was first compiled. So a kernel is compiled
from a copy of the function, with the functions it calls, and the copy is kept under a key that
holds the code and every value it reaches: a changed constant or helper makes a new key.
Functions that are reached as attributes of a module are numba's, and keep numba's habits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np


def reach(kernel: Callable[..., None]) -> Hashable:
    """A key that is equal for functions with the same code that reach the same values.

    O(code + bytes of global arrays). Objects of unknown kinds count by identity.
    """
    return _describe(kernel, set(), ())


def fresh(kernel: Callable[..., None], jit: Callable[..., Any]) -> Any:
    """Compile a copy of the kernel and of the functions it reaches, with their present globals.

    Parameters
    ----------
    kernel : function, or one compiled by numba
    jit : function
        ``jit(function, options)`` returns the compiled function; ``options`` are those of a
        function that the user has compiled, else empty.
    """
    return _copy(kernel, jit, {})


def _describe(value: Any, seen: set[int], names: tuple[str, ...]) -> Hashable:
    function = getattr(value, "py_func", value)
    if isinstance(function, FunctionType):
        return _describe_function(function, _options(value), seen)
    if isinstance(value, ModuleType):
        inside = sorted(n for n in set(names) if n in vars(value))
        # Modules of modules (np.linalg) are not followed; their numbers and functions are.
        found = [(n, getattr(value, n)) for n in inside]
        plain = [(n, v) for n, v in found if not isinstance(v, ModuleType)]
        return ("module", value.__name__, tuple((n, _describe(v, seen, ())) for n, v in plain))
    if isinstance(value, np.ndarray):
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return ("array", value.dtype.str, value.shape, content)
    if isinstance(value, tuple):
        return ("tuple", tuple(_describe(v, seen, names) for v in value))
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return (type(value).__name__, repr(value))
    return ("object", _Same(value))


def _describe_function(function: FunctionType, options: dict[str, Any], seen: set[int]) -> Hashable:
    if id(function) in seen:
        return ("again", function.__qualname__)
    seen.add(id(function))
    names = tuple(_names(function.__code__))
    reached = [(n, _describe(v, seen, names)) for n, v in _globals(function)]
    cells = [_describe(c.cell_contents, seen, names) for c in function.__closure__ or ()]
    defaults = _describe(function.__defaults__, seen, ())
    settings = repr(sorted(options.items()))
    return ("function", function.__code__, settings, tuple(reached), tuple(cells), defaults)


class _Same:
    """Equal only to itself; keeps the object alive, so that its identity is not given away."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _copy(value: Any, jit: Callable[..., Any], made: dict[int, Any]) -> Any:
    function = getattr(value, "py_func", value)
    if not isinstance(function, FunctionType):
        return value
    if id(function) in made:
        return made[id(function)]
    scope: dict[str, Any] = {"__name__": function.__module__}
    cells = tuple(CellType() for _ in function.__closure__ or ())
    twin = FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)
    # Noted before its callees are copied, for functions that call themselves.
    made[id(function)] = compiled = jit(twin, _options(value))
    scope |= {n: _copy(v, jit, made) for n, v in _globals(function)}
    for cell, old in zip(cells, function.__closure__ or (), strict=True):
        cell.cell_contents = _copy(old.cell_contents, jit, made)
    return compiled


def _options(value: Any) -> dict[str, Any]:
    return dict(getattr(value, "targetoptions", {}))


def _globals(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name in sorted(set(_names(function.__code__))):
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
