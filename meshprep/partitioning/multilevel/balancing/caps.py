"""Both caps of a block: its number of elements, and the bytes of points that it stages."""

import numpy as np

from meshprep_runtime.errors import MeshprepError

from ....kernels import Int32s
from ....kernels.arrays import sort_by
from ....mesh.incidence import Csr
from ...blocks_of import staged_bytes
from ...repair import enforce_cap
from ..initial.geometry import Geometry, block_count
from .reconnect import extract, near_blocks

# Share of blocks that may stage too much and be split; with more, all are made smaller.
MAY_SPLIT = 0.01
# Factor of the block size in each step, at most.
SMALLER = 0.95
# Share of the bytes that remains after annealing.
MOVES_SAVE = 0.97


def within_cap(
    geometry: Geometry, graph: Csr, block: Int32s, n_blocks: int, cap: int
) -> bool:
    """Bring blocks within the cap, in place; returns whether any was over it."""
    size = np.bincount(block, minlength=n_blocks)
    over = size > cap
    if not over.any():
        return False
    # Take blocks around those over the cap until they have room for all elements.
    near = near_blocks(graph, block, over)
    while cap * near.sum() < size[near].sum() and not near.all():
        reached = np.count_nonzero(near)
        near = near_blocks(graph, block, near)
        near |= np.count_nonzero(near) == reached
    # Repair these blocks on their own, with local numbers.
    inside = np.flatnonzero(near[block]).astype(np.int32)
    rows, points = extract(
        geometry.table, inside, np.full(geometry.weight.size, -1, np.int32)
    )
    owned = np.flatnonzero(near).astype(np.int32)
    number = np.cumsum(near, dtype=np.int32) - np.int32(1)
    local_block = number[block[inside]]
    enforce_cap(
        rows=rows,
        weight=geometry.weight[points],
        block=local_block,
        limit=owned.size,
        cap=cap,
    )
    block[inside] = owned[local_block]
    return True


def room_for_bytes(geometry: Geometry, cap: int, limit: int) -> int:
    """The largest block size with which nearly all blocks stage at most ``limit`` bytes.

    It is at most ``cap``. Raises MeshprepError where an element alone stages more than
    ``limit`` bytes. O(n log n_blocks) for every step of ``SMALLER``.
    """
    # The last weight is that of -1, a point that an element repeats.
    bytes_of_point = np.append(geometry.weight, 0)
    bytes_of_element = bytes_of_point[geometry.table].sum(axis=1)
    if bytes_of_element.max() > limit:
        raise MeshprepError(
            f"staged_bytes is {limit}, but element {int(bytes_of_element.argmax())} alone "
            f"needs {int(bytes_of_element.max())} bytes: allow more"
        )
    while cap > 1:
        n_blocks = block_count(bytes_of_element.size, cap)
        block = geometry.cut(0.0, n_blocks)
        staged = staged_bytes(
            table=geometry.table, weight=geometry.weight, block=block, n_blocks=n_blocks
        )
        needed = float(np.quantile(staged, 1 - MAY_SPLIT))
        if needed * MOVES_SAVE <= limit:
            return cap
        # Bytes fall more slowly than elements, so this never goes too far.
        ratio = limit / needed / MOVES_SAVE
        in_proportion = int(cap * max(ratio, 0.5))
        a_step_smaller = int(cap * SMALLER)
        cap = max(1, min(in_proportion, a_step_smaller))
    return cap


def split_for_bytes(
    geometry: Geometry, block: Int32s, n_blocks: int, limit: int
) -> tuple[Int32s, int]:
    """Halve blocks until none stages more than ``limit`` bytes; new blocks come last.

    Returns the blocks and their number.
    """
    while True:
        staged = staged_bytes(
            table=geometry.table, weight=geometry.weight, block=block, n_blocks=n_blocks
        )
        if staged.max() <= limit:
            return block, n_blocks
        block = block.copy()
        over = np.flatnonzero(staged > limit)
        offset, member = sort_by(block, n_blocks)
        for new, b in enumerate(over, n_blocks):
            # The elements stand along a curve: its second half is the new block.
            begin = offset[b]
            end = offset[b + 1]
            second_half = member[(begin + end) // 2 : end]
            block[second_half] = new
        n_blocks += over.size
