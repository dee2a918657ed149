"""The orders of all sets while they are being found.

A union set (the cells of a mixed mesh) has no ordering of its own: it is that of its parts, one
after the other, so that what a file stores type by type and what a loop sees agree.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import Int32s, SetMap
from meshprep_runtime.types.ordering import Ordering

from ..mesh import Mesh
from ..mesh.model import renumber_map
from ..mesh.orderings import ordering_of, side_by_side
from ..reorder import keep_parts

Runs = Mapping[str, Sequence[int] | NDArray[np.integer]]


@dataclass(frozen=True, eq=False)
class Numbering:
    """An ordering for every set of a mesh as it stands; steps give another one with sets moved."""

    mesh: Mesh
    orders: Mapping[str, Ordering]  # of all sets but unions
    final: frozenset[str]  # those that must not move any more
    frozen: frozenset[str]  # those that keep the order of the mesh
    runs: Runs  # by set, the sizes of runs that no order mixes; without them, those of its parts
    # Unions and maps that were asked for, with the orderings that they were made of: these are
    # equal where they are the same object.
    _unions: dict[str, tuple[tuple[Ordering, ...], Ordering]] = field(default_factory=dict)
    _maps: dict[str, tuple[dict[str, Ordering], SetMap]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, mesh: Mesh, frozen: Iterable[str] = (), runs: Runs = MappingProxyType({})
    ) -> "Numbering":
        """The order of the mesh, which some sets keep."""
        orders = {s.name: Ordering.identity(s.size) for s in mesh.sets.values() if not s.parts}
        kept = frozenset(leaf for name in frozen for leaf in mesh.sets[name].parts or (name,))
        return cls(mesh, orders, kept, kept, runs)

    def leaves(self, name: str) -> tuple[str, ...]:
        """The parts of a union set; the set itself where it has none."""
        return self.mesh.sets[name].parts or (name,)

    def movable(self, name: str) -> tuple[str, ...]:
        """The parts of a set whose order is not final yet."""
        return tuple(leaf for leaf in self.leaves(name) if leaf not in self.final)

    def is_frozen(self, name: str) -> bool:
        """True when the set, or a part of it, keeps the order of the mesh."""
        return not self.frozen.isdisjoint(self.leaves(name))

    def in_runs(self, name: str, new_to_old: Int32s) -> Int32s:
        """An order of a set with its runs one after the other; stable inside each."""
        sizes = self.runs.get(name)
        parts = [*map(self.mesh.size, self.leaves(name))] if sizes is None else sizes
        return keep_parts(new_to_old, parts)

    def ordering(self, name: str) -> Ordering:
        """The ordering of a set."""
        leaves = self.leaves(name)
        if leaves == (name,):
            return self.orders[name]
        parts = tuple(self.orders[leaf] for leaf in leaves)
        before, found = self._unions.get(name, ((), None))
        if found is None or parts != before:
            found = side_by_side(parts, name)
            self._unions[name] = parts, found
        return found

    def map(self, name: str) -> SetMap:
        """A map in this numbering."""
        m = self.mesh.map(name)
        orders = {m.from_set: self.ordering(m.from_set), m.to_set: self.ordering(m.to_set)}
        before, found = self._maps.get(name, ({}, None))
        if found is None or orders != before:
            found = renumber_map(m, orders)
            self._maps[name] = orders, found
        return found

    def maps(self, names: Sequence[str]) -> dict[str, SetMap]:
        """Some maps in this numbering."""
        return dict(zip(names, map(self.map, names), strict=True))

    def all(self) -> dict[str, Ordering]:
        """The orderings of all sets, unions among them."""
        return dict(zip(self.mesh.sets, map(self.ordering, self.mesh.sets), strict=True))

    def moved(
        self, name: str, new_to_old: Int32s, only: Iterable[str] | None = None
    ) -> "Numbering":
        """With the movable parts of a set, or ``only`` these, reordered relative to now.

        The parts of a union set stay one after the other: the caller passes an order that keeps
        them apart. What it says of parts that are final is left out.
        """
        moving, base, orders = set(self.movable(name)), 0, dict(self.orders)
        for leaf in self.leaves(name):
            before = orders[leaf]
            if leaf in moving and (only is None or leaf in only):
                piece = new_to_old[base : base + before.size]
                orders[leaf] = ordering_of(piece - np.int32(base) if base else piece, leaf, before)
            base += before.size
        return replace(self, orders=orders)

    def settled(self, *names: str) -> "Numbering":
        """With these sets final."""
        return replace(self, final=self.final.union(*map(self.leaves, names)))

    def following(self, orderings: Mapping[str, Ordering]) -> "Numbering":
        """With these orderings for the sets that are not final."""
        orders = dict(self.orders)
        for name in orderings.keys() & (orders.keys() - self.final):
            if orderings[name].size != orders[name].size:
                raise MeshprepError(f"the ordering of '{name}' has the wrong size")
            orders[name] = orderings[name]
        return replace(self, orders=orders)

    def known(self) -> dict[str, Ordering]:
        """The orderings of the sets that are final."""
        return {name: order for name, order in self.orders.items() if name in self.final}
