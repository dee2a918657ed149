"""Neighbouring parts together: the arrays of each stand one after the other, as a file has them.

What is found for all of them at once takes the interpreter's time once.
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
# Of a variant.
WORDS = ("block_size", "target", "partitioner")
COUNTS = ("owned_start", "core", "owned", "exec", "halo")
# What has a row for each local element, and the rows of further groups: ``KIND/SET/NAME``.
VALUES, FURTHER = ("coordinates", "tags", "fields"), "further_groups"


def begins(count: Numbers) -> Numbers:
    """Where the rows of each part begin."""
    return np.cumsum(count) - count


def spread(values: NDArray[Any], count: Numbers) -> NDArray[Any]:
    """The value of its part for each row; that of a single part alone, as NumPy repeats it."""
    return values if count.size == 1 else np.repeat(values, count)


def leading(rows: NDArray[Any], n: Numbers, count: Numbers) -> NDArray[Any]:
    """The first ``n`` rows of each part."""
    return _pieces(rows, begins(count), begins(count) + n)


def trailing(rows: NDArray[Any], n: Numbers, count: Numbers) -> NDArray[Any]:
    """The rows of each part after the first ``n``."""
    return _pieces(rows, begins(count) + n, np.cumsum(count))


def _pieces(rows: NDArray[Any], begin: Numbers, end: Numbers) -> NDArray[Any]:
    found = [rows[b:e] for b, e in zip(begin.tolist(), end.tolist(), strict=True)]
    return found[0] if len(found) == 1 else np.concatenate(found)


def alternating(
    first: NDArray[Any], n_first: Numbers, then: NDArray[Any], n_then: Numbers
) -> NDArray[Any]:
    """The rows of two lists: of each part those of the first, and after them those of the other."""
    ends = zip(np.cumsum(n_first).tolist(), np.cumsum(n_then).tolist(), strict=True)
    found, a, b = [], 0, 0
    for end_a, end_b in ends:
        found += [first[a:end_a], then[b:end_b]]
        a, b = end_a, end_b
    return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class SetBatch:
    """The elements of one set that each part has; (k,) numbers of ``k`` parts."""

    owned_start: Numbers
    core: Numbers
    owned: Numbers
    exec: Numbers
    halo: Numbers
    copies: Numbers  # those of one part after the other, as :class:`~.model.SetPart` has them
    original: Numbers

    @cached_property
    def executed(self) -> Numbers:
        return self.owned + self.exec

    @cached_property
    def n_copies(self) -> Numbers:
        return self.exec + self.halo

    @cached_property
    def size(self) -> Numbers:
        return self.owned + self.n_copies

    @cached_property
    def begin(self) -> Numbers:
        """Where the local elements of each part begin among those of all."""
        return begins(self.size)

    @cached_property
    def number(self) -> Numbers:
        """The number in the split mesh of every local element, part after part."""
        own = ranges(self.owned_start, self.owned)
        return alternating(own, self.owned, self.copies, self.n_copies)


@dataclass(frozen=True, eq=False)
class MessageBatch:
    """Messages that parts send or receive, part after part."""

    count: Numbers  # (k,): messages of each part
    part: Numbers  # (n,): the place of the part, from 0
    other: NDArray[np.int32]  # (n,): the part at the other end
    length: Numbers  # (n,): rows
    row_count: Numbers  # (k,): rows of each part
    listed: NDArray[np.int32] | None  # local numbers of the part; None where they ascend by 1

    def rows(self, first: Numbers) -> NDArray[np.integer]:
        """Local numbers of the part, from ``first`` on where they are not listed."""
        if self.listed is not None:
            return self.listed
        return ranges(first, self.row_count)


@dataclass(frozen=True, eq=False)
class PartBatch:
    """Neighbouring parts of a split."""

    description: Mapping[str, Any]
    parts: range
    count: int  # parts of the split
    arrays: Arrays  # by name, docs/plan-format.md, "Parts"
    rows: Mapping[str, Numbers]  # by name: (k,) rows of each part
    _messages: dict[str, MessageBatch] = field(default_factory=dict, init=False)

    def array(self, name: str, *dtypes: str, ndim: int = 1) -> NDArray[Any]:
        """An array of one of these types; PlanError where there is none."""
        return self._tree.array(name, *dtypes, ndim=ndim)

    @cached_property
    def _tree(self) -> Tree:
        return Tree(datasets={**self.arrays})

    def alone(self, place: int) -> "PartBatch":
        """One of the parts."""
        low = {name: int(count[:place].sum()) for name, count in self.rows.items()}
        cut = {n: slice(low[n], low[n] + int(c[place])) for n, c in self.rows.items()}
        arrays = {name: array[cut[name]] for name, array in self.arrays.items()}
        rows = {name: count[place : place + 1] for name, count in self.rows.items()}
        return PartBatch(self.description, self.parts[place : place + 1], self.count, arrays, rows)

    @cached_property
    def sets(self) -> dict[str, SetBatch]:
        return {name: self._set(f"sets/{name}") for name in self.description["sets"]}

    def _set(self, at: str) -> SetBatch:
        counts = self.array(f"{at}/counts", "<i8").reshape(len(self.parts), len(COUNTS))
        copies, original = (self.array(f"{at}/{n}", "<i8") for n in ("copies", "original"))
        start, core, owned, n_exec, n_halo = counts.T
        return SetBatch(start, core, owned, n_exec, n_halo, copies, original)

    @cached_property
    def values(self) -> dict[str, str]:
        """The set of each array that has a row for every local element."""
        return self._sets_of_kinds(*VALUES)

    @cached_property
    def further(self) -> dict[str, str]:
        """The set of each array of further groups."""
        return self._sets_of_kinds(FURTHER)

    def _sets_of_kinds(self, *kinds: str) -> dict[str, str]:
        words = {at: at.split("/") for at in sorted(self.arrays)}
        return {at: names[1] for at, names in words.items() if names[0] in kinds}

    def pairs(self, at: str) -> tuple[Numbers, Numbers]:
        """Further groups: the element among those of all parts, and the group."""
        element, group = self.array(at, "<i8", ndim=2).T
        return element + spread(self.sets[self.further[at]].begin, self.rows[at]), group

    def records(self, name: str, at: Numbers) -> NDArray[np.uint8]:
        """(n, bytes): the values of some elements of a set, and how many further groups they have.

        ``at`` are their places among those of all parts.
        """
        size = int(self.sets[name].size.sum())
        arrays = [self.arrays[one] for one, on in self.values.items() if on == name]
        further = [self.pairs(one)[0] for one, on in self.further.items() if on == name]
        arrays += [np.bincount(element, minlength=size) for element in further]
        rows = [
            np.ascontiguousarray(a).view(np.uint8).reshape(size, -1)[at] for a in arrays if size
        ]
        return np.concatenate([np.empty((at.size, 0), np.uint8), *rows], axis=1)

    def messages(self, at: str) -> MessageBatch:
        """Messages by their place, found once."""
        if at not in self._messages:
            count, offset = self.rows[f"{at}/parts"], self.array(f"{at}/offset", "<i8")
            part, others, row_count = self.neighbours(at)
            length = np.diff(offset)
            if count.size > 1:
                length = np.delete(length, np.cumsum(count + 1)[:-1] - 1)
            listed = self.array(f"{at}/rows", "<i4") if f"{at}/rows" in self.rows else None
            self._messages[at] = MessageBatch(count, part, others, length, row_count, listed)
        return self._messages[at]

    def neighbours(self, at: str) -> tuple[Numbers, NDArray[np.int32], Numbers]:
        """Of messages the places of the parts, and the parts at the other ends; rows of each part.

        Rows are (k,): of all messages of a part together.
        """
        part = np.repeat(np.arange(len(self.parts)), self.rows[f"{at}/parts"])
        offset = self.array(f"{at}/offset", "<i8")
        ends = offset[np.cumsum(self.rows[f"{at}/offset"]) - 1]
        return part, self.array(f"{at}/parts", "<i4"), ends

    @cached_property
    def loops(self) -> dict[str, Loop]:
        return {name: loop_from_dict(name, w, f"loop {name}") for name, w in self._words.items()}

    @property
    def _words(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.description["loops"]
        return found

    def loop_rows(self, name: str) -> Numbers:
        """(k,): the elements that each part runs a loop over."""
        loop = self.loops[name]
        over = self.sets[loop.over]
        again = loop.conflict_columns and self._words[name]["increments"] == "exec"
        return over.executed if again else over.owned

    @cached_property
    def joined_loops(self) -> dict[str, LoopPlan]:
        """Each loop of all parts as one: their local elements stand one after the other.

        Colours keep their numbers: blocks of two parts touch nothing in common. For parts that
        :func:`~.structure.check_batch` has looked at.
        """
        return {name: self._joined_loop(name) for name in self.loops}

    def _joined_loop(self, name: str) -> LoopPlan:
        loop, n = self.loops[name], self.loop_rows(name)
        maps, rows = {m: self.joined_map(m, n) for m in loop.maps}, self.joined_sizes
        words = self._words[name]
        variants = {v: self._joined_variant(name, v, n, maps) for v in words["variants"]}
        sizes = rows | {loop.over: int(n.sum())}
        ranges = self._joined_ranges(f"loops/{name}/{RANGES}", n) if self.has_ranges(name) else None
        return LoopPlan(loop, sizes, maps, variants, words["default"], rows=rows, ranges=ranges)

    def has_ranges(self, loop: str) -> bool:
        """False for a loop in a file of before."""
        return f"loops/{loop}/{RANGES}/offset" in self.rows

    @property
    def joined_sizes(self) -> dict[str, int]:
        """By set name: local elements of all parts."""
        return {name: int(one.size.sum()) for name, one in self.sets.items()}

    def joined_map(self, name: str, n: Numbers) -> SetMap:
        """The first rows of each part, (k,) of them, in numbers of all local elements."""
        start, to, _ = self.description["maps"][name]
        table, count = self.array(f"maps/{name}/table", "<i4", ndim=2), self.sets[start].executed
        if len(self.parts) > 1:
            table = table + np.repeat(self.sets[to].begin.astype(np.int32), count)[:, None]
        return SetMap(name, start, to, leading(table, n, count))

    def _joined_variant(
        self, loop: str, name: str, n: Numbers, maps: Mapping[str, SetMap]
    ) -> Variant:
        at, words = f"loops/{loop}/{name}", self._words[loop]["variants"][name]
        order, colour_offset = self._joined_colours(at)
        to_sets = dict.fromkeys(m.to_set for m in maps.values())
        return Variant(
            name,
            **{word: words[word] for word in WORDS},
            sorted_by_colour=False,
            block_offset=self._joined_offset(f"{at}/block_offset", n),
            block_colour_offset=colour_offset,
            block_order=order,
            thread_colour=self.array(f"{at}/thread_colour", "|u1", "<u2"),
            thread_colours=self.array(f"{at}/thread_colours", "<i4"),
            staging={to: self._joined_staging(f"{at}/staging/{to}", to) for to in to_sets},
            local={m: self._joined_local(f"{at}/local/{m}", maps[m].arity, n) for m in maps},
        )

    def _joined_offset(self, name: str, total: Numbers) -> Numbers:
        """Offsets of all parts as one; each begins with 0 and ends with its total."""
        offset, count = self.array(name, "<i8"), self.rows[name]
        if count.size == 1:
            return offset
        return np.delete(offset + np.repeat(begins(total), count), begins(count)[1:])

    def _joined_colours(self, at: str) -> tuple[NDArray[np.int32], Numbers]:
        """Blocks by colour, those of one part after those of another in each; and the offset."""
        order = self.array(f"{at}/block_order", "<i4")
        name = f"{at}/block_colour_offset"
        offset, count = self.array(name, "<i8"), self.rows[name]
        if count.size == 1:
            return order, offset
        blocks = self.rows[f"{at}/block_order"]
        length = np.delete(np.diff(offset), np.cumsum(count)[:-1] - 1)
        colour = np.repeat(ranges(0, count - 1), length)
        joined = order + np.repeat(begins(blocks).astype(np.int32), blocks)
        size = np.bincount(colour, minlength=int(count.max()) - 1)
        return joined[np.argsort(colour, kind="stable")], offsets_of(size)

    def _joined_ranges(self, at: str, n: Numbers) -> Ranges:
        """The ranges of all parts, and the turns of one part after those of another."""
        count, waits = self.rows[f"{at}/order"], self.rows[f"{at}/waits"]
        order, awaited = (self.array(f"{at}/{name}", "<i4") for name in ("order", "waits"))
        if count.size > 1:
            before = begins(count).astype(np.int32)
            order = order + np.repeat(before, count)
            awaited = awaited + np.repeat(before, waits)
        offset = self._joined_offset(f"{at}/offset", n)
        return Ranges(offset, order, self._joined_offset(f"{at}/wait_offset", waits), awaited)

    def _joined_staging(self, at: str, to: str) -> Staging:
        points, count = self.array(f"{at}/points", "<i4"), self.rows[f"{at}/points"]
        if count.size > 1:
            points = points + np.repeat(self.sets[to].begin.astype(np.int32), count)
        exclusive = self.array(f"{at}/exclusive", "|u1").view(np.bool_)
        return Staging(self._joined_offset(f"{at}/point_offset", count), points, exclusive)

    def _joined_local(self, name: str, arity: int, n: Numbers) -> NDArray[np.uint16]:
        flat = self.array(name, "<u2")
        if n.size == 1:
            return flat.reshape(arity, -1)
        ends = arity * np.cumsum(n[:-1])
        return np.hstack([one.reshape(arity, -1) for one in np.split(flat, ends)])


def split_pairs(batch: PartBatch, at: str) -> tuple[Numbers, Numbers]:
    """Further groups in numbers of the split mesh: (m, 2) rows of owned elements, and of copies."""
    one, (element, group) = batch.sets[batch.further[at]], batch.pairs(at)
    begin, owned = (spread(v, batch.rows[at]) for v in (one.begin, one.owned))
    rows = np.column_stack([one.number[element], group])
    return rows[element - begin < owned], rows[element - begin >= owned]


def range_arrays(at: str, plan: LoopPlan) -> Arrays:
    """The ranges of a loop, where it has them."""
    return {
        f"{at}/{RANGES}/{name}": getattr(plan.ranges, name)
        for name in RANGE_ARRAYS
        if plan.ranges is not None
    }


def loops_of(description: Mapping[str, Any]) -> dict[str, Loop]:
    """The loops that a description names."""
    return {name: loop_from_dict(name, words, name) for name, words in description["loops"].items()}


def part_of(batch: PartBatch) -> PartPlan:
    """A part alone, which :func:`~.structure.check_batch` has looked at; O(its size)."""
    words, arrays = batch.description, batch.arrays
    return PartPlan(
        batch.parts.start,
        batch.count,
        words["sets"],
        {name: _set_part(batch, name) for name in words["sets"]},
        {
            name: batch.joined_map(name, batch.sets[m[0]].executed)
            for name, m in words["maps"].items()
        },
        {name: _loop_part(batch, name) for name in words["loops"]},
        {
            name: MapPart(
                *(_read_messages(batch, f"partial/{name}/{w}") for w in ("send", "receive"))
            )
            for name in words["partial"]
        },
        {name: array for at, array in arrays.items() for name in _names(at, "coordinates")},
        **{kind: _by_set(arrays, kind) for kind in ("tags", "fields", FURTHER)},
        group_names={
            name: {tag: {int(k): own for k, own in named.items()} for tag, named in tags.items()}
            for name, tags in words.get("group_names", {}).items()
        },
    )


def _names(at: str, kind: str) -> list[str]:
    """The names after the kind of an array, none where it is of another."""
    first, *names = at.split("/")
    return names if first == kind else []


def _by_set(arrays: Arrays, kind: str) -> dict[str, Arrays]:
    found: dict[str, Arrays] = {}
    for at, array in arrays.items():
        if names := _names(at, kind):
            found.setdefault(names[0], {})[names[-1]] = read_only(array)
    return found


def _set_part(batch: PartBatch, name: str) -> SetPart:
    one, at = batch.sets[name], f"sets/{name}"
    numbers = (one.owned_start, one.core, one.owned, one.exec, one.halo)
    start, core, owned, n_exec, n_halo = (int(number[0]) for number in numbers)
    # what is received stands one after the other
    rows = np.arange(owned, owned + n_exec + n_halo, dtype=np.int32)
    messages = {
        f"{way}_{kind}": _read_messages(
            batch, f"{at}/{way}_{kind}", own if way == "receive" else None
        )
        for kind, own in (("exec", rows[:n_exec]), ("halo", rows[n_exec:]))
        for way in ("send", "receive")
    }
    return SetPart(start, core, owned, n_exec, n_halo, one.copies, one.original, **messages)


def _read_messages(batch: PartBatch, at: str, rows: NDArray[np.int32] | None = None) -> Messages:
    parts, offset = batch.array(f"{at}/parts", "<i4"), batch.array(f"{at}/offset", "<i8")
    return Messages(parts, offset, batch.array(f"{at}/rows", "<i4") if rows is None else rows)


def _loop_part(batch: PartBatch, name: str) -> LoopPart:
    plan, words = batch.joined_loops[name], batch.description["loops"][name]
    if plan.ranges is None:
        # a file of before
        over = batch.sets[plan.loop.over]
        found = ranges_for(plan, (int(over.core[0]), int(over.owned[0])))
        plan = replace(plan, ranges=found)
    colours = {
        label: ClassColours(*batch.array(f"loops/{name}/{label}/classes", "<i8").tolist())
        for label in plan.variants
    }
    return LoopPart(plan, colours, words["increments"])
