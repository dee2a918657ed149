"""Small meshes as tables, and the slow obvious versions that the kernels are held against."""

import numpy as np
import pytest
from hypothesis import strategies as st


@st.composite
def _tables(draw, max_rows=40, max_points=20, max_arity=4):
    """A random map; rows may name a point twice, points may be unused, there may be no rows."""
    n, arity = draw(st.integers(0, max_rows)), draw(st.integers(1, max_arity))
    n_points = draw(st.integers(1, max_points))
    values = draw(
        st.lists(st.integers(0, n_points - 1), min_size=n * arity, max_size=n * arity)
    )
    table = np.array(values, dtype=np.int32).reshape(n, arity)
    # As that of a map; kernels are compiled for each kind of array.
    table.flags.writeable = False
    return table, n_points


def _slow_loads(table, blocks, weight=None):
    """Loads from sets: the points of every block, each once."""
    total = 0
    for a, b in zip(blocks.block_offset[:-1], blocks.block_offset[1:], strict=True):
        points = {int(t) for row in table[blocks.new_to_old[a:b]] for t in row}
        total += len(points) if weight is None else sum(int(weight[t]) for t in points)
    return total


def _check_blocks(blocks, n, block_size):
    """Every element once, no empty block, none past the cap."""
    assert sorted(blocks.new_to_old.tolist()) == list(range(n))
    assert blocks.block_offset[0] == 0
    assert blocks.block_offset[-1] == n
    sizes = np.diff(blocks.block_offset)
    assert (sizes > 0).all()
    assert (sizes <= block_size).all()
    assert blocks.new_to_old.dtype == np.int32
    assert blocks.block_offset.dtype == np.int64


def _quad_edges(nx, ny):
    """Interior edges -> cells of an nx by ny grid of quads, in the order of the cells."""
    c = np.arange(nx * ny).reshape(ny, nx)
    right = np.stack([c[:, :-1].ravel(), c[:, 1:].ravel()], axis=1)
    up = np.stack([c[:-1].ravel(), c[1:].ravel()], axis=1)
    table = np.concatenate([right, up])
    table = table[np.lexsort((table[:, 1], table[:, 0]))].astype(np.int32)
    cells = np.stack([c.ravel() % nx, c.ravel() // nx], axis=1).astype(float)
    return table, nx * ny, cells[table].mean(axis=1)


def _hex_nodes(m):
    """Cells -> nodes of an m^3 grid of hexes."""
    v = np.arange((m + 1) ** 3).reshape(m + 1, m + 1, m + 1)
    corner = [(z, y, x) for z in (0, 1) for y in (0, 1) for x in (0, 1)]
    columns = [v[z : z + m, y : y + m, x : x + m].ravel() for z, y, x in corner]
    table = np.stack(columns, axis=1).astype(np.int32)
    nodes = np.stack(np.unravel_index(v.ravel(), v.shape), axis=1).astype(float)
    return table, v.size, nodes[table].mean(axis=1)


@pytest.fixture(scope="session")
def tables():
    return _tables


@pytest.fixture(scope="session")
def slow_loads():
    return _slow_loads


@pytest.fixture(scope="session")
def check_blocks():
    return _check_blocks


@pytest.fixture(scope="session")
def quad_edges():
    return _quad_edges


@pytest.fixture(scope="session")
def hex_nodes():
    return _hex_nodes
