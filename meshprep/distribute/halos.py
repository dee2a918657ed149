"""Elements of each part: owned ones as core and boundary, and exec copies of foreign ones.

Everything is made of one pass over the tables and of what the passes find at borders.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import (
    Bools,
    Int32s,
    Int64s,
    distinct,
    distinct_without,
    ranges,
)

from ..kernels.arrays import sort_by
from .assign.inherit import Owners
from .ranks import ALONE, Ranks, exchanged, holder
from .subject import SplitSubject


@dataclass(frozen=True, eq=False)
class PartRows:
    """Elements for each part: part ``p`` has ``elements[offset[p]:offset[p + 1]]``, ascending."""

    offset: Int64s  # (parts + 1,)
    elements: NDArray[np.integer]

    def of_parts(self, parts: range) -> tuple[Int64s, NDArray[Any]]:
        """Element count of each part, and the elements, concatenated."""
        ends = self.offset[parts.start : parts.stop + 1]
        return np.diff(ends), self.elements[ends[0] : ends[-1]]


@dataclass(frozen=True, eq=False)
class OwnedRuns(PartRows):
    """The elements of one set, part after part, and in each part core before boundary."""

    elements: Int32s  # (n,): numbers of the input
    core: Int64s  # (parts,): core elements of each part, which come first

    def of(self, part: int) -> Int32s:
        return self.elements[self.offset[part] : self.offset[part + 1]]

    @property
    def number(self) -> Int32s:
        """The place of every element in this order: its number in the split mesh."""
        place = np.empty_like(self.elements)
        place[self.elements] = np.arange(place.size, dtype=place.dtype)
        return place


def owned_runs(subject: SplitSubject, owners: Owners, parts: int) -> dict[str, OwnedRuns]:
    """Owned elements by part: core, then boundary, which maps take to other parts; input order."""
    boundary = {name: np.zeros(n, np.bool_) for name, n in subject.sizes.items()}
    for m in subject.maps.values():
        mark_foreign(m.table, owners[m.from_set], owners[m.to_set], boundary[m.from_set])
    runs = {}
    for name, owner in owners.items():
        offset, elements = sort_by(2 * owner + boundary[name], 2 * parts)
        runs[name] = OwnedRuns(offset[::2], elements, np.diff(offset)[::2])
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
    found = {}
    for name, keys in pairs.items():
        own = distinct(np.concatenate([*keys, np.empty(0, np.int64)]))
        part, element = np.divmod(own, max(subject.sizes[name], 1))
        found[name] = PartRows(offsets(part, parts), element.astype(np.int32))
    return found


def offsets(part: NDArray[np.integer], parts: int) -> Int64s:
    """First entry of each part, and the end, for entries sorted by part."""
    return np.searchsorted(part, np.arange(parts + 1)).astype(np.int64)


def mark_foreign(table: Int32s, owner: Int32s, owner_of_point: Int32s, boundary: Bools) -> None:
    """Mark the elements that reach a point of another part."""
    for column in table.T:
        boundary |= owner_of_point[column] != owner


def _foreign_pairs(table: Int32s, owner: Int32s, owner_of_point: Int32s) -> tuple[Int64s, Int64s]:
    """Pairs (owner of a point, element of another part that reaches it), with repeats."""
    parts, elements = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for column in table.T:
        part = owner_of_point[column]
        element = np.flatnonzero(part != owner)
        parts.append(part[element].astype(np.int64))
        elements.append(element)
    return np.concatenate(parts), np.concatenate(elements)


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


# A map whose rows point outside less often than this share of the copies in its to-set exchanges
# only what it reaches.
PARTIAL = 0.3


@dataclass(frozen=True, eq=False)
class Copies:
    """What this rank's parts copy and send, in numbers of the split mesh."""

    rows: PartRows  # the copies of each part, ascending, so that those of one owner stand together
    sent: PartRows  # what each part sends: elements by receiver, ascending
    receiver: Int32s  # (n_sent,): of each entry of ``sent``
    offset: Int64s  # (parts + 1,): the owned range of each part, here and elsewhere
    held: range  # the parts of this rank

    def sent_by(self, places: range) -> "MessageRows":
        """Messages that parts send; ``places`` index the parts of this rank."""
        count, elements = self.sent.of_parts(places)
        begin, end = self.sent.offset[[places.start, places.stop]]
        first = self.offset[self.held.start + places.start : self.held.start + places.stop]
        rows = elements - np.repeat(first, count)
        return MessageRows(count, self.receiver[begin:end], rows.astype(np.int32))

    def received_by(self, places: range) -> "MessageRows":
        """Messages that parts receive, in numbers of the split mesh."""
        count, rows = self.rows.of_parts(places)
        return MessageRows(count, _owner_of(rows, self.offset), rows)


@dataclass(frozen=True, eq=False)
class MessageRows:
    """Rows of messages, part after part, in the order of the parts at the other ends."""

    count: Int64s  # (k,): rows of each part
    other: Int32s  # of each row: the part at the other end
    rows: NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class AllCopies:
    """The copies of every set in the exec and the halo run, and of maps with partial exchanges.

    ``elements`` are the exec elements as they are called here, in the order of their numbers.
    """

    elements: Mapping[str, PartRows]
    executed: Mapping[str, Copies]
    halo: Mapping[str, Copies]
    partial: Mapping[str, Copies]


def all_copies(
    subject: SplitSubject,
    runs: Mapping[str, OwnedRuns],
    executed: Mapping[str, PartRows],
    numbers: SplitNumbers,
    ranks: Ranks = ALONE,
) -> AllCopies:
    """Exec and halo copies of every set. O(b log b) for ``b`` map entries at borders.

    ``runs`` are in the final order, ``executed`` has the exec elements as they are called here, and
    ``ranks`` make the other parts.
    """
    reached = {name: _foreign_keys(subject, runs, executed, numbers, name) for name in subject.maps}
    elements, copies, halo = {}, {}, {}
    for name in runs:
        elements[name], own = _by_number(executed[name], numbers, name)
        copies[name] = _copies_of_keys(own, numbers, name, ranks)
        into = [reached[m.name][0] for m in subject.maps.values() if m.to_set == name]
        beyond = distinct_without(np.concatenate([own[:0], *into]), own)
        halo[name] = _copies_of_keys(beyond, numbers, name, ranks)
    held = {n: copies[n].rows.elements.size + halo[n].rows.elements.size for n in copies}
    every, partial = ranks.allgather(({m: n for m, (_, n) in reached.items()}, held)), {}
    for m in subject.maps.values():
        entries = sum(n[m.name] for n, _ in every)
        if entries < PARTIAL * sum(copied[m.to_set] for _, copied in every):
            partial[m.name] = _copies_of_keys(reached[m.name][0], numbers, m.to_set, ranks)
    return AllCopies(elements, copies, halo, partial)


def _by_number(rows: PartRows, numbers: SplitNumbers, name: str) -> tuple[PartRows, Int64s]:
    """Elements of each part by number in the split mesh, and keys (part of this rank, number)."""
    count, elements = rows.of_parts(range(len(numbers.held)))
    keys = np.repeat(np.arange(count.size), count) * max(1, numbers.sizes[name])
    keys += numbers.number[name][elements]
    order = np.argsort(keys)
    return PartRows(rows.offset, elements[order]), keys[order]


def _foreign_keys(
    subject: SplitSubject,
    runs: Mapping[str, OwnedRuns],
    executed: Mapping[str, PartRows],
    numbers: SplitNumbers,
    name: str,
) -> tuple[Int64s, int]:
    """Keys of the distinct foreign points that each part reaches, and how many entries do."""
    m, own = subject.maps[name], np.arange(len(numbers.held))
    rows, number = runs[m.from_set], numbers.number[m.to_set]
    low, high = (numbers.offset[m.to_set][numbers.held.start + own + i] for i in (0, 1))
    core, count = rows.core[own], np.diff(rows.offset)[own]
    border = rows.elements[ranges(rows.offset[own] + core, count - core)]
    keys = [np.empty(0, np.int64)]
    for n, some in ((count - core, border), executed[m.from_set].of_parts(range(own.size))):
        part, at = np.repeat(own, n), number[m.table[some]]
        row, column = np.nonzero((at < low[part][:, None]) | (at >= high[part][:, None]))
        keys.append(part[row] * max(1, numbers.sizes[m.to_set]) + at[row, column])
    foreign = np.concatenate(keys)
    return distinct(foreign), foreign.size


def _copies_of_keys(keys: Int64s, numbers: SplitNumbers, name: str, ranks: Ranks) -> Copies:
    """Copies of this rank's parts from ascending keys, and what all parts copy of them."""
    held, offset = numbers.held, numbers.offset[name]
    place, elements = np.divmod(keys, max(1, numbers.sizes[name]))
    rows = PartRows(offsets(place, len(held)), elements)
    wish = np.stack([place + held.start, rows.elements, _owner_of(rows.elements, offset)], axis=1)
    to = holder(ranks, wish[:, 2], numbers.parts)
    wishes = np.concatenate(exchanged(ranks, [wish[to == rank] for rank in range(ranks.size)]))
    receiver, elements, owner = wishes[np.argsort(wishes[:, 2], kind="stable")].T
    sent = PartRows(offsets(owner - held.start, len(held)), elements)
    return Copies(rows, sent, receiver.astype(np.int32), offset, held)


def _owner_of(elements: NDArray[np.integer], offset: Int64s) -> Int32s:
    return (np.searchsorted(offset, elements, side="right") - 1).astype(np.int32)
