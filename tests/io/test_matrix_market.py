"""Matrix Market: every entry comes back, in its order, under any numbering."""

from contextlib import suppress

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import mmread
from texts import read, refused

from meshprep import io
from meshprep.io.graphs.common import graph_mesh
from meshprep.mesh import Dat
from meshprep_runtime import MeshprepError, Ordering

BANNER = "%%MatrixMarket matrix coordinate"
KINDS = {
    "integer": lambda r, n: r.integers(-(2**62), 2**62, n),
    "unsigned-integer": lambda r, n: r.integers(0, 2**64, n, dtype=np.uint64),
    "real": lambda r, n: r.standard_normal(n) * 10.0 ** r.integers(-300, 300, n),
    "complex": lambda r, n: r.standard_normal(n) + 1j * r.standard_normal(n),
    "pattern": lambda r, n: None,
}
SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


def dense(path):
    """The whole matrix, as scipy reads it; repeated entries are added up."""
    return mmread(path, spmatrix=False).toarray()


@st.composite
def matrices(draw):
    """A kind of value, a symmetry and stored entries, repeated ones among them."""
    kind, symmetry = draw(st.sampled_from(sorted(KINDS))), draw(st.sampled_from(SYMMETRIES))
    n = draw(st.integers(1, 9))
    seed = draw(st.integers(0, 2**32 - 1))
    r = np.random.default_rng(seed)
    pairs = r.integers(0, n, (draw(st.integers(0, 25)), 2)).astype(np.int32)
    if kind == "pattern" or kind == "unsigned-integer":
        symmetry = "general" if symmetry == "skew-symmetric" else symmetry
    if symmetry == "skew-symmetric":
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    values = KINDS[kind](r, len(pairs))
    if symmetry == "hermitian" and kind == "complex":
        values = np.where(pairs[:, 0] == pairs[:, 1], values.real, values)
    dats = [] if values is None else [Dat("weight", "edges", values)]
    notes = {"symmetry": symmetry, "comments": (" by hand", "")}
    return graph_mesh(n, pairs, dats, {"matrix-market": notes}), r


@settings(deadline=None, max_examples=effort.examples(150))
@given(matrices())
def test_a_renumbered_matrix_is_the_same_matrix_with_rows_and_columns_moved(
    tmp_path_factory, made
):
    mesh, r = made
    n, folder = mesh.size("vertices"), tmp_path_factory.mktemp("mtx")
    order = Ordering.from_new_to_old(r.permutation(n))
    edges = Ordering.from_new_to_old(r.permutation(mesh.size("edges")))
    io.write(mesh, folder / "a.mtx")
    io.write(mesh.renumber({"vertices": order, "edges": edges}), folder / "b.mtx")
    a, b = dense(folder / "a.mtx"), dense(folder / "b.mtx")
    assert a.dtype == b.dtype
    moved = a[np.ix_(order.new_to_old, order.new_to_old)]
    # Repeated entries are added up in another order.
    assert (
        np.allclose(b, moved, 1e-9, 0) if a.dtype.kind in "fc" else np.array_equal(b, moved)
    )


@settings(deadline=None, max_examples=effort.examples(100))
@given(matrices())
def test_entries_values_and_comments_come_back_as_they_were(tmp_path_factory, made):
    mesh, _ = made
    path = tmp_path_factory.mktemp("mtx") / "a.mtx"
    io.write(mesh, path)
    first = io.read(path)
    io.write(first, path, overwrite=True)
    again = io.read(path)
    for back in (first, again):
        assert back.content_hash() == mesh.content_hash()
        assert back.extras["matrix-market"] == mesh.extras["matrix-market"]
    assert np.array_equal(
        first.map("edges->vertices").table, again.map("edges->vertices").table
    )
    weight = mesh.dat("weight", "edges")
    if weight is None or not weight.values.size:
        assert again.dat("weight", "edges") is None
    elif mesh.extras["matrix-market"]["symmetry"] in ("general", "symmetric"):
        assert again.dat("weight", "edges").values.tobytes() == weight.values.tobytes()


def test_a_symmetric_matrix_is_written_as_its_lower_half(tmp_path):
    text = f"{BANNER} complex hermitian\n% h\n3 3 3\n2 1 1 5\n3 2 2 -7\n3 3 4 0\n"
    mesh = read(text, tmp_path / "a.mtx")
    turned = mesh.renumber({"vertices": Ordering.from_new_to_old(np.array([2, 1, 0]))})
    io.write(turned, tmp_path / "b.mtx")
    lines = (tmp_path / "b.mtx").read_text().splitlines()
    assert lines == [
        f"{BANNER} complex hermitian",
        "% h",
        "3 3 3",
        "3 2 1 -5",
        "2 1 2 7",
        "1 1 4 0",
    ]


def test_narrow_numbers_are_widened_without_a_change(tmp_path):
    values = np.array([0.1, 2.5], np.float32)
    mesh = graph_mesh(2, np.array([[0, 0], [1, 0]]), [Dat("weight", "edges", values)])
    io.write(mesh, tmp_path / "a.mtx")
    assert (
        io.read(tmp_path / "a.mtx").dat("weight", "edges").values.tolist()
        == values.tolist()
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{BANNER} real general\n3 2 1\n1 1 1.0\n", "3 rows and 2 columns"),
        (f"{BANNER} real general\n0 0 0\n", "has no rows"),
        (
            f"{BANNER} real general\n3 3 1000000000000\n1 1 1.0\n",
            "declares 1000000000000 entries",
        ),
        (f"{BANNER} real general\n3 3 2\n1 1 1.0\n", "declares 2 entries, but 1 follow"),
        (f"{BANNER} real general\n3 3 1\n1 4 1.0\n", "entry 1 stands at 1.0 4.0, outside"),
        (f"{BANNER} real general\n3 3 1\n0 1 1.0\n", "entry 1 stands at 0.0 1.0, outside"),
        (f"{BANNER} integer general\n3 3 1\n1 1 99999999999999999999\n", "out of range"),
        (f"{BANNER} real general\n3 3 2\n1 1 1\n1 1 1e999\n", "entry 2 is infinite"),
        (f"{BANNER} real general\n3000000000 3000000000 0\n", "size 3000000000"),
        ("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n", "dense matrix"),
        ("1 2 3\n", "is no Matrix Market file"),
    ],
)
def test_bad_files_are_one_line(text, message, tmp_path):
    refused(text, tmp_path / "a.mtx", message)


def test_what_is_no_matrix_is_named(tmp_path):
    mesh = graph_mesh(
        3,
        np.array([[0, 1], [1, 2]]),
        [
            Dat("coordinates", "vertices", np.zeros((3, 2))),
            Dat("weight", "edges", np.array([1.0]), np.array([1], np.int32)),
        ],
    )
    with pytest.raises(MeshprepError, match="'coordinates' on 'vertices'; values 'weight'"):
        io.write(mesh, tmp_path / "a.mtx")
    assert len(io.write(mesh, tmp_path / "a.mtx", drop=True)) == 2
    assert io.read(tmp_path / "a.mtx").dats == ()


def test_a_mesh_of_cells_is_no_matrix(tmp_path):
    from meshprep.io.generate import generate

    with pytest.raises(MeshprepError, match="a graph needs a map 'edges->vertices'"):
        io.write(generate("delaunay2d", cells=20), tmp_path / "a.mtx")
    triples = graph_mesh(3, np.array([[0, 1, 2]]))
    with pytest.raises(
        MeshprepError, match="a graph needs a map 'edges->vertices' of arity 2"
    ):
        io.write(triples, tmp_path / "a.mtx")


SMALL = f"{BANNER} complex hermitian\n% by hand\n4 4 3\n1 1 2.5e0 0\n3 1 1 -5\n4 2 2 1e-3\n"


@pytest.mark.parametrize("seed", range(20))
def test_damage_is_an_error_or_another_matrix(seed, tmp_path):
    r = np.random.default_rng(seed)
    for _ in range(10):
        text = bytearray(SMALL.encode())
        for _ in range(r.integers(1, 4)):
            text[r.integers(len(BANNER), len(text))] = r.integers(0, 256)
        path = tmp_path / "a.mtx"
        path.write_bytes(text[: r.integers(1, len(text) + 1)])
        with suppress(MeshprepError):
            found = io.read(path)
            assert found.map("edges->vertices").table.shape == (found.size("edges"), 2)
