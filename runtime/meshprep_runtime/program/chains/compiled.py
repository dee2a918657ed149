"""Compiled parts of the inspector [R14 algorithm 9], the same for all chains."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from ..._numba.compiling import INNER
from ...types.maps import SetMap, offsets_of
from .numbers import ChainArrays, ChainNumbers, MapArrays

ONE = np.uint64(1)
# A set of dats or loops without any.
NONE = np.uint64(0)


class TileState(NamedTuple):
    """The elements of the tile that :func:`inspect` works on.

    Elements of all sets are numbered in one sequence. ``stamp`` is the last tile that has
    held an element; ``need`` has a bit for each dat whose value is needed there, ``run`` a
    bit for each loop that runs the element. The elements of set ``s`` in the tile are the
    first ``size[s]`` of ``members`` from the start of the set on.
    """

    stamp: NDArray[Any]
    need: NDArray[Any]
    run: NDArray[Any]
    members: NDArray[Any]
    size: NDArray[Any]


@numba.njit(cache=True, nogil=True)
def transpose(table: NDArray[Any], n_points: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """For each point, the entries of a flat table that name it, ascending.

    Returns the offsets of the points and the entries. O(entries + points).
    """
    # Count the entries of each point.
    offset = np.zeros(n_points + 1, np.int64)
    for p in table:
        offset[p + 1] += 1
    for p in range(n_points):
        offset[p + 1] += offset[p]
    # Distribute them.
    next_entry = offset[:-1].copy()
    entries = np.empty(table.size, np.int32)
    for i in range(table.size):
        entries[next_entry[table[i]]] = i
        next_entry[table[i]] += 1
    return offset, entries


@numba.njit(cache=True, nogil=True)
def neighbours(
    offset: NDArray[Any],
    entries: NDArray[Any],
    arity: int,
    block: NDArray[Any],
    n_blocks: int,
) -> NDArray[Any]:
    """Pairs of blocks that follow each other in the lists of :func:`transpose`.

    A pair is ``lower * n_blocks + higher``. O(entries).
    """
    pairs = np.empty(max(entries.size, 1), np.int64)
    count = 0
    for p in range(offset.size - 1):
        a = np.int32(-1)
        for i in range(offset[p], offset[p + 1]):
            b = block[entries[i] // arity]
            if a >= 0 and a != b:
                pairs[count] = np.int64(min(a, b)) * n_blocks + max(a, b)
                count += 1
            a = b
    return pairs[:count]


@numba.njit(cache=True, nogil=True)
def inspect(
    chain: ChainArrays,
    maps: MapArrays,
    owned_offset: NDArray[Any],
    owned: NDArray[Any],
    end_need: NDArray[Any],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The elements that each tile holds, runs and copies [R14 algorithm 9, dat by dat].

    ``owned`` are the elements that tile after tile owns, in a tile by set; ``end_need`` has
    the bits of the dats of each set that are needed after the chain. Returns the elements
    of tile after tile, in a tile set after set; the bits of the loops that run each of
    them, and of the dats that must be copied there; and the number of elements of each tile
    and set. O(sum over tiles of elements x accesses of the chain).
    """
    # The stamp of an element tells which tile its needs are of: nothing is reset between
    # tiles.
    n_sets = chain.set_start.size - 1
    n_tiles = owned_offset.size - 1
    n_loops = chain.over.size
    n = chain.set_start[n_sets]
    state = TileState(
        np.full(n, -1, np.int32),
        np.empty(n, np.uint64),
        np.empty(n, np.uint64),
        np.empty(n, np.int32),
        np.zeros(n_sets, np.int64),
    )
    size = state.size
    count = np.zeros((n_tiles, n_sets), np.int64)
    # Tiles overlap, so they hold more elements than there are: guess a quarter more.
    elements = np.empty(n + n // 4 + 16, np.int32)
    runs = np.empty(elements.size, np.uint64)
    copies = np.empty(elements.size, np.uint64)
    used = 0
    for t in range(n_tiles):
        # Start from the dats that are needed at the end, and go back loop by loop.
        owned_by_tile = owned[owned_offset[t] : owned_offset[t + 1]]
        _begin_tile(chain=chain, state=state, t=t, owned=owned_by_tile, end_need=end_need)
        n_owned = size.copy()
        for k in range(n_loops - 1, -1, -1):
            _find_runs(chain=chain, maps=maps, state=state, t=t, k=k, n_owned=n_owned)
            _find_needs(chain=chain, maps=maps, state=state, t=t, k=k)

        # Append the elements of the tile to those of the tiles before it.
        n_needed = used + size.sum()
        if n_needed > elements.size:
            elements = _longer(elements, n_needed)
            runs = _longer(runs, n_needed)
            copies = _longer(copies, n_needed)
        # Owned elements come first in each set, then by the loops that run them.
        for s in range(n_sets):
            start = chain.set_start[s]
            _put_in_order(
                part=state.members[start : start + size[s]],
                n_owned=n_owned[s],
                run=state.run,
                out=elements[used : used + size[s]],
                n_loops=n_loops,
            )
            for i in range(used, used + size[s]):
                runs[i] = state.run[elements[i]]
                copies[i] = state.need[elements[i]]
            used += size[s]
            count[t, s] = size[s]
    return elements[:used], runs[:used], copies[:used], count


@numba.njit(**INNER)
def _begin_tile(
    chain: ChainArrays,
    state: TileState,
    t: int,
    owned: NDArray[Any],
    end_need: NDArray[Any],
) -> None:
    """Put the owned elements into a tile, with the dats needed there after the chain."""
    stamp, need, run, members, size = state
    size[:] = 0
    s = 0
    for e in owned:
        while e >= chain.set_start[s + 1]:
            s += 1
        stamp[e] = t
        need[e] = end_need[s]
        run[e] = NONE
        members[chain.set_start[s] + size[s]] = e
        size[s] += 1


@numba.njit(**INNER)
def _find_runs(
    chain: ChainArrays,
    maps: MapArrays,
    state: TileState,
    t: int,
    k: int,
    n_owned: NDArray[Any],
) -> None:
    """Find the elements that loop ``k`` must run.

    These are all that write a value that is needed; and all owned ones where it reduces.
    """
    stamp, need, run, members, size = state
    s = chain.over[k]
    bit = ONE << np.uint64(k)
    start = chain.set_start[s]
    up_offset = maps.up_offset
    up = maps.up
    # Each owned element counts once in a reduction.
    if chain.reduces[k]:
        for i in range(start, start + n_owned[s]):
            run[members[i]] |= bit
    # Go back from needed values to the elements that write them.
    for a in range(chain.first[k], chain.first[k + 1]):
        write = chain.write[a]
        m = chain.map[a]
        if write == 0:
            continue
        if m < 0:
            to = s
        else:
            to = maps.to_set[m]
        first = chain.set_start[to]
        up_start = maps.up_start[a]
        n = size[s]
        for i in range(first, first + size[to]):
            p = members[i]
            if need[p] & write == 0:
                continue
            if m < 0:
                run[p] |= bit
                continue
            # Add all elements that write to the point through the map.
            q = up_start + p - first
            for j in range(up_offset[q], up_offset[q + 1]):
                e = start + up[j]
                if stamp[e] != t:
                    stamp[e] = t
                    need[e] = NONE
                    run[e] = NONE
                    members[start + n] = e
                    n += 1
                run[e] |= bit
        size[s] = n


@numba.njit(**INNER)
def _find_needs(
    chain: ChainArrays, maps: MapArrays, state: TileState, t: int, k: int
) -> None:
    """Find the values that are needed before loop ``k``.

    Values that it fully overwrites are no longer needed; those that it reads are. All
    points that its elements reach become members of the tile.
    """
    stamp, need, run, members, size = state
    s = chain.over[k]
    bit = ONE << np.uint64(k)
    table = maps.table
    last = chain.first[k + 1]
    first = chain.first[k]
    start = chain.set_start[s]
    # Take away the dats that the loop overwrites.
    full = np.uint64(0)
    for a in range(first, last):
        full |= chain.full[a]
    n = size[s]
    if full:
        for i in range(start, start + n):
            if run[members[i]] & bit:
                need[members[i]] &= ~full
    # Add the dats that it reads: one access after the other, so that the kind of an access
    # is looked up only once.
    for a in range(first, last):
        m = chain.map[a]
        read = chain.read[a]
        if m < 0:
            if read:
                for i in range(start, start + n):
                    if run[members[i]] & bit:
                        need[members[i]] |= read
            continue
        to = maps.to_set[m]
        arity = maps.arity[m]
        first_point = chain.set_start[to]
        n_points = size[to]
        base = maps.table_start[m] + chain.column[a] - maps.from_start[m] * arity
        for i in range(start, start + n):
            e = members[i]
            if run[e] & bit:
                p = first_point + table[base + e * arity]
                # Here and in `_find_runs` in place, not in a function: at every call numba
                # would count the references to its arrays.
                if stamp[p] != t:
                    stamp[p] = t
                    need[p] = NONE
                    run[p] = NONE
                    members[first_point + n_points] = p
                    n_points += 1
                need[p] |= read
        size[to] = n_points


@numba.njit(**INNER)
def _put_in_order(
    part: NDArray[Any], n_owned: int, run: NDArray[Any], out: NDArray[Any], n_loops: int
) -> None:
    """Order the elements of a tile: the owned ones, then those that more loops run.

    So the elements that a loop runs are often the first ones, without a list.
    """
    for i in range(n_owned):
        out[i] = part[i]
    # Sort the others by counting; elements that all loops run have key 0.
    begin = np.zeros(n_loops + 2, np.int64)
    for e in part[n_owned:]:
        begin[n_loops - _count_bits(run[e]) + 1] += 1
    begin[0] = n_owned
    for k in range(n_loops + 1):
        begin[k + 1] += begin[k]
    end = begin.copy()
    for e in part[n_owned:]:
        key = n_loops - _count_bits(run[e])
        out[end[key]] = e
        end[key] += 1
    # Inside a key ascending: elements are copied in this order, as runs of memory.
    for k in range(n_loops + 1):
        out[begin[k] : end[k]].sort()


@numba.njit(**INNER)
def _count_bits(mask: np.uint64) -> int:
    count = 0
    while mask:
        mask &= mask - ONE
        count += 1
    return count


@numba.njit(**INNER)
def _longer(values: NDArray[Any], n_needed: int) -> NDArray[Any]:
    longer = np.empty(n_needed + n_needed // 2, values.dtype)
    # Not by a slice: its message alone would compile for two seconds.
    for i in range(values.size):
        longer[i] = values[i]
    return longer


@numba.njit(cache=True, nogil=True)
def of_set(
    arrays: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    count: NDArray[Any],
    s: int,
    start: int,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The result of :func:`inspect` for set ``s``, elements from 0. O(elements).

    ``arrays`` are the elements, runs and copies of all sets; ``start`` is the number of the
    first element of the set.
    """
    elements, runs, copies = arrays
    n = count[:, s].sum()
    elements_of_set = np.empty(n, np.int32)
    runs_of_set = np.empty(n, np.uint64)
    copies_of_set = np.empty(n, np.uint64)
    i = 0
    j = 0
    for t in range(count.shape[0]):
        # Skip the sets before it, and after it.
        i += count[t, :s].sum()
        for _ in range(count[t, s]):
            elements_of_set[j] = elements[i] - start
            runs_of_set[j] = runs[i]
            copies_of_set[j] = copies[i]
            i += 1
            j += 1
        i += count[t, s + 1 :].sum()
    return elements_of_set, runs_of_set, copies_of_set


@numba.njit(cache=True, nogil=True)
def select(
    offset: NDArray[Any], bits: NDArray[Any], bit: int
) -> tuple[NDArray[Any], NDArray[Any], bool]:
    """The elements of each tile that have a bit, in local numbers. O(elements).

    Returns their number in each tile; their local numbers; and whether they are the first
    ones in every tile, when no numbers are listed.
    """
    count = np.zeros(offset.size - 1, np.int64)
    are_first = True
    mask = ONE << np.uint64(bit)
    for t in range(count.size):
        for i in range(offset[t], offset[t + 1]):
            if bits[i] & mask:
                are_first &= i - offset[t] == count[t]
                count[t] += 1
    # List numbers only where they are not the first ones: a range needs no memory.
    items = np.empty(0 if are_first else count.sum(), np.int32)
    if not are_first:
        n_items = 0
        for t in range(count.size):
            for i in range(offset[t], offset[t + 1]):
                if bits[i] & mask:
                    items[n_items] = i - offset[t]
                    n_items += 1
    return count, items, are_first


@numba.njit(cache=True, nogil=True)
def local_table(
    offset: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    elements: tuple[NDArray[Any], NDArray[Any]],
    table: NDArray[Any],
    n_points: int,
) -> NDArray[Any]:
    """The rows of a map that each tile needs, in local numbers; 0 for other points.

    ``offset`` are the offsets of the tiles in the rows, in the elements of the from-set and
    in those of the to-set; ``elements`` are the elements of both sets. O(rows x arity +
    elements).
    """
    rows, from_offset, to_offset = offset
    from_elements, to_elements = elements
    stamp = np.full(n_points, -1, np.int32)
    local = np.empty(n_points, np.int32)
    out = np.zeros((rows[-1], table.shape[1]), np.int32)
    for t in range(rows.size - 1):
        # Number the points of the tile.
        for i in range(to_offset[t], to_offset[t + 1]):
            stamp[to_elements[i]] = t
            local[to_elements[i]] = i - to_offset[t]
        # Translate its rows.
        for i in range(rows[t + 1] - rows[t]):
            e = from_elements[from_offset[t] + i]
            for c in range(table.shape[1]):
                if stamp[table[e, c]] == t:
                    out[rows[t] + i, c] = local[table[e, c]]
    return out


def map_arrays(chain: ChainNumbers, arrays: ChainArrays) -> MapArrays:
    """The maps in numbers, with the transposes of written columns. O(n x arity)."""
    # Compiled code knows sets and maps by their numbers.
    set_number = {s: i for i, s in enumerate(chain.sizes)}
    maps = list(chain.maps.values())

    # Transpose each column of a map through which a loop writes, once.
    up_start = np.full(arrays.map.size, -1, np.int64)
    start_of_column: dict[tuple[int, int], int] = {}
    up_offset: list[NDArray[Any]] = [np.zeros(0, np.int64)]
    up: list[NDArray[Any]] = [np.zeros(0, np.int32)]
    n_offsets = 0
    n_entries = 0
    for a in np.flatnonzero((arrays.write != NONE) & (arrays.map >= 0)).tolist():
        column = (int(arrays.map[a]), int(arrays.column[a]))
        if column not in start_of_column:
            offset, elements = _transpose_column(chain, maps, *column)
            start_of_column[column] = n_offsets
            up_offset.append(offset + n_entries)
            up.append(elements)
            n_offsets += offset.size
            n_entries += elements.size
        up_start[a] = start_of_column[column]

    # Put the tables one behind the other.
    tables = [m.table.reshape(-1) for m in maps]
    table = np.concatenate([np.zeros(0, np.int32), *tables])
    from_start = [arrays.set_start[set_number[m.from_set]] for m in maps]
    return MapArrays(
        arity=np.array([m.arity for m in maps], np.int64),
        from_start=np.array(from_start, np.int64),
        to_set=np.array([set_number[m.to_set] for m in maps], np.int64),
        table_start=offsets_of([t.size for t in tables]),
        table=table.astype(np.int32, copy=False),
        up_start=up_start,
        up_offset=np.concatenate(up_offset),
        up=np.concatenate(up),
    )


def _transpose_column(
    chain: ChainNumbers, maps: Sequence[SetMap], m: int, column: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """For each point, the elements that name it in one column of a map."""
    table = np.ascontiguousarray(maps[m].table[:, column])
    offset, elements = transpose(table, chain.sizes[maps[m].to_set])
    return offset, elements
