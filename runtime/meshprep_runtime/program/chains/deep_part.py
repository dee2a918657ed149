"""What the loops of a chain reach from one rank's elements: a part that is deep enough for all."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import MeshprepError
from ...loops import Access, Loop
from ...maps import SetMap, distinct, distinct_without
from ...plan.parts import PartPlan
from ..row_lists import owner_of, to_each
from .numbers import READS

Numbers = NDArray[np.int64]
Rows = tuple[Numbers, dict[str, Numbers]]
NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class DeepPart:
    """The elements of a part, then copies, then what else its chain may need; and one of no use."""

    # By set name: with the last element, which stands for what is not known here.
    sizes: Mapping[str, int]
    # By set name: global numbers. Those of the part come first, in its order.
    numbers: Mapping[str, Numbers]
    maps: Mapping[str, SetMap]  # by map name: in the numbers of this part
    known: Mapping[str, NDArray[np.bool_]]  # by set name: elements whose rows of maps are known
    starts: Mapping[str, Numbers]  # by set name: which global numbers each rank owns


def check_executed(part: PartPlan, loops: Sequence[Loop]) -> None:
    """Raise MeshprepError unless each rank has all elements that write what it owns."""
    for loop in loops:
        if loop.conflict_columns and part.loops[loop.name].increments != "exec":
            raise MeshprepError(
                f"loop '{loop.name}' sends increments back, which tiles cannot: split the mesh "
                "with --increments exec, or leave tile_size out"
            )


def deep_part(comm: Any, part: PartPlan, loops: Sequence[Loop], wanted: Iterable[str]) -> DeepPart:
    """Ask other ranks for all that the loops need to compute the owned elements; collective.

    From the last loop to the first: who writes a point that is needed is known to its owner; the
    rows of an element are known to the owner of the element. Two messages a map and loop to each
    rank that is asked. ``loops`` passed :func:`check_executed`; of the sets in ``wanted`` the owned
    elements are wanted after the chain.
    """
    return _Grown(comm, part, loops).grow(wanted).finished()


class _Grown:
    """Rows of maps in global numbers, which grow."""

    def __init__(self, comm: Any, part: PartPlan, loops: Sequence[Loop]) -> None:
        self.comm, self.part, self.loops = comm, part, loops
        maps = dict.fromkeys(m for loop in loops for m in loop.maps)
        self.maps = {name: part.maps[name] for name in maps}
        ends = (s for m in self.maps.values() for s in (m.from_set, m.to_set))
        self.sets = list(dict.fromkeys([*(loop.over for loop in loops), *ends]))
        firsts = comm.allgather([part.sets[s].owned_start for s in self.sets])
        self.starts = {
            s: np.array([*(first[i] for first in firsts), part.sizes[s]], np.int64)
            for i, s in enumerate(self.sets)
        }
        self.number = {s: _numbers(part, s) for s in self.sets}
        self.rows = {s: self._own_rows(s, np.arange(part.sets[s].executed)) for s in self.sets}

    def _own_rows(self, of: str, chosen: NDArray[np.integer]) -> Rows:
        """Some of the rows that this rank has from the start."""
        maps = [m for m in self.maps.values() if m.from_set == of]
        tables = {m.name: self.number[m.to_set][m.table[chosen]] for m in maps}
        return self.number[of][chosen], tables

    def grow(self, wanted: Iterable[str]) -> "_Grown":
        own = {s: self.number[s][: self.part.sets[s].owned] for s in self.sets}
        need = {s: own[s] if s in wanted else NONE for s in self.sets}
        for loop in reversed(self.loops):
            # all owned elements of a loop that reduces count
            reducing = [own[loop.over]] if loop.reduces else []
            run = distinct(np.concatenate([*self._writers(loop, need), *reducing]))
            if loop.maps:
                known = self.rows[loop.over][0]
                self._ask(loop.over, run[~np.isin(run, known)], None)
            for arg in loop.args:
                if arg.is_global or arg.access not in READS:
                    continue
                to, points = loop.over, run
                if arg.map is not None:
                    elements, tables = self.rows[loop.over]
                    to = self.maps[arg.map].to_set
                    points = tables[arg.map][np.isin(elements, run)][:, arg.index].reshape(-1)
                need[to] = distinct(np.concatenate([need[to], points]))
        return self

    def _writers(self, loop: Loop, need: Mapping[str, Numbers]) -> list[Numbers]:
        """Elements that write what is needed."""
        found = [NONE]
        written = [a for a in loop.args if not a.is_global and a.access is not Access.READ]
        if any(a.map is None for a in written):
            found.append(need[loop.over])
        for name, columns in loop.conflict_columns.items():
            to = self.maps[name].to_set
            own = self.part.sets[to]
            foreign = (need[to] < own.owned_start) | (need[to] >= own.owned_start + own.owned)
            self._ask(to, need[to][foreign], name)
            elements, tables = self.rows[loop.over]
            found.append(elements[np.isin(tables[name][:, columns], need[to]).any(axis=1)])
        return found

    def _ask(self, of: str, numbers: Numbers, through: str | None) -> None:
        """Ask owners for the rows of elements, or of those that reach points through a map."""
        owner = owner_of(self.starts[of], numbers)
        asked = to_each(self.comm, {int(p): numbers[owner == p] for p in np.unique(owner)})
        first = self.part.sets[of].owned_start
        told = {p: self._answer(of, which - first, through) for p, which in asked.items()}
        for rows in to_each(self.comm, told).values():
            self._keep(of if through is None else self.maps[through].from_set, rows)

    def _answer(self, of: str, own: Numbers, through: str | None) -> Rows:
        """Rows of owned elements; through a map, those of elements that reach owned points."""
        if through is None:
            return self._own_rows(of, own)
        m = self.maps[through]
        reached = np.zeros(self.part.sets[of].size, np.bool_)
        reached[own] = True
        return self._own_rows(m.from_set, np.flatnonzero(reached[m.table].any(axis=1)))

    def _keep(self, of: str, more: Rows) -> None:
        known, tables = self.rows[of]
        elements, first = np.unique(more[0], return_index=True)
        first = first[~np.isin(elements, known)]
        self.rows[of] = (
            np.concatenate([known, more[0][first]]),
            {name: np.concatenate([t, more[1][name][first]]) for name, t in tables.items()},
        )

    def finished(self) -> DeepPart:
        """Numbers for all that is known or reached."""
        met = {s: [self.rows[s][0]] for s in self.sets}
        for _, tables in self.rows.values():
            for name, table in tables.items():
                met[self.maps[name].to_set].append(table.reshape(-1))
        numbers = {
            s: np.concatenate([of, distinct_without(np.concatenate(met[s]), of)])
            for s, of in self.number.items()
        }
        sizes = {s: of.size + 1 for s, of in numbers.items()}
        known = {s: np.zeros(n, np.bool_) for s, n in sizes.items()}
        for s, (elements, _) in self.rows.items():
            known[s][_places(numbers[s], elements)] = True
        maps = {name: self._map(m, numbers) for name, m in self.maps.items()}
        return DeepPart(sizes, numbers, maps, known, self.starts)

    def _map(self, m: SetMap, numbers: Mapping[str, Numbers]) -> SetMap:
        elements, tables = self.rows[m.from_set]
        to = numbers[m.to_set]
        table = np.full((numbers[m.from_set].size + 1, m.arity), to.size, np.int32)
        table[_places(numbers[m.from_set], elements)] = _places(to, tables[m.name])
        return SetMap(m.name, m.from_set, m.to_set, table)


def _numbers(part: PartPlan, name: str) -> Numbers:
    own = part.sets[name]
    return np.concatenate([own.owned_start + np.arange(own.owned), own.copies])


def _places(numbers: Numbers, wanted: Numbers) -> Numbers:
    """Where numbers stand, all of which are there."""
    order = np.argsort(numbers)
    found: Numbers = order[np.searchsorted(numbers, wanted, sorter=order)]
    return found
