"""Every check of validation, against slow and obvious versions."""

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from io_meshes import PLANE, SPACE, TETS, plain_meshes

from meshprep.io import validate as module
from meshprep.io.validate import first_duplicate, first_equal, validate
from meshprep.mesh import Mesh
from meshprep.mesh.assemble import Block, assemble
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import read_only


def mesh_of(points, *cells) -> Mesh:
    return assemble(np.asarray(points, float), [Block(t, np.array(n)) for t, n in cells])[0]


@pytest.mark.parametrize("name", plain_meshes())
def test_good_meshes_pass(name):
    validate(plain_meshes()[name])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_coordinates_must_be_finite(bad):
    points = PLANE.copy()
    points[5, 1] = bad
    points[7, 0] = np.nan
    with pytest.raises(MeshprepError, match=r"node 6 has the coordinates .*must be finite"):
        validate(mesh_of(points, ("triangle", [[0, 1, 4]])))


def test_a_repeated_node_is_named():
    cells = ("triangle", [[0, 1, 4], [1, 4, 1]])
    with pytest.raises(MeshprepError, match="cell 2 of set 'cells' names node 2 twice"):
        validate(mesh_of(PLANE, cells))


def test_a_repeated_node_in_lower_cells_is_named():
    with pytest.raises(MeshprepError, match="cell 1 of set 'line' names node 3 twice"):
        validate(mesh_of(PLANE, ("triangle", [[0, 1, 4]]), ("line", [[2, 2]])))


def test_duplicated_cells_are_both_named():
    cells = ("triangle", [[0, 1, 4], [0, 4, 3], [1, 2, 5], [4, 0, 1]])
    with pytest.raises(MeshprepError, match=r"cells 1 and 4 of set 'cells' .*\(1 2 5\)"):
        validate(mesh_of(PLANE, cells))


def test_duplicated_lower_cells_are_allowed():
    validate(mesh_of(PLANE, ("triangle", [[0, 1, 4]]), ("line", [[0, 1], [1, 0]])))


def test_loose_lower_cells_are_an_error_that_dimension_lifts():
    mesh = mesh_of(SPACE, ("tetra", TETS), ("line", [[0, 1], [0, 11], [3, 11]]))
    with pytest.raises(MeshprepError, match=r"2 lower-dimension cells \(the first: cell 2"):
        validate(mesh)
    validate(mesh, dimension=3)


def test_dimension_must_be_the_highest():
    mesh = mesh_of(SPACE, ("tetra", TETS), ("triangle", [[0, 1, 2]]))
    with pytest.raises(MeshprepError, match="dimension 2 was asked for"):
        validate(mesh, dimension=2)


def test_loose_vertices_are_carried():
    validate(mesh_of(SPACE, ("tetra", TETS), ("vertex", [[11]])))


def hash_cells(table):
    hashes = np.empty(len(table), np.uint64)
    return hashes, module.hash_cells(read_only(table), hashes)


rows = st.lists(
    st.lists(st.integers(0, 6), min_size=3, max_size=3), min_size=1, max_size=20
)


@given(rows)
@settings(deadline=None, max_examples=effort.examples(100))
def test_repeated_nodes_against_sets(table):
    expected = next((i for i, row in enumerate(table) if len(set(row)) < 3), -1)
    assert hash_cells(np.array(table, np.int32))[1][0] == expected


distinct = st.lists(
    st.lists(st.integers(0, 5), min_size=3, max_size=3, unique=True),
    min_size=1,
    max_size=20,
)


@given(distinct)
@settings(deadline=None, max_examples=effort.examples(100))
def test_duplicates_against_a_dictionary(table):
    seen: dict[frozenset, int] = {}
    expected = (-1, -1)
    for i, row in enumerate(table):
        if frozenset(row) in seen:
            expected = (seen[frozenset(row)], i)
            break
        seen[frozenset(row)] = i
    table = np.array(table, np.int32)
    assert first_duplicate(table, hash_cells(table)[0]) == expected


@given(distinct)
@settings(deadline=None, max_examples=effort.examples(50))
def test_duplicates_are_found_whatever_the_hashes(table):
    table = np.array(table, np.int32)
    same = np.zeros(len(table), np.uint64)
    assert first_duplicate(table, same) == first_duplicate(table, hash_cells(table)[0])


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=2), min_size=1, max_size=20)
)
@settings(deadline=None, max_examples=effort.examples(50))
def test_first_equal_rows_against_index(rows):
    expected = [rows.index(row) for row in rows]
    assert first_equal(np.array(rows, np.int32)).tolist() == expected
    # Where the keys of all rows are the same, too.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.random, "default_rng", lambda seed: SameNumbers())
        assert first_equal(np.array(rows, np.int32)).tolist() == expected


class SameNumbers:
    def integers(self, high, size, dtype):
        return np.zeros(size, dtype)


@pytest.mark.parametrize("turn", [0, 1, 3])
def test_one_duplicate_among_many_cells_is_found(turn):
    n = 100_000
    rows = np.arange(n, dtype=np.int32)[:, None] + np.arange(4, dtype=np.int32)
    table = np.random.default_rng(turn).permuted(rows, axis=1)
    hashes = hash_cells(table)[0]
    assert first_duplicate(table, hashes) == (-1, -1)
    # Cells that share theirs by chance are looked at in Python.
    assert np.unique(hashes).size > 0.999 * len(table)
    table[n // 5] = np.roll(table[77], turn)
    assert first_duplicate(table, hash_cells(table)[0]) == (77, n // 5)


def test_the_first_repeated_node_is_found():
    table = np.arange(300_000, dtype=np.int32).reshape(-1, 3).copy()
    for row in (90_000, 70_000, 10_000):
        table[row, 2] = table[row, 0]
        assert hash_cells(table)[1] == (row, 2)
