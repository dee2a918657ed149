"""The proof of skewed tiles: whatever touches a value after another does so later, or in one tile.

Tiles run in the order of their colours, and the loops of a tile in the order of the chain. So the
tiles give what the loops give where, for each value that the chain changes, later loops touch it in
the same tiles or later ones, and no two tiles of one colour touch it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...loops import Access, Arg, Loop
from ...maps import SetMap
from .skewed import SkewedPlan
from .structure import home_of_dats

Numbers = NDArray[np.int32]


def prove_skewed(
    tiles: SkewedPlan, sizes: Mapping[str, int], maps: Mapping[str, SetMap]
) -> Iterator[str]:
    """What is wrong with skewed tiles, one line each; nothing when they are right.

    Proved: each loop runs every element once; an element that changes a value is in no earlier tile
    than any that touched it in an earlier loop, and one that reads it in no earlier tile than any
    that changed it; two tiles of one colour touch no common value that the chain changes. By
    gathers and scatters. O(accesses of the chain).
    """
    wrong = list(_not_once(tiles, sizes))
    yield from wrong
    if not wrong:
        yield from _too_early(tiles, sizes, maps)
        yield from _at_once(tiles, sizes, maps)


def _not_once(tiles: SkewedPlan, sizes: Mapping[str, int]) -> Iterator[str]:
    for k, (loop, run) in enumerate(zip(tiles.loops, tiles.runs, strict=True)):
        times = np.bincount(run.elements, minlength=sizes[loop.over])
        if (times != 1).any():
            e = int(np.argmax(times != 1))
            yield f"{_call(k, loop)} runs element {e} {times[e]} times"


def _too_early(
    tiles: SkewedPlan, sizes: Mapping[str, int], maps: Mapping[str, SetMap]
) -> Iterator[str]:
    home = home_of_dats(tiles.loops, maps)
    changed = {d: np.full(sizes[home[d]], -1, np.int32) for d in tiles.written}
    touched = {d: values.copy() for d, values in changed.items()}
    for k, loop in enumerate(tiles.loops):
        found = list(_touches(tiles, k, slice(0, tiles.n_tiles), maps))
        for t in found:
            before = (touched if t.changes else changed)[t.dat][t.points]
            early = before > t.tile
            if early.any():
                at = int(np.argmax(early))
                yield (
                    f"{_call(k, loop)} reaches '{t.dat}' of element {t.points[at]} in tile "
                    f"{t.tile[at]}, but an earlier loop in tile {before[at]}"
                )
        for t in found:
            np.maximum.at(touched[t.dat], t.points, t.tile)
            if t.changes:
                np.maximum.at(changed[t.dat], t.points, t.tile)


def _at_once(
    tiles: SkewedPlan, sizes: Mapping[str, int], maps: Mapping[str, SetMap]
) -> Iterator[str]:
    """Each tile leaves its number where it touches a value; it must find it there again."""
    home = home_of_dats(tiles.loops, maps)
    last = {d: np.full(sizes[home[d]], -1, np.int32) for d in tiles.written}
    calls = range(len(tiles.loops))
    for colour, (first, end) in enumerate(pairwise(tiles.colour_offset.tolist())):
        found = [t for k in calls for t in _touches(tiles, k, slice(first, end), maps)]
        for t in found:
            last[t.dat][t.points] = t.tile
        for t in found:
            other = last[t.dat][t.points]
            if (other != t.tile).any():
                at = int(np.argmax(other != t.tile))
                yield (
                    f"tiles {t.tile[at]} and {other[at]} of colour {colour} both touch "
                    f"'{t.dat}' of element {t.points[at]}"
                )


@dataclass(frozen=True, eq=False)
class _Touch:
    """Points that a loop reaches through a column of a map, and the tile of each."""

    dat: str
    points: Numbers
    tile: Numbers
    changes: bool


def _touches(
    tiles: SkewedPlan, k: int, some: slice, maps: Mapping[str, SetMap]
) -> Iterator[_Touch]:
    """What some tiles touch in a loop, of dats that the chain changes."""
    run, numbers = tiles.runs[k], np.arange(some.start, some.stop, dtype=np.int32)
    offset = run.offset[some.start : some.stop + 1]
    elements = run.elements[offset[0] : offset[-1]]
    tile, written = np.repeat(numbers, np.diff(offset)), tiles.written
    for arg in tiles.loops[k].args:
        if arg.is_global or arg.name not in written:
            continue
        for points in _columns(arg, elements, maps):
            yield _Touch(arg.name, points, tile, arg.access is not Access.READ)


def _columns(arg: Arg, elements: Numbers, maps: Mapping[str, SetMap]) -> Iterator[Numbers]:
    if arg.map is None:
        yield elements
        return
    table = maps[arg.map].table
    for column in arg.index:
        yield table[elements, column]


def _call(k: int, loop: Loop) -> str:
    return f"loop {k + 1} '{loop.name}'"
