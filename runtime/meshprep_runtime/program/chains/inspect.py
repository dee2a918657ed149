"""The inspector: from the loops of a chain and owners of elements to tiles [R14 algorithm 9]."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...errors import MeshprepError
from ...types.maps import Int32s, Int64s, SetMap, UInt64s, offsets_of
from .numbers import ChainNumbers, chain_arrays
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
    from .compiled import inspect, map_arrays, of_set

    kept = Kept() if kept is None else kept
    arrays = chain_arrays(chain)
    own, own_offset = _own(chain, arrays.set_start, part)
    end = [
        sum(chain.bit(d) for d in chain.written - kept.dropped if chain.dats[d] == s)
        for s in chain.sizes
    ]
    maps = map_arrays(chain, arrays)
    *found, count = inspect(arrays, maps, own_offset, own, np.array(end, np.uint64))
    whole = (found[0], found[1], found[2])

    def of_one(i: int, name: str) -> tuple[LocalSet, UInt64s, UInt64s]:
        elements, run_bits, copy_bits = of_set(whole, count, i, arrays.set_start[i])
        offset = offsets_of(count[:, i])
        tile = part.get(name, np.zeros(0, np.int32))
        owned = np.bincount(tile[tile >= 0], minlength=own_offset.size - 1).astype(np.int64)
        return LocalSet(offset, elements, owned), run_bits, copy_bits

    held = {name: of_one(i, name) for i, name in enumerate(chain.sizes)}
    sets = {name: one[0] for name, one in held.items()}
    runs = tuple(
        _select(sets[loop.over], held[loop.over][1], k) for k, loop in enumerate(chain.loops)
    )
    copies = {
        d: _select(sets[s], held[s][2], i)
        for i, (d, s) in enumerate(chain.dats.items())
        if d not in kept.zero
    }
    copied = {d: s for d, s in copies.items() if s.count.any()}
    _check_dropped(kept, copied)
    return TilePlan(chain.loops, sets, runs, copied, kept)


def with_maps(tiles: TilePlan, maps: Mapping[str, SetMap], sizes: Mapping[str, int]) -> TilePlan:
    """Tiles with the local forms of ``maps``, which tiles run with. O(rows x arity)."""
    used = dict.fromkeys(m for loop in tiles.loops for m in loop.maps)
    local = {m: _local_map(tiles, maps[m], sizes[maps[m].to_set]) for m in used}
    return replace(tiles, maps=local)


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
