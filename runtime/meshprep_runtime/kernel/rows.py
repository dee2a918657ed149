"""The rows that a kernel gets, one for each argument and index, as pieces of generated text."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..types.loops import Access, Loop
from .bind import Slot

# How the value of an element joins a reduction. Where none of two values is less or equal, one is
# NaN, and so is their sum.
COMBINED = {
    Access.INC: "{total} + {value}",
    Access.MIN: "{total} if {total} <= {value} else "
    "{value} if {value} < {total} else {total} + {value}",
    Access.MAX: "{total} if {total} >= {value} else "
    "{value} if {value} > {total} else {total} + {value}",
}


@dataclass(frozen=True)
class Row:
    """One parameter of the kernel.

    ``array`` and ``table`` are the names of the dat and of the map in the generated text, ``table``
    None for direct rows and globals; ``column`` is the column of the map. A temporary row takes
    what one element adds, for a second step to sum. A placed row is the matrix of an element: value
    ``k`` is added at ``table[element, k]``, where that is a place; without a table the matrices of
    the elements are stored themselves.
    """

    array: str
    access: Access
    dim: int
    itemsize: int
    is_float: bool
    is_global: bool
    soa: bool
    table: str | None
    column: int
    temporary: bool = False
    placed: bool = False

    @property
    def constant(self) -> bool:
        """True for a global that is only read: handed to the kernel as it is."""
        return self.is_global and self.access is Access.READ

    @property
    def reduces(self) -> bool:
        """True for a global that elements lower, raise or add to."""
        return self.is_global and not self.constant

    @property
    def adds(self) -> bool:
        """True for what elements add through a map."""
        return self.table is not None and self.access is Access.INC

    @property
    def cleared(self) -> bool:
        """True where a chunk starts from zero, or from the least or largest found so far."""
        return self.adds or self.reduces or self.temporary

    @property
    def in_rows(self) -> bool:
        """True where sums of a chunk become rows of several components again."""
        return self.adds and not self.placed and self.dim > 1 and not self.soa

    def start(self, k: int) -> str:
        """Component ``k`` of a cleared row: -0.0 for floats, which adds nothing to any."""
        if self.access in (Access.MIN, Access.MAX):
            return f"{self.array}[{k}]"
        return "-0.0" if self.is_float else "0"

    def combined(self, total: str, value: str) -> str:
        """A reduction with one more value."""
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
        """1 where the kernel must not write, as the intrinsics want it."""
        return int(self.access is Access.READ)

    def offset(self, mapped: str, element: str) -> str:
        """Where the row of an element starts: ``mapped`` indexes maps, ``element`` direct dats."""
        point = element if self.table is None else f"U({self.table}[{mapped}, {self.column}])"
        return point if self.soa or self.dim == 1 else f"{point} * U({self.dim})"

    def component(self, offset: str, k: int) -> str:
        """Component ``k`` of the row that starts at an offset."""
        if k == 0:
            return f"{self.array}[{offset}]"
        shift = f"U({k}) * {self.stride}" if self.soa else f"U({k})"
        return f"{self.array}[{offset} + {shift}]"

    @property
    def stride(self) -> str:
        """The name of the distance of two components of an SoA dat."""
        return f"n_{self.array}"


def rows_of(loop: Loop, slots: Sequence[Slot]) -> tuple[Row, ...]:
    """One row for each parameter of the kernel, in its order."""
    place = {slot.name: i for i, slot in enumerate(slots)}
    tables = {name: f"m{i}" for i, name in enumerate(loop.maps)}
    # Those of matrices follow, see LoopPlan.tables; matrices of elements have none.
    added = [a.name for a in loop.matrices if slots[place[a.name]].rows != loop.over]
    tables |= {name: f"m{len(tables) + i}" for i, name in enumerate(added)}
    return tuple(
        Row(
            array=f"s{place[arg.name]}",
            access=arg.access,
            dim=arg.dim if arg.columns is None else arg.dim * len(arg.index),
            itemsize=np.dtype(arg.dtype).itemsize,
            is_float=np.dtype(arg.dtype).kind == "f",
            is_global=arg.is_global,
            soa=slots[place[arg.name]].soa,
            table=tables.get(arg.name if arg.columns else str(arg.map)),
            column=column,
            temporary=arg.columns is not None and arg.name not in added,
            placed=arg.columns is not None,
        )
        for arg in loop.args
        for column in arg.kernel_columns
    )
