"""Useful bytes: what no call of a loop can do without."""

from collections.abc import Collection, Mapping

import numpy as np

from ..loops import Access, Loop
from ..maps import SetMap
from ..plan.matrices import plain_args


def useful_bytes(loop: Loop, maps: Mapping[str, SetMap], sizes: Mapping[str, int]) -> int:
    """Bytes that no call can do without: sum(w_d S_d), w = 2 for data read and written [S19].

    Of a dat reached through maps the points that the loop reaches count: a loop over a boundary
    leaves the others alone; of a matrix those nonzeros, where ``maps`` has its places (see
    :func:`~meshprep_runtime.plan.matrices.with_places`). O(n x arity).
    """
    found: dict[tuple[str, str], tuple[int, bool, bool]] = {}
    through: dict[tuple[str, str], frozenset[str | None]] = {}
    for arg in plain_args(loop, maps):
        if arg.is_global:
            continue
        key = (arg.name, loop.over if arg.map is None else maps[arg.map].to_set)
        nbytes, read, written = found.get(key, (0, False, False))
        read |= arg.access is not Access.WRITE
        written |= arg.access is not Access.READ
        found[key] = (max(nbytes, arg.nbytes), read, written)
        through[key] = through.get(key, frozenset()) | {arg.map}
    ways = {(of, names) for (_, of), names in through.items()}
    reached = {way: _reached(way[1], maps, sizes[way[0]]) for way in ways}
    return sum(
        reached[key[1], through[key]] * size * (r + w) for key, (size, r, w) in found.items()
    )


def _reached(names: Collection[str | None], maps: Mapping[str, SetMap], n_points: int) -> int:
    """How many points some maps reach; all of them where one is reached without a map."""
    if None in names:
        return n_points
    tables = [maps[str(name)].table for name in names]
    # one more than there are, for places of -1
    seen = np.zeros(max((int(t.max(initial=-1)) for t in tables), default=-1) + 2, bool)
    for table in tables:
        seen[table] = True
    return int(np.count_nonzero(seen[:-1]))
