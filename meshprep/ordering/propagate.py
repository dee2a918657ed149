"""Orderings of all sets of a mesh that follow the orderings of some."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import offsets_of
from meshprep_runtime.types.ordering import Ordering

from ..kernels import Int32s, kernel
from ..mesh import Mesh
from ..mesh.incidence import renumber_table
from ..mesh.orderings import ordering_of, side_by_side
from .lexicographic import from_set_order

Orderings = dict[str, Ordering]
Follow = Callable[[Int32s], Int32s]
Keep = Callable[[str, Int32s], Int32s]


def propagate(
    mesh: Mesh,
    known: Mapping[str, Ordering],
    follow: Follow = from_set_order,
    followed: Mapping[str, Int32s] = MappingProxyType({}),
    wanted: Iterable[str] | None = None,
    keep: Keep | None = None,
) -> Orderings:
    """An ordering of every set: known ones are kept, the others follow from them.

    The first rule that applies is taken, again and again, with the maps in the order of the
    mesh:

    1. A union set and its parts follow each other: parts stay one after the other.
    2. A set with a map into an ordered set is sorted by its new points, by ``follow``.
    3. A set that ordered sets map into is numbered in the order in which they touch it, map
       after map; untouched elements come last, in their old order.
    4. A set that no rule reaches keeps its order.

    Raises MeshprepError on an unknown set, an ordering of the wrong size, and the ordering
    of a union set that mixes its parts or contradicts theirs. O(sum over the sets of the
    size of one map each, and over maps reached by rule 3).

    Known orderings start from the mesh's numbering. ``follow`` orders the rows of a table
    of new points, lexicographically by default [S19 section 2.3.1]; ``followed`` has its
    results for maps into known sets that were computed before. Sets that are not ``wanted``
    may keep their order; by default all are wanted. ``keep(name, new_to_old)`` replaces the
    order found for a set, by default by that of :func:`keep_parts`. The result is in the
    order of the mesh's sets.
    """
    _check_orderings(mesh, known)
    done: Orderings = dict(known)
    if keep is None:
        keep = partial(_with_parts, mesh)
    by_rules = partial(
        _by_rules,
        mesh=mesh,
        done=done,
        follow=follow,
        followed=followed,
        keep=keep,
    )
    # Apply the first rule that fits, until all wanted sets have an ordering.
    needed = set(mesh.sets if wanted is None else wanted)
    while needed - done.keys():
        derived = next(by_rules(), None)
        if derived is None:
            break
        name, ordering = derived
        done[name] = ordering

    # Sets that no rule reached keep their order; only unions of them are left.
    for name, s in mesh.sets.items():
        if name not in done and not s.parts:
            done[name] = Ordering.identity(s.size)
    while derived := next(by_rules(), None):
        name, ordering = derived
        done[name] = ordering
    return {name: done[name] for name in mesh.sets}


def followers(mesh: Mesh, names: Iterable[str]) -> set[str]:
    """Some sets and all tied to them by maps, either way, or by unions. O(sets x maps)."""
    ties = [{m.from_set, m.to_set} for m in mesh.maps.values()]
    ties += [{s.name, *s.parts} for s in mesh.sets.values() if s.parts]
    # Follow the ties until they reach no further set.
    reached = set(names)
    before = 0
    while len(reached) > before:
        before = len(reached)
        for tie in ties:
            if tie & reached:
                reached |= tie
    return reached


def keep_parts(
    new_to_old: NDArray[np.integer], part_sizes: Sequence[int] | NDArray[np.integer]
) -> Int32s:
    """The order of a union set with its parts one after the other; stable inside each part.

    ``new_to_old`` is any order of the union set, and ``part_sizes`` are ``n`` together.
    """
    forward = np.asarray(new_to_old, dtype=np.int32)
    total = int(np.sum(part_sizes))
    if total != forward.size:
        raise MeshprepError(
            f"an ordering of {forward.size} elements does not fit parts of {total} together"
        )
    count = len(part_sizes)
    if count == 1:
        return forward
    # numbers of two bytes are sorted by counting
    part_numbers = np.arange(count, dtype=np.min_scalar_type(count))
    part = np.repeat(part_numbers, part_sizes)
    return forward[np.argsort(part[forward], kind="stable")]


def _by_rules(
    mesh: Mesh,
    done: Orderings,
    follow: Follow,
    followed: Mapping[str, Int32s],
    keep: Keep,
) -> Iterator[tuple[str, Ordering]]:
    """Sets that follow the ordered ones, with their orderings, by the rules in order."""
    # 1. Unions and their parts.
    for union in mesh.sets.values():
        missing = [p for p in union.parts if p not in done]
        if union.name in done and missing:
            of_union = done[union.name].new_to_old
            bound = offsets_of([mesh.size(p) for p in union.parts])
            for part, (low, high) in zip(union.parts, pairwise(bound), strict=True):
                if part in missing:
                    piece = of_union[low:high] - np.int32(low)
                    yield part, Ordering.from_new_to_old(piece, part)
        elif union.parts and union.name not in done and not missing:
            yield union.name, side_by_side([done[p] for p in union.parts], union.name)
    # 2. Sets with a map into an ordered set.
    for m in mesh.maps.values():
        if m.to_set in done and m.from_set not in done:
            order = followed.get(m.name)
            if order is None:
                new_points = renumber_table(m.table, None, done[m.to_set].old_to_new)
                order = follow(new_points)
            yield m.from_set, ordering_of(keep(m.from_set, order), m.from_set)
    # 3. Sets that ordered sets map into.
    for m in mesh.maps.values():
        if m.from_set in done and m.to_set not in done:
            touched = [
                (other.table, done[other.from_set].new_to_old)
                for other in mesh.maps.values()
                if other.to_set == m.to_set and other.from_set in done
            ]
            order = touch_order(mesh.size(m.to_set), touched)
            yield m.to_set, ordering_of(keep(m.to_set, order), m.to_set)


def touch_order(n: int, touched: Sequence[tuple[Int32s, Int32s]]) -> Int32s:
    """The order in which elements touch ``n`` points, untouched points last.

    ``touched`` has pairs of a table of points and the order of its rows. All orders are
    new_to_old.
    """
    order = np.empty(n, np.int32)
    number = np.full(n, -1, np.int32)
    count = 0
    for table, new_to_old in touched:
        count = _first_touch(
            table=table,
            new_to_old=new_to_old,
            number=number,
            order=order,
            count=count,
        )
    order[count:] = np.flatnonzero(number < 0)
    return order


def _with_parts(mesh: Mesh, name: str, new_to_old: Int32s) -> Int32s:
    """The order of a set with the parts of a union one after the other."""
    parts = mesh.sets[name].parts
    if parts:
        return keep_parts(new_to_old, [mesh.size(p) for p in parts])
    return new_to_old


def _check_orderings(mesh: Mesh, known: Mapping[str, Ordering]) -> None:
    """Raise MeshprepError where known orderings do not fit their sets, or contradict."""
    for name, ordering in known.items():
        if ordering.size != mesh.size(name):
            raise MeshprepError(
                f"the ordering of set '{name}' has {ordering.size} elements, "
                f"but the set has {mesh.size(name)}"
            )
        # The ordering of a union keeps its parts apart, and is that of each of them.
        parts = mesh.sets[name].parts
        sizes = [mesh.size(part) for part in parts]
        if parts and (keep_parts(ordering.new_to_old, sizes) != ordering.new_to_old).any():
            raise MeshprepError(
                f"the ordering of set '{name}' mixes its parts {', '.join(parts)}: "
                "pass it through keep_parts first"
            )
        for part, low, size in zip(parts, offsets_of(sizes), sizes, strict=False):
            induced = ordering.new_to_old[low : low + size] - np.int32(low)
            if part in known and (known[part].new_to_old != induced).any():
                raise MeshprepError(
                    f"the orderings of set '{name}' and of its part '{part}' contradict "
                    "each other: give one of them"
                )


@kernel
def _first_touch(
    table: NDArray,
    new_to_old: NDArray,
    number: NDArray,
    order: NDArray,
    count: int,
) -> int:
    """Append the points that rows touch first to ``order``; returns the new count."""
    for i in new_to_old:
        for j in range(table.shape[1]):
            t = table[i, j]
            if number[t] < 0:
                number[t] = count
                order[count] = t
                count += 1
    return count
