"""Owners of all sets, each found where its elements are at home."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.maps import SetMap, read_only

from ..inherit import Owners, inherit, most_in_rows
from ..ranks import Ranks, exchanged
from ..runs import runs
from ..subject import SplitSubject
from .cuts import leading_owners
from .homes import Homes, blocks, by_rows, joined


def slice_owners(
    subject: SplitSubject, weights: NDArray[np.float64], cut: str, ranks: Ranks
) -> Owners:
    """The part of every element that is at home here, of every set.

    Tables and centroids of ``subject`` are those of the elements at home here; ``weights`` are
    shares that add up to 1, and ``cut`` a name in :data:`.cuts.CUTS`. Raises MeshprepError without
    coordinates, and with infinite ones; on every rank. O(n / ranks log n), beside the cut.
    """
    leading = leading_owners(subject, weights, cut, ranks)
    return inherit(subject, leading, weights, _Sliced(subject, weights.size, ranks))


@dataclass(frozen=True, eq=False)
class _Sliced:
    """How owners pass from set to set where ranks hold slices; see :class:`..inherit.Heirs`."""

    subject: SplitSubject
    parts: int
    ranks: Ranks

    def _homes(self, name: str) -> Homes:
        return Homes(self.subject.sizes[name], self.ranks)

    def runs(self, name: str, weights: NDArray[np.float64]) -> NDArray[np.int32]:
        return runs(self.subject.sizes[name], weights, self._homes(name).own)

    def of_rows(self, m: SetMap, owner: NDArray[np.int32]) -> NDArray[np.int32]:
        def most(found: NDArray[np.int32], rows: NDArray[np.int32]) -> NDArray[np.int32]:
            return most_in_rows(read_only(rows), read_only(found))

        out = np.empty(m.size, np.int32)
        return by_rows(self._homes(m.to_set), m.table, owner, most, out)

    def of_points(self, m: SetMap, owner: NDArray[np.int32]) -> NDArray[np.int32]:
        homes, found = self._homes(m.to_set), []
        for rows in blocks(self.ranks, m.size):
            keys = m.table[rows].astype(np.int64) * self.parts + owner[rows, None]
            votes = np.stack(np.unique(keys, return_counts=True), axis=1)
            found += exchanged(self.ranks, homes.pieces(votes[:, 0] // self.parts, votes))
        out = _elected(joined(found), self.parts, homes.own)
        alone = np.flatnonzero(out < 0)
        every = self.ranks.allgather((alone.size, int(owner.max(initial=0)) + 1))
        count, n_parts = sum(n for n, _ in every), max(p for _, p in every)
        first = sum(n for n, _ in every[: self.ranks.rank])
        equal = np.full(n_parts, 1 / n_parts)
        out[alone] = runs(count, equal, range(first, first + alone.size))
        return out

    def of_part(self, owner: NDArray[np.int32], begin: int, name: str) -> NDArray[np.int32]:
        own, unions = self._homes(name).own, self.subject.unions
        union = next(union for union, parts in unions.items() if name in parts)
        return self._homes(union).fetch(owner, np.arange(own.start, own.stop), begin)

    def of_union(self, owners: Sequence[NDArray[np.int32]], name: str) -> NDArray[np.int32]:
        own, begin, found = self._homes(name).own, 0, []
        for part, owner in zip(self.subject.unions[name], owners, strict=True):
            end = begin + self.subject.sizes[part]
            low, high = (min(max(at, begin), end) for at in (own.start, own.stop))
            found.append(self._homes(part).fetch(owner, np.arange(low, high) - begin))
            begin = end
        return np.concatenate(found)


def _elected(votes: NDArray[np.int64], parts: int, own: range) -> NDArray[np.int32]:
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
