"""METIS on real and on degenerate graphs: the figures of the literature, and no output."""

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.io.generate import generate
from meshprep.partitioning import BlockProblem, loads, partition
from meshprep.partitioning.metis import imbalance, part_size
from meshprep_runtime.errors import MeshprepError


def reuse(table, n_points, blocks):
    return table.size / loads(table[blocks.new_to_old], n_points, blocks.block_offset)


def test_sizes_asked_for_are_those_of_the_equations():
    assert [part_size(s, 1.001) for s in (448, 320, 256, 2, 1)] == [447, 319, 255, 1, 1]
    assert [imbalance(s, part_size(s, 1.001)) for s in (448, 320, 256)] == [2, 3, 4]
    for s in range(2, 5000):
        assert (
            part_size(s, 1.001) * (1 + imbalance(s, part_size(s, 1.001)) / 1000) < s + 1.1
        )


# The conflict graph and the sizes of [S19], whose figures are known.
PUBLISHED = {"graph": "conflict", "tolerance": 1.001, "improve": False}


def test_quads_reach_the_reuse_known_of_metis(quad_edges, check_blocks):
    table, n_points, _ = quad_edges(300, 150)
    blocks = partition(BlockProblem(table, n_points, 448), "metis", PUBLISHED)
    check_blocks(blocks, len(table), 448)
    assert blocks.n_blocks <= 201
    assert 3.5 < reuse(table, n_points, blocks) < 3.6


def test_hexes_reach_the_reuse_known_of_metis(hex_nodes, check_blocks):
    table, n_points, _ = hex_nodes(40)
    blocks = partition(BlockProblem(table, n_points, 320), "metis", PUBLISHED)
    check_blocks(blocks, len(table), 320)
    assert blocks.n_blocks <= 203
    assert 4.3 < reuse(table, n_points, blocks) < 4.95


def test_the_dual_graph_leads_to_more_reuse_in_hardly_more_blocks(hex_nodes, check_blocks):
    table, n_points, _ = hex_nodes(40)
    problem = BlockProblem(table, n_points, 320)
    dual, conflict = partition(problem, "metis"), partition(problem, "metis", PUBLISHED)
    check_blocks(dual, len(table), 320)
    assert dual.n_blocks <= 203
    assert reuse(table, n_points, dual) > 1.03 * reuse(table, n_points, conflict)


def test_on_the_dual_graph_tetrahedra_are_cut_along_facets():
    tetrahedra = generate("box", nx=20, ny=20, nz=20, type="tetra").map("cells->nodes")
    n_points = int(tetrahedra.table.max()) + 1
    problem = BlockProblem(tetrahedra.table, n_points, 256)
    found = []
    for graph in ("dual", "conflict"):
        blocks = partition(problem, "metis", {"graph": graph, "improve": False})
        found.append(reuse(tetrahedra.table, n_points, blocks))
    assert found[0] > 10.7
    assert found[0] > 1.04 * found[1]


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("graph", ["dual", "conflict"])
def test_improved_blocks_load_less_and_keep_the_cap(hex_nodes, check_blocks, known, graph):
    table, n_points, where = hex_nodes(30)
    problem = BlockProblem(table, n_points, 320, coordinates=where if known else None)
    better, plain = (
        partition(problem, "metis", {"graph": graph, "improve": k}) for k in (True, False)
    )
    check_blocks(better, len(table), 320)
    assert better.n_blocks <= plain.n_blocks
    assert reuse(table, n_points, better) > reuse(table, n_points, plain)


def test_blocks_begin_where_the_order_reaches_them(quad_edges):
    table, n_points, _ = quad_edges(40, 30)
    blocks = partition(BlockProblem(table, n_points, 64), "metis")
    first = blocks.new_to_old[blocks.block_offset[:-1]]
    assert (np.diff(first) > 0).all()
    inside = np.ones(len(table) - 1, dtype=bool)
    inside[blocks.block_offset[1:-1] - 1] = False
    assert (np.diff(blocks.new_to_old)[inside] > 0).all()


@pytest.mark.parametrize(
    "options",
    [
        {"tolerance": "1.05"},
        {"graph": "conflict"},
    ],
)
def test_every_option_gives_blocks_within_the_cap(quad_edges, check_blocks, options):
    table, n_points, _ = quad_edges(60, 40)
    blocks = partition(BlockProblem(table, n_points, 100), "metis", options)
    check_blocks(blocks, len(table), 100)
    assert reuse(table, n_points, blocks) > 2.9


def test_the_seed_decides_the_blocks(quad_edges):
    table, n_points, _ = quad_edges(60, 40)
    made = [
        partition(BlockProblem(table, n_points, 100, seed=s), "metis") for s in (1, 1, 2)
    ]
    assert (made[0].new_to_old == made[1].new_to_old).all()
    assert (made[0].new_to_old != made[2].new_to_old).any()


def star(n):
    return np.stack([np.zeros(n), np.arange(1, n + 1)], axis=1).astype(np.int32)


def pairs_apart(n):
    return np.arange(2 * n).reshape(n, 2).astype(np.int32)


def two_lines(n):
    line = np.stack([np.arange(n), np.arange(1, n + 1)], axis=1)
    return np.concatenate([line, line + n + 1]).astype(np.int32)


def line_and_loners(n):
    line = np.stack([np.arange(n), np.arange(1, n + 1)], axis=1)
    return np.concatenate([line, pairs_apart(n) + n + 1]).astype(np.int32)


@pytest.mark.parametrize("make", [star, pairs_apart, two_lines, line_and_loners])
@pytest.mark.parametrize("block_size", [1, 2, 3, 7, 64])
def test_degenerate_graphs_are_cut_without_a_word(make, block_size, check_blocks, capfd):
    table = make(150)
    blocks = partition(BlockProblem(table, int(table.max()) + 1, block_size), "metis")
    check_blocks(blocks, len(table), block_size)
    asked = blocks.notes["asked"]
    assert blocks.n_blocks <= asked + max(1, asked // 100)
    assert capfd.readouterr() == ("", "")


@settings(deadline=None, max_examples=effort.examples(60))
@given(data=st.data())
def test_blocks_asked_for_are_hardly_exceeded(data, tables):
    table, n_points = data.draw(tables(max_rows=120, max_points=60))
    blocks = partition(BlockProblem(table, n_points, data.draw(st.integers(2, 9))), "metis")
    asked = blocks.notes["asked"]
    assert blocks.n_blocks <= asked + max(1, asked // 100)


def test_a_graph_that_would_not_fit_is_refused_before_it_is_built(check_blocks):
    table = np.zeros((100_000, 1), dtype=np.int32)
    problem = BlockProblem(table, 1, 256)
    with pytest.raises(MeshprepError, match="9999900000 pairs of elements share a point"):
        partition(problem, "metis", {"graph": "conflict"})
    check_blocks(partition(problem, "metis", {"graph": "dual"}), 100_000, 256)
