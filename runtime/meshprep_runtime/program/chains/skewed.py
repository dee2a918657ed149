"""Skewed tiles: each element of each loop in one tile, later loops farther ahead.

Nothing runs twice, and there are no second copies: what touches a value after another does so in
the same tile or in a later one. Tiles of one colour touch no common value that the chain changes.
"""

from collections import defaultdict
from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...maps import offsets_of
from ...plan.chains.skewed import LoopTiles, SkewedPlan
from .dependence import Numbers, conflicts, last_tiles, pairs_apart, raise_values, reaches_of
from .numbers import ChainNumbers
from .threads import on_threads

# Rounds of colouring after which tiles run one after the other. With neighbours of neighbours as
# neighbours it took fewer rounds, but up to four times as many colours.
MOST_ROUNDS = 12


def skewed(chain: ChainNumbers, part: Mapping[str, NDArray[np.int32]]) -> SkewedPlan:
    """Cut a chain into skewed tiles.

    The first loops follow ``part``, the tile of every element of every set; an element of a later
    loop goes to the last tile among those that it depends on. Where two tiles of one colour touch a
    common value, they are coloured anew. O(accesses of the chain) for each round of colouring; most
    chains need one or two.
    """
    columns = {
        (name, c): m.table[:, c].astype(np.int32)
        for name, m in chain.maps.items()
        for c in range(m.arity)
    }
    reaches = [reaches_of(chain, loop, columns) for loop in chain.loops]
    n_tiles = 1 + max(int(part[s].max(initial=0)) for s in chain.sizes)
    near = _neighbours(chain, part, columns)
    for rounds in range(MOST_ROUNDS + 1):
        alone = rounds == MOST_ROUNDS
        colour = np.arange(n_tiles) if alone else _colour(near, n_tiles)
        order = np.argsort(colour, kind="stable")
        place = np.empty(n_tiles, np.int32)
        place[order] = np.arange(n_tiles, dtype=np.int32)
        skew = last_tiles(chain, reaches, {s: place[part[s]] for s in chain.sizes})
        pairs = set() if alone else conflicts(chain, reaches, skew, colour[order])
        if not pairs:
            break
        for a, b in pairs:
            _join(near, int(order[a]), int(order[b]))
    ends = offsets_of(np.bincount(colour))
    lists = on_threads(partial(_list, n_tiles), skew.tiles)
    return SkewedPlan(chain.loops, tuple(lists), ends)


def _list(n_tiles: int, tile: Numbers) -> LoopTiles:
    """The elements of a loop by tile, ascending in a tile. O(n)."""
    from .compiled import transpose

    return LoopTiles.of_elements(*transpose(tile, n_tiles))


def _neighbours(
    chain: ChainNumbers,
    part: Mapping[str, Numbers],
    columns: Mapping[tuple[str, int], Numbers],
) -> defaultdict[int, set[int]]:
    """Tiles that an element of some map joins."""
    near: defaultdict[int, set[int]] = defaultdict(set)
    for (name, _), points in columns.items():
        m = chain.maps[name]
        of_rows, of_points = part[m.from_set], np.full(points.size, -1, np.int32)
        raise_values(of_points, part[m.to_set], [points])
        for a, b in pairs_apart(of_rows, of_points):
            _join(near, a, b)
    return near


def _join(near: defaultdict[int, set[int]], a: int, b: int) -> None:
    near[a].add(b)
    near[b].add(a)


def _colour(near: Mapping[int, set[int]], n_tiles: int) -> NDArray[np.int64]:
    """Greedy colours in the order of the tiles."""
    colour = np.full(n_tiles, -1, np.int64)
    for t in range(n_tiles):
        taken = {int(colour[other]) for other in near.get(t, ())}
        colour[t] = next(c for c in range(n_tiles) if c not in taken)
    return colour
