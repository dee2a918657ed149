"""Owned elements and ghosts of each part, and who sends and receives them.

Owned elements are core or boundary: boundary elements reach points of other parts. Ghosts
are copies of elements of other parts, in two runs: a part executes those of the exec run,
and only reads those of the halo run. One pass over the tables finds the entries at borders;
the rest works on these.
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

from ...kernels.arrays import sort_by
from ..owners.inherit import Owners
from ..ranks import ALONE, Ranks, exchanged, holder
from ..subject import SplitSubject


@dataclass(frozen=True, eq=False)
class PartRows:
    """Elements for each part, ascending.

    Part ``p`` has ``elements[offset[p]:offset[p + 1]]``.
    """

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
    """Owned elements of each part, core before boundary, each in the order of the input."""
    # Boundary elements reach a point of another part by any map.
    boundary = {name: np.zeros(n, np.bool_) for name, n in subject.sizes.items()}
    for m in subject.maps.values():
        mark_boundary(
            table=m.table,
            owner=owners[m.from_set],
            owner_of_point=owners[m.to_set],
            boundary=boundary[m.from_set],
        )
    # Sort by part, and in each part core before boundary: two keys a part.
    runs = {}
    for name, owner in owners.items():
        offset, elements = sort_by(2 * owner + boundary[name], 2 * parts)
        n_core = np.diff(offset)[::2]
        runs[name] = OwnedRuns(offset[::2], elements, n_core)
    return runs


def executed_ghosts(
    subject: SplitSubject,
    owners: Owners,
    written: Mapping[str, Sequence[int]],
    parts: int,
) -> dict[str, PartRows]:
    """Exec ghosts: elements of other parts that write to what a part owns.

    ``written`` has the columns of maps through which loops write what is not sent back.
    """
    # Pairs of a part and an element that writes to its points, as keys: part * n + element.
    keys_of_set: dict[str, list[Int64s]] = {name: [] for name in subject.sizes}
    for name, columns in written.items():
        m = subject.maps[name]
        table = m.table
        if len(columns) < m.arity:
            table = np.ascontiguousarray(m.table[:, list(columns)])
        part, element = _ghost_pairs(table, owners[m.from_set], owners[m.to_set])
        n = np.int64(subject.sizes[m.from_set])
        keys_of_set[m.from_set].append(part * n + element)

    # Each pair once, by part and then by element.
    ghosts = {}
    for name, keys in keys_of_set.items():
        distinct_keys = distinct(np.concatenate([*keys, np.empty(0, np.int64)]))
        part, element = np.divmod(distinct_keys, max(subject.sizes[name], 1))
        ghosts[name] = PartRows(offsets(part, parts), element.astype(np.int32))
    return ghosts


def offsets(part: NDArray[np.integer], parts: int) -> Int64s:
    """The first entry of each part, and the end; entries are sorted by part."""
    return np.searchsorted(part, np.arange(parts + 1)).astype(np.int64)


def mark_boundary(
    table: Int32s,
    owner: Int32s,
    owner_of_point: Int32s,
    boundary: Bools,
) -> None:
    """Mark the elements that reach a point of another part."""
    for column in table.T:
        boundary |= owner_of_point[column] != owner


def _ghost_pairs(
    table: Int32s, owner: Int32s, owner_of_point: Int32s
) -> tuple[Int64s, Int64s]:
    """Pairs of a part and a foreign element that reaches its points, with repeats."""
    parts = [np.empty(0, np.int64)]
    elements = [np.empty(0, np.int64)]
    for column in table.T:
        part = owner_of_point[column]
        element = np.flatnonzero(part != owner)
        parts.append(part[element].astype(np.int64))
        elements.append(element)
    return np.concatenate(parts), np.concatenate(elements)


@dataclass(frozen=True, eq=False)
class SplitNumbers:
    """Numbers in the split mesh of this rank's elements, and the parts that it makes."""

    # By set name: the number in the split mesh of every element here.
    number: Mapping[str, NDArray[np.integer]]
    # By set name: part ``p`` owns the numbers of ``range(offset[p], offset[p + 1])``.
    offset: Mapping[str, Int64s]
    # The parts that this rank makes. Owners, runs and rows count them from 0.
    parts_of_rank: range

    @property
    def parts(self) -> int:
        return next(iter(self.offset.values())).size - 1

    @property
    def sizes(self) -> dict[str, int]:
        return {name: int(offset[-1]) for name, offset in self.offset.items()}


def numbers_here(runs: Mapping[str, OwnedRuns]) -> SplitNumbers:
    """The numbers of a mesh that is here as a whole."""
    parts = next(iter(runs.values())).offset.size - 1
    return SplitNumbers(
        number={name: run.number for name, run in runs.items()},
        offset={name: run.offset for name, run in runs.items()},
        parts_of_rank=range(parts),
    )


# A map has an exchange of its own, of what it reaches alone, where its rows have fewer
# entries of other parts than this share of the ghosts in its to-set.
PARTIAL = 0.3


@dataclass(frozen=True, eq=False)
class Ghosts:
    """Ghosts and messages of this rank's parts, in numbers of the split mesh."""

    # The ghosts of each part; ascending, and so by owner.
    rows: PartRows
    sent: PartRows  # what each part sends: elements by receiver, ascending
    receiver: Int32s  # (n_sent,): of each entry of ``sent``
    offset: Int64s  # (parts + 1,): the owned range of each part, here and elsewhere
    parts_of_rank: range  # the parts of this rank

    def sent_by(self, places: range) -> "MessageRows":
        """Messages that parts send; ``places`` index the parts of this rank."""
        count, elements = self.sent.of_parts(places)
        begin, end = self.sent.offset[[places.start, places.stop]]
        # Rows count from the first number that the part owns.
        first_part = self.parts_of_rank.start
        first = self.offset[first_part + places.start : first_part + places.stop]
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
class AllGhosts:
    """The ghosts of every set, by run, and those of maps with exchanges of their own."""

    # By set name: the exec ghosts in local numbers, in the order of their numbers in the
    # split mesh.
    elements: Mapping[str, PartRows]
    executed: Mapping[str, Ghosts]  # by set name: the exec run
    halo: Mapping[str, Ghosts]  # by set name: the halo run
    partial: Mapping[str, Ghosts]  # by map name


def all_ghosts(
    subject: SplitSubject,
    runs: Mapping[str, OwnedRuns],
    executed: Mapping[str, PartRows],
    numbers: SplitNumbers,
    ranks: Ranks = ALONE,
) -> AllGhosts:
    """Exec and halo ghosts of every set. O(b log b) for ``b`` map entries at borders.

    ``runs`` are in the final order, ``executed`` has the exec ghosts in local numbers, and
    ``ranks`` make the other parts.
    """
    reached = {
        name: _ghost_keys(
            subject=subject,
            runs=runs,
            executed=executed,
            numbers=numbers,
            name=name,
        )
        for name in subject.maps
    }
    # Put into the exec run what a part executes, and into the halo run what its rows reach
    # beside that.
    elements = {}
    exec_ghosts = {}
    halo_ghosts = {}
    for name in runs:
        elements[name], exec_keys = _by_number(executed[name], numbers, name)
        exec_ghosts[name] = _ghosts_of_keys(
            keys=exec_keys,
            numbers=numbers,
            name=name,
            ranks=ranks,
        )
        keys_of_maps = [
            reached[m.name][0] for m in subject.maps.values() if m.to_set == name
        ]
        reached_keys = np.concatenate([exec_keys[:0], *keys_of_maps])
        halo_ghosts[name] = _ghosts_of_keys(
            keys=distinct_without(reached_keys, exec_keys),
            numbers=numbers,
            name=name,
            ranks=ranks,
        )
    # Choose the maps with exchanges of their own, by counts over all ranks.
    n_entries = {name: entries for name, (_, entries) in reached.items()}
    n_ghosts = {
        name: exec_ghosts[name].rows.elements.size + halo_ghosts[name].rows.elements.size
        for name in runs
    }
    counts = ranks.allgather((n_entries, n_ghosts))
    partial = {}
    for m in subject.maps.values():
        entries = sum(entries_of_map[m.name] for entries_of_map, _ in counts)
        ghosts = sum(ghosts_of_set[m.to_set] for _, ghosts_of_set in counts)
        if entries < PARTIAL * ghosts:
            partial[m.name] = _ghosts_of_keys(
                keys=reached[m.name][0],
                numbers=numbers,
                name=m.to_set,
                ranks=ranks,
            )
    return AllGhosts(
        elements=elements,
        executed=exec_ghosts,
        halo=halo_ghosts,
        partial=partial,
    )


def _by_number(rows: PartRows, numbers: SplitNumbers, name: str) -> tuple[PartRows, Int64s]:
    """Elements of each part in the order of the split mesh, and their keys, ascending.

    A key is made of a part of this rank, from 0, and a number in the split mesh.
    """
    count, elements = rows.of_parts(range(len(numbers.parts_of_rank)))
    part = np.repeat(np.arange(count.size), count)
    keys = part * max(1, numbers.sizes[name]) + numbers.number[name][elements]
    order = np.argsort(keys)
    return PartRows(rows.offset, elements[order]), keys[order]


def _ghost_keys(
    subject: SplitSubject,
    runs: Mapping[str, OwnedRuns],
    executed: Mapping[str, PartRows],
    numbers: SplitNumbers,
    name: str,
) -> tuple[Int64s, int]:
    """Keys of the ghosts that the rows of each part reach, and how many entries reach one.

    Rows of owned boundary elements and of exec ghosts: others reach owned points alone.
    """
    m = subject.maps[name]
    parts_here = np.arange(len(numbers.parts_of_rank))
    rows = runs[m.from_set]
    number = numbers.number[m.to_set]
    n_points = max(1, numbers.sizes[m.to_set])
    # The points that each part owns: numbers ``first`` to ``end - 1``.
    part_of_split = numbers.parts_of_rank.start + parts_here
    first = numbers.offset[m.to_set][part_of_split]
    end = numbers.offset[m.to_set][part_of_split + 1]
    # The boundary elements of each part, which stand behind the core.
    core = rows.core[parts_here]
    n_boundary = np.diff(rows.offset)[parts_here] - core
    boundary = rows.elements[ranges(rows.offset[parts_here] + core, n_boundary)]
    n_executed, exec_elements = executed[m.from_set].of_parts(range(parts_here.size))
    # Pairs of a part and a point that it reaches but does not own, as keys.
    keys = [np.empty(0, np.int64)]
    for count, elements in ((n_boundary, boundary), (n_executed, exec_elements)):
        part = np.repeat(parts_here, count)
        points = number[m.table[elements]]
        below = points < first[part][:, None]
        above = points >= end[part][:, None]
        row, column = np.nonzero(below | above)
        keys.append(part[row] * n_points + points[row, column])
    ghost_keys = np.concatenate(keys)
    return distinct(ghost_keys), ghost_keys.size


def _ghosts_of_keys(
    keys: Int64s,
    numbers: SplitNumbers,
    name: str,
    ranks: Ranks,
) -> Ghosts:
    """Ghosts of this rank's parts by ascending keys, and what the parts send to others."""
    # The ghosts of each part; keys are part * n + number.
    parts_of_rank = numbers.parts_of_rank
    offset = numbers.offset[name]
    place, elements = np.divmod(keys, max(1, numbers.sizes[name]))
    rows = PartRows(offsets(place, len(parts_of_rank)), elements)
    # Ask the ranks that hold the owners: rows of receiving part, element and owner.
    owner = _owner_of(rows.elements, offset)
    wishes = np.stack([place + parts_of_rank.start, rows.elements, owner], axis=1)
    to = holder(ranks, owner, numbers.parts)
    wishes_for_ranks = [wishes[to == rank] for rank in range(ranks.size)]
    requests = np.concatenate(exchanged(ranks, wishes_for_ranks))
    # A part sends to its receivers in their order, which ranks and keys have already.
    by_sender = np.argsort(requests[:, 2], kind="stable")
    receiver, elements, sender = requests[by_sender].T
    sender_here = sender - parts_of_rank.start
    sent = PartRows(offsets(sender_here, len(parts_of_rank)), elements)
    return Ghosts(
        rows=rows,
        sent=sent,
        receiver=receiver.astype(np.int32),
        offset=offset,
        parts_of_rank=parts_of_rank,
    )


def _owner_of(elements: NDArray[np.integer], offset: Int64s) -> Int32s:
    """The parts that own elements, which are numbers of the split mesh."""
    next_part = np.searchsorted(offset, elements, side="right")
    return (next_part - 1).astype(np.int32)
