"""The orderings of all sets while they are being found.

A union set (the cells of a mixed mesh) has no ordering of its own: it is that of its parts, one
after the other, so that what a file stores type by type and what a loop sees agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import Int32s, SetMap
from meshprep_runtime.types.ordering import Ordering

from ..mesh import Mesh
from ..mesh.model import renumber_map
from ..mesh.orderings import ordering_of
from ..reorder import keep_parts

# A plan file holds a line for each name; what is no Unicode becomes a question mark.
_ONE_LINE = str.maketrans("\n\0", "  ")


class Numbering:
    """An ordering for every set of a mesh; what may still move, and what is final.

    While orders are being found, ``present_ordering`` and ``present_map`` give them as they stand.
    Whatever ends up in a plan is read through ``ordering`` and ``map``, which refuse sets that may
    still move: staging lists or colours of an order that is not final cannot be made.

    ``settled`` sets keep the order of the mesh. ``runs`` are, by set name, the sizes of runs that
    no order of that set mixes; without them, those of its parts.
    """

    def __init__(
        self,
        mesh: Mesh,
        settled: Iterable[str] = (),
        runs: Mapping[str, Sequence[int] | NDArray[np.integer]] = MappingProxyType({}),
    ) -> None:
        self.mesh, self._runs = mesh, runs
        self._order = {s.name: Ordering.identity(s.size) for s in mesh.sets.values() if not s.parts}
        self._frozen = {leaf for name in settled for leaf in self.leaves(name)}
        self._settled = set(self._frozen)
        self._temporary: Numbering | None = None
        self._fixed: dict[str, Ordering] = {}
        # Maps in the final numbering, as far as they were asked for.
        self._final: dict[str, SetMap] = {}

    def copy(self) -> Numbering:
        """The same orderings, to be moved further without moving these."""
        other = Numbering(self.mesh, runs=self._runs)
        other._order = dict(self._order)
        other._frozen, other._settled = set(self._frozen), set(self._settled)
        other._temporary, other._fixed = self._temporary, self._fixed
        return other

    def cut_frozen_in(self, temporary: Numbering) -> None:
        """Cut sets that keep the order of the mesh in another one, which is not changed."""
        self._temporary = temporary

    def to_cut_in(self, name: str) -> Numbering:
        """The numbering in which a set is to be cut: this one, or the temporary one."""
        if self._temporary is None or not self.is_frozen(name):
            return self
        return self._temporary

    def leaves(self, name: str) -> tuple[str, ...]:
        """The parts of a union set; the set itself where it has none."""
        self.mesh.size(name)
        return self.mesh.sets[name].parts or (name,)

    def in_runs(self, name: str, new_to_old: Int32s) -> Int32s:
        """An order of a set with its runs one after the other; stable inside each."""
        sizes = self._runs.get(name)
        return keep_parts(
            new_to_old, [self._order[s].size for s in self.leaves(name)] if sizes is None else sizes
        )

    def movable(self, name: str) -> tuple[str, ...]:
        """The parts of a set whose order is not final yet."""
        return tuple(leaf for leaf in self.leaves(name) if leaf not in self._settled)

    def is_frozen(self, name: str) -> bool:
        """True when the set, or a part of it, keeps the order of the mesh."""
        return any(leaf in self._frozen for leaf in self.leaves(name))

    def present_ordering(self, name: str) -> Ordering:
        """The ordering of a set as it stands, final or not."""
        leaves = self.leaves(name)
        if leaves == (name,):
            return self._order[name]
        base, pieces = 0, []
        for leaf in leaves:
            pieces.append(self._order[leaf].new_to_old + np.int32(base))
            base += self._order[leaf].size
        return Ordering.from_new_to_old(np.concatenate(pieces), name)

    def present_map(self, name: str) -> SetMap:
        """A map in the numbering as it stands, final or not."""
        m = self.mesh.map(name)
        if not self.movable(m.from_set) and not self.movable(m.to_set):
            return self.map(name)
        return renumber_map(m, {s: self.present_ordering(s) for s in {m.from_set, m.to_set}})

    def ordering(self, name: str) -> Ordering:
        """The final ordering of a set; RuntimeError while a part of it may still move."""
        movable = self.movable(name)
        if movable:
            raise RuntimeError(f"'{name}' is read while the order of '{movable[0]}' is not final")
        return self.present_ordering(name)

    def map(self, name: str) -> SetMap:
        """A map in the final numbering; RuntimeError while one of its sets may still move."""
        if name not in self._final:
            m = self.mesh.map(name)
            orders = {s: self.ordering(s) for s in {m.from_set, m.to_set}}
            self._final[name] = renumber_map(m, orders)
        return self._final[name]

    def all(self) -> dict[str, Ordering]:
        return {name: self.ordering(name) for name in self.mesh.sets}

    def groups(self, file: Mesh) -> dict[str, Any]:
        """``tags``, ``further_groups`` and ``group_names`` of a plan.

        Those of sets that a file does not have, and the numbers that it gave its elements. Names
        are on one line.
        """
        tags, further, names = (dict[str, dict[str, Any]]() for _ in range(3))
        for t in (t for t in self.mesh.tags if t.set not in file.sets):
            order, rows = self.ordering(t.set), t.further_ids()
            tags.setdefault(t.set, {})[t.name] = order.apply(t.first_ids())
            if rows.size:
                rows[:, 0] = order.old_to_new[rows[:, 0]]
                further.setdefault(t.set, {})[t.name] = rows[np.argsort(rows[:, 0], kind="stable")]
            if t.names:
                lines = names.setdefault(t.set, {})[t.name] = {}
                for k in sorted(t.names):
                    lines[k] = t.names[k].translate(_ONE_LINE).encode(errors="replace").decode()
        for d in (d for d in file.dats if d.is_numbering):
            values = self.ordering(d.set).apply(d.values.astype(np.int64))
            tags.setdefault(d.set, {})[d.name] = values
        return {"tags": tags, "further_groups": further, "group_names": names}

    def settled(self) -> dict[str, Ordering]:
        """The orderings of the sets that must not move any more."""
        return {name: self._order[name] for name in self._order if name in self._settled}

    def move(self, name: str, new_to_old: Int32s, only: Iterable[str] | None = None) -> None:
        """Reorder the parts of a set that may move, or ``only`` these, relative to their order now.

        The parts of a union set stay one after the other: the caller passes an order that keeps
        them apart. What it says of parts that are settled is left out.
        """
        moved = set(self.movable(name) if only is None else only) - self._settled
        base = 0
        for leaf in self.leaves(name):
            n = self._order[leaf].size
            if leaf in moved:
                piece = new_to_old[base : base + n] - np.int32(base) if base else new_to_old[:n]
                self._order[leaf] = ordering_of(piece, leaf, self._order[leaf])
            base += n

    def settle(self, name: str) -> None:
        """Forbid further moves of a set."""
        self._settled.update(self.leaves(name))

    def fix(self, orderings: Mapping[str, Ordering], now: Iterable[str]) -> None:
        """Give sets these orders: those in ``now`` at once, the others when :meth:`finish` does."""
        self._fixed = dict(orderings)
        for name in self._fixed.keys() & set(now):
            self.follow({name: self._fixed[name]})
            self.settle(name)

    def freeze(self, mesh: Mesh, orderings: Mapping[str, Ordering]) -> None:
        """Keep every set in its present order, or in these, of a mesh with turned rows of maps."""
        self.mesh = mesh
        self.follow(orderings)
        self._frozen |= self._order.keys()
        self._settled |= self._frozen

    def follow(self, orderings: Mapping[str, Ordering]) -> None:
        """Take over the orderings of the sets that are not settled."""
        for name, order in orderings.items():
            if name in self._order and name not in self._settled:
                if order.size != self._order[name].size:
                    raise MeshprepError(f"the ordering of '{name}' has the wrong size")
                self._order[name] = order

    def finish(self, orderings: Mapping[str, Ordering]) -> None:
        """Take over the orderings of the sets that are not settled, and settle every set."""
        self.follow({**orderings, **self._fixed})
        self._settled.update(self._order)
