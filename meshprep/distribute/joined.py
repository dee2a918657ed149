"""The mesh that a file of parts holds, put together from the parts, or slices of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.maps import SetMap
from meshprep_runtime.plan.parts import kept, parts_table, read_arrays
from meshprep_runtime.plan.parts.arrays import COUNTS, Arrays, loops_of
from meshprep_runtime.plan.parts.slices import PartsTable
from meshprep_runtime.plan.parts.store import about

from ..kernels.memory import give_back
from ..loops import LoopSpec
from .ranks import ALONE, Ranks, agreed, in_turn, of_root
from .slices.homes import Homes
from .subject import KEPT, SplitSubject


def joined_subject(path: Path, ranks: Ranks = ALONE) -> SplitSubject:
    """The sets, maps and loops of a file of parts, in the order of its smallest number of parts.

    It holds no coordinates. Each rank gets the rows that are at home there. Raises PlanError where
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
    )
    # what was read part by part is as large as the result
    give_back()
    return replace(found, leading_runs=rows.runs(table, found.leading_set, ranks))


@dataclass(frozen=True, eq=False)
class _RowsHere:
    """Rows of elements in the numbers of the file, as far as they are in these ranges."""

    own: Mapping[str, range]
    core: dict[int, dict[str, int]] = field(default_factory=dict)
    _pieces: dict[str, list[NDArray[np.int32]]] = field(default_factory=dict)

    def read(self, path: Path, table: PartsTable) -> None:
        """Take what is here of every part, one after another."""
        first = {name: _owned_offset(table, name) for name in self.own}
        here = {
            p: {
                name: range(
                    max(own.start, int(first[name][p])), min(own.stop, int(first[name][p + 1]))
                )
                for name, own in self.own.items()
            }
            for p in range(table.parts)
        }
        some = [p for p in here if any(here[p].values())]
        for p, arrays in zip(
            some, in_turn(lambda p: read_arrays(path, table, p), some), strict=True
        ):
            self.core[p] = {name: _counts(arrays, name)["core"] for name in self.own}
            self._take(arrays, table.description, here[p])

    def _take(self, arrays: Arrays, words: Mapping[str, Any], here: Mapping[str, range]) -> None:
        counts = {name: _counts(arrays, name) for name in here}
        first = {name: one["owned_start"] for name, one in counts.items()}
        some = {
            name: slice(r.start - first[name], r.stop - first[name])
            for name, r in here.items()
            if r
        }
        for name, rows in some.items():
            self._add(f"original {name}", arrays[f"sets/{name}/original"][rows])
        for name, (source, to, _) in words["maps"].items():
            if source in some:
                owned = np.arange(first[to], first[to] + counts[to]["owned"])
                number = np.concatenate([owned, arrays[f"sets/{to}/copies"]])
                self._add(f"map {name}", number[arrays[f"maps/{name}/table"][some[source]]])
        for name, loop in words["loops"].items():
            over = loop["over"]
            if over in some:
                offset = arrays[f"loops/{name}/{loop['default']}/block_offset"]
                self._add(f"block {name}", _last_not_above(offset[:-1] + first[over], here[over]))

    def _add(self, what: str, rows: NDArray[np.integer]) -> None:
        self._pieces.setdefault(what, []).append(rows.astype(np.int32))

    def joined(self, what: str, *row: int) -> NDArray[np.int32]:
        """All rows here of one kind, which are given away."""
        return np.concatenate([np.empty((0, *row), np.int32), *self._pieces.pop(what, ())])

    def runs(self, table: PartsTable, name: str, ranks: Ranks) -> NDArray[np.int64]:
        """Where core and boundary of a set begin in each part, on any rank, and the end."""
        offset = _owned_offset(table, name)
        core = np.zeros(table.parts, np.int64)
        for every in ranks.allgather({p: counts[name] for p, counts in self.core.items()}):
            core[list(every)] = list(every.values())
        return np.append(np.stack([offset[:-1], offset[:-1] + core], axis=1), offset[-1])


def _counts(arrays: Arrays, name: str) -> dict[str, int]:
    """How many elements of a set a part has, by kind, and the number of the first."""
    return dict(zip(COUNTS, arrays[f"sets/{name}/counts"].tolist(), strict=True))


def _owned_offset(table: PartsTable, name: str) -> NDArray[np.int64]:
    """The first number of a set that each part owns, and the end."""
    index = [one.name for one in table.datasets].index(f"sets/{name}/original")
    return table.offset[index]


def _last_not_above(begin: NDArray[np.int64], numbers: range) -> NDArray[np.int64]:
    """The last of some ascending numbers that is not above each of a range."""
    return begin[np.searchsorted(begin, np.arange(numbers.start, numbers.stop), side="right") - 1]


def _options(words: Mapping[str, Any]) -> dict[str, Any]:
    variants: Sequence[Mapping[str, Any]] = list(words["variants"].values())
    return {} if not variants else {name: variants[0][name] for name in KEPT}
