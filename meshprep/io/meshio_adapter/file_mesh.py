"""A mesh as files have it: blocks of cells, values by name, and what only some formats say."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Number, elements from 0 through all blocks, and which of their sides, from 1.
SideSet = tuple[int, NDArray[np.int64], NDArray[np.int64]]
NUMBERS = "label"


@dataclass(eq=False)
class Cells:
    """A block of cells of one type: their nodes, a row each."""

    type: str
    data: NDArray[Any]


@dataclass(eq=False)
class FileMesh:
    """What readers give and writers take; the first fields are those of a ``meshio.Mesh``."""

    points: NDArray[Any]
    cells: list[Cells]
    point_data: dict[str, Any] = field(default_factory=dict)
    cell_data: dict[str, list[Any]] = field(default_factory=dict)  # None where a block has none
    field_data: dict[str, Any] = field(default_factory=dict)
    point_sets: dict[str, Any] = field(default_factory=dict)
    cell_sets: dict[str, list[Any]] = field(default_factory=dict)
    point_tags: dict[int, list[str]] = field(default_factory=dict)  # names of MED's families
    cell_tags: dict[int, list[str]] = field(default_factory=dict)
    group_names: dict[str, dict[int, str]] = field(default_factory=dict)
    set_numbers: dict[str, int] = field(default_factory=dict)
    side_sets: dict[str, SideSet] = field(default_factory=dict)
    times: list[float] = field(default_factory=lambda: [0.0])
    # Values of the whole mesh, and notes of a format on its own files.
    whole_values: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)  # in words
    numbered: bool = False  # the values ``label`` are numbers that the file gives

    def take_numbers(self) -> tuple[NDArray[Any] | None, list[NDArray[Any]] | None]:
        """The numbers of nodes and of blocks of cells, which leave the values."""
        nodes, cells = self.point_data.get(NUMBERS), self.cell_data.get(NUMBERS)
        if nodes is not None:
            nodes = self.point_data.pop(NUMBERS) if nodes.dtype.kind in "iu" else None
        if cells is not None:
            whole = all(values.dtype.kind in "iu" for values in cells)
            cells = self.cell_data.pop(NUMBERS) if whole else None
        return nodes, cells
