"""Bytes of assembly and products against the thesis's tables, and against counting."""

import numpy as np
import pytest

import poisson
from meshprep.metrics.product_traffic import (
    QuadElement,
    against_lma,
    csr_bytes,
    lines_of_x,
    product_moved,
    store_bytes,
)
from meshprep_runtime import MeshprepError
from meshprep_runtime.matrix import Ellpack, LocalMatrices
from meshprep_runtime.matrix.rule import CsrThreads
from meshprep_runtime.plan import MatrixPlan

# [R14 Table 3.1], to its two decimals, and the unrounded values.
TABLE = {
    ("ellpack", 4): ((1.0, 1.81, 2.25, 2.49), (1.000, 1.815, 2.250, 2.491)),
    ("csr", 4): ((1.04, 1.85, 2.28, 2.51), (1.036, 1.852, 2.280, 2.514)),
    ("ellpack", 8): ((0.9, 1.58, 1.93, 2.12), (0.904, 1.585, 1.931, 2.118)),
    ("csr", 8): ((0.92, 1.6, 1.95, 2.13), (0.923, 1.604, 1.946, 2.129)),
}


@pytest.mark.parametrize(("store", "itemsize"), TABLE)
def test_products_against_local_matrices(store, itemsize):
    printed, exact = TABLE[store, itemsize]
    found = [against_lma(degree, store, itemsize) for degree in (1, 2, 3, 4)]
    assert [round(x, 3) for x in found] == list(exact)
    assert [float(f"{x:.2f}") for x in found] == list(printed)


def nonzeros_by_counting(n, p):
    """Of rows that an element owns, on a torus of n x n quads of degree p."""
    side = n * p
    row = np.arange(side)
    local = (row[: n * p : p, None] + np.arange(p + 1)) % side
    dofs = (local[:, None, :, None] * side + local[None, :, None, :]).reshape(n * n, -1)
    pairs = dofs[:, :, None].astype(np.int64) * side * side + dofs[:, None, :]
    return np.unique(pairs).size // (n * n)


@pytest.mark.parametrize(("degree", "nonzeros"), [(1, 9), (2, 64), (3, 225), (4, 576)])
def test_nonzeros_of_an_element(degree, nonzeros):
    assert QuadElement(degree).nonzeros == nonzeros == nonzeros_by_counting(4, degree)


def test_an_unknown_store_is_refused():
    with pytest.raises(MeshprepError, match="store 'coo' is unknown: use lma, ellpack, csr"):
        product_moved(1, "coo")


def test_bytes_of_a_csr_product():
    found = csr_bytes(10, 100, 4)
    assert (found.effective, found.least) == (100 * 12 + 10 * 8, 100 * 8 + 10 * 12)
    assert found.worst == 32 * found.effective


def test_lines_of_x_by_counting():
    rng = np.random.default_rng(0)
    row_ptr = np.concatenate([[0], np.cumsum(rng.integers(0, 9, 100))])
    columns = rng.integers(0, 300, row_ptr[-1])
    threads = CsrThreads(32, 8, 3)  # 12 rows a block
    lines = {
        (i // 12, columns[j] // 16) for i in range(100) for j in range(row_ptr[i], row_ptr[i + 1])
    }
    assert lines_of_x(row_ptr, columns, threads, 8) == len(lines)
    assert lines_of_x(np.zeros(1, int), np.zeros(0, int), threads, 8) == 0


def test_bytes_of_each_store_are_those_of_its_arrays():
    problem = poisson.integrate(poisson.square(6, 2))
    csr, local = problem.csr(), problem.local()
    cells, n = local.dofs.shape
    longest = int(np.diff(csr.row_ptr).max())
    stores = {
        "csr": csr,
        "ellpack": Ellpack(
            np.zeros((longest, csr.shape[0]), np.int32), np.zeros((longest, csr.shape[0]))
        ),
        "local": local,
        "local, half": LocalMatrices(
            np.zeros((cells, n * (n + 1) // 2)), local.dofs, True, local.n_rows
        ),
    }
    row = problem.square.row
    number = csr.to_scipy().astype(np.int32)
    number.data = np.arange(1, number.nnz + 1, dtype=np.int32)
    number = np.pad(number.toarray(), (0, 1))  # behind the last row and column: none
    place = {"add": number[local.dofs[:, :, None], local.dofs[:, None]].reshape(cells, -1) - 1}
    row_ptr = csr.row_ptr.astype(np.int64)
    plan = MatrixPlan("K", "dofs", "dofs", row, row, row_ptr, csr.columns, place)
    found = store_bytes(plan)
    lazy = found.pop(2)
    # the middle of four elements of nine dofs has the longest row
    assert (lazy.store, lazy.stored) == ("lazy-ellpack", 4 * 9 * csr.shape[0] * 12)
    assert {one.store: one.stored for one in found} == {k: s.bytes for k, s in stores.items()}
    # row_ptr has one entry more than rows
    assert found[0].product == csr_bytes(csr.shape[0], csr.values.size, 8).least + 4
    assert found[2].product - found[2].stored == 3 * 8 * csr.shape[0]
