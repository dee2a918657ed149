"""Blocks of every partitioner on loops of many meshes: reuse, seconds, caps, and the bars.

    python benchmarks/bench_partition.py [SCALE] [NAME] [main]

``SCALE`` (1) multiplies the elements of every mesh, ``NAME`` chooses the cases that hold it. With
``main`` only METIS with 3 % more parts and `blocks` run, which the bars compare. All
start from the same locality order, which counts in none of the seconds but in "GPS + contiguous".
What takes less than five seconds is the best of three runs. The process keeps freed memory, as the
commands do.
"""

import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from common import report, table
from partition_bars import METIS, bars, ratios
from partition_cases import Case, cases
from partition_peers import PACKAGES, THREADS, Peer, cut_by, peers

from meshprep.colouring import colour_blocks, colour_threads
from meshprep.kernels.parallel import keep_freed
from meshprep.partitioning import BlockProblem, Blocks, loads
from meshprep.partitioning.multilevel.balancing.reconnect import count_components

# A run shorter than this is repeated.
SHORT = 5.0
# Past so many elements, and with `main` always, the strong effort, which takes minutes, has a row
# with all threads only.
LARGE = 1_000_000

Row = dict[str, Any]


def main(scale: float = 1.0, chosen: str = "", rows_wanted: str = "all") -> None:
    """Print and save the table, the ratios to METIS, and which bars are met."""
    keep_freed()
    absent = [name for name in PACKAGES if not find_spec(name)]
    if absent:
        print(f"left out, not installed: {', '.join(absent)}", file=sys.stderr)
    _warm_up()
    rows: list[Row] = []
    for case in cases(scale, chosen):
        for row in _rows(case) if rows_wanted == "all" else _main_rows(case):
            rows.append(row)
            found = f"{row['reuse']:.4f} in {row['seconds']:.2f} s"
            label = f"{row['partitioner']}, {row['threads']}"
            print(f"{row['case']}: {label}: {found}", file=sys.stderr)
    against, verdicts = ratios(rows), bars(rows)
    name = "partition" if scale == 1 else f"partition-{scale:g}"
    name += "" if rows_wanted == "all" else f"-{rows_wanted}"
    report(name, rows, ratios=against, bars=verdicts, absent=absent)
    for block in (against, verdicts):
        print()
        table(block)


def _warm_up() -> None:
    """Compile everything before anything is timed."""
    for case in cases(0.02, "delaunay2d"):
        for row in _rows(case):
            assert row["largest"] > 0


def _rows(case: Case) -> Iterator[Row]:
    start = case.ordered("hilbert")
    problem = start.problem
    yield _row(case, problem, Peer("contiguous", 1, cut_by(problem, "contiguous", {})))
    yield _gps_row(case)
    for peer in peers(case, start):
        yield _row(case, problem, peer)
    yield from _block_rows(case, problem)
    free = BlockProblem(problem.table, problem.n_points, problem.block_size)
    cut = cut_by(free, "blocks", {}, THREADS[-1])
    yield _row(case, free, Peer("blocks default, no coordinates", THREADS[-1], cut))


def _main_rows(case: Case) -> Iterator[Row]:
    start = case.ordered("hilbert")
    for peer in peers(case, start):
        if peer.label in METIS:
            yield _row(case, start.problem, peer)
    yield from _block_rows(case, start.problem, long=0)


def _block_rows(case: Case, problem: BlockProblem, long: int = LARGE) -> Iterator[Row]:
    for effort in ("fast", "default", "strong"):
        alone = effort == "strong" and problem.n > long
        for threads in THREADS[-1:] if alone else THREADS:
            cut = cut_by(problem, "blocks", {"effort": effort}, threads)
            yield _row(case, problem, Peer(f"blocks {effort}", threads, cut))


def _gps_row(case: Case) -> Row:
    begin = time.perf_counter()
    problem = case.ordered("gps").problem
    seconds = time.perf_counter() - begin
    row = _row(
        case, problem, Peer("GPS + contiguous", 1, cut_by(problem, "contiguous", {}))
    )
    return row | {"seconds": round(row["seconds"] + seconds, 4)}


def _row(case: Case, problem: BlockProblem, peer: Peer) -> Row:
    blocks, seconds = peer.cut()
    for _ in range(2):
        if seconds < SHORT:
            blocks, again = peer.cut()
            seconds = min(seconds, again)
    head = {
        "case": case.name,
        "kind": case.kind,
        "elements": problem.n,
        "S": problem.block_size,
        "partitioner": peer.label,
        "threads": peer.threads,
    }
    return head | _figures(problem, blocks, seconds)


def _figures(problem: BlockProblem, blocks: Blocks, seconds: float) -> Row:
    rows = np.ascontiguousarray(problem.table[blocks.new_to_old])
    sizes, known = np.diff(blocks.block_offset), (problem.n_points, blocks.block_offset)
    needed, found = -(-problem.n // problem.block_size), loads(rows, *known)
    block = np.empty(problem.n, np.int32)
    block[blocks.new_to_old] = np.repeat(np.arange(blocks.n_blocks), sizes)
    components = count_components(problem.table, problem.n_points, block, blocks.n_blocks)
    return {
        "reuse": round(rows.size / found, 4),
        "seconds": round(seconds, 4),
        "blocks": blocks.n_blocks,
        "more %": round(100 * (blocks.n_blocks / needed - 1), 2),
        "fill": round(problem.n / blocks.n_blocks / problem.block_size, 4),
        "loads": found,
        "largest": int(sizes.max()),
        "over the cap": int((sizes > problem.block_size).sum()),
        "fragmented": int((components > 1).sum()),
        "thread colours": round(float(colour_threads(rows, *known).count.mean()), 3),
        "block colours": colour_blocks(rows, *known).count,
    }


if __name__ == "__main__":
    main(*(float(word) for word in sys.argv[1:2]), *sys.argv[2:4])
