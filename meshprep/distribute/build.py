"""Build parts from this rank's tables: local maps, blocks, colours, staging, messages.

Small parts are made together, so that the interpreter takes its time once for all of them.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.plan.parts import ClassColours, PartPlan
from meshprep_runtime.plan.parts.batch import (
    Arrays,
    Numbers,
    PartBatch,
    alternating,
    begins,
    part_of,
    range_arrays,
    spread,
)
from meshprep_runtime.plan.parts.slices import in_runs
from meshprep_runtime.plan.ranges import ranges_for
from meshprep_runtime.types.loops import Loop
from meshprep_runtime.types.maps import Int32s, SetMap, ranges

from ..colour import colour_threads
from ..colour.block_colours import colour_blocks
from ..kernels import Int64s, kernel
from ..kernels.arrays import first_not_below
from ..loops.options import Options
from ..loops.reach import written_table
from ..loops.requests import LoopSpec
from ..pipeline.variants import stage_maps
from .halos import AllCopies, MessageRows, SplitNumbers
from .order import OrderedParts
from .subject import SplitSubject

# Elements that parts own which are made together.
TOGETHER = 1 << 16


@dataclass(frozen=True, eq=False)
class PartBuilder:
    """Builds batches of parts; safe to call from several threads."""

    subject: SplitSubject
    ordered: OrderedParts
    copies: AllCopies
    numbers: SplitNumbers
    options: Options
    increments: Mapping[str, str]  # by loop name

    @property
    def parts(self) -> int:
        return self.numbers.parts

    def build(self, part: int) -> PartPlan:
        """One part of this rank. O(its size)."""
        return part_of(self.batch(range(part, part + 1)))

    def batches(self, parts: range) -> list[range]:
        """Split parts of this rank into batches of about :data:`TOGETHER` elements."""
        if not parts:
            return []
        begin = self.numbers.held.index(parts.start)
        size = np.zeros(len(parts), np.int64)
        for run in self.ordered.runs.values():
            size += run.of_parts(range(begin, begin + len(parts)))[0]
        return in_runs(parts, size, TOGETHER)

    def batch(self, parts: range) -> PartBatch:
        """Neighbouring parts of this rank, built together. O(their size)."""
        out, begin = _PartArrays({}, {}), self.numbers.held.index(parts.start)
        at = range(begin, begin + len(parts))

        def known() -> PartBatch:
            return PartBatch(self._description, parts, self.parts, out.arrays, out.rows)

        for name in self.subject.sizes:
            self._put_set(out, name, at, parts)
        self._put_values(out, at, known())
        batch = known()
        for m in self.subject.maps.values():
            self._put_map(out, m, at, batch)
        batch = known()
        for spec in self.subject.specs:
            self._put_loop(out, spec, at, batch)
        for name in self.copies.partial:
            self._put_partial(out, name, at, batch)
        _put_ranges(out, known())
        return known()

    @cached_property
    def _description(self) -> dict[str, Any]:
        """Sets, maps and loops common to all parts, as docs/plan-format.md has them."""
        return {
            "sets": self.numbers.sizes,
            "maps": {m.name: [m.from_set, m.to_set, m.arity] for m in self.subject.maps.values()},
            "loops": {spec.loop.name: self._describe_loop(spec) for spec in self.subject.specs},
            "partial": list(self.copies.partial),
            "group_names": self._group_names(),
        }

    def _group_names(self) -> dict[str, dict[str, dict[str, str | None]]]:
        """By set and tag: the names of all groups by number, None where they have none."""
        found: dict[str, dict[str, dict[str, str | None]]] = {}
        for tag in self.subject.tags:
            numbers = sorted({*tag.names, *tag.group_id.tolist()} - {0})
            names = {str(number): tag.names.get(number) for number in numbers}
            found.setdefault(tag.set, {})[tag.name] = names
        return found

    def _describe_loop(self, spec: LoopSpec) -> dict[str, Any]:
        loop, options = spec.loop, self.options.for_names(spec.options)
        words = {
            "block_size": options.block_elements,
            "target": options.target,
            "partitioner": options.partitioner if loop.maps else "contiguous",
        }
        name = f"s{options.block_elements}"
        chosen = {"increments": self.increments[loop.name], "default": name}
        return {**loop.to_dict(), **chosen, "variants": {name: words}}

    def _put_set(self, out: "_PartArrays", name: str, at: range, parts: range) -> None:
        run, original = self.ordered.runs[name], self.subject.original.get(name)
        owned, elements = run.of_parts(at)
        executed, halo = self.copies.executed[name], self.copies.halo[name]
        received = {"exec": executed.received_by(at), "halo": halo.received_by(at)}
        n_exec, n_halo = (one.count for one in received.values())
        start = self.numbers.offset[name][parts.start : parts.stop]
        core = run.core[at.start : at.stop]
        counts = np.stack([start, core, owned, n_exec, n_halo], axis=1).astype(np.int64)
        place = f"sets/{name}"
        out.put(f"{place}/counts", counts.reshape(-1), np.full(len(parts), counts.shape[1]))
        copies = alternating(received["exec"].rows, n_exec, received["halo"].rows, n_halo)
        out.put(f"{place}/copies", copies.astype(np.int64), n_exec + n_halo)
        numbers = elements if original is None else original[elements]
        out.put(f"{place}/original", numbers.astype(np.int64), owned)
        for kind, copied in (("exec", executed), ("halo", halo)):
            sent = copied.sent_by(at)
            out.put_messages(f"{place}/send_{kind}", sent)
            out.put(f"{place}/send_{kind}/rows", sent.rows, sent.count)
            out.put_messages(f"{place}/receive_{kind}", received[kind])

    def _put_values(self, out: "_PartArrays", at: range, known: PartBatch) -> None:
        """Coordinates, fields and groups of owned elements and copies."""
        elements = dict[str, NDArray[np.integer]]()
        tagged = (tag.set for tag in self.subject.tags)
        for name in {*(one.split("/")[1] for one in self.subject.values), *tagged}:
            one, (owned, own) = known.sets[name], self.ordered.runs[name].of_parts(at)
            elements[name] = alternating(own, owned, self._named(name, one.copies), one.n_copies)
        for where, values in self.subject.values.items():
            name = where.split("/")[1]
            out.put(where, values[elements[name]], known.sets[name].size)
        for tag in self.subject.tags:
            one, where = known.sets[tag.set], f"{tag.set}/{tag.name}"
            here = replace(tag, values=tag.values[elements[tag.set]])
            out.put(f"tags/{where}", here.first_ids(), one.size)
            if (np.diff(tag.group_offset) > 1).any():
                rows = here.further_ids()
                part = np.searchsorted(one.begin, rows[:, 0], side="right") - 1
                rows[:, 0] -= one.begin[part]
                count = np.bincount(part, minlength=one.size.size)
                out.put(f"further_groups/{where}", rows, count)

    def _named(self, name: str, numbers: Numbers) -> NDArray[np.integer]:
        """Elements as they are called here, by their numbers in the split mesh."""
        run, held = self.ordered.runs[name], self.numbers.held
        n, first = int(run.offset[len(held)]), int(self.numbers.offset[name][held.start])
        own = (numbers >= first) & (numbers < first + n)
        found = np.empty(numbers.size, run.elements.dtype)
        found[own] = run.elements[numbers[own] - first]
        if not own.all():
            number, elements = self._elsewhere[name]
            found[~own] = elements[np.searchsorted(number, numbers[~own])]
        return found

    @cached_property
    def _elsewhere(self) -> dict[str, tuple[NDArray[np.integer], NDArray[np.integer]]]:
        """The elements of other ranks that are known here, by ascending numbers."""
        found = dict[str, tuple[NDArray[np.integer], NDArray[np.integer]]]()
        for name, run in self.ordered.runs.items():
            rest = run.elements[run.offset[len(self.numbers.held)] :]
            number = self.numbers.number[name][rest]
            order = np.argsort(number, kind="stable")
            found[name] = number[order], rest[order]
        return found

    def _put_map(self, out: "_PartArrays", m: SetMap, at: range, known: PartBatch) -> None:
        owned, elements = self.ordered.runs[m.from_set].of_parts(at)
        n_exec, executed = self.copies.elements[m.from_set].of_parts(at)
        rows, to = alternating(elements, owned, executed, n_exec), known.sets[m.to_set]
        counts = np.stack([owned + n_exec, to.owned_start, to.owned, to.exec, to.n_copies], axis=1)
        table = _local_rows(m.table, rows, self.numbers.number[m.to_set], to.copies, counts)
        out.put(f"maps/{m.name}/table", table, owned + n_exec)

    def _put_partial(self, out: "_PartArrays", name: str, at: range, known: PartBatch) -> None:
        copies, to = self.copies.partial[name], known.sets[self.subject.maps[name].to_set]
        sent, received = copies.sent_by(at), copies.received_by(at)
        out.put_messages(f"partial/{name}/send", sent)
        out.put(f"partial/{name}/send/rows", sent.rows, sent.count)
        out.put_messages(f"partial/{name}/receive", received)
        # numbers that are those of one part
        of_copy, of_row = (_part_of_rows(count) for count in (to.n_copies, received.count))
        n = np.int64(copies.offset[-1])
        there = of_copy * n + to.copies
        order = np.argsort(there)
        rows = order[np.searchsorted(there[order], of_row * n + received.rows)]
        rows = rows + (to.owned - begins(to.n_copies))[of_row]
        out.put(f"partial/{name}/receive/rows", rows.astype(np.int32), received.count)

    def _put_loop(self, out: "_PartArrays", spec: LoopSpec, at: range, known: PartBatch) -> None:
        loop, size = spec.loop, self.options.for_names(spec.options).block_elements
        n, over, place = (
            known.loop_rows(loop.name),
            known.sets[loop.over],
            f"loops/{loop.name}/s{size}",
        )
        counts = zip(at, over.core.tolist(), over.owned.tolist(), n.tolist(), strict=True)
        ends = [self._block_ends(loop.name, size, *one) for one in counts]
        blocks = np.array([one.size - 1 for one in ends])
        out.put(f"{place}/block_offset", np.concatenate(ends), blocks + 1)
        shifted = [one[1:] + begin for one, begin in zip(ends, begins(n), strict=True)]
        offset = np.concatenate([np.zeros(1, np.int64), *shifted])
        maps = {m: known.joined_map(m, n) for m in loop.maps}
        sizes = known.joined_sizes
        table, n_points = written_table(loop, maps, sizes)
        table = table[: offset[-1]]
        threads = colour_threads(table, n_points, offset)
        out.put(f"{place}/thread_colour", threads.colour, n)
        out.put(f"{place}/thread_colours", threads.count, blocks)
        _put_colours(out, place, table, n_points, ends, known, loop)
        staging, local = stage_maps(loop, maps, sizes, offset)
        first = begins(blocks)
        for to, one in staging.items():
            base, points = one.point_offset[first], np.diff(one.point_offset[np.append(first, -1)])
            own = one.point_offset[ranges(first, blocks + 1)]
            within = f"{place}/staging/{to}"
            out.put(f"{within}/point_offset", own - np.repeat(base, blocks + 1), blocks + 1)
            shift = spread(known.sets[to].begin.astype(np.int32), points)
            out.put(f"{within}/points", one.points - shift, points)
            out.put(f"{within}/exclusive", one.exclusive.view(np.uint8), points)
        for name, columns in local.items():
            # flat, so that a part's columns are one slice
            flat = [own.reshape(-1) for own in np.split(columns, np.cumsum(n)[:-1], axis=1)]
            out.put(f"{place}/local/{name}", np.concatenate(flat), len(columns) * n)

    def _block_ends(
        self, loop: str, size: int, place: int, core: int, owned: int, n: int
    ) -> Int64s:
        ends = self.ordered.blocks[place].get(loop)
        if ends is None:
            runs = _equal_block_ends(0, core, size), _equal_block_ends(core, owned, size)
            ends = np.concatenate([np.zeros(1, np.int64), *runs])
        return np.concatenate([ends, _equal_block_ends(owned, n, size)])


@dataclass(frozen=True)
class _PartArrays:
    """Arrays of a batch, concatenated by part, with the rows of each part."""

    arrays: Arrays
    rows: dict[str, Numbers]

    def put(self, name: str, array: NDArray[Any], count: Numbers) -> None:
        self.arrays[name], self.rows[name] = array, count

    def put_messages(self, at: str, messages: MessageRows) -> None:
        """Put the neighbours of each part, and the first row of each message."""
        part, other = _part_of_rows(messages.count), messages.other
        apart = (part[1:] != part[:-1]) | (other[1:] != other[:-1])
        first = np.flatnonzero(np.append(part.size > 0, apart))
        count = np.bincount(part[first], minlength=messages.count.size)
        within = first - np.repeat(begins(messages.count), count)
        # each ends with the number of its rows
        one = np.ones_like(count)
        offset = alternating(within, count, messages.count, one).astype(np.int64)
        self.put(f"{at}/parts", other[first], count)
        self.put(f"{at}/offset", offset, count + 1)


def _part_of_rows(count: Numbers) -> Numbers:
    """Index in the batch of the part that each row belongs to."""
    return np.repeat(np.arange(count.size), count)


def _put_ranges(out: _PartArrays, batch: PartBatch) -> None:
    """The ranges of the loops in each part, class by class."""
    made: dict[str, list[NDArray[Any]]] = {}
    for place in range(len(batch.parts)):
        part = batch.alone(place)
        for name, plan in part.joined_loops.items():
            over = part.sets[plan.loop.over]
            own = ranges_for(plan, (int(over.core[0]), int(over.owned[0])))
            for at, array in range_arrays(f"loops/{name}", replace(plan, ranges=own)).items():
                made.setdefault(at, []).append(array)
    for at, arrays in made.items():
        out.put(at, np.concatenate(arrays), np.array([one.size for one in arrays]))


def _put_colours(
    out: _PartArrays,
    place: str,
    table: Int32s,
    n_points: int,
    ends: list[Int64s],
    known: PartBatch,
    loop: Loop,
) -> None:
    """Colours of the blocks of each part, class by class."""
    over, begin, made = known.sets[loop.over], 0, []
    for one, core, owned in zip(ends, over.core.tolist(), over.owned.tolist(), strict=True):
        end = begin + int(one[-1])
        made.append(_class_colours(table[begin:end], n_points, one, (core, owned)))
        begin = end
    orders, offsets, classes = zip(*made, strict=True)
    for name, arrays in (("block_order", orders), ("block_colour_offset", offsets)):
        count = np.array([len(array) for array in arrays])
        out.put(f"{place}/{name}", np.concatenate(arrays), count)
    both = np.array([(one.core, one.owned) for one in classes], np.int64)
    out.put(f"{place}/classes", both.reshape(-1), np.full(len(ends), 2))


def _equal_block_ends(begin: int, end: int, size: int) -> Int64s:
    """Ends of blocks of ``size`` consecutive elements."""
    if begin == end:
        return np.empty(0, np.int64)
    return np.append(np.arange(begin + size, end, size, dtype=np.int64), np.int64(end))


def _class_colours(
    table: Int32s, n_points: int, offset: Int64s, classes: tuple[int, int]
) -> tuple[Int32s, Int64s, ClassColours]:
    """Block order and its offsets by colour; every class has colours of its own."""
    block_ends, n_blocks = offset.tolist(), offset.size - 1
    first = [0, *(bisect_left(block_ends, end) for end in classes), n_blocks]
    if all(high - low < 2 for low, high in pairwise(first)):
        # a block is a colour
        order = np.arange(n_blocks + 1)
        return order[:-1].astype(np.int32), order, ClassColours(*first[1:3])
    orders, ends, counts = [], [np.zeros(1, np.int64)], []
    for low, high in pairwise(first):
        begin, end = int(offset[low]), int(offset[high])
        colours = colour_blocks(table[begin:end], n_points, offset[low : high + 1] - begin)
        orders.append(colours.order + np.int32(low))
        ends.append(colours.offset[1:] + low)
        counts.append(colours.count)
    core, boundary, _ = counts
    return np.concatenate(orders), np.concatenate(ends), ClassColours(core, core + boundary)


@kernel
def _local_rows(
    table: Int32s, rows: Int32s, number: NDArray[np.integer], copies: Int64s, counts: Int64s
) -> Int32s:
    """Rows in local numbers: owned points by their place, copies by a search in both their runs.

    ``counts`` has a row for each part: its rows here, its first point, how many points it owns and
    executes, and how many it copies.
    """
    out = np.empty((rows.size, table.shape[1]), np.int32)
    row, first = 0, 0
    for p in range(counts.shape[0]):
        start, owned, last = counts[p, 1], counts[p, 2], first + counts[p, 4]
        executed = first + counts[p, 3]
        for i in range(row, row + counts[p, 0]):
            for j in range(table.shape[1]):
                at = number[table[rows[i], j]]
                if start <= at < start + owned:
                    out[i, j] = at - start
                    continue
                k = first_not_below(copies, first, executed, at)
                if k == executed or copies[k] != at:
                    k = first_not_below(copies, executed, last, at)
                out[i, j] = owned + k - first
        row, first = row + counts[p, 0], last
    return out
