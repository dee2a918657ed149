"""Which parameters a kernel sets whole, whatever happens: proved from its source.

A component counts where a statement that always runs assigns it, and nothing reads the parameter.
Loops over ``range`` of known numbers are followed, and of ``if`` what both branches set counts.
Anything else proves nothing, so a kernel that is not understood is taken to leave values as they
were.
"""

import ast
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import CodeType
from typing import Any

from ..types.loops import Access, Arg, Loop

MOST_TURNS = 64


def with_full_writes(loop: Loop, kernel: object) -> Loop:
    """The loop with ``full`` where its kernel proves it."""
    proved = full_writes(kernel, loop)
    args = (replace(a, full=a.full or (a.name in proved and _direct(a))) for a in loop.args)
    return replace(loop, args=tuple(args))


def _direct(arg: Arg) -> bool:
    return arg.access is Access.WRITE and arg.map is None


def full_writes(kernel: object, loop: Loop) -> frozenset[str]:
    """Names of the direct ``write`` arguments that every element sets whole.

    Those declared ``full``, and those that the source proves. Nothing is proved of a kernel that is
    neither a function nor one compiled by numba. O(source).
    """
    function: Any = getattr(kernel, "py_func", kernel)
    proved = _components(function) if inspect.isfunction(function) else None
    found = {a.name for a in loop.args if a.full}
    if proved is None:
        return frozenset(found)
    code = function.__code__
    names = iter(code.co_varnames[: code.co_argcount])
    for arg in loop.args:
        params = [next(names, "") for _ in arg.kernel_columns]
        if _direct(arg) and proved.get(params[0], frozenset()) >= set(range(arg.dim)):
            found.add(arg.name)
    return frozenset(found)


def _components(function: Any) -> Mapping[str, frozenset[int]] | None:
    """For each parameter the components that are set; None where there is no source."""
    body = _definition(function)
    if body is None:
        return None
    params = set(function.__code__.co_varnames[: function.__code__.co_argcount])
    changed = {n.id for n in ast.walk(body) if isinstance(n, ast.Name) and _is_set(n)}
    if "range" in changed | params | set(function.__globals__):
        return None
    known = {
        name: value
        for name, value in function.__globals__.items()
        if type(value) is int and name not in changed | params
    }
    read = _read(body) | changed
    set_ = _always(body.body, known)
    return {p: frozenset(i for q, i in set_ if q == p) for p in params - read}


def _definition(function: Any) -> ast.FunctionDef | None:
    """The syntax of a function; None where its source is missing, or gives other code."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        made = compile(tree, "<kernel>", "exec")
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    body = tree.body[0] if len(tree.body) == 1 else None
    codes = [c for c in made.co_consts if isinstance(c, CodeType)]
    own = function.__code__
    same = [
        c
        for c in codes
        if (c.co_code, c.co_names, c.co_varnames) == (own.co_code, own.co_names, own.co_varnames)
        and _plain(c) == _plain(own)
    ]
    return body if same and isinstance(body, ast.FunctionDef) else None


def _plain(code: CodeType) -> list[str]:
    """The constants of a function, but for functions inside."""
    return [repr(c) for c in code.co_consts if not isinstance(c, CodeType)]


def _is_set(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store | ast.Del)


def _read(body: ast.FunctionDef) -> set[str]:
    """Names used otherwise than by assigning an item of them."""
    assigned = {
        id(node.value)
        for node in ast.walk(body)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    }
    # ``a[0] += 1`` reads, though its target is stored
    assigned -= {
        id(node.target.value)
        for node in ast.walk(body)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript)
    }
    return {n.id for n in ast.walk(body) if isinstance(n, ast.Name) and id(n) not in assigned}


def _always(body: Sequence[ast.stmt], known: Mapping[str, int]) -> set[tuple[str, int]]:
    """The (parameter, component) that these statements set whenever they run to their end."""
    found: set[tuple[str, int]] = set()
    for statement in body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                found |= _targets(target, known)
        elif isinstance(statement, ast.If):
            found |= _always(statement.body, known) & _always(statement.orelse, known)
        elif isinstance(statement, ast.For):
            found |= _turns(statement, known)
        if any(isinstance(n, ast.Return | ast.Break | ast.Continue) for n in ast.walk(statement)):
            # what follows may not run
            break
    return found


def _turns(loop: ast.For, known: Mapping[str, int]) -> set[tuple[str, int]]:
    """What a loop over a known range sets in all of its turns."""
    call, name = loop.iter, loop.target
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        return set()
    bounds = [_number(a, known) for a in call.args]
    if call.func.id != "range" or call.keywords or not isinstance(name, ast.Name):
        return set()
    numbers = [b for b in bounds if b is not None]
    if len(numbers) != len(bounds) or not 1 <= len(numbers) <= 2 or _leaves(loop):
        return set()
    turns = range(*numbers)
    if len(turns) > MOST_TURNS:
        return set()
    return {one for i in turns for one in _always(loop.body, {**known, name.id: i})}


def _leaves(loop: ast.For) -> bool:
    """True where a loop may end early, or change what it counts with."""
    inside = [n for s in loop.body for n in ast.walk(s)]
    sets = {n.id for n in inside if isinstance(n, ast.Name) and _is_set(n)}
    assert isinstance(loop.target, ast.Name)
    early = any(isinstance(n, ast.Break | ast.Continue | ast.Return) for n in inside)
    return early or loop.target.id in sets


def _targets(target: ast.expr, known: Mapping[str, int]) -> set[tuple[str, int]]:
    if isinstance(target, ast.Tuple):
        return {one for t in target.elts for one in _targets(t, known)}
    if not (isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name)):
        return set()
    index = _number(target.slice, known)
    return set() if index is None or index < 0 else {(target.value.id, index)}


def _number(node: ast.expr, known: Mapping[str, int]) -> int | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return known.get(node.id) if isinstance(node, ast.Name) else None
