"""Sets and maps of facets that the file does not hold, for the elements that are at home here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh import Mesh
from ...topology.layout import layout_of, local_corners
from ...topology.names import ENTITY_DIM, entity_of
from ..ranks import Ranks, agreed, exchanged
from .facets import CellSlice, FacetSlice, facet_slice
from .homes import Homes, joined

# Cells that a facet of a set has.
CELLS = {"faces": 2, "edges": 2, "boundary_faces": 1, "boundary_edges": 1}


@dataclass(frozen=True, eq=False)
class Derived:
    """Facets between cells and on the boundary; made when first asked for."""

    shape: Mesh  # every set and map, without elements
    sizes: Mapping[str, int]  # by set name: of the sets in the file
    # ``table(map name)``: the rows of a map of the file that are at home here.
    table: Callable[[str], NDArray[np.int32]]
    ranks: Ranks
    _found: dict[str, Sequence[FacetSlice]] = field(default_factory=dict)

    def check(self, names: Sequence[str]) -> None:
        """Raise MeshprepError for maps that slices do not give."""
        for name in names:
            source, _, to = name.partition("->")
            dim = layout_of(self.shape).dim
            facets = ENTITY_DIM.get(entity_of(name)) == dim - 1
            asked = source in CELLS and to in ("cells", "nodes") and facets
            if not asked or self.shape.sets[source].parts or not self._between_cells(source):
                raise MeshprepError(
                    f"map '{name}' is not derived from slices, only maps from facets between two "
                    "cells and on the boundary: leave --slices out"
                )

    def _between_cells(self, source: str) -> bool:
        return source.startswith("boundary_") or f"{source}->cells" in self.shape.maps

    def size(self, source: str) -> int:
        """The elements of a derived set on all ranks."""
        return sum(int(n) for counts in self._counts(source) for n in counts.sum(axis=0))

    def rows(self, name: str) -> NDArray[np.int32]:
        """The rows of a derived map that are at home here."""
        source, _, to = name.partition("->")
        homes, first, pieces = Homes(self.size(source), self.ranks), 0, []
        for chosen, counts in zip(self._chosen(source), self._counts(source), strict=True):
            rows = chosen.corners() if to == "nodes" else chosen.cells[:, : CELLS[source]]
            for part, (begin, end) in enumerate(pairwise(chosen.ends)):
                here = first + int(counts[: self.ranks.rank, part].sum())
                numbers = np.arange(here, here + end - begin)
                pieces += exchanged(self.ranks, homes.pieces(numbers, rows[begin:end]))
                first += int(counts[:, part].sum())
        return joined(pieces)

    def _chosen(self, source: str) -> list[FacetSlice]:
        return [one.chosen(one.count == CELLS[source]) for one in self._facets(source)]

    def _counts(self, source: str) -> list[NDArray[np.int64]]:
        """Facets by rank and type of cells, for each number of corners."""
        mine = [np.diff(one.ends) for one in self._chosen(source)]
        return [np.array(every) for every in zip(*self.ranks.allgather(mine), strict=True)]

    def _facets(self, source: str) -> Sequence[FacetSlice]:
        entity = source.removeprefix("boundary_")
        if entity not in self._found:
            self._found[entity] = self._find(ENTITY_DIM[entity])
            if f"{entity}->cells" in self.shape.maps:
                agreed(self.ranks, lambda: self._check_manifold(entity), named=False)
        return self._found[entity]

    def _find(self, dim: int) -> list[FacetSlice]:
        layout, found = layout_of(self.shape), []
        nodes = Homes(self.sizes["nodes"], self.ranks)
        for arity in layout.arities(dim):
            cells, first = [], 0
            for part in layout.parts:
                size = self.sizes[part.name]
                local = [c for c in local_corners(part.shape, dim) if len(c) == arity]
                if local:
                    table = self.table(f"{part.name}->nodes")
                    cells.append(CellSlice(table, local, Homes(size, self.ranks).own, first, size))
                first += size
            found.append(facet_slice(cells, nodes))
        return found

    def _check_manifold(self, entity: str) -> None:
        for one in self._found[entity]:
            worst = np.flatnonzero(one.count > 2)
            if worst.size:
                nodes = ", ".join(map(str, one.corners()[worst[0]]))
                raise MeshprepError(
                    f"the {entity.removesuffix('s')} with nodes {nodes} belongs to more than two "
                    f"cells, '{entity}->cells' allows two: use another loop"
                )
