"""The subject of a split in slices: each rank reads and holds the rows at home there."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import INDEX_LIMIT, Int32s, SetMap, distinct

from ...io.front import named
from ...io.sliced import SlicedMesh
from ...loops.requests import LoopRequest, default_request
from ...mesh import Mesh, Tag
from ...mesh.cells import shape_of
from ...mesh.geometry import PLACED, mean_of_rows
from ...mesh.original import cell_types
from ...pipeline.steps import plan_request_maps
from ...topology.layout import layout_of, local_corners, lower_sets
from ...topology.names import ENTITY_DIM, entity_of
from ...topology.tags import TagPiece, join_tags
from ..ranks import Ranks, agreed, exchanged
from ..subject import SplitSubject, known_tags, maps_of, refuse_fixed, sets_of
from .facets import CellSlice, FacetSlice, by_hash, facet_slice
from .homes import Homes, by_rows, joined

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
            asked &= source.startswith("boundary_") or f"{source}->cells" in self.shape.maps
            if not asked or self.shape.sets[source].parts:
                raise MeshprepError(
                    f"map '{name}' is not derived from slices, only maps from facets between two "
                    "cells and on the boundary: leave --slices out"
                )

    def size(self, source: str) -> int:
        """The elements of a derived set on all ranks."""
        return sum(int(n) for counts in self._counts(source) for n in counts.sum(axis=0))

    def rows(self, name: str) -> NDArray[np.int32]:
        """The rows of a derived map that are at home here."""
        source, _, to = name.partition("->")
        homes, pieces = Homes(self.size(source), self.ranks), []
        for chosen, numbers in self._numbered(source):
            rows = chosen.corners() if to == "nodes" else chosen.cells[:, : CELLS[source]]
            for begin, end in pairwise(chosen.ends):
                to_each = homes.pieces(numbers[begin:end], rows[begin:end])
                pieces += exchanged(self.ranks, to_each)
        return joined(pieces)

    def _numbered(self, source: str) -> Iterator[tuple[FacetSlice, NDArray[np.int64]]]:
        """The facets of a set that are here, with their numbers."""
        first = 0
        for chosen, counts in zip(self._chosen(source), self._counts(source), strict=True):
            found = []
            for part, size in enumerate(np.diff(chosen.ends)):
                here = first + int(counts[: self.ranks.rank, part].sum())
                found.append(np.arange(here, here + size))
                first += int(counts[:, part].sum())
            yield chosen, np.concatenate(found)

    def tags(self, source: str, tags_on: Callable[[str], Sequence[Tag]]) -> list[Tag]:
        """The groups of a derived set's elements at home here: of cells that lie on them.

        ``tags_on`` gives those of sets of the file. As :func:`meshprep.topology.tags.transfer`.
        """
        layout, homes = layout_of(self.shape), Homes(self.size(source), self.ranks)
        dim = ENTITY_DIM[entity_of(f"{source}->nodes")]
        dims = {s.name: shape_of(str(s.cell_type)) for s in lower_sets(self.shape, layout)}
        lower = {name: tags_on(name) for name, shape in dims.items() if shape.dim == dim}
        corners = {
            name: np.sort(self.table(f"{name}->nodes")[:, : dims[name].n_corners], axis=1)
            for name, tags in lower.items()
            if tags
        }
        if not corners:
            return []
        pieces = dict[str, list[TagPiece]]()
        near = self._near([*corners.values()])
        for chosen, numbers in self._numbered(source):
            here = chosen.within(near(chosen.nodes))
            names = chosen.names(here)
            for name, own in corners.items():
                if own.shape[1] != chosen.slots.arity:
                    continue
                values = np.column_stack([tag.values for tag in lower[name]])
                found = _lying_on(numbers[here], names, values, own, self.ranks)
                found = found[np.argsort(found[:, 0], kind="stable")]
                at = joined(exchanged(self.ranks, homes.pieces(found[:, 0], found)))
                some = any(self.ranks.allgather(len(at))) or source.startswith("boundary_")
                for column, tag in enumerate(lower[name] if some else (), 1):
                    piece = tag, at[:, column], at[:, 0] - homes.own.start
                    pieces.setdefault(tag.name, []).append(piece)
        return [join_tags(name, source, len(homes.own), found) for name, found in pieces.items()]

    def _near(self, corners: Sequence[NDArray[np.int32]]) -> Callable[..., NDArray[np.bool_]]:
        """Marks of the nodes of these cells, for nodes that ascend."""
        nodes = Homes(self.sizes["nodes"], self.ranks)
        found = np.zeros(len(nodes.own), np.bool_)
        for table in corners:
            points = distinct(table)
            for some in exchanged(self.ranks, nodes.pieces(points, points)):
                found[some - nodes.own.start] = True
        return partial(nodes.fetch, found)

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


def _lying_on(
    numbers: NDArray[np.int64],
    names: NDArray[np.int32],
    values: NDArray[np.int32],
    corners: NDArray[np.int32],
    ranks: Ranks,
) -> NDArray[np.int64]:
    """Facets and the values of cells on them, from where both meet.

    ``names`` are the corners of the facets with these numbers, ``corners`` those of the cells.
    """
    facet, facets, value, cells = (
        joined(exchanged(ranks, by_hash(of, one, ranks)))
        for rows, of in ((numbers[:, None], names), (values, corners))
        for one in (rows.astype(np.int64), of)
    )
    _, place = np.unique(np.concatenate([facets, cells]), axis=0, return_inverse=True)
    place = place.reshape(-1)
    known = np.full(place.size, -1, np.int64)
    known[place[: len(facets)]] = facet[:, 0]
    at = known[place[len(facets) :]]
    return np.column_stack([at, value])[at >= 0]


def subject_of_slices(
    mesh: SlicedMesh, requests: Sequence[LoopRequest], ranks: Ranks
) -> SplitSubject:
    """The sets and maps that these loops use, with the rows at home on this rank.

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
    rows = partial(_stored_table, mesh, full, ranks)
    slices = _Slices(mesh, full, ranks, rows, Derived(full, mesh.sizes, rows, ranks))
    agreed(ranks, lambda: slices.derived.check([m for m in maps if mesh.map(m) is None]))
    tables = {name: replace(m, table=slices.table(name)) for name, m in maps.items()}
    sets = sets_of(maps.values(), specs)
    unions = {name: full.sets[name].parts for name in sets if full.sets[name].parts}
    where = slices.nodes() if "nodes" in sets else None
    found = SplitSubject(
        sizes={name: slices.sizes[name] for name in sets},
        maps=tables,
        specs=tuple(specs),
        segments={u: tuple(slices.sizes[p] for p in parts) for u, parts in unions.items()},
        unions=unions,
        source_hash=mesh.content_hash,
        cell_types=cell_types(full),
        values={"coordinates/nodes": where} if where is not None else {},
        tags=tuple(chain.from_iterable(slices.tags_on(name) for name in sorted(sets))),
    )
    return _with_centroids(found, slices)


def _with_centroids(subject: SplitSubject, slices: "_Slices") -> SplitSubject:
    """The subject with centroids, but of sets whose centroids ranks find from others."""
    through = {name: m for name in subject.sizes if (m := slices.through(name, subject))}
    found = {name: slices.centroids_of(name) for name in subject.sizes if name not in through}
    centroids = {name: where for name, where in found.items() if where is not None}
    return replace(subject, centroids=centroids, through=through if centroids else {})


def _stored_table(mesh: SlicedMesh, shape: Mesh, ranks: Ranks, name: str) -> Int32s:
    """The rows of a map in the file at home here; MeshprepError on all ranks where one is wrong."""
    stored, m = mesh.map(name), shape.map(name)
    assert stored is not None
    own = Homes(mesh.sizes[m.from_set], ranks).own

    def read() -> Int32s:
        with named(stored.rows.path):
            found = SetMap(name, m.from_set, m.to_set, stored.rows.read(own.start, own.stop))
            found.check_range(mesh.sizes[m.to_set], own.start)
        return found.table

    return agreed(ranks, read, named=False)


@dataclass(frozen=True, eq=False)
class _Slices:
    """Tables and places of the elements that are at home here."""

    mesh: SlicedMesh
    full: Mesh  # every map that is needed, without rows
    ranks: Ranks
    stored: Callable[[str], Int32s]
    derived: Derived
    sizes: dict[str, int] = field(init=False)  # of the sets that are known
    _tables: dict[str, NDArray[np.int32]] = field(default_factory=dict)
    _tags: dict[str, tuple[Tag, ...]] = field(default_factory=dict)

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

    def centroids_of(self, name: str) -> NDArray[np.float64] | None:
        """The rows of :func:`meshprep.mesh.geometry.centroids`, by the same rules."""
        if name in PLACED:
            return self.nodes() if name == "nodes" else None
        if self.full.sets[name].parts:
            return self._of_union(name)
        m = self._way(name)
        if m is None:
            return None
        table = self._tables[m.name] if m.name in self._tables else self.stored(m.name)
        where = self.nodes() if m.to_set == "nodes" else self.centroids_of(m.to_set)
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
            where, own = self.centroids_of(part), self.homes(part).own
            if where is None:
                return None
            numbers = np.arange(begin + own.start, begin + own.stop)
            found += exchanged(self.ranks, homes.pieces(numbers, where))
            begin += self.sizes[part]
        return np.concatenate(found)

    def tags_on(self, name: str) -> tuple[Tag, ...]:
        """The rows of :func:`..subject.tags_of` that are at home here, by the same rules."""
        if name not in self._tags:
            self._tags[name] = known_tags(self._find_tags(name), self.ranks)
        return self._tags[name]

    def _find_tags(self, name: str) -> list[Tag]:
        homes = self.homes(name)
        stored = [tag for tag in self.mesh.tags if tag.set == name]
        if stored:
            read = [
                agreed(self.ranks, partial(t.read, homes.own.start, homes.own.stop)) for t in stored
            ]
            # names alone are no groups of a file
            return [t for t in read if any(self.ranks.allgather(t.group_id.size))]
        if name not in self.mesh.sizes:
            return self.derived.tags(name, self.tags_on)
        pieces, begin = dict[str, list[TagPiece]](), 0
        for part in self.full.sets[name].parts:
            own = self.homes(part).own
            numbers = np.arange(begin + own.start, begin + own.stop)
            for tag in self.tags_on(part):
                rows = np.column_stack([numbers, tag.values])
                at = joined(exchanged(self.ranks, homes.pieces(numbers, rows)))
                piece = tag, at[:, 1], at[:, 0] - homes.own.start
                pieces.setdefault(tag.name, []).append(piece)
            begin += self.sizes[part]
        return [join_tags(label, name, len(homes.own), found) for label, found in pieces.items()]

    def nodes(self) -> NDArray[np.float64] | None:
        """The coordinates of the nodes at home here."""
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
