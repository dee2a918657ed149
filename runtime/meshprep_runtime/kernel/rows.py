"""The rows that a kernel gets, one for each argument and index, as pieces of generated text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..bind import Slot
from ..loops import Access, Loop


@dataclass(frozen=True)
class Row:
    """One parameter of the kernel.

    ``array`` and ``table`` are the names of the dat and of the map in the generated text, ``table``
    None for direct rows and globals; ``column`` is the column of the map. A temporary row takes
    what one element adds, for a second step to sum.
    """

    array: str
    access: Access
    dim: int
    itemsize: int
    is_global: bool
    soa: bool
    table: str | None
    column: int
    temporary: bool = False

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
    return tuple(
        Row(
            array=f"s{place[arg.name]}",
            access=arg.access,
            dim=arg.dim,
            itemsize=np.dtype(arg.dtype).itemsize,
            is_global=arg.is_global,
            soa=slots[place[arg.name]].soa,
            table=None if arg.map is None else f"m{loop.maps.index(arg.map)}",
            column=column,
        )
        for arg in loop.args
        for column in (arg.index or (0,))
    )
