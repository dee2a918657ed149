"""Compiled parts of the inspector; each serves every chain."""

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from ...kernel.analysis import INNER
from ...types.maps import SetMap, offsets_of
from .numbers import ChainArrays, ChainNumbers, MapArrays

ONE, NONE = np.uint64(1), np.uint64(0)


@numba.njit(cache=True, nogil=True)
def transpose(table: NDArray[Any], n_points: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """For each point the flat places of a table that name it, ascending. O(places + points)."""
    offset = np.zeros(n_points + 1, np.int64)
    for p in table:
        offset[p + 1] += 1
    for p in range(n_points):
        offset[p + 1] += offset[p]
    at = offset[:-1].copy()
    places = np.empty(table.size, np.int32)
    for i in range(table.size):
        places[at[table[i]]] = i
        at[table[i]] += 1
    return offset, places


@numba.njit(cache=True, nogil=True)
def neighbours(
    offset: NDArray[Any], places: NDArray[Any], arity: int, block: NDArray[Any], many: int
) -> NDArray[Any]:
    """Pairs of blocks beside each other in the lists of :func:`transpose`. O(places)."""
    found = np.empty(max(places.size, 1), np.int64)
    count = 0
    for p in range(offset.size - 1):
        a = np.int32(-1)
        for i in range(offset[p], offset[p + 1]):
            b = block[places[i] // arity]
            if a >= 0 and a != b:
                found[count] = np.int64(min(a, b)) * many + max(a, b)
                count += 1
            a = b
    return found[:count]


@numba.njit(cache=True, nogil=True)
def inspect(
    chain: ChainArrays,
    maps: MapArrays,
    own_offset: NDArray[Any],
    own: NDArray[Any],
    end_need: NDArray[Any],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """What each tile holds, runs and copies [R14 algorithm 9, dat by dat].

    ``own`` are the elements of some tiles, by set inside a tile; ``end_need`` has the bits of the
    dats of each set that are wanted after the chain. Returns the elements of tile after tile, set
    after set; the bits of the loops that run each, and of the dats that must be copied; and how
    many there are of each tile and set. O(sum over tiles of elements x accesses of the chain).
    """
    n_sets, n_tiles = chain.set_start.size - 1, own_offset.size - 1
    n = chain.set_start[n_sets]
    stamp = np.full(n, -1, np.int32)
    need, run = np.empty(n, np.uint64), np.empty(n, np.uint64)
    members, size = np.empty(n, np.int32), np.zeros(n_sets, np.int64)
    count = np.zeros((n_tiles, n_sets), np.int64)
    elements = np.empty(n + n // 4 + 16, np.int32)
    runs, copies = np.empty(elements.size, np.uint64), np.empty(elements.size, np.uint64)
    used = 0
    for t in range(n_tiles):
        state = (stamp, need, run, members, size)
        _begin(chain, state, t, own[own_offset[t] : own_offset[t + 1]], end_need)
        owned = size.copy()
        for k in range(chain.over.size - 1, -1, -1):
            _find_runs(chain, maps, state, t, k, owned)
            _find_needs(chain, maps, state, t, k)
        wanted = used + size.sum()
        if wanted > elements.size:
            elements = _longer(elements, wanted)
            runs, copies = _longer(runs, wanted), _longer(copies, wanted)
        for s in range(n_sets):
            part = members[chain.set_start[s] : chain.set_start[s] + size[s]]
            _put_in_order(part, owned[s], run, elements[used : used + size[s]], chain.over.size)
            for i in range(used, used + size[s]):
                runs[i], copies[i] = run[elements[i]], need[elements[i]]
            used += size[s]
            count[t, s] = size[s]
    return elements[:used], runs[:used], copies[:used], count


@numba.njit(**INNER)
def _begin(
    chain: ChainArrays, state: Any, t: int, own: NDArray[Any], end_need: NDArray[Any]
) -> None:
    stamp, need, run, members, size = state
    size[:] = 0
    s = 0
    for e in own:
        while e >= chain.set_start[s + 1]:
            s += 1
        stamp[e], need[e], run[e] = t, end_need[s], NONE
        members[chain.set_start[s] + size[s]] = e
        size[s] += 1


@numba.njit(**INNER)
def _find_runs(
    chain: ChainArrays, maps: MapArrays, state: Any, t: int, k: int, owned: NDArray[Any]
) -> None:
    """Loop ``k`` runs what writes a value that is needed; reductions run all own elements."""
    stamp, need, run, members, size = state
    s, bit = chain.over[k], ONE << np.uint64(k)
    start, up_offset, up = chain.set_start[s], maps.up_offset, maps.up
    if chain.reduces[k]:
        for i in range(start, start + owned[s]):
            run[members[i]] |= bit
    for a in range(chain.first[k], chain.first[k + 1]):
        write, m = chain.write[a], chain.map[a]
        if write == 0:
            continue
        to = s if m < 0 else maps.to_set[m]
        first, up_start, n = chain.set_start[to], maps.up_start[a], size[s]
        for i in range(first, first + size[to]):
            p = members[i]
            if need[p] & write == 0:
                continue
            if m < 0:
                run[p] |= bit
                continue
            q = up_start + p - first
            for j in range(up_offset[q], up_offset[q + 1]):
                e = start + up[j]
                if stamp[e] != t:
                    stamp[e], need[e], run[e] = t, NONE, NONE
                    members[start + n] = e
                    n += 1
                run[e] |= bit
        size[s] = n


@numba.njit(**INNER)
def _find_needs(chain: ChainArrays, maps: MapArrays, state: Any, t: int, k: int) -> None:
    """Before loop ``k``: not what it overwrites, but what it reads. All it reaches is a member."""
    stamp, need, run, members, size = state
    s, bit, table = chain.over[k], ONE << np.uint64(k), maps.table
    start, first, last = chain.set_start[s], chain.first[k], chain.first[k + 1]
    full = np.uint64(0)
    for a in range(first, last):
        full |= chain.full[a]
    n = size[s]
    if full:
        for i in range(start, start + n):
            if run[members[i]] & bit:
                need[members[i]] &= ~full
    # An access at a time, so that what it is need not be looked up for every element.
    for a in range(first, last):
        m, read = chain.map[a], chain.read[a]
        if m < 0:
            if read:
                for i in range(start, start + n):
                    if run[members[i]] & bit:
                        need[members[i]] |= read
            continue
        to, arity = maps.to_set[m], maps.arity[m]
        first_point, found = chain.set_start[to], size[to]
        base = maps.table_start[m] + chain.column[a] - maps.from_start[m] * arity
        for i in range(start, start + n):
            e = members[i]
            if run[e] & bit:
                p = first_point + table[base + e * arity]
                # Here and above, not in a function: numba would count its arrays at every call.
                if stamp[p] != t:
                    stamp[p], need[p], run[p] = t, NONE, NONE
                    members[first_point + found] = p
                    found += 1
                need[p] |= read
        size[to] = found


@numba.njit(**INNER)
def _put_in_order(
    part: NDArray[Any], owned: int, run: NDArray[Any], out: NDArray[Any], n_loops: int
) -> None:
    """Own elements, then the others by how many loops run them: runs become prefixes."""
    for i in range(owned):
        out[i] = part[i]
    at = np.zeros(n_loops + 2, np.int64)
    for e in part[owned:]:
        at[n_loops - _bits(run[e]) + 1] += 1
    at[0] = owned
    for k in range(n_loops + 1):
        at[k + 1] += at[k]
    begin = at.copy()
    for e in part[owned:]:
        key = n_loops - _bits(run[e])
        out[at[key]] = e
        at[key] += 1
    # Ascending, since they are stored as runs and copied in this order.
    for k in range(n_loops + 1):
        out[begin[k] : at[k]].sort()


@numba.njit(**INNER)
def _bits(mask: np.uint64) -> int:
    found = 0
    while mask:
        mask &= mask - ONE
        found += 1
    return found


@numba.njit(**INNER)
def _longer(values: NDArray[Any], wanted: int) -> NDArray[Any]:
    made = np.empty(wanted + wanted // 2, values.dtype)
    # Not by a slice: its message alone would compile for two seconds.
    for i in range(values.size):
        made[i] = values[i]
    return made


@numba.njit(cache=True, nogil=True)
def of_set(
    arrays: tuple[NDArray[Any], NDArray[Any], NDArray[Any]], count: NDArray[Any], s: int, start: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """What :func:`inspect` found of set ``s``, its elements from 0. O(elements)."""
    elements, runs, copies = arrays
    n = count[:, s].sum()
    own, ran, copied = np.empty(n, np.int32), np.empty(n, np.uint64), np.empty(n, np.uint64)
    at, to = 0, 0
    for t in range(count.shape[0]):
        at += count[t, :s].sum()
        for _ in range(count[t, s]):
            own[to], ran[to], copied[to] = elements[at] - start, runs[at], copies[at]
            at, to = at + 1, to + 1
        at += count[t, s + 1 :].sum()
    return own, ran, copied


@numba.njit(cache=True, nogil=True)
def select(
    offset: NDArray[Any], bits: NDArray[Any], bit: int
) -> tuple[NDArray[Any], NDArray[Any], bool]:
    """In each tile the places with a bit: how many, which, and whether they come first. O(n)."""
    count, prefix = np.zeros(offset.size - 1, np.int64), True
    mask = ONE << np.uint64(bit)
    for t in range(count.size):
        for i in range(offset[t], offset[t + 1]):
            if bits[i] & mask:
                prefix &= i - offset[t] == count[t]
                count[t] += 1
    items = np.empty(0 if prefix else count.sum(), np.int32)
    if not prefix:
        at = 0
        for t in range(count.size):
            for i in range(offset[t], offset[t + 1]):
                if bits[i] & mask:
                    items[at] = i - offset[t]
                    at += 1
    return count, items, prefix


@numba.njit(cache=True, nogil=True)
def local_table(
    offset: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    elements: tuple[NDArray[Any], NDArray[Any]],
    table: NDArray[Any],
    n_points: int,
) -> NDArray[Any]:
    """Rows of a map in local numbers; 0 for points that a tile does not hold.

    ``offset`` are those of rows, from-elements and to-elements. O(rows x arity + points held).
    """
    rows, from_offset, to_offset = offset
    of_from, of_to = elements
    stamp, local = np.full(n_points, -1, np.int32), np.empty(n_points, np.int32)
    out = np.zeros((rows[-1], table.shape[1]), np.int32)
    for t in range(rows.size - 1):
        for i in range(to_offset[t], to_offset[t + 1]):
            stamp[of_to[i]], local[of_to[i]] = t, i - to_offset[t]
        for i in range(rows[t + 1] - rows[t]):
            e = of_from[from_offset[t] + i]
            for c in range(table.shape[1]):
                if stamp[table[e, c]] == t:
                    out[rows[t] + i, c] = local[table[e, c]]
    return out


def map_arrays(chain: ChainNumbers, arrays: ChainArrays) -> MapArrays:
    """The maps in numbers. O(n x arity)."""
    set_number = {s: i for i, s in enumerate(chain.sizes)}
    maps = list(chain.maps.values())
    flat = [m.table.reshape(-1) for m in maps]
    where = list(zip(arrays.map.tolist(), arrays.column.tolist(), strict=True))
    writes = [k for k, w in zip(where, arrays.write.tolist(), strict=True) if w and k[0] >= 0]
    through = list(dict.fromkeys(writes))
    up = {key: _up(chain, maps, *key) for key in through}
    starts = dict(zip(up, [0, *np.cumsum([o.size for o, _ in up.values()])], strict=False))
    named = offsets_of([elements.size for _, elements in up.values()])
    none: list[NDArray[Any]] = [np.zeros(0, np.int32)]
    offsets = [o + n for (o, _), n in zip(up.values(), named, strict=False)]
    return MapArrays(
        np.array([m.arity for m in maps], np.int64),
        np.array([arrays.set_start[set_number[m.from_set]] for m in maps], np.int64),
        np.array([set_number[m.to_set] for m in maps], np.int64),
        offsets_of([t.size for t in flat]),
        np.concatenate([*none, *flat]).astype(np.int32, copy=False),
        np.array([starts[k] if k in writes else -1 for k in where], np.int64),
        np.concatenate([np.zeros(0, np.int64), *offsets]),
        np.concatenate([*none, *(elements for _, elements in up.values())]),
    )


def _up(
    chain: ChainNumbers, maps: Sequence[SetMap], m: int, column: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    table = np.ascontiguousarray(maps[m].table[:, column])
    offset, elements = transpose(table, chain.sizes[maps[m].to_set])
    return offset, elements
