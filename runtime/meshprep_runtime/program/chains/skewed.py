"""Skewed tiles: each element of each loop in one tile, later loops farther ahead.

Nothing runs twice, and there are no second copies: what touches a value after another does so in
the same tile or in a later one. Tiles of one colour touch no common value that the chain changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...plan.chains.skewed import LoopTiles, SkewedPlan
from .numbers import ChainArrays, ChainNumbers, chain_arrays

# Rounds of colouring after which tiles run one after the other.
MOST_ROUNDS = 12
_NONE = np.zeros((0, 2), np.int64)


class TouchArrays(NamedTuple):
    """Which values an access touches that the chain changes.

    Access ``a`` touches dats ``dat[first[a]:first[a + 1]]``, and changes those where ``write``.
    Values of dat ``d`` are numbered from ``start[d]``; there are ``start[-1]``.
    """

    first: NDArray[np.int64]
    dat: NDArray[np.int64]
    write: NDArray[np.bool_]
    start: NDArray[np.int64]


def skewed(chain: ChainNumbers, part: Mapping[str, NDArray[np.int32]]) -> SkewedPlan:
    """Cut a chain into skewed tiles.

    The first loops follow ``part``; an element of a later loop goes to the last tile among those
    that it depends on. Where two tiles of one colour touch a common value, they are coloured anew.

    Parameters
    ----------
    part : mapping of set name to (n,) int32
        The tile of every element of every set.

    Notes
    -----
    O(accesses of the chain) for each round of colouring; most chains need two to four.
    """
    from .compiled_skew import conflicts, skew
    from .map_numbers import map_arrays

    arrays = chain_arrays(chain)
    maps = map_arrays(chain, arrays)
    touched = touches(chain, arrays)
    owner = np.concatenate([part[s] for s in chain.sizes])
    n_tiles = int(owner.max(initial=0)) + 1
    near = _neighbours(chain, part)
    for rounds in range(MOST_ROUNDS + 1):
        alone = rounds == MOST_ROUNDS
        colour = np.arange(n_tiles) if alone else _colour(near, n_tiles)
        order = np.argsort(colour, kind="stable")
        place = np.empty(n_tiles, np.int32)
        place[order] = np.arange(n_tiles, dtype=np.int32)
        tile = skew(arrays, maps, touched, place[owner])
        pairs = _NONE if alone else conflicts(arrays, maps, touched, tile, colour[order])
        if not pairs.size:
            break
        for a, b in np.unique(order[pairs], axis=0).tolist():
            near[a].add(b)
            near[b].add(a)
    counts = np.bincount(colour)
    ends = np.concatenate([[0], np.cumsum(counts)])
    return SkewedPlan(chain.loops, _lists(chain, tile, n_tiles), ends)


def touches(chain: ChainNumbers, arrays: ChainArrays) -> TouchArrays:
    """The dats behind the bits of the accesses, those that the chain changes."""
    names, written = list(chain.dats), chain.written
    first, dat, write = [0], [], []
    for read, changed in zip(arrays.read.tolist(), arrays.write.tolist(), strict=True):
        for d, name in enumerate(names):
            if (read | changed) >> d & 1 and name in written:
                dat.append(d)
                write.append(bool(changed >> d & 1))
        first.append(len(dat))
    start = np.cumsum([0, *(chain.sizes[s] * (d in written) for d, s in chain.dats.items())])
    return TouchArrays(
        np.array(first, np.int64),
        np.array(dat, np.int64),
        np.array(write, np.bool_),
        start.astype(np.int64),
    )


def _lists(chain: ChainNumbers, tile: NDArray[np.int32], n_tiles: int) -> tuple[LoopTiles, ...]:
    """The elements of every loop by tile, ascending in a tile. O(n) for each loop."""
    from .compiled import transpose

    ends = np.cumsum([0, *(chain.sizes[loop.over] for loop in chain.loops)])
    return tuple(LoopTiles.of_elements(*transpose(tile[a:b], n_tiles)) for a, b in pairwise(ends))


def _neighbours(
    chain: ChainNumbers, part: Mapping[str, NDArray[np.int32]]
) -> defaultdict[int, set[int]]:
    """Tiles that an element of some map joins."""
    near: defaultdict[int, set[int]] = defaultdict(set)
    for m in chain.maps.values():
        of_rows, many = part[m.from_set].astype(np.int64), int(part[m.to_set].max(initial=0)) + 1
        for column in m.table.T:
            key = of_rows * many + part[m.to_set][column]
            for pair in np.unique(key[of_rows != part[m.to_set][column]]).tolist():
                a, b = divmod(pair, many)
                near[a].add(b)
                near[b].add(a)
    return near


def _colour(near: Mapping[int, set[int]], n_tiles: int) -> NDArray[np.int64]:
    """Greedy colours in the order of the tiles."""
    colour = np.full(n_tiles, -1, np.int64)
    for t in range(n_tiles):
        taken = {int(colour[other]) for other in near.get(t, ())}
        colour[t] = next(c for c in range(n_tiles) if c not in taken)
    return colour
