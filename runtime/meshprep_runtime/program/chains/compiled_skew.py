"""Compiled parts of the inspector of skewed tiles; each serves every chain."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray


@numba.njit(cache=True)
def skew(chain: Any, maps: Any, touched: Any, owner: NDArray[Any]) -> NDArray[Any]:
    """The tile of every element of every loop: the last of those that it depends on.

    Reading depends on who changed a value, changing it on who touched it. An element that depends
    on nothing goes to its owner. O(accesses of the chain).
    """
    n_loops = chain.over.size
    total = 0
    for k in range(n_loops):
        total += chain.set_start[chain.over[k] + 1] - chain.set_start[chain.over[k]]
    tile = np.empty(total, np.int32)
    changed = np.full(touched.start[-1], -1, np.int32)
    used = np.full(touched.start[-1], -1, np.int32)
    begin = 0
    for k in range(n_loops):
        s = chain.over[k]
        first = chain.set_start[s]
        n = chain.set_start[s + 1] - first
        own = tile[begin : begin + n]
        own[:] = -1
        for a in range(chain.first[k], chain.first[k + 1]):
            for i in range(touched.first[a], touched.first[a + 1]):
                before = used if touched.write[i] else changed
                base = touched.start[touched.dat[i]]
                for e in range(n):
                    p = base + _point(chain, maps, a, e)
                    own[e] = max(own[e], before[p])
        for e in range(n):
            if own[e] < 0:
                own[e] = owner[first + e]
        for a in range(chain.first[k], chain.first[k + 1]):
            for i in range(touched.first[a], touched.first[a + 1]):
                base = touched.start[touched.dat[i]]
                for e in range(n):
                    p = base + _point(chain, maps, a, e)
                    used[p] = max(used[p], own[e])
                    if touched.write[i]:
                        changed[p] = max(changed[p], own[e])
        begin += n
    return tile


@numba.njit
def _point(chain: Any, maps: Any, a: int, e: int) -> Any:
    """The number, inside its set, of what an access of an element reaches."""
    m = chain.map[a]
    if m < 0:
        return e
    return np.int64(maps.table[maps.table_start[m] + e * maps.arity[m] + chain.column[a]])


@numba.njit(cache=True)
def conflicts(
    chain: Any, maps: Any, touched: Any, tile: NDArray[Any], colour: NDArray[Any]
) -> NDArray[Any]:
    """Pairs of tiles of one colour that touch a common value, which the chain changes.

    At least one pair where there are any. ``colour`` of each tile ascends. O(accesses x colours).
    """
    n_loops, n_colours = chain.over.size, colour[-1] + 1
    found = [(np.int64(-1), np.int64(-1))]
    last = np.full((n_colours, touched.start[-1]), -1, np.int32)
    begin = 0
    for k in range(n_loops):
        s = chain.over[k]
        n = chain.set_start[s + 1] - chain.set_start[s]
        own = tile[begin : begin + n]
        for a in range(chain.first[k], chain.first[k + 1]):
            for i in range(touched.first[a], touched.first[a + 1]):
                base = touched.start[touched.dat[i]]
                for e in range(n):
                    p = base + _point(chain, maps, a, e)
                    t = own[e]
                    c = colour[t]
                    other = last[c, p]
                    pair = (np.int64(other), np.int64(t))
                    if other >= 0 and other != t and pair != found[-1]:
                        found.append(pair)
                    last[c, p] = t
        begin += n
    out = np.empty((len(found) - 1, 2), np.int64)
    for i in range(1, len(found)):
        out[i - 1, 0], out[i - 1, 1] = found[i]
    return out
