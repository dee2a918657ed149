"""The reuse of Airfoil's loops in blocks of consecutive elements, by the order of the edges.

    python benchmarks/edge_orders.py [cells]

Bytes that elements of a block ask for through maps over bytes of the points that it has, as OP2's
plans print it [G12]. ``adt_calc`` does not depend on the order of the edges.
"""

import sys
from typing import Any

import numpy as np
from common import report
from numpy.typing import NDArray

from meshprep.io.generate import generate
from meshprep.topology import derive

BLOCK_SIZES = (64, 128, 256, 512)
# Bytes of a point through each map: x; q, adt, and res, which is read and written.
LOOPS = {
    "adt_calc": {"cells->nodes": 16},
    "res_calc": {"edges->nodes": 16, "edges->cells": 104},
}


def main(cells: int = 720_000) -> None:
    """Print and save the table."""
    mesh = derive(generate("airfoil", cells=cells), ["edges->cells", *LOOPS["res_calc"]])
    tables = {m: mesh.map(m).table for loop in LOOPS.values() for m in loop}
    rows = [
        _row("adt_calc", "as generated", tables, np.arange(len(tables["cells->nodes"])))
    ]
    rows += [
        _row("res_calc", name, tables, order) for name, order in edge_orders(tables).items()
    ]
    report("edge-orders", rows)


def edge_orders(tables: dict[str, NDArray[np.int32]]) -> dict[str, NDArray[np.int64]]:
    """Orders that a generator, or a program that reads its mesh, may give the edges."""
    low, high = (
        f(tables["edges->cells"], axis=1).astype(np.int64) for f in (np.min, np.max)
    )
    along = np.bincount(high - low).argsort()[::-1][:2].max()  # cells of a row
    kind = np.select([high - low == along, high - low == 1], [0, 1], 2)
    row, column = np.divmod(low, along)
    nodes = tables["edges->nodes"]
    return {
        "as generated": np.arange(low.size),
        "by the lower cell": np.lexsort((high, low)),
        "by the upper cell": np.lexsort((low, high)),
        "by the lower node": np.lexsort((nodes.max(axis=1), nodes.min(axis=1))),
        "column by column": np.lexsort((kind, row, column)),
        "above, right, wake": np.lexsort((low, kind)),
        "by chance": np.random.default_rng(0).permutation(low.size),
    }


def _row(
    loop: str, name: str, tables: dict[str, NDArray[np.int32]], order: NDArray[np.int64]
) -> dict[str, Any]:
    found: dict[str, Any] = {"loop": loop, "edges": name}
    for size in BLOCK_SIZES:
        asked = sum(nbytes * tables[m].size for m, nbytes in LOOPS[loop].items())
        staged = sum(n * _points(tables[m][order], size) for m, n in LOOPS[loop].items())
        found[f"blocks of {size}"] = asked / staged
    return found


def _points(table: NDArray[np.int32], size: int) -> int:
    """Distinct points of each block, added up."""
    block = np.arange(len(table)) // size
    keys = np.sort((block[:, None] << 32 | table).ravel())
    return 1 + int(np.count_nonzero(keys[1:] != keys[:-1]))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
