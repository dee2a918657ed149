"""The key of a kernel, with all that its result depends on, and a fresh compilation of it.

numba keeps the values that a function's globals had when it was first compiled. So a kernel
is compiled from a copy of the function and of the functions it calls, and the copy is kept
under a key that holds the code and every value that it reaches: a changed constant or
helper makes a new key. Functions that are reached as attributes of a module are compiled by
numba itself, with the globals of their first compilation. Functions of NumPy and of the
standard library count by name, since their version is in the key.
"""

import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from .._numba.compiling import options_of
from ..errors import MeshprepError
from ..plan import LoopPlan
from .parameters import parameters_by_row

GENERATOR = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

# Packages whose functions count by name.
KNOWN_PACKAGES = frozenset(
    {"_heapq", "builtins", "cmath", "math", "numba", "numpy", "operator"}
)


def reach(kernel: Callable[..., None]) -> Hashable:
    """A key, equal for functions with the same code that reach the same values.

    O(code + bytes of global arrays). Objects of unknown kinds count by identity.
    """
    return _describe(kernel, _Met({}, set()), ())


def stable(key: Hashable) -> object | None:
    """The key of :func:`reach` in plain values, which are the same in every process.

    None where it holds an object that counts by identity, or a function that calls itself.
    O(code).
    """
    try:
        return _plain_values(key)
    except _Unstable:
        return None


def fresh(
    kernel: Callable[..., None],
    jit: Callable[..., Any],
    single: bool = False,
    module: str = __name__,
) -> Any:
    """Compile a copy of the kernel and of its functions, with their present globals.

    Parameters
    ----------
    kernel : function
    jit : function
        ``jit(function, options)`` compiles a function; ``options`` are those with which the
        user had compiled it.
    single : bool
        Make constants ``f4``, as NumPy treats them beside ``f4``; numba would compute in
        ``f8``.
    module : str
        The module of the copies, where numba finds machine code; that of the kernel may
        not exist.
    """
    return _compiled_copy(value=kernel, jit=jit, copies={}, single=single, module=module)


def names_of(kernel: Callable[..., None]) -> frozenset[str]:
    """The names of globals and attributes in a kernel and the functions that it reaches."""
    names: set[str] = set()
    for function, _, _ in _functions_reached(kernel, set()):
        names.update(_names_in_code(function.__code__))
    return frozenset(names)


def _functions_reached(
    value: Any, met: set[int]
) -> Iterator[tuple[FunctionType, dict[str, Any], list[Any]]]:
    """A kernel and the functions that it reaches, without those met before.

    Yields each function, the options it was compiled with, and the values that it reaches.
    """
    function = getattr(value, "py_func", value)
    if not isinstance(function, FunctionType) or is_known(function) or id(function) in met:
        return
    met.add(id(function))
    reached = [reached_value for _, reached_value in _globals(function)]
    reached += _cells(function)
    yield function, options_of(value), reached
    for reached_value in reached:
        yield from _functions_reached(reached_value, met)


def takes_single(dtypes: Iterable[np.dtype]) -> bool:
    """True where constants are to be ``f4``: with ``f4`` arguments and none of ``f8``."""
    codes = {dtype.str for dtype in dtypes}
    return "<f4" in codes and "<f8" not in codes


def may_be_fused(kernel: Callable[..., None]) -> bool:
    """True where the kernel reaches a function that its author compiled with ``fastmath``.

    Which operations are fused then depends on the code around.
    """
    return _is_fast(kernel, (), set())


def _is_fast(value: Any, names: tuple[str, ...], met: set[Hashable]) -> bool:
    """True where a value is, or reaches, a function that was compiled with ``fastmath``.

    ``names`` are the names in the code of the function that reaches the value.
    """
    # Functions may reach different values of one module.
    once = (id(value), names if isinstance(value, ModuleType) else ())
    if once in met:
        return False
    met.add(once)
    function = getattr(value, "py_func", value)
    if isinstance(value, ModuleType):
        if value.__name__.partition(".")[0] in KNOWN_PACKAGES:
            return False
        return any(_is_fast(vars(value).get(name), names, met) for name in names)
    if not isinstance(function, FunctionType) or is_known(function):
        return False
    if options_of(value).get("fastmath"):
        return True
    # Functions that it calls count, too, since they are inlined.
    own_names = tuple(_names_in_code(function.__code__))
    reached = [reached_value for _, reached_value in _globals(function)]
    reached += [cell.cell_contents for cell in function.__closure__ or ()]
    return any(_is_fast(reached_value, own_names, met) for reached_value in reached)


class _Met(NamedTuple):
    """The functions and modules that were met so far, by identity."""

    number: dict[int, int]  # of functions, in the order in which they were met
    under_way: set[int]  # functions and modules that are being described


def _describe(value: Any, met: _Met, names: tuple[str, ...]) -> Hashable:
    """The key of a value that a function with these names in its code reaches."""
    # Describe functions and modules by what they compute.
    function = getattr(value, "py_func", value)
    if is_known(function):
        # Ufuncs of NumPy before 2.2 have no ``__module__``.
        return ("known", getattr(function, "__module__", "numpy"), function.__name__)
    if isinstance(function, FunctionType):
        return _describe_function(function, options_of(value), met)
    if isinstance(value, ModuleType):
        return _describe_module(value, met, names)
    if isinstance(value, np.ndarray):
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return ("array", repr(value.dtype), value.shape, content)
    # Describe values by their types and contents, anything else by its identity.
    if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
        return ("named tuple", value.__module__, value.__qualname__, value._fields)
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", ())
        return ("tuple", fields, tuple(_describe(v, met, names) for v in value))
    if value is None or isinstance(
        value, bool | int | float | complex | str | bytes | np.generic
    ):
        return (type(value).__name__, repr(value))
    return ("object", _Same(value))


def _describe_module(module: ModuleType, met: _Met, names: tuple[str, ...]) -> Hashable:
    """The values of a module under some names.

    Modules in it are followed, but not those of known packages.
    """
    if id(module) in met.under_way:
        return ("module", module.__name__)
    # Modules inside known packages change with their versions alone.
    is_known_package = module.__name__.partition(".")[0] in KNOWN_PACKAGES
    values = []
    met.under_way.add(id(module))
    for name in sorted(vars(module).keys() & names):
        value = vars(module)[name]
        if not (is_known_package and isinstance(value, ModuleType)):
            values.append((name, _describe(value, met, names)))
    met.under_way.discard(id(module))
    return ("module", module.__name__, tuple(values))


def _describe_function(
    function: FunctionType, options: dict[str, Any], met: _Met
) -> Hashable:
    """The code of a function, and the keys of the values that it reaches."""
    # Functions may share a name: the number tells which of them is met again.
    if id(function) in met.number:
        number = met.number[id(function)]
        if id(function) in met.under_way:
            return _Recursion(number)
        return ("again", number)
    met.number[id(function)] = len(met.number)
    met.under_way.add(id(function))
    # Describe all that changes what the function computes.
    names = tuple(_names_in_code(function.__code__))
    reached = [(n, _describe(v, met, names)) for n, v in _globals(function)]
    cells = [_describe(value, met, names) for value in _cells(function)]
    defaults = _describe(function.__defaults__, met, ())
    met.under_way.discard(id(function))
    return (
        "function",
        function.__code__,
        repr(sorted(options.items())),
        # Machine code names the module of a compiled function, and loads it.
        function.__module__ if options else "",
        tuple(reached),
        tuple(cells),
        defaults,
    )


def is_known(value: Any) -> bool:
    """True for a function or class of a package of known version, under its own name."""
    package = getattr(value, "__module__", None)
    name = getattr(value, "__name__", None)
    if isinstance(value, np.ufunc):
        package = "numpy"
    if not isinstance(package, str) or package.partition(".")[0] not in KNOWN_PACKAGES:
        return False
    return isinstance(name, str) and getattr(sys.modules.get(package), name, None) is value


class _Unstable(Exception):
    """The key holds a value that is not the same in another process."""


@dataclass(frozen=True)
class _Recursion:
    """A function that is reached from itself, by its number."""

    number: int


def _plain_values(key: Hashable) -> object:
    """A key in plain values; raises _Unstable."""
    # Functions that call themselves crash when numba has loaded them from disk.
    if isinstance(key, _Same | _Recursion):
        raise _Unstable
    if isinstance(key, tuple):
        return tuple(map(_plain_values, key))
    if isinstance(key, frozenset):
        return sorted(repr(_plain_values(k)) for k in key)
    if isinstance(key, CodeType):
        names = (key.co_names, key.co_varnames, key.co_freevars, key.co_cellvars)
        shape = (key.co_name, key.co_flags, key.co_argcount)
        constants = _plain_values(key.co_consts)
        return (*shape, key.co_code, key.co_exceptiontable, names, constants)
    return (type(key).__name__, repr(key))


class _Same:
    """Equal only for the same object, which it keeps alive.

    Otherwise another object could get its identity.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _compiled_copy(
    value: Any, jit: Callable[..., Any], copies: dict[int, Any], single: bool, module: str
) -> Any:
    """A function, compiled from a copy; of a value that is no function, the value."""
    function = getattr(value, "py_func", value)
    if not isinstance(function, FunctionType) or is_known(function):
        if single and type(value) is float:
            return np.float32(value)
        return value
    if id(function) in copies:
        return copies[id(function)]
    # Compile a copy, whose globals and cells are filled afterwards with copies, too.
    scope: dict[str, Any] = {"__name__": module}
    cells = tuple(CellType() for _ in function.__closure__ or ())
    if single:
        code = _single(function.__code__)
    else:
        code = function.__code__
    twin = FunctionType(code, scope, function.__name__, function.__defaults__, cells)
    compiled = jit(twin, options_of(value))
    # Note the function before the functions that it reaches: one of them may be itself.
    copies[id(function)] = compiled
    copy_reached = partial(
        _compiled_copy, jit=jit, copies=copies, single=single, module=module
    )
    scope |= {name: copy_reached(reached) for name, reached in _globals(function)}
    for cell, old in zip(cells, function.__closure__ or (), strict=True):
        cell.cell_contents = copy_reached(old.cell_contents)
    return compiled


def _single(code: CodeType) -> CodeType:
    """The code with its ``f8`` constants as ``f4``."""
    constants = tuple(np.float32(c) if type(c) is float else c for c in code.co_consts)
    return code.replace(co_consts=constants)


def _globals(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The names and values of the globals that a function uses."""
    for name in sorted(set(_names_in_code(function.__code__))):
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _cells(function: FunctionType) -> list[Any]:
    """The values of a closure; None for a cell without a value yet."""
    values: list[Any] = []
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:
            values.append(None)
    return values


def _names_in_code(code: CodeType) -> Iterator[str]:
    """The names of globals and attributes, also in functions inside."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in_code(constant)


def check_parameters(kernel: Callable[..., None], plan: LoopPlan) -> None:
    """Raise MeshprepError unless a kernel is a function with the loop's parameters."""
    function = getattr(kernel, "py_func", kernel)
    if not inspect.isfunction(function):
        raise MeshprepError(
            f"loop '{plan.loop.name}': the kernel is a {type(kernel).__name__}, "
            "must be a Python function"
        )
    # The kernel gets a row for each argument and column, or the rows of each argument.
    by_row = []
    for parameter in parameters_by_row(plan.loop):
        index = f"[{parameter.columns[0]}]" if parameter.is_mapped else ""
        by_row.append(parameter.arg.name + index)
    by_argument = [arg.name for arg in plan.loop.args]
    # Compiled code passes plain parameters alone.
    code = function.__code__
    if code.co_kwonlyargcount or code.co_flags & (
        inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    ):
        raise MeshprepError(
            f"kernel '{function.__name__}' has *, ** or keyword parameters: it must have "
            f"{len(by_row)} plain ones"
        )
    if code.co_flags & GENERATOR:
        raise MeshprepError(
            f"kernel '{function.__name__}' is a generator or coroutine: use no yield"
        )
    if code.co_argcount not in (len(by_row), len(by_argument)):
        tuples = ""
        if len(by_argument) < len(by_row):
            tuples = f"; or {len(by_argument)}, tuples of rows: {', '.join(by_argument)}"
        raise MeshprepError(
            f"kernel '{function.__name__}' has {code.co_argcount} parameters, but loop "
            f"'{plan.loop.name}' hands it {len(by_row)}: {', '.join(by_row)}{tuples}"
        )


def check_compiled_whole(kernel: Callable[..., None]) -> None:
    """Raise MeshprepError for a kernel that uses ``objmode`` or ``forceobj`` of numba.

    Itself or a function that it reaches would run Python code, on any thread.
    """
    numba = sys.modules.get("numba")
    objmode = getattr(numba, "objmode", None)
    for function, options, reached in _functions_reached(kernel, set()):
        uses_objmode = objmode is not None and any(value is objmode for value in reached)
        # As an attribute of numba.
        uses_objmode |= (
            any(value is numba for value in reached)
            and "objmode" in function.__code__.co_names
        )
        if uses_objmode or options.get("forceobj"):
            what = "objmode" if uses_objmode else "forceobj=True"
            raise MeshprepError(
                f"kernel '{name_of(kernel)}' uses {what} of numba in "
                f"'{function.__name__}', which runs Python: loops run on threads without "
                "it, so compute that before the loop"
            )


@dataclass(frozen=True)
class DeviceFunction:
    """A kernel in CUDA C: the function for one element."""

    name: str  # of the function
    # The definition, ``__device__ void NAME(...)``, and all that it needs before it. Its
    # parameters are pointers to ``dim`` values, one for each argument and index in the
    # order of the loop, as a Python kernel has rows; ``const`` where it only reads.
    text: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z_]\w*", self.name, re.ASCII):
            raise MeshprepError(f"device function '{self.name}': not a name that C takes")
        if not re.search(rf"\b{self.name}\s*\(", self.text):
            raise MeshprepError(f"device function '{self.name}' does not stand in its text")


def name_of(function: DeviceFunction | Callable[..., None]) -> str:
    """The name of a kernel in Python or in CUDA C."""
    if isinstance(function, DeviceFunction):
        return function.name
    return function.__name__
