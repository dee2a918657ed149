"""The mesh as OP2 sees it: sets, maps, dats and tags; frozen, and validated when made.

Everything that holds indices is one of four things, so that a renumbering never forgets one:
a :class:`SetMap` (rows follow the from-set, values point into the to-set), a :class:`Dat` or
:class:`Tag` (rows follow a set), or an :class:`IndexList` (values point into a set, rows stay).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.maps import INDEX_LIMIT, SetMap, read_only
from meshprep_runtime.ordering import Ordering

__all__ = ["Dat", "ElementSet", "IndexList", "Mesh", "SetMap", "Tag"]

# The map that makes a mesh a graph.
GRAPH_MAP = "edges->vertices"


@dataclass(frozen=True)
class ElementSet:
    """A set: a name and a size.

    ``cell_type`` is the name of the cell type (``"tetra"``) where the set holds the cells of one
    type; ``parts`` names the sets whose elements, one after the other, make this one (the cells
    of a mixed mesh).
    """

    name: str
    size: int
    cell_type: str | None = None
    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name or "->" in self.name or "/" in self.name:
            raise MeshprepError(f"'{self.name}' is no name for a set: no '->', no '/', not empty")
        if not 0 <= self.size <= INDEX_LIMIT:
            raise MeshprepError(f"set '{self.name}' has size {self.size}, must be within 0..2^31-1")


@dataclass(frozen=True, eq=False)
class Dat:
    """Values on a set: one row an element, ``(n, ...)``; any number or fixed-width text dtype.

    ``attrs`` carries what a file format adds (time step, units); meshprep does not look inside.
    ``index``, ascending and unique, names the elements that have a value; None means all of them.
    """

    name: str
    set: str
    values: NDArray
    index: NDArray[np.int32] | None = None
    attrs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        values = np.asarray(self.values)
        if values.ndim < 1 or values.dtype.kind == "O":
            raise MeshprepError(
                f"dat '{self.name}' on '{self.set}': values of shape {values.shape} and dtype "
                f"{values.dtype}, must be numbers with one row an element"
            )
        object.__setattr__(self, "values", read_only(values))
        if self.index is not None:
            index = np.asarray(self.index, dtype=np.int32)
            if index.shape != values.shape[:1] or (np.diff(index) <= 0).any():
                raise MeshprepError(
                    f"dat '{self.name}' on '{self.set}': index must be ascending, one a row"
                )
            object.__setattr__(self, "index", read_only(index))


@dataclass(frozen=True, eq=False)
class Tag:
    """Group numbers on a set: every element is in none, one or several groups.

    Parameters
    ----------
    name : str
        ``"physical"``, ``"entity"``, or what the file calls it.
    set : str
    values : (n,) int32
        Row of each element in ``groups``.
    group_offset : (n_rows + 1,) int64
    group_id : int64
        Row ``r`` stands for the groups ``group_id[group_offset[r]:group_offset[r + 1]]``;
        an empty row is for elements in no group.
    names : mapping of group number to name
    """

    name: str
    set: str
    values: NDArray[np.int32]
    group_offset: NDArray[np.int64]
    group_id: NDArray[np.int64]
    names: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        where = f"tag '{self.name}' on '{self.set}'"
        values = np.asarray(self.values, dtype=np.int32)
        offset = np.asarray(self.group_offset, dtype=np.int64)
        group_id = np.asarray(self.group_id, dtype=np.int64)
        if offset.size < 1 or offset[0] != 0 or (np.diff(offset) < 0).any():
            raise MeshprepError(f"{where}: group_offset must rise from 0")
        if offset[-1] != group_id.size:
            raise MeshprepError(f"{where}: group_offset must end at {group_id.size}")
        if values.ndim != 1:
            raise MeshprepError(f"{where}: values have shape {values.shape}, must be one a row")
        if values.size and (values.min() < 0 or values.max() >= offset.size - 1):
            raise MeshprepError(f"{where}: a value is outside its {offset.size - 1} groups")
        object.__setattr__(self, "values", read_only(values))
        object.__setattr__(self, "group_offset", read_only(offset))
        object.__setattr__(self, "group_id", read_only(group_id))

    @classmethod
    def from_ids(
        cls, name: str, set: str, ids: NDArray[np.integer], names: Mapping[int, str] | None = None
    ) -> Tag:
        """One group an element; 0 stands for none. O(n log n)."""
        unique, values = np.unique(np.asarray(ids, dtype=np.int64), return_inverse=True)
        held = unique != 0
        offset = np.concatenate([[0], np.cumsum(held)])
        rows = values.reshape(-1).astype(np.int32)
        return cls(name, set, rows, offset, unique[held], dict(names or {}))

    def groups(self, row: int) -> tuple[int, ...]:
        """The group numbers that row ``row`` of the table stands for."""
        start, stop = self.group_offset[row], self.group_offset[row + 1]
        return tuple(int(i) for i in self.group_id[start:stop])

    def first_ids(self) -> NDArray[np.int64]:
        """The first group of every element, 0 where it has none."""
        if self.group_id.size == 0:
            return np.zeros(self.values.size, dtype=np.int64)
        start = np.minimum(self.group_offset[:-1], self.group_id.size - 1)
        first = np.where(np.diff(self.group_offset) > 0, self.group_id[start], 0)
        return first[self.values]


@dataclass(frozen=True, eq=False)
class IndexList:
    """Indices into a set whose rows keep their order: node sets, periodic pairs, ghost lists.

    Parameters
    ----------
    name : str
    set : str
        The set the values point into.
    index : (m,) or (m, k) int32
    attrs : mapping
        What the file format adds.
    """

    name: str
    set: str
    index: NDArray[np.int32]
    attrs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        index = np.asarray(self.index)
        if index.ndim not in (1, 2) or index.dtype.kind not in "iu":
            raise MeshprepError(
                f"index list '{self.name}' must be integers of shape (m,) or (m, k)"
            )
        object.__setattr__(self, "index", read_only(index.astype(np.int32, copy=False)))


@dataclass(frozen=True, eq=False)
class Mesh:
    """Sets, maps, dats, tags and index lists; validated as a whole when made.

    Parameters
    ----------
    sets : iterable of ElementSet
    maps : iterable of SetMap
    dats : iterable of Dat
        Names are unique on a set unless ``attrs`` differ (a field at several time steps). The
        coordinates are the dat ``"coordinates"`` on ``"nodes"``; numbers that a file gives its
        elements are the dat ``"label"`` on their set.
    tags, lists : iterables of Tag and IndexList
    extras : mapping
        What a format must carry from reading to writing and that holds no index into a set.

    Raises
    ------
    MeshprepError
        On repeated names, unknown sets, sizes that differ and indices out of range.
    """

    sets: Mapping[str, ElementSet]
    maps: Mapping[str, SetMap]
    dats: tuple[Dat, ...] = ()
    tags: tuple[Tag, ...] = ()
    lists: tuple[IndexList, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)

    def __init__(
        self,
        sets: Iterable[ElementSet],
        maps: Iterable[SetMap],
        dats: Iterable[Dat] = (),
        tags: Iterable[Tag] = (),
        lists: Iterable[IndexList] = (),
        extras: Mapping[str, Any] | None = None,
    ) -> None:
        set_field = object.__setattr__
        set_field(self, "sets", _by_name(sets, "set"))
        set_field(self, "maps", _by_name(maps, "map"))
        set_field(self, "dats", tuple(dats))
        set_field(self, "tags", tuple(tags))
        set_field(self, "lists", tuple(lists))
        set_field(self, "extras", MappingProxyType(dict(extras or {})))
        self._validate()

    def _validate(self) -> None:
        for s in self.sets.values():
            if s.parts and s.size != sum(self.size(p) for p in s.parts):
                raise MeshprepError(f"set '{s.name}' has not the size of its parts together")
        for m in self.maps.values():
            if m.size != self.size(m.from_set):
                raise MeshprepError(
                    f"map '{m.name}' has {m.size} rows, but set '{m.from_set}' has "
                    f"{self.size(m.from_set)} elements"
                )
            m.check_range(self.size(m.to_set))
        for d in self.dats:
            self._check_rows(f"dat '{d.name}'", d.set, d.values if d.index is None else None)
            if d.index is not None:
                self._check_index(f"dat '{d.name}'", d.set, d.index)
        for t in self.tags:
            self._check_rows(f"tag '{t.name}'", t.set, t.values)
        for i in self.lists:
            self._check_index(f"index list '{i.name}'", i.set, i.index)

    def _check_rows(self, what: str, set_name: str, values: NDArray | None) -> None:
        n = self.size(set_name)
        if values is not None and values.shape[0] != n:
            raise MeshprepError(
                f"{what} has {values.shape[0]} rows, but set '{set_name}' has {n} elements"
            )

    def _check_index(self, what: str, set_name: str, index: NDArray[np.int32]) -> None:
        n = self.size(set_name)
        if index.size and (index.min() < 0 or index.max() >= n):
            raise MeshprepError(f"{what} points outside the {n} elements of set '{set_name}'")

    def size(self, name: str) -> int:
        """Size of a set; raises MeshprepError that lists the sets there are."""
        if name not in self.sets:
            raise MeshprepError(f"there is no set '{name}': choose {', '.join(self.sets)}")
        return self.sets[name].size

    def map(self, name: str) -> SetMap:
        """A map by name; raises MeshprepError that lists the maps there are."""
        if name not in self.maps:
            raise MeshprepError(f"there is no map '{name}': choose {', '.join(self.maps)}")
        return self.maps[name]

    def dat(self, name: str, set_name: str) -> Dat | None:
        """The first dat of that name on that set, or None."""
        found = (d for d in self.dats if d.name == name and d.set == set_name)
        return next(found, None)

    def tag(self, name: str, set_name: str) -> Tag | None:
        """The tag of that name on that set, or None."""
        return next((t for t in self.tags if t.name == name and t.set == set_name), None)

    @property
    def coordinates(self) -> NDArray[np.float64] | None:
        """Node coordinates (n, 2 or 3), or None for a mesh without geometry."""
        dat = self.dat("coordinates", "nodes")
        return None if dat is None else dat.values

    @property
    def cell_sets(self) -> tuple[ElementSet, ...]:
        """The sets that hold cells of one type, every dimension."""
        return tuple(s for s in self.sets.values() if s.cell_type is not None)

    def cell_map(self, name: str) -> SetMap:
        """The map from a set of cells to its nodes."""
        return self.map(f"{name}->nodes")

    def with_(
        self,
        *,
        sets: Iterable[ElementSet] = (),
        maps: Iterable[SetMap] = (),
        dats: Iterable[Dat] = (),
        tags: Iterable[Tag] = (),
    ) -> Mesh:
        """A mesh with these added; nothing is replaced (a repeated name is an error)."""
        return Mesh(
            (*self.sets.values(), *sets),
            (*self.maps.values(), *maps),
            (*self.dats, *dats),
            (*self.tags, *tags),
            self.lists,
            self.extras,
        )

    def renumber(self, ordering: Mapping[str, Ordering]) -> Mesh:
        """The same mesh with the elements of each named set in a new order. O(size)."""
        return Mesh(
            self.sets.values(),
            (renumber_map(m, ordering) for m in self.maps.values()),
            (_renumber_dat(d, ordering.get(d.set)) for d in self.dats),
            (_renumber_tag(t, ordering.get(t.set)) for t in self.tags),
            (_renumber_list(i, ordering.get(i.set)) for i in self.lists),
            self.extras,
        )

    def content_hash(self) -> str:
        """Digest of the cells of the highest dimension as numbered: their types and tables.

        Coordinates are left out, since text formats may round them, and lower dimensions, since a
        format may not carry them. Meshes whose cells have no known types or no nodes (only sets and
        maps) hash every map; the edges of a graph count as a set of pairs, since its files keep
        neither their order nor that of their ends.
        """
        digest = hashlib.blake2b(digest_size=16)
        typed = "cells" in self.sets and self.cell_sets
        parts = self.sets["cells"].parts or ("cells",) if typed else ()
        names = [f"{p}->nodes" for p in parts]
        if not names or any(name not in self.maps for name in names):
            names = list(self.maps)
        for name in sorted(names):
            m = self.map(name)
            cell_type = self.sets[m.from_set].cell_type
            digest.update(f"{cell_type} {m.table.shape} {self.size(m.to_set)} ".encode())
            table = _as_set(m.table) if name == GRAPH_MAP else m.table
            digest.update(table.astype("<i4", copy=False).data)
        return digest.hexdigest()


def _as_set(table: NDArray[np.int32]) -> NDArray[np.int32]:
    """The rows of a table in ascending order, and so the numbers in each. O(n log n)."""
    rows = np.sort(table, axis=1)
    return np.ascontiguousarray(rows[np.lexsort(rows.T[::-1])])


def renumber_map(m: SetMap, ordering: Mapping[str, Ordering]) -> SetMap:
    """The map in the new numbering of its from-set and to-set, where these have one."""
    table, rows, values = m.table, ordering.get(m.from_set), ordering.get(m.to_set)
    if rows is not None:
        table = rows.apply(table)
    if values is not None:
        table = values.old_to_new[table]
    return replace(m, table=table)


def _renumber_dat(d: Dat, order: Ordering | None) -> Dat:
    if order is None:
        return d
    if d.index is None:
        return replace(d, values=order.apply(d.values))
    index = order.old_to_new[d.index]
    rows = np.argsort(index)
    return replace(d, values=d.values[rows], index=index[rows])


def _renumber_tag(t: Tag, order: Ordering | None) -> Tag:
    return t if order is None else replace(t, values=order.apply(t.values))


def _renumber_list(i: IndexList, order: Ordering | None) -> IndexList:
    return i if order is None else replace(i, index=order.old_to_new[i.index])


def _by_name(items: Iterable[Any], what: str) -> Mapping[str, Any]:
    out: dict[str, Any] = {}
    for item in items:
        if item.name in out:
            raise MeshprepError(f"two {what}s are named '{item.name}': names must be unique")
        out[item.name] = item
    return MappingProxyType(out)
