"""The orders of all sets while they are being found.

A union set (the cells of a mixed mesh) has no ordering of its own: it is that of its parts,
one after the other, so that what a file stores type by type and what a loop sees agree. For
the same reason a set may have groups, such as the entities of a Gmsh file: whatever order a
step finds, the elements of a group stay together, in that order, and groups stand by their
numbers.
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
from ..ordering import keep_parts

# By set, (n,): the group of each element.
Groups = Mapping[str, NDArray[np.integer]]


@dataclass(frozen=True, eq=False)
class Numbering:
    """An ordering for every set of a mesh as it stands.

    It is never changed: steps give another one with sets moved.
    """

    mesh: Mesh
    orders: Mapping[str, Ordering]  # of all sets but unions
    final: frozenset[str]  # those that must not move any more
    frozen: frozenset[str]  # those that keep the order of the mesh
    # Of sets that are neither unions nor frozen, in the numbering of the mesh; groups are
    # counted from 0 without a gap.
    groups: Groups
    # Unions and maps that were made so far, with the orderings that they were made of. They
    # are made again once these are other objects.
    _unions: dict[str, tuple[tuple[Ordering, ...], Ordering]] = field(default_factory=dict)
    _maps: dict[str, tuple[dict[str, Ordering], SetMap]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, mesh: Mesh, frozen: Iterable[str] = (), groups: Groups = MappingProxyType({})
    ) -> "Numbering":
        """The order of the mesh; sets that are not ``frozen`` put groups together."""
        orders = {
            s.name: Ordering.identity(s.size) for s in mesh.sets.values() if not s.parts
        }
        frozen_leaves = set[str]()
        for name in frozen:
            frozen_leaves.update(mesh.sets[name].parts or (name,))
        # Number the groups of each set from 0; a single group need not be kept together.
        counted = {}
        for name, numbers in groups.items():
            values, group = np.unique(numbers, return_inverse=True)
            if values.size > 1 and name not in frozen_leaves:
                # NumPy sorts numbers of two bytes by counting
                counted[name] = group.astype(np.min_scalar_type(values.size))
        start = cls(
            mesh=mesh,
            orders=orders,
            final=frozenset(frozen_leaves),
            frozen=frozenset(frozen_leaves),
            groups=counted,
        )
        return start.following(orders)

    def leaves(self, name: str) -> tuple[str, ...]:
        """The parts of a union set; the set itself where it has none."""
        return self.mesh.sets[name].parts or (name,)

    def movable(self, name: str) -> tuple[str, ...]:
        """The parts of a set whose order is not final yet."""
        return tuple(leaf for leaf in self.leaves(name) if leaf not in self.final)

    def is_frozen(self, name: str) -> bool:
        """True when the set, or a part of it, keeps the order of the mesh."""
        return not self.frozen.isdisjoint(self.leaves(name))

    def group_numbers(self, name: str, *, now: bool = True) -> NDArray[np.integer] | None:
        """The group of each element as numbered now, or by the mesh.

        Those of a union are counted on from part to part. None where there are no groups:
        the parts of a union alone are none.
        """
        leaves = self.leaves(name)
        if self.groups.keys().isdisjoint(leaves):
            return None
        pieces = []
        n_groups = 0
        for leaf in leaves:
            # Parts of a union have groups of their own: number these one after another.
            order = self.orders[leaf]
            group = self.groups.get(leaf, np.zeros(order.size, np.uint8))
            in_order = order.apply(group) if now else group
            pieces.append(in_order.astype(np.int32) + np.int32(n_groups))
            n_groups += int(group.max(initial=0)) + 1
        numbers = np.concatenate(pieces)
        return numbers.astype(np.min_scalar_type(n_groups))

    def together(self, name: str, new_to_old: Int32s, *, now: bool = True) -> Int32s:
        """An order with parts and groups together, stable inside each.

        It is relative to the numbering as it stands now, or to that of the mesh.
        """
        group = self.group_numbers(name, now=now)
        if group is None:
            sizes = [self.mesh.size(leaf) for leaf in self.leaves(name)]
            return keep_parts(new_to_old, sizes)
        by_group = np.argsort(group[new_to_old], kind="stable")
        return new_to_old[by_group]

    def kept(self, name: str, new_to_old: Int32s) -> Int32s:
        """An order of the mesh's elements with parts and groups kept together."""
        return self.together(name, new_to_old, now=False)

    def _with_groups(self, name: str, order: Ordering) -> Ordering:
        """An ordering of a set that is no union with the set's groups together."""
        group = self.groups.get(name)
        if group is None:
            return order
        now = order.apply(group)
        if (now[1:] >= now[:-1]).all():
            return order
        return ordering_of(np.argsort(now, kind="stable"), name, order)

    def ordering(self, name: str) -> Ordering:
        """The ordering of a set."""
        leaves = self.leaves(name)
        if leaves == (name,):
            return self.orders[name]
        # A union: that of its parts, made anew where one of them has moved.
        parts = tuple(self.orders[leaf] for leaf in leaves)
        parts_then, union = self._unions.get(name, ((), None))
        if union is None or parts != parts_then:
            union = side_by_side(parts, name)
            self._unions[name] = parts, union
        return union

    def map(self, name: str) -> SetMap:
        """A map in this numbering."""
        # Made anew where its from-set or its to-set has moved.
        in_mesh = self.mesh.map(name)
        orders = {
            in_mesh.from_set: self.ordering(in_mesh.from_set),
            in_mesh.to_set: self.ordering(in_mesh.to_set),
        }
        orders_then, renumbered = self._maps.get(name, ({}, None))
        if renumbered is None or orders != orders_then:
            renumbered = renumber_map(in_mesh, orders)
            self._maps[name] = orders, renumbered
        return renumbered

    def maps(self, names: Sequence[str]) -> dict[str, SetMap]:
        """Some maps in this numbering."""
        return {name: self.map(name) for name in names}

    def all(self) -> dict[str, Ordering]:
        """The orderings of all sets, unions among them."""
        return {name: self.ordering(name) for name in self.mesh.sets}

    def moved(
        self, name: str, new_to_old: Int32s, only: Iterable[str] | None = None
    ) -> "Numbering":
        """The numbering with the movable parts of a set, or ``only`` these, reordered.

        ``new_to_old`` is relative to the present order. The parts of a union stay one after
        the other: the caller passes an order that keeps them apart. Groups are kept
        together here. Parts that are final stay as they are, whatever ``new_to_old`` has
        for them.
        """
        moving = set(self.movable(name))
        base = 0
        orders = dict(self.orders)
        for leaf in self.leaves(name):
            before = orders[leaf]
            # Cut the part's piece out of the order of the union.
            if leaf in moving and (only is None or leaf in only):
                piece = new_to_old[base : base + before.size]
                if base:
                    piece = piece - np.int32(base)
                orders[leaf] = self._with_groups(leaf, ordering_of(piece, leaf, before))
            base += before.size
        return replace(self, orders=orders)

    def settled(self, *names: str) -> "Numbering":
        """The numbering with these sets final."""
        leaves = [self.leaves(name) for name in names]
        return replace(self, final=self.final.union(*leaves))

    def following(self, orderings: Mapping[str, Ordering]) -> "Numbering":
        """The numbering with these orderings for sets that are not final yet."""
        orders = dict(self.orders)
        for name in orderings.keys() & (orders.keys() - self.final):
            if orderings[name].size != orders[name].size:
                raise MeshprepError(f"the ordering of '{name}' has the wrong size")
            orders[name] = self._with_groups(name, orderings[name])
        return replace(self, orders=orders)

    def known(self) -> dict[str, Ordering]:
        """The orderings of the sets that are final."""
        return {name: order for name, order in self.orders.items() if name in self.final}
