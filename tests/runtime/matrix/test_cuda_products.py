"""The CUDA text of products: run by g++ with every access checked, and compiled for GPUs."""

from dataclasses import replace

import effort
import numpy as np
import pytest
from matrices import exact, local, random_csr, vector

from meshprep_cuda_check.checked import CheckError, run_checked
from meshprep_runtime import Access, Arg, Loop, MeshprepError
from meshprep_runtime.cuda.arrays import DeviceBinder
from meshprep_runtime.cuda.executor import Launcher
from meshprep_runtime.matrix import Ellpack
from meshprep_runtime.matrix.cuda_products import (
    csr_program,
    ellpack_program,
    local_program,
)
from meshprep_runtime.matrix.cuda_text import CsrThreads

pytestmark = pytest.mark.usefixtures("needs_gxx")


def run(program, matrix, dtype="f8"):
    """The product by the checked text; y holds what no sum gives before."""
    x = vector(matrix.shape[1], dtype)
    y = np.full(matrix.shape[0], 77, dtype)
    more = {"values": matrix.values.reshape(-1)} if len(program.slots) > 2 else {}
    run_checked(program, x=x, y=y, **more)
    np.testing.assert_array_equal(y, exact(matrix, x))


LENGTHS = np.random.default_rng(2).integers(0, 40, 211)
LENGTHS[[0, 5, 6, 210]] = 0
MIXED = random_csr(LENGTHS, 300)
SIZES = range(64, 513, 32)
# As lazy rows have them: two entries of each column.
EVERY_ENTRY_TWICE = Ellpack.from_csr(random_csr([6, 6, 6], 9))
EVERY_ENTRY_TWICE.columns[3:] = EVERY_ENTRY_TWICE.columns[:3]


@pytest.mark.parametrize("coop", effort.first([4, 1, 2, 8, 16, 32]))
def test_rows_of_all_lengths(coop):
    for repeat, size in enumerate(SIZES, start=1):
        run(csr_program(MIXED, CsrThreads(size, coop, repeat)), MIXED)
    run(csr_program(MIXED, CsrThreads(64, coop, 64)), MIXED)


@pytest.mark.long
@pytest.mark.parametrize("coop", [1, 2, 4, 8, 16, 32])
def test_every_size_of_blocks_and_groups(coop):
    matrix = random_csr(LENGTHS[:70], 300)
    for size in SIZES:
        for repeat in range(1, 65):
            run(csr_program(matrix, CsrThreads(size, coop, repeat)), matrix)


@pytest.mark.parametrize(
    "lengths", [[3], [0, 0], []], ids=["one row", "empty rows", "no rows"]
)
def test_few_rows(lengths):
    matrix = random_csr(lengths, 4)
    run(csr_program(matrix), matrix)


@pytest.mark.parametrize("dtype", ["f4", "i4", "i8"])
@pytest.mark.slow
def test_other_types(dtype):
    matrix = random_csr(LENGTHS, 300, dtype)
    run(csr_program(matrix, CsrThreads(64, 8, 2)), matrix, dtype)


def test_threads_that_leave_before_a_sum_are_found():
    program = csr_program(MIXED, CsrThreads(64, 4, 1))
    early = program.text.replace("double sum = 0;", "double sum = 0;\n    if (!own) break;")
    with pytest.raises(CheckError, match="divergent barrier"):
        run(replace(program, text=early), MIXED)


def test_two_threads_that_write_one_row_are_found():
    program = csr_program(MIXED, CsrThreads(64, 4, 1))
    both = program.text.replace("lane == 0", "lane < 2")
    with pytest.raises(CheckError, match="race inside a block"):
        run(replace(program, text=both), MIXED)


def test_a_sum_in_a_warp_is_no_barrier():
    """What one thread writes before a sum, another must not read after it."""
    program = csr_program(MIXED, CsrThreads(64, 2, 1))
    read_back = program.text.replace(
        "if (own && lane == 0) s1[i] = sum;",
        """if (own && lane == 0) s1[i] = sum;
    {
      double other;
      MP_SHUFFLE_DOWN(other, sum, 1);
      if (own && lane == 1) sum = s1[i] + other;
    }""",
    )
    with pytest.raises(CheckError, match="race inside a block"):
        run(replace(program, text=read_back), MIXED)


@pytest.mark.parametrize("dtype", ["f8", "i4"])
def test_rows_of_one_length(dtype):
    matrix = Ellpack.from_csr(random_csr(LENGTHS, 300, dtype))
    run(ellpack_program(matrix), matrix, dtype)
    run(ellpack_program(EVERY_ENTRY_TWICE), EVERY_ENTRY_TWICE)


def launch(program, matrix, device):
    """Queue a product on a device, and compare."""
    x = vector(matrix.shape[1])
    given = {"x": device.array(x), "y": device.array(np.full(matrix.shape[0], 77.0))}
    if len(program.slots) > 2:
        given["values"] = device.array(matrix.values.reshape(-1))
    Launcher(program, device)(DeviceBinder(program.loop, program.slots)(given, device))
    np.testing.assert_array_equal(given["y"].get(), exact(matrix, x))


@pytest.mark.gpu
def test_on_a_gpu(gpu, cells):
    """Every store."""
    plan, dofs = cells
    padded = Ellpack.from_csr(MIXED)
    stores = {
        csr_program(MIXED): MIXED,
        ellpack_program(padded): padded,
        **{
            local_program(made, plan): made
            for made in (local(dofs, 151, symmetric=s) for s in (False, True))
        },
    }
    for program, matrix in stores.items():
        launch(program, matrix, gpu)


def strip(cells, n):
    """Cells in a row: each shares n - 1 dofs with its neighbours."""
    return np.arange(cells)[:, None] + np.arange(n)


@pytest.fixture(scope="module")
def cells(slow):
    """A plan of cells with four dofs each, in blocks of 32, and constrained dofs."""
    dofs = strip(150, 4)
    args = (Arg("r", Access.INC, 1, "f8", "cells->dofs", (0, 1, 2, 3)),)
    loop = Loop("add", "cells", args)
    plan = slow.plan({"cells": 150, "dofs": 153}, {"cells->dofs": dofs}, [loop], (32,))
    row = np.arange(153) - 1
    row[-1] = -1
    return plan["add"], row[dofs]


@pytest.mark.parametrize("symmetric", [False, True])
def test_matrices_of_elements(cells, symmetric):
    plan, dofs = cells
    matrix = local(dofs, 151, symmetric=symmetric)
    run(local_program(matrix, plan), matrix)


def test_colours_that_do_not_fit_the_dofs_are_refused(cells):
    plan, dofs = cells
    with pytest.raises(MeshprepError, match="blocks of colour 0 have a dof in common"):
        local_program(local(dofs * 0, 1), plan)
    with pytest.raises(MeshprepError, match="has 150 elements, the matrix 149"):
        local_program(local(dofs[1:], 151), plan)


def test_equal_thread_colours_are_found(cells):
    plan, dofs = cells
    program = local_program(local(dofs, 151), plan)
    one = program.then[0]
    flat = {**one.arrays, "thread_colour": one.arrays["thread_colour"] * 0}
    with pytest.raises(CheckError, match="race inside a block"):
        run(replace(program, then=(replace(one, arrays=flat),)), local(dofs, 151))


def test_on_a_device(device, cells):
    """Queued as a loop is, on what stands for a GPU."""
    plan, dofs = cells
    for matrix, program in (
        (local(dofs, 151), local_program(local(dofs, 151), plan)),
        (MIXED, csr_program(MIXED)),
    ):
        launch(program, matrix, device)


@pytest.mark.parametrize("arch", [pytest.param("sm_80", marks=pytest.mark.long), "sm_90"])
def test_registers(compiled, cells, arch):
    plan, dofs = cells
    made = [csr_program(MIXED, CsrThreads(128, coop, 1)) for coop in (1, 8, 32)]
    made += [
        local_program(local(dofs, 151, symmetric=s), plan).then[0] for s in (False, True)
    ]
    for program in made:
        code = compiled(program, arch)
        assert code.spilled == 0
        assert code.registers <= 64
