import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from meshprep_runtime import MeshprepError, MissingPackageError
from meshprep_runtime.matrix import (
    ColouredSsor,
    CsrMatrix,
    Ellpack,
    Jacobi,
    LocalMatrices,
    Product,
)

# 10  1  0      entries at (0, 0), (0, 1), (1, 2), (3, 0)
#  0  0  7
#  0  0  0
#  4  0  0
DENSE = np.array([[10.0, 1, 0], [0, 0, 7], [0, 0, 0], [4, 0, 0]])
COLUMNS = np.array([0, 1, 2, 0], np.int32)
ROW_PTR = np.array([0, 2, 3, 3, 4], np.int32)
VALUES = np.array([10.0, 1, 7, 4])


def test_csr_is_the_matrix_and_shares_its_arrays_with_scipy():
    csr = CsrMatrix(ROW_PTR, COLUMNS, VALUES, 3)
    csr.check()
    assert csr.shape == (4, 3)
    assert repr(csr) == "CsrMatrix(4 x 3, 4 values of float64)"
    assert csr.bytes == 4 * 5 + 4 * 4 + 8 * 4
    made = csr.to_scipy()
    assert np.array_equal(made.toarray(), DENSE)
    assert np.shares_memory(made.data, VALUES)
    assert np.shares_memory(made.indices, COLUMNS)


def test_csr_comes_from_scipy_in_any_format_and_shares_its_arrays():
    for form in ("csr", "csc", "coo", "dok", "bsr"):
        for make in (sparse.coo_array, sparse.coo_matrix):
            csr = CsrMatrix.from_scipy(make(DENSE).asformat(form))
            csr.check()
            assert csr.shape == (4, 3)
            assert np.array_equal(csr.to_scipy().toarray(), DENSE)
    theirs = sparse.csr_array(DENSE)
    assert np.shares_memory(CsrMatrix.from_scipy(theirs).values, theirs.data)
    columns, row_ptr = np.array([1, 0, 1]), np.array([0, 3])
    loose = sparse.csr_array((np.array([5.0, 2, 3]), columns, row_ptr), shape=(1, 2))
    csr = CsrMatrix.from_scipy(loose)
    assert (csr.columns.tolist(), csr.values.tolist()) == ([0, 1], [2, 8])
    assert loose.indices.tolist() == [1, 0, 1]
    for make in (Product, Jacobi, ColouredSsor):
        with pytest.raises(
            MeshprepError, match=r"the matrix is a csr_array, .*from_scipy takes"
        ):
            make(theirs)


@pytest.mark.parametrize("index", ["i4", "i8"])
def test_csr_goes_to_petsc(index):
    petsc = pytest.importorskip("petsc4py.PETSc", reason="petsc4py is not installed")
    values = VALUES.copy()
    made = CsrMatrix(ROW_PTR.astype(index), COLUMNS, values, 3).to_petsc()
    values[:] = 0
    assert isinstance(made, petsc.Mat)
    assert np.array_equal(made[:, :], DENSE)


@pytest.fixture
def petsc(monkeypatch):
    """What PETSc is given, for machines without petsc4py; its indices are ``IntType``."""
    given = {}

    class Mat:
        def createAIJ(self, **words):
            given.update(words)
            return SimpleNamespace(assemble=lambda: given.update(assembled=True))

    fake = ModuleType("petsc4py.PETSc")
    fake.Mat, fake.COMM_SELF, fake.IntType, fake.given = Mat, "self", np.int32, given
    monkeypatch.setitem(sys.modules, "petsc4py", ModuleType("petsc4py"))
    monkeypatch.setitem(sys.modules, "petsc4py.PETSc", fake)
    return fake


def test_what_petsc_is_given(petsc):
    CsrMatrix(ROW_PTR, COLUMNS, VALUES, 3).to_petsc()
    given = petsc.given
    assert (given["size"], given["comm"], given["assembled"]) == ((4, 3), "self", True)
    assert all(
        a is b for a, b in zip(given["csr"], (ROW_PTR, COLUMNS, VALUES), strict=True)
    )


def test_petsc_gets_its_own_type_of_indices(petsc):
    CsrMatrix(ROW_PTR.astype("i8"), COLUMNS, VALUES, 3).to_petsc()
    offsets, columns, _ = petsc.given["csr"]
    assert offsets.dtype == columns.dtype == np.int32
    assert np.array_equal(offsets, ROW_PTR)
    petsc.IntType = np.int8
    many = CsrMatrix(np.array([0, 128], np.int32), np.zeros(128, np.int32), np.ones(128), 1)
    with pytest.raises(
        MeshprepError, match="128 nonzeros is too large for this PETSc, whose ind"
    ):
        many.to_petsc()


def test_without_petsc_the_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "petsc4py.PETSc", None)
    with pytest.raises(MissingPackageError, match="pip install petsc4py"):
        CsrMatrix(ROW_PTR, COLUMNS, VALUES, 3).to_petsc()


def test_ellpack_leaves_padding_out_and_adds_equal_entries():
    columns = np.array([[0, 2, -1, 0], [1, -1, -1, 0]], np.int32)
    values = np.array([[10.0, 7, 0, 1], [1, 0, 0, 3]])
    ellpack = Ellpack(columns, values, 3)
    ellpack.check()
    assert ellpack.shape == (4, 3)
    assert repr(ellpack) == "Ellpack(4 x 3, 8 values of float64)"
    assert ellpack.bytes == 8 * 4 + 8 * 8
    made = ellpack.to_scipy()
    assert np.array_equal(made.toarray(), DENSE)
    assert made.nnz == 4
    with pytest.raises(MeshprepError, match="over the rows of an Ellpack are slow"):
        ColouredSsor(Ellpack(columns, values))


@pytest.mark.parametrize("seed", range(3))
def test_ellpack_comes_from_scipy(seed):
    A = sparse.random_array((40, 30), density=0.1, rng=np.random.default_rng(seed))
    ellpack = Ellpack.from_scipy(A)
    ellpack.check()
    assert ellpack.columns.shape == (np.diff(A.tocsr().indptr).max(), 40)
    assert np.array_equal(ellpack.to_scipy().toarray(), A.toarray())
    assert Ellpack.from_scipy(sparse.csr_array((0, 3))).to_scipy().shape == (0, 3)


@pytest.mark.parametrize("symmetric", [False, True])
def test_local_matrices_add_up_where_dofs_have_rows(symmetric):
    whole = np.array([[[2.0, -1], [-1, 3]], [[5, 7], [7, 11]]])
    dofs = np.array([[0, 1], [1, -1]], np.int32)
    values = whole[:, [0, 0, 1], [0, 1, 1]] if symmetric else whole.reshape(2, 4)
    local = LocalMatrices(values, dofs, symmetric, 3)
    local.check()
    assert local.shape == (3, 3)
    assert local.bytes == values.nbytes + 16
    assert local.to_scipy().toarray().tolist() == [[2, -1, 0], [-1, 8, 0], [0, 0, 0]]


def test_half_of_local_matrices():
    values = np.array([[2.0, -1, -1, 3], [5, 7, 7, 11]])
    whole = LocalMatrices(values, np.array([[0, 1], [1, -1]], np.int32), False, 3)
    half = whole.half()
    assert half.half() is half
    assert half.values.tolist() == [[2, -1, 3], [5, 7, 11]]
    assert np.array_equal(half.to_scipy().toarray(), whole.to_scipy().toarray())
    values[1, 2] += 1e-9
    with pytest.raises(MeshprepError, match="the matrix of element 1 is not symmetric"):
        whole.half()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: CsrMatrix(ROW_PTR.astype("i2"), COLUMNS, VALUES),
            "CsrMatrix.row_ptr is int16",
        ),
        (
            lambda: CsrMatrix(ROW_PTR, COLUMNS.astype(">i4"), VALUES),
            "CsrMatrix.columns is >i4",
        ),
        (lambda: CsrMatrix(ROW_PTR, COLUMNS, VALUES[:3]), "values the shape"),
        (
            lambda: CsrMatrix(ROW_PTR[::-1], COLUMNS, VALUES).check(),
            "must rise from 0 to 4",
        ),
        (lambda: CsrMatrix(ROW_PTR, COLUMNS, VALUES, 2).check(), "outside 0..1"),
        (lambda: Ellpack(COLUMNS[None], VALUES), "values has shape"),
        (lambda: Ellpack(COLUMNS[None].astype("i8"), VALUES[None]), "columns is int64"),
        (lambda: Ellpack(COLUMNS[None], VALUES[None], 2).check(), "outside -1..1"),
        (
            lambda: Ellpack(COLUMNS[:2].reshape(2, 1) - 1, np.ones((2, 1))).check(),
            "padding must stand last",
        ),
        (lambda: LocalMatrices(VALUES[None], COLUMNS[None], True, 3), "must be (1, 10)"),
        (
            lambda: LocalMatrices(np.ones((1, 16)), COLUMNS[None].astype("u4"), False, 3),
            "LocalMatrices.dofs is uint32",
        ),
        (
            lambda: LocalMatrices(np.ones((1, 16)), COLUMNS[None], False, 2).check(),
            "outside -1..1",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(make, words):
    with pytest.raises(MeshprepError) as error:
        make()
    assert words in str(error.value)
