"""The converter of inputs: every form of one thing is the same thing."""

import networkx
import numpy as np
import pytest
import scipy.sparse as sp
from given_arrays import forms_of_graph, graphs, ragged, rows_of, tables
from hypothesis import given as on

import meshprep
from meshprep import MeshprepError
from meshprep.arrays.inputs import Elements, Graph, as_numpy, elements_or_graph
from meshprep.mesh.incidence import Csr


class ForeignArray:
    """An array that NumPy reads by the protocol alone, as those of JAX and torch."""

    def __init__(self, values):
        self._values = np.asarray(values)
        self.shape = self._values.shape
        self.ndim = self._values.ndim

    def __array__(self, dtype=None, copy=None):
        return self._values if dtype is None else self._values.astype(dtype)


class ArrayOnDevice(ForeignArray):
    """An array that lies on a device, and is copied by name, as CuPy's."""

    @property
    def __cuda_array_interface__(self):
        return {"version": 3}

    def __array__(self, dtype=None, copy=None):
        raise TypeError("implicit conversion is not allowed")

    def get(self):
        return self._values


def neighbours_of(rows: Csr):
    return [
        set(rows.index[b:e].tolist())
        for b, e in zip(rows.offset, rows.offset[1:], strict=False)
    ]


@on(graphs())
def test_a_graph_is_the_same_in_every_form(graph):
    expected = [set(graph[v]) - {v} for v in range(len(graph))]
    for form, how in forms_of_graph(graph).items():
        found = elements_or_graph(**how)
        assert isinstance(found, Graph), form
        assert found.n == len(graph)
        assert neighbours_of(found.neighbours()) == expected, form


@on(graphs())
def test_vertices_touch_their_edges(graph):
    found = elements_or_graph(graph).incidence()
    rows = neighbours_of(found.rows)
    for v, edges in enumerate(rows):
        for w in range(v):
            assert bool(edges & rows[w]) == graph.has_edge(v, w)


@on(tables())
def test_a_table_in_every_form(table_and_size):
    table, n_points = table_and_size
    n, arity = table.shape
    offset = np.arange(n + 1) * arity
    ones = np.ones(table.size)
    entries = (np.repeat(np.arange(n), arity), table.ravel())
    forms = [
        table,
        table.tolist() if not (n == 2 and arity > 2) else table,
        table.astype(np.uint16),
        np.asfortranarray(table),
        ForeignArray(table),
        ArrayOnDevice(table),
    ]
    if offset.size != table.size:
        forms.append((offset, table.ravel()))
        forms.append((ForeignArray(offset), ArrayOnDevice(table.ravel())))
    if n != n_points:
        forms.append(sp.coo_array((ones, entries), shape=(n, n_points)))
    for form in forms:
        found = elements_or_graph(form, n_points=n_points)
        assert isinstance(found, Elements)
        assert found.n_points == n_points
        assert neighbours_of(found.rows) == rows_of(table)


@on(ragged())
def test_short_rows_name_a_point_again(rows_and_size):
    rows, n_points = rows_and_size
    if rows[0].size == rows[1].size:
        return
    found = elements_or_graph(rows, n_points=n_points)
    assert rows_of(found.table()) == rows_of(rows)


def test_labels_of_any_type_keep_their_order():
    graph = networkx.Graph()
    for first, second in (("b", 3), (3, ("a", 1)), (("a", 1), "b")):
        graph.add_edge(first, second)
    found = meshprep.order(graph)
    assert set(found.labels) == {"b", 3, ("a", 1)}
    old = list(graph)
    assert [old[k] for k in found.ordering["points"].new_to_old] == list(found.labels)


def test_meshes_of_others_give_their_cells():
    meshio = pytest.importorskip("meshio")
    skfem = pytest.importorskip("skfem")
    points = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1], [2, 0], [2, 1]])
    triangles = np.array([[0, 1, 2], [0, 2, 3]])
    quads = np.array([[1, 4, 5, 2]])
    mixed = meshio.Mesh(
        points, [("line", [[0, 1]]), ("triangle", triangles), ("quad", quads)]
    )
    found = elements_or_graph(mixed)
    assert neighbours_of(found.rows) == [{0, 1, 2}, {0, 2, 3}, {1, 4, 5, 2}]
    assert (found.coordinates == points).all()
    plain = skfem.MeshTri(points[:4].T, triangles.T)
    found = elements_or_graph(plain)
    assert neighbours_of(found.rows) == [{0, 1, 2}, {0, 2, 3}]
    assert found.arity == 3
    whole = meshprep.from_skfem(plain)
    assert neighbours_of(elements_or_graph(whole).rows) == [{0, 1, 2}, {0, 2, 3}]


def test_rows_of_different_lengths_come_back_so():
    offset = np.array([0, 2, 5, 6])
    index = np.array([3, 1, 0, 1, 2, 3], np.int64)
    found = meshprep.order((offset, index))
    new_offset, new_index = found.cells
    cells, points = found.ordering["cells"], found.ordering["points"]
    for new, old in enumerate(cells.new_to_old):
        row = new_index[new_offset[new] : new_offset[new + 1]]
        old_row = index[offset[old] : offset[old + 1]]
        assert points.new_to_old[row].tolist() == old_row.tolist()
    assert new_index.dtype == index.dtype


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({}, "give the cells or graph, or edge_index="),
        ({"given": [[0, 1]], "edge_index": [[0], [1]]}, "one of both"),
        ({"edge_index": [[0, 1, 2]]}, r"edge_index has shape \(1, 3\), must be \(2, n_e"),
        ({"edge_index": ([0, 1], [1])}, "2 first and 1 second ends"),
        ({"given": np.arange(140).reshape(2, 70)}, "give them as edge_index="),
        ({"given": (np.array([0, 2]), np.array([0, 1]))}, "could be the ends of edges or"),
        ({"given": sp.eye_array(3), "n_points": 4}, "the matrix has 3 columns"),
        ({"given": networkx.path_graph(3), "n_points": 4}, "the graph has 3 nodes"),
        ({"given": object()}, "must be whole numbers"),
    ],
)
def test_what_is_refused(how, said):
    with pytest.raises(MeshprepError, match=said):
        elements_or_graph(**how)


def test_an_element_without_points_is_refused_where_it_matters():
    found = elements_or_graph((np.array([0, 1, 1, 3]), np.array([0, 1, 2])))
    with pytest.raises(MeshprepError, match="element 1 has no points"):
        found.table()


def test_tensors_with_a_gradient_are_taken():
    class Tensor(ForeignArray):
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("call detach first")

        def detach(self):
            return self._values

    assert as_numpy(Tensor([[1, 2]])).tolist() == [[1, 2]]
