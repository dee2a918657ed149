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

    Where ``before`` is given, the new order is one of the elements as that numbers them;
    what is returned leads from its old numbering. ``name`` is that of the set, for errors.
    Raises MeshprepError where a number of ``new_to_old`` is outside 0..n-1 or stands twice.
    O(n), in parallel.
    """
    relative = np.asarray(new_to_old, np.int32)
    n = relative.size
    # Kernels take an empty array for an order that stays.
    start = np.empty(0, np.int32)
    if before is not None and not before.is_identity:
        start = before.new_to_old
    forward = np.empty(n, np.int32)
    inverse = np.full(n, -1, np.int32)
    in_range = in_pieces(
        _invert, n, read_only(relative), read_only(start), forward, inverse
    )
    if not all(in_range) or inverse.min(initial=0) < 0:
        # Raises an error that says what is wrong.
        Ordering.from_new_to_old(relative, name)
    return Ordering(read_only(forward), read_only(inverse))


def with_unions(
    sets: Mapping[str, ElementSet], ordering: Mapping[str, Ordering]
) -> dict[str, Ordering]:
    """The orderings with those of the unions whose parts move. O(n).

    Raises MeshprepError for a set that there is not, an ordering of another size, and one
    of a union that is not that of its parts one after the other.
    """
    # Every ordering is of a set of its size.
    out = dict(ordering)
    for name, order in ordering.items():
        if name not in sets:
            raise MeshprepError(
                f"there is no set '{name}' to renumber: choose {', '.join(sets)}"
            )
        if order.size != sets[name].size:
            raise MeshprepError(
                f"the ordering of '{name}' has {order.size} elements, "
                f"the set {sets[name].size}"
            )

    # A union that moves, or of which a part moves, has the ordering of its parts.
    for union in sets.values():
        names = {union.name, *union.parts}
        if not union.parts or out.keys().isdisjoint(names):
            continue
        parts = [out.get(p) or Ordering.identity(sets[p].size) for p in union.parts]
        of_parts = side_by_side(parts, union.name)
        of_union = out.setdefault(union.name, of_parts)
        if not np.array_equal(of_union.new_to_old, of_parts.new_to_old):
            raise MeshprepError(
                f"the ordering of '{union.name}' is not that of {', '.join(union.parts)} "
                "one after the other: leave it out"
            )
    return out


def side_by_side(parts: Sequence[Ordering], name: str) -> Ordering:
    """The ordering of a union set, its parts one after the other. O(n)."""
    # Element e of part k is element base[k] + e of the union.
    base = offsets_of([part.size for part in parts])
    pieces = [part.new_to_old + np.int32(b) for part, b in zip(parts, base, strict=False)]
    return ordering_of(np.concatenate(pieces), name)


@kernel
def _invert(
    new_to_old: Int32s,
    before: Int32s,
    forward: Int32s,
    inverse: Int32s,
    begin: int,
    end: int,
) -> bool:
    """Fill both directions for some new places; False where a number is out of range."""
    n = new_to_old.size
    for i in range(begin, end):
        element = new_to_old[i]
        if element < 0 or element >= n:
            return False
        # Lead back through the order before, to the first numbering.
        if before.size:
            element = before[element]
        forward[i] = element
        inverse[element] = i
    return True
