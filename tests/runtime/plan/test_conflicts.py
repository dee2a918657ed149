"""The graph of blocks that write common points, beside a look at every pair."""

import networkx
import pytest

import meshprep
from meshprep.io.generate import generate

LOOPS = {
    "flux": {
        "over": "edges",
        "args": [
            {"dat": "r", "map": "edges->cells", "index": [0, 1], "access": "inc"},
            {"dat": "x", "map": "edges->nodes", "index": [0, 1], "access": "read"},
        ],
    },
    "copy": {"over": "cells", "args": [{"dat": "r", "access": "rw"}]},
}


@pytest.fixture(scope="module")
def plan():
    mesh = generate("delaunay2d", cells=300, seed=4)
    return meshprep.reorder(mesh, LOOPS, block_size=16).plan


def test_blocks_meet_where_they_write_a_common_point(plan):
    loop = plan["flux"]
    variant = loop.variant()
    block = variant.block_of_element()
    written = [set() for _ in range(variant.n_blocks)]
    for element, row in enumerate(loop.maps["edges->cells"].table.tolist()):
        written[block[element]] |= set(row)
    found = loop.conflicts().toarray()
    for a, points in enumerate(written):
        for b in range(variant.n_blocks):
            assert found[a, b] == (a != b and bool(points & written[b]))


def test_the_graph_has_the_colours_of_the_plan(plan):
    loop = plan["flux"]
    graph = loop.conflict_graph()
    assert isinstance(graph, networkx.Graph)
    assert len(graph) == loop.variant().n_blocks
    colour = networkx.get_node_attributes(graph, "colour")
    assert all(colour[a] != colour[b] for a, b in graph.edges())
    elements = networkx.get_node_attributes(graph, "elements")
    assert sum(elements.values()) == loop.sizes["edges"]
    assert max(colour.values()) + 1 == loop.variant().n_block_colours


def test_a_loop_without_maps_has_no_conflicts(plan):
    assert plan["copy"].conflicts().nnz == 0
