"""The owner of each element: tiles are joined blocks; other sets follow by maps."""

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from ...errors import MeshprepError
from ...plan.model import LoopPlan
from ...types.maps import Int32s, Int64s, SetMap
from .numbers import ChainNumbers

# The second-level cache of one core, in bytes, on common processors.
CACHE_BYTES = 1 << 20
# Bytes of an entry of a map in local numbers.
INDEX_BYTES = 2


def tile_owners(
    chain: ChainNumbers, plans: Sequence[LoopPlan], tile_size: int
) -> dict[str, Int32s]:
    """The tile of every element of the sets that need owners.

    Tiles are made of the blocks of the largest loop that writes through maps, joined, or
    cut where they are too large. These blocks are compact; those of loops without maps are
    runs of the numbering, of any shape. ``plans`` are the plans of the chain's loops; a
    tile has about ``tile_size`` elements of the last loop's set. Raises MeshprepError for a
    chain that changes nothing.
    """
    if not chain.owned_sets():
        raise MeshprepError("a chain that changes nothing cannot be cut into tiles")
    last = plans[-1]
    compact = [p for p in plans if p.variants and p.loop.conflict_columns]
    seed = max(compact, key=_count_elements, default=last)
    # Translate the size of a tile to elements of the seed's set.
    size = max(tile_size * _count_elements(seed) // max(_count_elements(last), 1), 1)
    # No set has more elements than an int32 holds.
    size = min(size, np.iinfo(np.int32).max)
    block = blocks_of(seed, size)
    tile_of_block = join(block, _count_meetings(chain, seed.loop.over, block), size)
    part = {seed.loop.over: tile_of_block[block]}
    inherit(chain, part)
    return {s: part[s] for s in chain.owned_sets()}


def _count_elements(plan: LoopPlan) -> int:
    return plan.sizes[plan.loop.over]


def blocks_of(plan: LoopPlan, tile_size: int) -> Int32s:
    """The block of each element, of at most ``tile_size`` elements.

    Larger blocks are cut; of a plan without blocks they are runs of the numbering.
    """
    from .compiled import transpose

    n = _count_elements(plan)
    if not plan.variants:
        return (np.arange(n) // tile_size).astype(np.int32)
    variant = min(plan.variants.values(), key=lambda v: abs(v.block_size - tile_size))
    block = variant.block_of_element()
    if variant.block_size <= tile_size:
        return block
    # Cut each block into runs of its elements, and number all runs one after the other.
    start, order = transpose(block, variant.n_blocks)
    number_in_block = np.arange(n) - start[block[order]]
    block = block[order]
    run_in_block = number_in_block // tile_size
    begins_block = np.diff(block, prepend=block[:1]) != 0
    begins_run = np.diff(run_in_block, prepend=0) != 0
    run_of_element = np.empty(n, np.int32)
    run_of_element[order] = np.cumsum(begins_block | begins_run)
    return run_of_element


def join(
    block: Int32s, meetings: Mapping[int, Mapping[int, int]], tile_size: int
) -> Int32s:
    """The tile of each block: a tile grows by the block that meets it most often.

    ``meetings`` has for each block the blocks that it meets, and how often. O(b log b).
    """
    size = np.bincount(block)
    tile = np.full(size.size, -1, np.int32)
    n_tiles = 0
    for seed in range(size.size):
        if tile[seed] >= 0:
            continue
        size_of_tile = 0
        # Candidates, those with the most meetings first.
        heap = [(0, seed)]
        n_meetings: dict[int, int] = defaultdict(int)
        while heap:
            _, b = heapq.heappop(heap)
            is_too_large = size_of_tile > 0 and size_of_tile + size[b] > tile_size
            if tile[b] >= 0 or is_too_large:
                continue
            tile[b] = n_tiles
            size_of_tile += size[b]
            # Its neighbours come nearer to the top; what lies in the heap from before is
            # passed over.
            for other, count in meetings.get(b, {}).items():
                if tile[other] < 0:
                    n_meetings[other] += count
                    heapq.heappush(heap, (-n_meetings[other], other))
        n_tiles += 1
    return tile


def _count_meetings(
    chain: ChainNumbers, over: str, block: Int32s
) -> dict[int, dict[int, int]]:
    """How often two blocks meet: in an element that reaches both, or at a point of both."""
    n_blocks = int(block.max(initial=0)) + 1
    pairs_of_maps = [
        _meeting_pairs(m=m, over=over, block=block, n_blocks=n_blocks)
        for m in chain.maps.values()
    ]
    pairs = np.concatenate([np.zeros(0, np.int64), *pairs_of_maps])
    distinct_pairs, counts = np.unique(pairs, return_counts=True)
    meetings: dict[int, dict[int, int]] = defaultdict(dict)
    for pair, count in zip(distinct_pairs.tolist(), counts.tolist(), strict=True):
        a, b = divmod(pair, n_blocks)
        meetings[a][b] = count
        meetings[b][a] = count
    return meetings


def _meeting_pairs(m: SetMap, over: str, block: Int32s, n_blocks: int) -> Int64s:
    """The pairs of blocks that meet through a map, each as often as they do.

    A pair is ``lower * n_blocks + higher``.
    """
    from .compiled import neighbours, transpose

    # Elements that reach several blocks: the first block meets each of the others.
    if m.to_set == over and m.arity > 1:
        first = np.repeat(block[m.table[:, 0]], m.arity - 1)
        others = block[m.table[:, 1:]].reshape(-1)
        differ = first != others
        low = np.minimum(first, others)[differ]
        high = np.maximum(first, others)[differ]
        pairs: Int64s = low.astype(np.int64) * n_blocks + high
        return pairs
    if m.from_set != over:
        return np.zeros(0, np.int64)
    # Points that several blocks reach.
    n_points = int(m.table.max(initial=-1)) + 1
    offset, entries = transpose(m.table.reshape(-1), n_points)
    pairs_at_points: Int64s = neighbours(offset, entries, m.arity, block, n_blocks)
    return pairs_at_points


def inherit(chain: ChainNumbers, part: dict[str, Int32s]) -> None:
    """Give elements of the other sets a tile, in ``part``.

    It is a tile that they reach through a map, or that reaches them; sets without such a
    map are cut into equal runs.
    """
    n_tiles = int(max(p.max(initial=0) for p in part.values())) + 1
    missing = [s for s in chain.sizes if s not in part]
    while missing:
        for name in missing:
            tile = _tile_through_map(chain, name, part)
            if tile is not None:
                part[name] = tile
                break
        else:
            n = chain.sizes[missing[0]]
            part[missing[0]] = (np.arange(n) * n_tiles // max(n, 1)).astype(np.int32)
        missing = [s for s in missing if s not in part]


def _tile_through_map(
    chain: ChainNumbers, name: str, part: Mapping[str, Int32s]
) -> Int32s | None:
    """The tiles of a set by those of another set; None where no map joins them."""
    for m in chain.maps.values():
        if m.from_set == name and m.to_set in part:
            return part[m.to_set][m.table[:, 0]]
    for m in chain.maps.values():
        if m.to_set == name and m.from_set in part:
            tile = np.zeros(chain.sizes[name], np.int32)
            tile[m.table.reshape(-1)] = np.repeat(part[m.from_set], m.arity)
            return tile
    return None


def tile_in_cache(chain: ChainNumbers) -> int:
    """Elements of the last loop's set in a tile whose dats and maps fit into cache."""
    n = max(chain.sizes[chain.loops[-1].over], 1)
    bytes_of_element = {}
    for loop in chain.loops:
        for arg in loop.args:
            if not arg.is_global:
                bytes_of_element[arg.name] = arg.nbytes
    dats = sum(bytes_of_element[d] * chain.sizes[s] for d, s in chain.dats.items())
    maps = sum(INDEX_BYTES * m.table.size for m in chain.maps.values())
    return max(CACHE_BYTES * n // max(dats + maps, 1), 1)


def sizes_to_try(chain: ChainNumbers) -> list[int]:
    """Sizes of tiles that may be the fastest.

    These are the size that fits into a second-level cache, four times and sixteen times as
    much: where caches are larger than assumed, or the next level is fast, fewer tiles are
    faster. Sizes not below that of the mesh give one tile, and are replaced by the size of
    the mesh where no other is left.
    """
    size_in_cache = tile_in_cache(chain)
    n = max(chain.sizes[chain.loops[-1].over], 1)
    candidates = (size_in_cache, 4 * size_in_cache, 16 * size_in_cache)
    sizes = [size for size in candidates if size < n]
    if sizes:
        return sizes
    return [n]
