"""What a mesh is made of beside its maps: sets, dats, tags and index lists, each frozen."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError, Named
from meshprep_runtime.types.maps import (
    INDEX_LIMIT,
    SetMap,
    as_indices,
    offsets_of,
    ranges,
    read_only,
    refuse_masked,
)

T = TypeVar("T", "ElementSet", SetMap)


@dataclass(frozen=True)
class ElementSet:
    """A set: a name and a size.

    Parameters
    ----------
    name : str
        Not empty, without ``->`` and ``/``.
    size : int
        Number of elements, at most 2^31-1.
    cell_type : str, optional
        The name of the cell type (``"tetra"``) where the set holds the cells of one type.
    parts : tuple of str
        The sets whose elements, one after the other, make this one (the cells of a mixed
        mesh).

    Raises
    ------
    MeshprepError
        For a name or a size that cannot be.
    """

    name: str
    size: int
    cell_type: str | None = None
    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name or "->" in self.name or "/" in self.name:
            raise MeshprepError(
                f"'{self.name}' is no name for a set: no '->', no '/', not empty"
            )
        if not isinstance(self.size, Integral) or not 0 <= self.size <= INDEX_LIMIT:
            raise MeshprepError(
                f"set '{self.name}' has size {self.size}, "
                "must be a whole number within 0..2^31-1"
            )
        object.__setattr__(self, "size", int(self.size))
        if self.name in self.parts:
            raise MeshprepError(f"set '{self.name}' is a part of itself")


@dataclass(frozen=True, eq=False)
class Dat:
    """Values on a set.

    Parameters
    ----------
    name : str
    set : str
    values : (n, ...) array
        One row an element, of any type of numbers or text of fixed width, in whatever
        units.
    index : (n,) int32, optional
        The elements that have a value, ascending; None for all of them.
    attrs : mapping
        What a file format adds (time step, units); meshprep does not look inside.

    Raises
    ------
    MeshprepError
        For values without rows, Python objects, masked values, and an index that does not
        ascend or is none.
    """

    name: str
    set: str
    values: NDArray[Any]
    index: NDArray[np.int32] | None = None
    attrs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        refuse_masked(self.values, f"dat '{self.name}' on '{self.set}'")
        values = np.asarray(self.values)
        if values.ndim < 1 or values.dtype.kind == "O":
            raise MeshprepError(
                f"dat '{self.name}' on '{self.set}': values of shape {values.shape} "
                f"and dtype {values.dtype}, must be numbers with one row an element"
            )
        object.__setattr__(self, "values", read_only(values))
        if self.index is not None:
            index = as_indices(self.index, f"dat '{self.name}' on '{self.set}'")
            has_an_entry_a_row = index.shape == values.shape[:1]
            if not has_an_entry_a_row or (np.diff(index) <= 0).any():
                raise MeshprepError(
                    f"dat '{self.name}' on '{self.set}': index must be ascending, one a row"
                )
            object.__setattr__(self, "index", read_only(index))

    @property
    def is_numbering(self) -> bool:
        """Whether these are the numbers that a file gives the elements of the set."""
        if self.name != "label" or self.index is not None or self.values.ndim != 1:
            return False
        if self.values.dtype.kind not in "iu":
            return False
        # Numberings are handled as int64.
        if self.values.dtype != np.uint64:
            return True
        return bool(self.values.max(initial=0) <= np.iinfo(np.int64).max)


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

    Raises
    ------
    MeshprepError
        Where offsets and values do not fit each other.

    Examples
    --------
    >>> import numpy as np
    >>> from meshprep import Tag
    >>> tag = Tag.from_ids("physical", "cells", np.array([7, 0, 7]), {7: "wall"})
    >>> tag.first_ids().tolist()
    [7, 0, 7]
    """

    name: str
    set: str
    values: NDArray[np.int32]
    group_offset: NDArray[np.int64]
    group_id: NDArray[np.int64]
    names: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        where = f"tag '{self.name}' on '{self.set}'"
        values = as_indices(self.values, where)
        offset = np.asarray(self.group_offset, dtype=np.int64)
        group_id = np.asarray(self.group_id, dtype=np.int64)
        if offset.size < 1 or offset[0] != 0 or (np.diff(offset) < 0).any():
            raise MeshprepError(f"{where}: group_offset must rise from 0")
        if offset[-1] != group_id.size:
            raise MeshprepError(f"{where}: group_offset must end at {group_id.size}")
        if values.ndim != 1:
            raise MeshprepError(
                f"{where}: values have shape {values.shape}, must be one a row"
            )
        if values.size and (values.min() < 0 or values.max() >= offset.size - 1):
            raise MeshprepError(f"{where}: a value is outside its {offset.size - 1} groups")
        object.__setattr__(self, "values", read_only(values))
        object.__setattr__(self, "group_offset", read_only(offset))
        object.__setattr__(self, "group_id", read_only(group_id))

    @classmethod
    def from_ids(
        cls,
        name: str,
        set: str,
        ids: NDArray[np.integer],
        names: Mapping[int, str] | None = None,
    ) -> "Tag":
        """The tag of elements that are in one group each, or in none.

        Parameters
        ----------
        name, set : str
        ids : (n,) integers
            The group of every element; 0 stands for none.
        names : mapping of group number to name, optional

        Returns
        -------
        Tag
            O(n log n).

        Raises
        ------
        MeshprepError
            For a group that is no whole number of 64 bits with a sign.
        """
        # A number that the cast changes is no group; NaN would warn before it is refused.
        numbers = np.asarray(ids)
        with np.errstate(invalid="ignore"):
            whole = numbers.astype(np.int64)
        if (whole != numbers).any():
            raise MeshprepError(
                f"tag '{name}' on '{set}': groups must be whole numbers of 64 bits"
            )

        # A row of the table for each number: of one group, or empty for 0.
        unique, values = np.unique(whole, return_inverse=True)
        is_group = unique != 0
        return cls(
            name=name,
            set=set,
            values=values.reshape(-1).astype(np.int32),
            group_offset=offsets_of(is_group),
            group_id=unique[is_group],
            names=dict(names or {}),
        )

    def groups(self, row: int) -> tuple[int, ...]:
        """The groups that a row of the table stands for.

        Parameters
        ----------
        row : int
            A value of ``values``.

        Returns
        -------
        tuple of int
        """
        start = self.group_offset[row]
        stop = self.group_offset[row + 1]
        return tuple(int(i) for i in self.group_id[start:stop])

    def first_ids(self) -> NDArray[np.int64]:
        """The first group of every element.

        Returns
        -------
        (n,) int64
            0 where an element is in no group.
        """
        if self.group_id.size == 0:
            return np.zeros(self.values.size, dtype=np.int64)
        # An empty row at the end begins past the last group: read any group, drop it below.
        start = np.minimum(self.group_offset[:-1], self.group_id.size - 1)
        has_groups = np.diff(self.group_offset) > 0
        first_of_row = np.where(has_groups, self.group_id[start], 0)
        return first_of_row[self.values]

    def further_ids(self) -> NDArray[np.int64]:
        """The groups of elements that are in several, but for the first of each.

        Returns
        -------
        (m, 2) int64
            An element and a group in each row; rows ascend, none stands twice.
        """
        # Elements in several groups, and where their groups begin.
        has_several = np.diff(self.group_offset) > 1
        element = np.flatnonzero(has_several[self.values])
        row = self.values[element]
        begin = self.group_offset[row]
        n_further = self.group_offset[row + 1] - begin - 1

        # A pair for each of their groups but the first; one that repeats the first is none.
        group = self.group_id[ranges(begin + 1, n_further)]
        first = np.repeat(self.group_id[begin], n_further)
        element_of_pair = np.repeat(element, n_further)
        pairs = np.column_stack([element_of_pair, group])
        pairs = pairs[group != first]

        # Sort by element, then by group, and keep one of equal pairs.
        element_first = pairs.T[::-1]
        pairs = pairs[np.lexsort(element_first)]
        is_new = np.diff(pairs, axis=0, prepend=-1).any(axis=1)
        distinct: NDArray[np.int64] = pairs[is_new]
        return distinct


@dataclass(frozen=True, eq=False)
class IndexList:
    """Indices into a set in an order of their own: node sets, periodic pairs, ghost lists.

    Parameters
    ----------
    name : str
    set : str
        The set the values point into.
    index : (m,) or (m, k) int32
    attrs : mapping
        What the file format adds.

    Raises
    ------
    MeshprepError
        For an index of another shape, or that is no whole numbers.
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
        index = as_indices(index, f"index list '{self.name}'")
        object.__setattr__(self, "index", read_only(index))


def by_name(given: Iterable[Any] | Mapping[str, Any], kind: type[T]) -> Mapping[str, T]:
    """Sets or maps by name.

    A mapping may give a set by its size, and a map by its table if the name has both sets.
    """
    # What messages call the items, and how their short form is made.
    make: Callable[[str, Any], Any]
    if issubclass(kind, ElementSet):
        kind_name = "set"
        short_form = "size"
        make = ElementSet
    else:
        kind_name = "map"
        short_form = "table"
        make = _map_named

    # Make what a mapping gives in short form.
    items: list[Any] = []
    if isinstance(given, Mapping):
        for name, value in given.items():
            if not isinstance(value, kind):
                value = make(name, value)
            items.append(value)
    else:
        items = list(given)

    # Index by name, each name once.
    out: dict[str, Any] = {}
    for item in items:
        if not isinstance(item, kind):
            raise MeshprepError(
                f"{item!r:.40} is no {kind.__name__}: give {{name: {short_form}}}"
            )
        if item.name in out:
            raise MeshprepError(
                f"two {kind_name}s are named '{item.name}': names must be unique"
            )
        out[item.name] = item
    return MappingProxyType(Named(kind_name, out))


def _map_named(name: str, table: Any) -> SetMap:
    """The map between the sets that its name says."""
    # ``edges->cells:second``: what follows the colon tells maps of the same sets apart.
    ends = [end.partition(":")[0].strip() for end in name.split("->")]
    if len(ends) < 2 or not all(ends):
        raise MeshprepError(f"map '{name}' must read FROM->TO, for example 'faces->cells'")
    return SetMap(name=name, from_set=ends[0], to_set=ends[-1], table=table)


def check_distinct(values: Iterable[Dat | Tag], what: str) -> None:
    """Raise MeshprepError for a name twice on a set, where the ``attrs`` do not differ."""
    keys = set()
    for item in values:
        attrs: Mapping[str, Any] = getattr(item, "attrs", {})
        attrs_key = frozenset((name, _as_key(value)) for name, value in attrs.items())
        key = (item.name, item.set, attrs_key)
        if key in keys:
            raise MeshprepError(
                f"two {what}s are named '{item.name}' on '{item.set}': names must be unique"
            )
        keys.add(key)


def _as_key(value: Any) -> bytes | str:
    """A value of ``attrs`` as something that can be compared and hashed."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    return repr(value)
