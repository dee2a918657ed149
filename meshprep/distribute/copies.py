"""Exec and halo copies of each part, and the messages that fill them [R14 7.1.1]."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import Int32s, Int64s, distinct, distinct_without, ranges

from .halos import OwnedRuns, PartRows, SplitNumbers, offsets
from .ranks import ALONE, Ranks, exchanged, holder
from .subject import SplitSubject

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
    few = _exchanged_partly(subject, copies, halo, {m: n for m, (_, n) in reached.items()}, ranks)
    partial = {
        m: _copies_of_keys(reached[m][0], numbers, subject.maps[m].to_set, ranks) for m in few
    }
    return AllCopies(elements, copies, halo, partial)


def _by_number(rows: PartRows, numbers: SplitNumbers, name: str) -> tuple[PartRows, Int64s]:
    """Elements of each part by number in the split mesh, and keys (part of this rank, number)."""
    count, elements = rows.of_parts(range(len(numbers.held)))
    keys = np.repeat(np.arange(count.size), count) * max(1, numbers.sizes[name])
    keys += numbers.number[name][elements]
    order = np.argsort(keys)
    return PartRows(rows.offset, elements[order]), keys[order]


def _exchanged_partly(
    subject: SplitSubject,
    copies: Mapping[str, Copies],
    halo: Mapping[str, Copies],
    entries: Mapping[str, int],
    ranks: Ranks,
) -> list[str]:
    """Maps that reach few of the copies of their to-set, counted over all ranks."""
    held = {
        name: copies[name].rows.elements.size + halo[name].rows.elements.size for name in copies
    }
    every = ranks.allgather((entries, held))
    return [
        name
        for name, m in subject.maps.items()
        if sum(n[name] for n, _ in every) < PARTIAL * sum(h[m.to_set] for _, h in every)
    ]


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
