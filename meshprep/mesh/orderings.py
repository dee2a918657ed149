"""Orderings from long arrays, on all cores."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import offsets_of, read_only
from meshprep_runtime.types.ordering import Ordering

from ..kernels import Int32s, kernel
from ..kernels.parallel import in_pieces
from .items import ElementSet


def ordering_of(
    new_to_old: NDArray[np.integer], name: str = "", before: Ordering | None = None
) -> Ordering:
    """The ordering with this direction, as :meth:`Ordering.from_new_to_old` gives it.

    Where ``before`` is given, the new order is one of the elements as that numbers them; what is
    returned leads from its old numbering. ``name`` is that of the set, for errors. Raises
    MeshprepError where a number of ``new_to_old`` is outside 0..n-1 or stands twice. O(n), in
    parallel.
    """
    forward = np.asarray(new_to_old, np.int32)
    n, start = forward.size, None if before is None or before.is_identity else before.new_to_old
    base = np.empty(0, np.int32) if start is None else start
    arrays = read_only(forward), read_only(base), np.empty(n, np.int32), np.full(n, -1, np.int32)
    inside = in_pieces(_invert, n, *arrays)
    if not all(inside) or arrays[3].min(initial=0) < 0:
        # it says what is wrong
        Ordering.from_new_to_old(forward, name)
    return Ordering(*map(read_only, arrays[2:]))


def with_unions(
    sets: Mapping[str, ElementSet], ordering: Mapping[str, Ordering]
) -> dict[str, Ordering]:
    """The orderings with those of the unions whose parts move. O(n).

    Raises MeshprepError for a set that there is not, an ordering of another size, and one of a
    union that is not that of its parts one after the other.
    """
    out = dict(ordering)
    for name, order in ordering.items():
        if name not in sets:
            raise MeshprepError(f"there is no set '{name}' to renumber: choose {', '.join(sets)}")
        if order.size != sets[name].size:
            raise MeshprepError(
                f"the ordering of '{name}' has {order.size} elements, the set {sets[name].size}"
            )
    for union in sets.values():
        if not union.parts or out.keys().isdisjoint({union.name, *union.parts}):
            continue
        parts = [out.get(p) or Ordering.identity(sets[p].size) for p in union.parts]
        own = out.setdefault(union.name, of_parts := side_by_side(parts, union.name))
        if not np.array_equal(own.new_to_old, of_parts.new_to_old):
            raise MeshprepError(
                f"the ordering of '{union.name}' is not that of {', '.join(union.parts)} one after "
                "the other: leave it out"
            )
    return out


def side_by_side(parts: Sequence[Ordering], name: str) -> Ordering:
    """The ordering of a union set, its parts one after the other. O(n)."""
    bound = offsets_of([part.size for part in parts])
    pieces = [part.new_to_old + np.int32(b) for part, b in zip(parts, bound, strict=False)]
    return ordering_of(np.concatenate(pieces), name)


@kernel
def _invert(
    new_to_old: Int32s, before: Int32s, forward: Int32s, inverse: Int32s, begin: int, end: int
) -> bool:
    """Fill both directions for some new places; False where a number is out of range."""
    n = new_to_old.size
    for i in range(begin, end):
        element = new_to_old[i]
        if element < 0 or element >= n:
            return False
        if before.size:
            element = before[element]
        forward[i] = element
        inverse[element] = i
    return True
