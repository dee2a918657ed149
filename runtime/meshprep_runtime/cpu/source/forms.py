"""Which forms of a loop's code may be the fastest, by the arithmetic of its kernel.

Forms that are tried against each other give the same bits, so that a call may run some ranges in
one and some in another.
"""

import ast
import inspect
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ...kernel.compiler import import_numba
from ...kernel.rows import Row
from ...types.loops import Access
from .element import CHUNK, LOCAL, ROWS, can_chunk, chunk_size

# Weights of operations, in additions.
OPERATORS: dict[type, int] = {ast.Div: 6, ast.FloorDiv: 6, ast.Mod: 6, ast.Pow: 20}
FUNCTIONS = {"sqrt": 8, "abs": 1, "fabs": 1, "min": 1, "max": 1, "minimum": 1, "maximum": 1}
# A mathematical function that is not listed. Vectorised, it may differ in its last bit.
OTHER_FUNCTION = 20
# Operations for each value that is moved between the dats and the kernel: from LIGHT on chunks may
# pay, from HEAVY on nothing else does where there are maps. Between them only a clock can tell: at
# 2.0 chunks are the fastest for six divisions by two volumes, rows for an average of three nodes.
# Of least and largest values chunks are the slower below HEAVY (half as fast at 1.5 and 3), and
# below CHEAP without maps, quotients and roots: 0.5 at 3, 0.8 to 0.9 at 4 to 7, 1.1 at 9.
LIGHT, HEAVY, CHEAP = 1.5, 4.0, 8.0
# Elements of a chunk, at least: rows of many values leave no room for more.
LEAST_CHUNK = 16
# Times that a loop whose number of turns is not written runs.
SOME_TURNS = 4


def forms(kernel: Callable[..., None], rows: Sequence[Row], fixed: bool = False) -> tuple[str, ...]:
    """The forms worth compiling, the likeliest first; one where bits may differ (``fixed``)."""
    found = _candidates(kernel, rows)
    return found[:1] if fixed else found


def _candidates(kernel: Callable[..., None], rows: Sequence[Row]) -> tuple[str, ...]:
    sums = [r for r in rows if r.adds or r.reduces]
    chunks = can_chunk(rows) and chunk_size(rows) >= LEAST_CHUNK
    tree = _source(kernel)
    if any(r.temporary for r in rows):
        return (CHUNK,) if can_chunk(rows) else (ROWS,)
    once = tree is not None and adds_once(tree, rows)
    simple: tuple[str, ...]
    if not sums:
        simple = (ROWS,)
    elif not once:
        # a component that is added to twice is rounded twice in place, and once elsewhere
        simple = (LOCAL,)
    else:
        simple = (LOCAL, ROWS) if sum(r.dim for r in sums) > 2 else (ROWS, LOCAL)
    if tree is None:
        return (*simple, CHUNK) if chunks else simple
    moved = sum(r.dim * (2 if r.adds else 1) for r in rows if not r.is_global)
    arithmetic = Arithmetic(kernel)
    work, vectorised = arithmetic.of(tree)
    intensity = work / max(moved, 1)
    mapped = any(r.table for r in rows)
    heavy = intensity >= (HEAVY if mapped or arithmetic.dearest > 1 else CHEAP)
    if any(r.access in (Access.MIN, Access.MAX) for r in rows if r.is_global):
        # a NaN is found by one form and not by another, so there is no choice
        return (CHUNK,) if chunks and heavy else (ROWS if once else LOCAL,)
    if chunks and heavy and mapped:
        return (CHUNK,)
    if not chunks or intensity < LIGHT or (vectorised and _vector_functions()):
        return simple
    return (CHUNK, *simple)


def _vector_functions() -> bool:
    """True where vectorised code calls other functions of ``exp`` and such than plain code does."""
    return bool(import_numba().config.USING_SVML)


def _source(kernel: Callable[..., None]) -> ast.FunctionDef | None:
    """The kernel as it was written; None where nobody knows."""
    function: Any = getattr(kernel, "py_func", kernel)
    try:
        node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    code = function.__code__
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        return None
    same = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    return node if same == list(code.co_varnames[: code.co_argcount]) else None


class Arithmetic:
    """Counts what a kernel computes, helpers included."""

    def __init__(self, function: Any) -> None:
        self._scope: dict[str, Any] = getattr(function, "py_func", function).__globals__
        self._under_way: set[str] = set()

    def of(self, node: ast.AST) -> tuple[float, bool]:
        """Operations, in additions, and whether functions such as ``exp`` are called."""
        self._functions, self.dearest = False, 0
        return self._count(node, 1.0), self._functions

    def _count(self, node: ast.AST, times: float) -> float:
        total = 0.0
        if isinstance(node, ast.For):
            return self._count(node.iter, times) + sum(
                self._count(n, times * _turns(node.iter)) for n in (*node.body, *node.orelse)
            )
        if isinstance(node, ast.Subscript):
            # the arithmetic of an index is none
            return self._count(node.value, times)
        if isinstance(node, ast.BinOp | ast.AugAssign):
            total += times * self._weighed(OPERATORS.get(type(node.op), 1))
            self._functions |= isinstance(node.op, ast.Pow)
        elif isinstance(node, ast.Call):
            total += times * self._call(node)
        return total + sum(self._count(child, times) for child in ast.iter_child_nodes(node))

    def _weighed(self, weight: int) -> int:
        self.dearest = max(self.dearest, weight)
        return weight

    def _call(self, node: ast.Call) -> float:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        if name in FUNCTIONS:
            return self._weighed(FUNCTIONS[name])
        helper = self._scope.get(name) if isinstance(node.func, ast.Name) else None
        if helper is None:
            plain = name in ("range", "len", "int", "float", "bool", "round")
            self._functions |= not plain
            return 0 if plain else self._weighed(OTHER_FUNCTION)
        tree = _source(helper) if name not in self._under_way else None
        if tree is None:
            self._functions = True
            return 0
        self._under_way.add(name)
        outer, self._scope = self._scope, getattr(helper, "py_func", helper).__globals__
        total = self._count(tree, 1.0)
        self._scope = outer
        self._under_way.discard(name)
        return total


def _turns(iterated: ast.expr) -> int:
    if isinstance(iterated, ast.Call) and len(iterated.args) == 1:
        count = getattr(iterated.args[0], "value", None)
        return count if type(count) is int else SOME_TURNS
    return SOME_TURNS


def adds_once(kernel: ast.FunctionDef, rows: Sequence[Row]) -> bool:
    """True where no component of a sum is added to twice, and none is looked at.

    There is one ``+=`` or ``-=`` for each component, or one in a loop over the components, in
    each way through the kernel.
    """
    names = (*kernel.args.posonlyargs, *kernel.args.args)
    sums = {a.arg for a, r in zip(names, rows, strict=True) if r.access is Access.INC}
    try:
        added = _added(kernel.body, sums, ())
    except _Unknown:
        return False
    for name in sums:
        places = {at: count for (row, at), count in added.items() if row == name}
        if any(count > 1 for count in places.values()):
            return False
        if len(places) > 1 and not all(at.isdigit() for at in places):
            return False
    return True


class _Unknown(Exception):
    """A row is used in a way that says nothing about its components."""


def _added(
    body: Sequence[ast.stmt], sums: set[str], loops: tuple[str, ...]
) -> Counter[tuple[str, str]]:
    """How often each component of some rows is added to, by row and the text of the index."""
    found: Counter[tuple[str, str]] = Counter()
    for node in body:
        if isinstance(node, ast.If):
            _refuse_names(node.test, sums)
            found += _added(node.body, sums, loops) | _added(node.orelse, sums, loops)
        elif isinstance(node, ast.For):
            _refuse_names(node.iter, sums)
            found += _added(node.body, sums, (*loops, ast.unparse(node.target)))
            found += _added(node.orelse, sums, loops)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
            row, at = ast.unparse(node.target.value), ast.unparse(node.target.slice)
            _refuse_names(node.value, sums)
            _refuse_names(node.target.slice, sums)
            if row in sums:
                over_all = loops == (at,) or (at.isdigit() and not loops)
                if not over_all or not isinstance(node.op, ast.Add | ast.Sub):
                    raise _Unknown
                found[row, at] += 1
        else:
            _refuse_names(node, sums)
    return found


def _refuse_names(node: ast.AST, names: set[str]) -> None:
    if any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(node)):
        raise _Unknown
