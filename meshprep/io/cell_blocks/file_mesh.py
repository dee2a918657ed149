"""A mesh as in a file: blocks of cells, values by name, and extras of single formats."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..format.names import NUMBERS


@dataclass(eq=False)
class SideSet:
    """Sides of elements, in the order of the file."""

    elements: NDArray[np.int64]  # from 0 through all blocks
    sides: NDArray[
        np.int64
    ]  # which of its sides, from 1 and as the type of the element has them
    # ``number``, ``title`` where two sets have one name, ``factors`` and ``values`` of all
    # entries.
    attrs: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Cells:
    """A block of cells of one type: their nodes, a row each."""

    type: str
    data: NDArray[Any]


@dataclass(eq=False)
class PartValues:
    """Values on some cells of a block, which a grid of its own has in the file."""

    grid: str
    name: str
    block: int
    rows: NDArray[np.int64]
    values: NDArray[Any]


@dataclass(eq=False)
class FileMesh:
    """What readers return and writers take; its first fields are of ``meshio.Mesh``."""

    points: NDArray[Any]
    cells: list[Cells]
    point_data: dict[str, Any] = field(default_factory=dict)
    cell_data: dict[str, list[Any]] = field(
        default_factory=dict
    )  # None where a block has none
    field_data: dict[str, Any] = field(default_factory=dict)
    point_sets: dict[str, Any] = field(default_factory=dict)
    cell_sets: dict[str, list[Any]] = field(default_factory=dict)
    point_tags: dict[int, list[str]] = field(
        default_factory=dict
    )  # names of MED's families
    cell_tags: dict[int, list[str]] = field(default_factory=dict)
    group_names: dict[str, dict[int, str]] = field(default_factory=dict)
    set_attrs: dict[str, dict[str, Any]] = field(default_factory=dict)  # of sets of points
    side_sets: dict[str, SideSet] = field(default_factory=dict)
    times: list[float] = field(default_factory=lambda: [0.0])
    # Values of the whole mesh, and notes of a format on its own files.
    whole_values: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Any] = field(default_factory=dict)  # see vtk/notes.py
    tables: dict[str, NDArray[np.uint8]] = field(default_factory=dict)  # of colours
    parts: list[PartValues] = field(default_factory=list)
    grid: str = ""  # the name of the mesh in an XDMF file
    about_exodus: Any = None
    # values of the whole mesh, one a step
    whole_steps: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)  # in words
    numbered: bool = False  # the values ``label`` are numbers that the file gives

    def take_numbers(self) -> tuple[NDArray[Any] | None, list[NDArray[Any]] | None]:
        """The numbers of nodes and of blocks of cells, which leave the values."""
        nodes = self.point_data.get(NUMBERS)
        cells = self.cell_data.get(NUMBERS)
        if nodes is not None:
            if nodes.dtype.kind in "iu":
                nodes = self.point_data.pop(NUMBERS)
            else:
                nodes = None
        if cells is not None:
            whole = all(values.dtype.kind in "iu" for values in cells)
            cells = self.cell_data.pop(NUMBERS) if whole else None
        return nodes, cells
