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
from ...loops.request_maps import fit_default_loop, maps_of_requests
from ...loops.requests import LoopRequest
from ...mesh import Mesh, Tag
from ...mesh.cells import shape_of
from ...mesh.geometry import PLACED, mean_of_rows
from ...mesh.original import cell_types
from ...topology.facets import ManyCellsError
from ...topology.layout import layout_of, local_corners, lower_sets
from ...topology.names import ENTITY_DIM, entity_of
from ...topology.tags import TagPiece, join_tags
from ..homes import Homes, by_rows, joined
from ..ranks import Ranks, agreed, exchanged
from ..subject import SplitSubject, known_tags, maps_of, refuse_fixed, sets_of
from .facets import CellSlice, FacetSlice, by_hash, facet_slice

# Cells of a facet, by set.
CELLS = {"faces": 2, "edges": 2, "boundary_faces": 1, "boundary_edges": 1}


@dataclass(frozen=True, eq=False)
class Derived:
    """Facets between cells and on the boundary, found when first asked for."""

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
            of_facets = ENTITY_DIM.get(entity_of(name)) == dim - 1
            derivable = source in CELLS and to in ("cells", "nodes") and of_facets
            # A set of facets that are not on the boundary is that of the inner ones, not of
            # all, where a map leads to their two cells.
            has_inner_facets = f"{source}->cells" in self.shape.maps
            derivable &= source.startswith("boundary_") or has_inner_facets
            if not derivable or self.shape.sets[source].parts:
                raise MeshprepError(
                    f"map '{name}' is not derived from slices, only maps from facets "
                    "between two cells and on the boundary: leave --slices out"
                )

    def size(self, source: str) -> int:
        """The elements of a derived set on all ranks."""
        return sum(int(counts.sum()) for counts in self._counts(source))

    def rows(self, name: str) -> NDArray[np.int32]:
        """The rows of a derived map that are at home here."""
        source, _, to = name.partition("->")
        homes = Homes(self.size(source), self.ranks)
        pieces = []
        for chosen, numbers in self._numbered(source):
            if to == "nodes":
                rows = chosen.corners()
            else:
                rows = chosen.cells[:, : CELLS[source]]
            # Of one type of cells, the numbers ascend: send the rows to their homes.
            for begin, end in pairwise(chosen.ends):
                to_each = homes.pieces(numbers[begin:end], rows[begin:end])
                pieces += exchanged(self.ranks, to_each)
        return joined(pieces)

    def _numbered(self, source: str) -> Iterator[tuple[FacetSlice, NDArray[np.int64]]]:
        """The facets of a set that are here, with their numbers.

        Facets are numbered by their number of corners, then by the type of their lowest
        cell, then by rank.
        """
        first = 0
        for chosen, counts in zip(self._chosen(source), self._counts(source), strict=True):
            numbers = []
            for cell_type, size in enumerate(np.diff(chosen.ends)):
                begin = first + int(counts[: self.ranks.rank, cell_type].sum())
                numbers.append(np.arange(begin, begin + size))
                first += int(counts[:, cell_type].sum())
            yield chosen, np.concatenate(numbers)

    def tags(self, source: str, tags_on: Callable[[str], Sequence[Tag]]) -> list[Tag]:
        """The groups of the facets at home here, from cells that lie on them.

        ``tags_on`` gives the tags of a set of the file. As
        :func:`meshprep.topology.tags.transfer` does for a whole mesh.
        """
        layout = layout_of(self.shape)
        homes = Homes(self.size(source), self.ranks)
        # Tags and corners of the cells that have the dimension of the facets.
        dim = ENTITY_DIM[entity_of(f"{source}->nodes")]
        lower = lower_sets(self.shape, layout)
        shapes = {s.name: shape_of(str(s.cell_type)) for s in lower}
        lower_tags = {
            name: tags_on(name) for name, shape in shapes.items() if shape.dim == dim
        }
        corners = {}
        for name, tags in lower_tags.items():
            if tags:
                table = self.table(f"{name}->nodes")
                corners[name] = np.sort(table[:, : shapes[name].n_corners], axis=1)
        if not corners:
            return []
        # For each tag, its rows on such cells, and the facets at home here under them.
        pieces = dict[str, list[TagPiece]]()
        on_lower_cells = self._nodes_of_cells([*corners.values()])
        for chosen, numbers in self._numbered(source):
            # Only facets whose corners are all nodes of such cells can have one on them.
            candidates = chosen.within(on_lower_cells(chosen.nodes))
            names = chosen.names(candidates)
            for name, corners_of_cells in corners.items():
                if corners_of_cells.shape[1] != chosen.slots.arity:
                    continue
                # Rows of a facet and its values, sent to the home of the facet.
                tags = lower_tags[name]
                matches = _lying_on(
                    numbers=numbers[candidates],
                    names=names,
                    values=np.column_stack([tag.values for tag in tags]),
                    corners=corners_of_cells,
                    ranks=self.ranks,
                )
                facet = matches[:, 0]
                matches = matches[np.argsort(facet, kind="stable")]
                to_homes = homes.pieces(matches[:, 0], matches)
                rows = joined(exchanged(self.ranks, to_homes))
                any_match = any(self.ranks.allgather(len(rows)))
                if not any_match and not source.startswith("boundary_"):
                    continue
                for column, tag in enumerate(tags, start=1):
                    piece = tag, rows[:, column], rows[:, 0] - homes.own.start
                    pieces.setdefault(tag.name, []).append(piece)
        return [
            join_tags(name=name, set_name=source, size=len(homes.own), pieces=pieces_of_tag)
            for name, pieces_of_tag in pieces.items()
        ]

    def _nodes_of_cells(
        self, corners: Sequence[NDArray[np.int32]]
    ) -> Callable[..., NDArray[np.bool_]]:
        """A function: which of some ascending nodes these cells have, on any rank."""
        nodes = Homes(self.sizes["nodes"], self.ranks)
        marked = np.zeros(len(nodes.own), np.bool_)
        for table in corners:
            points = distinct(table)
            for points_of_rank in exchanged(self.ranks, nodes.pieces(points, points)):
                marked[points_of_rank - nodes.own.start] = True
        return partial(nodes.fetch, marked)

    def _chosen(self, source: str) -> list[FacetSlice]:
        """The facets with as many cells as those of a set have, by number of corners."""
        n_cells = CELLS[source]
        return [facets.chosen(facets.count == n_cells) for facets in self._facets(source)]

    def _counts(self, source: str) -> list[NDArray[np.int64]]:
        """Facets by rank and type of cells (ranks, types), for each number of corners."""
        counts_here = [np.diff(facets.ends) for facets in self._chosen(source)]
        counts_of_ranks = self.ranks.allgather(counts_here)
        return [np.array(counts) for counts in zip(*counts_of_ranks, strict=True)]

    def _facets(self, source: str) -> Sequence[FacetSlice]:
        """All edges or faces, for each number of corners; found once."""
        entity = source.removeprefix("boundary_")
        if entity not in self._found:
            self._found[entity] = self._find(ENTITY_DIM[entity])
            if f"{entity}->cells" in self.shape.maps:
                agreed(self.ranks, lambda: self._check_manifold(entity), named=False)
        return self._found[entity]

    def _find(self, dim: int) -> list[FacetSlice]:
        """The facets of a dimension, for each number of corners."""
        layout = layout_of(self.shape)
        facets = []
        nodes = Homes(self.sizes["nodes"], self.ranks)
        for arity in layout.arities(dim):
            # The cells at home here that have such facets, type after type.
            cells = []
            first = 0
            for part in layout.parts:
                size = self.sizes[part.name]
                local = [c for c in local_corners(part.shape, dim) if len(c) == arity]
                if local:
                    table = self.table(f"{part.name}->nodes")
                    cells.append(
                        CellSlice(
                            table=table,
                            local=local,
                            own=Homes(size, self.ranks).own,
                            first=first,
                            size=size,
                        )
                    )
                first += size
            facets.append(facet_slice(cells, nodes))
        return facets

    def _check_manifold(self, entity: str) -> None:
        """Raise ManyCellsError where three cells share a facet."""
        for facets in self._found[entity]:
            shared_by_many = np.flatnonzero(facets.count > 2)
            if shared_by_many.size:
                corners = facets.corners()[shared_by_many[0]]
                nodes = ", ".join(map(str, corners))
                raise ManyCellsError(
                    f"the {entity.removesuffix('s')} with nodes {nodes} belongs to "
                    f"more than two cells, '{entity}->cells' allows two"
                    f"{ManyCellsError.ADVICE}"
                )


def _lying_on(
    numbers: NDArray[np.int64],
    names: NDArray[np.int32],
    values: NDArray[np.int32],
    corners: NDArray[np.int32],
    ranks: Ranks,
) -> NDArray[np.int64]:
    """Facets and the values of cells on them, from where both meet.

    ``names`` are the corners of the facets with these numbers, ``corners`` those of the
    cells.
    """

    def meet(rows: NDArray[np.integer], of: NDArray[np.int32]) -> NDArray[np.integer]:
        """Send rows to the ranks that a hash of their corners ``of`` chooses."""
        return joined(exchanged(ranks, by_hash(of, rows, ranks)))

    # Bring facets and cells with the same corners to one rank.
    facet = meet(numbers[:, None].astype(np.int64), names)
    corners_of_facets = meet(names, names)
    value = meet(values.astype(np.int64), corners)
    corners_of_cells = meet(corners, corners)
    # Number the distinct sets of corners; look up the facet that has those of each cell.
    both = np.concatenate([corners_of_facets, corners_of_cells])
    _, corner_set = np.unique(both, axis=0, return_inverse=True)
    corner_set = corner_set.reshape(-1)
    n_facets = len(corners_of_facets)
    facet_of_set = np.full(corner_set.size, -1, np.int64)
    facet_of_set[corner_set[:n_facets]] = facet[:, 0]
    facet_of_cell = facet_of_set[corner_set[n_facets:]]
    matches = np.column_stack([facet_of_cell, value])
    return matches[facet_of_cell >= 0]


def subject_of_slices(
    mesh: SlicedMesh, requests: Sequence[LoopRequest], ranks: Ranks
) -> SplitSubject:
    """The sets and maps that these loops use, with the rows at home on this rank.

    Sizes are those of the mesh; tables and centroids have the rows of this rank. Without
    ``requests`` the loop is the default one, or what takes its place. Raises MeshprepError
    for loops that do not fit, and indices out of range; on every rank the same.
    """
    # Bind the loops to the mesh without its rows.
    shape = mesh.shape()
    if requests:
        return _subject_of_loops(mesh=mesh, shape=shape, ranks=ranks, requests=requests)
    return fit_default_loop(
        shape,
        n_cells=mesh.sizes.get("cells", 0),
        attempt=partial(_subject_of_loops, mesh, shape, ranks),
        sizes=lambda found: found.sizes,
    )


def _subject_of_loops(
    mesh: SlicedMesh,
    shape: Mesh,
    ranks: Ranks,
    requests: Sequence[LoopRequest],
    note: str = "",
) -> SplitSubject:
    """:func:`subject_of_slices` for these loops.

    ``note`` says why they are those of the default, where they were not asked for.
    """
    full, specs = agreed(ranks, lambda: maps_of_requests(shape, requests, note))
    agreed(ranks, lambda: refuse_fixed(specs))
    # Read or derive the tables of the maps that they use.
    maps = maps_of(full, specs)
    rows = partial(_stored_table, mesh, full, ranks)
    slices = _Slices(
        mesh=mesh,
        full=full,
        ranks=ranks,
        stored=rows,
        derived=Derived(shape=full, sizes=mesh.sizes, table=rows, ranks=ranks),
    )
    not_in_file = [name for name in maps if mesh.map(name) is None]
    agreed(ranks, lambda: slices.derived.check(not_in_file))
    tables = {name: replace(m, table=slices.table(name)) for name, m in maps.items()}
    # The sets, unions and coordinates that go with them.
    sets = sets_of(maps.values(), specs)
    unions = {name: full.sets[name].parts for name in sets if full.sets[name].parts}
    where = slices.nodes() if "nodes" in sets else None
    segments = {}
    for union, parts in unions.items():
        segments[union] = tuple(slices.sizes[part] for part in parts)
    subject = SplitSubject(
        sizes={name: slices.sizes[name] for name in sets},
        maps=tables,
        specs=tuple(specs),
        segments=segments,
        unions=unions,
        source_hash=mesh.content_hash,
        cell_types=cell_types(full),
        values={"coordinates/nodes": where} if where is not None else {},
        tags=tuple(chain.from_iterable(slices.tags_on(name) for name in sorted(sets))),
    )
    return _with_centroids(subject, slices)


def _with_centroids(subject: SplitSubject, slices: "_Slices") -> SplitSubject:
    """The subject with centroids, or with the maps by which ranks find them from others."""
    through = {}
    centroids = {}
    for name in subject.sizes:
        m = slices.through(name, subject)
        if m is not None:
            through[name] = m
            continue
        where = slices.centroids_of(name)
        if where is not None:
            centroids[name] = where
    return replace(subject, centroids=centroids, through=through if centroids else {})


def _stored_table(
    mesh: SlicedMesh,
    shape: Mesh,
    ranks: Ranks,
    name: str,
) -> Int32s:
    """The rows of a map in the file that are at home here.

    Raises MeshprepError on all ranks where a row of any is out of range.
    """
    stored = mesh.map(name)
    m = shape.map(name)
    assert stored is not None
    owned_runs = Homes(mesh.sizes[m.from_set], ranks).own

    def read() -> Int32s:
        with named(stored.rows.path):
            rows = SetMap(
                name=name,
                from_set=m.from_set,
                to_set=m.to_set,
                table=stored.rows.read(owned_runs.start, owned_runs.stop),
            )
            rows.check_range(mesh.sizes[m.to_set], owned_runs.start)
        return rows.table

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
            if name == "nodes":
                return self.nodes()
            return None
        if self.full.sets[name].parts:
            return self._of_union(name)
        m = self._map_of_means(name)
        if m is None:
            return None
        # the table of a map that loops do not use is not kept
        if m.name in self._tables:
            table = self._tables[m.name]
        else:
            table = self.stored(m.name)
        if m.to_set == "nodes":
            where = self.nodes()
        else:
            where = self.centroids_of(m.to_set)
        corners = table[:, : self._corners(name, m)]
        return self._means(m.to_set, where, corners)

    def through(self, name: str, subject: SplitSubject) -> str | None:
        """The map whose means are the centroids of a set, where ranks can take them.

        A rank fetches centroids of nodes and of the leading set alone.
        """
        leading = subject.leading_set
        if name in PLACED or self.full.sets[name].parts or name == leading:
            return None
        m = self._map_of_means(name)
        if m is None or m.name not in subject.maps:
            return None
        reaches_corners_alone = self._corners(name, m) == m.arity
        if m.to_set in ("nodes", leading) and reaches_corners_alone:
            return m.name
        return None

    def _map_of_means(self, name: str) -> SetMap | None:
        """The map to the points whose means are a set's centroids."""
        maps = self.full.maps
        if self.mesh.coordinates is None:
            return None
        if f"{name}->nodes" in maps:
            return maps[f"{name}->nodes"]
        first = next((m for m in maps.values() if m.from_set == name), None)
        if first is None or first.to_set == name:
            return None
        return first if first.to_set in ("nodes", "cells") else None

    def _corners(self, name: str, m: SetMap) -> int:
        """The columns of a map that are corners."""
        cell_type = self.full.sets[name].cell_type
        if m.to_set == "nodes" and cell_type is not None:
            return shape_of(str(cell_type)).n_corners
        return m.arity

    def _of_union(self, name: str) -> NDArray[np.float64] | None:
        """The centroids of a union, from those of its sets."""
        homes = self.homes(name)
        pieces = []
        begin = 0
        for part in self.full.sets[name].parts:
            where = self.centroids_of(part)
            own = self.homes(part).own
            if where is None:
                return None
            numbers = np.arange(begin + own.start, begin + own.stop)
            pieces += exchanged(self.ranks, homes.pieces(numbers, where))
            begin += self.sizes[part]
        return np.concatenate(pieces)

    def tags_on(self, name: str) -> tuple[Tag, ...]:
        """The rows of :func:`..subject.tags_of` at home here, by the same rules."""
        if name not in self._tags:
            self._tags[name] = known_tags(self._find_tags(name), self.ranks)
        return self._tags[name]

    def _find_tags(self, name: str) -> list[Tag]:
        """Tags of a set: of the file, of cells on its facets, or of the sets of a union."""
        homes = self.homes(name)
        stored = [tag for tag in self.mesh.tags if tag.set == name]
        if stored:
            read = [
                agreed(self.ranks, partial(t.read, homes.own.start, homes.own.stop))
                for t in stored
            ]
            # Tags with names alone have no groups.
            return [t for t in read if any(self.ranks.allgather(t.group_id.size))]
        if name not in self.mesh.sizes:
            return self.derived.tags(name, self.tags_on)
        # A union: join the tags of its parts, whose rows go to the homes in the union.
        pieces = dict[str, list[TagPiece]]()
        begin = 0
        for part in self.full.sets[name].parts:
            own = self.homes(part).own
            numbers = np.arange(begin + own.start, begin + own.stop)
            for tag in self.tags_on(part):
                rows = np.column_stack([numbers, tag.values])
                rows = joined(exchanged(self.ranks, homes.pieces(numbers, rows)))
                piece = tag, rows[:, 1], rows[:, 0] - homes.own.start
                pieces.setdefault(tag.name, []).append(piece)
            begin += self.sizes[part]
        return [
            join_tags(name=label, set_name=name, size=len(homes.own), pieces=pieces_of_tag)
            for label, pieces_of_tag in pieces.items()
        ]

    def nodes(self) -> NDArray[np.float64] | None:
        """The coordinates of the nodes at home here."""
        stored = self.mesh.coordinates
        own = self.homes("nodes").own
        if stored is None:
            return None
        return agreed(
            self.ranks, lambda: stored.read(own.start, own.stop).astype(np.float64)
        )

    def _means(
        self, name: str, where: NDArray[np.float64] | None, table: NDArray[np.int32]
    ) -> NDArray[np.float64] | None:
        """Means of the centroids ``where`` of a set, by the rows of a map to it."""
        if where is None:
            return None
        out = np.empty((len(table), where.shape[1]))
        return by_rows(
            homes=self.homes(name),
            table=table,
            values=where,
            work=mean_of_rows,
            out=out,
        )


def _refuse_many(name: str, size: int) -> None:
    """Raise MeshprepError for a set that is too large for an index of 32 bits."""
    if size > INDEX_LIMIT:
        raise MeshprepError(
            f"there are {size} {name}, past 2^31-1: slices hold no more of a set"
        )
