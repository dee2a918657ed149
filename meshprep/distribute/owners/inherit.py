"""Owners of every set: runs of an order, or owners inherited through maps [R14 7.1]."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import (
    Float64s,
    Int32s,
    Int64s,
    SetMap,
    offsets_of,
    read_only,
)

from ..homes import Homes, blocks, by_rows
from ..ranks import ALONE, Ranks, exchanged
from ..subject import SplitSubject


def runs(n: int, weights: Float64s, own: range | None = None) -> Int32s:
    """Part of each element of ``own``, or of all: runs whose sizes follow the weights."""
    if own is None:
        own = range(n)
    elements = np.arange(own.start, own.stop)
    part = np.searchsorted(run_ends(n, weights), elements, side="right")
    return part.astype(np.int32)


def run_ends(n: int, weights: Float64s) -> Int64s:
    """End of the run of each part."""
    ends = np.rint(np.cumsum(weights) * n).astype(np.int64)
    ends[-1:] = n
    return ends


def finite_centroids(subject: SplitSubject, cut: str) -> Float64s:
    """Centroids of the leading set. Raises MeshprepError if any is missing or infinite."""
    name = subject.leading_set
    where = subject.centroids.get(name)
    if where is None:
        raise MeshprepError(
            f"cut '{cut}' needs coordinates, and '{name}' has none: use metis"
        )
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
    """The part of every element of every set, from the owners of a first one.

    ``first`` are the owners of ``start``, or of the leading set. An element goes to the
    part that owns most of the points it reaches, of equals the first in its row; a point to
    the part that owns most of the elements that reach it, of equals the lowest. Sets that
    no map ties to the first one, and points that nothing reaches, are cut into runs. O(map
    entries).
    """
    heirs = _Heirs(subject, weights.size, ranks)
    owners: Owners = {start or subject.leading_set: read_only(first)}
    while len(owners) < len(subject.sizes):
        candidate = next(_candidates(subject, owners, heirs), None)
        if candidate is None:
            # Nothing ties the sets that are left to those that have owners.
            name = next(s for s in subject.sizes if s not in owners)
            owner = heirs.runs(name, weights)
        else:
            name, owner = candidate
        owners[name] = read_only(owner)
    return {name: owners[name] for name in subject.sizes}


def _candidates(
    subject: SplitSubject, owners: Owners, heirs: "_Heirs"
) -> Iterator[tuple[str, Int32s]]:
    """Sets whose owners can be inherited next, and these owners; the cheapest first."""
    # Unions and their parts have the same elements.
    for union, parts in subject.unions.items():
        bound = offsets_of(subject.segments[union])
        for i, part in enumerate(parts):
            if union in owners and part in subject.sizes and part not in owners:
                yield part, heirs.of_part(owners[union], int(bound[i]), part)
        if union not in owners and all(part in owners for part in parts):
            yield union, heirs.of_union([owners[part] for part in parts], union)
    # Rows choose among the owners of their points, those of one point first.
    down = [
        m for m in subject.maps.values() if m.to_set in owners and m.from_set not in owners
    ]
    for m in sorted(down, key=lambda m: m.arity > 1):
        yield m.from_set, heirs.of_rows(m, owners[m.to_set])
    # Points count the owners of the rows that reach them.
    for m in subject.maps.values():
        if m.from_set in owners and m.to_set not in owners:
            yield m.to_set, heirs.of_points(m, owners[m.from_set])


@dataclass(frozen=True, eq=False)
class _Heirs:
    """Inheritance of owners between sets: slices of them, or on one rank the whole."""

    subject: SplitSubject
    parts: int
    ranks: Ranks

    def _homes(self, name: str) -> Homes:
        """Where the elements of a set are at home."""
        return Homes(self.subject.sizes[name], self.ranks)

    def runs(self, name: str, weights: Float64s) -> Int32s:
        """A set cut into runs."""
        return runs(self.subject.sizes[name], weights, self._homes(name).own)

    def of_rows(self, m: SetMap, owner: Int32s) -> Int32s:
        """The owners of a map's from-set by those of its to-set."""
        out = np.empty(m.size, np.int32)
        return by_rows(
            homes=self._homes(m.to_set),
            table=m.table,
            values=owner,
            work=most_in_rows,
            out=out,
        )

    def of_points(self, m: SetMap, owner: Int32s) -> Int32s:
        """The owners of a map's to-set by those of its from-set."""
        # Count the rows of each part at each point, and send the counts to the points'
        # homes.
        homes = self._homes(m.to_set)
        votes_here = []
        for rows in blocks(self.ranks, m.size):
            # A key is a point and a part: point * parts + part.
            keys = m.table[rows].astype(np.int64) * self.parts + owner[rows, None]
            votes = np.stack(np.unique(keys, return_counts=True), axis=1)
            point = votes[:, 0] // self.parts
            votes_here += exchanged(self.ranks, homes.pieces(point, votes))
        votes = np.concatenate([np.empty((0, 2), np.int64), *votes_here])
        out = _elected(votes, self.parts, homes.own)
        # Points that no row reaches become equal runs, over all ranks.
        alone = np.flatnonzero(out < 0)
        n_parts_here = int(owner.max(initial=0)) + 1
        counts = self.ranks.allgather((alone.size, n_parts_here))
        n_alone = sum(n for n, _ in counts)
        n_parts = max(parts for _, parts in counts)
        first = sum(n for n, _ in counts[: self.ranks.rank])
        equal = np.full(n_parts, 1 / n_parts)
        out[alone] = runs(n_alone, equal, range(first, first + alone.size))
        return out

    def of_part(self, owner: Int32s, begin: int, name: str) -> Int32s:
        """The owners of a set that stands in a union from ``begin`` on."""
        own = self._homes(name).own
        unions = self.subject.unions
        union = next(union for union, parts in unions.items() if name in parts)
        return self._homes(union).fetch(owner, np.arange(own.start, own.stop), begin)

    def of_union(self, owners: Sequence[Int32s], name: str) -> Int32s:
        """The owners of a union by those of its parts."""
        home = self._homes(name).own
        begin = 0
        pieces = []
        for part, owner in zip(self.subject.unions[name], owners, strict=True):
            end = begin + self.subject.sizes[part]
            # the elements of this part that are at home here
            first = min(max(home.start, begin), end)
            last = min(max(home.stop, begin), end)
            elements = np.arange(first, last) - begin
            pieces.append(self._homes(part).fetch(owner, elements))
            begin = end
        return np.concatenate(pieces)


def _elected(votes: Int64s, parts: int, own: range) -> Int32s:
    """The part with the most votes, of equals the lowest; -1 where there are none.

    ``votes`` has rows of ``element * parts + part`` and a number of votes.
    """
    # Add up the votes of all ranks and blocks.
    keys, which = np.unique(votes[:, 0], return_inverse=True)
    count = np.zeros(keys.size, np.int64)
    np.add.at(count, which.reshape(-1), votes[:, 1])
    # Sort by element, falling votes and part: the first of each element is elected.
    element, part = np.divmod(keys, parts)
    order = np.lexsort((part, -count, element))
    elements, first = np.unique(element[order], return_index=True)
    elected = part[order][first]
    out = np.full(len(own), -1, np.int32)
    out[elements - own.start] = elected
    return out


def most_in_rows(owner: Int32s, table: Int32s) -> Int32s:
    """The most frequent owner of each row's points, the first of equals."""
    owners = owner[table]
    # How often each entry of a row occurs in the row; argmax takes the first of equals.
    votes = [np.count_nonzero(owners == column[:, None], axis=1) for column in owners.T]
    best_column = np.argmax(votes, axis=0)
    return owners[np.arange(len(owners)), best_column]
