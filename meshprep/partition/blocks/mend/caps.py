"""Both caps: how many elements a block may have, and how many bytes of points it may stage."""

import numpy as np

from meshprep_runtime.errors import MeshprepError

from ....kernels import Bools, Int32s, Int64s, kernel
from ....mesh.incidence import Csr
from ...blocks_of import staged_bytes
from ...connectivity import connect
from ...repair import enforce_cap
from ...shift import gather, new_members
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
    each = _bytes_of_elements(geometry.table, geometry.weight)
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
        block = block.copy()
        n_blocks = _halve(geometry.table, geometry.weight, block, n_blocks, staged > limit)


@kernel
def _bytes_of_elements(table: Int32s, weight: Int32s) -> Int64s:
    total = np.zeros(table.shape[0], np.int64)
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            if table[i, j] >= 0:
                total[i] += weight[table[i, j]]
    return total


@kernel
def _halve(table: Int32s, weight: Int32s, block: Int32s, n_blocks: int, over: Bools) -> int:
    """Make the second half of every block that is over, in breadth-first order, a new block."""
    state = connect(table, weight, block, n_blocks)
    members = new_members(state)
    elements = np.empty(block.size, np.int32)
    count = n_blocks
    for b in range(n_blocks):
        if over[b]:
            size = gather(state, members, b, elements)
            for k in range(size // 2, size):
                block[elements[k]] = count
            count += 1
    return count
