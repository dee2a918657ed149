"""Every format that is written: an exact round trip, or a loss with a name; nothing in between."""

import h5py
import numpy as np
import pytest
from io_meshes import DECORATIONS, decorated, plain_meshes

from meshprep import io
from meshprep.io.compare import difference
from meshprep.io.format.reduce import flattened
from meshprep.mesh import Dat
from meshprep_runtime.errors import MeshprepError

OTHERS = [
    n for n, f in io.FORMATS.items() if f.write is not None and f.cells and n != "gmsh"
]
ENDINGS = [(n, io.FORMATS[n].extensions[0]) for n in OTHERS] + [("medit", ".meshb")]
# What each format carries exactly, of the meshes and decorations in io_meshes.
EXACT = {
    "vtu": ("tets, skin, edges", "hexahedron27", "wedge15"),
    "vtk": ("tets, skin, edges", "hexahedron27", "wedge15"),
    "xdmf": ("triangles", "with border", "mixed solid"),
    "medit": ("with border", "tets with skin", "mixed solid, turned"),
    "su2": ("triangles", "mixed plane, turned", "mixed solid"),
    "exodus": ("triangles", "mixed plane", "hexahedron20"),
    "cgns": ("tets, skin, edges", "pyramid13", "hexahedron27"),
    "abaqus": ("with border", "tets with skin", "wedge15"),
    "nastran": ("surface", "tets with skin", "mixed solid"),
    "med": ("triangles", "tets, skin, edges", "pyramid13"),
}


def attempt(mesh, path, name, drop):
    """Write with the proof on, or return the named refusal."""
    try:
        return io.write(mesh, path, format=name, drop=drop, overwrite=True)
    except MeshprepError as error:
        text = str(error)
        assert "does not keep" not in text, text
        assert "written without" in text or "use another format" in text, text
        return None


@pytest.mark.usefixtures("read_here")
@pytest.mark.parametrize(("name", "ending"), ENDINGS)
def test_plain_meshes_are_exact_or_refused(name, ending, tmp_path):
    for kind, mesh in plain_meshes().items():
        path = tmp_path / f"mesh{ending}"
        lost = attempt(mesh, path, name, drop=False)
        if lost is not None:
            back = io.read(path, format=name)
            assert difference(mesh, back, digits=io.FORMATS[name].digits) is None, kind


@pytest.mark.usefixtures("read_here")
@pytest.mark.parametrize(("name", "ending"), ENDINGS)
@pytest.mark.parametrize("what", DECORATIONS)
def test_what_is_on_a_mesh_is_exact_or_named(name, ending, what, tmp_path):
    path = tmp_path / f"mesh{ending}"
    for kind in ("triangles", "with border", "tets, skin, edges", "mixed solid", "tets"):
        mesh = decorated(plain_meshes()[kind], what)
        lost = attempt(mesh, path, name, drop=False)
        exact = lost is not None
        if not exact:
            lost = attempt(mesh, path, name, drop=True)
        if lost is not None:
            back = io.read(path)
            assert bool(lost) != exact
            assert back.content_hash() == mesh.content_hash()
            assert np.allclose(back.coordinates[:, :2], mesh.coordinates[:, :2], 1e-9, 0)
            if exact and name not in OWN_TAG_NAME:
                assert difference(mesh, back, digits=io.FORMATS[name].digits) is None


# Formats that give their one group number a name of their own.
OWN_TAG_NAME = ("su2", "medit", "nastran", "med", "exodus", "cgns")


@pytest.mark.parametrize("name", EXACT)
def test_what_a_format_carries(name, tmp_path):
    ending = io.FORMATS[name].extensions[0]
    for kind in EXACT[name]:
        path = tmp_path / f"{len(kind)}{kind[:3]}{ending}"
        for drop in (False, True):
            assert io.write(plain_meshes()[kind], path, drop=drop, overwrite=True) == []


def test_every_written_format_is_in_the_list_above():
    assert set(EXACT) == set(OTHERS)


@pytest.mark.parametrize("ending", ["vtu", "vtk", "xdmf"])
def test_visualisation_formats_keep_values_exactly(ending, tmp_path):
    mesh = plain_meshes()["tets"]
    r = np.random.default_rng(1)
    dats = [Dat("u", "nodes", r.random((mesh.size("nodes"), 3)) * 1e-7)]
    dats.append(Dat("rank", "cells", np.arange(mesh.size("cells"), dtype="i4")))
    mesh = mesh.with_(dats=dats)
    path = tmp_path / f"a.{ending}"
    assert io.write(mesh, path) == []
    back = io.read(path)
    for dat in dats:
        found = back.dat(dat.name, dat.set)
        assert found is not None
        assert np.array_equal(found.values, dat.values)
        assert found.values.dtype.kind == dat.values.dtype.kind


@pytest.mark.parametrize("ending", ["vtu", "vtk", "xdmf"])
def test_groups_come_back_as_groups(ending, tmp_path):
    mesh = decorated(plain_meshes()["with border"], "two tags")
    io.write(mesh, tmp_path / f"a.{ending}")
    back = io.read(tmp_path / f"a.{ending}")
    assert {(t.name, t.set) for t in back.tags} == {(t.name, t.set) for t in mesh.tags}
    assert back.tag("zone of mine", "line").first_ids().tolist() == [1, 2, 3, 4]


def test_med_keeps_names_of_families(tmp_path):
    mesh = decorated(plain_meshes()["tets"], "named groups")
    assert io.write(mesh, tmp_path / "a.med") == []
    back = io.read(tmp_path / "a.med")
    tag = back.tag("cell_tags", "cells")
    assert dict(tag.names) == {5: "wall of tetra", 9: "in tetra"}
    assert tag.first_ids().tolist() == [9, 5, 9, 5, 9]


def test_med_gives_the_groups_of_no_type_to_another(tmp_path):
    mesh = decorated(plain_meshes()["with border"], "groups")
    io.write(mesh, tmp_path / "a.med", drop=True)
    with h5py.File(tmp_path / "a.med", "a") as file:
        cells = next(iter(file["ENS_MAA/mesh"].values()))["MAI"]
        assert (cells["TR3/FAM"][()] <= 0).all()
        del cells["QU4/FAM"]
        del file["FAS/mesh/ELEME/group 1/GRO"]
    back = io.read(tmp_path / "a.med")
    assert back.tag("cell_tags", "quad") is None
    assert back.tag("cell_tags", "triangle").first_ids().tolist() == [0, 1, 2, 0]


def test_med_values_on_one_type_of_cells(tmp_path):
    mesh = plain_meshes()["mixed plane, turned"]
    mesh = mesh.with_(
        dats=[Dat("q", s.name, np.arange(s.size) + 0.5) for s in mesh.cell_sets]
    )
    io.write(mesh, tmp_path / "a.med")
    with h5py.File(tmp_path / "a.med", "a") as file:
        step = next(iter(file["CHA/q"].values()))
        del step["MAI.QU4"]
    back = io.read(tmp_path / "a.med")
    assert back.dat("q", "quad") is None
    assert back.dat("q", "triangle").values.tolist() == [0.5, 1.5, 2.5, 3.5]


def test_med_drops_names_of_which_one_number_has_two(tmp_path):
    mesh = decorated(plain_meshes()["with border"], "named groups")
    with pytest.raises(MeshprepError, match="the name 'wall of line' of a group"):
        io.write(mesh, tmp_path / "a.med")
    assert io.write(mesh, tmp_path / "a.med", drop=True)


def test_abaqus_keeps_sets(tmp_path):
    mesh = decorated(plain_meshes()["tets"], "lists")
    lost = io.write(mesh, tmp_path / "a.inp", drop=True)
    assert lost == ["the list 'pairs' of 'nodes'"]
    back = io.read(tmp_path / "a.inp")
    lists = {i.name: (i.set, i.index.tolist(), i.attrs["kind"]) for i in back.lists}
    assert lists == {
        "fixed": ("nodes", [3, 1, 2], "point_set"),
        "few": ("cells", [4], "cell_set"),
    }


def test_a_plane_mesh_in_three_coordinates_can_go_to_su2(tmp_path):
    mesh = plain_meshes()["triangles"]
    io.write(mesh, tmp_path / "a.vtu")
    lifted = io.read(tmp_path / "a.vtu")
    assert lifted.coordinates.shape == (9, 3)
    assert flattened(lifted).coordinates.shape == (9, 2)
    assert io.write(lifted, tmp_path / "a.su2") == []
    assert io.read(tmp_path / "a.su2").coordinates.shape == (9, 2)


def test_other_formats_are_left_to_meshio(tmp_path):
    path = tmp_path / "a.ply"
    with pytest.raises(MeshprepError, match=r"a.ply: cannot tell .* to meshio convert"):
        io.write(plain_meshes()["triangles"], path)
    path.write_text("x")
    with pytest.raises(MeshprepError, match=r"a.ply: cannot tell .* to meshio convert"):
        io.read(path)
