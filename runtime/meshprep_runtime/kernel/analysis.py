"""A user's kernel: everything its result depends on, and a fresh compilation of it.

numba keeps what a function's globals were when it was first compiled. So a kernel is compiled
from a copy of the function, with the functions it calls, and the copy is kept under a key that
holds the code and every value it reaches: a changed constant or helper makes a new key.
Functions that are reached as attributes of a module are numba's, and keep numba's habits.
Functions of NumPy and of the standard library count by name: their version is in the key.
"""

import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..errors import MeshprepError
from ..plan import LoopPlan

GENERATOR = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

# numba's options for functions that only compiled ones call: no way in from Python or C.
INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

KNOWN_PACKAGES = frozenset({"_heapq", "builtins", "cmath", "math", "numba", "numpy", "operator"})


def reach(kernel: Callable[..., None]) -> Hashable:
    """A key that is equal for functions with the same code that reach the same values.

    O(code + bytes of global arrays). Objects of unknown kinds count by identity.
    """
    return _describe(kernel, _Met({}, set()), ())


def stable(key: Hashable) -> object | None:
    """The key of :func:`reach` in words that mean the same in another process.

    None where it holds an object that counts by identity, or a function that calls itself. O(code).
    """
    try:
        return _words(key)
    except _Unstable:
        return None


def fresh(
    kernel: Callable[..., None],
    jit: Callable[..., Any],
    single: bool = False,
    module: str = __name__,
) -> Any:
    """Compile a copy of the kernel and of the functions it reaches, with their present globals.

    ``jit(function, options)`` compiles, with the options of what the user had compiled. ``single``:
    constants count as ``f4``, as NumPy has them beside ``f4``; numba would compute in ``f8``.
    Copies name ``module`` as theirs, where numba finds machine code: the kernel's own may be
    missing.
    """
    return _copy(kernel, jit, {}, single, module)


def takes_single(dtypes: Iterable[np.dtype]) -> bool:
    """True where constants are to be ``f4``: beside ``f4`` arguments and none of ``f8``."""
    found = {dtype.str for dtype in dtypes}
    return "<f4" in found and "<f8" not in found


class _Met(NamedTuple):
    """Functions that were met, by their number in that order, and what is being described."""

    number: dict[int, int]
    under_way: set[int]


def _describe(value: Any, seen: _Met, names: tuple[str, ...]) -> Hashable:
    function = getattr(value, "py_func", value)
    if _is_known(function):
        # ufuncs of NumPy before 2.2 name no module
        return ("known", getattr(function, "__module__", "numpy"), function.__name__)
    if isinstance(function, FunctionType):
        return _describe_function(function, _options(value), seen)
    if isinstance(value, ModuleType):
        return _describe_module(value, seen, names)
    if isinstance(value, np.ndarray):
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return ("array", repr(value.dtype), value.shape, content)
    if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
        return ("named tuple", value.__module__, value.__qualname__, value._fields)
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", ())
        return ("tuple", fields, tuple(_describe(v, seen, names) for v in value))
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return (type(value).__name__, repr(value))
    return ("object", _Same(value))


def _describe_module(module: ModuleType, seen: _Met, names: tuple[str, ...]) -> Hashable:
    """What a module holds under some names; modules in it are followed, NumPy's are not."""
    if id(module) in seen.under_way:
        return ("module", module.__name__)
    known, inside = module.__name__.partition(".")[0] in KNOWN_PACKAGES, []
    seen.under_way.add(id(module))
    for name in sorted(vars(module).keys() & names):
        value = vars(module)[name]
        if not (known and isinstance(value, ModuleType)):
            inside.append((name, _describe(value, seen, names)))
    seen.under_way.discard(id(module))
    return ("module", module.__name__, tuple(inside))


def _describe_function(function: FunctionType, options: dict[str, Any], seen: _Met) -> Hashable:
    if id(function) in seen.number:
        # Functions may share a name: which one was met again, its number says.
        number = seen.number[id(function)]
        under_way = id(function) in seen.under_way
        return _Recursion(number) if under_way else ("again", number)
    seen.number[id(function)] = len(seen.number)
    seen.under_way.add(id(function))
    names = tuple(_names(function.__code__))
    reached = [(n, _describe(v, seen, names)) for n, v in _globals(function)]
    cells = [_describe(c.cell_contents, seen, names) for c in function.__closure__ or ()]
    defaults = _describe(function.__defaults__, seen, ())
    settings = repr(sorted(options.items()))
    # machine code names the module of a compiled function, which it loads
    own = (function.__code__, settings, function.__module__ if options else "")
    seen.under_way.discard(id(function))
    return ("function", *own, tuple(reached), tuple(cells), defaults)


def _is_known(value: Any) -> bool:
    """True for what a package of a known version holds under its own name."""
    package, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if isinstance(value, np.ufunc):
        package = "numpy"
    if not isinstance(package, str) or package.partition(".")[0] not in KNOWN_PACKAGES:
        return False
    return isinstance(name, str) and getattr(sys.modules.get(package), name, None) is value


class _Unstable(Exception):
    pass


@dataclass(frozen=True)
class _Recursion:
    """A function that is reached from itself, by its number."""

    number: int


def _words(key: Hashable) -> object:
    # numba loads functions that call themselves from disk, and they crash when they are called
    if isinstance(key, _Same | _Recursion):
        raise _Unstable
    if isinstance(key, tuple):
        return tuple(map(_words, key))
    if isinstance(key, frozenset):
        return sorted(repr(_words(k)) for k in key)
    if isinstance(key, CodeType):
        names = (key.co_names, key.co_varnames, key.co_freevars, key.co_cellvars)
        shape = (key.co_name, key.co_flags, key.co_argcount)
        return (*shape, key.co_code, key.co_exceptiontable, names, _words(key.co_consts))
    return (type(key).__name__, repr(key))


class _Same:
    """Equal only to itself; keeps the object alive, so that its identity is not given away."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _copy(
    value: Any, jit: Callable[..., Any], made: dict[int, Any], single: bool, module: str
) -> Any:
    function = getattr(value, "py_func", value)
    if not isinstance(function, FunctionType) or _is_known(function):
        return np.float32(value) if single and type(value) is float else value
    if id(function) in made:
        return made[id(function)]
    scope: dict[str, Any] = {"__name__": module}
    cells = tuple(CellType() for _ in function.__closure__ or ())
    code = _single(function.__code__) if single else function.__code__
    twin = FunctionType(code, scope, function.__name__, function.__defaults__, cells)
    # Noted before its callees are copied, for functions that call themselves.
    made[id(function)] = compiled = jit(twin, _options(value))
    scope |= {n: _copy(v, jit, made, single, module) for n, v in _globals(function)}
    for cell, old in zip(cells, function.__closure__ or (), strict=True):
        cell.cell_contents = _copy(old.cell_contents, jit, made, single, module)
    return compiled


def _single(code: CodeType) -> CodeType:
    """The code with its ``f8`` constants as ``f4``."""
    constants = tuple(np.float32(c) if type(c) is float else c for c in code.co_consts)
    return code.replace(co_consts=constants)


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


def check_parameters(kernel: Callable[..., None], plan: LoopPlan) -> None:
    function = getattr(kernel, "py_func", kernel)
    if not inspect.isfunction(function):
        raise MeshprepError(
            f"loop '{plan.loop.name}': the kernel is a {type(kernel).__name__}, "
            "must be a Python function"
        )
    wanted = [
        f"{a.name}[{i}]" if a.map is not None and a.columns is None else a.name
        for a in plan.loop.args
        for i in a.kernel_columns
    ]
    code = function.__code__
    if code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        raise MeshprepError(
            f"kernel '{function.__name__}' has *, ** or keyword parameters: it must have "
            f"{len(wanted)} plain ones"
        )
    if code.co_flags & GENERATOR:
        raise MeshprepError(
            f"kernel '{function.__name__}' is a generator or coroutine: use no yield"
        )
    if code.co_argcount != len(wanted):
        raise MeshprepError(
            f"kernel '{function.__name__}' has {code.co_argcount} parameters, but loop "
            f"'{plan.loop.name}' hands it {len(wanted)}: {', '.join(wanted)}"
        )


@dataclass(frozen=True)
class DeviceFunction:
    """The body for one element, in CUDA C."""

    name: str  # the function's name
    # Its definition, ``__device__ void NAME(...)``, with what it needs before it: a pointer to
    # ``dim`` values for each argument and index in the order of the loop, as a Python kernel has
    # rows; ``const`` where it only reads.
    text: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z_]\w*", self.name, re.ASCII):
            raise MeshprepError(f"device function '{self.name}': not a name that C takes")
        if not re.search(rf"\b{self.name}\s*\(", self.text):
            raise MeshprepError(f"device function '{self.name}' does not stand in its text")


def name_of(function: DeviceFunction | Callable[..., None]) -> str:
    return function.name if isinstance(function, DeviceFunction) else function.__name__
