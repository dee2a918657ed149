"""Threads of a CSR product on a GPU: three parameters, and the rule that fixes them [R14 4.5]."""

from dataclasses import dataclass

from ..cuda.strategies import WARP
from ..errors import MeshprepError, check_integer

MOST_BLOCK = 512
BLOCK_SIZE, BLOCKS_WANTED = 128, 1500


@dataclass(frozen=True)
class CsrThreads:
    """How the threads of a GPU share the rows of a matrix.

    Raises MeshprepError for numbers that no launch can have.
    """

    block_size: int  # threads of a thread block, a multiple of 32
    coop: int  # threads that share a row: 1, 2, 4, ..., 32
    repeat: int  # rows that each group of ``coop`` threads takes, one after the other

    def __post_init__(self) -> None:
        if self.block_size % WARP or not WARP <= self.block_size <= MOST_BLOCK:
            raise MeshprepError(
                f"block_size is {self.block_size}: give a multiple of {WARP} up to {MOST_BLOCK}"
            )
        if self.coop not in (1, 2, 4, 8, 16, 32):
            raise MeshprepError(f"coop is {self.coop}: give 1, 2, 4, 8, 16 or 32")
        check_integer("repeat", self.repeat)

    def blocks(self, rows: int) -> int:
        """Thread blocks of a launch [R14 equation 4.7]; 0 where there are no rows."""
        return -(-rows * self.coop // (self.repeat * self.block_size))


def fixed_rule(rows: int, nonzeros: int) -> CsrThreads:
    """The parameters that suit most matrices [R14 4.5.1].

    Blocks of 128 threads; ``coop`` is the least power of two above the root of the mean row length,
    at most 32; ``repeat`` is as large as 1,500 thread blocks allow. O(1): rows of very unlike
    length are the business of the search (:class:`ProductTuner`).
    """
    coop = 1
    while coop < WARP and coop * coop * max(rows, 1) <= nonzeros:
        coop *= 2
    # blocks(rows) >= 1500 means rows x coop > 1499 x repeat x 128
    repeat = (rows * coop - 1) // ((BLOCKS_WANTED - 1) * BLOCK_SIZE)
    return CsrThreads(BLOCK_SIZE, coop, max(repeat, 1))
