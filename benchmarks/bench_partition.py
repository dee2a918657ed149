"""Blocks of every partitioner on the loops of seven meshes: reuse, seconds, caps and colours.

    python benchmarks/bench_partition.py [SCALE] [NAME]

``SCALE`` (1) multiplies the elements of every mesh, ``NAME`` chooses the cases that hold it. All
but the contiguous rows start from a locality order, which counts in none of the seconds but in
"GPS + contiguous"; conflict graphs count where a partitioner builds one.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pymetis
from common import report
from partition_cases import Case, cases

from meshprep.colour import colour_blocks, colour_threads
from meshprep.mesh.incidence import element_graph
from meshprep.partition import PARTITIONERS, BlockProblem, Blocks, blocks_of, loads, partition
from meshprep.partition.blocks.components import fragmented_blocks

Row = dict[str, Any]


def main(scale: float = 1.0, chosen: str = "") -> None:
    """Print and save the table."""
    _warm_up()
    rows: list[Row] = []
    for case in cases(scale, chosen):
        for row in _rows(case):
            rows.append(row)
            found = f"{row['reuse']:.4f} in {row['seconds']:.2f} s"
            print(f"{row['case']}: {row['partitioner']}: {found}", file=sys.stderr)
    report("partition" if scale == 1 else f"partition-{scale:g}", rows)


def _warm_up() -> None:
    """Compile everything before anything is timed."""
    for case in cases(0.01, "airfoil edges"):
        for row in _rows(case):
            assert row["largest"] > 0


def _rows(case: Case) -> Iterator[Row]:
    given, near = case.as_given(), case.ordered("hilbert")
    yield _row(case, "contiguous", given, "contiguous", {})
    begin = time.perf_counter()
    by_gps = case.ordered("gps")
    seconds = time.perf_counter() - begin
    yield _row(case, "GPS + contiguous", by_gps, "contiguous", {}, seconds)
    yield _row(case, "METIS strict", near, "metis", {"tolerance": 1.001})
    yield _loose_row(case, near)
    if "kahypar" in PARTITIONERS and importlib.util.find_spec("mtkahypar"):
        yield _row(case, "Mt-KaHyPar", near, "kahypar", {})
    for effort in ("fast", "default", "strong"):
        row = _row(case, f"blocks {effort}", near, "blocks", {"effort": effort})
        bar = case.bars[("default", "strong").index(effort)] if effort != "fast" else None
        yield row | {"bar": bar}
    free = BlockProblem(near.table, near.n_points, near.block_size)
    yield _row(case, "blocks default, no coordinates", free, "blocks", {})


def _row(
    case: Case,
    label: str,
    problem: BlockProblem,
    name: str,
    options: dict[str, object],
    before: float = 0.0,
) -> Row:
    begin = time.perf_counter()
    blocks = partition(problem, name, options)
    return _measured(case, label, problem, blocks, time.perf_counter() - begin + before)


def _loose_row(case: Case, problem: BlockProblem) -> Row:
    """METIS with 3 % imbalance, which breaks the cap: for information."""
    begin = time.perf_counter()
    graph = element_graph(problem.table, problem.n_points)
    adjacency = pymetis.CSRAdjacency(graph.offset, graph.index.astype(np.int64))
    n_parts = -(-problem.n // problem.block_size)
    options = pymetis.Options(ufactor=30, seed=0)
    _, part = pymetis.part_graph(n_parts, adjacency, recursive=False, options=options)
    blocks = blocks_of(np.asarray(part, dtype=np.int32), n_parts)
    seconds = time.perf_counter() - begin
    return _measured(case, "METIS 3 %, over the cap", problem, blocks, seconds)


def _measured(case: Case, label: str, problem: BlockProblem, blocks: Blocks, seconds: float) -> Row:
    table = np.ascontiguousarray(problem.table[blocks.new_to_old])
    needed = -(-problem.n // problem.block_size)
    threads = colour_threads(table, problem.n_points, blocks.block_offset)
    torn = fragmented_blocks(
        problem.table, problem.n_points, blocks.new_to_old, blocks.block_offset
    )
    return {
        "case": case.name,
        "elements": problem.n,
        "S": problem.block_size,
        "partitioner": label,
        "reuse": round(table.size / loads(table, problem.n_points, blocks.block_offset), 4),
        "bar": None,
        "seconds": round(seconds, 3),
        "blocks": blocks.n_blocks,
        "over": f"{100 * (blocks.n_blocks / needed - 1):.2f} %",
        "largest": int(np.diff(blocks.block_offset).max()),
        "in pieces": f"{100 * torn / blocks.n_blocks:.2f} %",
        "thread colours": round(float(threads.count.mean()), 3),
        "bound": round(float(threads.bound.mean()), 3),
        "block colours": colour_blocks(table, problem.n_points, blocks.block_offset).count,
    }


if __name__ == "__main__":
    main(*(float(word) for word in sys.argv[1:2]), *sys.argv[2:3])
