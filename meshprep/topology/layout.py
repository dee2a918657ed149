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
        """What lies between two cells: ``edges`` in 2-D, ``faces`` in 3-D, else nothing."""
        return {2: "edges", 3: "faces"}.get(self.dim, "")

    def arities(self, dim: int) -> tuple[int, ...]:
        """The numbers of corners that entities of this dimension have, ascending."""
        return tuple(sorted({len(c) for p in self.parts for c in local_corners(p.shape, dim)}))

    def entity_parts(self, dim: int, arity: int) -> list[Part]:
        """The entities of this dimension and number of corners, as parts with slots."""
        out = []
        for p in self.parts:
            local = local_corners(p.shape, dim)
            kept = [i for i, corners in enumerate(local) if len(corners) == arity]
            out.append(Part(p.table, [local[i] for i in kept], kept, p.start))
        return out

    def fixed_count(self, dim: int) -> int | None:
        """Entities of this dimension a cell, where every cell has as many; else None."""
        counts = {len(local_corners(p.shape, dim)) for p in self.parts}
        return counts.pop() if len(counts) == 1 else None


def local_corners(shape: CellShape, dim: int) -> Corners:
    """Local corners of the edges (dim 1) or faces (dim 2) that bound a shape."""
    if dim >= shape.dim:
        return ()
    return {1: shape.edges, 2: shape.faces}.get(dim, ())


def layout_of(mesh: Mesh, asked: Sequence[str] = ()) -> Layout:
    """The layout; raises MeshprepError, with the maps ``asked`` for, where cells have no types."""
    cells = mesh.sets.get("cells")
    names = () if cells is None else cells.parts or (cells.name,)
    types = [mesh.sets[n].cell_type for n in names]
    if not names or None in types:
        what = ", ".join(f"'{name}'" for name in asked) or "maps"
        raise MeshprepError(
            f"the mesh has no cells of known types to derive {what} from: "
            f"use its own maps, {', '.join(mesh.maps) or 'of which there are none'}"
        )
    parts, start = [], 0
    for name, cell_type in zip(names, types, strict=True):
        table = mesh.cell_map(name).table
        parts.append(CellPart(name, shape_of(str(cell_type)), table, start))
        start += len(table)
    return Layout(tuple(parts), parts[0].shape.dim, mesh.size("nodes"))


def lower_sets(mesh: Mesh, layout: Layout) -> list[ElementSet]:
    """The sets of cells of lower dimension than the layout's; vertices are left out."""
    return [s for s in mesh.cell_sets if 1 <= shape_of(str(s.cell_type)).dim < layout.dim]
