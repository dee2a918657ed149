"""Bytes of assembly and products against counting."""

import numpy as np
from matrix_loops import stiffness

import poisson
from meshprep.io.generate import generate
from meshprep.metrics.product_traffic import store_bytes
from meshprep.pipeline.steps import Options, prepare
from meshprep_runtime.matrix import Ellpack, LocalMatrices
from meshprep_runtime.plan.matrices import MatrixPlan


def test_bytes_of_each_store_are_those_of_its_arrays():
    problem = poisson.integrate(poisson.square(6, 2))
    csr, local = problem.csr(), problem.local()
    cells, n = local.dofs.shape
    # the middle of four elements of nine dofs has the longest row
    lazy = np.zeros((4 * 9, csr.shape[0]))
    stores = {
        "csr": csr,
        "ellpack": Ellpack.from_csr(csr),
        "lazy-ellpack": Ellpack(lazy.astype(np.int32), lazy),
        "local": local,
        "local, half": LocalMatrices(
            np.zeros((cells, n * (n + 1) // 2)), local.dofs, True, local.n_rows
        ),
    }
    row = problem.square.row
    number = csr.to_scipy().astype(np.int32)
    number.data = np.arange(1, number.nnz + 1, dtype=np.int32)
    number = np.pad(number.toarray(), (0, 1))  # behind the last row and column: none
    place = {
        "add": number[local.dofs[:, :, None], local.dofs[:, None]].reshape(cells, -1) - 1
    }
    row_ptr = csr.row_ptr.astype(np.int64)
    plan = MatrixPlan("K", "dofs", "dofs", row, row, row_ptr, csr.columns, place)
    found = store_bytes(plan)
    assert {one.store: one.stored for one in found} == {
        k: s.bytes for k, s in stores.items()
    }
    # x is read and y written; row_ptr has one entry more than rows
    nonzeros, rows = csr.values.size, csr.shape[0]
    assert found[0].product == nonzeros * 12 + rows * 20 + 4
    assert found[3].product - found[3].stored == 3 * 8 * csr.shape[0]


def test_an_assembly_moves_maps_places_and_nonzeros():
    mesh = generate("delaunay2d", cells=100, seed=0)
    plan = prepare(mesh, [stiffness(fixed="boundary")], Options(block_size=32)).plan
    loop, matrix = plan["stiffness"], plan.matrices["K"]
    moved = {one.store: one.assembly for one in store_bytes(matrix, 8, [loop])}
    place, nonzeros = matrix.place["stiffness"], matrix.columns.size
    # coordinates are read, nonzeros read and written, and the entries of the map and of the places
    table = plan.maps["cells->nodes"].table
    added = 16 * plan.sizes["nodes"] + 16 * nonzeros + 4 * (table.size + place.size)
    beyond = np.count_nonzero(place >= 0) - nonzeros
    assert beyond > 0
    assert moved == moved | {
        "csr": added,
        "ellpack": added,
        "lazy-ellpack": added + 16 * beyond,
    }
