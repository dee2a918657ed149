"""Evaluates the expressions in a kernel's source that are known before it runs."""

import ast
import builtins
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

# Types of values that are constants in a kernel.
CONSTANTS = (bool, int, float, str, np.integer, np.floating)
# Numbers of this size and above count as unknown.
MOST = 1 << 62
OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
FUNCTIONS: dict[Any, Callable[..., Any]] = {
    function: function for function in (abs, bool, float, int, max, min)
}


class Unknown(Exception):
    """The value of an expression depends on the data."""


@dataclass(frozen=True, eq=False)
class Names:
    """The meanings of names in a function."""

    function: FunctionType
    local: frozenset[str]
    # The lengths of rows, by the names of parameters that never get another value.
    lengths: Mapping[str, int]

    def outside(self, name: str) -> Any:
        """The value of a name outside of the function; raises Unknown."""
        code = self.function.__code__
        if name in self.local:
            raise Unknown
        # Names are looked up as Python does: enclosing functions, module, builtins.
        if name in code.co_freevars:
            cell = (self.function.__closure__ or ())[code.co_freevars.index(name)]
            try:
                return cell.cell_contents
            except ValueError:  # no value yet
                raise Unknown from None
        if name in self.function.__globals__:
            return self.function.__globals__[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise Unknown

    def thing(self, node: ast.expr) -> Any:
        """The function, module or constant of a name, or of a name in a module."""
        if isinstance(node, ast.Name):
            return self.outside(node.id)
        if isinstance(node, ast.Attribute):
            module = self.thing(node.value)
            if isinstance(module, ModuleType) and node.attr in vars(module):
                return vars(module)[node.attr]
        raise Unknown

    def value(self, node: ast.expr, known: Mapping[str, Any]) -> Any:
        """The value of an expression; raises Unknown.

        ``known`` has values of local names.
        """
        try:
            result = self._value(node, known)
        except (ArithmeticError, TypeError, ValueError, IndexError):
            raise Unknown from None
        if isinstance(result, int | float) and not -MOST < result < MOST:
            raise Unknown
        return result

    def _value(self, node: ast.expr, known: Mapping[str, Any]) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name() | ast.Attribute():
                return self._named(node, known)
            case ast.Tuple():
                return tuple(self.value(element, known) for element in node.elts)
            case ast.UnaryOp() | ast.BinOp():
                return self._computed(node, known)
            case ast.Compare():
                return self._compared(node, known)
            case ast.BoolOp():
                return self._joined(node, known)
            case ast.IfExp():
                chosen = node.body if self.value(node.test, known) else node.orelse
                return self.value(chosen, known)
            case ast.Subscript():
                return self._item(node, known)
            case ast.Call(keywords=[]):
                return self._called(node, known)
        raise Unknown

    def _computed(self, node: ast.UnaryOp | ast.BinOp, known: Mapping[str, Any]) -> Any:
        """The result of an operator on numbers."""
        if type(node.op) not in OPERATORS:
            raise Unknown
        operate = OPERATORS[type(node.op)]
        if isinstance(node, ast.UnaryOp):
            return operate(self.value(node.operand, known))
        left = self.value(node.left, known)
        right = self.value(node.right, known)
        # Texts and tuples could grow without bound.
        if isinstance(left, str | tuple) or isinstance(right, str | tuple):
            raise Unknown
        return operate(left, right)

    def _named(self, node: ast.Name | ast.Attribute, known: Mapping[str, Any]) -> Any:
        """The value of a known name, of a constant outside, or the length of a row."""
        if isinstance(node, ast.Name) and node.id in known:
            return known[node.id]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            length = self.lengths.get(node.value.id)
            if length is not None and node.attr == "size":
                return length
            if length is not None and node.attr == "shape":
                return (length,)
        # Constants of compiled code are known; other objects may change.
        value = self.thing(node)
        if value is None or isinstance(value, CONSTANTS):
            return value
        if isinstance(value, tuple) and all(isinstance(item, CONSTANTS) for item in value):
            return value
        raise Unknown

    def _compared(self, node: ast.Compare, known: Mapping[str, Any]) -> bool:
        left = self.value(node.left, known)
        # A chain such as ``0 <= k < n`` compares each value with the next.
        for operation, comparator in zip(node.ops, node.comparators, strict=True):
            if type(operation) not in OPERATORS:
                raise Unknown
            right = self.value(comparator, known)
            if not OPERATORS[type(operation)](left, right):
                return False
            left = right
        return True

    def _joined(self, node: ast.BoolOp, known: Mapping[str, Any]) -> Any:
        """The value of ``and`` or ``or``: of the operand that decides."""
        result: Any = None
        for operand in node.values:
            result = self.value(operand, known)
            if bool(result) is isinstance(node.op, ast.Or):
                break
        return result

    def _item(self, node: ast.Subscript, known: Mapping[str, Any]) -> Any:
        values = self.value(node.value, known)
        if not isinstance(values, tuple):
            raise Unknown
        return values[self.value(node.slice, known)]

    def _called(self, node: ast.Call, known: Mapping[str, Any]) -> Any:
        """The result of ``len`` or of one of :data:`FUNCTIONS`."""
        function = self.thing(node.func)
        if function is len:
            counted = node.args[0]
            if isinstance(counted, ast.Name) and counted.id in self.lengths:
                return self.lengths[counted.id]
            return len(self.value(counted, known))
        if not isinstance(function, type | type(len)) or function not in FUNCTIONS:
            raise Unknown
        return function(*[self.value(argument, known) for argument in node.args])
