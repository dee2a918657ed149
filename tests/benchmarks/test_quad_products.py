"""Bytes of products on meshes of quads against the thesis's table, and nonzeros by counting."""

from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# [R14 Table 3.1], to its two decimals, and the unrounded values.
TABLE = {
    ("ellpack", 4): ((1.0, 1.81, 2.25, 2.49), (1.000, 1.815, 2.250, 2.491)),
    ("csr", 4): ((1.04, 1.85, 2.28, 2.51), (1.036, 1.852, 2.280, 2.514)),
    ("ellpack", 8): ((0.9, 1.58, 1.93, 2.12), (0.904, 1.585, 1.931, 2.118)),
    ("csr", 8): ((0.92, 1.6, 1.95, 2.13), (0.923, 1.604, 1.946, 2.129)),
}


@pytest.fixture
def formulas(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import quad_products

    return quad_products


@pytest.mark.parametrize(("store", "itemsize"), TABLE)
def test_products_against_local_matrices(formulas, store, itemsize):
    printed, exact = TABLE[store, itemsize]
    found = [formulas.against_lma(degree, store, itemsize) for degree in (1, 2, 3, 4)]
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
def test_nonzeros_of_an_element(formulas, degree, nonzeros):
    assert (
        formulas.QuadElement(degree).nonzeros == nonzeros == nonzeros_by_counting(4, degree)
    )
