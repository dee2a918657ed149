"""Times of CSR products on a GPU, made up by a model: the search for threads is replayed on them.

The model has what the parameters trade against each other: warps wait for their longest row, groups
of few threads fetch whole lines for little, small blocks leave a multiprocessor half empty, and few
blocks leave some of them without work. What it leaves out is a few per cent by chance, fixed for
each matrix and parameters. It shows that the search climbs, not how fast a GPU is.
"""

import zlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meshprep_runtime.matrix.cuda_text import MOST_BLOCK, CsrThreads, largest_repeat

LINE, ROUGH = 128, 0.03


@dataclass(frozen=True)
class Gpu:
    """Numbers of a device; times in cycles: of a step that waits, to issue it, of a block."""

    processors: int
    most_blocks: int
    most_warps: int
    clock: float
    bandwidth: float
    cache: int
    latency: float
    issue: float
    block: float


C2070 = Gpu(14, 8, 48, 1.15e9, 115e9, 16 * 1024, 600, 14, 800)
H100 = Gpu(132, 32, 64, 1.7e9, 2600e9, 128 * 1024, 700, 6, 900)


@dataclass(frozen=True, eq=False)
class MatrixTimes:
    """The times of one matrix, by the lengths of its rows."""

    name: str
    lengths: np.ndarray
    itemsize: int
    gpu: Gpu
    # share of the values of x that no cache has
    missing: float

    @property
    def nonzeros(self):
        return int(self.lengths.sum())

    @cached_property
    def steps(self):
        """For each coop, how many steps the warps before each take."""
        found = {}
        for coop in (1, 2, 4, 8, 16, 32):
            rows = 32 // coop
            padded = np.zeros(-(-self.lengths.size // rows) * rows)
            padded[: self.lengths.size] = -(-self.lengths // coop)
            longest = padded.reshape(-1, rows).max(axis=1) + 1.5 + 0.4 * np.log2(coop)
            found[coop] = np.concatenate([[0.0], np.cumsum(longest)])
        return found

    def seconds(self, t: CsrThreads) -> float:
        gpu, steps = self.gpu, self.steps[t.coop]
        blocks = np.arange(t.blocks(self.lengths.size) + 1) * (
            t.repeat * t.block_size // 32
        )
        resident = min(gpu.most_blocks, gpu.most_warps * 32 // t.block_size)
        warps = resident * t.block_size // 32
        cycles = max(gpu.latency / warps, gpu.issue) * resident
        work = np.diff(steps[np.minimum(blocks, steps.size - 1)]) * cycles + gpu.block
        busy = work.sum() / (gpu.processors * resident) + work.max()
        waits, moves = busy / gpu.clock, self.moved(t, warps) / gpu.bandwidth
        # each hides most of the other
        modelled = (waits**3 + moves**3) ** (1 / 3) + 4e-6
        chance = zlib.crc32(f"{self.name} {t}".encode()) / 2**32
        return modelled * (1 + ROUGH * chance)

    def moved(self, t: CsrThreads, warps: int) -> float:
        lines, each = 32 // t.coop, min(t.coop, self.lengths.mean() + 1) * self.itemsize
        kept = min(1.0, self.gpu.cache / (2 * warps * lines * LINE))
        wasted = max(LINE / each, 1.0) - 1
        once = self.nonzeros * (self.itemsize + 4) * (1 + (1 - kept) * wasted * 0.5)
        return (
            once
            + self.nonzeros * self.missing * 32
            + self.lengths.size * (self.itemsize + 8)
        )

    def best(self) -> float:
        """Seconds of the best of all sizes of blocks, threads a row and repeats on a grid."""
        rows = self.lengths.size
        return min(
            self.seconds(CsrThreads(block_size, coop, repeat))
            for block_size in (64, *range(128, MOST_BLOCK + 1, 64))
            for coop in self.steps
            for repeat in {1, 2, 4, 8, 16, 32, 64, largest_repeat(rows, coop)}
        )


def _lengths(rng, rows, mean, spread, kind):
    if kind == "even":
        found = np.full(rows, mean)
    elif kind == "power":
        found = np.minimum((rng.pareto(1.6, rows) + 1) * mean * 0.4, 4700)
    elif kind == "smooth":
        # neighbours have rows of like length
        found = (
            mean + spread * np.sin(np.arange(rows) / 5000) + rng.normal(0, spread / 4, rows)
        )
    else:
        found = rng.normal(mean, spread, rows)
    return np.maximum(np.rint(found), 1).astype(np.int64)


# Rows, mean and spread of the lengths of rows, and how they are spread; the first as in [R14
# Table 4.1], with a tenth of the rows where there are many.
SHAPES = (
    (127043, 6.9, 0.24, "normal"),
    (150578, 18.0, 5.36, "normal"),
    (62451, 64.2, 14.05, "smooth"),
    (121192, 21.7, 13.8, "normal"),
    (34379, 78.1, 40.86, "normal"),
    (206500, 6.2, 4.43, "normal"),
    (36417, 119.3, 31.93, "smooth"),
    (170998, 5.6, 4.39, "normal"),
    (81920, 4.0, 0, "even"),
    (100005, 3.1, 25.34, "power"),
    (7200, 398.8, 76.9, "normal"),
    (63838, 221.6, 95.8, "smooth"),
    (21791, 52.9, 5.44, "normal"),
    (95220, 44.6, 14.7, "smooth"),
    (101492, 16.2, 2.65, "normal"),
    (4800, 7, 0.3, "normal"),
    (16384, 9, 0, "even"),
    (65025, 25, 0, "even"),
    (261121, 9, 0.2, "normal"),
    (90000, 36, 10, "smooth"),
    (29791, 27, 0, "even"),
    (24000, 81, 2, "normal"),
)


def tables():
    """44 matrices: every shape in single precision on one device, in double on another."""
    made = []
    for i, (rows, mean, spread, kind) in enumerate(SHAPES):
        rng = np.random.default_rng(i)
        lengths = _lengths(rng, rows, mean, spread, kind)
        for itemsize, gpu in ((4, C2070), (8, H100)):
            missing = float(rng.uniform(0.02, 0.3))
            name = f"{rows} {kind} f{itemsize}"
            made.append(MatrixTimes(name, lengths, itemsize, gpu, missing))
    return made
