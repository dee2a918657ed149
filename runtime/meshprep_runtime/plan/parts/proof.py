"""The proof of a mesh in parts, by gathers and counting; it shares nothing with what makes parts.

Some parts are looked at together, one batch after another. What must fit between parts is kept in
arrays as long as what the parts own that are proved, in global numbers, and compared at the end.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...types.maps import distinct_without, ranges
from .batch import (
    MessageBatch,
    Numbers,
    PartBatch,
    SetBatch,
    begins,
    leading,
    split_pairs,
    spread,
    trailing,
)
from .loop_proof import loop_findings
from .slices import one_by_one


class PartsProof:
    """Takes every part in ascending order; ``findings`` and ``finish`` say what is wrong.

    Parts must have passed :func:`~.structure.check_batch`, so that indices are safe. Where several
    processes prove a file, each takes all parts and proves its own: ``proved``, what others have of
    them, and its share of the original numbers.
    """

    def __init__(self, sizes: Mapping[str, int], parts: int, proved: range | None = None) -> None:
        self.findings: list[str] = []
        self._sizes, self._parts = dict(sizes), parts
        self._proved = range(parts) if proved is None else proved
        self._all = len(self._proved) == parts
        self._start = {name: np.zeros(parts + 1, np.int64) for name in sizes}
        ends = self._proved.start, self._proved.stop
        self._share = {s: range(*(n * p // parts for p in ends)) for s, n in sizes.items()}
        self.original = {name: np.full(len(r), -1, np.int64) for name, r in self._share.items()}
        self.maps: dict[str, NDArray[np.integer]] = {}
        self._rows: dict[str, list[NDArray[np.integer]]] = {}
        self._ends: dict[str, tuple[str, str]] = {}
        # of each map: copied elements, their rows, and the part that copies them
        self._copied_rows: dict[str, list[_Stream]] = {}
        # of each set: the parts that execute elements of others, and these
        self._executed: dict[str, list[tuple[Numbers, Numbers]]] = {name: [] for name in sizes}
        self._written: dict[str, set[int]] = {}
        # of each map: elements that reach a copy, by which column, and the number of the point
        self._crossing: dict[str, list[_Stream]] = {}
        self._sent: dict[str, list[_Rows]] = {}
        self._received: dict[str, list[_Rows]] = {}
        # of each array of further groups: (m, 2) elements and groups, of owners and of copies
        self._pairs: dict[str, tuple[list[Numbers], list[Numbers]]] = {}

    def add(self, batch: PartBatch, of_loops: Sequence[str] | None = None) -> None:
        """Prove what can be seen in some parts, and keep what others must fit. O(their size).

        All of them are proved here, or none. ``of_loops`` are their :func:`loop_findings`, where
        another thread has found them.
        """
        mine = batch.parts.start in self._proved
        for name, one in batch.sets.items():
            self._set(name, one, batch, mine)
        for name in batch.description["maps"]:
            self._map(name, batch, mine)
        for name in batch.description["partial"]:
            to = batch.description["maps"][name][1]
            of = to, batch.sets[to], batch.sets[to].owned
            sent, received = (batch.messages(f"partial/{name}/{way}") for way in _WAYS)
            self._messages(self._sent, f"partial {name}", sent, batch, of)
            self._messages(self._received, f"partial {name}", received, batch, of)
            if mine:
                self._reached(name, received, batch)
        for at in batch.further:
            kept = self._pairs.setdefault(at, ([], []))
            owned, copied = split_pairs(batch, at)
            kept[1].append(copied)
            if mine:
                kept[0].append(owned)
        if mine:
            for text in loop_findings(batch) if of_loops is None else of_loops:
                self._wrong(text)
            self._note_written(batch)

    def finish(self, together: Callable[..., Sequence[list[str]]] = one_by_one) -> list[str]:
        """All findings, when every part was added; empty where all is right.

        ``together`` gives the results of functions, and may call them at the same time.
        """
        for name, n in self._sizes.items():
            if self._start[name][-1] != n:
                self._wrong(f"set '{name}': parts own {self._start[name][-1]} of {n} elements")
            elif (self.original[name] < 0).any():
                self._wrong(f"set '{name}': original numbers are no permutation")
        if not self.findings:
            for name, rows in self._rows.items():
                self.maps[name] = np.concatenate(rows)
                rows.clear()
            checks = [partial(self._rows_agree, name) for name in self.maps]
            checks += [partial(self._all_executed, name) for name in self.maps]
            checks += [partial(self._sent_is_received, what) for what in self._sent]
            checks += [partial(self._groups_agree, at) for at in self._pairs]
            for text in chain.from_iterable(together(*checks)):
                self._wrong(text)
        return self.findings

    def _wrong(self, text: str) -> None:
        self.findings.append(f"{self._parts} parts: {text}")

    def _set(self, name: str, one: SetBatch, batch: PartBatch, mine: bool) -> None:
        start, parts = self._start[name], batch.parts
        ends = one.owned_start + one.owned
        wanted = np.append(start[parts.start], ends[:-1])
        for place in np.flatnonzero(one.owned_start != wanted)[:1].tolist():
            text = f"owns from {one.owned_start[place]}, must be {wanted[place]}"
            self._wrong(f"part {parts[place]}, set '{name}': {text}")
        start[parts.start + 1 :] = ends[-1]
        start[parts.start + 1 : parts.stop + 1] = ends
        for kind, first in (("exec", one.owned), ("halo", one.executed)):
            send = batch.messages(f"sets/{name}/send_{kind}")
            receive = batch.messages(f"sets/{name}/receive_{kind}")
            what = f"{kind} rows of '{name}'"
            self._messages(self._sent, what, send, batch, (name, one, first))
            self._messages(self._received, what, receive, batch, (name, one, first))
        copied = leading(one.copies, one.exec, one.n_copies)
        part = np.repeat(np.arange(parts.start, parts.stop), one.exec)
        chosen = self._of_proved(name, batch)
        self._executed[name].append((part[chosen], copied[chosen]))
        self._originals(name, one, batch)
        if mine:
            self._copies(name, batch)

    def _wrong_rows(
        self, wrong: NDArray[np.bool_], count: Numbers, batch: PartBatch, text: str
    ) -> None:
        """A finding about the part that has the first of the rows that are wrong."""
        if wrong.any():
            place = np.searchsorted(np.cumsum(count), np.argmax(wrong), side="right")
            self._wrong(f"part {batch.parts[int(place)]}, {text}")

    def _copies(self, name: str, batch: PartBatch) -> None:
        found = list(_of_copies(batch.sets[name], self._sizes[name]))
        if found and len(batch.parts) > 1:
            for place in range(len(batch.parts)):
                self._copies(name, batch.alone(place))
            return
        for text in found:
            self._wrong(f"part {batch.parts.start}, set '{name}': {text}")

    def _originals(self, name: str, one: SetBatch, batch: PartBatch) -> None:
        """Those of the share that is proved here stand once."""
        n, share, where = self._sizes[name], self._share[name], f"set '{name}'"
        if one.original.size and (one.original.min() < 0 or one.original.max() >= n):
            outside = (one.original < 0) | (one.original >= n)
            text = f"{where}: original numbers outside 0..{n - 1}"
            self._wrong_rows(outside, one.owned, batch, text)
            return
        number = ranges(one.owned_start, one.owned)
        at = one.original - share.start
        if not self._all:
            mine = np.flatnonzero((at >= 0) & (one.original < share.stop))
            at, number = at[mine], number[mine]
        if (self.original[name][at] >= 0).any():
            self._wrong(f"{_said(batch)}{where}: original numbers stand twice")
        self.original[name][at] = number

    def _of_proved(self, name: str, batch: PartBatch) -> Any:
        """An index of the exec elements that come from a part that is proved here, or from none."""
        if self._all:
            return slice(None)
        one = batch.sets[name]
        receive = batch.messages(f"sets/{name}/receive_exec")
        source, rows = np.full(int(one.exec.sum()), -1, np.int64), ranges(0, receive.row_count)
        inside = rows < spread(one.exec, receive.row_count)
        at = rows + spread(begins(one.exec), receive.row_count)
        source[at[inside]] = np.repeat(receive.other, receive.length)[inside]
        return (source < 0) | self._is_proved(source)

    def _is_proved(self, part: NDArray[np.integer]) -> Any:
        """An index of those of some parts that are proved here."""
        if self._all:
            return slice(None)
        return (part >= self._proved.start) & (part < self._proved.stop)

    def _map(self, name: str, batch: PartBatch, mine: bool) -> None:
        start, to, arity = batch.description["maps"][name]
        rows, points, count = batch.sets[start], batch.sets[to], batch.sets[start].executed
        self._ends[name] = (start, to)
        # all maps at once: numbers of 8 bytes only where they need these
        kind: Any = np.int32 if self._sizes[to] <= np.iinfo(np.int32).max else np.int64
        kept = self._rows.setdefault(name, [np.empty((0, arity), kind)])
        table = batch.array(f"maps/{name}/table", "<i4", ndim=2)
        reached = points.number.astype(kind)[batch.joined_map(name, count).table]
        if mine:
            core = leading(table, rows.core, count)
            inner: NDArray[np.bool_] = core >= spread(points.owned, rows.core)[:, None]
            if inner.any():
                text = f"map '{name}': a core element reaches a copy"
                self._wrong_rows(np.any(inner, axis=1), rows.core, batch, text)
            own, n_border = leading(reached, rows.owned, count), rows.owned - rows.core
            kept.append(own)
            border = trailing(leading(table, rows.owned, count), rows.core, rows.owned)
            row, column = np.nonzero(border >= spread(points.owned, n_border)[:, None])
            element = ranges(rows.owned_start + rows.core, n_border)
            point = trailing(own, rows.core, rows.owned)[row, column]
            crossing = element[row], column, point.astype(np.int64)
            self._crossing.setdefault(name, []).append(crossing)
        chosen = self._of_proved(start, batch)
        part = np.repeat(np.arange(batch.parts.start, batch.parts.stop), rows.exec)
        elements = leading(rows.copies, rows.exec, rows.n_copies)
        copied = elements[chosen], trailing(reached, rows.owned, count)[chosen], part[chosen]
        self._copied_rows.setdefault(name, []).append(copied)

    def _messages(
        self,
        kept: "dict[str, list[_Rows]]",
        what: str,
        messages: MessageBatch,
        batch: PartBatch,
        of: tuple[str, SetBatch, Numbers],
    ) -> None:
        """Keep what parts that are proved here send, or what is received from them.

        With the name of the set, also its values.
        """
        (name, one, first), streams = of, kept.setdefault(what, [])
        if not messages.length.size:
            return
        other = np.repeat(messages.other, messages.length).astype(np.int64)
        here = np.repeat(messages.part + batch.parts.start, messages.length)
        at = messages.rows(first) + spread(one.begin, messages.row_count)
        chosen = self._is_proved(here if kept is self._sent else other)
        at = at[chosen]
        streams.append((here[chosen], other[chosen], one.number[at], batch.records(name, at)))

    def _reached(self, name: str, receive: MessageBatch, batch: PartBatch) -> None:
        start, to, _ = batch.description["maps"][name]
        rows, points, count = batch.sets[start], batch.sets[to], batch.sets[start].executed
        table = batch.array(f"maps/{name}/table", "<i4", ndim=2)
        table, n = trailing(table, rows.core, count), count - rows.core
        beyond = table >= spread(points.owned, n)[:, None]
        at = (table + spread(points.begin, n)[:, None])[beyond]
        there = receive.rows(points.owned) + spread(points.begin, receive.row_count)
        left = distinct_without(at, there)
        if left.size:
            place = int(np.searchsorted(points.begin, left[0], side="right")) - 1
            text = f"the partial exchange of '{name}' leaves a copy out"
            self._wrong(f"part {batch.parts[place]}: {text}")

    def _note_written(self, batch: PartBatch) -> None:
        for name, loop in batch.loops.items():
            if batch.description["loops"][name]["increments"] == "exec":
                for label, columns in loop.conflict_columns.items():
                    self._written.setdefault(label, set()).update(columns)

    def _rows_agree(self, name: str) -> list[str]:
        known = self.maps[name]
        # the first element whose row is proved here
        first = int(self._start[self._ends[name][0]][self._proved.start])
        for elements, rows, part in self._copied_rows[name]:
            at = elements - first
            outside = (at < 0) | (at >= len(known))
            if outside.any():
                p = part[np.argmax(outside)]
                return [f"part {p}, map '{name}': a copied row is not its owner's"]
            unlike = (known[at] != rows).any(axis=1)
            if unlike.any():
                p = part[np.argmax(unlike)]
                return [f"part {p}, map '{name}': a copied row differs from its owner's"]
        return []

    def _all_executed(self, name: str) -> list[str]:
        """Who writes a point is owned or executed where the point is owned."""
        from_set, to_set = self._ends[name]
        n = max(1, self._sizes[from_set])
        written = sorted(self._written.get(name, ()))
        if not written:
            return []
        element, reached, point = _joined([(_NONE, _NONE, _NONE), *self._crossing.get(name, ())])
        known = np.concatenate([_NONE, *(p * np.int64(n) + e for p, e in self._executed[from_set])])
        for column in written:
            writer = np.flatnonzero(reached == column)
            part = np.searchsorted(self._start[to_set], point[writer], side="right") - 1
            missing = distinct_without(part * np.int64(n) + element[writer], known)
            if missing.size:
                p, e = divmod(int(missing[0]), n)
                said = f"part {p}: element {e} of '{from_set}' writes what it owns by '{name}', "
                return [f"{said}and is not executed there ({missing.size} missing)"]
        return []

    def _sent_is_received(self, what: str) -> list[str]:
        """What one part sends another is what that receives, element by element."""
        none = (_NONE, _NONE, _NONE, np.empty((0, 0), np.uint8))
        sender, to, sent, own = _joined(self._sent[what] or [none])
        receiver, source, received, copied = _joined(self._received[what] or [none])
        order = np.argsort(source * self._parts + receiver, kind="stable")
        ends = np.array_equal(sender, source[order]) and np.array_equal(to, receiver[order])
        if not (ends and np.array_equal(sent, received[order])):
            return [f"{what}: what parts send is not what others receive"]
        unlike = (own != copied[order]).any(axis=1)
        if unlike.any():
            at = int(np.argmax(unlike))
            text = f"element {sent[at]} has other values or groups in part {to[at]} than in"
            return [f"{what}: {text} part {sender[at]}, which owns it"]
        return []

    def _groups_agree(self, at: str) -> list[str]:
        """Copies have no other further groups than owners: how many, their values say."""
        known, copied = (np.concatenate([_NO_PAIRS, *rows]) for rows in self._pairs[at])
        start = self._start[at.split("/")[1]]
        low, high = start[self._proved.start], start[self._proved.stop]
        copied = copied[(copied[:, 0] >= low) & (copied[:, 0] < high)]
        both = np.unique(np.concatenate([known, copied]), axis=0)
        return (
            [] if len(both) == len(known) else [f"{at}: a copy has groups that its owner has not"]
        )


def _of_copies(one: SetBatch, n: int) -> Iterator[str]:
    """What is wrong with the copies of some parts of a set of ``n`` elements."""
    copies, count = one.copies, one.n_copies
    outside = bool(copies.size) and (copies.min() < 0 or copies.max() >= n)
    if outside:
        yield f"a copy of an element outside 0..{n - 1}"
    start, end = (spread(v, count) for v in (one.owned_start, one.owned_start + one.owned))
    if ((copies >= start) & (copies < end)).any():
        yield "copies an element that it owns"
    # a key ascends with the part
    key = spread(np.arange(count.size) * max(n, 1), count) + copies
    runs = leading(key, one.exec, count), trailing(key, one.exec, count)
    if not outside and (any((run[1:] <= run[:-1]).any() for run in runs) or np.isin(*runs).any()):
        yield "copies do not ascend, or stand twice"


def _said(batch: PartBatch) -> str:
    """The part, or the parts, that a finding is about."""
    parts = batch.parts
    return f"part {parts[0]}, " if len(parts) == 1 else f"parts {parts[0]} to {parts[-1]}, "


_Stream = tuple[Numbers, Numbers, Numbers]
# part, other part, number, record
_Rows = tuple[Numbers, Numbers, Numbers, NDArray[np.uint8]]
_NONE, _NO_PAIRS = np.empty(0, np.int64), np.empty((0, 2), np.int64)
_WAYS = ("send", "receive")


def _joined(streams: Sequence[tuple[NDArray[Any], ...]]) -> tuple[NDArray[Any], ...]:
    return tuple(np.concatenate(column) for column in zip(*streams, strict=True))
