"""The front: paths, names of formats, losses, and files that appear whole or not at all."""

import os
import socket
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from io_meshes import decorated, plain_meshes

from meshprep import io
from meshprep.io import su2, vtk
from meshprep.io.gmsh.raw import Entity
from meshprep.mesh import Dat, ElementSet, Mesh, Tag
from meshprep_runtime.errors import MeshprepError


@pytest.fixture
def mesh() -> Mesh:
    return plain_meshes()["tets with skin"]


def test_importing_is_light():
    code = "import meshprep.io, sys; print([m for m in ('meshio', 'netCDF4') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def failing_read(path, **more) -> str:
    with pytest.raises(MeshprepError) as caught:
        io.read(path, **more)
    text = str(caught.value)
    assert text.count(str(path)) == 1
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text


def test_a_missing_file(tmp_path):
    assert "does not exist" in failing_read(tmp_path / "wing.vtu")


def test_a_directory(tmp_path):
    (tmp_path / "wing.vtu").mkdir()
    assert "is a directory" in failing_read(tmp_path / "wing.vtu")


def test_an_empty_file(tmp_path):
    (tmp_path / "wing.vtu").touch()
    assert "is empty" in failing_read(tmp_path / "wing.vtu")


def test_a_broken_link(tmp_path):
    (tmp_path / "wing.vtu").symlink_to(tmp_path / "gone.vtu")
    assert "is a broken link" in failing_read(tmp_path / "wing.vtu")


def test_a_pipe_a_socket_and_a_device_do_not_hang(tmp_path):
    os.mkfifo(tmp_path / "wing.su2")
    assert "no regular file" in failing_read(tmp_path / "wing.su2")
    (tmp_path / "zero.su2").symlink_to("/dev/zero")
    assert "no regular file" in failing_read(tmp_path / "zero.su2")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(tmp_path / "s.su2"))
        assert "no regular file" in failing_read(tmp_path / "s.su2")


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() == 0, reason="root may read everything"
)
def test_no_permission(tmp_path):
    path = tmp_path / "wing.su2"
    path.write_text("NDIME= 2\n")
    path.chmod(0)
    assert "no permission" in failing_read(path)


def test_an_unknown_ending(tmp_path):
    (tmp_path / "wing.docx").write_text("x")
    assert "cannot tell the format" in failing_read(tmp_path / "wing.docx")


def test_an_unknown_format_name(tmp_path):
    (tmp_path / "wing.su2").write_text("x")
    assert "format 'word' is unknown" in failing_read(tmp_path / "wing.su2", format="word")


def test_the_format_can_be_named(mesh, tmp_path):
    path = tmp_path / "wing.anything"
    io.write(mesh, path, format="vtu")
    assert io.read(path, format="vtu").content_hash() == mesh.content_hash()


def test_losses_are_named_and_nothing_is_written(mesh, tmp_path):
    rich = decorated(decorated(mesh, "floats"), "named groups")
    with pytest.raises(MeshprepError) as caught:
        io.write(rich, tmp_path / "a.mesh")
    text = str(caught.value)
    for what in ("values 'p' on 'nodes'", "values 'q' on 'cells'", "names of the groups"):
        assert what in text
    assert "--drop" in text
    assert list(tmp_path.iterdir()) == []


def test_values_of_other_sets_and_of_later_times_are_losses(mesh):
    """Edges are in no mesh file, and a file of one time has no place for a second one."""
    twice = [
        Dat("t", "nodes", np.zeros(mesh.size("nodes")), attrs={"step": i}) for i in range(2)
    ]
    rich = mesh.with_(
        sets=[ElementSet("edges", 2)],
        dats=[*twice, Dat("flux", "edges", np.zeros(2))],
        tags=[Tag.from_ids("wall", "edges", np.ones(2, np.int32))],
    )
    assert io.losses(rich, io.FORMATS["vtu"]) == [
        "more than one time step of 't' on 'nodes'",
        "values 'flux' on 'edges'",
        "groups 'wall' on 'edges'",
    ]


def test_drop_returns_what_was_dropped(mesh, tmp_path):
    lost = io.write(decorated(mesh, "floats"), tmp_path / "a.mesh", drop=True)
    assert len(lost) == 6
    assert lost[0] == "values 'p' on 'nodes' (one component each)"


def test_an_existing_file_is_kept_unless_overwritten(mesh, tmp_path):
    path = tmp_path / "a.vtu"
    path.write_text("mine")
    with pytest.raises(MeshprepError, match="exists already"):
        io.write(mesh, path)
    assert path.read_text() == "mine"
    io.write(mesh, path, overwrite=True)
    assert io.read(path).size("cells") == 5


def test_a_missing_folder(mesh, tmp_path):
    with pytest.raises(MeshprepError, match=r"folder .* does not exist"):
        io.write(mesh, tmp_path / "no" / "a.vtu")


@pytest.mark.parametrize(
    "ending", [".vtu", ".xdmf", ".med", ".e", ".su2", ".mesh", ".meshb"]
)
def test_one_file_and_nothing_else(ending, tmp_path):
    io.write(plain_meshes()["tets"], tmp_path / f"a{ending}")
    assert [p.name for p in tmp_path.iterdir()] == [f"a{ending}"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, OSError("disk full")])
def test_nothing_is_left_when_writing_fails(error, mesh, tmp_path, monkeypatch):
    def broken(mesh, path, **options):
        path.write_text("half")
        raise error

    monkeypatch.setattr(vtk, "VTU", replace(vtk.VTU, write=broken, guarded=False))
    (tmp_path / "a.vtu").write_text("old")
    expected = MeshprepError if isinstance(error, OSError) else error
    with pytest.raises(expected):
        io.write(mesh, tmp_path / "a.vtu", overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["a.vtu"]
    assert (tmp_path / "a.vtu").read_text() == "old"


def changed(mesh: Mesh, what: str) -> Mesh:
    maps, dats = list(mesh.maps.values()), list(mesh.dats)
    if what == "order":
        turned = type(maps[0])(
            maps[0].name, maps[0].from_set, maps[0].to_set, maps[0].table[::-1].copy()
        )
        maps[0] = turned
    if what == "coordinates":
        points = mesh.coordinates.copy()
        points[3, 2] = np.nextafter(points[3, 2], 9)
        dats = [type(dats[0])("coordinates", "nodes", points)]
    return Mesh(mesh.sets.values(), maps, dats)


@pytest.mark.parametrize(
    ("what", "message"),
    [("order", "cell 1 of set 'cells' changed its nodes"), ("coordinates", "node 4 moved")],
)
def test_a_writer_that_cheats_is_found_out(what, message, mesh, tmp_path, monkeypatch):
    write = vtk.VTU.write

    def cheat(mesh, path, **options):
        write(changed(mesh, what), path, **options)

    monkeypatch.setattr(vtk, "VTU", replace(vtk.VTU, write=cheat))
    with pytest.raises(MeshprepError, match=message):
        io.write(mesh, tmp_path / "a.vtu")
    assert list(tmp_path.iterdir()) == []
    io.write(mesh, tmp_path / "a.vtu", check=False)


def test_options_are_checked(mesh, tmp_path):
    with pytest.raises(MeshprepError, match="no option 'colour'"):
        io.write(mesh, tmp_path / "a.vtu", colour="red")


def test_writing_leaves_the_mesh_as_it_was(mesh, tmp_path):
    rich = decorated(decorated(mesh, "floats"), "lists")
    before = [d.values.copy() for d in rich.dats], [i.index.copy() for i in rich.lists]
    for name in ("vtu", "vtk", "med", "abaqus", "medit", "su2"):
        ending = io.FORMATS[name].extensions[0]
        io.write(rich, tmp_path / f"a{ending}", drop=True)
    for old, dat in zip(before[0], rich.dats, strict=True):
        assert np.array_equal(old, dat.values)
    for old, found in zip(before[1], rich.lists, strict=True):
        assert np.array_equal(old, found.index)


def test_nothing_is_printed(mesh, tmp_path, capfd):
    io.write(plain_meshes()["triangles"], tmp_path / "a.vtu")
    (tmp_path / "b.vtu").write_text("<VTKFile></VTKFile>")
    with pytest.raises(MeshprepError):
        io.read(tmp_path / "b.vtu")
    assert capfd.readouterr() == ("", "")


def test_su2_is_read_by_its_own_module():
    assert io.FORMATS["su2"].read is su2.read


def test_losses_are_those_of_the_version_that_is_written(mesh, tmp_path):
    extras = {"gmsh": {"version": "4.1", "entities": (Entity(3, 7, (0.0,) * 6),)}}
    full = Mesh(mesh.sets.values(), mesh.maps.values(), mesh.dats, mesh.tags, extras=extras)
    with pytest.raises(MeshprepError, match=r"written without .*of entities \(MSH 2.2\)"):
        io.write(full, tmp_path / "b.msh", version="2.2")
    assert not (tmp_path / "b.msh").exists()
    lost = io.write(full, tmp_path / "b.msh", version="2.2", drop=True)
    assert "boxes, boundaries and own groups of entities (MSH 2.2)" in lost
    assert io.write(full, tmp_path / "c.msh", version="4.1", binary=False) == []


def test_a_name_that_no_text_can_hold(mesh, tmp_path):
    ids = np.ones(mesh.size("triangle"), np.int64)
    named = mesh.with_(tags=[Tag.from_ids("su2:tag", "triangle", ids, {1: "a\ud800"})])
    with pytest.raises(
        MeshprepError, match=r"a.su2: no text holds the letter U\+D800 of a name"
    ):
        io.write(named, tmp_path / "a.su2")
