"""Proves from a kernel's source which parameters it sets whole, whatever the data are.

A component is proved where a statement that always runs assigns it, and nothing reads the
parameter. Loops over ``range`` of constants are followed, and an ``if`` proves the
components that both branches set. Other statements prove nothing, so a kernel that is not
understood counts as one that may leave old values.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import FunctionType

from ..types.loops import Access, Arg, Loop
from .parameters import parameters_of_kernel
from .syntax import definition_of, function_of, names_set_in, parameters_of

# Turns of a loop that is followed, at most.
MOST_TURNS = 64

# A parameter and a component of it.
Component = tuple[str, int]


def with_full_writes(loop: Loop, kernel: object) -> Loop:
    """The loop, with ``full`` for the arguments that its kernel is proved to set whole."""
    proved = full_writes(kernel, loop)
    args = []
    for arg in loop.args:
        full = arg.full or (arg.name in proved and _is_direct_write(arg))
        args.append(replace(arg, full=full))
    return replace(loop, args=tuple(args))


def _is_direct_write(arg: Arg) -> bool:
    return arg.access is Access.WRITE and arg.map is None


def full_writes(kernel: object, loop: Loop) -> frozenset[str]:
    """Names of the direct ``write`` arguments that every element sets whole.

    These are the arguments declared ``full``, and those that the source proves. Nothing is
    proved for a kernel that is neither a function nor compiled by numba. O(source).
    """
    full = {arg.name for arg in loop.args if arg.full}
    function = function_of(kernel)
    if function is None:
        return frozenset(full)
    components_set = _components_set(function)
    if components_set is None:
        return frozenset(full)
    # Walk parameters and what they stand for side by side; direct arguments have one each.
    names = parameters_of(function)
    for name, parameter in zip(names, parameters_of_kernel(len(names), loop), strict=False):
        arg = parameter.arg
        proved = components_set.get(name, frozenset())
        if _is_direct_write(arg) and proved >= set(range(arg.dim)):
            full.add(arg.name)
    return frozenset(full)


def _components_set(function: FunctionType) -> Mapping[str, frozenset[int]] | None:
    """For each parameter the components that are set; None where there is no source."""
    # Follow the source: what no path leaves out is always set.
    body = definition_of(function)
    if body is None:
        return None
    parameters = {*parameters_of(function)}
    changed = names_set_in(body)
    # A name of an enclosing function may get another value before the kernel is compiled.
    hidden = changed | parameters | {*function.__code__.co_freevars}
    if "range" in hidden | {*function.__globals__}:
        return None
    # Whole numbers of the module may be indices.
    numbers = {
        name: value
        for name, value in function.__globals__.items()
        if type(value) is int and name not in hidden
    }
    always_set = _always_set_by(body.body, numbers)
    components: dict[str, frozenset[int]] = {}
    for parameter in parameters - _names_read(body) - changed:
        components[parameter] = frozenset(i for name, i in always_set if name == parameter)
    return components


def _names_read(body: ast.FunctionDef) -> set[str]:
    """Names that are used otherwise than by assigning an item of them."""
    assigned = {
        id(node.value)
        for node in ast.walk(body)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    }
    # ``a[0] += 1`` reads, though its target is assigned.
    assigned -= {
        id(node.target.value)
        for node in ast.walk(body)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript)
    }
    return {
        n.id for n in ast.walk(body) if isinstance(n, ast.Name) and id(n) not in assigned
    }


def _always_set_by(body: Sequence[ast.stmt], numbers: Mapping[str, int]) -> set[Component]:
    """The components that these statements set whenever they run to their end.

    ``numbers`` are the values of names that are known whole numbers.
    """
    always: set[Component] = set()
    for statement in body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                always |= _components_of(target, numbers)
        elif isinstance(statement, ast.If):
            in_body = _always_set_by(statement.body, numbers)
            in_else = _always_set_by(statement.orelse, numbers)
            always |= in_body & in_else
        elif isinstance(statement, ast.For):
            always |= _set_by_loop(statement, numbers)
        if _may_end_early(statement):
            # The following statements may not run.
            break
    return always


def _set_by_loop(loop: ast.For, numbers: Mapping[str, int]) -> set[Component]:
    """The components that a loop over a known range sets in all of its turns."""
    call = loop.iter
    counter = loop.target
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        return set()
    if call.func.id != "range" or call.keywords or not isinstance(counter, ast.Name):
        return set()
    # The range must be known, and all of its turns must run.
    bounds = [_whole_number(argument, numbers) for argument in call.args]
    known_bounds = [bound for bound in bounds if bound is not None]
    if len(known_bounds) != len(bounds) or not 1 <= len(bounds) <= 2:
        return set()
    changes_counter = any(counter.id in names_set_in(s) for s in loop.body)
    if changes_counter or any(_may_end_early(s) for s in loop.body):
        return set()
    # Unroll it.
    turns = range(*known_bounds)
    if len(turns) > MOST_TURNS:
        return set()
    components: set[Component] = set()
    for i in turns:
        components |= _always_set_by(loop.body, {**numbers, counter.id: i})
    return components


def _may_end_early(statement: ast.stmt) -> bool:
    """True for a statement that may leave a loop or the function."""
    leaving = ast.Return | ast.Break | ast.Continue
    return any(isinstance(node, leaving) for node in ast.walk(statement))


def _components_of(target: ast.expr, numbers: Mapping[str, int]) -> set[Component]:
    """The components that an assignment to this target sets."""
    if isinstance(target, ast.Tuple):
        return set().union(*(_components_of(t, numbers) for t in target.elts))
    if not (isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name)):
        return set()
    index = _whole_number(target.slice, numbers)
    if index is None or index < 0:
        return set()
    return {(target.value.id, index)}


def _whole_number(node: ast.expr, numbers: Mapping[str, int]) -> int | None:
    """The value of an expression, where it is a known whole number."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return numbers.get(node.id)
    return None
