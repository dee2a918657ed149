"""MED: what a file says of its fields, numbers of nodes and cells, and polygons."""

import h5py
import meshio
import numpy as np
import pytest
from io_meshes import plain_meshes

from meshprep import io
from meshprep.mesh import Dat
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.ordering import Ordering

NAMES = np.bytes_("".join(name.ljust(16) for name in ("VX", "VY", "VZ")))


@pytest.fixture
def path(tmp_path):
    """Five tetrahedra, a vector on the nodes and a number on the cells."""
    mesh = plain_meshes()["tets"]
    n = mesh.size("nodes")
    dats = [Dat("u", "nodes", np.arange(3.0 * n).reshape(n, 3)), Dat("q", "cells", np.arange(5.0))]
    io.write(mesh.with_(dats=dats), tmp_path / "a.med")
    return tmp_path / "a.med"


def step_of(file):
    return next(iter(file["ENS_MAA/mesh"].values()))


def turned(path):
    """What is written of the file with its cells the other way round."""
    order = {"cells": Ordering.from_new_to_old(np.arange(5)[::-1])}
    new = path.with_name("b.med")
    assert io.write(io.read(path).renumber(order), new) == []
    return h5py.File(new)


def test_names_of_components_and_the_time_are_kept(path):
    """A file whose fields have unlike numbers of names could not be read."""
    with h5py.File(path, "a") as file:
        field = file["CHA/u"]
        field.attrs["NOM"], field.attrs["UNI"] = NAMES, np.bytes_("m/s".ljust(16) * 3)
        field[next(iter(field))].attrs["PDT"] = 2.5
        field.move(next(iter(field)), "0000000000000000000700000000000000000001")
    with turned(path) as file:
        assert file["CHA/u"].attrs["NOM"] == NAMES
        assert file["CHA/u"].attrs["UNI"].split() == [b"m/s"] * 3
        assert list(file["CHA/u"]) == ["0000000000000000000700000000000000000001"]
        assert next(iter(file["CHA/u"].values())).attrs["PDT"] == 2.5
        assert file["CHA/q"].attrs["NOM"].strip() == b""


def test_numbers_are_kept(path):
    with h5py.File(path, "a") as file:
        step_of(file)["NOE/NUM"] = np.arange(13)[::-1] + 4
        step_of(file)["MAI/TE4/NUM"] = np.array([9, 7, 5, 3, 1])
    assert io.read(path).dat("label", "cells").values.tolist() == [9, 7, 5, 3, 1]
    with turned(path) as file:
        assert step_of(file)["NOE/NUM"][()].tolist() == list(range(4, 17))[::-1]
        assert step_of(file)["MAI/TE4/NUM"][()].tolist() == [1, 3, 5, 7, 9]


def test_what_is_not_read_is_said(path):
    with h5py.File(path, "a") as file:
        step_of(file)["MAI/TE4/NUM"] = np.array([9, 7, 5, 3, 9])
        field = file["CHA/q"]
        file.copy(field[next(iter(field))], field, "0000000000000000000200000000000000000001")
    assert io.read(path).extras["unread"] == ("the steps of 'q'", "the numbers of the cells")


def test_polygons_are_refused(path):
    with h5py.File(path, "a") as file:
        step_of(file)["MAI/POG/NOD"] = [1, 2, 3, 4, 5]
    with pytest.raises(MeshprepError, match="cells of MED's type 'POG', which are not supported"):
        io.read(path)


@pytest.mark.parametrize(("kind", "n"), [("tetra", 4), ("hexahedron", 8)])
def test_values_at_the_nodes_of_cells_follow_the_nodes(tmp_path, kind, n):
    """MED has the nodes of these cells in an order of its own, and meshio leaves it as it is."""
    points = np.random.default_rng(0).random((n + 1, 3))
    cells = np.array([np.arange(n), np.arange(1, n + 1)])
    values = points[cells][:, :, :2]
    given = meshio.Mesh(points, [(kind, cells)], cell_data={"q": [values]})
    meshio.write(tmp_path / "a.med", given, file_format="med")
    made = io.read(tmp_path / "a.med")
    table = made.map("cells->nodes").table
    assert table.tolist() != cells.tolist()
    assert np.array_equal(made.dat("q", "cells").values, made.coordinates[table][:, :, :2])
