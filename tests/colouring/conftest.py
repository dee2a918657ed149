"""Meshes and slow checks that the tests of the colours share."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

Table = np.ndarray


@pytest.fixture(scope="session")
def proper() -> Callable[[Table, Table, Table], bool]:
    """Whether no two elements of one colour in one block share a point, by looking at each."""

    def check(table: Table, block_offset: Table, colour: Table) -> bool:
        for start, stop in pairwise(block_offset):
            taken: set[tuple[int, int]] = set()
            for e in range(start, stop):
                mine = {(int(p), int(colour[e])) for p in table[e]}
                if mine & taken:
                    return False
                taken |= mine
        return True

    return check


@pytest.fixture(scope="session")
def max_degree() -> Callable[[Table], int]:
    """The largest number of elements on one point."""

    def count(rows: Table) -> int:
        touching: dict[int, int] = {}
        for row in rows:
            for p in set(row.tolist()):
                touching[p] = touching.get(p, 0) + 1
        return max(touching.values(), default=0)

    return count


@pytest.fixture(scope="session")
def quad_edges() -> Callable[[int, int], Table]:
    """Interior edges of a grid of quads, and the two cells of each, tile by tile."""

    def build(n: int, tile: int) -> Table:
        cell = np.arange(n * n).reshape(n, n)
        table = np.concatenate(
            [
                np.stack([cell[1:].ravel(), cell[:-1].ravel()], axis=1),
                np.stack([cell[:, 1:].ravel(), cell[:, :-1].ravel()], axis=1),
            ]
        )
        row, column = table[:, 0] // n // tile, table[:, 0] % n // tile
        return table[np.lexsort((column, row))].astype(np.int32)

    return build


@pytest.fixture(scope="session")
def hexes() -> Callable[[int, int, int], Table]:
    """The eight nodes of each cell of a box of hexahedra."""

    def build(nx: int, ny: int, nz: int) -> Table:
        node = np.arange((nx + 1) * (ny + 1) * (nz + 1)).reshape(nx + 1, ny + 1, nz + 1)
        corners = [
            node[i : nx + i, j : ny + j, k : nz + k].ravel()
            for i in (0, 1)
            for j in (0, 1)
            for k in (0, 1)
        ]
        return np.stack(corners, axis=1).astype(np.int32)

    return build


@pytest.fixture(scope="session")
def shuffled() -> Callable[[Table, Table], Table]:
    """The same blocks, with the elements of each in random order."""

    def shuffle(table: Table, block_offset: Table) -> Table:
        rng = np.random.default_rng(7)
        block = np.repeat(np.arange(block_offset.size - 1), np.diff(block_offset))
        return table[np.lexsort((rng.random(block.size), block))]

    return shuffle
