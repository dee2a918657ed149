"""Products on the CPU: whole numbers exactly, others as scipy, whatever the threads and pieces."""

import copy
import threading
from dataclasses import replace

import numba
import numpy as np
import pytest
from matrices import exact, local, random_csr, vector

from meshprep_runtime import Access, Arg, Loop, MeshprepError
from meshprep_runtime.matrix import CsrMatrix, Ellpack, code
from meshprep_runtime.matrix.products import Product
from meshprep_runtime.matrix.ssor import ColouredSsor


@pytest.fixture
def two_threads():
    before = numba.get_num_threads()
    numba.set_num_threads(min(2, before))
    yield
    numba.set_num_threads(before)


def lengths(rows, seed=0):
    """Empty rows, short ones, and some of a few hundred."""
    rng = np.random.default_rng(seed)
    found = rng.integers(0, 12, rows)
    found[rng.integers(0, rows, rows // 50 + 1)] = 300
    found[:3] = 0
    return found


SHAPES = {
    "no rows": ([], 5),
    "one row": ([7], 9),
    "empty rows": ([0, 0, 0], 4),
    "rows of all lengths": (lengths(500), 700),
}


@pytest.mark.parametrize("name", SHAPES)
def test_whole_numbers_are_exact(name):
    matrix = random_csr(*SHAPES[name])
    x = vector(matrix.shape[1])
    for store in (matrix, Ellpack.from_csr(matrix)):
        np.testing.assert_array_equal(Product(store) @ x, exact(matrix, x))


@pytest.mark.parametrize("dtype", ["f4", "i8"])
@pytest.mark.slow
def test_other_types(dtype):
    matrix = random_csr(lengths(300), 400, dtype)
    x = vector(400, dtype)
    for store in (matrix, Ellpack.from_csr(matrix)):
        y = Product(store) @ x
        assert y.dtype == dtype
        np.testing.assert_array_equal(y, exact(matrix, x))


@pytest.fixture(scope="module")
def large():
    """Real numbers, 130,000 of them, with two rows of some 40,000."""
    sizes = lengths(8000)
    sizes[[17, 6000]] = 40_000, 45_000
    matrix = random_csr(sizes, 50_000)
    rng = np.random.default_rng(3)
    values = rng.standard_normal(matrix.values.size)
    return CsrMatrix(matrix.row_ptr, matrix.columns, values, 50_000), rng.standard_normal(
        50_000
    )


def test_the_same_bits_for_any_threads_and_pieces(large, two_threads):
    matrix, x = large
    found = [
        Product(matrix, threads=threads, piece=piece) @ x
        for threads, piece in ((1, code.PIECE), (2, code.PIECE), (2, 100), (1, 10**7))
    ]
    scale = abs(matrix.to_scipy()) @ abs(x)
    assert (abs(found[0] - matrix.to_scipy() @ x) <= 1e-14 * scale).all()
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_ranges_hold_every_row_once(large):
    row_ptr = large[0].row_ptr
    turns = code.row_schedule(row_ptr, 1000).turns
    assert turns[0, 0] == 0
    assert turns[-1, 1] == 8000
    np.testing.assert_array_equal(turns[1:, 0], turns[:-1, 1])
    work = row_ptr[turns[:, 1]] - row_ptr[turns[:, 0]] + turns[:, 1] - turns[:, 0]
    # a range ends with the row that fills it
    assert (np.sort(work)[:-2] <= 1000 + 301).all()
    assert not turns[:, 2:].any()


DOFS = np.random.default_rng(5).integers(-1, 60, (200, 4))
MANY = np.random.default_rng(6).integers(-1, 60, (50, 17))


@pytest.mark.parametrize(
    ("dofs", "symmetric"),
    [(DOFS, False), (DOFS, True), (MANY, False)],
    ids=["whole", "half", "many dofs"],
)
def test_matrices_of_elements(dofs, symmetric):
    matrix = local(dofs, 60, symmetric=symmetric)
    x = vector(60)
    np.testing.assert_array_equal(Product(matrix) @ x, exact(matrix, x))


@pytest.mark.parametrize("symmetric", [False, True])
def test_elements_in_blocks_give_the_same_bits_for_any_threads(
    slow, two_threads, symmetric, monkeypatch
):
    monkeypatch.setattr(code, "WORTHWHILE", 1)
    dofs = np.arange(600)[:, None] + np.arange(4)
    args = (Arg("r", Access.INC, 1, "f8", "cells->dofs", (0, 1, 2, 3)),)
    sizes = {"cells": 600, "dofs": 603}
    loop = Loop("add", "cells", args)
    plan = slow.plan(sizes, {"cells->dofs": dofs}, [loop], (64,), lists=symmetric)["add"]
    matrix = local(dofs, 603, symmetric=symmetric)
    matrix.values[:] += np.random.default_rng(0).standard_normal(matrix.values.shape)
    x = np.random.default_rng(1).standard_normal(603)
    one, two = (Product(matrix, plan, threads=threads) @ x for threads in (1, 2))
    np.testing.assert_array_equal(one, two)
    scale = abs(matrix.to_scipy()) @ abs(x)
    assert (abs(one - matrix.to_scipy() @ x) <= 1e-14 * (scale + 1)).all()


def test_values_may_change_between_calls():
    matrix = random_csr([2, 3], 4)
    product, x = Product(matrix), vector(4)
    before = product @ x
    matrix.values[:] *= 2
    np.testing.assert_array_equal(product @ x, 2 * before)


def test_an_array_that_gets_other_memory_is_refused():
    matrix = random_csr([2, 3], 4)
    matrix = replace(matrix, values=matrix.values.copy())
    product, x = Product(matrix), vector(4)
    before = product @ x
    matrix.values.resize(100_000, refcheck=False)
    with pytest.raises(MeshprepError, match="has been given other memory"):
        product @ x
    matrix.values.resize(5, refcheck=False)
    np.testing.assert_array_equal(Product(matrix) @ x, before)


@pytest.mark.parametrize("make", [Product, ColouredSsor])
def test_a_copy_works_on_the_copy_of_the_matrix(make):
    full, x = random_csr([4] * 4, 4), vector(4)
    # nothing on the diagonal is zero
    matrix = replace(full, values=full.values + 10 * (np.arange(16) % 5 == 0))
    product = make(matrix)
    expected = product(x)
    other, theirs = copy.deepcopy((product, matrix))
    assert np.array_equal(other(x), expected)
    theirs.values[:] *= 2
    assert not np.array_equal(other(x), expected)
    assert np.array_equal(product(x), expected)


def test_out_is_filled_and_returned():
    matrix, x = local(DOFS, 60), vector(60)
    out = np.full(60, np.nan)
    assert Product(matrix)(x, out=out) is out
    np.testing.assert_array_equal(out, exact(matrix, x))


SMALL = random_csr([1, 2], 3)
HALF = local(MANY, 60, symmetric=True)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Product(HALF), "elements with 17 dofs is slower than the whole"),
        (lambda: Product(SMALL) @ np.zeros(2), r"x is float64 of shape \(2,\), must be"),
        (lambda: Product(SMALL) @ np.zeros(3, "f4"), "x is float32"),
        (lambda: Product(SMALL) @ np.zeros(6)[::2], "must be contiguous float64"),
        (lambda: Product(SMALL)(np.zeros(3), np.zeros(3)), r"out is .* must be .*\(2,\)"),
        (lambda: Product(random_csr([1], 2), threads=0), "threads is 0"),
        (
            lambda: Product(random_csr([1], 2, "c16")),
            "values are complex128: use f4, f8, i4, i8",
        ),
        (
            lambda: Product(replace(SMALL, values=np.zeros(6)[::2])),
            "values is not contiguous",
        ),
        (lambda: Product(CsrMatrix(*map(np.int32, ([0, 1], [1], [1])))), "outside"),
        (lambda: Product(SMALL) @ [1.0, 2.0, 3.0], "x is a list, must be a NumPy array"),
        (lambda: Product(random_csr([1], 2, ">f8")), "values are >f8: use f4"),
    ],
)
def test_what_does_not_fit(call, words):
    with pytest.raises(MeshprepError, match=words):
        call()


def test_an_array_that_cannot_be_written_is_left_alone():
    matrix, x, out = random_csr([1, 2], 3), vector(3), np.full(2, 7.0)
    product = Product(matrix)
    product(x, np.zeros(2))
    out.flags.writeable = False
    with pytest.raises(MeshprepError, match="out is read-only"):
        product(x, out)
    assert out.tolist() == [7.0, 7.0]


def test_x_and_out_must_be_two_arrays():
    matrix, x = random_csr([1, 1], 2), np.zeros(2)
    with pytest.raises(MeshprepError, match="out shares memory with x"):
        Product(matrix)(x, out=x)


@pytest.mark.parametrize("threads", [1, None])
def test_one_product_in_several_threads(threads):
    n, wrong = 200_000, []
    row_ptr, columns = np.array([0, n], np.int32), np.arange(n, dtype=np.int32)
    product = Product(CsrMatrix(row_ptr, columns, np.ones(n, np.int64), n), threads=threads)

    def multiply(k):
        x = np.full(n, k)
        wrong.extend(y for y in (int((product @ x)[0]) for _ in range(200)) if y != k * n)

    both = [threading.Thread(target=multiply, args=(k,)) for k in (1, 2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert wrong == []
