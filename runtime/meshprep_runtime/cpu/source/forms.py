"""Chooses the forms of a loop's code that may be the fastest, by its kernel's arithmetic.

All forms of a loop give the bits of the plain loop of its author, so that a call may run
some ranges in one form and some in another.
"""

import ast
from collections.abc import Callable, Sequence
from typing import Any

from ..._numba.installed import calls_vector_library
from ...kernel.analysis import may_be_fused
from ...kernel.rows import Row
from ...kernel.sums import may_wait
from ...kernel.syntax import definition_of
from ...types.loops import Access
from .element import CHUNK, LOCAL, ROWS, can_chunk, chunk_size

# Weights of operations, in additions.
OPERATORS: dict[type, int] = {ast.Div: 6, ast.FloorDiv: 6, ast.Mod: 6, ast.Pow: 20}
FUNCTIONS = {
    "sqrt": 8,
    "abs": 1,
    "fabs": 1,
    "min": 1,
    "max": 1,
    "minimum": 1,
    "maximum": 1,
}
# A mathematical function that is not listed. Vectorised, it may differ in its last bit.
OTHER_FUNCTION = 20
# The intensity of a kernel: operations for each value that is moved between the dats and
# the kernel. From LIGHT on chunks may pay. Between LIGHT and HEAVY only a clock can tell:
# at 2.0 chunks are the fastest for six divisions by two volumes, rows for an average of
# three nodes.
LIGHT = 1.5
# From HEAVY on chunks are the fastest where there are maps. With minima and maxima of
# globals chunks are the slower below it (half as fast at 1.5 and 3).
HEAVY = 4.0
# From CHEAP on chunks are the fastest without maps, quotients and roots: their speed beside
# that of rows is 0.5 at 3, 0.8 to 0.9 at 4 to 7, 1.1 at 9.
CHEAP = 8.0
# Elements of a chunk, at least; rows of so many values that chunks are smaller stay in
# place.
LEAST_CHUNK = 16
# Assumed number of turns of a loop over a range that is not a literal number.
SOME_TURNS = 4


def forms(
    kernel: Callable[..., None], rows: Sequence[Row], apart: bool, fixed: bool = False
) -> tuple[str, ...]:
    """The forms worth compiling, the likeliest to be the fastest first.

    Parameters
    ----------
    kernel : function
    rows : sequence of Row
    apart : bool
        No element adds to a row through two of its arguments.
    fixed : bool
        Give a single form, since forms may differ in their bits.
    """
    candidates = _candidates(kernel, rows, apart)
    if fixed or may_be_fused(kernel):
        return candidates[:1]
    return candidates


def _candidates(
    kernel: Callable[..., None], rows: Sequence[Row], apart: bool
) -> tuple[str, ...]:
    # The first step of "two-step" adds to nothing, so that any loop may take chunks.
    if any(r.temporary for r in rows):
        if can_chunk(rows):
            return (CHUNK,)
        return (ROWS,)
    # Vectors convert numbers below zero to other unsigned integers than plain code.
    if any(r.dtype.kind == "u" for r in rows if r.stored or r.reduces):
        return (ROWS,)
    simple = _simple(rows, apart)
    chunks = can_chunk(rows) and chunk_size(rows) >= LEAST_CHUNK
    if not chunks or not (apart and may_wait(kernel, rows)):
        return simple
    # Forms differ in where they meet a NaN among minima and maxima.
    by_order = any(r.access in (Access.MIN, Access.MAX) for r in rows if r.is_global)
    tree = definition_of(kernel)
    if tree is None:
        if by_order or calls_vector_library():
            return simple
        return (*simple, CHUNK)
    # Without the source, or with functions that vectorised code computes otherwise, chunks
    # are tried where their bits are the same; with it, the intensity decides.
    moved = sum(r.dim * (2 if r.adds else 1) for r in rows if not r.is_global)
    arithmetic = Arithmetic(kernel)
    work, vectorised = arithmetic.of(tree)
    intensity = work / max(moved, 1)
    mapped = any(r.table for r in rows)
    heavy = intensity >= (HEAVY if mapped or arithmetic.dearest > 1 else CHEAP)
    if heavy and (mapped or by_order):
        return (CHUNK,)
    if by_order or intensity < LIGHT or (vectorised and calls_vector_library()):
        return simple
    return (CHUNK, *simple)


def _simple(rows: Sequence[Row], apart: bool) -> tuple[str, ...]:
    """The forms without chunks."""
    summed = sum(r.dim for r in rows if r.summed)
    # Rows that may be one row cannot be copied: the copies would not see each other.
    if not summed or not apart:
        return (ROWS,)
    if summed > 2:
        return (LOCAL, ROWS)
    return (ROWS, LOCAL)


class Arithmetic:
    """Counts the operations of a kernel and of the functions that it calls."""

    def __init__(self, function: Any) -> None:
        self._scope: dict[str, Any] = getattr(function, "py_func", function).__globals__
        self._under_way: set[str] = set()

    def of(self, node: ast.AST) -> tuple[float, bool]:
        """Operations, in additions, and whether functions such as ``exp`` are called."""
        self._functions = False
        self.dearest = 0  # the weight of the dearest operation
        return self._count(node, 1.0), self._functions

    def _count(self, node: ast.AST, times: float) -> float:
        """The operations of a piece of syntax that runs ``times`` times."""
        total = 0.0
        if isinstance(node, ast.For):
            turns = _turns_of_range(node.iter)
            body = (*node.body, *node.orelse)
            inside = sum(self._count(statement, times * turns) for statement in body)
            return self._count(node.iter, times) + inside
        if isinstance(node, ast.Subscript):
            # The arithmetic of an index does not count.
            return self._count(node.value, times)
        if isinstance(node, ast.BinOp | ast.AugAssign):
            total += times * self._weighed(OPERATORS.get(type(node.op), 1))
            self._functions |= isinstance(node.op, ast.Pow)
        elif isinstance(node, ast.Call):
            total += times * self._call(node)
        return total + sum(
            self._count(child, times) for child in ast.iter_child_nodes(node)
        )

    def _weighed(self, weight: int) -> int:
        self.dearest = max(self.dearest, weight)
        return weight

    def _call(self, node: ast.Call) -> float:
        """The operations of a call: of a function by its name, or of a helper's body."""
        name = ""
        helper = None
        if isinstance(node.func, ast.Attribute):
            name = node.func.attr
        elif isinstance(node.func, ast.Name):
            name = node.func.id
            helper = self._scope.get(name)
        if name in FUNCTIONS:
            return self._weighed(FUNCTIONS[name])
        if helper is None:
            plain = name in ("range", "len", "int", "float", "bool", "round")
            self._functions |= not plain
            return 0 if plain else self._weighed(OTHER_FUNCTION)
        # A helper without source, or that calls itself, is not counted.
        tree = None if name in self._under_way else definition_of(helper)
        if tree is None:
            self._functions = True
            return 0
        # Count the body of the helper, with the names of its own module.
        self._under_way.add(name)
        outer = self._scope
        self._scope = getattr(helper, "py_func", helper).__globals__
        total = self._count(tree, 1.0)
        self._scope = outer
        self._under_way.discard(name)
        return total


def _turns_of_range(iterated: ast.expr) -> int:
    """How often a loop runs: the number in ``range(number)``, else a guess."""
    if isinstance(iterated, ast.Call) and len(iterated.args) == 1:
        count = getattr(iterated.args[0], "value", None)
        if type(count) is int:
            return count
    return SOME_TURNS
