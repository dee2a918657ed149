"""The mesh that a file of parts holds, put together from the parts, or slices of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.plan.parts import kept, parts_table
from meshprep_runtime.plan.parts.batch import (
    FURTHER,
    PartBatch,
    SetBatch,
    leading,
    loops_of,
    split_pairs,
)
from meshprep_runtime.plan.parts.slices import PartsTable
from meshprep_runtime.plan.parts.store import about, read_batch
from meshprep_runtime.types.maps import SetMap, ranges

from ...kernels.parallel import give_back
from ...loops.requests import LoopSpec
from ...mesh import Tag
from ..homes import Homes
from ..ranks import ALONE, Ranks, agreed, in_turn, of_root
from ..subject import KEPT, SplitSubject, known_tags, tag_of_ids


def joined_subject(path: Path, ranks: Ranks = ALONE) -> SplitSubject:
    """The sets, maps and loops of a file of parts, in the order of its first split.

    That is the split into the smallest number of parts. Each rank gets the rows that are at
    home there. Raises PlanError where a part is damaged; on every rank. O(n / ranks) and as
    much memory, and a part.
    """

    def first_split() -> tuple[PartsTable, dict[str, Any]]:
        n_parts = kept(path)[0]
        return parts_table(path, n_parts), about(path)

    table, origin = of_root(ranks, first_split)
    description = table.description
    sizes = {name: int(size) for name, size in description["sets"].items()}
    specs = tuple(
        LoopSpec(loop, _options_of_loop(description["loops"][name]))
        for name, loop in loops_of(description).items()
    )
    # Read the rows of all parts, and keep those that are at home here.
    elements_here = {name: Homes(n, ranks).own for name, n in sizes.items()}
    rows = _RowsHere(elements_here)
    agreed(ranks, lambda: rows.read(path, table))
    maps = {
        name: SetMap(
            name=name,
            from_set=start,
            to_set=to,
            table=rows.joined(f"map {name}", arity),
        )
        for name, (start, to, arity) in description["maps"].items()
    }
    subject = SplitSubject(
        sizes=sizes,
        maps=maps,
        specs=specs,
        original={name: rows.joined(f"original {name}") for name in sizes},
        source_hash=origin["source_hash"],
        cell_types=tuple(origin.get("cell_types", ())),
        blocks={spec.loop.name: rows.joined(f"block {spec.loop.name}") for spec in specs},
        values={
            dataset.name: rows.joined(dataset.name, *dataset.row, dtype=dataset.dtype)
            for dataset in table.datasets
            if dataset.name.startswith(("coordinates/", "fields/"))
        },
        tags=known_tags(rows.tags(table), ranks),
        from_parts=True,
    )
    # What was read part by part is as large as the result.
    give_back()
    return subject


@dataclass(frozen=True, eq=False)
class _RowsHere:
    """Rows of elements in the numbers of the file, as far as they are in these ranges."""

    own: Mapping[str, range]
    _pieces: dict[str, list[NDArray[Any]]] = field(default_factory=dict)

    def read(self, path: Path, table: PartsTable) -> None:
        """Take the rows here of every part, several parts at a time."""
        index = {dataset.name: i for i, dataset in enumerate(table.datasets)}
        # The first number of each set that each part owns, and the end.
        offset = {name: table.offset[index[f"sets/{name}/original"]] for name in self.own}
        # Read the parts from the first to the last that has rows here.
        has_rows = np.zeros(table.parts, np.bool_)
        for name, own in self.own.items():
            first = offset[name][:-1]
            end = offset[name][1:]
            has_rows |= (first < own.stop) & (end > own.start)
        with_rows = np.flatnonzero(has_rows)
        parts = range(0)
        if with_rows.size:
            parts = range(with_rows[0], with_rows[-1] + 1)

        def read(some_parts: range) -> PartBatch:
            return read_batch(path=path, table=table, parts=some_parts, check=False)

        for batch in in_turn(read, table.batches(parts)):
            self._take(batch)

    def _take(self, batch: PartBatch) -> None:
        """Keep the rows here of a batch of parts, in numbers of the file."""
        sets = batch.sets
        description = batch.description
        rows_here = {name: self._rows_of(name, of_set) for name, of_set in sets.items()}
        # Numbers in the mesh that was read, rows of maps, values and groups.
        for name, of_set in sets.items():
            original = of_set.original[rows_here[name]]
            self._add(f"original {name}", original.astype(np.int32))
        for name, (source, to, _) in description["maps"].items():
            table = batch.joined_map(name, sets[source].owned).table[rows_here[source]]
            self._add(f"map {name}", sets[to].number[table].astype(np.int32))
        for dataset, name in batch.values.items():
            rows = leading(batch.arrays[dataset], sets[name].owned, sets[name].size)
            self._add(dataset, rows[rows_here[name]])
        for dataset in batch.further:
            self._add(dataset, split_pairs(batch, dataset)[0])
        # The block of an owned element, named by the number of its first element.
        for name, loop in description["loops"].items():
            over = sets[loop["over"]]
            dataset = f"loops/{name}/{loop['default']}/block_offset"
            offset = batch.array(dataset, "<i8")
            count = batch.rows[dataset]
            of_owned = offset < np.repeat(over.owned, count)
            first_of_blocks = offset + np.repeat(over.owned_start, count)
            first_of_blocks = first_of_blocks[of_owned]
            numbers = ranges(over.owned_start, over.owned)[rows_here[loop["over"]]]
            block = np.searchsorted(first_of_blocks, numbers, side="right") - 1
            self._add(f"block {name}", first_of_blocks[block].astype(np.int32))

    def _rows_of(self, name: str, of_set: SetBatch) -> slice:
        """Positions of the elements here among those that the parts of a batch own."""
        # The parts of a batch own the numbers from ``begin`` on.
        begin = int(of_set.owned_start[0])
        n = int(of_set.owned.sum())
        own = self.own[name]
        first = max(own.start - begin, 0)
        stop = max(min(own.stop - begin, n), 0)
        return slice(first, stop)

    def _add(self, name: str, rows: NDArray[Any]) -> None:
        self._pieces.setdefault(name, []).append(rows)

    def joined(self, name: str, *row: int, dtype: Any = np.int32) -> NDArray[Any]:
        """All rows here under one name; they are kept no longer."""
        no_rows = np.empty((0, *row), dtype)
        return np.concatenate([no_rows, *self._pieces.pop(name, ())])

    def tags(self, table: PartsTable) -> Iterator[Tag]:
        """The groups of the elements here."""
        for dataset in table.datasets:
            kind, name, *label = dataset.name.split("/")
            if kind != "tags":
                continue
            home = self.own[name]
            first = self.joined(dataset.name, dtype=np.int64)
            # Further groups come with the whole batch: keep those of elements here.
            further = self.joined(f"{FURTHER}/{name}/{label[0]}", 2, dtype=np.int64)
            element = further[:, 0]
            further = further[(element >= home.start) & (element < home.stop)]
            tag = tag_of_ids(
                name=label[0],
                of=name,
                first=first,
                further=further - [home.start, 0],
            )
            names = table.description["group_names"][name][label[0]]
            used_names = {
                int(group): text for group, text in names.items() if text is not None
            }
            yield replace(tag, names=used_names)


def _options_of_loop(description: Mapping[str, Any]) -> dict[str, Any]:
    """The options that the variants of a loop keep."""
    variants: Sequence[Mapping[str, Any]] = list(description["variants"].values())
    if not variants:
        return {}
    return {name: variants[0][name] for name in KEPT}
