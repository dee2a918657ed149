"""The proof of a mesh in parts, by gathers and counting; it shares nothing with what makes parts.

Parts are looked at one after another. What must fit between parts is kept in arrays as long as what
the parts own that are proved, in global numbers, and compared at the end.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...loops import Access
from ..proof import prove
from .model import LoopPart, Messages, PartPlan, SetPart

Numbers = NDArray[np.int64]


class PartsProof:
    """Takes every part in ascending order; ``findings`` and ``finish`` say what is wrong.

    Parts must have passed :func:`~.structure.check_part`, so that indices are safe. Where several
    processes prove a file, each takes all parts and proves its own: ``proved``, what others have of
    them, and its share of the original numbers.
    """

    def __init__(self, sizes: Mapping[str, int], parts: int, proved: range | None = None) -> None:
        self.findings: list[str] = []
        self._sizes, self._parts = dict(sizes), parts
        self._proved = range(parts) if proved is None else proved
        self._all = len(self._proved) == parts
        self._start = {name: np.zeros(parts + 1, np.int64) for name in sizes}
        self._share = {name: self._share_of(n) for name, n in sizes.items()}
        self.original = {name: np.full(len(r), -1, np.int64) for name, r in self._share.items()}
        self.maps: dict[str, NDArray[np.integer]] = {}
        self._rows: dict[str, list[NDArray[np.integer]]] = {}
        self._ends: dict[str, tuple[str, str]] = {}
        self._copied_rows: dict[str, list[tuple[Numbers, Numbers]]] = {}
        self._executed: dict[str, list[Numbers]] = {name: [] for name in sizes}
        self._written: dict[str, set[int]] = {}
        # of each map: elements that reach a copy, by which column, and the number of the point
        self._crossing: dict[str, list[tuple[Numbers, Numbers, Numbers]]] = {}
        self._sent: dict[str, list[_Stream]] = {}
        self._received: dict[str, list[_Stream]] = {}

    def _share_of(self, n: int) -> range:
        first, last = (n * p // self._parts for p in (self._proved.start, self._proved.stop))
        return range(first, last)

    def add(self, part: PartPlan, of_loops: Sequence[str] | None = None) -> None:
        """Prove what can be seen in one part, and keep what others must fit. O(its size).

        ``of_loops`` are its :func:`loop_findings`, where another thread has found them.
        """
        number = {name: self._set(name, one, part) for name, one in part.sets.items()}
        for m in part.maps.values():
            self._map(m.name, number, part)
        for name, partial in part.partial.items():
            to_set = part.maps[name].to_set
            self._messages(f"partial {name}", partial.send, partial.receive, part, number[to_set])
            if part.part in self._proved:
                self._reached(name, partial.receive, part)
        if part.part in self._proved:
            for text in loop_findings(part) if of_loops is None else of_loops:
                self._wrong(text)
            for one in part.loops.values():
                self._note_written(one)

    def finish(self) -> list[str]:
        """All findings, when every part was added; empty where all is right."""
        for name, n in self._sizes.items():
            if self._start[name][-1] != n:
                self._wrong(f"set '{name}': parts own {self._start[name][-1]} of {n} elements")
            elif (self.original[name] < 0).any():
                self._wrong(f"set '{name}': original numbers are no permutation")
        if not self.findings:
            for name, rows in self._rows.items():
                self.maps[name] = np.concatenate(rows)
                rows.clear()
                self._rows_agree(name)
                self._all_executed(name)
            for what in self._sent:
                self._sent_is_received(what)
        return self.findings

    def _wrong(self, text: str) -> None:
        self.findings.append(f"{self._parts} parts: {text}")

    def _set(self, name: str, one: SetPart, part: PartPlan) -> Numbers:
        """Check a set of a part; the global number of its local elements."""
        where, n, start = f"part {part.part}, set '{name}'", self._sizes[name], self._start[name]
        if one.owned_start != start[part.part]:
            self._wrong(f"{where}: owns from {one.owned_start}, must be {start[part.part]}")
        start[part.part + 1 :] = one.owned_start + one.owned
        number = np.concatenate([one.owned_start + np.arange(one.owned), one.copies])
        for kind in ("exec", "halo"):
            send, receive = getattr(one, f"send_{kind}"), getattr(one, f"receive_{kind}")
            self._messages(f"{kind} rows of '{name}'", send, receive, part, number)
        self._executed[name].append(one.copies[: one.exec][self._of_proved(one)])
        self._originals(name, one, where)
        if part.part in self._proved:
            self._copies(one, n, where)
        return number

    def _copies(self, one: SetPart, n: int, where: str) -> None:
        copies, end = one.copies, one.owned_start + one.owned
        if copies.size and (copies.min() < 0 or copies.max() >= n):
            self._wrong(f"{where}: a copy of an element outside 0..{n - 1}")
        if ((copies >= one.owned_start) & (copies < end)).any():
            self._wrong(f"{where}: copies an element that it owns")
        runs = copies[: one.exec], copies[one.exec :]
        if any((run[1:] <= run[:-1]).any() for run in runs) or _meet(*runs):
            self._wrong(f"{where}: copies do not ascend, or stand twice")

    def _originals(self, name: str, one: SetPart, where: str) -> None:
        """Those of the share that is proved here stand once."""
        n, share = self._sizes[name], self._share[name]
        if ((one.original < 0) | (one.original >= n)).any():
            self._wrong(f"{where}: original numbers outside 0..{n - 1}")
            return
        mine = np.flatnonzero((one.original >= share.start) & (one.original < share.stop))
        at = one.original[mine] - share.start
        if (self.original[name][at] >= 0).any():
            self._wrong(f"{where}: original numbers stand twice")
        self.original[name][at] = one.owned_start + mine

    def _of_proved(self, one: SetPart) -> NDArray[np.bool_]:
        """Which exec elements come from a part that is proved here, or from none."""
        if self._all or not one.exec:
            return np.ones(one.exec, np.bool_)
        source = np.full(one.exec, -1, np.int64)
        receive, at = one.receive_exec, one.receive_exec.rows - one.owned
        inside = (at >= 0) & (at < one.exec)
        source[at[inside]] = np.repeat(receive.parts, np.diff(receive.offset))[inside]
        known: NDArray[np.bool_] = (source < 0) | self._is_proved(source)
        return known

    def _is_proved(self, part: NDArray[np.integer]) -> Any:
        """An index of those of some parts that are proved here."""
        if self._all:
            return slice(None)
        return (part >= self._proved.start) & (part < self._proved.stop)

    def _map(self, name: str, number: Mapping[str, Numbers], part: PartPlan) -> None:
        m = part.maps[name]
        rows, points = part.sets[m.from_set], part.sets[m.to_set]
        self._ends[name] = (m.from_set, m.to_set)
        # all maps at once: numbers of 8 bytes only where they need these
        kind: Any = np.int32 if self._sizes[m.to_set] <= np.iinfo(np.int32).max else np.int64
        kept = self._rows.setdefault(name, [np.empty((0, m.arity), kind)])
        if part.part in self._proved:
            if (m.table[: rows.core] >= points.owned).any():
                self._wrong(f"part {part.part}, map '{name}': a core element reaches a copy")
            kept.append(number[m.to_set].astype(kind)[m.table[: rows.owned]])
            border = m.table[rows.core : rows.owned]
            row, column = np.nonzero(border >= points.owned)
            crossing = (
                row + rows.owned_start + rows.core,
                column,
                number[m.to_set][border[row, column]],
            )
            self._crossing.setdefault(name, []).append(crossing)
        chosen = np.flatnonzero(self._of_proved(rows))
        copied = (rows.copies[chosen], number[m.to_set][m.table[rows.owned + chosen]])
        self._copied_rows.setdefault(name, []).append(copied)

    def _messages(
        self, what: str, send: Messages, receive: Messages, part: PartPlan, number: Numbers
    ) -> None:
        """Keep what parts that are proved here send, and what is received from them."""
        for kept, messages in ((self._sent, send), (self._received, receive)):
            streams = kept.setdefault(what, [(_NONE, _NONE, _NONE)])
            if not messages.rows.size:
                continue
            other = np.repeat(messages.parts, np.diff(messages.offset)).astype(np.int64)
            here = np.full(other.size, part.part, np.int64)
            chosen = self._is_proved(here if kept is self._sent else other)
            streams.append((here[chosen], other[chosen], number[messages.rows[chosen]]))

    def _reached(self, name: str, receive: Messages, part: PartPlan) -> None:
        m = part.maps[name]
        rows, points = part.sets[m.from_set], part.sets[m.to_set]
        beyond = m.table[rows.core : rows.executed]
        if np.setdiff1d(beyond[beyond >= points.owned], receive.rows).size:
            self._wrong(f"part {part.part}: the partial exchange of '{name}' leaves a copy out")

    def _note_written(self, loop: LoopPart) -> None:
        if loop.increments == "exec":
            for label, columns in loop.plan.loop.conflict_columns.items():
                self._written.setdefault(label, set()).update(columns)

    def _owner(self, name: str, elements: Numbers) -> Numbers:
        return np.searchsorted(self._start[name], elements, side="right") - 1

    def _rows_agree(self, name: str) -> None:
        known, first = self.maps[name], self._first(name)
        for part, (elements, rows) in enumerate(self._copied_rows[name]):
            at = elements - first
            if ((at < 0) | (at >= len(known))).any():
                self._wrong(f"part {part}, map '{name}': a copied row is not its owner's")
            elif (known[at] != rows).any():
                self._wrong(f"part {part}, map '{name}': a copied row differs from its owner's")

    def _first(self, name: str) -> int:
        """The first element whose row of a map is proved here."""
        return int(self._start[self._ends[name][0]][self._proved.start])

    def _all_executed(self, name: str) -> None:
        """Who writes a point is owned or executed where the point is owned."""
        from_set, to_set = self._ends[name]
        n = max(1, self._sizes[from_set])
        element, reached, point = _joined([(_NONE, _NONE, _NONE), *self._crossing.get(name, ())])
        pairs = [
            np.repeat(np.arange(self._parts), [one.size for one in self._executed[from_set]])
            * np.int64(n)
            + np.concatenate(self._executed[from_set])
        ]
        known = np.unique(pairs[0])
        for column in sorted(self._written.get(name, ())):
            writer = np.flatnonzero(reached == column)
            part = self._owner(to_set, point[writer])
            missing = np.setdiff1d(part * np.int64(n) + element[writer], known)
            if missing.size:
                p, e = divmod(int(missing[0]), n)
                self._wrong(
                    f"part {p}: element {e} of '{from_set}' writes what it owns by '{name}', "
                    f"and is not executed there ({missing.size} missing)"
                )
                return

    def _sent_is_received(self, what: str) -> None:
        """What one part sends another is what that receives, element by element."""
        sender, to, sent = _joined(self._sent[what])
        receiver, source, received = _joined(self._received[what])
        order = np.argsort(source * self._parts + receiver, kind="stable")
        ends = np.array_equal(sender, source[order]) and np.array_equal(to, receiver[order])
        if not ends or not np.array_equal(sent, received[order]):
            self._wrong(f"{what}: what parts send is not what others receive")


def loop_findings(part: PartPlan) -> list[str]:
    """What is wrong with the loops of a part, on its own; several threads may look at parts."""
    return [text for name, loop in part.loops.items() for text in _of_loop(name, loop, part)]


def _of_loop(name: str, loop: LoopPart, part: PartPlan) -> Iterator[str]:
    where, words = f"part {part.part}, ", loop.plan.loop
    over = part.sets[words.over]
    if loop.increments != "exec" and any(
        a.conflicts and a.access is not Access.INC for a in words.args
    ):
        yield f"{where}loop '{name}': sends back what is no increment"
    for label, variant in loop.plan.variants.items():
        yield from (where + finding for finding in prove(loop.plan, variant))
        colours, ends = loop.colours[label], (over.core, over.owned)
        first, last = variant.block_offset[:-1], variant.block_offset[1:]
        run, run_of_end = np.searchsorted(ends, np.stack([first, last - 1]), side="right")
        colour = variant.colour_of_block()
        wanted = np.searchsorted((colours.core, colours.owned), colour, side="right")
        if (run != run_of_end).any():
            yield f"{where}loop '{name}': a block crosses from one class to another"
        elif (run != wanted).any():
            yield f"{where}loop '{name}': a block has a colour of another class"


def _meet(one: Numbers, other: Numbers) -> bool:
    """Whether two ascending lists have an element in common."""
    if not one.size or not other.size:
        return False
    at = np.minimum(np.searchsorted(one, other), one.size - 1)
    return bool((one[at] == other).any())


_Stream = tuple[Numbers, Numbers, Numbers]
_NONE = np.empty(0, np.int64)


def _joined(streams: list[_Stream]) -> _Stream:
    here, other, number = (np.concatenate(column) for column in zip(*streams, strict=True))
    return here, other, number


def proved(
    parts: Iterator[PartPlan], sizes: Mapping[str, int], count: int, own: range | None = None
) -> PartsProof:
    """The proof of all parts, one after another; ``finish`` is called.

    With ``own``, only what concerns these parts is proved.
    """
    proof = PartsProof(sizes, count, own)
    for part in parts:
        proof.add(part)
    proof.finish()
    return proof
