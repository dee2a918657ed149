"""Neighbouring parts together: their arrays one after the other, as a file has them.

Computed for a batch of parts, so that Python's overhead is paid once a batch, not once a
part.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...types.loops import Loop, loop_from_dict
from ...types.maps import SetMap, offsets_of, ranges, read_only
from ..file.schema import RANGE_ARRAYS, RANGES
from ..file.tree import Tree
from ..model import LoopPlan, Ranges, Staging, Variant
from ..ranges import ranges_for
from .model import ClassColours, LoopPart, MapPart, Messages, PartPlan, SetPart

Numbers = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

# The columns of the counts of a set.
COUNTS = ("owned_start", "core", "owned", "exec", "halo")
# The kinds of arrays with a row for each local element. They are called ``KIND/SET/NAME``.
VALUES = ("coordinates", "tags", "fields")
# The kind of arrays with an element and a further group in each row, called likewise.
FURTHER = "further_groups"


def begins(count: Numbers) -> Numbers:
    """Where the rows of each part begin."""
    return np.cumsum(count) - count


def spread(values: NDArray[Any], count: Numbers) -> NDArray[Any]:
    """For each row, the value of its part.

    Of a single part this is one value, which NumPy broadcasts.
    """
    if count.size == 1:
        return values
    return np.repeat(values, count)


def leading(rows: NDArray[Any], n: Numbers, count: Numbers) -> NDArray[Any]:
    """The first ``n`` rows of each part."""
    return _rows_of_parts(rows, begins(count), begins(count) + n)


def trailing(rows: NDArray[Any], n: Numbers, count: Numbers) -> NDArray[Any]:
    """The rows of each part after the first ``n``."""
    return _rows_of_parts(rows, begins(count) + n, np.cumsum(count))


def _rows_of_parts(rows: NDArray[Any], begin: Numbers, end: Numbers) -> NDArray[Any]:
    """The rows from ``begin`` to ``end`` of each part, one part after the other."""
    pieces = [rows[b:e] for b, e in zip(begin.tolist(), end.tolist(), strict=True)]
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate(pieces)


def alternating(
    first: NDArray[Any], n_first: Numbers, then: NDArray[Any], n_then: Numbers
) -> NDArray[Any]:
    """The rows of two lists: of each part those of ``first``, then those of ``then``."""
    ends = zip(np.cumsum(n_first).tolist(), np.cumsum(n_then).tolist(), strict=True)
    pieces = []
    begin_first = 0
    begin_then = 0
    for end_first, end_then in ends:
        pieces.append(first[begin_first:end_first])
        pieces.append(then[begin_then:end_then])
        begin_first = end_first
        begin_then = end_then
    return np.concatenate(pieces)


@dataclass(frozen=True, eq=False)
class SetBatch:
    """The elements of one set that each of ``k`` parts has.

    Counts are (k,); ``copies`` and ``original`` are those of :class:`~.model.SetPart`, one
    part after the other.
    """

    owned_start: Numbers
    core: Numbers
    owned: Numbers
    exec: Numbers
    halo: Numbers
    copies: Numbers
    original: Numbers

    @cached_property
    def executed(self) -> Numbers:
        """Owned and exec elements of each part."""
        return self.owned + self.exec

    @cached_property
    def n_copies(self) -> Numbers:
        """Exec and halo elements of each part."""
        return self.exec + self.halo

    @cached_property
    def size(self) -> Numbers:
        """Local elements of each part."""
        return self.owned + self.n_copies

    @cached_property
    def begin(self) -> Numbers:
        """Where the local elements of each part begin among those of all parts."""
        return begins(self.size)

    @cached_property
    def number(self) -> Numbers:
        """The number in the split mesh of every local element, part after part."""
        return alternating(
            first=ranges(self.owned_start, self.owned),
            n_first=self.owned,
            then=self.copies,
            n_then=self.n_copies,
        )


@dataclass(frozen=True, eq=False)
class MessageBatch:
    """Messages that parts send or receive, part after part.

    Attributes
    ----------
    count : (k,) int64
        Messages of each part.
    part : (n,) int64
        The place in the batch of the part of each message, from 0.
    other : (n,) int32
        The part at the other end.
    length : (n,) int64
        Rows of each message.
    row_count : (k,) int64
        Rows of each part, in all of its messages.
    listed : (rows,) int32 or None
        Local numbers in the part; None where they ascend by 1.
    """

    count: Numbers
    part: Numbers
    other: NDArray[np.int32]
    length: Numbers
    row_count: Numbers
    listed: NDArray[np.int32] | None

    def rows(self, first: Numbers) -> NDArray[np.integer]:
        """The local numbers of all rows; where they are not listed, from ``first`` on."""
        if self.listed is not None:
            return self.listed
        return ranges(first, self.row_count)


@dataclass(frozen=True, eq=False)
class PartBatch:
    """Neighbouring parts of a split.

    Attributes
    ----------
    description : mapping
        What all parts have in common, see "Parts" in docs/plan-format.md.
    parts : range
        Their numbers.
    count : int
        The number of parts of the split.
    arrays : mapping of name to array
        The arrays of all parts, one part after the other.
    rows : mapping of name to (k,) int64
        The rows of each part in an array.
    """

    description: Mapping[str, Any]
    parts: range
    count: int
    arrays: Arrays
    rows: Mapping[str, Numbers]
    _messages: dict[str, MessageBatch] = field(default_factory=dict, init=False)

    def array(self, name: str, *dtypes: str, ndim: int = 1) -> NDArray[Any]:
        """An array of one of these types; raises PlanError where there is none."""
        return self._tree.array(name, *dtypes, ndim=ndim)

    @cached_property
    def _tree(self) -> Tree:
        return Tree(datasets={**self.arrays})

    def alone(self, place: int) -> "PartBatch":
        """The part at a place in the batch, as a batch of its own."""
        arrays = {}
        for name, array in self.arrays.items():
            count = self.rows[name]
            begin = int(count[:place].sum())
            arrays[name] = array[begin : begin + int(count[place])]
        rows = {name: count[place : place + 1] for name, count in self.rows.items()}
        return PartBatch(
            description=self.description,
            parts=self.parts[place : place + 1],
            count=self.count,
            arrays=arrays,
            rows=rows,
        )

    @cached_property
    def sets(self) -> dict[str, SetBatch]:
        """The elements of each set, by its name."""
        return {name: self._set(f"sets/{name}") for name in self.description["sets"]}

    def _set(self, path: str) -> SetBatch:
        counts = self.array(f"{path}/counts", "<i8").reshape(len(self.parts), len(COUNTS))
        owned_start, core, owned, n_exec, n_halo = counts.T
        return SetBatch(
            owned_start=owned_start,
            core=core,
            owned=owned,
            exec=n_exec,
            halo=n_halo,
            copies=self.array(f"{path}/copies", "<i8"),
            original=self.array(f"{path}/original", "<i8"),
        )

    @cached_property
    def values(self) -> dict[str, str]:
        """The set of each array that has a row for every local element."""
        return self._sets_of_kinds(*VALUES)

    @cached_property
    def further(self) -> dict[str, str]:
        """The set of each array of further groups."""
        return self._sets_of_kinds(FURTHER)

    def _sets_of_kinds(self, *kinds: str) -> dict[str, str]:
        set_of_array = {}
        for path in sorted(self.arrays):
            names = path.split("/")
            if names[0] in kinds:
                set_of_array[path] = names[1]
        return set_of_array

    def pairs(self, path: str) -> tuple[Numbers, Numbers]:
        """An array of further groups as elements, numbered over all parts, and groups."""
        element, group = self.array(path, "<i8", ndim=2).T
        begin = self.sets[self.further[path]].begin
        return element + spread(begin, self.rows[path]), group

    def records(self, name: str, elements: Numbers) -> NDArray[np.uint8]:
        """The values of some elements of a set as bytes, (n, bytes).

        They include the number of further groups of each element. ``elements`` are numbered
        over all parts.
        """
        size = int(self.sets[name].size.sum())
        # Collect what each element has: values, and its number of further groups.
        arrays = []
        for path, set_name in self.values.items():
            if set_name == name:
                arrays.append(self.arrays[path])
        for path, set_name in self.further.items():
            if set_name == name:
                elements_in_groups, _ = self.pairs(path)
                arrays.append(np.bincount(elements_in_groups, minlength=size))
        # Bytes compare any dtype, NaN included.
        rows = [np.empty((elements.size, 0), np.uint8)]
        if size:
            for array in arrays:
                all_bytes = np.ascontiguousarray(array).view(np.uint8).reshape(size, -1)
                rows.append(all_bytes[elements])
        return np.concatenate(rows, axis=1)

    def messages(self, path: str) -> MessageBatch:
        """The messages under a path, computed once."""
        if path not in self._messages:
            # Offsets of all parts stand one behind the other, each with one entry more than
            # it has messages.
            count = self.rows[f"{path}/parts"]
            offset = self.array(f"{path}/offset", "<i8")
            part, others, row_count = self.neighbours(path)
            length = np.diff(offset)
            # Leave out the differences between the offsets of two parts.
            if count.size > 1:
                length = np.delete(length, np.cumsum(count + 1)[:-1] - 1)
            listed = None
            if f"{path}/rows" in self.rows:
                listed = self.array(f"{path}/rows", "<i4")
            self._messages[path] = MessageBatch(
                count=count,
                part=part,
                other=others,
                length=length,
                row_count=row_count,
                listed=listed,
            )
        return self._messages[path]

    def neighbours(self, path: str) -> tuple[Numbers, NDArray[np.int32], Numbers]:
        """The parts at both ends of each message, and the rows of each part, (k,).

        The part at this end is its place in the batch.
        """
        part = np.repeat(np.arange(len(self.parts)), self.rows[f"{path}/parts"])
        offset = self.array(f"{path}/offset", "<i8")
        row_count = offset[np.cumsum(self.rows[f"{path}/offset"]) - 1]
        return part, self.array(f"{path}/parts", "<i4"), row_count

    @cached_property
    def loops(self) -> dict[str, Loop]:
        """The loops of the parts, by name."""
        loops = {}
        for name, words in self._words.items():
            loops[name] = loop_from_dict(name, words, f"loop {name}")
        return loops

    @property
    def _words(self) -> Mapping[str, Any]:
        """The description of each loop."""
        words: Mapping[str, Any] = self.description["loops"]
        return words

    def loop_rows(self, name: str) -> Numbers:
        """The number of elements that each part runs a loop over, (k,)."""
        loop = self.loops[name]
        over = self.sets[loop.over]
        if loop.conflict_columns and self._words[name]["increments"] == "exec":
            return over.executed
        return over.owned

    @cached_property
    def joined_loops(self) -> dict[str, LoopPlan]:
        """Each loop of all parts as one, over local elements of one part after another.

        Colours keep their numbers, as blocks of two parts have no points in common. For
        parts that :func:`~.structure.check_batch` has checked.
        """
        return {name: self._joined_loop(name) for name in self.loops}

    def _joined_loop(self, name: str) -> LoopPlan:
        # Join the maps and variants of the parts, as if they were one mesh.
        loop = self.loops[name]
        n = self.loop_rows(name)
        maps = {m: self.joined_map(m, n) for m in loop.maps}
        rows = self.joined_sizes
        words = self._words[name]
        variants = {}
        for label in words["variants"]:
            variants[label] = self._joined_variant(loop=name, name=label, n=n, maps=maps)
        # The loop runs over fewer elements than its dats have rows.
        sizes = rows | {loop.over: int(n.sum())}
        ranges = None
        if self.has_ranges(name):
            ranges = self._joined_ranges(f"loops/{name}/{RANGES}", n)
        return LoopPlan(
            loop=loop,
            sizes=sizes,
            maps=maps,
            variants=variants,
            default=words["default"],
            rows=rows,
            ranges=ranges,
        )

    def has_ranges(self, loop: str) -> bool:
        """False for a loop in a file of an older version."""
        return f"loops/{loop}/{RANGES}/offset" in self.rows

    @property
    def joined_sizes(self) -> dict[str, int]:
        """By set name, the local elements of all parts together."""
        return {name: int(of_set.size.sum()) for name, of_set in self.sets.items()}

    def joined_map(self, name: str, n: Numbers) -> SetMap:
        """A map of all parts as one, with the first ``n`` rows of each part, (k,).

        Points are numbered over all parts.
        """
        from_set, to_set, _ = self.description["maps"][name]
        table = self.array(f"maps/{name}/table", "<i4", ndim=2)
        count = self.sets[from_set].executed
        if len(self.parts) > 1:
            begin = self.sets[to_set].begin.astype(np.int32)
            table = table + np.repeat(begin, count)[:, None]
        return SetMap(
            name=name, from_set=from_set, to_set=to_set, table=leading(table, n, count)
        )

    def _joined_variant(
        self, loop: str, name: str, n: Numbers, maps: Mapping[str, SetMap]
    ) -> Variant:
        path = f"loops/{loop}/{name}"
        words = self._words[loop]["variants"][name]
        order, colour_offset = self._joined_colours(path)
        # Local maps are of blocks: they stay, while lists of points get the numbers of the
        # joined sets.
        staging: dict[str, Staging] = {}
        local = {}
        for label, m in maps.items():
            local[label] = self._joined_local(f"{path}/local/{label}", m.arity, n)
            if m.to_set not in staging:
                staging_path = f"{path}/staging/{m.to_set}"
                staging[m.to_set] = self._joined_staging(staging_path, m.to_set)
        return Variant(
            name=name,
            block_size=words["block_size"],
            target=words["target"],
            partitioner=words["partitioner"],
            sorted_by_colour=False,
            block_offset=self._joined_offset(f"{path}/block_offset", n),
            block_colour_offset=colour_offset,
            block_order=order,
            thread_colour=self.array(f"{path}/thread_colour", "|u1", "<u2"),
            thread_colours=self.array(f"{path}/thread_colours", "<i4"),
            staging=staging,
            local=local,
        )

    def _joined_offset(self, name: str, total: Numbers) -> Numbers:
        """The offsets of all parts as one; those of a part go from 0 to its total."""
        offset = self.array(name, "<i8")
        count = self.rows[name]
        if count.size == 1:
            return offset
        return np.delete(offset + np.repeat(begins(total), count), begins(count)[1:])

    def _joined_colours(self, path: str) -> tuple[NDArray[np.int32], Numbers]:
        """The blocks of all parts by colour, in a colour part after part; and offsets."""
        order = self.array(f"{path}/block_order", "<i4")
        name = f"{path}/block_colour_offset"
        offset = self.array(name, "<i8")
        count = self.rows[name]
        if count.size == 1:
            return order, offset
        n_blocks = self.rows[f"{path}/block_order"]
        # Find the colour of each block in the order, leaving out what lies between parts.
        length = np.delete(np.diff(offset), np.cumsum(count)[:-1] - 1)
        colour = np.repeat(ranges(0, count - 1), length)
        joined = order + np.repeat(begins(n_blocks).astype(np.int32), n_blocks)
        size = np.bincount(colour, minlength=int(count.max()) - 1)
        return joined[np.argsort(colour, kind="stable")], offsets_of(size)

    def _joined_ranges(self, path: str, n: Numbers) -> Ranges:
        """The ranges of all parts; the turns of a part follow those of the one before."""
        count = self.rows[f"{path}/order"]
        n_waits = self.rows[f"{path}/waits"]
        order = self.array(f"{path}/order", "<i4")
        waits = self.array(f"{path}/waits", "<i4")
        # Turns are numbered part by part: shift those of later parts.
        if count.size > 1:
            first = begins(count).astype(np.int32)
            order = order + np.repeat(first, count)
            waits = waits + np.repeat(first, n_waits)
        return Ranges(
            offset=self._joined_offset(f"{path}/offset", n),
            order=order,
            wait_offset=self._joined_offset(f"{path}/wait_offset", n_waits),
            waits=waits,
        )

    def _joined_staging(self, path: str, to_set: str) -> Staging:
        points = self.array(f"{path}/points", "<i4")
        count = self.rows[f"{path}/points"]
        if count.size > 1:
            points = points + np.repeat(self.sets[to_set].begin.astype(np.int32), count)
        return Staging(
            point_offset=self._joined_offset(f"{path}/point_offset", count),
            points=points,
            exclusive=self.array(f"{path}/exclusive", "|u1").view(np.bool_),
        )

    def _joined_local(self, name: str, arity: int, n: Numbers) -> NDArray[np.uint16]:
        flat = self.array(name, "<u2")
        if n.size == 1:
            return flat.reshape(arity, -1)
        ends = arity * np.cumsum(n[:-1])
        tables = [piece.reshape(arity, -1) for piece in np.split(flat, ends)]
        return np.hstack(tables)


def split_pairs(batch: PartBatch, path: str) -> tuple[Numbers, Numbers]:
    """An array of further groups, in numbers of the split mesh.

    Returns the rows of owned elements and those of copies, each (m, 2).
    """
    of_set = batch.sets[batch.further[path]]
    element, group = batch.pairs(path)
    local_number = element - spread(of_set.begin, batch.rows[path])
    is_owned = local_number < spread(of_set.owned, batch.rows[path])
    rows = np.column_stack([of_set.number[element], group])
    return rows[is_owned], rows[~is_owned]


def range_arrays(path: str, plan: LoopPlan) -> Arrays:
    """The arrays of the ranges of a loop by their names in a file; empty without ranges."""
    if plan.ranges is None:
        return {}
    return {f"{path}/{RANGES}/{name}": getattr(plan.ranges, name) for name in RANGE_ARRAYS}


def loops_of(description: Mapping[str, Any]) -> dict[str, Loop]:
    """The loops that a description names."""
    return {
        name: loop_from_dict(name, words, name)
        for name, words in description["loops"].items()
    }


def part_of(batch: PartBatch) -> PartPlan:
    """The plan of the only part of a batch.

    :func:`~.structure.check_batch` has checked it. O(size of the part).
    """
    words = batch.description
    # Take the arrays of the part out of the batch, in the objects that a solver reads.
    maps = {}
    for name, (from_set, _, _) in words["maps"].items():
        maps[name] = batch.joined_map(name, batch.sets[from_set].executed)
    partial = {}
    for name in words["partial"]:
        partial[name] = MapPart(
            send=_read_messages(batch, f"partial/{name}/send"),
            receive=_read_messages(batch, f"partial/{name}/receive"),
        )
    coordinates = {}
    for path, array in batch.arrays.items():
        kind, *names = path.split("/")
        if kind == "coordinates":
            coordinates[names[0]] = array
    return PartPlan(
        part=batch.parts.start,
        parts=batch.count,
        sizes=words["sets"],
        sets={name: _set_part(batch, name) for name in words["sets"]},
        maps=maps,
        loops={name: _loop_part(batch, name) for name in words["loops"]},
        partial=partial,
        coordinates=coordinates,
        tags=_arrays_by_set(batch.arrays, "tags"),
        fields=_arrays_by_set(batch.arrays, "fields"),
        further_groups=_arrays_by_set(batch.arrays, FURTHER),
        group_names=_group_names(words.get("group_names", {})),
    )


def _arrays_by_set(arrays: Arrays, kind: str) -> dict[str, Arrays]:
    """The arrays of one kind, by set and name."""
    by_set: dict[str, Arrays] = {}
    for path, array in arrays.items():
        first, *names = path.split("/")
        if first == kind:
            by_set.setdefault(names[0], {})[names[-1]] = read_only(array)
    return by_set


def _group_names(words: Mapping[str, Any]) -> dict[str, dict[str, dict[int, str | None]]]:
    """The names of groups by set, tag and number; numbers are texts in JSON."""
    names_by_set: dict[str, dict[str, dict[int, str | None]]] = {}
    for set_name, tags in words.items():
        names_by_set[set_name] = {}
        for tag, names in tags.items():
            names_by_set[set_name][tag] = {int(n): name for n, name in names.items()}
    return names_by_set


def _set_part(batch: PartBatch, name: str) -> SetPart:
    of_set = batch.sets[name]
    path = f"sets/{name}"
    owned = int(of_set.owned[0])
    n_exec = int(of_set.exec[0])
    n_halo = int(of_set.halo[0])
    # The rows that are received follow the owned ones: exec, then halo.
    copies = np.arange(owned, owned + n_exec + n_halo, dtype=np.int32)
    return SetPart(
        owned_start=int(of_set.owned_start[0]),
        core=int(of_set.core[0]),
        owned=owned,
        exec=n_exec,
        halo=n_halo,
        copies=of_set.copies,
        original=of_set.original,
        send_exec=_read_messages(batch, f"{path}/send_exec"),
        send_halo=_read_messages(batch, f"{path}/send_halo"),
        receive_exec=_read_messages(batch, f"{path}/receive_exec", copies[:n_exec]),
        receive_halo=_read_messages(batch, f"{path}/receive_halo", copies[n_exec:]),
    )


def _read_messages(
    batch: PartBatch, path: str, rows: NDArray[np.int32] | None = None
) -> Messages:
    """Messages of the given rows; without them, of the rows in the file."""
    if rows is None:
        rows = batch.array(f"{path}/rows", "<i4")
    return Messages(
        parts=batch.array(f"{path}/parts", "<i4"),
        offset=batch.array(f"{path}/offset", "<i8"),
        rows=rows,
    )


def _loop_part(batch: PartBatch, name: str) -> LoopPart:
    plan = batch.joined_loops[name]
    words = batch.description["loops"][name]
    if plan.ranges is None:
        # A file of an older version has no ranges: make them.
        over = batch.sets[plan.loop.over]
        ends_of_classes = (int(over.core[0]), int(over.owned[0]))
        plan = replace(plan, ranges=ranges_for(plan, ends_of_classes))
    colours = {}
    for label in plan.variants:
        core, owned = batch.array(f"loops/{name}/{label}/classes", "<i8").tolist()
        colours[label] = ClassColours(core=core, owned=owned)
    return LoopPart(plan=plan, colours=colours, increments=words["increments"])
