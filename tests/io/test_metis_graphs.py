"""METIS's graph files: weights of vertices and edges, and what is no graph."""

from contextlib import suppress

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from texts import read, refused

from meshprep import io
from meshprep.io.graphs.common import graph_mesh
from meshprep.mesh import Dat
from meshprep_runtime import MeshprepError, Ordering

# The example of METIS's manual, weights of edges and two of vertices, sizes made up.
WEIGHTED = """\
% by hand
7 11 111 2
9 1 0 5 1 3 2 2 1
9 2 2 1 1 3 2 4 1
9 1 4 5 3 4 2 2 2 1 2
8 2 1 2 1 3 2 6 2 7 5
8 1 1 1 1 3 3 6 2
7 0 2 5 2 4 2 7 6
6 1 1 6 6 4 5
"""


def neighbours(mesh):
    """For each vertex a set of (neighbour, weight), found edge by edge."""
    weight = mesh.dat("weight", "edges")
    values = [1] * mesh.size("edges") if weight is None else weight.values.tolist()
    out = [set() for _ in range(mesh.size("vertices"))]
    for (a, b), w in zip(mesh.map("edges->vertices").table.tolist(), values, strict=True):
        out[a].add((b, w))
        out[b].add((a, w))
    return out


def test_weights_and_sizes(tmp_path):
    mesh = read(WEIGHTED, tmp_path / "a.graph")
    assert (mesh.size("vertices"), mesh.size("edges")) == (7, 11)
    assert mesh.dat("size", "vertices").values.tolist() == [9, 9, 9, 8, 8, 7, 6]
    assert mesh.dat("weight", "vertices").values.shape == (7, 2)
    assert mesh.dat("weight", "vertices").values[4].tolist() == [1, 1]
    assert neighbours(mesh)[6] == {(5, 6), (3, 5)}
    assert neighbours(mesh)[0] == {(4, 1), (2, 2), (1, 1)}


def test_the_text_comes_back(tmp_path):
    mesh = read(WEIGHTED, tmp_path / "a.graph")
    io.write(mesh, tmp_path / "b.graph")
    again = io.read(tmp_path / "b.graph")
    io.write(again, tmp_path / "c.graph")
    assert (tmp_path / "b.graph").read_bytes() == (tmp_path / "c.graph").read_bytes()
    assert (
        (tmp_path / "b.graph")
        .read_text()
        .startswith("% by hand\n7 11 111 2\n9 1 0 5 1 3 2 2 1\n")
    )


def test_isolated_vertices_and_no_edges(tmp_path):
    mesh = read("4 1\n\n3\n2\n", tmp_path / "a.graph")
    assert neighbours(mesh) == [set(), {(2, 1)}, {(1, 1)}, set()]
    io.write(mesh, tmp_path / "b.graph")
    assert (tmp_path / "b.graph").read_text() == "4 1\n\n3\n2\n\n"
    assert read("3 0\n\n\n\n", tmp_path / "c.graph").size("edges") == 0


@st.composite
def graphs(draw):
    """A graph with weights where they are drawn, isolated vertices among others."""
    n, r = draw(st.integers(1, 12)), np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    every = np.array([(a, b) for a in range(n) for b in range(a)]).reshape(-1, 2)
    pairs = r.permutation(every)[: draw(st.integers(0, 30))]
    pairs = np.where(r.integers(0, 2, (len(pairs), 1)), pairs, pairs[:, ::-1])
    dats = []
    if draw(st.booleans()):
        dats.append(Dat("weight", "edges", r.integers(1, 2**40, len(pairs))))
    if draw(st.booleans()):
        dats.append(
            Dat("weight", "vertices", r.integers(0, 9, (n, draw(st.integers(1, 3)))))
        )
    if draw(st.booleans()):
        dats.append(Dat("size", "vertices", r.integers(0, 9, n)))
    return graph_mesh(n, pairs.astype(np.int32), dats), r


@settings(deadline=None, max_examples=effort.examples(150))
@given(graphs())
def test_a_renumbered_graph_has_the_same_neighbours(tmp_path_factory, made):
    mesh, r = made
    path = tmp_path_factory.mktemp("metis") / "a.graph"
    orders = {
        name: Ordering.from_new_to_old(r.permutation(mesh.size(name))) for name in mesh.sets
    }
    moved = mesh.renumber(orders)
    assert io.write(moved, path) == []
    back = io.read(path)
    assert back.content_hash() == moved.content_hash()
    new = orders["vertices"].old_to_new
    for v, near in enumerate(neighbours(mesh)):
        assert neighbours(back)[new[v]] == {(int(new[u]), w) for u, w in near}
    for dat in mesh.dats:
        if dat.set == "vertices":
            found = back.dat(dat.name, "vertices").values.reshape(dat.values.shape)
            assert np.array_equal(found[new], dat.values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("% no numbers", "the first line must read"),
        ("3 x\n", "line 1, comments left out, holds 'x'"),
        ("3\n\n\n\n", "the first line must read"),
        ("3 1 2\n2\n1\n\n", "the first line must read"),
        ("3 1 1 2\n2 5\n1 5\n\n", "the first line must read"),
        ("0 0\n", "no vertices"),
        ("3 1\n2\n1\n\n\n1\n", "lines for 5 vertices, but the first one says 3"),
        ("3 1 10\n1 2\n1 1\n", "lines for 2 vertices, but the first one says 3"),
        (
            "2 1 11\n7\n3 1 1\n",
            "the lines hold 1 neighbours, but the first one says 1 edges",
        ),
        ("2 1 1\n2\n1 1\n", "line of vertex 1 has 1 numbers"),
        ("2 1\n3\n1\n", "vertex 1 has the neighbour 3, which is no other vertex of 1..2"),
        ("2 1\n1\n2\n", "vertex 1 has the neighbour 1"),
        ("2 1\n0\n1\n", "vertex 1 has the neighbour 0"),
        ("2 2\n2\n1\n", "the first one says 2 edges"),
        (
            "2 2\n2 2\n1 1\n",
            "vertex 1 has the neighbour 2, which stands there more than once",
        ),
        ("4 2\n2 3\n3\n1\n\n", "vertex 1 has the neighbour 2, which is not so"),
        ("2 1 1\n2 5\n1 6\n", "vertex 1 has the neighbour 2, which has another weight"),
        ("2 1\n22222222222222222222\n1\n", r"a number past 2\^63"),
        ("99999999999 0\n", "the first one says 99999999999"),
        ("2000000000 0\n", "lines for 0 vertices, but the first one says 2000000000"),
    ],
)
def test_bad_files_are_one_line(text, message, tmp_path):
    refused(text, tmp_path / "a.graph", message)


def test_what_metis_cannot_hold_is_named(tmp_path):
    mesh = graph_mesh(
        3,
        np.array([[0, 1], [1, 0], [2, 2], [1, 2]]),
        [
            Dat("weight", "edges", np.array([1.5, 1, 1, 1])),
            Dat("weight", "vertices", np.ones((3, 1, 1), np.int32)),
            Dat("size", "vertices", np.ones((3, 2), np.int32)),
        ],
        {"matrix-market": {"symmetry": "general"}},
    )
    with pytest.raises(MeshprepError) as caught:
        io.write(mesh, tmp_path / "a.graph")
    for what in (
        "values 'weight' on 'edges' (METIS takes whole numbers from 1)",
        "values 'weight' on 'vertices' (of several numbers)",
        "values 'size' on 'vertices' (of several numbers)",
        "which way edges lead (general matrix)",
        "1 edges from a vertex to itself",
        "1 repeated edges",
    ):
        assert what in str(caught.value)
    assert len(io.write(mesh, tmp_path / "a.graph", drop=True)) == 6
    assert (tmp_path / "a.graph").read_text() == "3 2\n2\n1 3\n2\n"


@pytest.mark.parametrize("seed", range(20))
def test_damage_is_an_error_or_another_graph(seed, tmp_path):
    r = np.random.default_rng(seed)
    for _ in range(10):
        text = bytearray(WEIGHTED.encode())
        for _ in range(r.integers(1, 4)):
            text[r.integers(0, len(text))] = r.integers(0, 256)
        path = tmp_path / "a.graph"
        path.write_bytes(text[: r.integers(1, len(text) + 1)])
        with suppress(MeshprepError):
            assert neighbours(io.read(path))
