"""One part from the tables that are here: local maps, blocks, colours, staging, messages."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.loops import Loop
from meshprep_runtime.maps import SetMap
from meshprep_runtime.plan import LoopPlan, Variant
from meshprep_runtime.plan.parts import ClassColours, LoopPart, MapPart, PartPlan, SetPart

from ..colour import colour_threads
from ..colour.block_colours import colour_blocks
from ..kernels import helper, kernel
from ..loops.options import Options
from ..loops.reach import written_table
from ..pipeline.variants import stage_maps
from .copies import AllCopies
from .numbers import SplitNumbers
from .order import OrderedParts
from .subject import SplitSubject


@dataclass(frozen=True, eq=False)
class PartBuilder:
    """Builds parts, each on its own; several threads may do so at once."""

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
        """One of the parts that are made here. O(its size)."""
        place = self.numbers.held.index(part)
        if self.ordered.owns_any(place):
            return self._built(part, place)
        start = {name: self.numbers.owned(name, part)[0] for name in self._nothing.sets}
        sets = {n: replace(one, owned_start=start[n]) for n, one in self._nothing.sets.items()}
        return replace(self._nothing, part=part, sets=sets)

    @cached_property
    def _nothing(self) -> PartPlan:
        """The first part that owns nothing; the others are alike, and there may be many."""
        held = self.numbers.held
        place = next(p for p in range(len(held)) if not self.ordered.owns_any(p))
        return self._built(held[place], place)

    def _built(self, part: int, place: int) -> PartPlan:
        sizes = self.numbers.sizes
        sets = {name: self._set(name, place) for name in self.subject.sizes}
        maps = {name: self._map(m, sets, place) for name, m in self.subject.maps.items()}
        loops = {
            spec.loop.name: self._loop(spec.loop, spec.options, sets, maps, place)
            for spec in self.subject.specs
        }
        partial = {name: self._partial(name, sets, place) for name in self.copies.partial}
        return PartPlan(part, self.parts, sizes, sets, maps, loops, partial)

    def _set(self, name: str, part: int) -> SetPart:
        run, executed, halo = (
            self.ordered.runs[name],
            self.copies.executed[name],
            self.copies.halo[name],
        )
        original, elements = self.subject.original.get(name), run.of(part)
        exec_rows, halo_rows = executed.rows.of(part), halo.rows.of(part)
        owned, n_exec = elements.size, exec_rows.size
        place = np.arange(owned, owned + n_exec + halo_rows.size, dtype=np.int32)
        return SetPart(
            owned_start=self.numbers.owned(name, self.numbers.held[part])[0],
            core=int(run.core[part]),
            owned=owned,
            exec=n_exec,
            halo=halo_rows.size,
            copies=np.concatenate([exec_rows, halo_rows]).astype(np.int64),
            original=(elements if original is None else original[elements]).astype(np.int64),
            send_exec=executed.send(part),
            send_halo=halo.send(part),
            receive_exec=executed.receive(part, place[:n_exec]),
            receive_halo=halo.receive(part, place[n_exec:]),
        )

    def _map(self, m: SetMap, sets: Mapping[str, SetPart], part: int) -> SetMap:
        run = self.ordered.runs[m.from_set]
        rows = np.concatenate([run.of(part), self.copies.elements[m.from_set].of(part)])
        to, number = sets[m.to_set], self.numbers.number[m.to_set]
        bounds = to.owned_start, to.owned, to.exec
        table = _local_rows(m.table, rows, number, to.copies, *bounds)
        return SetMap(m.name, m.from_set, m.to_set, table)

    def _partial(self, name: str, sets: Mapping[str, SetPart], part: int) -> MapPart:
        copies, to = self.copies.partial[name], sets[self.subject.maps[name].to_set]
        order = np.argsort(to.copies)
        at = order[np.searchsorted(to.copies[order], copies.rows.of(part))]
        return MapPart(copies.send(part), copies.receive(part, (at + to.owned).astype(np.int32)))

    def _loop(
        self,
        loop: Loop,
        own: Mapping[str, Any],
        sets: Mapping[str, SetPart],
        maps: Mapping[str, SetMap],
        part: int,
    ) -> LoopPart:
        options, increments = self.options.for_loop(own), self.increments[loop.name]
        over, size = sets[loop.over], options.block_elements
        n = over.executed if loop.conflict_columns and increments == "exec" else over.owned
        ends = self.ordered.blocks[part].get(loop.name)
        if ends is None:
            runs = _ends(0, over.core, size), _ends(over.core, over.owned, size)
            ends = np.concatenate([np.zeros(1, np.int64), *runs])
        offset = np.concatenate([ends, _ends(over.owned, n, size)])
        tables = {
            name: SetMap(name, loop.over, maps[name].to_set, maps[name].table[:n])
            for name in loop.maps
        }
        rows, classes = {name: one.size for name, one in sets.items()}, (over.core, over.owned)
        variant, colours = _variant(loop, tables, rows, offset, classes, options)
        sizes = rows | {loop.over: n}
        plan = LoopPlan(loop, sizes, tables, {variant.name: variant}, variant.name, rows=rows)
        return LoopPart(plan, {variant.name: colours}, increments)


def _ends(begin: int, end: int, size: int) -> NDArray[np.int64]:
    """Where blocks of consecutive elements end."""
    if begin == end:
        return np.empty(0, np.int64)
    return np.append(np.arange(begin + size, end, size, dtype=np.int64), np.int64(end))


def _variant(
    loop: Loop,
    maps: Mapping[str, SetMap],
    rows: Mapping[str, int],
    offset: NDArray[np.int64],
    classes: tuple[int, int],
    options: Options,
) -> tuple[Variant, ClassColours]:
    """The blocks of a loop, coloured class by class, and staged."""
    table, n_points = written_table(loop, maps, rows)
    table = table[: offset[-1]]
    threads = colour_threads(table, n_points, offset)
    order, ends, colours = _class_colours(table, n_points, offset, classes)
    staging, local = stage_maps(loop, maps, rows, offset)
    variant = Variant(
        name=f"s{options.block_elements}",
        block_size=options.block_elements,
        target=options.target,
        partitioner=options.partitioner if loop.maps else "contiguous",
        sorted_by_colour=False,
        block_offset=offset,
        block_colour_offset=ends,
        block_order=order,
        thread_colour=threads.colour,
        thread_colours=threads.count,
        staging=staging,
        local=local,
    )
    return variant, colours


def _class_colours(
    table: NDArray[np.int32], n_points: int, offset: NDArray[np.int64], classes: tuple[int, int]
) -> tuple[NDArray[np.int32], NDArray[np.int64], ClassColours]:
    """Block order and its offsets by colour; every class has colours of its own."""
    first = np.searchsorted(offset, [0, *classes, table.shape[0]])
    first[-1] = offset.size - 1
    orders, ends, counts = [], [np.zeros(1, np.int64)], []
    for low, high in pairwise(first):
        begin, end = int(offset[low]), int(offset[high])
        found = colour_blocks(table[begin:end], n_points, offset[low : high + 1] - begin)
        orders.append(found.order + np.int32(low))
        ends.append(found.offset[1:] + low)
        counts.append(found.count)
    core, boundary, _ = counts
    return np.concatenate(orders), np.concatenate(ends), ClassColours(core, core + boundary)


@kernel
def _local_rows(
    table: NDArray[np.int32],
    rows: NDArray[np.int32],
    number: NDArray[np.integer],
    copies: NDArray[np.int64],
    start: int,
    owned: int,
    executed: int,
) -> NDArray[np.int32]:
    """Rows in local numbers: owned points by their place, copies by a search in both their runs."""
    out = np.empty((rows.size, table.shape[1]), np.int32)
    for i in range(rows.size):
        for j in range(table.shape[1]):
            at = number[table[rows[i], j]]
            if start <= at < start + owned:
                out[i, j] = at - start
                continue
            found = _first_not_below(copies, 0, executed, at)
            if found == executed or copies[found] != at:
                found = _first_not_below(copies, executed, copies.size, at)
            out[i, j] = owned + found
    return out


@helper
def _first_not_below(values: NDArray[np.int64], begin: int, end: int, value: int) -> int:
    """Where ``value`` stands, or would stand, in ``values[begin:end]``, which ascend."""
    while begin < end:
        middle = (begin + end) >> 1
        if values[middle] < value:
            begin = middle + 1
        else:
            end = middle
    return begin
