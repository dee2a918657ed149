"""The proof of a chain's schedule: tiles compute for their own elements what the loops compute.

Independent of the inspector, which goes backward from what is needed: here values are followed
forward. A value in a tile is *right* while it is what the loops alone would have made at that time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from ...types.loops import Access, Arg, Loop
from ...types.maps import Bools, Int32s, Int64s, SetMap, rows_of_entries
from .tiles import ChainPlan, LocalSet, TilePlan, home_of_dats

Flags = Bools
MOST_FINDINGS = 8


def prove_chain(
    chain: ChainPlan, sizes: Mapping[str, int], maps: Mapping[str, SetMap]
) -> list[str]:
    """What is wrong with a schedule, one line each; empty when it is right.

    Proved: no tile holds an element twice; tiles own each element once, of sets whose dats are
    stored or over which a loop reduces; whatever runs reads only right values; a value stays right
    only where every element runs that changes it; what is stored is right. By gathers and counting,
    tile by tile. O(elements of all tiles x accesses).
    """
    findings = list(_owners(chain.tiles, sizes, maps))
    where = f"chain '{chain.name}'"
    if not findings:
        state = _Tiles(chain.tiles, sizes, maps)
        for t in range(chain.tiles.n_tiles):
            findings += [f"tile {t}: {text}" for text in _Tile(state, t).findings()]
            if len(findings) > MOST_FINDINGS:
                break
    return [f"{where}, {text}" for text in findings]


def _owners(tiles: TilePlan, sizes: Mapping[str, int], maps: Mapping[str, SetMap]) -> Iterator[str]:
    home = home_of_dats(tiles.loops, maps)
    owned = {home[d] for d in tiles.written} | {p.over for p in tiles.loops if p.reduces}
    for name, one in tiles.sets.items():
        tile = rows_of_entries(one.offset)
        key = np.sort(tile * np.int64(max(sizes[name], 1)) + one.elements)
        if (np.diff(key) == 0).any():
            yield f"set '{name}': a tile holds an element twice"
        inside = np.arange(one.elements.size) - one.offset[tile]
        times = np.bincount(one.elements[inside < one.own[tile]], minlength=sizes[name])
        wrong = times != 1 if name in owned else times > 1
        if wrong.any():
            at = int(np.argmax(wrong))
            yield f"set '{name}': element {at} has {times[at]} owners"
    for name in sorted(tiles.kept.all - tiles.written):
        yield f"dat '{name}' is dropped or zero, but no loop writes it"
    for name in sorted(tiles.kept.all & tiles.copies.keys()):
        yield f"dat '{name}' is dropped or zero, and copied"


@dataclass(frozen=True, eq=False)
class _Tiles:
    """What all tiles share; ``where`` is -1 outside the tile at hand."""

    tiles: TilePlan
    sizes: Mapping[str, int]
    maps: Mapping[str, SetMap]
    where: dict[str, Int32s] = field(default_factory=dict)
    degree: dict[tuple[str, tuple[int, ...]], Int64s] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.tiles.sets:
            self.where[name] = np.full(self.sizes[name], -1, np.int32)
        for loop in self.tiles.loops:
            for arg in _written(loop):
                if arg.map is not None:
                    m = self.maps[arg.map]
                    used = m.table[:, list(arg.index)].reshape(-1)
                    found = np.bincount(used, minlength=self.sizes[m.to_set])
                    self.degree[arg.map, arg.index] = found


class _Tile:
    """One tile: which of its values are right, loop after loop."""

    def __init__(self, state: _Tiles, t: int) -> None:
        self._state, self._t = state, t
        self._held = {s: _held(one, t) for s, one in state.tiles.sets.items()}
        self._home = home_of_dats(state.tiles.loops, state.maps)
        kept = state.tiles.kept
        self._right: dict[str, Flags] = {
            d: np.full(self._held[s].size, d in kept.zero) for d, s in self._home.items()
        }
        for d, copy in state.tiles.copies.items():
            self._right[d][copy.of_tile(t)] = True

    def findings(self) -> list[str]:
        """What is wrong with the tile."""
        tiles = self._state.tiles
        for name, held in self._held.items():
            self._state.where[name][held] = np.arange(held.size, dtype=np.int32)
        found: list[str] = []
        for k, loop in enumerate(tiles.loops):
            found += [f"loop {k + 1} '{loop.name}' {text}" for text in self._loop(k, loop)]
        for d in sorted(tiles.written - tiles.kept.dropped):
            own = self._right[d][: tiles.sets[self._home[d]].own[self._t]]
            if not own.all():
                e = self._held[self._home[d]][np.argmin(own)]
                found.append(f"dat '{d}' of element {e} is not what the loops give")
        for name, held in self._held.items():
            self._state.where[name][held] = -1
        return found

    def _loop(self, k: int, loop: Loop) -> Iterator[str]:
        tiles = self._state.tiles
        run, held = tiles.runs[k].of_tile(self._t), self._held[loop.over]
        own = int(tiles.sets[loop.over].own[self._t])
        if loop.reduces and np.count_nonzero(run < own) != own:
            yield "reduces, but does not run all own elements"
        points = {}
        for arg in loop.args:
            if arg.is_global:
                continue
            at = points[arg] = self._points(arg, run, held[run])
            if at.size and at.min() < 0:
                yield f"reaches a point of '{arg.name}' that the tile does not hold"
                return
            if arg.access in (Access.READ, Access.RW) and not self._right[arg.name][at].all():
                yield f"reads '{arg.name}' where it is not right"
        self._change(loop, points)

    def _points(self, arg: Arg, run: Int32s, elements: Int32s) -> Int32s:
        """The local numbers of what an argument reaches, -1 outside the tile."""
        if arg.map is None:
            return run
        m = self._state.maps[arg.map]
        return self._state.where[m.to_set][m.table[elements][:, list(arg.index)]].reshape(-1)

    def _change(self, loop: Loop, points: Mapping[Arg, Int32s]) -> None:
        """A written value is right where it was, or is all new, and every change of it has run."""
        for d in dict.fromkeys(a.name for a in _written(loop)):
            args = [a for a in _written(loop) if a.name == d]
            right = self._right[d]
            if any(a.full for a in args):
                right = np.ones_like(right)
            for arg in args:
                times = np.bincount(points[arg], minlength=right.size)
                right = right & (times == self._wanted(arg))
            self._right[d] = right

    def _wanted(self, arg: Arg) -> Int64s | int:
        """How often the loop alone changes a value through an argument."""
        if arg.map is None:
            return 1
        to_set = self._state.maps[arg.map].to_set
        return self._state.degree[arg.map, arg.index][self._held[to_set]]


def _held(one: LocalSet, t: int) -> Int32s:
    return one.elements[one.offset[t] : one.offset[t + 1]]


def _written(loop: Loop) -> list[Arg]:
    return [a for a in loop.args if not a.is_global and a.access is not Access.READ]
