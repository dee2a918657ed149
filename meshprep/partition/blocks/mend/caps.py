"""Both caps: how many elements a block may have, and how many bytes of points it may stage."""

import numpy as np

from meshprep_runtime.errors import MeshprepError

from ....kernels import Int32s
from ....kernels.arrays import sort_by
from ....mesh.incidence import Csr
from ...blocks_of import staged_bytes
from ...repair import enforce_cap
from ..bisect.geometry import Geometry, block_count
from .reconnect import extract, near_blocks

# Share of blocks that may be split because they stage too much, before all are made smaller;
# factor by which they are; share of the bytes that remains after annealing.
MAY_SPLIT = 0.01
SMALLER = 0.95
MOVES_SAVE = 0.97


def within_cap(geometry: Geometry, graph: Csr, block: Int32s, n_blocks: int, cap: int) -> bool:
    """Bring blocks within the cap, in place, by ``graph``; True if any was over it."""
    size = np.bincount(block, minlength=n_blocks)
    over = size > cap
    if not over.any():
        return False
    near = near_blocks(graph, block, over)
    while cap * near.sum() < size[near].sum() and not near.all():
        reached = np.count_nonzero(near)
        near = near_blocks(graph, block, near)
        near |= np.count_nonzero(near) == reached
    inside = np.flatnonzero(near[block]).astype(np.int32)
    rows, points = extract(geometry.table, inside, np.full(geometry.weight.size, -1, np.int32))
    owned = np.flatnonzero(near).astype(np.int32)
    number = np.cumsum(near, dtype=np.int32) - np.int32(1)
    found = number[block[inside]]
    enforce_cap(rows, geometry.weight[points], found, owned.size, cap)
    block[inside] = owned[found]
    return True


def room_for_bytes(geometry: Geometry, cap: int, limit: int) -> int:
    """The largest block size, at most ``cap``, at which nearly all blocks stage ``limit`` bytes.

    Raises MeshprepError where an element alone stages more than ``limit`` bytes. O(n log n_blocks)
    for every step of ``SMALLER``.
    """
    # the last one is that of -1
    each = np.append(geometry.weight, 0)[geometry.table].sum(axis=1)
    if each.max() > limit:
        raise MeshprepError(
            f"staged_bytes is {limit}, but element {int(each.argmax())} alone needs "
            f"{int(each.max())} bytes: allow more"
        )
    while cap > 1:
        n_blocks = block_count(each.size, cap)
        block = geometry.cut(0.0, n_blocks)
        staged = staged_bytes(geometry.table, geometry.weight, block, n_blocks)
        if np.quantile(staged, 1 - MAY_SPLIT) * MOVES_SAVE <= limit:
            return cap
        # Bytes fall more slowly than elements, so this never goes too far.
        ratio = limit / float(np.quantile(staged, 1 - MAY_SPLIT)) / MOVES_SAVE
        cap = max(1, min(int(cap * max(ratio, 0.5)), int(cap * SMALLER)))
    return cap


def split_for_bytes(
    geometry: Geometry, block: Int32s, n_blocks: int, limit: int
) -> tuple[Int32s, int]:
    """Halve blocks that stage more than ``limit`` bytes until none does; new blocks come last."""
    while True:
        staged = staged_bytes(geometry.table, geometry.weight, block, n_blocks)
        if staged.max() <= limit:
            return block, n_blocks
        block, over = block.copy(), np.flatnonzero(staged > limit)
        offset, member = sort_by(block, n_blocks)
        for new, b in enumerate(over, n_blocks):
            # along the curve on which the elements stand
            block[member[(offset[b] + offset[b + 1]) // 2 : offset[b + 1]]] = new
        n_blocks += over.size
