"""The proof of a mesh in parts, independent of the code that makes parts.

It gathers and counts. Parts are added one batch after another. The data that must agree
between parts are kept in global numbers, as much as the proved parts own, and compared at
the end.
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

# Columns of data about rows that must agree between parts.
_Stream = tuple[Numbers, Numbers, Numbers]
# Rows of messages: the part, the other part, the global number, and the values as bytes.
_Rows = tuple[Numbers, Numbers, Numbers, NDArray[np.uint8]]
# Nothing, of numbers and of pairs.
_NONE = np.empty(0, np.int64)
_NO_PAIRS = np.empty((0, 2), np.int64)


class PartsProof:
    """The proof of all parts, which are added in ascending order.

    ``findings`` and ``finish`` tell what is wrong. Parts must have passed
    :func:`~.structure.check_batch`, so that indices are safe. Where several processes prove
    a file, each adds all parts, and proves those in ``proved``: what others have copied
    from them, and a share of the original numbers.
    """

    def __init__(
        self, sizes: Mapping[str, int], parts: int, proved: range | None = None
    ) -> None:
        self.findings: list[str] = []
        self._sizes = dict(sizes)
        self._parts = parts
        self._proved = range(parts) if proved is None else proved
        self._all = len(self._proved) == parts
        # Of each set: the first element that each part owns.
        self._start = {name: np.zeros(parts + 1, np.int64) for name in sizes}
        # Of each set: the original numbers that are proved here, and the element of each.
        self._share: dict[str, range] = {}
        self.original: dict[str, Numbers] = {}
        for name, n in sizes.items():
            first = n * self._proved.start // parts
            stop = n * self._proved.stop // parts
            self._share[name] = range(first, stop)
            self.original[name] = np.full(stop - first, -1, np.int64)
        # Of each map: the rows of owned elements, in pieces and then as one table.
        self._rows: dict[str, list[NDArray[np.integer]]] = {}
        self.maps: dict[str, NDArray[np.integer]] = {}
        # Of each map: its from-set and to-set.
        self._ends: dict[str, tuple[str, str]] = {}
        # Of each map: copied elements, their rows, and the part that copies them.
        self._copied_rows: dict[str, list[_Stream]] = {}
        # Of each set: parts that execute elements of other parts, and these elements.
        self._executed: dict[str, list[tuple[Numbers, Numbers]]] = {}
        for name in sizes:
            self._executed[name] = []
        # Of each map: the columns that a loop with exec elements writes through.
        self._written: dict[str, set[int]] = {}
        # Of each map: elements that reach a copy, by which column, and the global point.
        self._crossing: dict[str, list[_Stream]] = {}
        # Of each kind of messages: the rows that are sent, and those that are received.
        self._sent: dict[str, list[_Rows]] = {}
        self._received: dict[str, list[_Rows]] = {}
        # Of each array of further groups: (m, 2) elements and groups, of owned elements and
        # of copies.
        self._pairs: dict[str, tuple[list[Numbers], list[Numbers]]] = {}

    def add(self, batch: PartBatch, of_loops: Sequence[str] | None = None) -> None:
        """Prove some parts as far as possible, and keep data to compare. O(their size).

        All of these parts are proved here, or none. ``of_loops`` are their
        :func:`loop_findings`, where another thread has computed them.
        """
        mine = batch.parts.start in self._proved
        # Keep who owns and who copies what, by which all else is compared.
        for name, of_set in batch.sets.items():
            self._add_set(name=name, of_set=of_set, batch=batch, mine=mine)
        for name in batch.description["maps"]:
            self._add_map(name, batch, mine)
        # Keep the messages of loops over few points.
        for name in batch.description["partial"]:
            to_set = batch.description["maps"][name][1]
            self._add_messages(
                what=f"partial {name}",
                sent=batch.messages(f"partial/{name}/send"),
                received=batch.messages(f"partial/{name}/receive"),
                batch=batch,
                set_name=to_set,
                first=batch.sets[to_set].owned,
            )
            if mine:
                received = batch.messages(f"partial/{name}/receive")
                self._prove_partial_exchange(name, received, batch)
        # Keep the groups of elements that belong to several: owners and copies must agree.
        for path in batch.further:
            of_owned, of_copies = self._pairs.setdefault(path, ([], []))
            owned, copied = split_pairs(batch, path)
            of_copies.append(copied)
            if mine:
                of_owned.append(owned)
        if mine:
            if of_loops is None:
                of_loops = loop_findings(batch)
            for text in of_loops:
                self._add_finding(text)
            self._note_written(batch)

    def finish(
        self, together: Callable[..., Sequence[list[str]]] = one_by_one
    ) -> list[str]:
        """All findings, when every part was added; empty where all is right.

        ``together`` returns the results of functions, and may call them at the same time.
        """
        # Each element has one owner, and one original number.
        for name, n in self._sizes.items():
            if self._start[name][-1] != n:
                self._add_finding(
                    f"set '{name}': parts own {self._start[name][-1]} of {n} elements"
                )
            elif (self.original[name] < 0).any():
                self._add_finding(f"set '{name}': original numbers are no permutation")
        if not self.findings:
            for name, rows in self._rows.items():
                self.maps[name] = np.concatenate(rows)
                rows.clear()
            # Compare what parts say about each other.
            checks = [partial(self._rows_agree, name) for name in self.maps]
            checks += [partial(self._all_executed, name) for name in self.maps]
            checks += [partial(self._sent_is_received, what) for what in self._sent]
            checks += [partial(self._groups_agree, path) for path in self._pairs]
            for text in chain.from_iterable(together(*checks)):
                self._add_finding(text)
        return self.findings

    def _add_finding(self, text: str) -> None:
        self.findings.append(f"{self._parts} parts: {text}")

    def _add_set(self, name: str, of_set: SetBatch, batch: PartBatch, mine: bool) -> None:
        """Prove the ranges of owned elements, and keep messages and exec elements."""
        # Each part owns the elements behind those of the part before it.
        start = self._start[name]
        parts = batch.parts
        ends = of_set.owned_start + of_set.owned
        expected = np.append(start[parts.start], ends[:-1])
        wrong_parts = np.flatnonzero(of_set.owned_start != expected)
        if wrong_parts.size:
            place = int(wrong_parts[0])
            self._add_finding(
                f"part {parts[place]}, set '{name}': owns from "
                f"{of_set.owned_start[place]}, must be {expected[place]}"
            )
        start[parts.start + 1 :] = ends[-1]
        start[parts.start + 1 : parts.stop + 1] = ends

        # Keep messages: what one part sends must be what another one receives.
        for kind, first in (("exec", of_set.owned), ("halo", of_set.executed)):
            self._add_messages(
                what=f"{kind} rows of '{name}'",
                sent=batch.messages(f"sets/{name}/send_{kind}"),
                received=batch.messages(f"sets/{name}/receive_{kind}"),
                batch=batch,
                set_name=name,
                first=first,
            )
        # Keep who executes what, so that no increment is missing at the end.
        elements = leading(of_set.copies, of_set.exec, of_set.n_copies)
        part = np.repeat(np.arange(parts.start, parts.stop), of_set.exec)
        from_proved = self._exec_from_proved(name, batch)
        self._executed[name].append((part[from_proved], elements[from_proved]))
        self._prove_original_numbers(name, of_set, batch)
        if mine:
            self._prove_copies(name, batch)

    def _add_finding_about_row(
        self, wrong: NDArray[np.bool_], count: Numbers, batch: PartBatch, text: str
    ) -> None:
        """Add a finding about the part of the first wrong row of ``count`` a part."""
        if wrong.any():
            place = np.searchsorted(np.cumsum(count), np.argmax(wrong), side="right")
            self._add_finding(f"part {batch.parts[int(place)]}, {text}")

    def _prove_copies(self, name: str, batch: PartBatch) -> None:
        findings = list(_findings_of_copies(batch.sets[name], self._sizes[name]))
        if findings and len(batch.parts) > 1:
            # Find the part.
            for place in range(len(batch.parts)):
                self._prove_copies(name, batch.alone(place))
            return
        for text in findings:
            self._add_finding(f"part {batch.parts.start}, set '{name}': {text}")

    def _prove_original_numbers(
        self, name: str, of_set: SetBatch, batch: PartBatch
    ) -> None:
        """Original numbers are in range; those of the share proved here occur once."""
        # Numbers outside the mesh would be places outside the array below.
        n = self._sizes[name]
        share = self._share[name]
        where = f"set '{name}'"
        original = of_set.original
        if original.size and (original.min() < 0 or original.max() >= n):
            outside = (original < 0) | (original >= n)
            text = f"{where}: original numbers outside 0..{n - 1}"
            self._add_finding_about_row(
                wrong=outside, count=of_set.owned, batch=batch, text=text
            )
            return
        # Note the number of each original one; a place that is taken already stands twice.
        number = ranges(of_set.owned_start, of_set.owned)
        place_in_share = original - share.start
        if not self._all:
            in_share = np.flatnonzero((place_in_share >= 0) & (original < share.stop))
            place_in_share = place_in_share[in_share]
            number = number[in_share]
        if (self.original[name][place_in_share] >= 0).any():
            self._add_finding(
                f"{_parts_in_words(batch)}{where}: original numbers stand twice"
            )
        self.original[name][place_in_share] = number

    def _exec_from_proved(self, name: str, batch: PartBatch) -> Any:
        """An index of exec elements whose owner is proved here, or that nobody sends."""
        if self._all:
            return slice(None)
        of_set = batch.sets[name]
        receive = batch.messages(f"sets/{name}/receive_exec")
        # Find the part that sends each exec element.
        sender = np.full(int(of_set.exec.sum()), -1, np.int64)
        row = ranges(0, receive.row_count)
        is_exec = row < spread(of_set.exec, receive.row_count)
        element = row + spread(begins(of_set.exec), receive.row_count)
        sender[element[is_exec]] = np.repeat(receive.other, receive.length)[is_exec]
        return (sender < 0) | self._is_proved(sender)

    def _is_proved(self, part: NDArray[np.integer]) -> Any:
        """An index of those of some parts that are proved here."""
        if self._all:
            return slice(None)
        return (part >= self._proved.start) & (part < self._proved.stop)

    def _add_map(self, name: str, batch: PartBatch, mine: bool) -> None:
        """Prove the rows of core elements, and keep the other rows."""
        from_set, to_set, arity = batch.description["maps"][name]
        rows = batch.sets[from_set]
        points = batch.sets[to_set]
        count = rows.executed
        self._ends[name] = (from_set, to_set)
        # All maps are kept: use numbers of 8 bytes only where the set is that large.
        dtype: Any = np.int32
        if self._sizes[to_set] > np.iinfo(np.int32).max:
            dtype = np.int64
        rows_of_map = self._rows.setdefault(name, [np.empty((0, arity), dtype)])
        table = batch.array(f"maps/{name}/table", "<i4", ndim=2)
        global_table = points.number.astype(dtype)[batch.joined_map(name, count).table]
        if mine:
            # Core elements must reach owned points only.
            core = leading(table, rows.core, count)
            is_copy: NDArray[np.bool_] = core >= spread(points.owned, rows.core)[:, None]
            if is_copy.any():
                text = f"map '{name}': a core element reaches a copy"
                self._add_finding_about_row(
                    wrong=np.any(is_copy, axis=1), count=rows.core, batch=batch, text=text
                )
            owned_rows = leading(global_table, rows.owned, count)
            rows_of_map.append(owned_rows)
            # Keep where boundary elements reach copies.
            n_boundary = rows.owned - rows.core
            boundary = trailing(leading(table, rows.owned, count), rows.core, rows.owned)
            row, column = np.nonzero(boundary >= spread(points.owned, n_boundary)[:, None])
            element = ranges(rows.owned_start + rows.core, n_boundary)
            point = trailing(owned_rows, rows.core, rows.owned)[row, column]
            crossing = element[row], column, point.astype(np.int64)
            self._crossing.setdefault(name, []).append(crossing)
        # Keep the rows of exec elements, to compare them with those of their owners.
        from_proved = self._exec_from_proved(from_set, batch)
        part = np.repeat(np.arange(batch.parts.start, batch.parts.stop), rows.exec)
        elements = leading(rows.copies, rows.exec, rows.n_copies)
        exec_rows = trailing(global_table, rows.owned, count)
        copied = (elements[from_proved], exec_rows[from_proved], part[from_proved])
        self._copied_rows.setdefault(name, []).append(copied)

    def _add_messages(
        self,
        what: str,
        sent: MessageBatch,
        received: MessageBatch,
        batch: PartBatch,
        set_name: str,
        first: Numbers,
    ) -> None:
        """Keep the rows that proved parts send, and those that are received from them.

        ``what`` names the messages in findings; ``first`` is the local number of the first
        received row of each part.
        """
        of_set = batch.sets[set_name]
        for messages, streams in (
            (sent, self._sent.setdefault(what, [])),
            (received, self._received.setdefault(what, [])),
        ):
            if not messages.length.size:
                continue
            # Keep who sends: a proof of some parts looks at their messages only, as others
            # prove the rest.
            other = np.repeat(messages.other, messages.length).astype(np.int64)
            receiving_part = np.repeat(messages.part + batch.parts.start, messages.length)
            sender = other
            if messages is sent:
                sender = receiving_part
            from_proved = self._is_proved(sender)
            row = messages.rows(first) + spread(of_set.begin, messages.row_count)
            row = row[from_proved]
            streams.append(
                (
                    receiving_part[from_proved],
                    other[from_proved],
                    of_set.number[row],
                    batch.records(set_name, row),
                )
            )

    def _prove_partial_exchange(
        self, name: str, receive: MessageBatch, batch: PartBatch
    ) -> None:
        """The partial exchange of a map receives all copies that the map reaches."""
        from_set, to_set, _ = batch.description["maps"][name]
        rows = batch.sets[from_set]
        points = batch.sets[to_set]
        # Core elements reach no copies.
        table = batch.array(f"maps/{name}/table", "<i4", ndim=2)
        table = trailing(table, rows.core, rows.executed)
        n = rows.executed - rows.core
        is_copy = table >= spread(points.owned, n)[:, None]
        reached = (table + spread(points.begin, n)[:, None])[is_copy]
        received = receive.rows(points.owned) + spread(points.begin, receive.row_count)
        missing = distinct_without(reached, received)
        if missing.size:
            place = int(np.searchsorted(points.begin, missing[0], side="right")) - 1
            self._add_finding(
                f"part {batch.parts[place]}: the partial exchange of '{name}' leaves a "
                "copy out"
            )

    def _note_written(self, batch: PartBatch) -> None:
        """Note the columns of maps that loops with exec elements write through."""
        for name, loop in batch.loops.items():
            if batch.description["loops"][name]["increments"] == "exec":
                for label, columns in loop.conflict_columns.items():
                    self._written.setdefault(label, set()).update(columns)

    def _rows_agree(self, name: str) -> list[str]:
        """Exec elements have the rows that they have in the part of their owner."""
        owned_rows = self.maps[name]
        # The first element whose row is proved here.
        first = int(self._start[self._ends[name][0]][self._proved.start])
        for elements, rows, part in self._copied_rows[name]:
            row = elements - first
            outside = (row < 0) | (row >= len(owned_rows))
            if outside.any():
                p = part[np.argmax(outside)]
                return [f"part {p}, map '{name}': a copied row is not its owner's"]
            differs = (owned_rows[row] != rows).any(axis=1)
            if differs.any():
                p = part[np.argmax(differs)]
                return [f"part {p}, map '{name}': a copied row differs from its owner's"]
        return []

    def _all_executed(self, name: str) -> list[str]:
        """Elements that write a point are executed by the part that owns the point."""
        from_set, to_set = self._ends[name]
        n = max(1, self._sizes[from_set])
        written = sorted(self._written.get(name, ()))
        if not written:
            return []
        element, column_to_copy, point = _concatenate_columns(
            [(_NONE, _NONE, _NONE), *self._crossing.get(name, ())]
        )
        # A key stands for a part and an element that it executes.
        executed = [_NONE]
        executed += [p * np.int64(n) + e for p, e in self._executed[from_set]]
        executed_keys = np.concatenate(executed)
        # Who owns a point must execute all that write it: nobody sends what was left out.
        for column in written:
            writer = np.flatnonzero(column_to_copy == column)
            part = np.searchsorted(self._start[to_set], point[writer], side="right") - 1
            keys = part * np.int64(n) + element[writer]
            missing = distinct_without(keys, executed_keys)
            if missing.size:
                p, e = divmod(int(missing[0]), n)
                finding = (
                    f"part {p}: element {e} of '{from_set}' writes what it owns by "
                    f"'{name}', and is not executed there ({missing.size} missing)"
                )
                return [finding]
        return []

    def _sent_is_received(self, what: str) -> list[str]:
        """Parts receive the rows that others send them, with the same values."""
        none = (_NONE, _NONE, _NONE, np.empty((0, 0), np.uint8))
        sender, target, sent, sent_values = _concatenate_columns(self._sent[what] or [none])
        receiver, source, received, received_values = _concatenate_columns(
            self._received[what] or [none]
        )
        # Bring what is received into the order of the senders, and compare row by row.
        order = np.argsort(source * self._parts + receiver, kind="stable")
        agrees = np.array_equal(sender, source[order])
        agrees = agrees and np.array_equal(target, receiver[order])
        if not (agrees and np.array_equal(sent, received[order])):
            return [f"{what}: what parts send is not what others receive"]
        # Copies have the values of their owners.
        differs = (sent_values != received_values[order]).any(axis=1)
        if differs.any():
            i = int(np.argmax(differs))
            finding = (
                f"{what}: element {sent[i]} has other values or groups in part {target[i]} "
                f"than in part {sender[i]}, which owns it"
            )
            return [finding]
        return []

    def _groups_agree(self, path: str) -> list[str]:
        """Copies have only further groups that their owners have.

        They have the same number of them, which is among the values that are compared.
        """
        pairs_of_owned, pairs_of_copies = self._pairs[path]
        owned = np.concatenate([_NO_PAIRS, *pairs_of_owned])
        copied = np.concatenate([_NO_PAIRS, *pairs_of_copies])
        # Leave out copies of elements of parts that are proved elsewhere.
        start = self._start[path.split("/")[1]]
        low = start[self._proved.start]
        high = start[self._proved.stop]
        copied = copied[(copied[:, 0] >= low) & (copied[:, 0] < high)]
        both = np.unique(np.concatenate([owned, copied]), axis=0)
        if len(both) == len(owned):
            return []
        return [f"{path}: a copy has groups that its owner has not"]


def _findings_of_copies(of_set: SetBatch, n: int) -> Iterator[str]:
    """Findings about the copies of some parts, of a set of ``n`` elements."""
    # Copies are elements of other parts.
    copies = of_set.copies
    count = of_set.n_copies
    outside = bool(copies.size) and (copies.min() < 0 or copies.max() >= n)
    if outside:
        yield f"a copy of an element outside 0..{n - 1}"
    start = spread(of_set.owned_start, count)
    end = spread(of_set.owned_start + of_set.owned, count)
    if ((copies >= start) & (copies < end)).any():
        yield "copies an element that it owns"
    if outside:
        return
    # Keys of later parts are larger, so that all copies can be compared at once.
    key = spread(np.arange(count.size) * max(n, 1), count) + copies
    exec_keys = leading(key, of_set.exec, count)
    halo_keys = trailing(key, of_set.exec, count)
    ascend = (exec_keys[1:] > exec_keys[:-1]).all() and (
        halo_keys[1:] > halo_keys[:-1]
    ).all()
    if not ascend or np.isin(exec_keys, halo_keys).any():
        yield "copies do not ascend, or stand twice"


def _parts_in_words(batch: PartBatch) -> str:
    """The part, or the parts, that a finding is about."""
    parts = batch.parts
    if len(parts) == 1:
        return f"part {parts[0]}, "
    return f"parts {parts[0]} to {parts[-1]}, "


def _concatenate_columns(
    streams: Sequence[tuple[NDArray[Any], ...]],
) -> tuple[NDArray[Any], ...]:
    """Tuples of columns as one tuple, each column concatenated."""
    return tuple(np.concatenate(column) for column in zip(*streams, strict=True))
