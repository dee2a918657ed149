"""The arrays of parts, from this rank's tables: maps, blocks, colours, staging, messages.

Small parts are made in batches, so that Python's overhead is paid per batch, not per part.
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

from ...colouring import colour_threads
from ...colouring.block_colours import colour_blocks
from ...kernels import Int64s, kernel
from ...kernels.arrays import first_not_below
from ...loops.options import Options
from ...loops.reach import written_table
from ...loops.requests import LoopSpec
from ...staging.staging import stage_maps
from ..halos.ghosts import AllGhosts, MessageRows, SplitNumbers
from ..subject import SplitSubject
from .order import OrderedParts

# Owned elements of the parts of a batch, about.
TOGETHER = 1 << 16


@dataclass(frozen=True, eq=False)
class PartBuilder:
    """Builds batches of parts; safe to call from several threads."""

    subject: SplitSubject
    ordered: OrderedParts
    ghosts: AllGhosts
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
        begin = self.numbers.parts_of_rank.index(parts.start)
        size = np.zeros(len(parts), np.int64)
        for run in self.ordered.runs.values():
            size += run.of_parts(range(begin, begin + len(parts)))[0]
        return in_runs(parts, size, TOGETHER)

    def batch(self, parts: range) -> PartBatch:
        """Consecutive parts of this rank, built together. O(their size)."""
        out = _PartArrays({}, {})
        # Which of this rank's parts these are.
        begin = self.numbers.parts_of_rank.index(parts.start)
        places = range(begin, begin + len(parts))

        def batch_so_far() -> PartBatch:
            return PartBatch(
                description=self._description,
                parts=parts,
                count=self.parts,
                arrays=out.arrays,
                rows=out.rows,
            )

        # Maps need the sets of the parts; loops and messages of maps need the maps.
        for name in self.subject.sizes:
            self._put_set(out=out, name=name, places=places, parts=parts)
        self._put_values(out, places, batch_so_far())
        with_sets = batch_so_far()
        for m in self.subject.maps.values():
            self._put_map(out=out, m=m, places=places, batch=with_sets)
        with_maps = batch_so_far()
        for spec in self.subject.specs:
            self._put_loop(out=out, spec=spec, places=places, batch=with_maps)
        for name in self.ghosts.partial:
            self._put_partial(out=out, name=name, places=places, batch=with_maps)
        _put_ranges(out, batch_so_far())
        return batch_so_far()

    @cached_property
    def _description(self) -> dict[str, Any]:
        """Sets, maps and loops common to all parts, as docs/plan-format.md has them."""
        return {
            "sets": self.numbers.sizes,
            "maps": {
                m.name: [m.from_set, m.to_set, m.arity] for m in self.subject.maps.values()
            },
            "loops": {
                spec.loop.name: self._describe_loop(spec) for spec in self.subject.specs
            },
            "partial": list(self.ghosts.partial),
            "group_names": self._group_names(),
        }

    def _group_names(self) -> dict[str, dict[str, dict[str, str | None]]]:
        """By set and tag: the names of all groups by number, None where they have none."""
        names_of_sets: dict[str, dict[str, dict[str, str | None]]] = {}
        for tag in self.subject.tags:
            numbers = sorted({*tag.names, *tag.group_id.tolist()} - {0})
            names = {str(number): tag.names.get(number) for number in numbers}
            names_of_sets.setdefault(tag.set, {})[tag.name] = names
        return names_of_sets

    def _describe_loop(self, spec: LoopSpec) -> dict[str, Any]:
        """A loop with its increments and its one variant, named by the block size."""
        loop = spec.loop
        options = self.options.for_names(spec.options)
        variant = {
            "block_size": options.block_elements,
            "target": options.target,
            "partitioner": options.partitioner if loop.maps else "contiguous",
        }
        name = f"s{options.block_elements}"
        description = loop.to_dict()
        description["increments"] = self.increments[loop.name]
        description["default"] = name
        description["variants"] = {name: variant}
        return description

    def _put_set(
        self,
        out: "_PartArrays",
        name: str,
        places: range,
        parts: range,
    ) -> None:
        """Counts, ghosts, numbers in the input, and messages of a set."""
        run = self.ordered.runs[name]
        owned, elements = run.of_parts(places)
        executed = self.ghosts.executed[name]
        halo = self.ghosts.halo[name]
        received = {"exec": executed.received_by(places), "halo": halo.received_by(places)}
        n_exec = received["exec"].count
        n_halo = received["halo"].count
        # Counts: first number, core, owned, exec and halo elements of each part.
        start = self.numbers.offset[name][parts.start : parts.stop]
        core = run.core[places.start : places.stop]
        counts = np.stack([start, core, owned, n_exec, n_halo], axis=1)
        counts = counts.astype(np.int64)
        path = f"sets/{name}"
        counts_of_part = np.full(len(parts), counts.shape[1])
        out.put(f"{path}/counts", counts.reshape(-1), counts_of_part)
        # Ghosts, those of the exec run before those of the halo run.
        ghosts = alternating(
            first=received["exec"].rows,
            n_first=n_exec,
            then=received["halo"].rows,
            n_then=n_halo,
        )
        out.put(f"{path}/copies", ghosts.astype(np.int64), n_exec + n_halo)
        # Numbers in the mesh that was read.
        original = self.subject.original.get(name)
        numbers = elements if original is None else original[elements]
        out.put(f"{path}/original", numbers.astype(np.int64), owned)
        # Messages of each run of ghosts: what is sent, and what is received.
        for kind, ghosts_of_run in (("exec", executed), ("halo", halo)):
            sent = ghosts_of_run.sent_by(places)
            out.put_messages(f"{path}/send_{kind}", sent)
            out.put(f"{path}/send_{kind}/rows", sent.rows, sent.count)
            out.put_messages(f"{path}/receive_{kind}", received[kind])

    def _put_values(self, out: "_PartArrays", places: range, batch: PartBatch) -> None:
        """Coordinates, fields and groups of owned elements and ghosts."""
        # The elements of each set, in local numbers, part after part: owned, then ghosts.
        sets_of_values = {path.split("/")[1] for path in self.subject.values}
        sets_of_tags = {tag.set for tag in self.subject.tags}
        elements = dict[str, NDArray[np.integer]]()
        for name in sets_of_values | sets_of_tags:
            n_owned, owned = self.ordered.runs[name].of_parts(places)
            elements[name] = alternating(
                first=owned,
                n_first=n_owned,
                then=self._local_elements(name, batch.sets[name].copies),
                n_then=batch.sets[name].n_copies,
            )
        # Coordinates and fields.
        for path, values in self.subject.values.items():
            name = path.split("/")[1]
            out.put(path, values[elements[name]], batch.sets[name].size)
        # Groups: the first one of each element, and the further ones of those in several.
        for tag in self.subject.tags:
            of_set = batch.sets[tag.set]
            path = f"{tag.set}/{tag.name}"
            tag_of_parts = replace(tag, values=tag.values[elements[tag.set]])
            out.put(f"tags/{path}", tag_of_parts.first_ids(), of_set.size)
            if (np.diff(tag.group_offset) > 1).any():
                # Pairs of an element and a further group, in the numbers of each part.
                pairs = tag_of_parts.further_ids()
                part = np.searchsorted(of_set.begin, pairs[:, 0], side="right") - 1
                pairs[:, 0] -= of_set.begin[part]
                count = np.bincount(part, minlength=of_set.size.size)
                out.put(f"further_groups/{path}", pairs, count)

    def _local_elements(self, name: str, numbers: Numbers) -> NDArray[np.integer]:
        """Elements in local numbers, by their numbers in the split mesh."""
        # This rank's parts own consecutive numbers.
        run = self.ordered.runs[name]
        parts_of_rank = self.numbers.parts_of_rank
        n_owned = int(run.offset[len(parts_of_rank)])
        first = int(self.numbers.offset[name][parts_of_rank.start])
        owned = (numbers >= first) & (numbers < first + n_owned)
        out = np.empty(numbers.size, run.elements.dtype)
        out[owned] = run.elements[numbers[owned] - first]
        # Look up the others, which other ranks own.
        if not owned.all():
            number, elements = self._of_other_ranks[name]
            out[~owned] = elements[np.searchsorted(number, numbers[~owned])]
        return out

    @cached_property
    def _of_other_ranks(
        self,
    ) -> dict[str, tuple[NDArray[np.integer], NDArray[np.integer]]]:
        """By set: the elements here that other ranks own, by ascending numbers."""
        elements_by_number = dict[str, tuple[NDArray[np.integer], NDArray[np.integer]]]()
        for name, run in self.ordered.runs.items():
            elements = run.elements[run.offset[len(self.numbers.parts_of_rank)] :]
            number = self.numbers.number[name][elements]
            order = np.argsort(number, kind="stable")
            elements_by_number[name] = number[order], elements[order]
        return elements_by_number

    def _put_map(
        self,
        out: "_PartArrays",
        m: SetMap,
        places: range,
        batch: PartBatch,
    ) -> None:
        """The rows of a map of owned elements and exec ghosts."""
        # The rows of each part: owned elements, then exec ghosts.
        owned, elements = self.ordered.runs[m.from_set].of_parts(places)
        n_exec, executed = self.ghosts.elements[m.from_set].of_parts(places)
        rows = alternating(first=elements, n_first=owned, then=executed, n_then=n_exec)
        # Their points in the numbers of the part.
        to = batch.sets[m.to_set]
        counts = np.stack(
            [owned + n_exec, to.owned_start, to.owned, to.exec, to.n_copies], axis=1
        )
        table = _local_rows(
            table=m.table,
            rows=rows,
            number=self.numbers.number[m.to_set],
            copies=to.copies,
            counts=counts,
        )
        out.put(f"maps/{m.name}/table", table, owned + n_exec)

    def _put_partial(
        self,
        out: "_PartArrays",
        name: str,
        places: range,
        batch: PartBatch,
    ) -> None:
        """The messages of a map that exchanges only what it reaches."""
        # Neighbours and rows of the messages that are sent and received.
        ghosts = self.ghosts.partial[name]
        to = batch.sets[self.subject.maps[name].to_set]
        sent = ghosts.sent_by(places)
        received = ghosts.received_by(places)
        out.put_messages(f"partial/{name}/send", sent)
        out.put(f"partial/{name}/send/rows", sent.rows, sent.count)
        out.put_messages(f"partial/{name}/receive", received)
        # Find each received row among the ghosts of its part, by keys of part and number.
        part_of_ghost = _part_of_rows(to.n_copies)
        part_of_row = _part_of_rows(received.count)
        n = np.int64(ghosts.offset[-1])
        ghost_keys = part_of_ghost * n + to.copies
        order = np.argsort(ghost_keys)
        row_keys = part_of_row * n + received.rows
        ghost = order[np.searchsorted(ghost_keys[order], row_keys)]
        # In local numbers ghosts stand behind the owned elements.
        first_ghost = to.owned - begins(to.n_copies)
        rows = ghost + first_ghost[part_of_row]
        out.put(f"partial/{name}/receive/rows", rows.astype(np.int32), received.count)

    def _put_loop(
        self,
        out: "_PartArrays",
        spec: LoopSpec,
        places: range,
        batch: PartBatch,
    ) -> None:
        """Blocks, colours and staging of a loop."""
        loop = spec.loop
        size = self.options.for_names(spec.options).block_elements
        n = batch.loop_rows(loop.name)
        over = batch.sets[loop.over]
        path = f"loops/{loop.name}/s{size}"
        # Blocks of each part.
        counts = zip(
            places, over.core.tolist(), over.owned.tolist(), n.tolist(), strict=True
        )
        ends = [self._block_ends(loop.name, size, *of_part) for of_part in counts]
        blocks = np.array([of_part.size - 1 for of_part in ends])
        out.put(f"{path}/block_offset", np.concatenate(ends), blocks + 1)
        # The parts one after the other, as one loop.
        pieces = [np.zeros(1, np.int64)]
        for ends_of_part, begin in zip(ends, begins(n), strict=True):
            pieces.append(ends_of_part[1:] + begin)
        offset = np.concatenate(pieces)
        maps = {m: batch.joined_map(m, n) for m in loop.maps}
        sizes = batch.joined_sizes
        # Colours of threads and blocks.
        table, n_points = written_table(loop, maps, sizes)
        table = table[: offset[-1]]
        threads = colour_threads(table, n_points, offset)
        out.put(f"{path}/thread_colour", threads.colour, n)
        out.put(f"{path}/thread_colours", threads.count, blocks)
        _put_colours(
            out=out,
            path=path,
            table=table,
            n_points=n_points,
            ends=ends,
            batch=batch,
            loop=loop,
        )
        # Staging, in the numbers of each part.
        staging, local = stage_maps(loop=loop, maps=maps, sizes=sizes, block_offset=offset)
        first_block = begins(blocks)
        for to, staged in staging.items():
            path_of_set = f"{path}/staging/{to}"
            # Offsets of the points of each block, counted from the first block of the part.
            first_point = staged.point_offset[first_block]
            offsets_of_parts = staged.point_offset[ranges(first_block, blocks + 1)]
            offsets_of_parts = offsets_of_parts - np.repeat(first_point, blocks + 1)
            out.put(f"{path_of_set}/point_offset", offsets_of_parts, blocks + 1)
            # The points themselves, in the numbers of the part.
            n_points_of_part = np.diff(staged.point_offset[np.append(first_block, -1)])
            shift = spread(batch.sets[to].begin.astype(np.int32), n_points_of_part)
            exclusive = staged.exclusive.view(np.uint8)
            out.put(f"{path_of_set}/points", staged.points - shift, n_points_of_part)
            out.put(f"{path_of_set}/exclusive", exclusive, n_points_of_part)
        part_ends = np.cumsum(n)[:-1]
        for name, columns in local.items():
            # flat, so that a part's columns are one slice
            columns_of_parts = np.split(columns, part_ends, axis=1)
            flat = [of_part.reshape(-1) for of_part in columns_of_parts]
            out.put(f"{path}/local/{name}", np.concatenate(flat), len(columns) * n)

    def _block_ends(
        self,
        loop: str,
        size: int,
        place: int,
        core: int,
        owned: int,
        n: int,
    ) -> Int64s:
        """Block ends of a part: core, boundary, then exec ghosts; none has two of these."""
        ends = self.ordered.blocks[place].get(loop)
        # A part that was not ordered has blocks of consecutive elements.
        if ends is None:
            in_core = _equal_block_ends(0, core, size)
            in_boundary = _equal_block_ends(core, owned, size)
            ends = np.concatenate([np.zeros(1, np.int64), in_core, in_boundary])
        return np.concatenate([ends, _equal_block_ends(owned, n, size)])


@dataclass(frozen=True)
class _PartArrays:
    """Arrays of a batch, concatenated by part, with the rows of each part."""

    arrays: Arrays
    rows: dict[str, Numbers]

    def put(self, name: str, array: NDArray[Any], count: Numbers) -> None:
        """Put an array, of which each part has ``count`` rows."""
        self.arrays[name] = array
        self.rows[name] = count

    def put_messages(self, name: str, messages: MessageRows) -> None:
        """Put the neighbours of each part, and the first row of each message."""
        # A message begins where the part or its neighbour changes.
        part = _part_of_rows(messages.count)
        other = messages.other
        begins_message = np.ones(part.size, np.bool_)
        begins_message[1:] = part[1:] != part[:-1]
        begins_message[1:] |= other[1:] != other[:-1]
        first = np.flatnonzero(begins_message)
        count = np.bincount(part[first], minlength=messages.count.size)
        within = first - np.repeat(begins(messages.count), count)
        # The offsets of each part end with the number of its rows.
        offset = alternating(
            first=within,
            n_first=count,
            then=messages.count,
            n_then=np.ones_like(count),
        )
        self.put(f"{name}/parts", other[first], count)
        self.put(f"{name}/offset", offset.astype(np.int64), count + 1)


def _part_of_rows(count: Numbers) -> Numbers:
    """Index in the batch of the part that each row belongs to."""
    return np.repeat(np.arange(count.size), count)


def _put_ranges(out: _PartArrays, batch: PartBatch) -> None:
    """The ranges that threads run of the loops in each part, class by class."""
    # Make them part by part, as a part alone has them.
    arrays_of_parts: dict[str, list[NDArray[Any]]] = {}
    for place in range(len(batch.parts)):
        part = batch.alone(place)
        for name, plan in part.joined_loops.items():
            over = part.sets[plan.loop.over]
            class_ends = (int(over.core[0]), int(over.owned[0]))
            with_ranges = replace(plan, ranges=ranges_for(plan, class_ends))
            for path, array in range_arrays(f"loops/{name}", with_ranges).items():
                arrays_of_parts.setdefault(path, []).append(array)
    # Put those of one name one after the other.
    for path, arrays in arrays_of_parts.items():
        sizes = np.array([array.size for array in arrays])
        out.put(path, np.concatenate(arrays), sizes)


def _put_colours(
    out: _PartArrays,
    path: str,
    table: Int32s,
    n_points: int,
    ends: list[Int64s],
    batch: PartBatch,
    loop: Loop,
) -> None:
    """Colours of the blocks of each part, class by class."""
    # Colour part by part; rows begin to end of the table are those of the part.
    over = batch.sets[loop.over]
    begin = 0
    orders = []
    offsets = []
    classes = []
    counts = zip(ends, over.core.tolist(), over.owned.tolist(), strict=True)
    for block_offset, core, owned in counts:
        end = begin + int(block_offset[-1])
        order, offset, colours = _class_colours(
            table=table[begin:end],
            n_points=n_points,
            offset=block_offset,
            classes=(core, owned),
        )
        orders.append(order)
        offsets.append(offset)
        classes.append((colours.core, colours.owned))
        begin = end
    # Put the arrays of all parts one after the other.
    for name, arrays in (("block_order", orders), ("block_colour_offset", offsets)):
        count = np.array([len(array) for array in arrays])
        out.put(f"{path}/{name}", np.concatenate(arrays), count)
    class_ends = np.array(classes, np.int64)
    out.put(f"{path}/classes", class_ends.reshape(-1), np.full(len(ends), 2))


def _equal_block_ends(begin: int, end: int, size: int) -> Int64s:
    """Ends of blocks of ``size`` consecutive elements; the last may have fewer."""
    if begin == end:
        return np.empty(0, np.int64)
    ends_of_full_blocks = np.arange(begin + size, end, size, dtype=np.int64)
    return np.append(ends_of_full_blocks, np.int64(end))


def _class_colours(
    table: Int32s,
    n_points: int,
    offset: Int64s,
    classes: tuple[int, int],
) -> tuple[Int32s, Int64s, ClassColours]:
    """Block order and its offsets by colour; every class has colours of its own."""
    # The first block of each class: core, boundary, exec ghosts.
    block_ends = offset.tolist()
    n_blocks = offset.size - 1
    first = [0, *(bisect_left(block_ends, end) for end in classes), n_blocks]
    # Classes of a single block need no search: a block is a colour.
    if all(high - low < 2 for low, high in pairwise(first)):
        order = np.arange(n_blocks, dtype=np.int32)
        offset_of_colours = np.arange(n_blocks + 1)
        _, first_of_boundary, first_of_ghosts, _ = first
        return order, offset_of_colours, ClassColours(first_of_boundary, first_of_ghosts)
    # Colour the blocks of each class by themselves, and list the colours class by class.
    orders = []
    ends = [np.zeros(1, np.int64)]
    counts = []
    for low, high in pairwise(first):
        begin = int(offset[low])
        end = int(offset[high])
        offset_in_class = offset[low : high + 1] - begin
        colours = colour_blocks(table[begin:end], n_points, offset_in_class)
        orders.append(colours.order + np.int32(low))
        ends.append(colours.offset[1:] + low)
        counts.append(colours.count)
    core, boundary, _ = counts
    return np.concatenate(orders), np.concatenate(ends), ClassColours(core, core + boundary)


@kernel
def _local_rows(
    table: Int32s,
    rows: Int32s,
    number: NDArray[np.integer],
    copies: Int64s,
    counts: Int64s,
) -> Int32s:
    """Rows in local numbers: owned points by their place, ghosts by a search in their runs.

    ``counts`` has a row for each part: its rows here, its first point, and how many points
    it owns, has in the exec run, and has as ghosts.
    """
    out = np.empty((rows.size, table.shape[1]), np.int32)
    row = 0
    first = 0
    for p in range(counts.shape[0]):
        start = counts[p, 1]
        owned = counts[p, 2]
        # its ghosts: the exec run, then the halo run
        executed = first + counts[p, 3]
        last = first + counts[p, 4]
        for i in range(row, row + counts[p, 0]):
            for j in range(table.shape[1]):
                point = number[table[rows[i], j]]
                if start <= point < start + owned:
                    out[i, j] = point - start
                    continue
                # A ghost: look in the exec run, then in the halo run.
                k = first_not_below(values=copies, begin=first, end=executed, value=point)
                if k == executed or copies[k] != point:
                    k = first_not_below(
                        values=copies,
                        begin=executed,
                        end=last,
                        value=point,
                    )
                out[i, j] = owned + k - first
        row = row + counts[p, 0]
        first = last
    return out
