"""Owners of every set: runs in an order, and those that follow the leading set [R14 7.1]."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import Float64s, Int32s, Int64s, SetMap, offsets_of, read_only

from ..ranks import ALONE, Ranks, exchanged
from ..slices.homes import Homes, blocks, by_rows
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


def inherit(
    subject: SplitSubject,
    first: Int32s,
    weights: Float64s,
    ranks: Ranks = ALONE,
    start: str | None = None,
) -> Owners:
    """The part of every element of every set, from those of ``start`` or else the leading one.

    An element goes to the part that owns most of what it reaches, the first in its row where there
    are several; a point that elements reach to the part that owns most of these, the lowest where
    there are several. Cheapest maps go first. Sets that no map ties to the first one, and points
    that nothing reaches, are cut into runs.

    O(map entries).
    """
    heirs = _Heirs(subject, weights.size, ranks)
    owners: Owners = {start or subject.leading_set: read_only(first)}
    while len(owners) < len(subject.sizes):
        name, found = next(_candidates(subject, owners, heirs), (None, None))
        if name is None or found is None:
            name = next(s for s in subject.sizes if s not in owners)
            found = heirs.runs(name, weights)
        owners[name] = read_only(found)
    return {name: owners[name] for name in subject.sizes}


def _candidates(
    subject: SplitSubject, owners: Owners, heirs: "_Heirs"
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
class _Heirs:
    """Inheritance of owners between sets that ranks hold in slices, or one as a whole."""

    subject: SplitSubject
    parts: int
    ranks: Ranks

    def _homes(self, name: str) -> Homes:
        return Homes(self.subject.sizes[name], self.ranks)

    def runs(self, name: str, weights: Float64s) -> Int32s:
        """A set cut into runs."""
        return runs(self.subject.sizes[name], weights, self._homes(name).own)

    def of_rows(self, m: SetMap, owner: Int32s) -> Int32s:
        """The owners of a map's from-set by those of its to-set."""
        out = np.empty(m.size, np.int32)
        return by_rows(self._homes(m.to_set), m.table, owner, most_in_rows, out)

    def of_points(self, m: SetMap, owner: Int32s) -> Int32s:
        """The owners of a map's to-set by those of its from-set."""
        homes, found = self._homes(m.to_set), []
        for rows in blocks(self.ranks, m.size):
            keys = m.table[rows].astype(np.int64) * self.parts + owner[rows, None]
            votes = np.stack(np.unique(keys, return_counts=True), axis=1)
            found += exchanged(self.ranks, homes.pieces(votes[:, 0] // self.parts, votes))
        votes = np.concatenate([np.empty((0, 2), np.int64), *found])
        out = _elected(votes, self.parts, homes.own)
        alone = np.flatnonzero(out < 0)
        every = self.ranks.allgather((alone.size, int(owner.max(initial=0)) + 1))
        count, n_parts = sum(n for n, _ in every), max(p for _, p in every)
        first = sum(n for n, _ in every[: self.ranks.rank])
        equal = np.full(n_parts, 1 / n_parts)
        out[alone] = runs(count, equal, range(first, first + alone.size))
        return out

    def of_part(self, owner: Int32s, begin: int, name: str) -> Int32s:
        """The owners of a set that stands in a union from ``begin`` on."""
        own, unions = self._homes(name).own, self.subject.unions
        union = next(union for union, parts in unions.items() if name in parts)
        return self._homes(union).fetch(owner, np.arange(own.start, own.stop), begin)

    def of_union(self, owners: Sequence[Int32s], name: str) -> Int32s:
        """The owners of a union by those of its parts."""
        own, begin, found = self._homes(name).own, 0, []
        for part, owner in zip(self.subject.unions[name], owners, strict=True):
            end = begin + self.subject.sizes[part]
            low, high = (min(max(at, begin), end) for at in (own.start, own.stop))
            found.append(self._homes(part).fetch(owner, np.arange(low, high) - begin))
            begin = end
        return np.concatenate(found)


def _elected(votes: Int64s, parts: int, own: range) -> Int32s:
    """The part with the most votes, of equals the lowest; -1 where there are none.

    ``votes`` has rows of ``element * parts + part`` and a number of votes.
    """
    keys, which = np.unique(votes[:, 0], return_inverse=True)
    count = np.zeros(keys.size, np.int64)
    np.add.at(count, which.reshape(-1), votes[:, 1])
    element, part = np.divmod(keys, parts)
    best = np.lexsort((part, -count, element))
    element, first = np.unique(element[best], return_index=True)
    out = np.full(len(own), -1, np.int32)
    out[element - own.start] = part[best][first]
    return out


def most_in_rows(owner: Int32s, table: Int32s) -> Int32s:
    """The most frequent owner of each row's points, the first of equals."""
    found = owner[table]
    votes = [np.count_nonzero(found == column[:, None], axis=1) for column in found.T]
    return found[np.arange(len(found)), np.argmax(votes, axis=0)]
