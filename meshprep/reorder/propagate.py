"""From the orderings of some sets to an ordering of every set of a mesh."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
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
    """An ordering for every set: the known ones kept, the others derived from them.

    The first rule that applies is taken, again and again, maps in the order of the mesh:

    1. A union set and its parts follow each other: parts stay one after the other.
    2. A set with a map into an ordered set: by its new points, as ``follow`` sorts them.
    3. A set that ordered sets map into: in the order in which they touch it, map after map;
       untouched elements last, in their old order.
    4. What nothing reaches keeps its order.

    Raises MeshprepError on an unknown set, an ordering of the wrong size, and the ordering of a
    union set that mixes its parts or contradicts theirs. O(sum over the sets of the size of one map
    each, and over maps reached by rule 3).

    Known orderings are from the mesh's numbering. ``follow`` orders the rows of a table of new
    points, lexicographically unless given [S19 section 2.3.1]; ``followed`` has what it gives for
    maps into known sets, where that was computed before. Sets that are not ``wanted`` may keep
    their order; all are unless given. ``keep(name, new_to_old)`` gives the order that a set gets in
    place of one that was found, that of :func:`keep_parts` unless given. The result is in the order
    of the mesh's sets.
    """
    _check_orderings(mesh, known)
    done: Orderings = dict(known)
    keep = partial(_with_parts, mesh) if keep is None else keep
    by_rules = partial(_by_rules, mesh, done, follow, followed, keep)
    needed = set(mesh.sets if wanted is None else wanted)
    while needed - done.keys() and (found := next(by_rules(), None)):
        done.update([found])
    for name, s in mesh.sets.items():
        if name not in done and not s.parts:
            done[name] = Ordering.identity(s.size)
    # now unions alone are left
    while found := next(by_rules(), None):
        done.update([found])
    return {name: done[name] for name in mesh.sets}


def followers(mesh: Mesh, names: Iterable[str]) -> set[str]:
    """These sets and all tied to them by maps, either way, or by unions. O(sets x maps)."""
    found, before = set(names), 0
    ties = [{m.from_set, m.to_set} for m in mesh.maps.values()]
    ties += [{s.name, *s.parts} for s in mesh.sets.values() if s.parts]
    while len(found) > before:
        before = len(found)
        for tie in ties:
            if tie & found:
                found |= tie
    return found


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
    part = np.repeat(np.arange(count, dtype=np.min_scalar_type(count)), part_sizes)
    return forward[np.argsort(part[forward], kind="stable")]


def _by_rules(
    mesh: Mesh, done: Orderings, follow: Follow, followed: Mapping[str, Int32s], keep: Keep
) -> Iterator[tuple[str, Ordering]]:
    """Sets that follow those that are done, each with its ordering, by the rules in their order."""
    for union in mesh.sets.values():
        missing = [p for p in union.parts if p not in done]
        if union.name in done and missing:
            bound = offsets_of([mesh.size(p) for p in union.parts])
            for part, low, high in zip(union.parts, bound[:-1], bound[1:], strict=True):
                if part in missing:
                    piece = done[union.name].new_to_old[low:high] - np.int32(low)
                    yield part, Ordering.from_new_to_old(piece, part)
        elif union.parts and union.name not in done and not missing:
            yield union.name, side_by_side([done[p] for p in union.parts], union.name)
    for m in mesh.maps.values():
        if m.to_set in done and m.from_set not in done:
            order = followed.get(m.name)
            if order is None:
                order = follow(renumber_table(m.table, None, done[m.to_set].old_to_new))
            yield m.from_set, ordering_of(keep(m.from_set, order), m.from_set)
    for m in mesh.maps.values():
        if m.from_set in done and m.to_set not in done:
            into = [o for o in mesh.maps.values() if o.to_set == m.to_set and o.from_set in done]
            order = touch_order(
                mesh.size(m.to_set), [(o.table, done[o.from_set].new_to_old) for o in into]
            )
            yield m.to_set, ordering_of(keep(m.to_set, order), m.to_set)


def touch_order(n: int, touched: Sequence[tuple[Int32s, Int32s]]) -> Int32s:
    """The order in which elements, in their orders, touch ``n`` points, the untouched ones last.

    ``touched`` holds tables of points and orders of their rows; all are new_to_old.
    """
    order, place, count = np.empty(n, np.int32), np.full(n, -1, np.int32), 0
    for table, new_to_old in touched:
        count = _first_touch(table, new_to_old, place, order, count)
    order[count:] = np.flatnonzero(place < 0)
    return order


def _with_parts(mesh: Mesh, name: str, new_to_old: Int32s) -> Int32s:
    parts = mesh.sets[name].parts
    return keep_parts(new_to_old, [mesh.size(p) for p in parts]) if parts else new_to_old


def _check_orderings(mesh: Mesh, known: Mapping[str, Ordering]) -> None:
    for name, ordering in known.items():
        if ordering.size != mesh.size(name):
            raise MeshprepError(
                f"the ordering of set '{name}' has {ordering.size} elements, "
                f"but the set has {mesh.size(name)}"
            )
        parts = mesh.sets[name].parts
        sizes = [*map(mesh.size, parts)]
        if parts and (keep_parts(ordering.new_to_old, sizes) != ordering.new_to_old).any():
            raise MeshprepError(
                f"the ordering of set '{name}' mixes its parts {', '.join(parts)}: "
                "pass it through keep_parts first"
            )
        for part, low, size in zip(parts, offsets_of(sizes), sizes, strict=False):
            induced = ordering.new_to_old[low : low + size] - np.int32(low)
            if part in known and (known[part].new_to_old != induced).any():
                raise MeshprepError(
                    f"the orderings of set '{name}' and of its part '{part}' contradict each "
                    "other: give one of them"
                )


@kernel
def _first_touch(
    table: NDArray, new_to_old: NDArray, place: NDArray, order: NDArray, count: int
) -> int:
    """Append to ``order`` what the rows touch first, in their order; returns the new count."""
    for i in new_to_old:
        for j in range(table.shape[1]):
            t = table[i, j]
            if place[t] < 0:
                place[t] = count
                order[count] = t
                count += 1
    return count
