"""The inspector: tiles from the loops of a chain and owners of elements [R14 alg. 9]."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...errors import MeshprepError
from ...types.maps import Int32s, Int64s, SetMap, UInt64s, offsets_of
from .numbers import ChainNumbers, chain_arrays
from .tiles import Kept, LocalMap, LocalSelection, LocalSet, TilePlan


def schedule(
    chain: ChainNumbers, part: Mapping[str, Int32s], kept: Kept | None = None
) -> TilePlan:
    """Cut a chain into tiles that compute all values that their own elements need.

    So tiles run in any order. A tile finds the elements it needs loop by loop, from the
    last to the first. A value that a loop fully overwrites is not needed before the loop.
    An increment of a point whose value is not needed is not computed; so increments reach
    less far than in the paper. O(elements of all tiles x accesses of the chain), after one
    transpose of the maps.

    ``part`` is the tile of every element, for ``chain.owned_sets()``; -1 for elements of
    another rank. Without ``kept`` every dat that is written is stored. The tiles have no
    maps yet: see :func:`with_maps`. Raises MeshprepError for a dat that is dropped, and
    read by the chain before it is written.
    """
    from .compiled import inspect, map_arrays, of_set

    runs_kept = Kept() if kept is None else kept
    arrays = chain_arrays(chain)
    owned, owned_offset = _owned_elements(chain, arrays.set_start, part)
    n_tiles = owned_offset.size - 1

    # Inspect all tiles, from the dats of each set that are needed at the end.
    end_need = np.zeros(len(chain.sizes), np.uint64)
    for i, set_name in enumerate(chain.sizes):
        for dat in chain.written - runs_kept.dropped:
            if chain.dats[dat] == set_name:
                end_need[i] |= np.uint64(chain.bit(dat))
    maps = map_arrays(chain, arrays)
    elements, run_bits, copy_bits, count = inspect(
        arrays, maps, owned_offset, owned, end_need
    )

    # Split the result by set.
    sets: dict[str, LocalSet] = {}
    run_bits_of_set: dict[str, UInt64s] = {}
    copy_bits_of_set: dict[str, UInt64s] = {}
    for i, name in enumerate(chain.sizes):
        elements_of_set, run_bits_of_set[name], copy_bits_of_set[name] = of_set(
            (elements, run_bits, copy_bits), count, i, arrays.set_start[i]
        )
        tile = part.get(name, np.zeros(0, np.int32))
        n_owned = np.bincount(tile[tile >= 0], minlength=n_tiles).astype(np.int64)
        sets[name] = LocalSet(offsets_of(count[:, i]), elements_of_set, n_owned)

    # Split it by loop and by dat.
    runs = []
    for k, loop in enumerate(chain.loops):
        runs.append(_select(sets[loop.over], run_bits_of_set[loop.over], k))
    copies = {}
    for i, (dat, set_name) in enumerate(chain.dats.items()):
        if dat not in runs_kept.zero:
            selection = _select(sets[set_name], copy_bits_of_set[set_name], i)
            if selection.count.any():
                copies[dat] = selection
    _check_dropped(runs_kept, copies)
    return TilePlan(
        loops=chain.loops, sets=sets, runs=tuple(runs), copies=copies, kept=runs_kept
    )


def with_maps(
    tiles: TilePlan, maps: Mapping[str, SetMap], sizes: Mapping[str, int]
) -> TilePlan:
    """Tiles with ``maps`` in local numbers, which they need to run. O(rows x arity)."""
    local: dict[str, LocalMap] = {}
    for loop in tiles.loops:
        for name in loop.maps:
            if name not in local:
                local[name] = _local_map(tiles, maps[name], sizes[maps[name].to_set])
    return replace(tiles, maps=local)


def _owned_elements(
    chain: ChainNumbers, set_start: Int64s, part: Mapping[str, Int32s]
) -> tuple[Int32s, Int64s]:
    """The elements that each tile owns, in a tile by set, ascending; and their offsets."""
    from .compiled import transpose

    tiles_of_sets = []
    numbers_of_sets = []
    for i, set_name in enumerate(chain.sizes):
        if set_name in part:
            tile = part[set_name]
            tiles_of_sets.append(tile)
            numbers_of_sets.append(int(set_start[i]) + np.arange(tile.size))
    tile = np.concatenate(tiles_of_sets)
    element = np.concatenate(numbers_of_sets)
    # Leave out elements of other ranks.
    element = element[tile >= 0]
    tile = tile[tile >= 0]
    offset, order = transpose(tile, int(tile.max(initial=-1)) + 1)
    return element[order].astype(np.int32), offset


def _select(of_set: LocalSet, bits: UInt64s, bit: int) -> LocalSelection:
    """The elements of a set in each tile that have a bit."""
    from .compiled import select

    count, items, are_first = select(of_set.offset, bits, bit)
    if are_first:
        return LocalSelection(count, None)
    return LocalSelection(count, items)


def _check_dropped(kept: Kept, copied: Mapping[str, LocalSelection]) -> None:
    for name in sorted(kept.dropped):
        if name in copied:
            raise MeshprepError(
                f"dat '{name}' cannot be dropped at the end of the chain: its loops read "
                "it before one writes all of it (full = true); leave it out of 'dropped'"
            )


def _local_map(tiles: TilePlan, m: SetMap, n_points: int) -> LocalMap:
    from .compiled import local_table

    from_set = tiles.sets[m.from_set]
    to_set = tiles.sets[m.to_set]
    offset = offsets_of(tiles.rows_of(m.name))
    table = local_table(
        (offset, from_set.offset, to_set.offset),
        (from_set.elements, to_set.elements),
        m.table,
        n_points,
    )
    return LocalMap(offset, table.astype(tiles.index_type(m.to_set), copy=False))
