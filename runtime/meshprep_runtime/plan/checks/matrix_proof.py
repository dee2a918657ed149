"""The proof of a matrix: its rows, and that every place leads to the right nonzero.

From the maps alone, by gathers: independent of the code that derives patterns.
"""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from ...types.loops import Arg
from ...types.maps import rows_of_entries
from ..matrices import MatrixPlan
from ..model import LoopPlan
from .proof import more


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


def _columns(matrix: MatrixPlan, row: NDArray[np.int32]) -> Iterator[str]:
    falls = (np.diff(matrix.columns) <= 0) & (row[1:] == row[:-1])
    if falls.any():
        at = row[int(np.argmax(falls))]
        yield f"matrix '{matrix.name}': the columns of row {at} do not ascend{more(falls)}"


def _places(
    matrix: MatrixPlan,
    row: NDArray[np.int32],
    loop_plan: LoopPlan,
    arg: Arg,
    used: NDArray[np.bool_],
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
