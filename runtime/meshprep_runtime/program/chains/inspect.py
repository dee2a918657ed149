"""The inspector: from the loops of a chain and owners of elements to tiles [R14 algorithm 9]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import MeshprepError
from .numbers import ChainArrays, ChainNumbers, MapArrays, chain_arrays
from .tiles import Kept, LocalMap, LocalSelection, LocalSet, TilePlan

SHORT = 2**16


def overlapped(
    chain: ChainNumbers, part: Mapping[str, NDArray[np.int32]], kept: Kept | None = None
) -> TilePlan:
    """Tiles that compute all their own elements need, and so run in any order.

    Of every dat a tile computes what its own elements need at the end, loop by loop from the last
    to the first; a value that a loop fully overwrites is not needed before it. What is added to
    points that nobody needs is not needed either, so increments reach less far than in the paper.

    Parameters
    ----------
    chain : ChainNumbers
    part : mapping of set name to (n,) int32
        The tile of every element, for ``chain.owned_sets()``.
    kept : Kept, optional
        Default: every dat that is written is stored.

    Returns
    -------
    TilePlan

    Raises
    ------
    MeshprepError
        For a dat that is dropped, and read by the chain before it is written.

    Notes
    -----
    O(elements of all tiles x accesses of the chain), and the maps transposed once.
    """
    from .compiled import inspect

    kept = Kept() if kept is None else kept
    arrays = chain_arrays(chain)
    own, own_offset = _own(chain, arrays.set_start, part)
    end = [
        sum(chain.bit(d) for d in chain.written - kept.dropped if chain.dats[d] == s)
        for s in chain.sizes
    ]
    elements, runs, copies, count = inspect(
        arrays, _map_arrays(chain, arrays), own_offset, own, np.array(end, np.uint64)
    )
    sets, run_bits, copy_bits = {}, {}, {}
    for i, name in enumerate(chain.sizes):
        start, stop = arrays.set_start[i : i + 2]
        here = (elements >= start) & (elements < stop)
        offset = np.concatenate([[0], np.cumsum(count[:, i])])
        has = np.bincount(part[name], minlength=own_offset.size - 1) if name in part else 0
        owned = np.zeros(own_offset.size - 1, np.int64) + has
        sets[name] = LocalSet(offset, (elements[here] - start).astype(np.int32), owned)
        run_bits[name], copy_bits[name] = runs[here], copies[here]
    selected = tuple(
        _select(sets[loop.over], run_bits[loop.over], k) for k, loop in enumerate(chain.loops)
    )
    copied = {
        d: _select(sets[s], copy_bits[s], i)
        for i, (d, s) in enumerate(chain.dats.items())
        if d not in kept.zero
    }
    _check_dropped(kept, copied)
    maps = {m: _local_map(chain, m, sets, selected) for m in chain.maps}
    copied = {d: s for d, s in copied.items() if s.count.any()}
    return TilePlan(chain.loops, sets, maps, selected, copied, kept)


def _own(
    chain: ChainNumbers, set_start: NDArray[np.int64], part: Mapping[str, NDArray[np.int32]]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Elements by tile, in a tile by set, ascending; and where those of each tile begin."""
    numbers = {s: int(set_start[i]) for i, s in enumerate(chain.sizes)}
    tile = np.concatenate([part[s] for s in numbers if s in part])
    element = np.concatenate([numbers[s] + np.arange(part[s].size) for s in numbers if s in part])
    order = np.argsort(tile, kind="stable")
    count = np.bincount(tile)
    return element[order].astype(np.int32), np.concatenate([[0], np.cumsum(count)])


def _select(of_set: LocalSet, bits: NDArray[np.uint64], bit: int) -> LocalSelection:
    chosen = (bits >> np.uint64(bit)) & np.uint64(1) != 0
    before = np.concatenate([[0], np.cumsum(chosen)])
    count = np.diff(before[of_set.offset])
    # A prefix in every tile: as many at the front as there are at all.
    if np.array_equal(before[of_set.offset[:-1] + count] - before[of_set.offset[:-1]], count):
        return LocalSelection(count)
    at = np.flatnonzero(chosen)
    return LocalSelection(count, (at - np.repeat(of_set.offset[:-1], count)).astype(np.int32))


def _check_dropped(kept: Kept, copied: Mapping[str, LocalSelection]) -> None:
    for name in sorted(kept.dropped):
        if name in copied and copied[name].count.any():
            raise MeshprepError(
                f"dat '{name}' cannot be dropped at the end of the chain: its loops read it before "
                "one writes all of it (full = true); leave it out of 'dropped'"
            )


def _local_map(
    chain: ChainNumbers, name: str, sets: Mapping[str, LocalSet], runs: tuple[LocalSelection, ...]
) -> LocalMap:
    from .compiled import local_table

    m = chain.maps[name]
    of_from, of_to = sets[m.from_set], sets[m.to_set]
    rows = np.zeros(of_from.own.size, np.int64)
    for loop, run in zip(chain.loops, runs, strict=True):
        if name in loop.maps:
            rows = np.maximum(rows, _end(run))
    offset = np.concatenate([[0], np.cumsum(rows)])
    offsets = (offset, of_from.offset, of_to.offset)
    table = local_table(offsets, (of_from.elements, of_to.elements), m.table, chain.sizes[m.to_set])
    return LocalMap(offset, table.astype(np.uint16) if of_to.largest <= SHORT else table)


def _end(run: LocalSelection) -> NDArray[np.int64]:
    """One past the last local number of each tile."""
    if run.items is None:
        return run.count
    last = np.concatenate([run.items, [0]])[run.offset[1:] - 1] + 1
    return np.where(run.count > 0, last, 0)


def _map_arrays(chain: ChainNumbers, arrays: ChainArrays) -> MapArrays:
    """The maps in numbers. O(n x arity)."""
    from .compiled import transpose

    set_number = {s: i for i, s in enumerate(chain.sizes)}
    maps = list(chain.maps.values())
    flat = [m.table.reshape(-1) for m in maps]
    up = [transpose(t, chain.sizes[m.to_set]) for t, m in zip(flat, maps, strict=True)]
    starts = [0, *np.cumsum([offset.size for offset, _ in up])]
    table_start = [0, *np.cumsum([t.size for t in flat])]
    none: list[NDArray[Any]] = [np.zeros(0, np.int32)]
    return MapArrays(
        np.array([m.arity for m in maps], np.int64),
        np.array([arrays.set_start[set_number[m.from_set]] for m in maps], np.int64),
        np.array([set_number[m.to_set] for m in maps], np.int64),
        np.array(table_start, np.int64),
        np.concatenate([*none, *flat]).astype(np.int32),
        np.array(starts, np.int64),
        np.concatenate(
            [np.zeros(0, np.int64), *(o + s for (o, _), s in zip(up, table_start, strict=False))]
        ),
        np.concatenate([*none, *(places for _, places in up)]),
    )
