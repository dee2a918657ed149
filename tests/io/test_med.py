"""MED: what a file says of its fields, numbers of nodes and cells, and polygons."""

import h5py
import meshio
import numpy as np
import other_readers
import pytest
from io_meshes import plain_meshes
from texts import refusal

from meshprep import io
from meshprep.mesh import Dat, Mesh, Tag
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.ordering import Ordering

pytestmark = pytest.mark.usefixtures("read_here")

NAMES = np.bytes_("".join(name.ljust(16) for name in ("VX", "VY", "VZ")))


@pytest.fixture
def path(tmp_path):
    """Five tetrahedra, a vector on the nodes and a number on the cells."""
    mesh = plain_meshes()["tets"]
    n = mesh.size("nodes")
    dats = [
        Dat("u", "nodes", np.arange(3.0 * n).reshape(n, 3)),
        Dat("q", "cells", np.arange(5.0)),
    ]
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
        numbers = step_of(file)["MAI/TE4/NUM"]
        assert numbers[()].tolist() == [1, 3, 5, 7, 9]
        # As MED's library writes them.
        assert dict(numbers.attrs) == {"CGT": 1, "NBR": 5}


def test_fields_that_the_mesh_has_no_more_are_left_out(path, tmp_path):
    mesh = io.read(path)
    kept = [d for d in mesh.dats if d.name != "q"]
    mesh = Mesh(mesh.sets.values(), mesh.maps.values(), kept, mesh.tags, extras=mesh.extras)
    io.write(mesh, tmp_path / "b.med")
    with h5py.File(tmp_path / "b.med") as file:
        assert list(file["CHA"]) == ["u"]


def test_what_is_not_read_is_said(path):
    with h5py.File(path, "a") as file:
        step_of(file)["MAI/TE4/NUM"] = np.array([9, 7, 5, 3, 9])
        field = file["CHA/q"]
        file.copy(
            field[next(iter(field))], field, "0000000000000000000200000000000000000001"
        )
    assert io.read(path).extras["unread"] == (
        "the steps of 'q'",
        "the numbers of the cells",
    )


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("EQS/mesh/per/-1/NOE/COR", "equivalences, such as pairs of nodes of periodic"),
        (
            "JNT/mesh/to 2/-1/NOE.NOE/COR",
            "joints, which are pairs of nodes or cells of two",
        ),
        ("NUM_DATA/inertia/x", "numerical parameters"),
        ("GAUSS/rule/COO", "places of values inside cells"),
        ("PROFILS/unused/PFL", "profiles"),
        ("FAS/mesh/ELEME/group 7/ATT/IDE", "'FAS/mesh/ELEME/group 7/ATT'"),
        ("ENS_MAA/mesh/{step}/NOE/GLB", "'ENS_MAA/mesh/{step}/NOE/GLB'"),
        ("ENS_MAA/mesh/{step}/MAI/TE4/NOM", "'ENS_MAA/mesh/{step}/MAI/TE4/NOM'"),
        ("own data/x", "'own data'"),
    ],
)
def test_whatever_nothing_looks_at_is_named(path, place, said):
    """Pairs of nodes of a periodic boundary were gone without a word."""
    with_groups(path, b"wall")
    with h5py.File(path, "a") as file:
        step = next(iter(file["ENS_MAA/mesh"]))
        file["FAS/mesh/ELEME"].move("FAM_-3", "group 7")
        file[place.format(step=step)] = np.array([1, 5, 6, 10])
    (told,) = io.read(path).extras["unread"]
    assert told.startswith(said.format(step=step))
    with pytest.raises(MeshprepError, match="not read"):
        io.write(io.read(path), path.with_name("b.med"))


def test_the_kind_of_the_coordinates_is_kept(path):
    """Those of a cylinder became Cartesian ones."""
    with h5py.File(path, "a") as file:
        file["ENS_MAA/mesh"].attrs["REP"] = 1
    with turned(path) as file:
        assert file["ENS_MAA/mesh"].attrs["REP"] == 1


@pytest.mark.parametrize("kind", ["external", "soft"])
def test_links_are_refused(path, kind):
    """A link into another file was followed."""
    with h5py.File(path, "a") as file, h5py.File(path.with_name("b.med"), "w") as other:
        file.copy("FAS", other)
        del file["FAS"]
        other_place = h5py.ExternalLink("b.med", "/FAS")
        file["FAS"] = other_place if kind == "external" else h5py.SoftLink("/CHA")
    refusal(path, "'/FAS' is a link to another place or file: put what is there into this")


def test_polygons_are_refused(path):
    with h5py.File(path, "a") as file:
        step_of(file)["MAI/POG/NOD"] = [1, 2, 3, 4, 5]
    refusal(path, "cells of MED's type 'POG', which are not supported")


def put_on_profile(file, field, support, chosen, values):
    """Give a field values on these alone, counted from 1, as MED's library does."""
    group = next(iter(file[f"CHA/{field}"].values()))[support]
    whole = group["MED_NO_PROFILE_INTERNAL"]
    file[f"PROFILS/{field} part/PFL"] = np.array(chosen)
    file[f"PROFILS/{field} part"].attrs["NBR"] = len(chosen)
    group.attrs["PFL"] = np.bytes_(f"{field} part")
    part = group.create_group(f"{field} part")
    for key, value in whole.attrs.items():
        part.attrs[key] = len(chosen) if key == "NBR" else value
    part["CO"] = np.asarray(values).ravel(order="F")
    del group["MED_NO_PROFILE_INTERNAL"]


def test_values_on_a_profile_come_to_their_nodes_and_cells(path):
    with h5py.File(path, "a") as file:
        put_on_profile(file, "u", "NOE", [13, 2], [[1.0, 2, 3], [4, 5, 6]])
        put_on_profile(file, "q", "MAI.TE4", [5, 1, 2], [7.0, 8, 9])
    mesh = io.read(path)
    u = np.full((13, 3), np.nan)
    u[12], u[1] = (1, 2, 3), (4, 5, 6)
    np.testing.assert_array_equal(mesh.dat("u", "nodes").values, u)
    np.testing.assert_array_equal(mesh.dat("q", "cells").values, [8, 9, np.nan, np.nan, 7])
    with turned(path) as file:
        step = next(iter(file["CHA/q"].values()))
        assert step["MAI.TE4"].attrs["PFL"] == b"MED_NO_PROFILE_INTERNAL"
        found = step["MAI.TE4/MED_NO_PROFILE_INTERNAL/CO"][()]
        np.testing.assert_array_equal(found, [7, np.nan, np.nan, 9, 8])


@pytest.mark.parametrize("wrong", [0, 6])
def test_a_profile_of_other_cells_is_refused(path, wrong):
    with h5py.File(path, "a") as file:
        put_on_profile(file, "q", "MAI.TE4", [1, wrong], [7.0, 8])
    refusal(path, f"'q part' names number {wrong} of 1 to 5: correct")


def test_values_of_cells_beside_those_at_their_nodes_are_told(path):
    with h5py.File(path, "a") as file:
        step = next(iter(file["CHA/q"].values()))
        file.copy(step["MAI.TE4"], step, "NOE.TE4")
    assert io.read(path).extras["unread"] == (
        "values 'q' of cells, beside those at their nodes",
    )


def test_the_mesh_keeps_its_name_and_what_is_said_of_it(path):
    with h5py.File(path, "a") as file:
        file["ENS_MAA/mesh"].attrs["DES"] = np.bytes_("an intake")
        file["ENS_MAA/mesh"].attrs["UNI"] = np.bytes_("mm".ljust(16) * 3)
        for root in ("ENS_MAA", "FAS"):
            file.move(f"{root}/mesh", f"{root}/Conduit d'air")
        for field in file["CHA"].values():
            field.attrs["MAI"] = np.bytes_("Conduit d'air")
    with turned(path) as file:
        assert list(file["ENS_MAA"]) == list(file["FAS"]) == ["Conduit d'air"]
        assert file["ENS_MAA/Conduit d'air"].attrs["DES"] == b"an intake"
        assert file["ENS_MAA/Conduit d'air"].attrs["UNI"].split() == [b"mm"] * 3
        assert {field.attrs["MAI"] for field in file["CHA"].values()} == {b"Conduit d'air"}


def with_groups(path, *names):
    """The file with the cells in a family of these groups."""
    with h5py.File(path, "a") as file:
        step_of(file)["MAI/TE4/FAM"][:] = -3
        family = file.require_group("FAS/mesh/ELEME/FAM_-3")
        family.attrs["NUM"] = -3
        rows = [np.frombuffer(n.ljust(80, b"\0"), np.int8) for n in names]
        group = family.create_group("GRO")
        group.attrs["NBR"] = len(names)
        group.create_dataset("NOM", (len(names),), dtype="80int8")[:] = rows


def test_groups_keep_names_of_every_kind(path):
    names = ["Entrée n°1".encode(), b"a/b,c", b"x" * 80]
    with_groups(path, *names)
    with turned(path) as file:
        (family,) = file["FAS/mesh/ELEME"].values()
        assert [bytes(row).rstrip(b"\0") for row in family["GRO/NOM"][()]] == names


def test_a_group_whose_name_reads_as_two_is_refused(path, tmp_path):
    with_groups(path, b"left, right")
    refusal(path, "group 'left, right', whose name reads as those of")
    mesh = plain_meshes()["tets"]
    tag = Tag.from_ids(
        "physical", "cells", np.array([1, 1, 2, 2, 2]), {1: "left, right", 2: "in"}
    )
    with pytest.raises(MeshprepError, match="the name 'left, right' of a group"):
        io.write(mesh.with_(tags=[tag]), tmp_path / "b.med")


def test_families_of_the_same_groups_are_one_group(path):
    """Gmsh and Salome write a family for each part of the geometry."""
    with_groups(path, b"wall")
    with h5py.File(path, "a") as file:
        step_of(file)["MAI/TE4/FAM"][:3] = -4, -4, -5
        for number in (-4, -5):
            file.copy("FAS/mesh/ELEME/FAM_-3", file["FAS/mesh/ELEME"], f"FAM_{number}")
            file[f"FAS/mesh/ELEME/FAM_{number}"].attrs["NUM"] = number
        del file["FAS/mesh/ELEME/FAM_-5/GRO"]
    tag = io.read(path).tag("cell_tags", "cells")
    assert tag.first_ids().tolist() == [3, 3, 5, 3, 3]
    assert dict(tag.names) == {3: "wall"}
    with turned(path) as file:
        assert step_of(file)["MAI/TE4/FAM"][()].tolist() == [-3, -3, -5, -3, -3]
        families = {
            int(f.attrs["NUM"]): len(f["GRO/NOM"]) for f in file["FAS/mesh/ELEME"].values()
        }
        assert families == {-3: 1, -5: 0}


def test_gmsh_sees_the_groups_of_a_med_file_by_name(path, tmp_path):
    """It takes the minus of a group for a side, and finds no name then."""
    gmsh = other_readers.package("gmsh")
    with_groups(path, b"wall")
    io.write(io.read(path), tmp_path / "b.msh")
    gmsh.initialize()
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        gmsh.open(str(tmp_path / "b.msh"))
        groups = gmsh.model.getPhysicalGroups()
        assert [(*g, gmsh.model.getPhysicalName(*g)) for g in groups] == [(3, 3, "wall")]
    finally:
        gmsh.finalize()


def test_a_group_without_cells_is_told(path):
    with_groups(path, b"wall")
    with h5py.File(path, "a") as file:
        file.copy("FAS/mesh/ELEME/FAM_-3", file["FAS/mesh/ELEME"], "FAM_-4")
        empty = file["FAS/mesh/ELEME/FAM_-4"]
        empty.attrs["NUM"] = -4
        empty["GRO/NOM"][0] = np.frombuffer(b"outlet".ljust(80, b"\0"), np.int8)
    assert io.read(path).extras["unread"] == ("group 'outlet' without cells",)


@pytest.mark.parametrize("name", ["u.x", ".x", "p [bar] é", "x" * 64])
def test_names_of_fields(path, name):
    mesh = io.read(path)
    n = mesh.size("nodes")
    dats = [Dat(name, "nodes", np.arange(n) + 0.5), Dat(name, "cells", np.arange(5) + 0.5)]
    new = path.with_name("b.med")
    assert io.write(mesh.with_(dats=dats), new) == []
    for place in ("nodes", "cells"):
        values = io.read(new).dat(name, place).values
        assert values.tolist() == (np.arange(mesh.size(place)) + 0.5).tolist()


@pytest.mark.parametrize("name", [".", "..", "a/b", "x" * 65])
def test_names_that_med_has_no_place_for(path, name):
    mesh = io.read(path)
    more = mesh.with_(dats=[Dat(name, "cells", np.arange(5) + 0.5)])
    with pytest.raises(MeshprepError, match="names of this form are not written"):
        io.write(more, path.with_name("b.med"))


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


def as_in_med_2(path):
    """Give a file the layout of MED 2: no steps, names of groups one behind the other."""
    with h5py.File(path, "a") as file:
        mesh = file["ENS_MAA/mesh"]
        step = next(iter(mesh))
        for key in [*mesh[step]]:
            file.move(f"ENS_MAA/mesh/{step}/{key}", f"ENS_MAA/mesh/{key}")
        del mesh[step]
        del mesh.attrs["ESP"]
        file.move("FAS/mesh", "ENS_MAA/mesh/FAS")
        for family in mesh["FAS/ELEME"].values():
            letters = family["GRO/NOM"][()].tobytes() + b"\0"
            del family["GRO/NOM"]
            family["GRO/NOM"] = np.frombuffer(letters, "S1")
        for field in file["CHA"].values():
            step = next(iter(field))
            for support in [*field[step]]:
                field.move(f"{step}/{support}", f"{support}/{step}/mesh")
            del field[step]


def test_a_mesh_of_med_2_is_read_with_its_groups(path):
    mesh = io.read(path)
    names = {1: "steel", 2: "copper, thin"}
    groups = Tag.from_ids("cell_tags", "cells", np.array([1, 1, 2, 2, 0]), names)
    io.write(mesh.with_(tags=[groups]), path, overwrite=True)
    as_in_med_2(path)
    found = io.read(path)
    assert found.coordinates.tolist() == mesh.coordinates.tolist()
    assert (
        found.map("cells->nodes").table.tolist() == mesh.map("cells->nodes").table.tolist()
    )
    tag = found.tag("cell_tags", "cells")
    assert tag.first_ids().tolist() == [1, 1, 2, 2, 0]
    assert tag.names == names
    assert found.extras["unread"] == (
        "values 'q', which stand as in MED 2",
        "values 'u', which stand as in MED 2",
    )
