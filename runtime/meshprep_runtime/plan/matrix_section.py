"""Matrices in a plan: their groups, checks and proof.

The proof is by gathers from the maps alone, independent of the code that derives patterns.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from ..errors import PlanError
from ..types.loops import Arg
from ..types.maps import Bools, Int32s, rows_of_entries
from .checks.proof import more
from .checks.structure import size_of
from .file.tree import Tree, check_array, check_below, check_offset, checked_name
from .matrices import MatrixPlan
from .model import LoopPlan, PlanContent

ROOT = "/matrices"
ARRAYS = {"row_of": "<i4", "row_ptr": "<i8", "columns": "<i4"}


def put(tree: Tree, plan: PlanContent) -> None:
    """Add the matrices to a tree."""
    tree.group(ROOT)
    for i, matrix in enumerate(plan.matrices.values()):
        path, sets = f"{ROOT}/{checked_name(matrix.name)}", (matrix.row_set, matrix.column_set)
        tree.group(path, row_set=sets[0], column_set=sets[1], position=i)
        for name in [*ARRAYS] if sets[0] == sets[1] else [*ARRAYS, "column_of"]:
            tree.datasets[f"{path}/{name}"] = getattr(matrix, name)
        tree.group(f"{path}/place")
        for loop, place in matrix.place.items():
            tree.datasets[f"{path}/place/{checked_name(loop)}"] = place


def get(tree: Tree) -> dict[str, MatrixPlan]:
    """The matrices that a tree holds."""
    return {name: _get_matrix(tree, name) for name in tree.children(ROOT)}


def check(plan: PlanContent) -> None:
    """Raise PlanError unless the patterns fit; their places are looked at with the loops."""
    for name, matrix in plan.matrices.items():
        _check_matrix(plan, name, matrix)


def prove(plan: PlanContent) -> list[str]:
    """What is wrong with the matrices, one line each."""
    return [line for m in plan.matrices.values() for line in prove_matrix(m, plan.loops)]


def _get_matrix(tree: Tree, name: str) -> MatrixPlan:
    path = f"{ROOT}/{name}"
    row_set, column_set = tree.text(path, "row_set"), tree.text(path, "column_set")
    row_of, row_ptr, columns = (tree.array(f"{path}/{k}", t) for k, t in ARRAYS.items())
    column_of = row_of
    if row_set != column_set:
        column_of = tree.array(f"{path}/column_of", "<i4")
    loops = tree.leaves(f"{path}/place")
    place = {loop: tree.array(f"{path}/place/{loop}", "<i4", ndim=2) for loop in loops}
    return MatrixPlan(name, row_set, column_set, row_of, column_of, row_ptr, columns, place)


def _check_matrix(plan: PlanContent, name: str, matrix: MatrixPlan) -> None:
    """The pattern of one matrix; its places are looked at with the loops."""
    where = f"matrix '{name}'"
    unknown = [loop for loop in matrix.place if loop not in plan.loops]
    if matrix.name != name or unknown:
        raise PlanError(f"{where} has another name, or places of loops that the plan has not")
    for label, set_name in (("row_of", matrix.row_set), ("column_of", matrix.column_set)):
        n, values = size_of(plan.sizes, set_name, where), getattr(matrix, label)
        check_array(f"{where}, {label}", values, "i4", (n,))
        numbered = values[values >= 0]
        if not np.array_equal(numbered, np.arange(numbered.size)) or values.min(initial=0) < -1:
            raise PlanError(f"{where}, {label} does not count up from 0, with -1 for the others")
    rows = int(np.count_nonzero(matrix.row_of >= 0))
    check_offset(f"{where}, row_ptr", matrix.row_ptr, matrix.columns.size)
    check_array(f"{where}, row_ptr", matrix.row_ptr, "i8", (rows + 1,))
    check_array(f"{where}, columns", matrix.columns, "i4", (matrix.columns.size,))
    check_below(f"{where}, columns", matrix.columns, matrix.shape[1])


def prove_matrix(matrix: MatrixPlan, loops: Mapping[str, LoopPlan]) -> list[str]:
    """Findings about one matrix, empty when it is right.

    A line for each broken property, naming the first place and how many more there are. Checked:
    columns ascend in each row; each entry of each element's matrix is added in its row and column,
    or has no place where one of the two is constrained; every nonzero is added to. ``matrix`` and
    ``loops`` have passed :func:`structure.check_plan`. O(entries of all elements' matrices), one
    entry of all elements at a time.
    """
    row = rows_of_entries(matrix.row_ptr)
    used = np.zeros(matrix.columns.size, np.bool_)
    findings = [*_columns(matrix, row)]
    for loop_plan in loops.values():
        for arg in loop_plan.loop.matrices:
            if arg.name == matrix.name:
                findings += _places(matrix, row, loop_plan, arg, used)
    if not findings and not used.all():
        at = int(np.argmin(used))
        findings.append(
            f"matrix '{matrix.name}': nothing is added at row {row[at]}, column "
            f"{matrix.columns[at]}{more(~used)}"
        )
    return findings


def _columns(matrix: MatrixPlan, row: Int32s) -> Iterator[str]:
    falls = (np.diff(matrix.columns) <= 0) & (row[1:] == row[:-1])
    if falls.any():
        at = row[int(np.argmax(falls))]
        yield f"matrix '{matrix.name}': the columns of row {at} do not ascend{more(falls)}"


def _places(
    matrix: MatrixPlan, row: Int32s, loop_plan: LoopPlan, arg: Arg, used: Bools
) -> Iterator[str]:
    """Wrong places of one loop; those that are right are noted in ``used``."""
    rows, columns = loop_plan.maps[str(arg.map)], loop_plan.maps[str(arg.columns)]
    for k, place in enumerate(matrix.place[loop_plan.loop.name].T):
        i, j = divmod(k, columns.arity)
        r, c = matrix.row_of[rows.table[:, i]], matrix.column_of[columns.table[:, j]]
        free, has = (r >= 0) & (c >= 0), place >= 0
        used[place[has]] = True
        wrong = free != has
        both = np.flatnonzero(free & has)
        at = place[both]
        wrong[both] = (row[at] != r[both]) | (matrix.columns[at] != c[both])
        if wrong.any():
            e = int(np.argmax(wrong))
            yield (
                f"loop '{loop_plan.loop.name}', matrix '{matrix.name}': element {e}, local row "
                f"{i}, column {j} is added at nonzero {place[e]}, not at row {r[e]}, column "
                f"{c[e]}{more(wrong)}"
            )
            return
