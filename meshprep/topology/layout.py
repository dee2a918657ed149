"""The cells of a mesh as topology sees them: parts of one shape each, of one dimension."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..mesh import ElementSet, Mesh
from ..mesh.cells import CellShape, Corners, shape_of
from .slots import Part

# Names of the faces of each number of corners, in the order of the union ``faces``.
FACE_TYPES = {3: "triangle", 4: "quad"}


class CellPart(NamedTuple):
    """The cells of one type: their set, shape, nodes, and the number of the first."""

    name: str
    shape: CellShape
    table: NDArray[np.int32]
    start: int


class Layout(NamedTuple):
    """The cells of the highest dimension, part after part as in the set ``cells``."""

    parts: tuple[CellPart, ...]
    dim: int
    n_nodes: int

    @property
    def n_cells(self) -> int:
        return sum(len(p.table) for p in self.parts)

    @property
    def facet_entity(self) -> str:
        """The entity between two cells: ``edges`` in 2-D, ``faces`` in 3-D, else empty."""
        return {2: "edges", 3: "faces"}.get(self.dim, "")

    def arities(self, dim: int) -> tuple[int, ...]:
        """The numbers of corners that entities of this dimension have, ascending."""
        arities = set[int]()
        for part in self.parts:
            arities.update(len(corners) for corners in local_corners(part.shape, dim))
        return tuple(sorted(arities))

    def entity_parts(self, dim: int, arity: int) -> list[Part]:
        """The entities of this dimension and number of corners, as parts with slots."""
        out = []
        for p in self.parts:
            local = local_corners(p.shape, dim)
            # Cells such as wedges have faces of two kinds: take those of this arity.
            columns = [i for i, corners in enumerate(local) if len(corners) == arity]
            part = Part(
                table=p.table,
                local=[local[i] for i in columns],
                column=columns,
                cell_start=p.start,
            )
            out.append(part)
        return out

    def fixed_count(self, dim: int) -> int | None:
        """Entities of this dimension a cell, where every cell has as many; else None."""
        counts = {len(local_corners(p.shape, dim)) for p in self.parts}
        if len(counts) == 1:
            return counts.pop()
        return None


def local_corners(shape: CellShape, dim: int) -> Corners:
    """Local corners of the edges (dim 1) or faces (dim 2) that bound a shape."""
    if dim >= shape.dim:
        return ()
    return {1: shape.edges, 2: shape.faces}.get(dim, ())


def layout_of(mesh: Mesh, asked: Sequence[str] = ()) -> Layout:
    """The layout of a mesh; raises MeshprepError where cells have no known types.

    The error names the maps that are ``asked`` for.
    """
    # The sets of the cell types: the parts of ``cells``, or ``cells`` itself.
    cells = mesh.sets.get("cells")
    names: tuple[str, ...] = ()
    if cells is not None:
        names = cells.parts or (cells.name,)
    types = [mesh.sets[n].cell_type for n in names]
    if not names or None in types:
        what = ", ".join(f"'{name}'" for name in asked) or "maps"
        raise MeshprepError(
            f"the mesh has no cells of known types to derive {what} from: "
            f"use its own maps, {', '.join(mesh.maps) or 'of which there are none'}"
        )

    # Cells are numbered type after type.
    parts = []
    start = 0
    for name, cell_type in zip(names, types, strict=True):
        shape = shape_of(str(cell_type))
        table = mesh.cell_map(name).table
        parts.append(CellPart(name, shape, table, start))
        start += len(table)
    dim = parts[0].shape.dim
    return Layout(tuple(parts), dim, mesh.size("nodes"))


def lower_sets(mesh: Mesh, layout: Layout) -> list[ElementSet]:
    """The sets of cells of lower dimension than the layout's; vertices are left out."""
    lower = []
    for cell_set in mesh.cell_sets:
        dim = shape_of(str(cell_set.cell_type)).dim
        if 1 <= dim < layout.dim:
            lower.append(cell_set)
    return lower
