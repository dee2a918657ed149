"""How large blocks are to be: all alike, or each after its share of the weight of the elements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

# What a block that must not dissolve should have, by what it may have.
HELD = 0.9


@dataclass(frozen=True, eq=False)
class Sizes:
    """What elements count, and how much each block may have."""

    weight: NDArray[np.int32]  # (n,): at least 1; below 2^31 together
    # (n_blocks,): the most that a block may have, at least the largest weight.
    cap: NDArray[np.int64]
    least: NDArray[np.int64]  # (n_blocks,): what a block should have
    share: NDArray[np.int64]  # (n_blocks,): sizes in proportion, at least 1; below 2^31 together

    @classmethod
    def equal(cls, n: int, n_blocks: int, cap: int) -> Sizes:
        """Blocks of at most ``cap`` elements that count the same."""
        cap_of_block, nothing = np.full(n_blocks, cap), np.zeros(n_blocks, np.int64)
        return cls(np.ones(n, np.int32), cap_of_block, nothing, np.ones(n_blocks, np.int64))

    def held(self, some: NDArray[np.bool_]) -> Sizes:
        """The same, where some blocks must not dissolve."""
        return replace(self, least=np.where(some, HELD * self.cap, 0).astype(np.int64))

    @cached_property
    def mean_weight(self) -> float:
        """What an element counts on the mean."""
        return float(self.weight.mean()) if self.weight.size else 1.0
