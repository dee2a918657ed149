"""Chunks of the current order: what OP2 does [G12], and what every other way is measured by."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from .blocks_of import Blocks
from .problem import BlockProblem


def contiguous(problem: BlockProblem, options: Mapping[str, Any]) -> Blocks:
    """Blocks of S elements as they stand; only the last one may be smaller. O(n)."""
    n, size = problem.n, problem.block_size
    offset = np.append(np.arange(0, n, size, dtype=np.int64), n)
    return Blocks(np.arange(n, dtype=np.int32), offset)
