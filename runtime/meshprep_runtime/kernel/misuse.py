"""Finds misuse of rows in a kernel's source, before the kernel runs.

Misuse is an index past the end of a row, setting a row against its access, and giving the
name of a row another value. The statements are followed with the numbers that are known
without the data: constants, and counters of loops over known ranges. Where such a number
decides a branch, only that branch is followed. A helper is followed where it gets a whole
row.

Faults that depend on the data are left to the sample of :mod:`.access`.
"""

import ast
import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from types import FunctionType
from typing import Any

from ..errors import MeshprepError
from ..plan import LoopPlan
from ..types.loops import Access
from .analysis import is_known, reach
from .known import Names, Unknown
from .parameters import kernel_by_row, parameters_by_row
from .syntax import definition_of, names_in, names_set_in, parameters_of

# Statements that are followed, at most: some milliseconds.
MOST_STATEMENTS = 400
# Turns that are followed at the beginning, and at the end, of a loop over a known range.
MOST_TURNS = 8
# Helpers that are followed inside each other, at most.
MOST_HELPERS = 4
# Keys of the kernels that have passed in this process, at most so many.
MOST_KEPT = 1000
_right: set[Hashable] = set()
REDUCED = (Access.MIN, Access.MAX)
# Operations that make new values, and do not change their operands.
MAKES_NEW = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Constant)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
INNER_FUNCTIONS = (ast.FunctionDef, ast.Lambda)


class Ending(IntEnum):
    """How a list of statements ends."""

    ON = 0  # the next statement runs
    NEXT = 1  # with the turn of a loop
    OUT = 2  # with the loop
    END = 3  # with the function


@dataclass(frozen=True)
class KernelRow:
    """A row that a kernel is called with."""

    what: str  # loop and argument, as messages name them
    dim: int
    access: Access


def check_rows(kernel: Callable[..., None], plan: LoopPlan) -> None:
    """Raise MeshprepError for the first misuse of a row in a kernel's source.

    A kernel whose source cannot be read passes. Takes milliseconds.
    """
    key = (reach(kernel), plan.loop.args)
    if key in _right:
        return
    by_row = kernel_by_row(kernel, plan.loop)
    function: Any = getattr(by_row, "py_func", by_row)
    _check_source(function, plan)
    if len(_right) >= MOST_KEPT:
        _right.clear()
    _right.add(key)


def _check_source(function: FunctionType, plan: LoopPlan) -> None:
    """Follow the source of a kernel that has a row for each of its parameters."""
    # Name each parameter as the messages do: argument, index, column.
    where = f"loop '{plan.loop.name}'"
    names = parameters_of(function)
    rows: dict[str, KernelRow] = {}
    for name, parameter in zip(names, parameters_by_row(plan.loop), strict=True):
        rows[name] = KernelRow(
            what=f"{where}: {parameter.what}",
            dim=parameter.dim,
            access=parameter.arg.access,
        )
    # Without the source nothing is known.
    body = definition_of(function)
    if body is None:
        return
    # Follow the paths through the kernel.
    reader = _SourceReader(
        function=function, body=body, rows=rows, tuples={}, numbers={}, budget=_Budget()
    )
    reader.check_names()
    reader.read()


class _Budget:
    """The statements that may still be followed, and the functions being followed."""

    def __init__(self) -> None:
        self.statements = MOST_STATEMENTS
        self.under_way: list[FunctionType] = []


class _Exhausted(Exception):
    """The rest of the function is not followed."""


class _SourceReader:
    """Follows a function; its arguments are rows, tuples of rows and known numbers."""

    def __init__(
        self,
        function: FunctionType,
        body: ast.FunctionDef,
        rows: Mapping[str, KernelRow],
        tuples: Mapping[str, Sequence[KernelRow]],
        numbers: Mapping[str, Any],
        budget: _Budget,
    ) -> None:
        self.function = function
        self.body = body
        self.given = rows
        self.budget = budget
        self.is_kernel = not budget.under_way
        code = function.__code__
        rebound = _rebound(body)
        # The rows, and tuples of them, under names that never get another value.
        self.rows = {name: row for name, row in rows.items() if name not in rebound}
        self.tuples = {name: row for name, row in tuples.items() if name not in rebound}
        self.names = Names(
            function,
            frozenset((*code.co_varnames, *code.co_cellvars)),
            {name: row.dim for name, row in self.rows.items()},
        )
        self.numbers = dict(numbers)
        # True where the data may have ended this turn of a loop before.
        self.may_have_left = False

    def read(self) -> None:
        """Follow the statements; raises MeshprepError for the first misuse."""
        self.budget.under_way.append(self.function)
        # Statements that are not followed are left to the sample.
        with suppress(_Exhausted, RecursionError):
            self._statements(self.body.body, self.numbers)
        self.budget.under_way.pop()

    # names

    def check_names(self) -> None:
        """Raise MeshprepError for rows that lose their names, or that are never set."""
        # An inner function may set rows under names that are not followed here.
        inside = (node for node in ast.walk(self.body) if node is not self.body)
        if any(isinstance(node, INNER_FUNCTIONS) for node in inside):
            return
        # A row is changed through its items: another value for its name is lost.
        for name, row in self.given.items():
            if row.access is Access.READ:
                continue
            for node, value in _values_given(self.body, name):
                if self._leaves_row(name, value):
                    self._fail(
                        row,
                        node,
                        f"gives the name '{name}' another value, which changes no row: "
                        f"write {name}[0] {'+=' if row.access is Access.INC else '='} ...",
                    )
            if row.access is Access.WRITE and name not in self._set_or_passed:
                self._fail(
                    row,
                    self.body,
                    "never sets a row with access 'write': set every component, or declare "
                    "read",
                )

    def _leaves_row(self, name: str, value: ast.expr) -> bool:
        """True for a value that is computed from a row, or where the row is never set."""
        if name not in names_in(value):
            return name not in self._set_or_passed
        if isinstance(value, ast.Call):
            try:
                function = self.names.thing(value.func)
            except Unknown:
                return False
            # Ufuncs, max() and the like make new values; others may return a view.
            return hasattr(function, "nin") or function in (min, max, abs, sum)
        return isinstance(value, MAKES_NEW)

    @cached_property
    def _set_or_passed(self) -> frozenset[str]:
        """Names whose items are set, or that are used as a whole, as by a helper."""
        # Collect the uses that cannot change a row.
        only_read: set[int] = set()
        for node in ast.walk(self.body):
            # A slice may be a view, which is set later.
            if (
                isinstance(node, ast.Subscript)
                and isinstance(node.ctx, ast.Load)
                and not isinstance(node.slice, ast.Slice)
            ):
                only_read.add(id(node.value))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                only_read.add(id(node))
        # ``row[0] += 1`` reads and sets it.
        changed = {
            id(node.target)
            for node in ast.walk(self.body)
            if isinstance(node, ast.AugAssign)
        }
        return frozenset(
            node.id
            for node in ast.walk(self.body)
            if isinstance(node, ast.Name)
            and (id(node) not in only_read or id(node) in changed)
        )

    @cached_property
    def _loaded(self) -> frozenset[str]:
        """Names whose values are read, other than by ``row[i] += value``."""
        # ``row[i] = value`` loads the name ``row``, but not its values.
        unseen = {
            id(node.value)
            for node in ast.walk(self.body)
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
        }
        return frozenset(
            node.id
            for node in ast.walk(self.body)
            if isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Load)
            and id(node) not in unseen
        )

    @cached_property
    def _depending(self) -> frozenset[str]:
        """Names whose values may come from rows that are not only read."""
        code = self.function.__code__
        read = {name for name, row in self.given.items() if row.access is Access.READ}
        for name, rows in self.tuples.items():
            if all(row.access is Access.READ for row in rows):
                read.add(name)
        # Begin with the parameters, and add the names that are set from these names, until
        # there are no more.
        depending = set(code.co_varnames[: code.co_argcount]) - read - set(self.numbers)
        parts = [_uses_and_changes(node) for node in ast.walk(self.body)]
        before = -1
        while before != len(depending):
            before = len(depending)
            for used, changed in parts:
                if used & depending:
                    depending |= changed - read
        return frozenset(depending)

    # statements

    def _statements(self, body: Sequence[ast.stmt], known: dict[str, Any]) -> Ending:
        """Follow statements; ``known`` are the values of names, which they change."""
        for statement in body:
            self.budget.statements -= 1
            if self.budget.statements < 0:
                raise _Exhausted
            ending = self._statement(statement, known)
            if ending != Ending.ON:
                return ending
        return Ending.ON

    def _statement(self, node: ast.stmt, known: dict[str, Any]) -> Ending:
        # Statements that end a path, or a turn of a loop.
        if isinstance(node, ast.Return | ast.Raise):
            self._children(node, known)
            return Ending.END
        if isinstance(node, ast.Break):
            return Ending.OUT
        if isinstance(node, ast.Continue):
            return Ending.NEXT
        # Statements with branches end as their branches do.
        if isinstance(node, ast.If):
            return self._if(node, known)
        if isinstance(node, ast.For):
            return self._for(node, known)
        # All others go on to the next statement.
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            self._assign(node, known)
        elif isinstance(node, ast.FunctionDef):
            known.pop(node.name, None)
        elif isinstance(node, ast.Match):
            raise _Exhausted
        elif hasattr(node, "body"):
            self._unknown_body(node, known)
        else:
            self._children(node, known)
        return Ending.ON

    def _if(self, node: ast.If, known: dict[str, Any]) -> Ending:
        self._expression(node.test, known)
        try:
            if self.names.value(node.test, known):
                chosen = node.body
            else:
                chosen = node.orelse
        except Unknown:
            pass
        else:
            return self._statements(chosen, known)
        # A comparison with the data may keep an index within its row: forget the names in
        # it.
        for name in names_in(node.test):
            known.pop(name, None)
        # Follow both branches, and keep the values that are the same after both.
        endings = []
        values_after = []
        for body in (node.body, node.orelse):
            values = dict(known)
            endings.append(self._statements(body, values))
            if endings[-1] == Ending.ON:
                values_after.append(set(values.items()))
        self.may_have_left |= Ending.OUT in endings or Ending.END in endings
        if not values_after:
            return min(endings)
        in_both = set.intersection(*values_after)
        known.clear()
        known.update(in_both)
        return Ending.ON

    def _for(self, node: ast.For, known: dict[str, Any]) -> Ending:
        self._expression(node.iter, known)
        # Names that the loop sets have other values in later turns.
        for name in names_set_in(node):
            known.pop(name, None)
        before = self.may_have_left
        # Follow the turns one by one where their numbers are known.
        for counter in self._counters(node, known):
            inside = dict(known)
            if counter is not None and isinstance(node.target, ast.Name):
                inside[node.target.id] = counter
            self.may_have_left = False
            ending = self._statements(node.body, inside)
            if ending == Ending.END:
                return ending
            if ending == Ending.OUT or self.may_have_left:
                break
        self.may_have_left = before or _may_return(node)
        return self._statements(node.orelse, known)

    def _counters(self, node: ast.For, known: Mapping[str, Any]) -> Sequence[int | None]:
        """The counter of each turn that is followed; None where it is not known."""
        call = node.iter
        if not isinstance(call, ast.Call) or not isinstance(node.target, ast.Name):
            return [None]
        try:
            if self.names.thing(call.func) is not range:
                return [None]
            turns = range(*[self.names.value(bound, known) for bound in call.args])
        except (Unknown, TypeError, ValueError):
            return [None]
        # Of many turns the first and the last ones go out of bounds, if any do.
        if len(turns) <= 2 * MOST_TURNS:
            return turns
        return [*turns[:MOST_TURNS], *turns[-MOST_TURNS:]]

    def _unknown_body(self, node: ast.stmt, known: dict[str, Any]) -> None:
        """Follow the statements inside of a statement that the data decide."""
        # The statement may run or not, and return: nothing that it sets is known after it.
        self.may_have_left |= _may_return(node)
        for name in names_set_in(node):
            known.pop(name, None)
        inside = dict(known)
        # Inside, what it tests holds other values than outside.
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._expression(child, known)
                for name in names_in(child):
                    inside.pop(name, None)
        for part in ("body", "handlers", "orelse", "finalbody", "cases"):
            for child in getattr(node, part, []):
                if isinstance(child, ast.stmt):
                    self._statements([child], inside)
                else:
                    self._statements(child.body, dict(inside))

    def _assign(
        self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, known: dict[str, Any]
    ) -> None:
        if node.value is None:
            return
        self._expression(node.value, known)
        for target, value in _assigned_values(node):
            self._store(target=target, value=value, node=node, known=known)

    def _store(
        self,
        target: ast.expr,
        value: ast.expr | None,
        node: ast.Assign | ast.AnnAssign | ast.AugAssign,
        known: dict[str, Any],
    ) -> None:
        """Note a value that is assigned to a name, and check one that is set in a row."""
        operation = node.op if isinstance(node, ast.AugAssign) else None
        # A plain name gets the value, if that is known before the run.
        if isinstance(target, ast.Name) and operation is None:
            known.pop(target.id, None)
            if value is not None:
                with suppress(Unknown):
                    known[target.id] = self.names.value(value, known)
            return
        name = None
        if isinstance(target, ast.Name):
            # ``row += value`` sets all components.
            name = target.id
            known.pop(name, None)
        else:
            self._children(target, known)
        row = self.rows.get(name or "")
        # A component of a row is set: check its index, then its value.
        if isinstance(target, ast.Subscript):
            self._refuse_row_as_whole(target)
            name = ast.unparse(target.value)
            row = self._row(target.value, known)
            if row is not None:
                self._check_index(row, target, known)
        if row is not None and name is not None:
            self._check_set(row=row, name=name, value=value, operation=operation, node=node)

    # expressions

    def _children(self, node: ast.AST, known: dict[str, Any]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._expression(child, known)
            elif not isinstance(child, ast.expr_context | ast.operator):
                self._children(child, known)

    def _expression(self, node: ast.expr, known: dict[str, Any]) -> None:
        if isinstance(node, ast.Lambda):
            return
        # Parts that may not run are followed apart from those that do.
        if isinstance(node, ast.BoolOp):
            self._short_circuit(node, known)
        elif isinstance(node, ast.IfExp):
            self._choice(node, known)
        elif isinstance(node, COMPREHENSIONS):
            inside = dict(known)
            for name in names_set_in(node):
                inside.pop(name, None)
            self._children(node, inside)
        else:
            self._children(node, known)
        # ``:=`` gives its name a value that is not followed.
        if isinstance(node, ast.NamedExpr):
            known.pop(node.target.id, None)
        if isinstance(node, ast.Subscript):
            self._refuse_two_indices(node)
            row = self._row(node.value, known)
            if row is not None:
                self._check_index(row, node, known)
        if isinstance(node, ast.Call):
            self._helper(node, known)

    def _short_circuit(self, node: ast.BoolOp, known: dict[str, Any]) -> None:
        """Follow the operands of ``and`` and ``or`` up to the one that decides."""
        # An operand runs only where the ones before it have not decided.
        inside = dict(known)
        for operand in node.values:
            self._expression(operand, inside)
            try:
                if bool(self.names.value(operand, inside)) is isinstance(node.op, ast.Or):
                    return
            except Unknown:
                for name in names_in(operand):
                    inside.pop(name, None)

    def _choice(self, node: ast.IfExp, known: dict[str, Any]) -> None:
        self._expression(node.test, known)
        try:
            if self.names.value(node.test, known):
                chosen = node.body
            else:
                chosen = node.orelse
        except Unknown:
            # Either side may run: what the test reads is not known in them.
            inside = dict(known)
            for name in names_in(node.test):
                inside.pop(name, None)
            self._expression(node.body, inside)
            self._expression(node.orelse, inside)
        else:
            self._expression(chosen, known)

    def _helper(self, node: ast.Call, known: Mapping[str, Any]) -> None:
        """Follow a function that gets whole rows."""
        # Find the function; some calls cannot be followed, or lead back to themselves.
        try:
            called = self.names.thing(node.func)
        except Unknown:
            return
        function = getattr(called, "py_func", called)
        budget = self.budget
        if not inspect.isfunction(function) or is_known(function):
            return
        if function in budget.under_way or len(budget.under_way) > MOST_HELPERS:
            return
        # Give its parameters the rows and known numbers of the call.
        parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
        rows: dict[str, KernelRow] = {}
        tuples: dict[str, Sequence[KernelRow]] = {}
        numbers: dict[str, Any] = {}
        for name, value in zip(parameters, node.args, strict=False):
            if isinstance(value, ast.Starred):
                return
            row = self._row(value, known)
            if row is not None:
                rows[name] = row
                continue
            tuple_of_rows = self._tuple_of_rows(value, known)
            if tuple_of_rows:
                tuples[name] = tuple_of_rows
                continue
            with suppress(Unknown):
                numbers[name] = self.names.value(value, known)
        # Read it like the kernel; without a row it can misuse none.
        body = definition_of(function) if rows or tuples else None
        if body is not None:
            reader = _SourceReader(
                function=function,
                body=body,
                rows=rows,
                tuples=tuples,
                numbers=numbers,
                budget=budget,
            )
            reader.read()

    # rows

    def _row(self, node: ast.expr, known: Mapping[str, Any]) -> KernelRow | None:
        """The row that ``row`` or ``rows[number]`` is; None for others.

        Raises MeshprepError for a number beyond the end of the tuple.
        """
        if isinstance(node, ast.Name):
            return self.rows.get(node.id)
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            return None
        rows = self.tuples.get(node.value.id)
        if rows is None:
            return None
        try:
            number = self.names.value(node.slice, known)
        except Unknown:
            return None
        if not isinstance(number, int):
            return None
        if not -len(rows) <= number < len(rows):
            self._fail(
                rows[0],
                node,
                f"takes row {number} of a tuple of {len(rows)} rows: count from 0",
            )
        return rows[number]

    def _rows_of_item(self, node: ast.Subscript) -> Sequence[KernelRow]:
        """The rows of the tuple that an item is taken of; empty for other items."""
        if isinstance(node.value, ast.Name):
            return self.tuples.get(node.value.id, ())
        return ()

    def _refuse_row_as_whole(self, target: ast.Subscript) -> None:
        """Raise MeshprepError where ``x[0] = value`` sets a row of a tuple of rows."""
        self._refuse_two_indices(target)
        rows = self._rows_of_item(target)
        if rows:
            item = ast.unparse(target)
            self._fail(
                rows[0], target, f"sets the row '{item}' as a whole: set {item}[0], ..."
            )

    def _refuse_two_indices(self, node: ast.Subscript) -> None:
        """Raise MeshprepError where ``x[0, 1]`` takes two indices of a tuple of rows."""
        rows = self._rows_of_item(node)
        if rows and isinstance(node.slice, ast.Tuple):
            row, *component = map(ast.unparse, node.slice.elts)
            item = f"{ast.unparse(node.value)}[{row}]" + "".join(
                f"[{k}]" for k in component
            )
            self._fail(rows[0], node, f"takes two indices of a tuple of rows: write {item}")

    def _tuple_of_rows(
        self, node: ast.expr, known: Mapping[str, Any]
    ) -> Sequence[KernelRow]:
        """The rows of a name of a tuple, or of a tuple that is written out."""
        if isinstance(node, ast.Name):
            return self.tuples.get(node.id, ())
        if not isinstance(node, ast.Tuple):
            return ()
        rows = [self._row(element, known) for element in node.elts]
        found = [row for row in rows if row is not None]
        # Of a tuple of rows and of other values the rows would not be known by number.
        return found if len(found) == len(rows) else ()

    # faults

    def _check_index(
        self, row: KernelRow, node: ast.Subscript, known: Mapping[str, Any]
    ) -> None:
        index = node.slice
        # Both ends of a slice must lie within the row.
        if isinstance(index, ast.Slice):
            for end in (index.lower, index.upper):
                if end is not None and not self._is_within(end, row.dim, known):
                    taken = ast.unparse(index)
                    self._fail(
                        row, node, f"takes components {taken} of a row of dim {row.dim}"
                    )
            return
        # A negative index counts from the end of the row, as in Python.
        try:
            component = self.names.value(index, known)
        except Unknown:
            return
        if isinstance(component, int) and not -row.dim <= component < row.dim:
            self._fail(
                row,
                node,
                f"reaches component {component} of a row of dim {row.dim}: "
                "components are counted from 0",
            )

    def _is_within(self, end: ast.expr, dim: int, known: Mapping[str, Any]) -> bool:
        """False for an end of a slice that lies outside of the row."""
        try:
            component = self.names.value(end, known)
        except Unknown:
            return True
        return not isinstance(component, int) or -dim <= component <= dim

    def _check_set(
        self,
        row: KernelRow,
        name: str,
        value: ast.expr | None,
        operation: ast.operator | None,
        node: ast.AST,
    ) -> None:
        adds = isinstance(operation, ast.Add | ast.Sub)
        sums = isinstance(operation, ast.Add | ast.Sub | ast.Mult | ast.Div)
        if row.access is Access.READ:
            self._fail(row, node, "sets a row that is only read: declare write, rw or inc")
        if row.access is Access.INC and operation is not None and not adds:
            self._fail(
                row,
                node,
                "does more than add to a row with access 'inc': use += and -=, or "
                "declare rw",
            )
        if row.access is Access.INC and operation is None and self._is_free(value):
            self._fail(
                row,
                node,
                "sets a row that is only added to ('inc'): use += and -=, or declare "
                "write or rw",
            )
        # Threads reduce into copies of their own, which are combined at the end: what is
        # set whatever it was would lose the others.
        if row.access in REDUCED:
            plain = operation is None and self.is_kernel and name not in self._loaded
            if sums or (plain and self._is_free(value)):
                self._fail(
                    row,
                    node,
                    f"sets a global with access '{row.access}' whatever it was: write "
                    f"{name}[0] = {row.access}({name}[0], ...)",
                )

    def _is_free(self, value: ast.expr | None) -> bool:
        """True for a value that depends on no row but those that are only read."""
        return value is not None and not names_in(value) & self._depending

    def _fail(self, row: KernelRow, node: ast.AST, what: str) -> None:
        code = self.function.__code__
        line = code.co_firstlineno + getattr(node, "lineno", 1) - 1
        raise MeshprepError(
            f"{row.what}: kernel '{code.co_name}' at {code.co_filename}:{line} {what}"
        )


def _may_return(part: ast.AST) -> bool:
    return any(isinstance(node, ast.Return | ast.Raise) for node in ast.walk(part))


def _rebound(body: ast.AST) -> set[str]:
    """Names that get another value, other than by ``name += value``."""
    in_place = {
        id(node.target) for node in ast.walk(body) if isinstance(node, ast.AugAssign)
    }
    return {
        node.id
        for node in ast.walk(body)
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Store | ast.Del)
        and id(node) not in in_place
    }


def _values_given(body: ast.AST, name: str) -> Iterator[tuple[ast.AST, ast.expr]]:
    """The values that ``name = value`` gives a name."""
    for node in ast.walk(body):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            for target, value in _assigned_values(node):
                is_name = isinstance(target, ast.Name) and target.id == name
                if is_name and value is not None:
                    yield node, value


def _assigned_values(
    node: ast.Assign | ast.AnnAssign | ast.AugAssign,
) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Each target of an assignment with its value; None for an item of an unknown value."""
    if node.value is None:
        return
    for target in _targets_of(node):
        yield from _unpacked(target, node.value)


def _targets_of(node: ast.stmt | ast.expr) -> list[ast.expr]:
    """The targets of an assignment of any kind."""
    if isinstance(node, ast.Assign):
        return node.targets
    assert isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr)
    return [node.target]


def _unpacked(
    target: ast.expr, value: ast.expr | None
) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """The targets in a tuple or list, with their values."""
    if not isinstance(target, ast.Tuple | ast.List):
        yield target, value
        return
    values: Sequence[ast.expr | None] = [None] * len(target.elts)
    if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
        values = value.elts
    for element, value_of_element in zip(target.elts, values, strict=True):
        yield from _unpacked(element, value_of_element)


def _uses_and_changes(node: ast.AST) -> tuple[set[str], set[str]]:
    """The names that a statement or call reads, and the names that it may change."""
    if isinstance(node, ast.Call):
        # A helper may put the values of its arguments into a row or array among them.
        changed = set().union(*(names_in(argument) for argument in node.args))
        return names_in(node), changed
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
        changed = set().union(*(names_in(target) for target in _targets_of(node)))
        used = set() if node.value is None else names_in(node.value)
        return used, changed
    if isinstance(node, ast.For | ast.comprehension):
        return names_in(node.iter), names_in(node.target)
    if isinstance(node, ast.With):
        return names_in(node), names_in(node)
    return set(), set()
