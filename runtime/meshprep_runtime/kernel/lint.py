"""Finds in a kernel's source, path by path, what contradicts its loop's accesses [G10 4].

Nothing is run or imported. A path is a way through the branches: a test takes both ways,
but the same test twice on a path takes the same way, where nothing that it reads was
changed in between. Loops over known ranges are followed turn by turn, others once. So a row
that is set where the data of no sample lead is found, too.

What is not understood is taken for right: a row that is handed to a function counts as read
and set by it.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple

from ..types.loops import Access, Loop
from .known import OPERATORS
from .parameters import KernelParameter, parameters_of_kernel
from .syntax import names_in, names_set_in

# Paths that are followed, and turns of a loop, at most.
MOST_PATHS = 128
MOST_TURNS = 64
REDUCED = (Access.MIN, Access.MAX)
# Statements that are followed as expressions alone.
PLAIN = (ast.Expr, ast.Assert, ast.Pass, ast.Import, ast.ImportFrom, ast.Global)


class LintFinding(NamedTuple):
    """What contradicts an access.

    Attributes
    ----------
    line : int
        Where in the source that was parsed, from 1.
    row : str
        The argument, and the column of its map.
    what : str
        What is wrong, and what to do.
    certain : bool
        False for what may have no effect: a ``write`` row that a path leaves unset or reads
        early, which no data may take, and an ``inc`` row that is read for something else.
    """

    line: int
    row: str
    what: str
    certain: bool = True


@dataclass(frozen=True)
class _Row:
    """A parameter of the kernel."""

    what: str
    dim: int
    access: Access


class _Unfollowed(Exception):
    """The source has something that is not followed, or too many paths."""


@dataclass
class _Path:
    """What holds at a place on a path."""

    # By row: the components that were set.
    written: dict[str, set[int]]
    # The way that each test went, by its text.
    decided: dict[str, bool] = field(default_factory=dict)
    # Names that are known numbers, and names that may hold what was read from rows.
    numbers: dict[str, int] = field(default_factory=dict)
    from_rows: dict[str, set[str]] = field(default_factory=dict)
    # Empty on the way; else how the path left: return, break or continue.
    left: str = ""


def lint_kernel(
    definition: ast.FunctionDef, loop: Loop, numbers: Mapping[str, int]
) -> list[LintFinding]:
    """What a kernel's source does against the accesses of its loop, by line.

    ``numbers`` are the whole numbers that names outside of the kernel stand for. A kernel
    with another number of parameters than the loop has rows gives one finding. O(paths x
    statements), at most 128 paths: what is found on them is given.
    """
    names = [argument.arg for argument in definition.args.args]
    parameters = parameters_of_kernel(len(names), loop)
    if len(names) != len(parameters):
        what = (
            f"the kernel has {len(names)} parameters, but the loop {len(parameters)} rows "
            f"of {len(loop.args)} arguments"
        )
        return [LintFinding(definition.lineno, f"loop '{loop.name}'", what)]
    # The rows of a tuple are known by the names ``x[0]``, ``x[1]``.
    rows: dict[str, _Row] = {}
    lengths: dict[str, int] = {}
    for name, parameter in zip(names, parameters, strict=True):
        if parameter.is_row:
            rows[name] = _row_of(parameter)
            continue
        lengths[name] = len(parameter.rows)
        for number, row in enumerate(parameter.rows):
            rows[f"{name}[{number}]"] = _row_of(row)
    reader = _PathReader(rows, lengths, numbers)
    with suppress(_Unfollowed, RecursionError):
        reader.read(definition)
    return sorted({*reader.findings, *reader.reads_of_unset()})


def _row_of(parameter: KernelParameter) -> _Row:
    """The row that a parameter of the kernel is."""
    return _Row(parameter.what, parameter.dim, parameter.arg.access)


class _PathReader:
    """Follows the paths through a kernel and collects findings.

    ``rows`` are known by their names, those of tuples with their numbers; ``lengths`` are
    those of tuples.
    """

    def __init__(
        self,
        rows: Mapping[str, _Row],
        lengths: Mapping[str, int],
        numbers: Mapping[str, int],
    ) -> None:
        self.rows = rows
        self.lengths = lengths
        self.outside = numbers
        self.findings: set[LintFinding] = set()
        # By row and component: the lines on which a path reads it unset, and the first line
        # that sets it on any path.
        self.early_reads: dict[tuple[str, int], set[int]] = {}
        self.first_set: dict[tuple[str, int], int] = {}

    def reads_of_unset(self) -> Iterator[LintFinding]:
        """The reads of 'write' rows before they are set: such values are nobody's.

        One is certain where no line before sets the component on any path.
        """
        for (name, component), lines in self.early_reads.items():
            what = f"reads component {component} of a 'write' row before it is set: use rw"
            for line in lines:
                never = line <= self.first_set.get((name, component), line)
                yield LintFinding(line, self.rows[name].what, what, certain=never)

    def read(self, definition: ast.FunctionDef) -> None:
        """Follow all paths, and look at what is unset at the end of each."""
        for node in ast.walk(definition):
            # An inner function may set rows under other names.
            if isinstance(node, ast.Lambda | ast.FunctionDef) and node is not definition:
                raise _Unfollowed
        from_rows = {name: {name} for name in self.rows}
        from_rows |= {name: self._rows_of_tuple(name) for name in self.lengths}
        start = _Path(written={name: set() for name in self.rows}, from_rows=from_rows)
        for path in self._statements(definition.body, [start]):
            self._look_at_end(definition, path)

    def _look_at_end(self, definition: ast.FunctionDef, path: _Path) -> None:
        for name, row in self.rows.items():
            unset = sorted(set(range(row.dim)) - path.written[name])
            if row.access is Access.WRITE and unset:
                way = [f"{test} is {went}" for test, went in path.decided.items()]
                where = f" where {' and '.join(way)}" if way else ""
                what = f"component {unset[0]} is not set{where}: set it, or use rw"
                self._find(definition, name, what, certain=not way)

    def _find(self, node: ast.AST, name: str, what: str, *, certain: bool = True) -> None:
        line = getattr(node, "lineno", 0)
        self.findings.add(LintFinding(line, self.rows[name].what, what, certain))

    # statements

    def _statements(self, body: Sequence[ast.stmt], paths: list[_Path]) -> list[_Path]:
        """The paths behind some statements, those that left among them."""
        for statement in body:
            behind = []
            for path in paths:
                if path.left:
                    behind.append(path)
                else:
                    behind += self._statement(statement, path)
            if len(behind) > MOST_PATHS:
                raise _Unfollowed
            paths = behind
        return paths

    def _statement(self, node: ast.stmt, path: _Path) -> list[_Path]:
        """The paths behind one statement."""
        if isinstance(node, ast.If):
            return self._if(node, path)
        if isinstance(node, ast.For | ast.While):
            return self._loop(node, path)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            self._assign(node, path)
        elif isinstance(node, ast.Return):
            if node.value is not None:
                self._expression(node.value, path)
            path.left = "return"
        elif isinstance(node, ast.Break | ast.Continue):
            path.left = type(node).__name__.lower()
        elif isinstance(node, ast.Raise):
            # What is left unset there is of no use to anyone.
            return []
        elif isinstance(node, ast.With):
            return self._statements(node.body, [path])
        elif isinstance(node, PLAIN):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self._expression(child, path)
        else:
            raise _Unfollowed
        return [path]

    def _if(self, node: ast.If, path: _Path) -> list[_Path]:
        self._expression(node.test, path)
        # A test that is known, or was decided before on this path, goes one way.
        text = ast.unparse(node.test)
        went = path.decided.get(text)
        value = self._number(node.test, path)
        if value is not None:
            went = bool(value)
        if went is not None:
            return self._statements(node.body if went else node.orelse, [path])
        # Others go both.
        other = deepcopy(path)
        path.decided[text] = True
        other.decided[text] = False
        return [
            *self._statements(node.body, [path]),
            *self._statements(node.orelse, [other]),
        ]

    def _loop(self, node: ast.For | ast.While, path: _Path) -> list[_Path]:
        turns = self._turns(node, path)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr) and not isinstance(child, ast.Name):
                self._expression(child, path)
        # Other loops run once, with all that they set unknown.
        if turns is None:
            for name in names_set_in(node):
                self._forget(name, path)
            turns = [None]
        paths = [path]
        done: list[_Path] = []
        for counter in turns:
            for way in paths:
                if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
                    self._forget(node.target.id, way)
                    if counter is not None:
                        way.numbers[node.target.id] = counter
            behind = self._statements(node.body, paths)
            # A break ends the loop, a return the kernel; the next turn follows the others.
            done += [way for way in behind if way.left in ("break", "return")]
            paths = [way for way in behind if way.left not in ("break", "return")]
            for way in paths:
                way.left = ""
            if len(paths) + len(done) > MOST_PATHS:
                raise _Unfollowed
        paths = self._statements(node.orelse, paths)
        for way in done:
            way.left = way.left.replace("break", "")
        return [*paths, *done]

    def _turns(self, node: ast.For | ast.While, path: _Path) -> list[int | None] | None:
        """The counters of a loop over a known range; None for other loops."""
        if not isinstance(node, ast.For) or not isinstance(node.target, ast.Name):
            return None
        call = node.iter
        is_range = isinstance(call, ast.Call) and ast.unparse(call.func) == "range"
        if not is_range or not isinstance(call, ast.Call):
            return None
        bounds = [self._number(bound, path) for bound in call.args]
        if not bounds or None in bounds:
            return None
        turns = range(*[int(bound) for bound in bounds if bound is not None])
        if len(turns) > MOST_TURNS:
            return None
        return [*turns]

    # assignments

    def _assign(
        self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, path: _Path
    ) -> None:
        if node.value is None:
            return
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        pairs: list[tuple[ast.expr, ast.expr | None]] = []
        values = getattr(node.value, "elts", None)
        for target in targets:
            if not isinstance(target, ast.Tuple | ast.List):
                pairs.append((target, node.value))
            elif values is not None and len(values) == len(target.elts):
                pairs += zip(target.elts, values, strict=True)
            else:
                pairs += [(part, None) for part in target.elts]
        self._read_value(node, path)
        for target, value in pairs:
            self._store(node=node, target=target, value=value, path=path)

    def _read_value(
        self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, path: _Path
    ) -> None:
        """Look at the reads of a value, but for sums that a row of 'inc' may have."""
        assert node.value is not None
        target = node.target if not isinstance(node, ast.Assign) else node.targets[0]
        name = self._row_name(target, path)
        # ``t = r[0]`` may be added to and put back; ``r[0] = r[0] + f`` adds.
        kept = isinstance(target, ast.Name)
        if name in self.rows and not isinstance(node, ast.AugAssign):
            kept = _adds_to(target, node.value)
        self._expression(node.value, path, allows_inc=kept, changed=name or "")

    def _store(
        self,
        node: ast.Assign | ast.AnnAssign | ast.AugAssign,
        target: ast.expr,
        value: ast.expr | None,
        path: _Path,
    ) -> None:
        """Take what an assignment to one target does."""
        name = self._row_name(target, path)
        is_item = isinstance(target, ast.Subscript) and not self._is_in_tuple(target)
        adding = isinstance(node, ast.AugAssign)
        if name is None:
            raise _Unfollowed
        # ``row = value`` changes no row, and the name is none any more.
        if not is_item and name in self.rows and not adding:
            raise _Unfollowed
        if name in self.lengths:
            raise _Unfollowed
        if not is_item and name not in self.rows:
            self._set_name(name=name, value=value, adding=adding, path=path)
            return
        if isinstance(target, ast.Subscript):
            self._expression(target.slice, path)
        self._drop_decisions(name, path)
        if name not in self.rows:
            sources = self._sources(value, path)
            path.from_rows[name] = path.from_rows.get(name, set()) | sources
            return
        components = self._components(target, name, path)
        self._check_set(node=node, name=name, target=target, value=value, path=path)
        if adding and self.rows[name].access is Access.WRITE:
            self._check_read(node, name, components, path)
        path.written[name] |= components
        for component in components:
            first = self.first_set.get((name, component), node.lineno)
            self.first_set[name, component] = min(first, node.lineno)
        path.from_rows[name] = path.from_rows[name] | self._sources(value, path)

    def _set_name(
        self, name: str, value: ast.expr | None, adding: bool, path: _Path
    ) -> None:
        """Give a local name its value."""
        sources = self._sources(value, path)
        number = None if adding or value is None else self._number(value, path)
        if adding:
            sources = sources | path.from_rows.get(name, set())
        self._forget(name, path)
        path.from_rows[name] = sources
        if number is not None:
            path.numbers[name] = number

    def _check_set(
        self,
        node: ast.Assign | ast.AnnAssign | ast.AugAssign,
        name: str,
        target: ast.expr,
        value: ast.expr | None,
        path: _Path,
    ) -> None:
        """Compare an assignment to a row with its access."""
        row = self.rows[name]
        operation = node.op if isinstance(node, ast.AugAssign) else None
        sources = self._sources(value, path)
        if row.access is Access.READ:
            self._find(node, name, "sets a row that is only read: declare write, rw or inc")
        elif row.access is Access.INC and operation is not None:
            if not isinstance(operation, ast.Add | ast.Sub):
                self._find(
                    node,
                    name,
                    "does more than add to a row with access 'inc': use += and -=, or "
                    "declare rw",
                )
        elif row.access is Access.INC and name not in sources and value is not None:
            self._find(
                node,
                name,
                "sets a row that is only added to ('inc'): use += and -=, or declare write "
                "or rw",
            )
        elif row.access in REDUCED:
            compared = any(name in _names_of_text(text) for text in path.decided)
            free = value is not None and name not in sources and not compared
            if operation is not None or free:
                self._find(
                    node,
                    name,
                    f"sets a global with access '{row.access}' whatever it was: write "
                    f"{name}[0] = {row.access}({name}[0], ...)",
                )

    # expressions

    def _expression(
        self, node: ast.expr, path: _Path, *, allows_inc: bool = False, changed: str = ""
    ) -> None:
        """Look at all reads in an expression, which may be given to the row ``changed``."""
        items = [part for part in ast.walk(node) if isinstance(part, ast.Subscript)]
        of_items = {id(part.value) for part in items}
        # ``row.size`` and ``len(row)`` read no value.
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute):
                of_items.add(id(part.value))
            if isinstance(part, ast.Call) and ast.unparse(part.func) == "len":
                of_items |= {id(argument) for argument in part.args}
        for item in items:
            name = self._row_name(item.value, path)
            whole_row = isinstance(item.value, ast.Name) or self._is_in_tuple(item.value)
            if name in self.rows and whole_row:
                assert name is not None
                components = self._components(item, name, path)
                if self.rows[name].access is Access.WRITE:
                    self._check_read(item, name, components, path)
                if self.rows[name].access is Access.INC and not allows_inc:
                    self._find(
                        item,
                        name,
                        "reads a row that is only added to ('inc'), which may start from "
                        "zero: declare rw",
                        # What is read may come to nothing, but not in the row itself.
                        certain=name == changed,
                    )
        for part in ast.walk(node):
            # A row as a whole may be read and set by what it is handed to.
            if id(part) not in of_items:
                for name in self._rows_of_whole(part, path):
                    path.written[name] |= set(range(self.rows[name].dim))
                    self._drop_decisions(name, path)
            if isinstance(part, ast.NamedExpr):
                self._set_name(
                    name=part.target.id, value=part.value, adding=False, path=path
                )

    def _is_in_tuple(self, node: ast.AST) -> bool:
        """True for ``x[k]`` of a tuple of rows ``x``."""
        return (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id in self.lengths
        )

    def _row_name(self, node: ast.expr, path: _Path) -> str | None:
        """``r`` of ``r``, ``r[0]`` and ``r[0][1]``, and ``x[0]`` of a tuple ``x``.

        None for others, and for a row of a tuple whose number is not known.
        """
        while isinstance(node, ast.Subscript):
            if isinstance(node.value, ast.Name) and node.value.id in self.lengths:
                return self._row_of_tuple(node, node.value.id, path)
            node = node.value
        if isinstance(node, ast.Name):
            return node.id
        return None

    def _row_of_tuple(self, node: ast.Subscript, name: str, path: _Path) -> str | None:
        """The name of the row that an item of a tuple is."""
        length = self.lengths[name]
        number = self._number(node.slice, path)
        if number is None:
            return None
        if not -length <= number < length:
            what = f"takes row {number} of a tuple of {length} rows: count from 0"
            self._find(node, f"{name}[0]", what)
            raise _Unfollowed
        return f"{name}[{number % length}]"

    def _rows_of_tuple(self, name: str) -> set[str]:
        """The names of all rows of a tuple."""
        return {f"{name}[{number}]" for number in range(self.lengths[name])}

    def _rows_of_whole(self, node: ast.AST, path: _Path) -> set[str]:
        """The rows that a name, or an item of a tuple, stands for as a whole."""
        if isinstance(node, ast.Name) and node.id in self.lengths:
            return self._rows_of_tuple(node.id)
        if isinstance(node, ast.Name) and node.id in self.rows:
            return {node.id}
        if not isinstance(node, ast.Subscript) or not self._is_in_tuple(node):
            return set()
        # Of a number that is not known any row may be meant.
        name = self._row_name(node, path)
        assert isinstance(node.value, ast.Name)
        if name is None:
            return self._rows_of_tuple(node.value.id)
        return {name}

    def _check_read(
        self, node: ast.AST, name: str, components: set[int], path: _Path
    ) -> None:
        """A 'write' row has old values of nobody until it is set."""
        # Of an index that is not known any component may be meant.
        if len(components) == 1 and not components <= path.written[name]:
            (component,) = components
            lines = self.early_reads.setdefault((name, component), set())
            lines.add(getattr(node, "lineno", 0))

    def _components(self, target: ast.expr, name: str, path: _Path) -> set[int]:
        """The components that an item may stand for."""
        dim = self.rows[name].dim
        all_components = set(range(dim))
        if not isinstance(target, ast.Subscript) or isinstance(target.slice, ast.Slice):
            return all_components
        index = self._number(target.slice, path)
        if index is None:
            return all_components
        if not -dim <= index < dim:
            what = f"reaches component {index} of a row of dim {dim}: count from 0"
            self._find(target, name, what)
            return set()
        return {index % dim}

    def _number(self, node: ast.expr, path: _Path) -> int | None:
        """The whole number that an expression is on this path; None where not known."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return int(node.value)
        if isinstance(node, ast.Name):
            if node.id in path.numbers:
                return path.numbers[node.id]
            if node.id in path.from_rows:
                return None
            return self.outside.get(node.id)
        if isinstance(node, ast.UnaryOp):
            operands = [node.operand]
        elif isinstance(node, ast.BinOp):
            operands = [node.left, node.right]
        elif isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
        else:
            return None
        values = [self._number(operand, path) for operand in operands]
        operation = node.ops[0] if isinstance(node, ast.Compare) else node.op
        if None in values or len(values) > 2 or type(operation) not in OPERATORS:
            return None
        try:
            result = OPERATORS[type(operation)](*values)
        except ArithmeticError:
            return None
        return result if isinstance(result, int) else None

    # names

    def _sources(self, value: ast.expr | None, path: _Path) -> set[str]:
        """The rows that a value may have been computed from."""
        names = set(self.rows) if value is None else names_in(value)
        return set().union(*(path.from_rows.get(name, set()) for name in names))

    def _forget(self, name: str, path: _Path) -> None:
        path.numbers.pop(name, None)
        path.from_rows.setdefault(name, set())
        self._drop_decisions(name, path)

    def _drop_decisions(self, name: str, path: _Path) -> None:
        """Tests of a name may go another way once it has changed."""
        if name in self.rows and self.rows[name].access in REDUCED:
            return
        # Of ``x[0]`` the name ``x`` stands in tests.
        name = name.partition("[")[0]
        for text in [text for text in path.decided if name in _names_of_text(text)]:
            del path.decided[text]


def _name_of_item(target: ast.expr) -> str | None:
    """``r`` of ``r``, ``r[0]`` and ``r[0][1]``; None for others."""
    while isinstance(target, ast.Subscript):
        target = target.value
    if isinstance(target, ast.Name):
        return target.id
    return None


def _names_of_text(text: str) -> set[str]:
    return names_in(ast.parse(text, mode="eval"))


def _adds_to(target: ast.expr, value: ast.expr) -> bool:
    """True for ``r[0] = r[0] + f``, ``f + r[0]`` and ``r[0] - f``, with f free of r."""
    name = _name_of_item(target)
    item = ast.unparse(target)
    if ast.unparse(value) == item:
        return True
    if not isinstance(value, ast.BinOp):
        return False
    if isinstance(value.op, ast.Add | ast.Sub) and name not in names_in(value.right):
        return _adds_to(target, value.left)
    if isinstance(value.op, ast.Add) and name not in names_in(value.left):
        return _adds_to(target, value.right)
    return False
