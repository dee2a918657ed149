"""Orders and blocks that parts take over from the file of parts that they are made from."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..kernels import kernel
from ..loops.options import Options
from .halos import OwnedRuns
from .subject import SplitSubject

# Options that change neither orders nor blocks.
OTHERS = ("block_size", "seed", "proof")


def with_kept_blocks(subject: SplitSubject, options: Options) -> SplitSubject:
    """The subject without its blocks where options ask for others than it has."""
    plain = replace(Options(), **{name: getattr(options, name) for name in OTHERS})
    sizes = {spec.options.get("block_size") for spec in subject.specs}
    if options == plain and options.block_size in (None, *(sizes if len(sizes) == 1 else ())):
        return subject
    return replace(subject.with_block_size(options.block_size), blocks={})


def kept_blocks(
    subject: SplitSubject, runs: Mapping[str, OwnedRuns], parts: int, options: Options
) -> list[dict[str, NDArray[np.int64]]]:
    """Where the blocks of each loop end in each part: those of the file as far as they are in it.

    Pieces of blocks are joined with what follows them while there is room. O(owned elements).
    """
    found: list[dict[str, NDArray[np.int64]]] = [{} for _ in range(parts)]
    for spec in subject.specs:
        name, run = spec.loop.name, runs[spec.loop.over]
        size = options.for_loop(spec.options).block_elements
        for part, ends in enumerate(found):
            core = int(run.core[part])
            ends[name] = _joined_pieces(run.of(part), core, subject.blocks[name], size)
    return found


@kernel
def _joined_pieces(
    elements: NDArray[np.int32], core: int, block: NDArray[np.integer], size: int
) -> NDArray[np.int64]:
    """0, and where blocks end: elements of one block stay together, core and boundary do not."""
    ends = np.zeros(elements.size + 1, np.int64)
    n, begin, i = 0, 0, 0
    while i < elements.size:
        limit = core if i < core else elements.size
        j = i + 1
        while j < limit and block[elements[j]] == block[elements[i]]:
            j += 1
        if i > begin and (i == core or j - begin > size):
            n += 1
            ends[n], begin = i, i
        i = j
    if elements.size > begin:
        n += 1
        ends[n] = elements.size
    return ends[: n + 1].copy()
