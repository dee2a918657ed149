"""The page on Warp: the matrix that its kernel sums is that of SciPy."""

import numpy as np
import warp
from pages_of_use import run

warp.config.quiet = True
names = run("warp.md")
wanted = names["pattern"].matrix(names["local"])
matrix = names["matrix"]
assert np.array_equal(matrix.offsets.numpy()[: wanted.shape[0] + 1], wanted.indptr)
assert np.array_equal(matrix.columns.numpy()[: wanted.nnz], wanted.indices)
# Summed in the same order: the same bits.
assert np.array_equal(matrix.values.numpy()[: wanted.nnz], wanted.data)
x = np.random.default_rng(2).random(wanted.shape[1])
product = (matrix @ warp.array(x, dtype=warp.float64)).numpy()
np.testing.assert_allclose(product, wanted @ x, rtol=1e-12)
