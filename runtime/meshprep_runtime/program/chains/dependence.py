"""Which tile each element of a chain depends on, and which tiles touch a common value."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ...loops import Access, Loop
from .numbers import ChainNumbers
from .threads import on_threads, pieces

LARGEST = np.iinfo(np.int32).max

Numbers = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Reach:
    """What elements of a loop reach of the dats that the chain changes."""

    to_set: str
    columns: tuple[Numbers, ...]  # the points by columns of a map; none for the elements themselves
    changes: Mapping[str, bool]  # by dat name: the dats, and whether the loop changes them there


@dataclass(frozen=True, eq=False)
class TileOfElement:
    """Where elements went."""

    tiles: list[Numbers]  # the tile of each element, loop by loop
    # By dat name: the last and first tile that touch each value; the last is less where none does.
    most: Mapping[str, Numbers]
    least: Mapping[str, Numbers]


def reaches_of(
    chain: ChainNumbers, loop: Loop, columns: Mapping[tuple[str, int], Numbers]
) -> list[Reach]:
    """Columns of one map through which the same happens to the same dats go together."""
    merged: dict[tuple[str | None, int], dict[str, bool]] = {}
    for arg in loop.args:
        for column in () if arg.is_global else arg.index or (0,):
            changes = merged.setdefault((arg.map, column), {})
            if arg.name in chain.written:
                changes[arg.name] = changes.get(arg.name, False) or arg.access is not Access.READ
    together: dict[tuple[str | None, frozenset[tuple[str, bool]]], list[int]] = defaultdict(list)
    for (m, column), changes in merged.items():
        if changes:
            together[m, frozenset(changes.items())].append(column)
    return [
        Reach(loop.over, (), dict(same))
        if m is None
        else Reach(chain.maps[m].to_set, tuple(columns[m, c] for c in through), dict(same))
        for (m, same), through in together.items()
    ]


def last_tiles(
    chain: ChainNumbers, reaches: Sequence[Sequence[Reach]], owner: Mapping[str, Numbers]
) -> TileOfElement:
    """The tile of every element of every loop: the last of those that it depends on.

    Reading depends on who changed a value, changing it on who touched it. An element that depends
    on nothing goes to its owner. O(accesses of the chain).
    """
    n = {d: chain.sizes[chain.dats[d]] for d in chain.written}
    changed, most = ({d: np.full(n[d], -1, np.int32) for d in n} for _ in range(2))
    least = {d: np.full(n[d], LARGEST, np.int32) for d in n}
    tiles = []
    for loop, reached in zip(chain.loops, reaches, strict=True):
        own = np.full(chain.sizes[loop.over], -1, np.int32)
        for reach in reached:
            before = [(most if new else changed)[d] for d, new in reach.changes.items()]
            raise_values(own, reduce(np.maximum, before), reach.columns)
        np.copyto(own, owner[loop.over], where=own < 0)
        for reach in reached:
            last, first = _extremes(own, reach, chain.sizes[reach.to_set])
            for d, new in reach.changes.items():
                np.maximum(most[d], last, out=most[d])
                np.minimum(least[d], first, out=least[d])
                if new:
                    np.maximum(changed[d], last, out=changed[d])
        tiles.append(own)
    return TileOfElement(tiles, most, least)


def raise_values(own: Numbers, values: Numbers, columns: Sequence[Numbers]) -> None:
    """Let elements have at least the values of their points."""
    from .compiled_skew import raise_to

    def some(piece: slice) -> None:
        for points in columns:
            raise_to(own[piece], values, points[piece])

    if columns:
        on_threads(some, pieces(own.size))
    else:
        np.maximum(own, values, out=own)


def _extremes(own: Numbers, reach: Reach, n_points: int) -> tuple[Numbers, Numbers]:
    """The last and the first tile whose elements reach each point."""
    from .compiled_skew import extremes

    def some(piece: slice) -> tuple[Numbers, Numbers]:
        most, least = np.full(n_points, -1, np.int32), np.full(n_points, LARGEST, np.int32)
        for points in reach.columns:
            extremes(most, least, points[piece], own[piece])
        return most, least

    if not reach.columns:
        return own, own
    last, first = zip(*on_threads(some, pieces(own.size)), strict=True)
    return reduce(np.maximum, last), reduce(np.minimum, first)


def conflicts(
    chain: ChainNumbers,
    reaches: Sequence[Sequence[Reach]],
    skew: TileOfElement,
    colour: NDArray[np.int64],
) -> set[tuple[int, int]]:
    """Pairs of tiles of one colour that touch a common value, which the chain changes.

    At least one pair where there are any. ``colour`` of each tile ascends. O(accesses), of which
    only those of values are looked at that two tiles touch.
    """
    from .compiled_skew import replaced

    shared = {s: np.full(n, -1, np.int32) for s, n in chain.sizes.items()}
    for d in skew.most:
        shared[chain.dats[d]][skew.most[d] > skew.least[d]] = 0
    last: dict[str, Numbers] = {}
    for s, number in shared.items():
        some = np.flatnonzero(number == 0)
        number[some] = np.arange(some.size)
        shape = (int(colour[-1]) + 1, some.size)
        last |= {d: np.full(shape, -1, np.int32) for d in skew.most if chain.dats[d] == s}
    found: set[tuple[int, int]] = set()
    for own, reached in zip(skew.tiles, reaches, strict=True):
        for tile, reach, points in _sharing(own, reached, shared):
            colours = colour[tile]
            for d in reach.changes:
                found |= pairs_apart(tile, replaced(last[d], colours, points, tile))
    return found


def _sharing(
    own: Numbers, reached: Sequence[Reach], shared: Mapping[str, Numbers]
) -> Iterator[tuple[Numbers, Reach, Numbers]]:
    """Tiles of elements that reach shared values, how, and the numbers of these values."""
    for reach in reached:
        number = shared[reach.to_set]
        if not reach.columns:
            some = np.flatnonzero(number >= 0)
            yield own[some], reach, number[some]
            continue
        most = np.full(own.size, -1, np.int32)
        raise_values(most, number, reach.columns)
        some = np.flatnonzero(most >= 0)
        for points in reach.columns:
            yield own[some], reach, number[points[some]]


def pairs_apart(some: Numbers, others: Numbers) -> set[tuple[int, int]]:
    """The pairs of different numbers at one place."""
    apart = np.flatnonzero(some != others)
    first, second = some[apart], others[apart]
    # Most follow an equal pair.
    new = (np.diff(first, prepend=-1) != 0) | (np.diff(second, prepend=-1) != 0)
    return set(zip(first[new].tolist(), second[new].tolist(), strict=True))
