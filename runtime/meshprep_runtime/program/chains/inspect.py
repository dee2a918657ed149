"""The inspector: from the loops of a chain and owners of elements to tiles [R14 algorithm 9]."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cpu.pool import on_threads
from ...errors import MeshprepError
from ...types.maps import Int32s, Int64s, SetMap, UInt64s, offsets_of
from .numbers import ChainArrays, ChainNumbers, MapArrays, chain_arrays
from .tiles import Kept, LocalMap, LocalSelection, LocalSet, TilePlan


def schedule(chain: ChainNumbers, part: Mapping[str, Int32s], kept: Kept | None = None) -> TilePlan:
    """Tiles that compute all their own elements need, and so run in any order.

    Of every dat a tile computes what its own elements need at the end, loop by loop from the last
    to the first; a value that a loop fully overwrites is not needed before it. What is added to
    points that nobody needs is not needed either, so increments reach less far than in the paper.
    Raises MeshprepError for a dat that is dropped, and read by the chain before it is written.
    O(elements of all tiles x accesses of the chain), and the maps transposed once.

    ``part`` is the tile of every element, for ``chain.owned_sets()``; -1 for those of another rank.
    Without ``kept`` every dat that is written is stored. The tiles have no maps yet: see
    :func:`with_maps`.
    """
    from .compiled import map_arrays, of_set

    kept = Kept() if kept is None else kept
    arrays = chain_arrays(chain)
    own, own_offset = _own(chain, arrays.set_start, part)
    end = [
        sum(chain.bit(d) for d in chain.written - kept.dropped if chain.dats[d] == s)
        for s in chain.sizes
    ]
    maps = map_arrays(chain, arrays)
    *found, count = _inspected(arrays, maps, own, own_offset, np.array(end, np.uint64))
    whole = (found[0], found[1], found[2])

    def of_one(i: int, name: str) -> tuple[LocalSet, UInt64s, UInt64s]:
        elements, run_bits, copy_bits = of_set(whole, count, i, arrays.set_start[i])
        offset = offsets_of(count[:, i])
        tile = part.get(name, np.zeros(0, np.int32))
        owned = np.bincount(tile[tile >= 0], minlength=own_offset.size - 1).astype(np.int64)
        return LocalSet(offset, elements, owned), run_bits, copy_bits

    held = dict(
        zip(chain.sizes, on_threads(of_one, range(len(chain.sizes)), chain.sizes), strict=True)
    )
    overs = [held[loop.over] for loop in chain.loops]
    selected = on_threads(lambda of, k: _select(of[0], of[1], k), overs, range(len(overs)))
    bits = {d: i for i, d in enumerate(chain.dats) if d not in kept.zero}
    homes = [held[chain.dats[d]] for d in bits]
    copies = on_threads(lambda of, i: _select(of[0], of[2], i), homes, bits.values())
    copied = {d: s for d, s in zip(bits, copies, strict=True) if s.count.any()}
    _check_dropped(kept, copied)
    sets = {name: one[0] for name, one in held.items()}
    return TilePlan(chain.loops, sets, tuple(selected), copied, kept)


def with_maps(tiles: TilePlan, maps: Mapping[str, SetMap], sizes: Mapping[str, int]) -> TilePlan:
    """Tiles with the local forms of ``maps``, which tiles run with. O(rows x arity)."""
    used = dict.fromkeys(m for loop in tiles.loops for m in loop.maps)
    local = on_threads(lambda m: _local_map(tiles, maps[m], sizes[maps[m].to_set]), used)
    return replace(tiles, maps=dict(zip(used, local, strict=True)))


def _own(
    chain: ChainNumbers, set_start: Int64s, part: Mapping[str, Int32s]
) -> tuple[Int32s, Int64s]:
    """Elements by tile, in a tile by set, ascending; and where those of each tile begin."""
    from .compiled import transpose

    numbers = {s: int(set_start[i]) for i, s in enumerate(chain.sizes)}
    tile = np.concatenate([part[s] for s in numbers if s in part])
    element = np.concatenate([numbers[s] + np.arange(part[s].size) for s in numbers if s in part])
    element, tile = element[tile >= 0], tile[tile >= 0]
    offset, order = transpose(tile, int(tile.max(initial=-1)) + 1)
    return element[order].astype(np.int32), offset


def _inspected(
    arrays: ChainArrays, maps: MapArrays, own: Int32s, own_offset: Int64s, end: UInt64s
) -> tuple[NDArray[Any], ...]:
    """All tiles, on all threads: runs of tiles beside each other."""
    from ...cpu.pool import thread_count
    from .compiled import inspect

    n_tiles = own_offset.size - 1
    many = max(min(thread_count(), n_tiles), 1)
    ends = [n_tiles * i // many for i in range(many + 1)]

    def some(run: tuple[int, int]) -> tuple[NDArray[Any], ...]:
        first, last = run
        mine = own[own_offset[first] : own_offset[last]]
        offset = own_offset[first : last + 1] - own_offset[first]
        found: tuple[NDArray[Any], ...] = inspect(arrays, maps, offset, mine, end)
        return found

    parts = on_threads(some, pairwise(ends))
    if many == 1:
        return parts[0]
    return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))


def _select(of_set: LocalSet, bits: UInt64s, bit: int) -> LocalSelection:
    from .compiled import select

    count, items, prefix = select(of_set.offset, bits, bit)
    return LocalSelection(count, None if prefix else items)


def _check_dropped(kept: Kept, copied: Mapping[str, LocalSelection]) -> None:
    for name in sorted(kept.dropped):
        if name in copied:
            raise MeshprepError(
                f"dat '{name}' cannot be dropped at the end of the chain: its loops read it before "
                "one writes all of it (full = true); leave it out of 'dropped'"
            )


def _local_map(tiles: TilePlan, m: SetMap, n_points: int) -> LocalMap:
    from .compiled import local_table

    of_from, of_to = tiles.sets[m.from_set], tiles.sets[m.to_set]
    offset = offsets_of(tiles.rows_of(m.name))
    offsets = (offset, of_from.offset, of_to.offset)
    table = local_table(offsets, (of_from.elements, of_to.elements), m.table, n_points)
    return LocalMap(offset, table.astype(tiles.index_type(m.to_set), copy=False))
