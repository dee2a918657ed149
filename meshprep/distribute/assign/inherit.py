"""Owners of every set: runs in an order, and those that follow the leading set [R14 7.1]."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import Float64s, Int32s, Int64s, SetMap, offsets_of, read_only

from ...kernels import kernel
from ...kernels.arrays import sort
from ...kernels.parallel import each, pieces
from ...mesh.incidence import transpose
from ..subject import SplitSubject


def runs(n: int, weights: Float64s, own: range | None = None) -> Int32s:
    """Part of each element of a range, for runs whose sizes follow the weights."""
    own = range(n) if own is None else own
    at = np.arange(own.start, own.stop)
    return np.searchsorted(run_ends(n, weights), at, side="right").astype(np.int32)


def run_ends(n: int, weights: Float64s) -> Int64s:
    """End of the run of each part."""
    ends = np.rint(np.cumsum(weights) * n).astype(np.int64)
    ends[-1:] = n
    return ends


def finite_centroids(subject: SplitSubject, cut: str) -> Float64s:
    """Centroids of the leading set; raises MeshprepError if they are missing or infinite."""
    name = subject.leading_set
    where = subject.centroids.get(name)
    if where is None:
        raise MeshprepError(f"cut '{cut}' needs coordinates, and '{name}' has none: use metis")
    if not np.isfinite(where).all():
        raise MeshprepError(f"cut '{cut}' needs finite coordinates of '{name}': use metis")
    return where


Owners = dict[str, Int32s]


class Heirs(Protocol):
    """Inheritance of owners between sets, whole or in slices."""

    def runs(self, name: str, weights: Float64s) -> Int32s:
        """A set cut into runs."""

    def of_rows(self, m: SetMap, owner: Int32s) -> Int32s:
        """The owners of a map's from-set by those of its to-set."""

    def of_points(self, m: SetMap, owner: Int32s) -> Int32s:
        """The owners of a map's to-set by those of its from-set."""

    def of_part(self, owner: Int32s, begin: int, name: str) -> Int32s:
        """The owners of a set that stands in a union from ``begin`` on."""

    def of_union(self, owners: Sequence[Int32s], name: str) -> Int32s:
        """The owners of a union by those of its parts."""


def inherit(
    subject: SplitSubject,
    first: Int32s,
    weights: Float64s,
    heirs: Heirs | None = None,
    start: str | None = None,
) -> Owners:
    """The part of every element of every set, from those of ``start`` or else the leading one.

    An element goes to the part that owns most of what it reaches, the first in its row where there
    are several; a point that elements reach to the part that owns most of these, the lowest where
    there are several. Cheapest maps go first. Sets that no map ties to the first one, and points
    that nothing reaches, are cut into runs.

    O(map entries).
    """
    heirs = _Whole(subject) if heirs is None else heirs
    owners: Owners = {start or subject.leading_set: read_only(first)}
    while len(owners) < len(subject.sizes):
        name, found = next(_candidates(subject, owners, heirs), (None, None))
        if name is None or found is None:
            name = next(s for s in subject.sizes if s not in owners)
            found = heirs.runs(name, weights)
        owners[name] = read_only(found)
    return {name: owners[name] for name in subject.sizes}


def _candidates(
    subject: SplitSubject, owners: Owners, heirs: Heirs
) -> Iterator[tuple[str, Int32s]]:
    """Sets whose owners can be inherited next, the cheapest first."""
    for union, parts in subject.unions.items():
        bound = offsets_of(subject.segments[union])
        for i, part in enumerate(parts):
            if union in owners and part in subject.sizes and part not in owners:
                yield part, heirs.of_part(owners[union], int(bound[i]), part)
        if union not in owners and all(part in owners for part in parts):
            yield union, heirs.of_union([owners[part] for part in parts], union)
    down = [m for m in subject.maps.values() if m.to_set in owners and m.from_set not in owners]
    for m in sorted(down, key=lambda m: m.arity > 1):
        yield m.from_set, heirs.of_rows(m, owners[m.to_set])
    for m in subject.maps.values():
        if m.from_set in owners and m.to_set not in owners:
            yield m.to_set, heirs.of_points(m, owners[m.from_set])


@dataclass(frozen=True, eq=False)
class _Whole:
    """:class:`Heirs` of sets that lie here as a whole."""

    subject: SplitSubject

    def runs(self, name: str, weights: Float64s) -> Int32s:
        return runs(self.subject.sizes[name], weights)

    def of_rows(self, m: SetMap, owner: Int32s) -> Int32s:
        shares = [(m.table[begin:end], owner) for begin, end in pieces(m.size)]
        return np.concatenate(each(most_in_rows, shares))

    def of_points(self, m: SetMap, owner: Int32s) -> Int32s:
        around = transpose(m.table, self.subject.sizes[m.to_set])
        found = _most_in_csr(around.offset, owner[around.index])
        alone = np.flatnonzero(found < 0)
        n_parts = int(owner.max(initial=0)) + 1
        found[alone] = runs(alone.size, np.full(n_parts, 1 / n_parts))
        return found

    def of_part(self, owner: Int32s, begin: int, name: str) -> Int32s:
        return owner[begin : begin + self.subject.sizes[name]]

    def of_union(self, owners: Sequence[Int32s], name: str) -> Int32s:
        return np.concatenate(owners)


@kernel
def most_in_rows(table: Int32s, owner: Int32s) -> Int32s:
    """The most frequent owner of each row's points, the first of equals."""
    n, arity = table.shape
    out = np.empty(n, np.int32)
    for i in range(n):
        most = 0
        for j in range(arity):
            mine, count = owner[table[i, j]], 0
            for k in range(arity):
                count += owner[table[i, k]] == mine
            if count > most:
                most, out[i] = count, mine
    return out


@kernel
def _most_in_csr(offset: Int64s, owner: Int32s) -> Int32s:
    """The most frequent owner in each row, the lowest of equals; -1 for empty rows. Sorts rows."""
    out = np.full(offset.size - 1, -1, np.int32)
    for i in range(offset.size - 1):
        sort(owner, offset[i], offset[i + 1])
        most, count = 0, 0
        for k in range(offset[i], offset[i + 1]):
            count = count + 1 if k > offset[i] and owner[k] == owner[k - 1] else 1
            if count > most:
                most, out[i] = count, owner[k]
    return out
