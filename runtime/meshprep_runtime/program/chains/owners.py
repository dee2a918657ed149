"""Which tile owns an element: neighbouring blocks are joined, other sets follow through maps."""

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from ...errors import MeshprepError
from ...plan.model import LoopPlan
from ...types.maps import Int32s, Int64s, SetMap
from .numbers import ChainNumbers

# What a core of today's processors keeps in its second-level cache.
CACHE_BYTES = 1 << 20
INDEX_BYTES = 2


def tile_owners(
    chain: ChainNumbers, plans: Sequence[LoopPlan], tile_size: int
) -> dict[str, Int32s]:
    """The tile of every element of the sets that need owners.

    Blocks of the largest loop that writes through maps are joined, or cut where they are too large:
    they are compact. Those of loops without maps are runs of a numbering, whatever their shape.
    ``plans`` are those of the chain's loops; a tile has about ``tile_size`` elements of the last
    loop's set. Raises MeshprepError for a chain that changes nothing.
    """
    if not chain.owned_sets():
        raise MeshprepError("a chain that changes nothing cannot be cut into tiles")
    last = plans[-1]
    compact = [p for p in plans if p.variants and p.loop.conflict_columns]
    seed = max(compact, key=_elements, default=last)
    size = max(tile_size * _elements(seed) // max(_elements(last), 1), 1)
    size = min(size, np.iinfo(np.int32).max)  # as many as a set can have
    block = blocks_of(seed, size)
    joined = join(block, _meetings(chain, seed.loop.over, block), size)
    part = {seed.loop.over: joined[block]}
    inherit(chain, part)
    return {s: part[s] for s in chain.owned_sets()}


def _elements(plan: LoopPlan) -> int:
    return plan.sizes[plan.loop.over]


def blocks_of(plan: LoopPlan, tile_size: int) -> Int32s:
    """The block of each element, cut to ``tile_size``; runs of the numbering without blocks."""
    from .compiled import transpose

    n = _elements(plan)
    if not plan.variants:
        return (np.arange(n) // tile_size).astype(np.int32)
    variant = min(plan.variants.values(), key=lambda v: abs(v.block_size - tile_size))
    block = variant.block_of_element()
    if variant.block_size <= tile_size:
        return block
    start, order = transpose(block, variant.n_blocks)
    inside = np.arange(n) - start[block[order]]
    block, place = block[order], inside // tile_size
    new = (np.diff(block, prepend=block[:1]) != 0) | (np.diff(place, prepend=0) != 0)
    found = np.empty(n, np.int32)
    found[order] = np.cumsum(new)
    return found


def join(block: Int32s, meetings: Mapping[int, Mapping[int, int]], tile_size: int) -> Int32s:
    """Grow tiles by the block that meets them most often; the tile of each block. O(b log b)."""
    size = np.bincount(block)
    tile = np.full(size.size, -1, np.int32)
    n_tiles = 0
    for seed in range(size.size):
        if tile[seed] >= 0:
            continue
        total, heap = 0, [(0, seed)]
        contact: dict[int, int] = defaultdict(int)
        while heap:
            _, b = heapq.heappop(heap)
            if tile[b] >= 0 or (total + size[b] > tile_size and total):
                continue
            tile[b], total = n_tiles, total + size[b]
            for other, times in meetings.get(b, {}).items():
                if tile[other] < 0:
                    contact[other] += times
                    heapq.heappush(heap, (-contact[other], other))
        n_tiles += 1
    return tile


def _meetings(chain: ChainNumbers, over: str, block: Int32s) -> dict[int, dict[int, int]]:
    """How often two blocks meet: in an element with both, or at a point that both reach."""
    many = int(block.max(initial=0)) + 1
    keys = (_keys(m, over, block, many) for m in chain.maps.values())
    both = np.concatenate([np.zeros(0, np.int64), *keys])
    found: dict[int, dict[int, int]] = defaultdict(dict)
    pairs, times = np.unique(both, return_counts=True)
    for key, n in zip(pairs.tolist(), times.tolist(), strict=True):
        a, b = divmod(key, many)
        found[a][b] = found[b][a] = n
    return found


def _keys(m: SetMap, over: str, block: Int32s, many: int) -> Int64s:
    """Pairs of blocks that meet, ``lower * many + higher``, as often as they do."""
    from .compiled import neighbours, transpose

    if m.to_set == over and m.arity > 1:
        first = np.repeat(block[m.table[:, 0]], m.arity - 1)
        others = block[m.table[:, 1:]].reshape(-1)
        apart = first != others
        low, high = np.minimum(first, others)[apart], np.maximum(first, others)[apart]
        pairs: Int64s = low.astype(np.int64) * many + high
        return pairs
    if m.from_set != over:
        return np.zeros(0, np.int64)
    points = int(m.table.max(initial=-1)) + 1
    offset, places = transpose(m.table.reshape(-1), points)
    found: Int64s = neighbours(offset, places, m.arity, block, many)
    return found


def inherit(chain: ChainNumbers, part: dict[str, Int32s]) -> None:
    """Elements of other sets get a tile they reach, or that reaches them; else equal runs."""
    n_tiles = int(max(p.max(initial=0) for p in part.values())) + 1
    missing = [s for s in chain.sizes if s not in part]
    while missing:
        for name in missing:
            found = _inherited(chain, name, part)
            if found is not None:
                part[name] = found
                break
        else:
            n = chain.sizes[missing[0]]
            part[missing[0]] = (np.arange(n) * n_tiles // max(n, 1)).astype(np.int32)
        missing = [s for s in missing if s not in part]


def _inherited(chain: ChainNumbers, name: str, part: Mapping[str, Int32s]) -> Int32s | None:
    for m in chain.maps.values():
        if m.from_set == name and m.to_set in part:
            return part[m.to_set][m.table[:, 0]]
    for m in chain.maps.values():
        if m.to_set == name and m.from_set in part:
            found = np.zeros(chain.sizes[name], np.int32)
            found[m.table.reshape(-1)] = np.repeat(part[m.from_set], m.arity)
            return found
    return None


def tile_in_cache(chain: ChainNumbers) -> int:
    """Elements of the last loop's set in a tile whose dats and maps fit into cache."""
    n = max(chain.sizes[chain.loops[-1].over], 1)
    nbytes = {a.name: a.nbytes for loop in chain.loops for a in loop.args if not a.is_global}
    dats = sum(nbytes[d] * chain.sizes[s] for d, s in chain.dats.items())
    maps = sum(INDEX_BYTES * m.table.size for m in chain.maps.values())
    return max(CACHE_BYTES * n // max(dats + maps, 1), 1)


def sizes_to_try(chain: ChainNumbers) -> list[int]:
    """Tile sizes: what fits into a second-level cache, four times and sixteen times as much.

    Where caches are larger than assumed, or the next level is fast, fewer tiles are faster. Sizes
    from that of the mesh on, which all give one tile, are left out; where all are, that of the mesh
    stays.
    """
    fits, n = tile_in_cache(chain), max(chain.sizes[chain.loops[-1].over], 1)
    return [size for size in (fits, 4 * fits, 16 * fits) if size < n] or [n]
