"""Which set each dataset of an OP2 file belongs to: found, asked for, or declared."""

from contextlib import nullcontext

import h5py
import numpy as np
import pytest
from op2_files import c_mesh, put_dat, put_map, shuffles, write_hdf5
from texts import refusal

from meshprep import io
from meshprep.io.op2.infer import check_fit
from meshprep.mesh import SetMap
from meshprep_runtime import MeshprepError, Ordering


def test_what_fits_several_sets_is_asked_for_and_can_be_declared(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        for name in ("cells", "points"):
            file[name] = np.array([4], "<i4")
        file["edges"] = np.array([5], "<i4")
        put_map(file, "link", [[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])
        put_dat(file, "q", np.arange(4.0)[:, None], "double")
        file["mystery"] = np.arange(4)
    with pytest.raises(MeshprepError) as error:
        io.read(path)
    assert "q (cells or points)" in str(error.value)
    assert "mystery (cells or points)" in str(error.value)
    assert "cells 4, edges 5, points 4" in str(error.value)
    assert "--sets 'link=edges->SET mystery=SET q=SET'" in str(error.value)
    mesh = io.read(path, sets={"link": "edges->points", "q": "points", "mystery": "none"})
    assert mesh.maps["edges->points"].table.shape == (5, 2)
    assert mesh.dat("q", "points").values.shape == (4, 1)
    assert mesh.dat("mystery", "points") is None
    for wrong, message in (
        (
            {"link": "edges->walls"},
            (
                "there is no set 'walls': choose cells, edges, points, or add its size as an array "
                "'walls' of one whole number"
            ),
        ),
        ({"lonk": "edges->cells"}, "there is no dataset 'lonk'"),
        (
            {"link": "cells->points", "q": "cells", "mystery": "none"},
            "has 5 rows, but set 'cells'",
        ),
    ):
        with pytest.raises(MeshprepError, match=message):
            io.read(path, sets=wrong)


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory):
    """OP2's Airfoil in an order in which sizes and ranges do not tell where pbedge leads."""
    folder = tmp_path_factory.mktemp("shuffled")
    sizes = write_hdf5(folder / "grid.h5", c_mesh(10, 8))
    io.write(io.read(folder / "grid.h5").renumber(shuffles(sizes)), folder / "new.h5")
    return folder / "new.h5"


def test_what_is_asked_for_holds_no_guess(shuffled):
    with pytest.raises(MeshprepError) as error:
        io.read(shuffled)
    assert "pbedge (bedges->edges or nodes)" in str(error.value)
    assert "bedges 56, cells 240, edges 452, nodes 279" in str(error.value)
    assert "--sets 'pbecell=bedges->SET pbedge=bedges->SET'" in str(error.value)
    right = io.read(shuffled, sets="pbecell=bedges->cells pbedge=bedges->nodes")
    assert right.maps["bedges->nodes"].arity == 2


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            "pbedge=bedges->edges",
            "declared as bedges->edges, but the other maps of 'bedges' say",
        ),
        ("pbedge=bedges->edges", "its rows hold nodes: declare bedges->nodes"),
        ("pbecell=bedges->edges", "its name says bedges->cells"),
        ("pecell=edges->nodes", "its name says edges->cells"),
        ("pedge=edges->edges", "its rows hold nodes: declare edges->nodes"),
    ],
)
def test_maps_that_are_not_what_they_are_declared_as(shuffled, wrong, said):
    right = ["pbecell=bedges->cells", "pbedge=bedges->nodes"]
    name = wrong.partition("=")[0]
    with pytest.raises(MeshprepError, match=said):
        io.read(shuffled, sets=[wrong, *(r for r in right if not r.startswith(f"{name}="))])


def test_names_of_other_programs_are_held_against_nobody(tmp_path, shuffled):
    path = tmp_path / "a.h5"
    with h5py.File(shuffled) as old, h5py.File(path, "w") as file:
        file["nodes"], file["edges"] = old["nodes"][()], old["edges"][()]
        file["wall_edges"] = old["pbedge"][()]
        file["cell"] = old["pcell"][()]
    mesh = io.read(path, sets={"wall_edges": "wall->nodes", "cell": "cells->nodes"})
    assert list(mesh.maps) == ["cells->nodes", "wall->nodes"]


def test_numbers_that_are_no_indices(tmp_path):
    path = tmp_path / "a.h5"
    flags = np.array([[0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 1]] * 40)
    with h5py.File(path, "w") as file:
        file["nodes"], file["cells"] = np.array([200], "<i4"), np.array([120], "<i4")
        file["flags"] = flags
        put_map(file, "corners", np.arange(480).reshape(120, 4) % 200)
    with pytest.raises(
        MeshprepError, match=r"flags.* 120 of its 120 rows hold an index twice"
    ):
        io.read(path, sets="flags=cells->nodes")
    # Collapsed quads are quads.
    corners = np.arange(480).reshape(120, 4) % 200
    corners[:50, 3] = corners[:50, 2]
    with h5py.File(path, "w") as file:
        file["nodes"], file["cells"] = np.array([200], "<i4"), np.array([120], "<i4")
        put_map(file, "corners", corners)
    assert io.read(path, sets="corners=cells->nodes").maps["cells->nodes"].arity == 4


def test_what_was_found_by_sizes_is_checked_too(tmp_path, shuffled):
    """The last node of the boundary happens to have the number of the last cell."""
    path = tmp_path / "a.h5"
    mesh = io.read(shuffled, sets="pbecell=bedges->cells pbedge=bedges->nodes")
    boundary = np.unique(mesh.maps["bedges->nodes"].table)
    inner = np.setdiff1d(np.arange(279), boundary)
    before = 240 - boundary.size
    new = np.concatenate([inner[:before], boundary, inner[before:]])
    order = {"nodes": Ordering.from_new_to_old(new)}
    io.write(mesh.renumber(order), path)
    with pytest.raises(
        MeshprepError, match=r"'pbedge' is taken for bedges->cells.*rows hold nodes"
    ):
        io.read(path, sets="pbecell=bedges->cells")


@pytest.mark.parametrize(
    "sets",
    [
        {"pbecell": "bedges->cells", "pbedge": "bedges->nodes"},
        ["pbecell=bedges->cells", "pbedge=bedges->nodes"],
        "pbecell=bedges->cells, pbedge=bedges->nodes",
    ],
)
def test_declarations_in_python_read_as_in_the_command(shuffled, sets):
    assert list(io.read(shuffled, sets=sets).maps)[:2] == ["bedges->cells", "bedges->nodes"]


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        ([3], "give a dict of name to set, or texts such as 'p_q=cells'"),
        (3, "give a dict of name to set"),
        (["pbecell="], "must read NAME=SET"),
        ({"pbecell": "a->b->c"}, "must read SET or SET->SET"),
    ],
)
def test_declarations_that_are_none(shuffled, sets, said):
    with pytest.raises(MeshprepError, match=said):
        io.read(shuffled, sets=sets)


def test_a_map_into_the_first_nodes_is_not_taken_for_one_into_its_own_set(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        for name, size in (("nodes", 9), ("walls", 4)):
            file[name] = np.array([size], "<i4")
        put_map(file, "ends", [[0, 1], [1, 2], [2, 3], [3, 0]])
    refusal(path, r"ends \(walls->nodes or walls\)")


@pytest.mark.parametrize(("twice", "refused"), [(60, False), (61, True)])
def test_a_map_most_of_whose_rows_hold_an_index_twice_is_refused(twice, refused):
    table = np.arange(240).reshape(120, 2)
    table[:twice, 1] = table[:twice, 0]
    ends = SetMap("ends", "edges", "nodes", table)
    with (
        pytest.raises(MeshprepError, match="61 of its 120 rows")
        if refused
        else nullcontext()
    ):
        check_fit({"ends": ends}, {"edges": 120, "nodes": 240}, {"ends": "edges->nodes"})


def test_a_map_is_not_looked_for_in_sets_that_are_too_small():
    """Index 9 is in no set of 9; the walls would all fit their cells by it."""
    walls = np.append(np.arange(7), 9)[:, None]
    maps = {
        "corner": SetMap("corner", "walls", "nodes", walls),
        "cell": SetMap("cell", "walls", "cells", walls),
        "sides": SetMap("sides", "faces", "cells", np.arange(9)[:, None]),
    }
    check_fit(maps, {"walls": 8, "nodes": 20, "cells": 20, "faces": 9}, {})


def test_files_without_a_zero_index_are_asked_about(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["nodes"], file["edges"] = np.array([9], "<i4"), np.array([2], "<i4")
        put_map(file, "ends", [[1, 2], [2, 5]])
    refusal(path, "--sets base=0")
    mesh = io.read(path, sets={"base": "1"})
    assert mesh.maps["edges->nodes"].table.tolist() == [[0, 1], [1, 4]]
    io.write(mesh, tmp_path / "b.h5")
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["ends"][()].tolist() == [[1, 2], [2, 5]]


def test_indices_past_32_bits_do_not_wrap(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["nodes"], file["edges"] = np.array([9], "<i4"), np.array([2], "<i4")
        put_map(file, "ends", [[1, 2], [2, 2**32 + 1]], "<i8")
    with pytest.raises(MeshprepError, match="edges->nodes' has an index past 2"):
        io.read(path, sets="ends=edges->nodes base=1")


def test_rows_of_variable_length_are_refused_or_stay(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["nodes"], file["edges"] = np.array([9], "<i4"), np.array([2], "<i4")
        put_map(file, "ends", [[0, 2], [2, 8]])
        file["names"] = np.array(["one", "other"], h5py.string_dtype())
    for sets, said in (
        ({}, "rows of variable length"),
        ({"names": "edges"}, "texts of any"),
    ):
        with pytest.raises(MeshprepError, match=f"'names' h.*{said}.*'names=none'"):
            io.read(path, sets=sets)
    io.write(io.read(path, sets="names=none"), tmp_path / "b.h5")
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["names"].asstr()[()].tolist() == ["one", "other"]


def test_maps_of_an_empty_set(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        for name, size in (("nodes", 9), ("edges", 4), ("walls", 0)):
            file[name] = np.array([size], "<i4")
        put_map(file, "ends", [[0, 1], [1, 2], [2, 8], [3, 0]])
        put_map(file, "sides", np.empty((0, 1), int))
        put_map(file, "corners", np.empty((0, 2), int))
    mesh = io.read(path, sets="sides=walls->edges corners=walls->nodes")
    assert mesh.maps["walls->nodes"].table.shape == (0, 2)


def test_small_integer_dats_are_no_maps(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["nodes"], file["edges"] = np.array([9], "<i4"), np.array([4], "<i4")
        put_map(file, "ends", [[0, 1], [1, 2], [2, 8], [3, 0]])
        put_dat(file, "bound", np.ones((4, 1), "<i4"), "int")
    mesh = io.read(path)
    assert list(mesh.maps) == ["edges->nodes"]
    assert mesh.dat("bound", "edges").values.tolist() == [[1]] * 4
