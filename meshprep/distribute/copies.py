"""Which foreign elements each part copies, and the messages that fill the copies [R14 7.1.1]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.plan.parts import Messages

from .halos import OwnedRuns, PartRows, offsets
from .subject import SplitSubject

# A map whose rows point outside less often than this share of the copies in its to-set exchanges
# only what it reaches.
PARTIAL = 0.3


@dataclass(frozen=True, eq=False)
class Copies:
    """Numbers (of the split mesh) of the elements that parts copy, and who sends them.

    Parameters
    ----------
    rows : PartRows
        The copies of each part, ascending, so that those of one owner stand together.
    sent : PartRows
        What each part sends: elements by receiver, ascending.
    receiver : (n_sent,) int32
        Of each entry of ``sent``.
    offset : (parts + 1,) int64
        The owned range of each part.
    """

    rows: PartRows
    sent: PartRows
    receiver: NDArray[np.int32]
    offset: NDArray[np.int64]

    def send(self, part: int) -> Messages:
        """What a part sends, as local numbers."""
        low, high = self.sent.offset[part : part + 2]
        rows = self.sent.of(part) - self.offset[part].astype(np.int32)
        return _messages(self.receiver[low:high], rows)

    def receive(self, part: int, rows: NDArray[np.int32]) -> Messages:
        """Where a part stores its copies, of which ``rows`` are the local numbers."""
        return _messages(self._owner(self.rows.of(part)), rows)

    def _owner(self, elements: NDArray[np.int32]) -> NDArray[np.int32]:
        return _owner_of(elements, self.offset)


@dataclass(frozen=True, eq=False)
class AllCopies:
    """The copies of every set in the exec and the halo run, and of maps with partial exchanges."""

    executed: Mapping[str, Copies]
    halo: Mapping[str, Copies]
    partial: Mapping[str, Copies]


def all_copies(
    subject: SplitSubject, runs: Mapping[str, OwnedRuns], executed: Mapping[str, PartRows]
) -> AllCopies:
    """Find every copy. O(b log b) for ``b`` map entries of boundary and exec elements.

    Parameters
    ----------
    runs : mapping of set name to OwnedRuns
        In the final order.
    executed : mapping of set name to PartRows
        Exec elements by the numbers of the input.
    """
    number = {name: run.number for name, run in runs.items()}
    reached = {name: _reached(subject, runs, executed, number, name) for name in subject.maps}
    copies, halo = {}, {}
    for name, run in runs.items():
        rows = executed[name]
        parts = rows.offset.size - 1
        own = [np.sort(number[name][rows.of(p)]) for p in range(parts)]
        copies[name] = _copies(own, run.offset)
        into = [reached[m.name][0] for m in subject.maps.values() if m.to_set == name]
        halo[name] = _copies(
            [_beyond([one[p] for one in into], own[p]) for p in range(parts)], run.offset
        )
    partial = {}
    for m in subject.maps.values():
        found, entries = reached[m.name]
        most = copies[m.to_set].rows.elements.size + halo[m.to_set].rows.elements.size
        if entries < PARTIAL * most:
            partial[m.name] = _copies(found, runs[m.to_set].offset)
    return AllCopies(copies, halo, partial)


def _reached(
    subject: SplitSubject,
    runs: Mapping[str, OwnedRuns],
    executed: Mapping[str, PartRows],
    number: Mapping[str, NDArray[np.int32]],
    name: str,
) -> tuple[list[NDArray[np.int32]], int]:
    """The foreign points that each part's rows of a map reach; how many entries lead there."""
    m, found, entries = subject.maps[name], [], 0
    rows, points = runs[m.from_set], runs[m.to_set]
    for part in range(rows.offset.size - 1):
        border = rows.of(part)[rows.core[part] :]
        border = np.concatenate([border, executed[m.from_set].of(part)])
        at = number[m.to_set][m.table[border]].reshape(-1)
        at = at[(at < points.offset[part]) | (at >= points.offset[part + 1])]
        entries += at.size
        found.append(np.unique(at))
    return found, entries


def _beyond(found: Sequence[NDArray[np.int32]], own: NDArray[np.int32]) -> NDArray[np.int32]:
    """The points of several lists that another list does not have, ascending."""
    if not found:
        return np.empty(0, np.int32)
    return np.setdiff1d(np.concatenate(found), own)


def _copies(found: Sequence[NDArray[np.int32]], offset: NDArray[np.int64]) -> Copies:
    parts = len(found)
    part = np.repeat(np.arange(parts, dtype=np.int32), [one.size for one in found])
    elements = np.concatenate(found).astype(np.int32)
    owner = _owner_of(elements, offset)
    order = np.argsort(owner, kind="stable")
    sent = PartRows(offsets(owner[order], parts), elements[order])
    return Copies(PartRows(offsets(part, parts), elements), sent, part[order], offset)


def _owner_of(elements: NDArray[np.int32], offset: NDArray[np.int64]) -> NDArray[np.int32]:
    return (np.searchsorted(offset, elements, side="right") - 1).astype(np.int32)


def _messages(part: NDArray[np.int32], rows: NDArray[np.int32]) -> Messages:
    """Messages of rows that are grouped by the part at the other end."""
    parts, first = np.unique(part, return_index=True)
    offset = np.append(first, part.size).astype(np.int64)
    return Messages(parts.astype(np.int32), offset, rows.astype(np.int32))
