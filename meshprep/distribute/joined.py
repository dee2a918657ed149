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

from ..kernels.parallel import give_back
from ..loops.requests import LoopSpec
from ..mesh import Tag
from .ranks import ALONE, Ranks, agreed, in_turn, of_root
from .slices.homes import Homes
from .subject import KEPT, SplitSubject, known_tags, tag_of_ids


def joined_subject(path: Path, ranks: Ranks = ALONE) -> SplitSubject:
    """The sets, maps and loops of a file of parts, in the order of its smallest number of parts.

    Each rank gets the rows that are at home there. Raises PlanError where
    a part is damaged; on every rank. O(n / ranks) and as much memory, and a part.
    """
    table, origin = of_root(ranks, lambda: (parts_table(path, kept(path)[0]), about(path)))
    words = table.description
    sizes = {name: int(size) for name, size in words["sets"].items()}
    specs = tuple(
        LoopSpec(loop, _options(words["loops"][name])) for name, loop in loops_of(words).items()
    )
    rows = _RowsHere({name: Homes(n, ranks).own for name, n in sizes.items()})
    agreed(ranks, lambda: rows.read(path, table))
    maps = {
        name: SetMap(name, start, to, rows.joined(f"map {name}", arity))
        for name, (start, to, arity) in words["maps"].items()
    }
    found = SplitSubject(
        sizes,
        maps,
        specs,
        original={name: rows.joined(f"original {name}") for name in sizes},
        source_hash=origin["source_hash"],
        cell_types=tuple(origin.get("cell_types", ())),
        blocks={spec.loop.name: rows.joined(f"block {spec.loop.name}") for spec in specs},
        values={
            one.name: rows.joined(one.name, *one.row, dtype=one.dtype)
            for one in table.datasets
            if one.name.startswith(("coordinates/", "fields/"))
        },
        tags=known_tags(rows.tags(table), ranks),
        from_parts=True,
    )
    # what was read part by part is as large as the result
    give_back()
    return found


@dataclass(frozen=True, eq=False)
class _RowsHere:
    """Rows of elements in the numbers of the file, as far as they are in these ranges."""

    own: Mapping[str, range]
    _pieces: dict[str, list[NDArray[Any]]] = field(default_factory=dict)

    def read(self, path: Path, table: PartsTable) -> None:
        """Take what is here of every part, some at a time."""
        index = {one.name: i for i, one in enumerate(table.datasets)}
        # the first number of a set that each part owns, and the end
        offset = {name: table.offset[index[f"sets/{name}/original"]] for name in self.own}
        here = np.zeros(table.parts, np.bool_)
        for name, own in self.own.items():
            here |= (offset[name][:-1] < own.stop) & (offset[name][1:] > own.start)
        some = np.flatnonzero(here)
        parts = range(some[0], some[-1] + 1) if some.size else range(0)
        for batch in in_turn(
            lambda one: read_batch(path, table, one, check=False), table.batches(parts)
        ):
            self._take(batch)

    def _take(self, batch: PartBatch) -> None:
        sets, words = batch.sets, batch.description
        some = {name: self._rows_of(name, one) for name, one in sets.items()}
        for name, one in sets.items():
            self._add(f"original {name}", one.original[some[name]].astype(np.int32))
        for name, (source, to, _) in words["maps"].items():
            table = batch.joined_map(name, sets[source].owned).table[some[source]]
            self._add(f"map {name}", sets[to].number[table].astype(np.int32))
        for at, name in batch.values.items():
            rows = leading(batch.arrays[at], sets[name].owned, sets[name].size)
            self._add(at, rows[some[name]])
        for at in batch.further:
            self._add(at, split_pairs(batch, at)[0])
        for name, loop in words["loops"].items():
            over, at = sets[loop["over"]], f"loops/{name}/{loop['default']}/block_offset"
            offset, count = batch.array(at, "<i8"), batch.rows[at]
            # blocks of owned elements alone
            own = offset < np.repeat(over.owned, count)
            begin = (offset + np.repeat(over.owned_start, count))[own]
            numbers = ranges(over.owned_start, over.owned)
            block = begin[np.searchsorted(begin, numbers[some[loop["over"]]], side="right") - 1]
            self._add(f"block {name}", block.astype(np.int32))

    def _rows_of(self, name: str, one: SetBatch) -> slice:
        """Positions of this rank's elements among those that some parts own."""
        begin, own, n = int(one.owned_start[0]), self.own[name], int(one.owned.sum())
        return slice(max(own.start - begin, 0), max(min(own.stop - begin, n), 0))

    def _add(self, what: str, rows: NDArray[Any]) -> None:
        self._pieces.setdefault(what, []).append(rows)

    def joined(self, what: str, *row: int, dtype: Any = np.int32) -> NDArray[Any]:
        """All rows here of one kind, which are given away."""
        return np.concatenate([np.empty((0, *row), dtype), *self._pieces.pop(what, ())])

    def tags(self, table: PartsTable) -> Iterator[Tag]:
        """The groups of the elements here."""
        for one in table.datasets:
            kind, name, *label = one.name.split("/")
            if kind == "tags":
                own, first = self.own[name], self.joined(one.name, dtype=np.int64)
                further = self.joined(f"{FURTHER}/{name}/{label[0]}", 2, dtype=np.int64)
                further = further[(further[:, 0] >= own.start) & (further[:, 0] < own.stop)]
                tag = tag_of_ids(label[0], name, first, further - [own.start, 0])
                names = table.description["group_names"][name][label[0]]
                yield replace(
                    tag, names={int(k): text for k, text in names.items() if text is not None}
                )


def _options(words: Mapping[str, Any]) -> dict[str, Any]:
    variants: Sequence[Mapping[str, Any]] = list(words["variants"].values())
    return {} if not variants else {name: variants[0][name] for name in KEPT}
