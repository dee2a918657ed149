"""The rows that a kernel is called with, one for each argument and index, as text."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..types.loops import Access, Loop
from ..types.maps import Int32s
from .bind import Slot

# How a reduction takes the value of an element. Where neither of two values is less than
# or equal to the other, one of them is NaN, and their sum is NaN, too.
COMBINED = {
    Access.INC: "{total} + {value}",
    Access.MIN: "{total} if {total} <= {value} else "
    "{value} if {value} < {total} else {total} + {value}",
    Access.MAX: "{total} if {total} >= {value} else "
    "{value} if {value} > {total} else {total} + {value}",
}


@dataclass(frozen=True)
class Row:
    """A parameter of the kernel.

    ``array`` and ``table`` are the names of the dat and of the map in the generated text;
    ``table`` is None for direct rows and globals; ``column`` is the column of the map.

    A temporary row takes the increments of an element, for a second step to sum. A placed
    row is the matrix of an element: value ``k`` is added to the nonzero ``table[element,
    k]``, unless that is -1; without a table the matrices of the elements are stored
    themselves.
    """

    array: str
    access: Access
    dim: int
    dtype: np.dtype
    is_global: bool
    soa: bool
    table: str | None
    column: int
    temporary: bool = False
    placed: bool = False

    @property
    def constant(self) -> bool:
        """True for a global that is only read; the kernel gets the array itself."""
        return self.is_global and self.access is Access.READ

    @property
    def reduces(self) -> bool:
        """True for a global that elements lower, raise or add to."""
        return self.is_global and not self.constant

    @property
    def adds(self) -> bool:
        """True for a row that elements add to through a map."""
        return self.table is not None and self.access is Access.INC

    @property
    def summed(self) -> bool:
        """True for a row of a dat, not of a matrix, that elements add to.

        The matrix of an element is always a buffer of its own.
        """
        return self.adds and not self.placed

    @property
    def cleared(self) -> bool:
        """True where a chunk starts from zero, or from the minimum or maximum so far."""
        return self.adds or self.reduces or self.temporary

    @property
    def in_rows(self) -> bool:
        """True where sums of a chunk become rows of several components again."""
        return self.summed and self.dim > 1 and not self.soa

    def start(self, k: int) -> str:
        """The start of component ``k`` of a cleared row.

        For sums of floats -0.0: adding it leaves every float as it is, also -0.0.
        """
        if self.access in (Access.MIN, Access.MAX):
            return f"{self.array}[{k}]"
        if self.dtype.kind == "f":
            return "-0.0"
        return "0"

    def combined(self, total: str, value: str) -> str:
        """The text of a reduction of ``total`` and ``value``."""
        return COMBINED[self.access].format(total=total, value=value)

    @property
    def loaded(self) -> bool:
        """True where a chunk starts from the dat's values."""
        return not (self.is_global or self.cleared)

    @property
    def stored(self) -> bool:
        """True where the values go back to the dat."""
        return not self.is_global and self.access is not Access.READ

    @property
    def only_read(self) -> int:
        """1 where the kernel must not write, else 0: an argument of the intrinsics."""
        return int(self.access is Access.READ)

    def points(self, tables: Sequence[Int32s]) -> Int32s:
        """The point of each element that this row belongs to.

        For a placed row: the places of all entries of all elements, since all columns of a
        matrix are one argument.
        """
        table = tables[int(str(self.table)[1:])]
        if self.placed:
            return table.reshape(-1)
        return table[:, self.column]

    @property
    def stride(self) -> str:
        """The name of the distance between two components of an SoA dat."""
        return f"n_{self.array}"


def reaches_apart(rows: Sequence[Row], tables: Sequence[Int32s]) -> bool:
    """True where no element adds to one row of a dat through two of its rows. O(n)."""
    summed = [r for r in rows if r.summed]
    for first, second in combinations(summed, 2):
        if first.array != second.array:
            continue
        if np.any(first.points(tables) == second.points(tables)):
            return False
    return True


def rows_of(loop: Loop, slots: Sequence[Slot]) -> tuple[Row, ...]:
    """One row for each parameter of the kernel, in its order."""
    number = {slot.name: i for i, slot in enumerate(slots)}
    tables = {name: f"m{i}" for i, name in enumerate(loop.maps)}
    # The tables of matrices follow, see LoopPlan.tables; matrices of elements have none.
    added = [a.name for a in loop.matrices if slots[number[a.name]].rows != loop.over]
    tables |= {name: f"m{len(tables) + i}" for i, name in enumerate(added)}
    # An argument of several columns is several rows for the kernel.
    rows = []
    for arg in loop.args:
        is_matrix = arg.columns is not None
        for column in arg.kernel_columns:
            row = Row(
                array=f"s{number[arg.name]}",
                access=arg.access,
                dim=arg.dim * len(arg.index) if is_matrix else arg.dim,
                dtype=np.dtype(arg.dtype),
                is_global=arg.is_global,
                soa=slots[number[arg.name]].soa,
                table=tables.get(arg.name if is_matrix else str(arg.map)),
                column=column,
                temporary=is_matrix and arg.name not in added,
                placed=is_matrix,
            )
            rows.append(row)
    return tuple(rows)
