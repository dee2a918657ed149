"""The numbers that a file gives its nodes and cells, as arrays of one name in meshio's objects.

Where they only count, in the order in which a mesh has the cells, they are left out.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...mesh import Mesh

NUMBERS = "label"
# What stands between the names of several groups that MED gives a family.
BETWEEN = ", "
# Of nodes, and of each block of cells; None where there are none.
TakenNumbers = tuple[NDArray | None, list[NDArray] | None]


def drop_counts(source: Any) -> None:
    """Take the numbers out of a ``meshio.Mesh`` whose reader gave them, where they only count.

    Cells are counted type by type, each type where it comes first. O(nodes + cells).
    """
    if not getattr(source, "numbered", False):
        return
    if _counts([source.point_data.get(NUMBERS)]):
        del source.point_data[NUMBERS]
    types = [block.type for block in source.cells]
    by_type = sorted(range(len(types)), key=lambda k: types.index(types[k]))
    numbers = source.cell_data.get(NUMBERS)
    if numbers is not None and _counts([numbers[k] for k in by_type]):
        del source.cell_data[NUMBERS]


def without_counts(mesh: Mesh) -> Mesh:
    """The mesh without numbers that a file written from it would give all the same."""
    cells = [s.name for s in mesh.cell_sets]
    for sets in (["nodes"], cells):
        found = [mesh.dat(NUMBERS, name) for name in sets]
        if _counts([None if d is None or not d.is_numbering else d.values for d in found]):
            kept = (d for d in mesh.dats if not (d.is_numbering and d.set in sets))
            mesh = replace(mesh, dats=tuple(kept))
    return mesh


def _counts(numbers: Sequence[NDArray | None]) -> bool:
    given = [values for values in numbers if values is not None]
    if not numbers or len(given) < len(numbers):
        return False
    found = np.concatenate(given)
    return np.array_equal(found, np.arange(1, found.size + 1))


def taken_numbers(mesh: Any) -> TakenNumbers:
    """The numbers of nodes and of blocks of cells in a ``meshio.Mesh``, which loses them."""
    nodes, cells = mesh.point_data.get(NUMBERS), mesh.cell_data.get(NUMBERS)
    if nodes is not None and nodes.dtype.kind in "iu":
        del mesh.point_data[NUMBERS]
    else:
        nodes = None
    if cells is not None and all(values.dtype.kind in "iu" for values in cells):
        del mesh.cell_data[NUMBERS]
    else:
        cells = None
    return nodes, cells
