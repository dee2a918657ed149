"""Numbers of elements in the split mesh, where each part owns a contiguous range."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .halos import OwnedRuns


@dataclass(frozen=True, eq=False)
class SplitNumbers:
    """Numbers in the split mesh of this rank's elements, and the parts that it makes."""

    # By set name: of every element here, in the split mesh.
    number: Mapping[str, NDArray[np.integer]]
    # By set name: part ``p`` owns the numbers from ``offset[p]`` to below ``offset[p + 1]``.
    offset: Mapping[str, NDArray[np.int64]]
    # The parts that this rank makes. Owners, runs and rows call them 0, 1, and so on.
    held: range

    @property
    def parts(self) -> int:
        return next(iter(self.offset.values())).size - 1

    @property
    def sizes(self) -> dict[str, int]:
        return {name: int(offset[-1]) for name, offset in self.offset.items()}


def numbers_here(runs: Mapping[str, OwnedRuns]) -> SplitNumbers:
    """The numbers of a mesh that is here as a whole."""
    parts = next(iter(runs.values())).offset.size - 1
    number = {name: run.number for name, run in runs.items()}
    return SplitNumbers(number, {name: run.offset for name, run in runs.items()}, range(parts))
