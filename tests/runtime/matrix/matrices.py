"""Matrices for the tests of products."""

import numpy as np
import scipy.sparse as sparse

from meshprep_runtime.matrix import CsrMatrix, LocalMatrices

# Degree, cells along a side: rows; iterations without and with Jacobi's and the coloured
# preconditioner; colours; error.
ITERATIONS = {
    (1, 16): (225, (39, 38, 20), 4, 1.14e-4),
    (1, 32): (961, (76, 75, 38), 4, 2.95e-5),
    (2, 8): (225, (59, 53, 26), 9, 1.38e-5),
    (2, 16): (961, (114, 100, 49), 9, 1.82e-6),
    (3, 16): (2209, (252, 216, 83), 16, 2.60e-8),
    (4, 8): (961, (253, 225, 70), 25, 1.03e-8),
}


def random_csr(lengths, n_columns, dtype="f8", seed=0):
    """Rows of these lengths, whole numbers as values; columns ascend and do not repeat."""
    rng = np.random.default_rng(seed)
    row_ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    columns = [np.sort(rng.choice(n_columns, n, replace=False)) for n in lengths]
    found = np.concatenate([np.zeros(0, int), *columns]).astype(np.int32)
    values = rng.integers(-9, 10, found.size).astype(dtype)
    return CsrMatrix(row_ptr, found, values, n_columns)


def vector(n, dtype="f8", seed=1):
    return np.random.default_rng(seed).integers(-9, 10, n).astype(dtype)


def local(dofs, n_rows, dtype="f8", symmetric=False, seed=0):
    """Whole numbers in the matrices of elements with these dofs."""
    rng = np.random.default_rng(seed)
    elements, n = dofs.shape
    entries = n * (n + 1) // 2 if symmetric else n * n
    values = rng.integers(-9, 10, (elements, entries)).astype(dtype)
    return LocalMatrices(values, dofs.astype(np.int32), symmetric, n_rows)


def exact(matrix, x):
    """``A x`` in whole numbers, entry by entry."""
    made = sparse.coo_array(matrix.to_scipy()).astype(np.int64)
    y = np.zeros(matrix.shape[0], np.int64)
    np.add.at(y, made.coords[0], made.data * x.astype(np.int64)[made.coords[1]])
    return y
