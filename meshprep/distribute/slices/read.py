"""What is split, of which each rank holds the rows that are at home there."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.maps import INDEX_LIMIT, SetMap

from ...io.front import named
from ...io.sliced import SlicedMesh
from ...loops import LoopRequest, default_request
from ...mesh import Mesh
from ...mesh.cells import shape_of
from ...mesh.geometry import PLACED, mean_of_rows
from ...mesh.original import cell_types
from ...pipeline.steps import plan_request_maps
from ..ranks import Ranks, agreed, exchanged
from ..subject import SplitSubject, maps_of, refuse_fixed, sets_of
from .derive import Derived
from .homes import Homes, by_rows


def subject_of_slices(
    mesh: SlicedMesh, requests: Sequence[LoopRequest], ranks: Ranks
) -> SplitSubject:
    """What these loops use of a mesh, as far as it is at home here.

    Sizes are those of the mesh; tables and centroids have the rows of this rank. Without
    ``requests`` the loop is the default one. Raises MeshprepError for loops that do not fit, and
    indices out of range; on every rank the same.
    """
    shape = mesh.shape()
    full, specs = agreed(
        ranks, lambda: plan_request_maps(shape, requests or (default_request(shape),))
    )
    agreed(ranks, lambda: refuse_fixed(specs))
    maps = maps_of(full, specs)
    rows = StoredTables(mesh, full, ranks)
    slices = _Slices(mesh, full, ranks, rows, Derived(full, mesh.sizes, rows, ranks))
    agreed(ranks, lambda: slices.derived.check([m for m in maps if mesh.map(m) is None]))
    tables = {name: replace(m, table=slices.table(name)) for name, m in maps.items()}
    sets = sets_of(maps.values(), specs)
    unions = {name: full.sets[name].parts for name in sets if full.sets[name].parts}
    found = SplitSubject(
        sizes={name: slices.sizes[name] for name in sets},
        maps=tables,
        specs=tuple(specs),
        segments={u: tuple(slices.sizes[p] for p in parts) for u, parts in unions.items()},
        unions=unions,
        source_hash=mesh.content_hash,
        cell_types=cell_types(full),
    )
    return _with_centroids(found, slices)


def _with_centroids(subject: SplitSubject, slices: "_Slices") -> SplitSubject:
    """The subject with centroids, but of sets whose centroids ranks find from others."""
    through = {name: m for name in subject.sizes if (m := slices.through(name, subject))}
    places = {name: slices.places(name) for name in subject.sizes if name not in through}
    centroids = {name: where for name, where in places.items() if where is not None}
    return replace(subject, centroids=centroids, through=through if centroids else {})


@dataclass(frozen=True, eq=False)
class StoredTables:
    """Gives the rows of maps in the file that are at home here."""

    mesh: SlicedMesh
    shape: Mesh
    ranks: Ranks

    def __call__(self, name: str) -> NDArray[np.int32]:
        """The rows of a map; MeshprepError on every rank where one leads nowhere."""
        stored, m = self.mesh.map(name), self.shape.map(name)
        assert stored is not None
        own = Homes(self.mesh.sizes[m.from_set], self.ranks).own

        def read() -> NDArray[np.int32]:
            with named(stored.rows.path):
                rows = stored.rows.read(own.start, own.stop)
                found = SetMap(name, m.from_set, m.to_set, rows)
                found.check_range(self.mesh.sizes[m.to_set], own.start)
            return found.table

        return agreed(self.ranks, read, named=False)


@dataclass(frozen=True, eq=False)
class _Slices:
    """Tables and places of the elements that are at home here."""

    mesh: SlicedMesh
    full: Mesh  # every map that is needed, without rows
    ranks: Ranks
    stored: StoredTables
    derived: Derived
    sizes: dict[str, int] = field(init=False)  # of the sets that are known
    _tables: dict[str, NDArray[np.int32]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", dict(self.mesh.sizes))

    def homes(self, name: str) -> Homes:
        return Homes(self.sizes[name], self.ranks)

    def table(self, name: str) -> NDArray[np.int32]:
        """The rows of a map, from the file or derived; kept."""
        if name not in self._tables:
            if self.mesh.map(name) is None:
                source = self.full.map(name).from_set
                self.sizes[source] = size = self.derived.size(source)
                agreed(self.ranks, lambda: _refuse_many(source, size))
                self._tables[name] = self.derived.rows(name)
            else:
                self._tables[name] = self.stored(name)
        return self._tables[name]

    def places(self, name: str) -> NDArray[np.float64] | None:
        """The rows of :func:`meshprep.mesh.geometry.centroids`, by the same rules."""
        if name in PLACED:
            return self._nodes() if name == "nodes" else None
        if self.full.sets[name].parts:
            return self._of_union(name)
        m = self._way(name)
        if m is None:
            return None
        table = self._tables[m.name] if m.name in self._tables else self.stored(m.name)
        where = self._nodes() if m.to_set == "nodes" else self.places(m.to_set)
        return self._means(m.to_set, where, table[:, : self._corners(name, m)])

    def through(self, name: str, subject: SplitSubject) -> str | None:
        """The map by which a rank finds the centroids of a set from others that it fetches."""
        m = None if name in PLACED or self.full.sets[name].parts else self._way(name)
        leading = subject.leading_set
        if m is None or m.name not in subject.maps or name == leading:
            return None
        fetched = m.to_set in ("nodes", leading) and self._corners(name, m) == m.arity
        return m.name if fetched else None

    def _way(self, name: str) -> SetMap | None:
        """The map to what a set's centroids are the means of."""
        maps = self.full.maps
        if self.mesh.coordinates is None:
            return None
        if f"{name}->nodes" in maps:
            return maps[f"{name}->nodes"]
        found = next((m for m in maps.values() if m.from_set == name), None)
        known = found is not None and found.to_set != name and found.to_set in ("nodes", "cells")
        return found if known else None

    def _corners(self, name: str, m: SetMap) -> int:
        """The columns of a map that are corners."""
        cell_type = self.full.sets[name].cell_type
        nodes = m.to_set == "nodes" and cell_type is not None
        return shape_of(str(cell_type)).n_corners if nodes else m.arity

    def _of_union(self, name: str) -> NDArray[np.float64] | None:
        homes, found, begin = self.homes(name), [], 0
        for part in self.full.sets[name].parts:
            where, own = self.places(part), self.homes(part).own
            if where is None:
                return None
            numbers = np.arange(begin + own.start, begin + own.stop)
            found += exchanged(self.ranks, homes.pieces(numbers, where))
            begin += self.sizes[part]
        return np.concatenate(found)

    def _nodes(self) -> NDArray[np.float64] | None:
        stored, own = self.mesh.coordinates, self.homes("nodes").own
        if stored is None:
            return None
        return agreed(self.ranks, lambda: stored.read(own.start, own.stop).astype(np.float64))

    def _means(
        self, name: str, where: NDArray[np.float64] | None, table: NDArray[np.int32]
    ) -> NDArray[np.float64] | None:
        if where is None:
            return None
        out = np.empty((len(table), where.shape[1]))
        return by_rows(self.homes(name), table, where, mean_of_rows, out)


def _refuse_many(name: str, size: int) -> None:
    if size > INDEX_LIMIT:
        raise MeshprepError(f"there are {size} {name}, past 2^31-1: slices hold no more of a set")
