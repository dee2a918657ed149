"""The mesh that a file of parts holds, put together from the parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.maps import SetMap
from meshprep_runtime.plan.parts import PartPlan, kept, parts_table, read_part
from meshprep_runtime.plan.parts.arrays import loops_of
from meshprep_runtime.plan.parts.store import about

from ..loops import LoopSpec
from .subject import KEPT, SplitSubject


def joined_subject(path: Path) -> SplitSubject:
    """The sets, maps and loops of a file of parts, in the numbering of the mesh that was read.

    It holds no coordinates. O(size of the mesh), part after part.

    Raises
    ------
    PlanError
        Where a part is damaged.
    """
    table = parts_table(path, kept(path)[0])
    words = table.description
    sizes = {name: int(size) for name, size in words["sets"].items()}
    parts = [_PartRows(read_part(path, table, p)) for p in range(table.parts)]
    original = {s: np.concatenate([p.original[s] for p in parts]) for s in sizes}
    maps = {}
    for name, (start, to, arity) in words["maps"].items():
        joined = np.empty((sizes[start], arity), np.int32)
        for p in parts:
            joined[p.original[start]] = original[to][p.maps[name]]
        maps[name] = SetMap(name, start, to, joined)
    specs = tuple(
        LoopSpec(loop, _options(words["loops"][name])) for name, loop in loops_of(words).items()
    )
    source = about(path)["source_hash"]
    return SplitSubject(sizes, maps, specs, source_hash=source)


class _PartRows:
    """What is kept of a part: the numbers of its elements, and its rows in global numbers."""

    def __init__(self, part: PartPlan) -> None:
        self.original: Mapping[str, NDArray[np.int64]] = {
            name: one.original for name, one in part.sets.items()
        }
        number = {
            name: np.concatenate(
                [np.arange(one.owned_start, one.owned_start + one.owned), one.copies]
            )
            for name, one in part.sets.items()
        }
        self.maps = {
            m.name: number[m.to_set][m.table[: part.sets[m.from_set].owned]]
            for m in part.maps.values()
        }


def _options(words: Mapping[str, Any]) -> dict[str, Any]:
    variants: Sequence[Mapping[str, Any]] = list(words["variants"].values())
    return {} if not variants else {name: variants[0][name] for name in KEPT}
