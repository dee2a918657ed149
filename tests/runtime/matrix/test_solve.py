"""Conjugate gradients and preconditioners against the thesis's problem, and on small matrices."""

import numba
import numpy as np
import pytest
from matrices import ITERATIONS, local, random_csr, vector

import poisson
from meshprep_runtime import MeshprepError
from meshprep_runtime.matrix import CsrMatrix, LocalMatrices, code, ssor
from meshprep_runtime.matrix.products import Product
from meshprep_runtime.matrix.solve import Jacobi, cg, diagonal
from meshprep_runtime.matrix.ssor import ColouredSsor
from meshprep_runtime.matrix.stores import entries_of_rows


@pytest.mark.parametrize(("degree", "n"), ITERATIONS)
def test_iterations_on_perturbed_squares(degree, n):
    rows, iterations, colours, error = ITERATIONS[degree, n]
    problem = poisson.integrate(poisson.square(n, degree))
    matrix, load = problem.csr(), problem.load()
    product, ssor = Product(matrix), ColouredSsor(matrix)
    found = [cg(product.__matmul__, load, how) for how in (None, Jacobi(matrix), ssor)]
    assert load.size == rows
    # On a structured mesh first-fit needs no more colours than an element has dofs.
    assert ssor.colours == colours == (degree + 1) ** 2
    for one, wanted, most in zip(found, iterations, (1, 1, 2), strict=True):
        assert abs(one.iterations - wanted) <= most
        assert one.residual <= 1e-8
        assert problem.error(one.x) == pytest.approx(error, rel=0.01)
    assert found[2].iterations <= 0.55 * found[0].iterations


@pytest.mark.parametrize("n", [4, 8])
def test_a_uniform_grid_proves_nothing(n):
    problem = poisson.integrate(poisson.square(n, 1, perturbed=0))
    assert cg(Product(problem.csr()).__matmul__, problem.load()).iterations == 1


def test_one_sweep_by_hand():
    """(L + D) D^-1 (L + D)^T z = r, with L by the order of the colours."""
    problem = poisson.integrate(poisson.square(5, 2))
    matrix = problem.csr()
    ssor = ColouredSsor(matrix)
    order = np.argsort(ssor.colour, kind="stable")
    dense = matrix.to_scipy().toarray()[np.ix_(order, order)]
    lower = np.tril(dense)
    r = np.random.default_rng(0).standard_normal(order.size)
    y = np.linalg.solve(lower / np.diag(dense), r[order])
    expected = np.linalg.solve(lower.T, y)
    np.testing.assert_allclose(ssor(r)[order], expected, rtol=1e-11, atol=1e-13)


def whole_numbers(symmetric):
    """Elements of four dofs, some left out, with a diagonal of ones; and the matrix in rows."""
    dofs = np.random.default_rng(3).integers(-1, 40, (60, 4))
    dofs[:40, 0] = np.arange(40)
    elements = local(dofs, 40, symmetric=symmetric)
    # A dof that stands twice in an element would be coupled to itself.
    for row in range(len(dofs)):
        _, first = np.unique(dofs[row], return_index=True)
        twice = np.setdiff1d(np.arange(4), first)
        elements.dofs[row, twice] = -1
    place = entries_of_rows(elements).diagonal()
    elements.values[:, place] = 0
    elements.values[:40, place[0]] = 1
    return elements, CsrMatrix.from_scipy(elements.to_scipy())


@pytest.mark.parametrize("symmetric", [False, True])
def test_sweeps_over_elements_are_those_over_their_sum(symmetric):
    """Whole numbers, so that the order of the sums does not count."""
    elements, rows = whole_numbers(symmetric)
    by_elements, by_rows = ColouredSsor(elements), ColouredSsor(rows)
    assert np.array_equal(by_elements.colour, by_rows.colour)
    assert by_rows.colours > 4
    r = vector(40)
    assert np.array_equal(by_elements(r), by_rows(r))


@pytest.mark.parametrize(("degree", "n"), [(1, 16), (2, 8)])
def test_iterations_over_elements_are_those_over_rows(degree, n):
    problem = poisson.integrate(poisson.square(n, degree))
    matrix, load = problem.csr(), problem.load()
    wanted = cg(Product(matrix), load, ColouredSsor(matrix))
    for elements in (problem.local(), problem.local().half()):
        found = cg(Product(elements), load, ColouredSsor(elements))
        assert found.iterations == wanted.iterations
        np.testing.assert_allclose(found.x, wanted.x, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("store", ["csr", "local"])
def test_sweeps_give_the_same_bits_for_any_threads(monkeypatch, store):
    monkeypatch.setattr(code, "WORTHWHILE", 1)
    monkeypatch.setattr(ssor, "SWEEP_ROWS", 16)
    problem = poisson.integrate(poisson.square(16, 2))
    sweeps = ColouredSsor(problem.csr() if store == "csr" else problem.local())
    r = np.random.default_rng(0).standard_normal(sweeps.colour.size)
    before = numba.get_num_threads()
    found = []
    for threads in (1, min(2, before)):
        numba.set_num_threads(threads)
        found += [sweeps(r) for _ in range(3)]
    numba.set_num_threads(before)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_the_diagonal_of_every_store():
    csr = random_csr([3, 4, 0, 5], 6)
    square = CsrMatrix(csr.row_ptr, csr.columns % 4, csr.values)
    expected = np.diag(square.to_scipy().toarray())
    np.testing.assert_array_equal(diagonal(square), expected)
    dofs = np.array([[0, 1, -1], [1, 2, 0]], np.int32)
    for symmetric, size in ((False, 9), (True, 6)):
        values = np.arange(2.0 * size).reshape(2, size)
        local = LocalMatrices(values, dofs, symmetric, 3)
        np.testing.assert_array_equal(diagonal(local), np.diag(local.to_scipy().toarray()))


def small(*rows):
    rows = np.array(rows, float)
    row, column = np.nonzero(rows)
    row_ptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(rows)))])
    return CsrMatrix(row_ptr.astype(np.int32), column.astype(np.int32), rows[row, column])


def test_what_cannot_be_solved():
    indefinite, b = small([1, 2], [2, 1]), np.array([1.0, -1.0])
    with pytest.raises(MeshprepError, match="symmetric and positive definite"):
        cg(Product(indefinite).__matmul__, b)
    stiff = small([2, -1, 0], [-1, 2, -1], [0, -1, 2])
    with pytest.raises(MeshprepError, match="no solution after 1 iterations"):
        cg(Product(stiff).__matmul__, np.array([1.0, 0, 0]), most=1)
    with pytest.raises(MeshprepError, match="b is int64, must be f4 or f8"):
        cg(Product(stiff).__matmul__, np.array([1, 0, 0]))
    assert cg(Product(stiff).__matmul__, np.zeros(3)).iterations == 0


@pytest.mark.parametrize(
    ("dtype", "size"), [("f4", 2.0**-60), ("f8", 2.0**-530), ("f8", 2.0**500)]
)
def test_a_right_side_of_any_size_is_solved(dtype, size):
    """Its square, or that of its residual, is smaller than any number of the dtype."""
    matrix = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], dtype)
    b = np.array([1, 2, 3], dtype)
    near, far = (cg(matrix.dot, b * b.dtype.type(k), tolerance=1e-5) for k in (1, size))
    assert far.iterations == near.iterations == 3
    assert np.array_equal(far.x, near.x * b.dtype.type(size))
    assert (far.x.dtype, far.residual) == (b.dtype, near.residual)


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("f4", 1e25),
        ("f4", 1e-30),
        ("f8", 1e-170),
        ("f8", 1e200),
        ("f8", np.inf),
        ("f8", np.nan),
    ],
)
def test_a_right_side_without_a_norm_is_refused(dtype, size):
    with (
        np.errstate(over="ignore"),
        pytest.raises(MeshprepError, match="add up to no number of"),
    ):
        cg(np.eye(3, dtype=dtype).dot, np.full(3, size, dtype))


def test_preconditioners_refuse_what_they_cannot_do():
    with pytest.raises(MeshprepError, match="the diagonal of row 1 is zero"):
        Jacobi(small([1, 1], [1, 0]))
    with pytest.raises(
        MeshprepError, match="rows 0 and 1 see each other and have one colour"
    ):
        ColouredSsor(small([1, 1], [0, 1]))
    with pytest.raises(MeshprepError, match="rows 1 and 2 see each other"):
        ColouredSsor(small([2, 0, 0], [0, 2, 1], [0, 1, 2]), np.array([0, 1, 1]))


def test_rows_of_one_rank_have_no_sweeps():
    row_ptr, columns = np.array([0, 2], np.int32), np.array([0, 3], np.int32)
    with pytest.raises(
        MeshprepError, match=r"a square matrix, not one of shape \(1, 4\): on"
    ):
        ColouredSsor(CsrMatrix(row_ptr, columns, np.ones(2), 4))
