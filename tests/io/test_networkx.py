"""networkx's graphs in and out, and the graphs that loops see against counting by hand."""

import subprocess
import sys
from dataclasses import replace
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from pages import blocks

import meshprep
from meshprep import Options, from_networkx, io, prepare, to_networkx
from meshprep.io.generate import generate
from meshprep.topology import derive
from meshprep_runtime import MeshprepError, MissingPackageError


def test_a_graph_becomes_a_mesh_and_comes_back():
    graph = nx.Graph([("b", "a"), ("a", "c"), ("c", "c")])
    graph.add_node("alone")
    mesh = from_networkx(graph)
    assert list(graph) == ["b", "a", "c", "alone"]
    assert mesh.size("vertices") == 4
    assert mesh.map("edges->vertices").table.tolist() == [[0, 1], [1, 2], [2, 2]]
    back = to_networkx(mesh)
    assert sorted(back.edges()) == [(0, 1), (1, 2)]
    assert sorted(back) == [0, 1, 2, 3]


def test_positions_and_numbers_come_along_and_text_stays():
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: (0, 0.5), 1: (1, 0), 2: (2, 2)}, "pos")
    nx.set_node_attributes(graph, {0: "left", 1: "middle", 2: "right"}, "side")
    nx.set_node_attributes(graph, {2: 7}, "mark")
    nx.set_edge_attributes(graph, {(0, 1): 4, (1, 2): 5}, "weight")
    mesh = from_networkx(graph)
    assert mesh.dat("coordinates", "vertices").values.tolist() == [[0, 0.5], [1, 0], [2, 2]]
    assert mesh.dat("mark", "vertices").index.tolist() == [2]
    assert mesh.dat("weight", "edges").values.tolist() == [4, 5]
    assert {d.name for d in mesh.dats} == {"coordinates", "mark", "weight"}
    assert to_networkx(mesh).nodes[1] == {"pos": pytest.approx((1, 0))}


@pytest.mark.parametrize("positions", [{0: (0, 0)}, {0: (0, 0), 1: (1, 1, 1)}, {0: 1, 1: 2}])
def test_positions_of_some_nodes_are_refused(positions):
    graph = nx.path_graph(2)
    nx.set_node_attributes(graph, positions, "pos")
    with pytest.raises(MeshprepError, match="'pos' must be two or three numbers at each of the 2"):
        from_networkx(graph)


def test_an_empty_graph_is_refused():
    with pytest.raises(MeshprepError, match="no nodes"):
        from_networkx(nx.Graph())


def test_directions_are_kept_in_a_general_matrix(tmp_path):
    graph = nx.DiGraph([(0, 1), (1, 0), (1, 2)])
    nx.set_edge_attributes(graph, {(0, 1): 1.5, (1, 0): -2.5, (1, 2): 4.0}, "weight")
    io.write(from_networkx(graph), tmp_path / "a.mtx")
    lines = (tmp_path / "a.mtx").read_text().splitlines()
    assert lines[0] == "%%MatrixMarket matrix coordinate real general"
    assert sorted(lines[3:]) == ["1 2 1.5", "2 1 -2.5", "2 3 4"]


def test_repeated_edges_are_elements_of_their_own():
    mesh = from_networkx(nx.MultiGraph([(0, 1), (0, 1), (1, 2)]))
    assert mesh.size("edges") == 3
    assert to_networkx(mesh).edges[0, 1]["weight"] == 2


@pytest.mark.parametrize("method", ["rcm", "hilbert"])
def test_an_order_is_found_for_a_graph(method):
    graph = nx.random_geometric_graph(150, 0.15, seed=3)
    done = prepare(from_networkx(graph), (), Options(method=method, target="cpu"))
    order = done.plan.ordering["vertices"].old_to_new
    before = max(abs(u - v) for u, v in graph.edges())
    after = max(abs(int(order[u]) - int(order[v])) for u, v in graph.edges())
    figures = done.plan.metrics.locality
    assert figures.before.bandwidth == before
    assert figures.final.bandwidth == after
    assert done.plan.verify() == []
    if method == "rcm":
        assert after < before / 2


SMALL = Options(block_size=16)


@pytest.fixture(scope="module", params=[False, True])
def prepared(request):
    """Blocks that are ranges of the edges, and blocks that list them."""
    mesh = derive(generate("delaunay2d", cells=120, shuffle=True), ["edges->cells"])
    asked = replace(SMALL, partition="metis" if request.param else None)
    done = prepare(mesh, ["edges->cells"], asked, keep_order=request.param)
    assert (done.plan["edges->cells"].variant().elements is not None) == request.param
    return done


def slow_shared(groups):
    """How many members each two groups share, where they share any."""
    pairs = combinations(range(len(groups)), 2)
    return {(i, j): len(groups[i] & groups[j]) for i, j in pairs if groups[i] & groups[j]}


def weights(graph):
    return {(min(e), max(e)): w for *e, w in graph.edges(data="weight")}


def test_points_of_a_plan_are_neighbours_when_an_element_has_both(prepared):
    table = prepared.plan.maps["edges->cells"].table
    cells = [set(np.flatnonzero((table == c).any(axis=1))) for c in range(table.max() + 1)]
    assert weights(to_networkx(prepared.plan, "points")) == slow_shared(cells)


def test_elements_of_a_plan_conflict_when_they_write_one_point(prepared):
    table = prepared.plan.maps["edges->cells"].table
    graph = to_networkx(prepared.plan, "elements", "edges->cells")
    assert weights(graph) == slow_shared([set(row) for row in table.tolist()])
    for a, b in graph.edges():
        one, other = graph.nodes[a], graph.nodes[b]
        assert one["block"] != other["block"] or one["colour"] != other["colour"]


def test_blocks_of_a_plan_conflict_when_they_write_one_point(prepared):
    variant = prepared.plan["edges->cells"].variant()
    graph = to_networkx(prepared.plan, "blocks")
    table, elements = prepared.plan.maps["edges->cells"].table, variant.elements
    blocks = np.split(table if elements is None else table[elements], variant.block_offset[1:-1])
    assert weights(graph) == slow_shared([set(b.ravel().tolist()) for b in blocks])
    assert [n["elements"] for n in graph.nodes.values()] == [len(b) for b in blocks]
    assert len({n["colour"] for n in graph.nodes.values()}) == variant.n_block_colours
    assert all(graph.nodes[a]["colour"] != graph.nodes[b]["colour"] for a, b in graph.edges())


def test_points_of_a_mesh_know_where_they_are():
    mesh = generate("delaunay2d", cells=40)
    graph = to_networkx(mesh, "points", "cells->nodes")
    assert len(graph) == mesh.size("nodes")
    assert np.array_equal(graph.nodes[5]["pos"], mesh.coordinates[5])
    assert nx.is_connected(graph)


def test_a_loop_that_writes_nothing_has_no_conflicts(tmp_path):
    text = '[loop.look]\nover = "cells"\nargs = [{ dat = "x", map = "cells->nodes" }]\n'
    (tmp_path / "loops.toml").write_text(text)
    (look,) = meshprep.read_requests(tmp_path / "loops.toml")
    mesh = generate("delaunay2d", cells=40)
    assert to_networkx(mesh, "elements", look).number_of_edges() == 0
    assert len(to_networkx(mesh, "elements", look)) == mesh.size("cells")


def test_what_cannot_be_asked_for(prepared):
    with pytest.raises(MeshprepError, match="a graph of 'faces' is unknown: use points, elements"):
        to_networkx(prepared.plan, "faces")
    with pytest.raises(MeshprepError, match="a mesh has no blocks"):
        to_networkx(prepared.mesh, "blocks")
    with pytest.raises(MeshprepError, match="the plan has no loop 'flux'"):
        to_networkx(prepared.plan, "points", "flux")


def test_without_networkx(prepared, monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'meshprep\[graphs\]'"):
        to_networkx(prepared.plan)


def test_networkx_is_not_imported_before_it_is_needed():
    code = "import meshprep, sys; meshprep.from_networkx; print('networkx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_python_of_the_page():
    (code,) = blocks("graphs.md", "py")
    scope = {}
    exec(code.replace("2000, 0.04", "200, 0.12"), scope)
    place = {node: i for i, node in enumerate(scope["order"])}
    graph = scope["graph"]
    found = max(abs(place[u] - place[v]) for u, v in graph.edges())
    assert found == scope["done"].plan.metrics.locality.final.bandwidth
    assert len(scope["conflicts"]) == graph.number_of_edges()
    assert sorted(len(row) for row in scope["points"].adj.values()) == sorted(
        len(row) for row in graph.adj.values()
    )
