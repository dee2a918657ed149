"""The mesh as OP2 sees it: sets, maps, dats and tags; frozen, and validated when made.

Everything that holds indices is one of four things, so that a renumbering never forgets
one: a :class:`SetMap` (rows follow the from-set, values point into the to-set), a
:class:`Dat` or :class:`Tag` (rows follow a set), or an :class:`IndexList` (values point
into a set, rows stay).
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import SetMap
from meshprep_runtime.types.ordering import Ordering
from meshprep_runtime.types.shown import html_table

from ..kernels.parallel import take
from .incidence import renumber_table
from .items import Dat, ElementSet, IndexList, Tag, by_name, check_distinct
from .orderings import with_unions

__all__ = ["Dat", "ElementSet", "IndexList", "Mesh", "SetMap", "Tag"]

# The map that makes a mesh a graph.
GRAPH_MAP = "edges->vertices"
# The extra of a mesh whose file has interior faces by their lower and then their upper
# cell, as {map of the faces to these: sizes of runs of cells that no order mixes}. Rows of
# the map are turned where the upper cell became the lower one; all other sets but the cells
# keep their order.
UPPER_TRIANGULAR = "openfoam:upper triangular"
# The dats of a mesh from a Gmsh file that say on which entity each node lies: its dimension
# and its number.
GMSH_ENTITY = ("gmsh:entity_dim", "gmsh:entity_tag")


@dataclass(frozen=True, eq=False)
class Mesh:
    """Sets, maps, dats, tags and index lists; validated as a whole when made.

    Parameters
    ----------
    sets : iterable of ElementSet, or mapping of name to size
    maps : iterable of SetMap, or mapping of name to table
        A name of a mapping says the sets: ``"edges->cells"``, ``"edges->cells:second"``.
    dats : iterable of Dat
        Names are unique on a set unless ``attrs`` differ (a field at several time steps).
        The coordinates are the dat ``"coordinates"`` on ``"nodes"``; numbers that a file
        gives its elements are the dat ``"label"`` on their set.
    tags, lists : iterables of Tag and IndexList
    extras : mapping
        What a format must carry from reading to writing and that holds no index into a set.

    Raises
    ------
    MeshprepError
        On repeated names, unknown sets, sizes that differ and indices out of range.

    Examples
    --------
    Two edges between three cells, and the same with the cells in another order:

    >>> import numpy as np
    >>> from meshprep import Mesh, Ordering
    >>> mesh = Mesh({"edges": 2, "cells": 3}, {"edges->cells": np.array([[0, 1], [1, 2]])})
    >>> order = Ordering.from_new_to_old(np.array([2, 1, 0]))
    >>> mesh.renumber({"cells": order}).map("edges->cells").table.tolist()
    [[2, 1], [1, 0]]
    """

    sets: Mapping[str, ElementSet]
    maps: Mapping[str, SetMap]
    dats: tuple[Dat, ...] = ()
    tags: tuple[Tag, ...] = ()
    lists: tuple[IndexList, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)

    def __init__(
        self,
        sets: Iterable[ElementSet] | Mapping[str, int | ElementSet],
        maps: Iterable[SetMap] | Mapping[str, NDArray[np.integer] | SetMap],
        dats: Iterable[Dat] = (),
        tags: Iterable[Tag] = (),
        lists: Iterable[IndexList] = (),
        extras: Mapping[str, Any] | None = None,
    ) -> None:
        # The class is frozen: fields are set past its own ``__setattr__``.
        set_field = object.__setattr__
        set_field(self, "sets", by_name(sets, ElementSet))
        set_field(self, "maps", by_name(maps, SetMap))
        set_field(self, "dats", tuple(dats))
        set_field(self, "tags", tuple(tags))
        set_field(self, "lists", tuple(lists))
        set_field(self, "extras", MappingProxyType(dict(extras or {})))

        # Sizes of sets and maps fit each other, and maps point into their to-sets.
        for s in self.sets.values():
            if s.parts and s.size != sum(self.size(p) for p in s.parts):
                raise MeshprepError(
                    f"set '{s.name}' has not the size of its parts together"
                )
        for m in self.maps.values():
            if m.size != self.size(m.from_set):
                raise MeshprepError(
                    f"map '{m.name}' has {m.size} rows, but set '{m.from_set}' has "
                    f"{self.size(m.from_set)} elements"
                )
            m.check_range(self.size(m.to_set))

        # Dats and tags have a row for each element of their set, or an index into it.
        check_distinct(self.dats, "dat")
        check_distinct(self.tags, "tag")
        for d in self.dats:
            if d.index is None:
                self._check_rows(f"dat '{d.name}'", d.set, d.values)
            else:
                self._check_index(f"dat '{d.name}'", d.set, d.index)
        for t in self.tags:
            self._check_rows(f"tag '{t.name}'", t.set, t.values)
        for i in self.lists:
            self._check_index(f"index list '{i.name}'", i.set, i.index)

    def _check_rows(self, what: str, set_name: str, values: NDArray[Any]) -> None:
        n = self.size(set_name)
        if values.shape[0] != n:
            raise MeshprepError(
                f"{what} has {values.shape[0]} rows, but set '{set_name}' has {n} elements"
            )

    def _check_index(self, what: str, set_name: str, index: NDArray[np.int32]) -> None:
        n = self.size(set_name)
        if index.size and (index.min() < 0 or index.max() >= n):
            raise MeshprepError(
                f"{what} points outside the {n} elements of set '{set_name}'"
            )

    def __repr__(self) -> str:
        held = {
            "sets": [f"{s.name} {s.size:,}" for s in self.sets.values()],
            "maps": list(self.maps),
            "dats": list({d.name: d for d in self.dats}),
            "tags": list({t.name: t for t in self.tags}),
        }
        parts = (f"{kind} {', '.join(names)}" for kind, names in held.items() if names)
        return f"Mesh({'; '.join(parts)})"

    def _repr_html_(self) -> str:
        rows = []
        for s in self.sets.values():
            cells = s.cell_type or " + ".join(s.parts)
            rows.append((s.name, s.size, cells))
        title = f"Mesh: maps {', '.join(self.maps)}"
        return html_table(title, ("set", "elements", "cells"), rows)

    @property
    def sizes(self) -> dict[str, int]:
        """Number of elements of every set."""
        return {name: s.size for name, s in self.sets.items()}

    def size(self, name: str) -> int:
        """Number of elements of a set.

        Parameters
        ----------
        name : str

        Returns
        -------
        int

        Raises
        ------
        MeshprepError
            Where there is no such set; the message lists those there are.
        """
        return self.sets[name].size

    def map(self, name: str) -> SetMap:
        """A map by its name.

        Parameters
        ----------
        name : str

        Returns
        -------
        SetMap

        Raises
        ------
        MeshprepError
            Where there is no such map; the message lists those there are.
        """
        return self.maps[name]

    def dat(self, name: str, set_name: str) -> Dat | None:
        """Values by name and set.

        Parameters
        ----------
        name, set_name : str

        Returns
        -------
        Dat or None
            The first of that name on that set.
        """
        return next((d for d in self.dats if d.name == name and d.set == set_name), None)

    def tag(self, name: str, set_name: str) -> Tag | None:
        """Groups by name and set.

        Parameters
        ----------
        name, set_name : str

        Returns
        -------
        Tag or None
        """
        return next((t for t in self.tags if t.name == name and t.set == set_name), None)

    @property
    def coordinates(self) -> NDArray[np.float64] | None:
        """Node coordinates (n, 2 or 3), or None for a mesh without geometry."""
        dat = self.dat("coordinates", "nodes")
        if dat is None:
            return None
        return dat.values

    @property
    def cell_sets(self) -> tuple[ElementSet, ...]:
        """The sets that hold cells of one type, every dimension."""
        return tuple(s for s in self.sets.values() if s.cell_type is not None)

    def cell_map(self, name: str) -> SetMap:
        """The map from a set of cells to its nodes.

        Parameters
        ----------
        name : str
            Of the set of cells.

        Returns
        -------
        SetMap

        Raises
        ------
        MeshprepError
            Where there is none.
        """
        return self.map(f"{name}->nodes")

    def with_(
        self,
        *,
        sets: Iterable[ElementSet] | Mapping[str, int | ElementSet] = (),
        maps: Iterable[SetMap] | Mapping[str, NDArray[np.integer] | SetMap] = (),
        dats: Iterable[Dat] = (),
        tags: Iterable[Tag] = (),
    ) -> "Mesh":
        """The mesh with more in it; nothing is replaced.

        Parameters
        ----------
        sets, maps, dats, tags : as of a Mesh

        Returns
        -------
        Mesh

        Raises
        ------
        MeshprepError
            As when a mesh is made: a repeated name is an error.
        """
        return Mesh(
            sets=(*self.sets.values(), *by_name(sets, ElementSet).values()),
            maps=(*self.maps.values(), *by_name(maps, SetMap).values()),
            dats=(*self.dats, *dats),
            tags=(*self.tags, *tags),
            lists=self.lists,
            extras=self.extras,
        )

    def renumber(self, ordering: Mapping[str, Ordering]) -> "Mesh":
        """The same mesh with the elements of some sets in a new order.

        Parameters
        ----------
        ordering : mapping of set name to Ordering
            From the present numbering; other sets keep theirs. A union follows its parts.

        Returns
        -------
        Mesh
            Maps, dats, tags and index lists follow. O(size of the mesh).

        Raises
        ------
        MeshprepError
            For a set that there is not, an ordering of another size, and one of a union
            that is not that of its parts one after the other.
        """
        return moved(self, with_unions(self.sets, ordering))

    def content_hash(self) -> str:
        """Digest of the cells of the highest dimension as numbered: their types and tables.

        Returns
        -------
        str
            32 hexadecimal digits (BLAKE2b). O(size of the tables).

        Notes
        -----
        Coordinates are left out, since text formats may round them, and lower
        dimensions, since a format may not carry them. Meshes whose cells have no known
        types or no nodes (only sets and maps) hash every map; the edges of a graph count as
        a set of pairs, since its files keep neither their order nor that of their ends; nor
        do the two sides of OpenFOAM's faces count.
        """

        def rows(name: str) -> Iterator[NDArray[np.int32]]:
            table = self.map(name).table
            if name in self.extras.get(UPPER_TRIANGULAR, ()):
                table = lower_first(table)
            yield rows_as_set(table) if name == GRAPH_MAP else table

        return hash_of_rows(self, self.sizes, rows)


def hash_of_rows(
    shape: Mesh,
    sizes: Mapping[str, int],
    rows: Callable[[str], Iterable[NDArray[np.integer]]],
) -> str:
    """:meth:`Mesh.content_hash` of a mesh whose tables come piece by piece.

    ``shape`` has its sets and maps, whose elements do not matter, ``sizes`` are those of
    its sets, and ``rows(map name)`` gives a table in pieces.
    """
    # The maps of the cells of the highest dimension; every map where the mesh lacks one.
    parts: tuple[str, ...] = ()
    if "cells" in shape.sets and shape.cell_sets:
        parts = shape.sets["cells"].parts or ("cells",)
    names = [f"{p}->nodes" for p in parts]
    if not names or not shape.maps.keys() >= {*names}:
        names = list(shape.maps)

    # Digest type, sizes and table of each; the order in which a file has them is no matter.
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(names):
        m = shape.map(name)
        cell_type = shape.sets[m.from_set].cell_type
        size = (sizes[m.from_set], m.arity)
        digest.update(f"{cell_type} {size} {sizes[m.to_set]} ".encode())
        for piece in rows(name):
            digest.update(np.ascontiguousarray(piece, "<i4").data)
    return digest.hexdigest()


def rows_turned(table: NDArray[np.int32], turned: NDArray[np.bool_]) -> NDArray[np.int32]:
    """A table of two columns with some rows the other way round."""
    return np.where(turned[:, None], table[:, ::-1], table)


def lower_first(table: NDArray[np.int32]) -> NDArray[np.int32]:
    """A table of two columns with the lower number of each row first."""
    # Column by column: turning single rows takes NumPy seven times as long.
    first, second = table.T
    lower = np.minimum(first, second)
    higher = np.maximum(first, second)
    return np.stack([lower, higher], axis=1)


def rows_as_set(table: NDArray[np.int32]) -> NDArray[np.int32]:
    """The rows of a table in ascending order, the numbers of each ascending. O(n log n)."""
    rows = np.sort(table, axis=1)
    first_column_first = rows.T[::-1]
    order = np.lexsort(first_column_first)
    return np.ascontiguousarray(rows[order])


def moved(mesh: Mesh, ordering: Mapping[str, Ordering]) -> Mesh:
    """:meth:`Mesh.renumber` with orderings that fit: sizes, and unions their parts."""
    # Maps: rows move and points get new numbers; faces of OpenFOAM turn to the lower cell.
    maps = {name: renumber_map(m, ordering) for name, m in mesh.maps.items()}
    for name in mesh.extras.get(UPPER_TRIANGULAR, ()):
        m = maps[name]
        maps[name] = replace(m, table=lower_first(m.table))

    # Dats and tags: rows move with the elements of their set.
    dats = [_renumber_dat(dat, ordering.get(dat.set)) for dat in mesh.dats]
    tags = []
    for tag in mesh.tags:
        if tag.set in ordering:
            values = ordering[tag.set].apply(tag.values)
            tag = replace(tag, values=values)
        tags.append(tag)

    # Index lists: elements get new numbers, the list keeps its own order.
    lists = []
    for index_list in mesh.lists:
        if index_list.set in ordering:
            numbers = ordering[index_list.set].old_to_new[index_list.index]
            index_list = replace(index_list, index=numbers)
        lists.append(index_list)
    return Mesh(
        sets=mesh.sets.values(),
        maps=maps.values(),
        dats=dats,
        tags=tags,
        lists=lists,
        extras=mesh.extras,
    )


def renumber_map(m: SetMap, ordering: Mapping[str, Ordering]) -> SetMap:
    """The map in the new numbering of its from-set and to-set, where these have one."""
    rows = ordering.get(m.from_set)
    points = ordering.get(m.to_set)
    new_to_old = None
    if rows is not None and not rows.is_identity:
        new_to_old = rows.new_to_old
    old_to_new = None
    if points is not None and not points.is_identity:
        old_to_new = points.old_to_new
    if new_to_old is None and old_to_new is None:
        return m
    return replace(m, table=renumber_table(m.table, new_to_old, old_to_new))


def _renumber_dat(d: Dat, order: Ordering | None) -> Dat:
    """The values of a dat in the new order of its set."""
    if order is None:
        return d
    if d.index is None:
        if order.is_identity:
            return d
        return replace(d, values=take(d.values, order.new_to_old))
    # Values on some elements: the index gets their new numbers, and must ascend again.
    index = order.old_to_new[d.index]
    rows = np.argsort(index)
    return replace(d, values=d.values[rows], index=index[rows])
