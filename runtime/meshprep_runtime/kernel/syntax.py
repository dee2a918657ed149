"""The syntax of a kernel, proved to be that of the code that runs, and its names."""

import ast
import builtins
import inspect
import textwrap
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

# The syntax that was proved to be that of a code. A code never changes, so that all loops
# of a kernel share one proof, which takes milliseconds.
_PROVED: WeakKeyDictionary[CodeType, ast.FunctionDef] = WeakKeyDictionary()


def function_of(kernel: object) -> FunctionType | None:
    """The Python function of a kernel, also of one compiled by numba; else None."""
    function = getattr(kernel, "py_func", kernel)
    if isinstance(function, FunctionType):
        return function
    return None


def definition_of(kernel: object) -> ast.FunctionDef | None:
    """The syntax of a function; None where its source is missing, or gives other code.

    Nobody may change it: it is given again for the same code. O(source), the first time.
    """
    function = function_of(kernel)
    if function is None:
        return None
    known = _PROVED.get(function.__code__)
    if known is not None:
        return known
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(function))).body
        # Python calls functions of modules that it sees imported in a way of its own, so
        # that the code may be either.
        codes = [
            *_codes_compiled(body, function, ()),
            *_codes_compiled(body, function, _modules_named(function)),
        ]
    except (OSError, TypeError, SyntaxError, ValueError, RecursionError):
        return None
    same = any(_same_code(code, function.__code__) for code in codes)
    definition = body[0] if len(body) == 1 else None
    if same and isinstance(definition, ast.FunctionDef):
        _PROVED[function.__code__] = definition
        return definition
    return None


def _modules_named(function: FunctionType) -> list[str]:
    """The names of modules that a function uses."""
    scope = function.__globals__
    return [
        name for name in function.__code__.co_names if inspect.ismodule(scope.get(name))
    ]


def _codes_compiled(
    body: list[ast.stmt], function: FunctionType, imported: Sequence[str]
) -> Iterator[CodeType]:
    """The codes of all functions in some syntax, compiled after imports of modules."""
    free = function.__code__.co_freevars
    if free:
        # Names of an enclosing function become parameters of a function around.
        (around,) = ast.parse(f"def around({', '.join(free)}):\n    pass").body
        assert isinstance(around, ast.FunctionDef)
        around.body = body
        body = [around]
    imports = [ast.Import([ast.alias(name)]) for name in imported]
    module = ast.fix_missing_locations(ast.Module([*imports, *body], []))
    return _codes_inside(compile(module, "<kernel>", "exec"))


def _codes_inside(code: CodeType) -> Iterator[CodeType]:
    """The codes of all functions inside of some code."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes_inside(constant)


def _same_code(one: CodeType, other: CodeType) -> bool:
    return (
        one.co_code == other.co_code
        and one.co_names == other.co_names
        and one.co_varnames == other.co_varnames
        and one.co_freevars == other.co_freevars
        and _plain_constants(one) == _plain_constants(other)
    )


def _plain_constants(code: CodeType) -> list[str]:
    """The constants of a function, without functions inside."""
    return [repr(c) for c in code.co_consts if not isinstance(c, CodeType)]


def parameters_of(function: FunctionType) -> tuple[str, ...]:
    """The names of its positional parameters."""
    return function.__code__.co_varnames[: function.__code__.co_argcount]


def names_in(node: ast.AST) -> set[str]:
    """All names in a piece of syntax."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def names_set_in(node: ast.AST) -> set[str]:
    """The names that a piece of syntax gives another value, or deletes."""
    return {
        n.id
        for n in ast.walk(node)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store | ast.Del)
    }


class Scope:
    """The values of the names that a function uses but does not set.

    They are the present values, with which a kernel is compiled.
    """

    def __init__(self, function: FunctionType, definition: ast.FunctionDef) -> None:
        code = function.__code__
        self._own = names_set_in(definition) | {*code.co_varnames, *code.co_cellvars}
        self._known: dict[str, Any] = {**vars(builtins), **function.__globals__}
        cells = function.__closure__ or ()
        for name, cell in zip(code.co_freevars, cells, strict=True):
            self._own.discard(name)
            try:
                self._known[name] = cell.cell_contents
            except ValueError:  # no value yet
                self._own.add(name)

    def meaning(self, node: ast.expr) -> Any:
        """The value of ``name`` or ``module.name``; None where that is not known."""
        if isinstance(node, ast.Name):
            if node.id in self._own:
                return None
            return self._known.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.meaning(node.value)
            if inspect.ismodule(owner):
                return getattr(owner, node.attr, None)
        return None
