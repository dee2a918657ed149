"""Products, preconditioners and conjugate gradients on arrays of a GPU: CUDA text run and checked.

All here runs on a real GPU, too: make check-gpu.
"""

import copy
from dataclasses import replace

import numpy as np
import pytest
from matrices import exact, local, random_csr, vector

import poisson
from meshprep_cuda_check.checked import CheckError
from meshprep_cuda_check.emulated import EmulatedDevice
from meshprep_runtime import Access, Arg, Loop, MeshprepError
from meshprep_runtime.cuda.device import use
from meshprep_runtime.matrix import (
    ColouredSsor,
    CsrMatrix,
    Ellpack,
    Jacobi,
    Product,
    cg,
    to_gpu,
)
from meshprep_runtime.matrix.cuda_products import DeviceProduct, sweep_program
from meshprep_runtime.matrix.cuda_text import CsrThreads
from meshprep_runtime.matrix.solve import diagonal

pytestmark = pytest.mark.usefixtures("needs_gxx")
LENGTHS = np.random.default_rng(2).integers(0, 20, 131)
# Two long rows.
LENGTHS[[3, 77]] = 2560, 576
MIXED = random_csr(LENGTHS, 2624)


@pytest.fixture(params=["emulated", pytest.param("real", marks=pytest.mark.gpu)])
def there(request):
    if request.param == "real":
        yield request.getfixturevalue("gpu")
        return
    with use(EmulatedDevice()) as made:
        yield made


@pytest.fixture(scope="module")
def strip(slow):
    """A plan of cells in a row that share three of four dofs, and their dofs, some constrained."""
    dofs = np.arange(90)[:, None] + np.arange(4)
    args = (Arg("r", Access.INC, 1, "f8", "cells->dofs", (0, 1, 2, 3)),)
    tables = {"cells->dofs": dofs}
    plan = slow.plan({"cells": 90, "dofs": 93}, tables, [Loop("add", "cells", args)], (32,))
    row = np.arange(93) - 1
    row[-1] = -1
    return plan["add"], row[dofs]


def check(product, matrix, device):
    """A product as a new array, into another one, and after the values have changed."""
    x = vector(matrix.shape[1])
    wanted = exact(matrix, x)
    np.testing.assert_array_equal((product @ device.array(x)).get(), wanted)
    out = device.array(np.full(matrix.shape[0], 77.0))
    assert product(device.array(x), out=out) is out
    np.testing.assert_array_equal(out.get(), wanted)


@pytest.mark.parametrize("threads", [None, CsrThreads(64, 2, 3)])
def test_rows(threads, there):
    matrix = to_gpu(MIXED)
    product = Product(matrix, threads=threads)
    check(product, MIXED, there)
    assert repr(matrix) == repr(MIXED)
    np.testing.assert_array_equal(matrix.to_scipy().toarray(), MIXED.to_scipy().toarray())
    matrix.values.set(2 * MIXED.values)
    check(product, replace(MIXED, values=2 * MIXED.values), there)


def test_other_stores(there, strip):
    plan, dofs = strip
    padded = Ellpack.from_csr(MIXED)
    check(Product(to_gpu(padded)), padded, there)
    for symmetric in (False, True):
        made = local(dofs, 91, symmetric=symmetric)
        check(Product(to_gpu(made), plan), made, there)
    with pytest.raises(MeshprepError, match="give the plan of their loop"):
        Product(to_gpu(made))
    with pytest.raises(MeshprepError, match="threads is 2: on a GPU give CsrThreads"):
        Product(to_gpu(MIXED), threads=2)


def test_what_lies_elsewhere_is_refused(there):
    x = vector(MIXED.shape[1])
    with pytest.raises(
        MeshprepError, match=r"x lies on a GPU, .* host: give to_gpu\(matrix\)"
    ):
        Product(MIXED) @ there.array(x)
    product = Product(to_gpu(MIXED))
    with pytest.raises(MeshprepError, match="'x' lies in the memory of the host"):
        product @ x
    with pytest.raises(MeshprepError, match="'x' has shape"):
        product @ there.array(x[1:])
    with pytest.raises(MeshprepError, match="'x' has dtype float32, must be float64"):
        product @ there.array(x.astype("f4"))
    square = MIXED.to_host().to_scipy()[:9, :9] + 40 * np.eye(9)
    square = to_gpu(CsrMatrix.from_scipy(square))
    with pytest.raises(MeshprepError, match="r lies on the host, the matrix on a GPU"):
        Jacobi(square)(np.ones(9))
    with pytest.raises(MeshprepError, match="r lies on the host, the matrix on a GPU"):
        ColouredSsor(square)(np.ones(9))


@pytest.fixture(scope="module")
def problem():
    """Biquadratic elements on perturbed quads."""
    made = poisson.integrate(poisson.square(6, 2))
    return made.csr(), made.load(), made.local()


def test_solvers_find_what_they_find_on_the_host(there, problem):
    matrix, load, cells = problem
    ours, right = to_gpu(matrix), there.array(load)
    for how in (Jacobi, ColouredSsor):
        here = how(matrix)
        np.testing.assert_allclose(
            how(ours)(right).get(), here(load), rtol=1e-12, atol=1e-14
        )
        wanted = cg(Product(matrix).__matmul__, load, here)
        found = cg(Product(ours).__matmul__, right, how(ours))
        assert found.iterations == wanted.iterations
        np.testing.assert_allclose(found.x.get(), wanted.x, rtol=1e-6, atol=1e-9)
    for elements in (cells, cells.half()):
        found = ColouredSsor(to_gpu(elements))(right).get()
        np.testing.assert_allclose(
            found, ColouredSsor(matrix)(load), rtol=1e-12, atol=1e-14
        )
    exactly = cg(Product(ours).__matmul__, right, tolerance=1e-12).x.get()
    np.testing.assert_allclose(matrix.to_scipy() @ exactly, load, atol=1e-10)
    assert cg(Product(ours).__matmul__, there.array(0 * load)).iterations == 0


def test_the_example_solves_alike_on_both(there):
    square = poisson.square(5, 2)
    for (name, here), (_, ours) in zip(
        poisson.solutions(square), poisson.solutions(square, there), strict=True
    ):
        assert abs(ours.iterations - here.iterations) <= 1, name


@pytest.mark.parametrize("store", [0, 2])
def test_a_sweep_with_one_colour_is_a_race(device, problem, store):
    load, matrix = problem[1], problem[store]
    colour = np.zeros(load.size, np.int32)
    inverse = 1 / diagonal(matrix)
    program = sweep_program(matrix, colour, inverse, backward=False)
    swept = DeviceProduct(program, device.array(matrix.values))(device.array(load))
    with pytest.raises(CheckError, match="race"):
        swept.get()


def test_a_copy_multiplies_by_the_matrix_of_the_copy(device):
    product = copy.copy(Product(to_gpu(MIXED)))
    check(product, MIXED, device)


def test_the_programs_become_machine_code(compiled, problem):
    colour = np.arange(problem[1].size)
    for arch in ("sm_75", "sm_80", "sm_90", "sm_100"):
        for matrix, most in ((problem[0], 48), (problem[2], 64)):
            made = sweep_program(matrix, colour, 1 / diagonal(matrix), backward=True)
            code = compiled(made, arch)
            assert code.spilled == 0
            assert code.registers <= most
