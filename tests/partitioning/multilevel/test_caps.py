import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.partitioning import BlockProblem, partition
from meshprep.partitioning.blocks_of import staged_bytes
from meshprep.partitioning.connectivity import distinct_rows
from meshprep.partitioning.multilevel.balancing.caps import (
    room_for_bytes,
    split_for_bytes,
    within_cap,
)
from meshprep.partitioning.multilevel.initial.geometry import Geometry
from meshprep.partitioning.neighbourhood import facet_graph
from meshprep_runtime.errors import MeshprepError


def slow_bytes(table, weight, block, n_blocks):
    """The weight of the distinct points of each block, from sets."""
    return [
        sum(int(weight[t]) for t in {int(t) for row in table[block == b] for t in row})
        for b in range(n_blocks)
    ]


def geometry(table, weight, seed=0):
    where = np.random.default_rng(seed).random((len(table), 2))
    return Geometry.of(table, weight, where)


@settings(deadline=None, max_examples=effort.examples(40))
@given(data=st.data())
def test_blocks_are_halved_until_they_stage_little(data, tables):
    table, n_points = data.draw(tables())
    weight = np.array(
        data.draw(st.lists(st.integers(0, 20), min_size=n_points, max_size=n_points)),
        np.int32,
    )
    if not len(table):
        return
    alone = max(
        slow_bytes(table[i : i + 1], weight, np.zeros(1), 1)[0] for i in range(len(table))
    )
    limit = alone + data.draw(st.integers(0, 30))
    start = (np.arange(len(table)) // 9).astype(np.int32)
    known = geometry(distinct_rows(table), weight)
    block, n_blocks = split_for_bytes(known, start, int(start.max()) + 1, limit)
    staged = slow_bytes(table, weight, block, n_blocks)
    assert max(staged) <= limit
    assert staged == staged_bytes(known.table, weight, block, n_blocks).tolist()
    assert np.bincount(block, minlength=n_blocks).min() > 0
    # What fitted is as it was; what did not is in pieces of one block.
    for b, bytes_before in enumerate(
        slow_bytes(table, weight, start, int(start.max()) + 1)
    ):
        if bytes_before <= limit:
            assert (block[start == b] == b).all()
    assert all(len(np.unique(start[block == b])) == 1 for b in range(n_blocks))


def test_room_is_left_alone_where_blocks_stage_little(quad_edges):
    table, n_points, where = quad_edges(40, 40)
    weight = np.full(n_points, 8, np.int32)
    known = Geometry.of(table, weight, where)
    assert room_for_bytes(known, 128, 8 * n_points) == 128
    assert 16 < room_for_bytes(known, 128, 8 * 40) < 128


def test_an_element_that_stages_too_much_is_named(quad_edges):
    table, n_points, where = quad_edges(10, 10)
    weight = np.full(n_points, 8, np.int32)
    with pytest.raises(MeshprepError, match="element 0 alone needs 16 bytes"):
        room_for_bytes(Geometry.of(table, weight, where), 64, 15)


@pytest.mark.parametrize("coordinates", [True, False])
def test_a_cap_on_bytes_holds_for_every_block(quad_edges, check_blocks, coordinates):
    table, n_points, where = quad_edges(40, 30)
    weight = np.random.default_rng(1).integers(4, 60, n_points).astype(np.int32)
    problem = BlockProblem(table, n_points, 128, weight, where if coordinates else None)
    blocks = partition(problem, "blocks", {"staged_bytes": 1500})
    check_blocks(blocks, len(table), 128)
    number = np.empty(len(table), np.int32)
    number[blocks.new_to_old] = np.repeat(
        np.arange(blocks.n_blocks), np.diff(blocks.block_offset)
    )
    assert max(slow_bytes(table, weight, number, blocks.n_blocks)) <= 1500


def test_room_is_found_past_full_blocks_and_no_block_behind_it_changes():
    n, cap = 400, 10
    table = np.column_stack([np.arange(n), np.arange(1, n + 1)]).astype(np.int32)
    sizes = np.full(40, cap)
    sizes[[0, 9]] = cap + 1, cap - 1
    block = np.repeat(np.arange(40, dtype=np.int32), sizes)
    weight = np.ones(n + 1, np.int32)
    known = Geometry.of(table, weight, np.arange(n, dtype=np.float64)[:, None])
    start = block.copy()
    assert within_cap(known, facet_graph(table, n + 1), block, 40, cap)
    assert (np.bincount(block) == cap).all()
    assert (block[start > 12] == start[start > 12]).all()
    assert (block[start <= 9] != start[start <= 9]).sum() == 9
