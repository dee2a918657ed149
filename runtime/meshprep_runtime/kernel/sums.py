"""Proves from a kernel's source that the increments of an element may be added later.

A loop gives the bits of the plain loop of its author, in which the kernel adds to the dats
itself. A chunk computes the increments of some elements first, from zero, and adds them to
the dats afterwards. That gives the same bits only where

- the kernel does not read the sums;
- in each way through the kernel a component is added to once at most: two additions in
  place are rounded otherwise than the addition of their sum;
- numba adds in the type of the dat. It adds ``f8`` to ``f4``, and fractions to integers, in
  ``f8`` and rounds the sum, so that an increment that was rounded before gives other bits.

A kernel that is not understood is not proved.
"""

import ast
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from .analysis import is_known, takes_single
from .rows import Row
from .syntax import (
    Scope,
    definition_of,
    function_of,
    names_in,
    names_set_in,
    parameters_of,
)

# Statements that are followed, at most; the turns of loops count.
MOST_STEPS = 20_000
# Kinds of values, by the type that numba gives them.
NOT_YET = "not yet"  # nothing is known so far
SINGLE = "single"  # ``f4``
WHOLE = "whole"  # a signed integer of any length
OTHER = "other"  # another type, or an unknown one
# Functions whose result has the type of the arguments, where these have a common type.
SAME_TYPE = frozenset({abs, min, max, np.abs, np.minimum, np.maximum})
# Functions whose result is ``f4`` for arguments of ``f4``.
SINGLE_OF_SINGLE = frozenset(
    {
        math.sqrt,
        math.fabs,
        math.exp,
        math.log,
        math.pow,
        math.hypot,
        math.sin,
        math.cos,
        math.tan,
        math.tanh,
        math.atan2,
        math.copysign,
        np.sqrt,
        np.exp,
        np.log,
        np.sin,
        np.cos,
    }
)
# Operators whose result is ``f4`` for operands of ``f4``, and integers for integers.
SINGLE_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
WHOLE_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)


# Number of additions by (row, component).
AdditionCount = Counter[tuple[int, int]]


def may_wait(kernel: object, rows: Sequence[Row]) -> bool:
    """True where it is proved that increments of dats may be added later.

    Besides, two rows of an element must not be the same row, see
    :func:`.rows.reaches_apart`. O(source).
    """
    if not any(r.summed for r in rows):
        return True
    # Without the source nothing is proved.
    function = function_of(kernel)
    definition = definition_of(kernel)
    if function is None or definition is None:
        return False
    # Count how often an element adds to each component: a second addition would be rounded
    # together with the first.
    names = parameters_of(function)
    sums: dict[str, Sum] = {}
    components: dict[str, str] = {}
    for number, (name, row) in enumerate(zip(names, rows, strict=True)):
        components[name] = kind_of(row.dtype)
        if row.summed:
            sums[name] = Sum(number, row.dim, row.dtype)
    single = takes_single(row.dtype for row in rows)
    source = _Source(function, definition)
    kinds = _Kinds(
        source=source, components=components, tuples={}, values={}, single=single
    )
    additions = _Additions(
        source=source, kinds=kinds, sums=sums, tuples={}, steps=_StepsLeft()
    )
    try:
        count_of_component = additions.of(definition.body, {})
    except _NotUnderstoodError:
        return False
    return all(count <= 1 for count in count_of_component.values())


def kind_of(dtype: np.dtype[Any]) -> str:
    """The kind of the components of a row of this dtype."""
    if dtype == np.float32:
        return SINGLE
    if dtype.kind == "i":
        return WHOLE
    return OTHER


class _NotUnderstoodError(Exception):
    """A row that is added to is used in a way that is not understood."""


@dataclass(frozen=True)
class Sum:
    """A row that is added to."""

    number: int  # among the parameters of the kernel
    dim: int
    dtype: np.dtype[Any]

    def takes(self, kind: str) -> bool:
        """True where numba adds a value of this kind in the type of the row."""
        if self.dtype == np.float64:
            return True
        if self.dtype == np.float32:
            return kind == SINGLE
        # A signed integer is added to u8 in f8, and to other integers as an integer, which
        # is cut off to the length of the dat.
        return kind == WHOLE and self.dtype != np.uint64


class _StepsLeft:
    """The number of statements that may still be followed."""

    def __init__(self) -> None:
        self.left = MOST_STEPS

    def take(self) -> None:
        """Count a statement; raises _NotUnderstoodError for one too many."""
        self.left -= 1
        if self.left < 0:
            raise _NotUnderstoodError


class _Source:
    """A function with its syntax, and the meanings of its names."""

    def __init__(self, function: FunctionType, definition: ast.FunctionDef) -> None:
        self.function = function
        self.definition = definition
        self.parameters = parameters_of(function)
        self.scope = Scope(function, definition)

    def called(self, call: ast.Call) -> "_Source | None":
        """The user's function that is called with plain arguments, if its source is known.

        Functions of modules are compiled by numba itself, with other constants.
        """
        if not isinstance(call.func, ast.Name):
            return None
        value = self.scope.meaning(call.func)
        function = function_of(value)
        if function is None or is_known(value) or is_known(function):
            return None
        starred = any(isinstance(a, ast.Starred) for a in call.args)
        definition = definition_of(function)
        if definition is None or call.keywords or starred:
            return None
        if len(call.args) > len(parameters_of(function)):
            return None
        return _Source(function, definition)


class _Additions:
    """Counts how often a function adds to each component, in any way through it."""

    def __init__(
        self,
        source: _Source,
        kinds: "_Kinds",
        sums: Mapping[str, Sum],
        tuples: Mapping[str, Sequence[Sum]],
        steps: _StepsLeft,
    ) -> None:
        self._source = source
        self._kinds = kinds
        # The rows that are added to, by parameter, and parameters that are tuples of them.
        self._sums = sums
        self._tuples = tuples
        self._steps = steps

    def of(self, body: Iterable[ast.stmt], known: Mapping[str, int]) -> AdditionCount:
        """Additions of these statements; ``known`` are the counters of the loops around."""
        count: AdditionCount = Counter()
        for statement in body:
            self._steps.take()
            if self._mentions(statement):
                count += self._of_statement(statement, known)
        return count

    def _mentions(self, *nodes: ast.AST) -> bool:
        names = self._sums.keys() | self._tuples.keys()
        return any(not names.isdisjoint(names_in(node)) for node in nodes)

    def _sum_of(self, node: ast.expr, known: Mapping[str, int]) -> Sum | None:
        """The sum that ``row`` or ``rows[number]`` is; None for others."""
        if isinstance(node, ast.Name):
            return self._sums.get(node.id)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            rows = self._tuples.get(node.value.id, ())
            number = self._number(node.slice, known)
            if number is not None and -len(rows) <= number < len(rows):
                return rows[number]
        return None

    def _refuse(self, *nodes: ast.AST) -> None:
        """Raise _NotUnderstoodError where a row that is added to is used."""
        if self._mentions(*nodes):
            raise _NotUnderstoodError

    def _of_statement(self, node: ast.stmt, known: Mapping[str, int]) -> AdditionCount:
        if isinstance(node, ast.AugAssign):
            return self._of_addition(node, known)
        if isinstance(node, ast.If):
            self._refuse(node.test)
            return self.of(node.body, known) | self.of(node.orelse, known)
        if isinstance(node, ast.For):
            return self._of_loop(node, known)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            return self._of_call(node.value, known)
        raise _NotUnderstoodError

    def _of_addition(self, node: ast.AugAssign, known: Mapping[str, int]) -> AdditionCount:
        self._refuse(node.value)
        target = node.target
        if not isinstance(target, ast.Subscript):
            raise _NotUnderstoodError
        row = self._sum_of(target.value, known)
        index = self._number(target.slice, known)
        if row is None or index is None or not isinstance(node.op, ast.Add | ast.Sub):
            raise _NotUnderstoodError
        # The kind of the value must be one that numba adds in the type of the row.
        if not -row.dim <= index < row.dim or not row.takes(self._kinds.of(node.value)):
            raise _NotUnderstoodError
        return Counter({(row.number, index % row.dim): 1})

    def _of_loop(self, node: ast.For, known: Mapping[str, int]) -> AdditionCount:
        turns = self._turns(node.iter, known)
        if turns is None or not isinstance(node.target, ast.Name):
            raise _NotUnderstoodError
        # A loop that sets its own counter cannot be counted.
        counter = node.target.id
        if any(counter in names_set_in(statement) for statement in node.body):
            raise _NotUnderstoodError
        count: AdditionCount = Counter()
        for turn in turns:
            count += self.of(node.body, {**known, counter: turn})
        return count + self.of(node.orelse, known)

    def _of_call(self, call: ast.Call, known: Mapping[str, int]) -> AdditionCount:
        """Additions of a helper that is called with whole rows."""
        # Only a helper whose source is known can be followed.
        helper = self._source.called(call)
        if helper is None:
            raise _NotUnderstoodError
        sums: dict[str, Sum] = {}
        tuples: dict[str, Sequence[Sum]] = {}
        numbers: dict[str, int] = {}
        changed = names_set_in(helper.definition)
        # Hand whole rows on as rows, tuples of them as tuples, and whole numbers as
        # constants; others may not hold a sum.
        for name, argument in zip(helper.parameters, call.args, strict=False):
            row = self._sum_of(argument, known)
            if row is not None:
                sums[name] = row
                continue
            rows = self._sums_of_tuple(argument, known)
            if rows:
                tuples[name] = rows
                continue
            self._refuse(argument)
            number = self._number(argument, known)
            if number is not None and name not in changed:
                numbers[name] = number
        # Follow the body of the helper with these.
        kinds = self._kinds.of_helper(helper, call)
        if kinds is None:
            raise _NotUnderstoodError
        inside = _Additions(
            source=helper, kinds=kinds, sums=sums, tuples=tuples, steps=self._steps
        )
        return inside.of(helper.definition.body, numbers)

    def _sums_of_tuple(self, node: ast.expr, known: Mapping[str, int]) -> Sequence[Sum]:
        """The sums of a name of a tuple, or of a tuple that is written out."""
        if isinstance(node, ast.Name):
            return self._tuples.get(node.id, ())
        if not isinstance(node, ast.Tuple):
            return ()
        rows = [self._sum_of(element, known) for element in node.elts]
        sums = [row for row in rows if row is not None]
        # Of a tuple of sums and of other values the sums would not be known by number.
        return sums if len(sums) == len(rows) else ()

    def _turns(self, node: ast.expr, known: Mapping[str, int]) -> Sequence[int] | None:
        """The numbers over which a loop runs; None where they are not known."""
        if isinstance(node, ast.Call) and self._source.scope.meaning(node.func) is range:
            # A range is known if all its bounds are, and its step is not 0.
            bounds = [self._number(a, known) for a in node.args]
            numbers = [b for b in bounds if b is not None]
            all_known = len(numbers) == len(bounds) and not node.keywords
            is_range = 1 <= len(numbers) <= 3 and numbers[2:] != [0]
            return range(*numbers) if all_known and is_range else None
        if isinstance(node, ast.Tuple | ast.List):
            values = [self._number(e, known) for e in node.elts]
            if None in values:
                return None
            return [v for v in values if v is not None]
        value = self._source.scope.meaning(node)
        if isinstance(value, tuple) and all(type(v) is int for v in value):
            return value
        return None

    def _number(self, node: ast.expr, known: Mapping[str, int]) -> int | None:
        """The value of an expression, where it is a known whole number."""
        if isinstance(node, ast.Constant):
            if type(node.value) is int:
                return node.value
            return None
        if isinstance(node, ast.Name) and node.id in known:
            return known[node.id]
        # Globals are constants of compiled code.
        if isinstance(node, ast.Name | ast.Attribute):
            value = self._source.scope.meaning(node)
            if type(value) is int:
                return value
            return None
        # Compute with numbers that are known themselves.
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            number = self._number(node.operand, known)
            if number is None:
                return None
            return -number
        if isinstance(node, ast.BinOp):
            left = self._number(node.left, known)
            right = self._number(node.right, known)
            if left is None or right is None:
                return None
            return _result_of(left, node.op, right)
        return self._length(node)

    def _length(self, node: ast.expr) -> int | None:
        """``len(row)`` of a row that is added to, and of a tuple of them."""
        if not (
            isinstance(node, ast.Call) and self._source.scope.meaning(node.func) is len
        ):
            return None
        if len(node.args) != 1 or node.keywords:
            return None
        row = node.args[0]
        if not isinstance(row, ast.Name):
            return None
        return self._length_of(row)

    def _length_of(self, row: ast.Name) -> int | None:
        """The length of a row, or of a tuple of rows; None for other names."""
        if row.id in self._sums:
            return self._sums[row.id].dim
        if row.id in self._tuples:
            return len(self._tuples[row.id])
        return None


def _result_of(left: int, operator: ast.operator, right: int) -> int | None:
    """The result of an operator on whole numbers; None where it is not one."""
    if isinstance(operator, ast.Add):
        return left + right
    if isinstance(operator, ast.Sub):
        return left - right
    if isinstance(operator, ast.Mult):
        return left * right
    if isinstance(operator, ast.FloorDiv) and right != 0:
        return left // right
    if isinstance(operator, ast.Mod) and right != 0:
        return left % right
    return None


class _Kinds:
    """The kinds of the values of a function.

    A name has one kind, joined of the kinds of all values that it ever gets.
    ``components`` are the kinds of rows, ``tuples`` those of all rows of a tuple, and
    ``values`` those of other arguments, by parameter; ``single`` says that constants are
    ``f4``.
    """

    def __init__(
        self,
        source: _Source,
        components: Mapping[str, str],
        tuples: Mapping[str, str],
        values: Mapping[str, str],
        single: bool,
        under_way: Sequence[FunctionType] = (),
    ) -> None:
        self._source = source
        self._components = components
        self._tuples = tuples
        self._values = values
        self._single = single
        self._under_way = (*under_way, source.function)
        self._values_of_name = _values_of_names(source)
        self._kind_of_name = {n: values.get(n, NOT_YET) for n in self._values_of_name}
        self._settle()

    def _settle(self) -> None:
        """Find the kinds of names, which may depend on each other, until none changes."""
        while True:
            # Kinds go from not yet known to one kind, and from there to other: this ends.
            kind_of_name: dict[str, str] = {}
            for name, values in self._values_of_name.items():
                kinds = [OTHER if value is None else self.of(value) for value in values]
                kind_of_name[name] = _joined_kind([self._values.get(name, NOT_YET), *kinds])
            if kind_of_name == self._kind_of_name:
                return
            self._kind_of_name = kind_of_name

    def of(self, node: ast.expr) -> str:
        """The kind of an expression."""
        if isinstance(node, ast.Constant):
            return self._of_constant(node.value)
        if isinstance(node, ast.Name | ast.Attribute):
            return self._of_name(node)
        if isinstance(node, ast.Subscript):
            return self._of_component(node)
        if isinstance(node, ast.UnaryOp):
            plain = isinstance(node.op, ast.USub | ast.UAdd)
            if plain:
                return self.of(node.operand)
            return OTHER
        if isinstance(node, ast.BinOp):
            return self._of_operation(node)
        if isinstance(node, ast.IfExp):
            return _joined_kind((self.of(node.body), self.of(node.orelse)))
        if isinstance(node, ast.Call):
            return self._of_call(node)
        return OTHER

    def _of_constant(self, value: Any) -> str:
        if type(value) is float:
            if self._single:
                return SINGLE
            return OTHER
        if type(value) is np.float32:
            return SINGLE
        if type(value) is int and abs(value) < 2**63:
            return WHOLE
        return OTHER

    def _of_name(self, node: ast.Name | ast.Attribute) -> str:
        if isinstance(node, ast.Name):
            if node.id in self._components or node.id in self._tuples:
                # The row itself, a tuple of rows, or another value under its name.
                return OTHER
            if node.id in self._kind_of_name:
                return self._kind_of_name[node.id]
            if node.id in self._values:
                return self._values[node.id]
            return self._of_constant(self._source.scope.meaning(node))
        # Constants of modules are not converted to single precision.
        value = self._source.scope.meaning(node)
        if type(value) is float:
            return OTHER
        return self._of_constant(value)

    def _of_component(self, node: ast.Subscript) -> str:
        """The kind of ``row[k]`` with a whole number ``k``; other items are not known."""
        kind_of_index = self.of(node.slice)
        if kind_of_index == NOT_YET:
            return NOT_YET
        if kind_of_index == WHOLE:
            return self._of_row(node.value)
        return OTHER

    def _of_row(self, node: ast.expr) -> str:
        """The kind of the components of ``row``, or of ``rows[k]``; OTHER for no row."""
        if isinstance(node, ast.Name) and node.id not in self._kind_of_name:
            return self._components.get(node.id, OTHER)
        if isinstance(node, ast.Subscript) and self.of(node.slice) == WHOLE:
            return self._of_tuple(node.value)
        return OTHER

    def _of_tuple(self, node: ast.expr) -> str:
        """The kind of the rows of a tuple that has a name, or is written out."""
        if isinstance(node, ast.Name) and node.id not in self._kind_of_name:
            return self._tuples.get(node.id, OTHER)
        if isinstance(node, ast.Tuple) and node.elts:
            return _joined_kind(self._of_row(element) for element in node.elts)
        return OTHER

    def _of_operation(self, node: ast.BinOp) -> str:
        left = self.of(node.left)
        right = self.of(node.right)
        if isinstance(node.op, ast.Pow):
            # A power keeps the type where the exponent is a literal whole number.
            literal = isinstance(node.right, ast.Constant) and right == WHOLE
            if literal and left in (NOT_YET, SINGLE):
                return left
            return OTHER
        joined = _joined_kind((left, right))
        if joined == SINGLE and not isinstance(node.op, SINGLE_OPERATORS):
            return OTHER
        if joined == WHOLE and not isinstance(node.op, WHOLE_OPERATORS):
            return OTHER
        return joined

    def _of_call(self, call: ast.Call) -> str:
        value = self._source.scope.meaning(call.func)
        starred = any(isinstance(a, ast.Starred) for a in call.args)
        if value is None or call.keywords or starred or not call.args:
            return OTHER
        if value is np.float32:
            return SINGLE
        if value is len:
            return WHOLE
        if _is_one_of(value, SAME_TYPE) or _is_one_of(value, SINGLE_OF_SINGLE):
            joined = _joined_kind(self.of(a) for a in call.args)
            if joined == WHOLE and not _is_one_of(value, SAME_TYPE):
                return OTHER
            return joined
        helper = self._source.called(call)
        kinds = None if helper is None else self.of_helper(helper, call)
        if kinds is None:
            return OTHER
        return kinds.returned()

    def of_helper(self, helper: _Source, call: ast.Call) -> "_Kinds | None":
        """The kinds of the values of a helper; None for a helper that calls itself."""
        # Recursion is not followed.
        if helper.function in self._under_way:
            return None
        components: dict[str, str] = {}
        tuples: dict[str, str] = {}
        values: dict[str, str] = {}
        for name, argument in zip(helper.parameters, call.args, strict=False):
            # Rows keep their kind inside; other arguments have the kind of their value.
            if self._is_row(argument):
                components[name] = self._of_row(argument)
            elif self._is_tuple(argument):
                tuples[name] = self._of_tuple(argument)
            else:
                values[name] = self.of(argument)
        for name in helper.parameters[len(call.args) :]:
            values[name] = OTHER
        return _Kinds(
            source=helper,
            components=components,
            tuples=tuples,
            values=values,
            single=self._single,
            under_way=self._under_way,
        )

    def _is_row(self, node: ast.expr) -> bool:
        """True for the name of a row, and for an item of a tuple of rows."""
        if isinstance(node, ast.Name):
            return node.id in self._components and node.id not in self._kind_of_name
        return isinstance(node, ast.Subscript) and self._is_tuple(node.value)

    def _is_tuple(self, node: ast.expr) -> bool:
        """True for the name of a tuple of rows, and for one that is written out."""
        if isinstance(node, ast.Name):
            return node.id in self._tuples and node.id not in self._kind_of_name
        return isinstance(node, ast.Tuple) and all(map(self._is_row, node.elts))

    def returned(self) -> str:
        """The kind of the values that the function returns."""
        nodes = ast.walk(self._source.definition)
        returned = [node.value for node in nodes if isinstance(node, ast.Return)]
        if not returned:
            return OTHER
        return _joined_kind(
            OTHER if value is None else self.of(value) for value in returned
        )


def _joined_kind(kinds: Iterable[str]) -> str:
    """The kind of a value that may be of any of these kinds."""
    different = {*kinds} - {NOT_YET}
    if not different:
        return NOT_YET
    if len(different) == 1:
        return different.pop()
    return OTHER


def _is_one_of(value: Any, functions: frozenset[Any]) -> bool:
    return any(value is function for function in functions)


def _values_of_names(source: _Source) -> dict[str, list[ast.expr | None]]:
    """All values that each name of a function ever gets; None for one not understood."""
    values_of_name: dict[str, list[ast.expr | None]] = {}
    understood: set[int] = set()
    # Collect what plain statements set; whatever else sets a name makes it unknown.
    for node in ast.walk(source.definition):
        for target, value in _names_set_by(node, source.scope):
            understood.add(id(target))
            values_of_name.setdefault(target.id, []).append(value)
    for node in ast.walk(source.definition):
        for name in _set_otherwise(node, source.definition, understood):
            values_of_name.setdefault(name, []).append(None)
    return values_of_name


def _set_otherwise(
    node: ast.AST, definition: ast.FunctionDef, understood: set[int]
) -> list[str]:
    """Names that a piece of syntax sets to a value that is not understood."""
    if isinstance(node, ast.FunctionDef | ast.Lambda) and node is not definition:
        # A function inside has names of its own.
        return [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    if not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Load):
        return []
    if id(node) in understood:
        return []
    return [node.id]


def _names_set_by(
    node: ast.AST, scope: Scope
) -> Iterator[tuple[ast.Name, ast.expr | None]]:
    """Names that a statement sets, with their values."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _names_assigned(target, node.value)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield from _names_assigned(node.target, node.value)
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        before = ast.Name(node.target.id, ast.Load())
        yield node.target, ast.BinOp(before, node.op, node.value)
    elif isinstance(node, ast.For) and isinstance(node.target, ast.Name):
        over = node.iter
        if isinstance(over, ast.Call) and scope.meaning(over.func) is range:
            for bound in over.args:
                yield node.target, bound


def _names_assigned(
    target: ast.expr, value: ast.expr
) -> Iterator[tuple[ast.Name, ast.expr | None]]:
    """Names in the target of an assignment, with their values."""
    if isinstance(target, ast.Name):
        yield target, value
    if not (isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)):
        return
    if len(target.elts) == len(value.elts):
        for name, part in zip(target.elts, value.elts, strict=True):
            if isinstance(name, ast.Name):
                # A tuple of constants is a constant itself, whose numbers stay double.
                yield name, part if names_in(part) else None
