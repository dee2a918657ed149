"""One part from the tables of the whole mesh: local maps, blocks, colours, staging, messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.loops import Loop
from meshprep_runtime.maps import SetMap
from meshprep_runtime.plan import LoopPlan, Variant
from meshprep_runtime.plan.parts import ClassColours, LoopPart, MapPart, PartPlan, SetPart

from ..colour import colour_threads
from ..colour.block_colours import colour_blocks
from ..kernels import kernel
from ..loops.options import Options
from ..loops.reach import written_table
from ..pipeline.variants import stage_maps
from .copies import AllCopies
from .order import OrderedParts
from .subject import SplitSubject


@dataclass(frozen=True, eq=False)
class PartBuilder:
    """Builds parts one after another, with the memory of one.

    Parameters
    ----------
    subject : SplitSubject
    ordered : OrderedParts
    copies : AllCopies
    options : Options
    increments : mapping of loop name to ``"exec"`` or ``"reverse"``
    """

    subject: SplitSubject
    ordered: OrderedParts
    copies: AllCopies
    options: Options
    increments: Mapping[str, str]
    _number: dict[str, NDArray[np.int32]] = field(default_factory=dict, init=False)
    _local: dict[str, NDArray[np.int32]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for name, run in self.ordered.runs.items():
            self._number[name] = run.number
            self._local[name] = np.full(run.elements.size, -1, np.int32)

    @property
    def parts(self) -> int:
        """Number of parts."""
        return len(self.ordered.blocks)

    def build(self, part: int) -> PartPlan:
        """One part. O(its size)."""
        sets = {name: self._set(name, part) for name in self.subject.sizes}
        for name, one in sets.items():
            number = np.arange(one.owned, one.size, dtype=np.int32)
            self._local[name][one.copies] = number
        maps = {name: self._map(m, sets, part) for name, m in self.subject.maps.items()}
        loops = {
            spec.loop.name: self._loop(spec.loop, spec.options, sets, maps, part)
            for spec in self.subject.specs
        }
        partial = {name: self._partial(name, part) for name in self.copies.partial}
        return PartPlan(part, self.parts, self.subject.sizes, sets, maps, loops, partial)

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
            owned_start=int(run.offset[part]),
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
        executed = run.elements[self.copies.executed[m.from_set].rows.of(part)]
        rows = np.concatenate([run.of(part), executed])
        to = sets[m.to_set]
        number, local = self._number[m.to_set], self._local[m.to_set]
        end = to.owned_start + to.owned
        return SetMap(
            m.name,
            m.from_set,
            m.to_set,
            _local_rows(m.table, rows, number, local, to.owned_start, end),
        )

    def _partial(self, name: str, part: int) -> MapPart:
        copies = self.copies.partial[name]
        rows = self._local[self.subject.maps[name].to_set][copies.rows.of(part)]
        return MapPart(copies.send(part), copies.receive(part, rows))

    def _loop(
        self,
        loop: Loop,
        own: Mapping[str, object],
        sets: Mapping[str, SetPart],
        maps: Mapping[str, SetMap],
        part: int,
    ) -> LoopPart:
        options, increments = self.options.for_loop(own), self.increments[loop.name]
        over, size = sets[loop.over], options.block_elements
        n = over.executed if loop.conflict_columns and increments == "exec" else over.owned
        ends = self.ordered.blocks[part].get(loop.name)
        if ends is None:
            ends = np.concatenate([[0], _ends(0, over.core, size), _ends(over.core, over.owned, size)])
        offset = np.concatenate([ends, _ends(over.owned, n, size)])
        tables = {
            name: SetMap(name, loop.over, maps[name].to_set, maps[name].table[:n])
            for name in loop.maps
        }
        sizes = {name: one.size for name, one in sets.items()} | {loop.over: n}
        variant, colours = _variant(loop, tables, sizes, offset, (over.core, over.owned), options)
        plan = LoopPlan(loop, sizes, tables, {variant.name: variant}, variant.name)
        return LoopPart(plan, {variant.name: colours}, increments)


def _ends(begin: int, end: int, size: int) -> NDArray[np.int64]:
    """Where blocks of consecutive elements end."""
    if begin == end:
        return np.empty(0, np.int64)
    return np.append(np.arange(begin + size, end, size, dtype=np.int64), np.int64(end))


def _variant(
    loop: Loop,
    maps: Mapping[str, SetMap],
    sizes: Mapping[str, int],
    offset: NDArray[np.int64],
    classes: tuple[int, int],
    options: Options,
) -> tuple[Variant, ClassColours]:
    """The blocks of a loop, coloured class by class, and staged."""
    table, n_points = written_table(loop, maps, sizes)
    threads = colour_threads(table, n_points, offset)
    order, ends, colours = _class_colours(table, n_points, offset, classes)
    staging, local = stage_maps(loop, maps, sizes, offset)
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
    for low, high in zip(first[:-1], first[1:], strict=True):
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
    number: NDArray[np.int32],
    local: NDArray[np.int32],
    low: int,
    high: int,
) -> NDArray[np.int32]:
    """Rows in local numbers: owned points by their place, copies by ``local``."""
    out = np.empty((rows.size, table.shape[1]), np.int32)
    for i in range(rows.size):
        for j in range(table.shape[1]):
            at = number[table[rows[i], j]]
            out[i, j] = at - low if low <= at < high else local[at]
    return out
