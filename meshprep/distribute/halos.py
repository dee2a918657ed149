"""Elements of each part: owned ones as core and boundary, and exec copies of foreign ones.

Everything is made of one pass over the tables and of what the passes find at borders.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import Bools, Int32s, Int64s, distinct, offsets_of, read_only

from ..kernels import kernel
from ..kernels.parallel import each, pieces
from .assign.inherit import Owners
from .subject import SplitSubject


@dataclass(frozen=True, eq=False)
class OwnedRuns:
    """The elements of one set, part after part, and in each part core before boundary."""

    elements: Int32s  # (n,): numbers of the input
    offset: Int64s  # (parts + 1,): part ``p`` owns ``elements[offset[p]:offset[p + 1]]``
    core: Int64s  # (parts,): core elements of each part, which come first

    def of(self, part: int) -> Int32s:
        return self.elements[self.offset[part] : self.offset[part + 1]]

    def of_parts(self, parts: range) -> tuple[Int64s, Int32s]:
        """Element count of each part, and the elements, concatenated."""
        return rows_of_parts(self.offset, self.elements, parts)

    @property
    def number(self) -> Int32s:
        """The place of every element in this order: its number in the split mesh."""
        place = np.empty_like(self.elements)
        place[self.elements] = np.arange(place.size, dtype=place.dtype)
        return place


@dataclass(frozen=True, eq=False)
class PartRows:
    """Elements for each part: part ``p`` has ``elements[offset[p]:offset[p + 1]]``, ascending."""

    offset: Int64s
    elements: NDArray[np.integer]

    def of_parts(self, parts: range) -> tuple[Int64s, NDArray[np.integer]]:
        """Element count of each part, and the elements, concatenated."""
        return rows_of_parts(self.offset, self.elements, parts)


def rows_of_parts(
    offset: Int64s, elements: NDArray[Any], parts: range
) -> tuple[Int64s, NDArray[Any]]:
    """Element count of each part, and the elements, concatenated."""
    ends = offset[parts.start : parts.stop + 1]
    return np.diff(ends), elements[ends[0] : ends[-1]]


def owned_runs(subject: SplitSubject, owners: Owners, parts: int) -> dict[str, OwnedRuns]:
    """Owned elements by part: core, then boundary, which maps take to other parts; input order."""
    boundary = {name: np.zeros(n, np.bool_) for name, n in subject.sizes.items()}
    for m in subject.maps.values():
        mark_foreign(m.table, owners[m.from_set], owners[m.to_set], boundary[m.from_set])
    runs = {}
    for name, owner in owners.items():
        elements, count = _sorted_by_class(owner, boundary[name], parts)
        offset = offsets_of(count.sum(axis=1))
        runs[name] = OwnedRuns(elements, offset, count[:, 0])
    return runs


def executed_copies(
    subject: SplitSubject, owners: Owners, written: Mapping[str, Sequence[int]], parts: int
) -> dict[str, PartRows]:
    """Foreign elements that write by ``written`` columns (not sent back) what a part owns."""
    pairs: dict[str, list[Int64s]] = {name: [] for name in subject.sizes}
    for name, columns in written.items():
        m = subject.maps[name]
        every = len(columns) == m.arity
        table = m.table if every else np.ascontiguousarray(m.table[:, list(columns)])
        part, element = _foreign_pairs(table, owners[m.from_set], owners[m.to_set])
        pairs[m.from_set].append(part * np.int64(subject.sizes[m.from_set]) + element)
    return {
        name: _part_rows(distinct(np.concatenate([*keys, _NOTHING])), subject.sizes[name], parts)
        for name, keys in pairs.items()
    }


def _part_rows(keys: Int64s, size: int, parts: int) -> PartRows:
    part, element = np.divmod(keys, max(size, 1))
    return PartRows(offsets(part, parts), element.astype(np.int32))


def offsets(part: NDArray[np.integer], parts: int) -> Int64s:
    """First entry of each part, and the end, for entries sorted by part."""
    return np.searchsorted(part, np.arange(parts + 1)).astype(np.int64)


_NOTHING = np.empty(0, np.int64)


@kernel
def mark_foreign(table: Int32s, owner: Int32s, owner_of_point: Int32s, boundary: Bools) -> None:
    """Mark the elements that reach a point of another part."""
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            if owner_of_point[table[i, j]] != owner[i]:
                boundary[i] = True


@kernel
def _sorted_by_class(owner: Int32s, boundary: Bools, parts: int) -> tuple[Int32s, Int64s]:
    """Elements by part, core first, then boundary; and how many there are of each."""
    count = np.zeros((parts, 2), np.int64)
    for i in range(owner.size):
        count[owner[i], int(boundary[i])] += 1
    fill, total = np.empty((parts, 2), np.int64), 0
    for p in range(parts):
        for c in range(2):
            fill[p, c] = total
            total += count[p, c]
    elements = np.empty(owner.size, np.int32)
    for i in range(owner.size):
        c = int(boundary[i])
        elements[fill[owner[i], c]] = i
        fill[owner[i], c] += 1
    return elements, count


def _foreign_pairs(table: Int32s, owner: Int32s, owner_of_point: Int32s) -> tuple[Int64s, Int64s]:
    """Pairs (owner of a point, element of another part that reaches it), with repeats."""

    def pairs_of_rows(begin: int, end: int) -> tuple[Int64s, Int64s]:
        arrays = read_only(table[begin:end]), read_only(owner[begin:end]), owner_of_point
        nothing = np.empty(0, np.int64)
        count = _fill_foreign(*arrays, nothing, nothing)
        part, element = np.empty(count, np.int64), np.empty(count, np.int64)
        _fill_foreign(*arrays, part, element)
        return part, element + begin

    part, element = zip(*each(pairs_of_rows, pieces(len(table))), strict=True)
    return np.concatenate(part), np.concatenate(element)


@kernel
def _fill_foreign(
    table: Int32s, owner: Int32s, owner_of_point: Int32s, part: Int64s, element: Int64s
) -> int:
    """Fill in the foreign pairs of these rows; only count them if ``part`` is empty."""
    count = 0
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            p = owner_of_point[table[i, j]]
            if p != owner[i]:
                if part.size > 0:
                    part[count], element[count] = p, i
                count += 1
    return count


@dataclass(frozen=True, eq=False)
class SplitNumbers:
    """Numbers in the split mesh of this rank's elements, and the parts that it makes."""

    # By set name: of every element here, in the split mesh.
    number: Mapping[str, NDArray[np.integer]]
    # By set name: part ``p`` owns the numbers from ``offset[p]`` to below ``offset[p + 1]``.
    offset: Mapping[str, Int64s]
    # The parts that this rank makes. Owners, runs and rows call them 0, 1, and so on.
    held: range

    @property
    def parts(self) -> int:
        return next(iter(self.offset.values())).size - 1

    @property
    def sizes(self) -> dict[str, int]:
        return {name: int(offset[-1]) for name, offset in self.offset.items()}


def numbers_here(runs: Mapping[str, OwnedRuns]) -> SplitNumbers:
    """The numbers of a mesh that is here as a whole."""
    parts = next(iter(runs.values())).offset.size - 1
    number = {name: run.number for name, run in runs.items()}
    return SplitNumbers(number, {name: run.offset for name, run in runs.items()}, range(parts))
