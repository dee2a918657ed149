"""The cells of a file as they will be in memory, and where the elements of the file went."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh.assemble import GroupTable
from .numbering import Lookup, make_lookup


@dataclass(frozen=True, eq=False)
class FileCells:
    """The cells of one type, and where the elements of the file went.

    ``cell`` is, for each element of this type in the file, the cell that it became; None where
    every element became one.
    """

    name: str
    dim: int
    nodes: NDArray[np.int32]
    label: NDArray[np.int64]
    tags: dict[str, GroupTable]
    element_label: NDArray[np.int64]
    cell: NDArray[np.int64] | None


@dataclass(frozen=True, eq=False)
class ElementLookup:
    """The cell of the element of each number, counted through all types.

    Those of a type begin at ``start``, which has the number of all behind them.
    """

    lookup: Lookup
    start: NDArray[np.int64]
    cell: NDArray[np.int32]

    @classmethod
    def of(cls, cells: list[FileCells]) -> "ElementLookup":
        """Look at all cells; raises MeshprepError where a number stands for two of them."""
        labels = [c.element_label for c in cells]
        label = np.concatenate([*labels, np.empty(0, np.int64)])
        start = np.concatenate([[0], np.cumsum([x.size for x in labels])]).astype(np.int64)
        cell = np.arange(label.size, dtype=np.int32)
        for c, s in zip(cells, start, strict=False):
            if c.cell is not None:
                cell[s : s + c.cell.size] = s + c.cell
        lookup, twice = make_lookup(label)
        if twice >= 0:
            bad = cell[lookup.find(label)] != cell
            if bad.any():
                raise MeshprepError(
                    f"$Elements: element number {label[np.argmax(bad)]} occurs twice, so that "
                    "values of elements are ambiguous: renumber one"
                )
        return cls(lookup, start, cell)

    def find(self, label: NDArray[np.int64], section: str) -> NDArray[np.int32]:
        """The cells of the elements with these numbers."""
        at = self.lookup.find(label)
        if at.size and at.min() < 0:
            raise MeshprepError(
                f"{section}: element {label[np.argmax(at < 0)]} is not in $Elements: "
                "write mesh and values together"
            )
        return self.cell[at]
