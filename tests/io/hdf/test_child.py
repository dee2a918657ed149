"""Files that crash a C library, links and sizes that lie: one line, and the program lives on."""

import os
import subprocess
import sys
import textwrap

import h5py
import netCDF4
import numpy as np
import pytest

from meshprep import io
from meshprep.io.hdf import child, dump, load
from meshprep_runtime.errors import MeshprepError, MissingPackageError


def plate(path):
    """An Exodus file of one square."""
    with netCDF4.Dataset(path, "w") as file:
        file.title = "a plate"
        for name, size in {"num_dim": 2, "num_nodes": 4, "n": 1, "four": 4}.items():
            file.createDimension(name, size)
        file.createVariable("coordx", "f8", ("num_nodes",))[:] = [0, 1, 1, 0]
        file.createVariable("coordy", "f8", ("num_nodes",))[:] = [0, 0, 1, 1]
        made = file.createVariable("connect1", "i4", ("n", "four"))
        made.elem_type = "QUAD4"
        made[:] = [[1, 2, 3, 4]]
    return path


@pytest.fixture(params=["child", "here"])
def place(request, monkeypatch):
    """Where the file is read: in a process of its own, or in this one."""
    if request.param == "here":
        monkeypatch.setattr(sys, "executable", "")


def test_everything_in_a_file_comes_as_it_is(place, tmp_path):
    values = {
        "whole": np.arange(6, dtype=">i2").reshape(2, 3),
        "real": np.array([1.5, np.nan]),
        "text": np.array([b"ab", b"c"]),
        "none": np.zeros((0, 4)),
        "one": np.float32(2),
    }
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, one in values.items():
            file[f"group/{name}"] = one
        file.create_dataset("lists", (1,), h5py.vlen_dtype("i4"))
        file["group"].attrs["number"] = 7
        file["group"].attrs["words"] = "a name"
        file["group"].attrs["three"] = np.arange(3.0)
    root = load(tmp_path / "a.h5", "hdf5")
    for name, one in values.items():
        found = root["group"][name].values
        assert found.dtype == np.asarray(one).dtype
        np.testing.assert_array_equal(found, one)
    attributes = root["group"].attrs
    assert (attributes["number"], attributes["words"]) == (7, "a name")
    assert attributes["three"].tolist() == [0, 1, 2]
    assert [item.path for item in root.untouched()] == ["lists"]
    with pytest.raises(MeshprepError, match="'lists' is a dataset of another kind"):
        _ = root["lists"].values


def test_a_crash_of_a_library_is_one_line(tmp_path, monkeypatch):
    """A scale of a dimension that was damaged ended the program by SIGSEGV."""
    crash = tmp_path / "crash.py"
    crash.write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    monkeypatch.setattr(child.dump, "__file__", str(crash))
    said = (
        r"a\.e: the library that reads it crashed \(SIGSEGV\): the file is damaged, write"
    )
    with pytest.raises(MeshprepError, match=said):
        io.read(plate(tmp_path / "a.e"))


def test_a_process_that_ends_early_is_one_line(tmp_path, monkeypatch):
    ends = tmp_path / "ends.py"
    ends.write_text("import sys; sys.stdout.write('x' * 5); sys.exit(3)")
    monkeypatch.setattr(child.dump, "__file__", str(ends))
    with pytest.raises(MeshprepError, match=r"that reads it ended \(exit code 3\)"):
        io.read(plate(tmp_path / "a.e"))


def test_no_process_is_left(tmp_path, monkeypatch):
    """Other processes of this test run, as a resource tracker, are none of its business."""
    started = []

    class Noted(subprocess.Popen):
        def __init__(self, *args, **keywords):
            super().__init__(*args, **keywords)
            started.append(self)

    monkeypatch.setattr(child.subprocess, "Popen", Noted)
    io.read(plate(tmp_path / "a.e"))
    assert [process.returncode for process in started] == [0]
    with pytest.raises(ChildProcessError):
        os.waitpid(started[0].pid, os.WNOHANG)


def test_a_script_without_a_guard_reads_a_file(tmp_path):
    """The child neither runs the script again nor takes modules from the folder of the user."""
    plate(tmp_path / "a.e")
    (tmp_path / "json.py").write_text("raise SystemExit('the json of somebody else')")
    (tmp_path / "own").mkdir()
    script = tmp_path / "own" / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import meshprep
            print("once", meshprep.read("a.e").size("cells"))
            """
        )
    )
    command = [sys.executable, "-P", str(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["once 1"]


@pytest.mark.parametrize("ending", [".e", ".med", ".cgns"])
@pytest.mark.parametrize("kind", ["external", "soft", "raw", "virtual", "huge", "loop"])
def test_what_leads_out_of_a_file_or_never_ends_is_refused(place, ending, kind, tmp_path):
    path = tmp_path / f"a{ending}"
    layout = h5py.VirtualLayout((3,), "<f8")
    layout[:] = h5py.VirtualSource("other.h5", "x", shape=(3,))
    with h5py.File(path, "w") as file:
        file["group/x"] = np.arange(3.0)
        if kind == "external":
            file["more"] = h5py.ExternalLink("other.h5", "/x")
        elif kind == "soft":
            file["more"] = h5py.SoftLink("/more")
        elif kind == "raw":
            file.create_dataset("more", (9,), "u1", external=[("/etc/passwd", 0, 9)])
        elif kind == "virtual":
            file.create_virtual_dataset("more", layout)
        elif kind == "huge":
            file.create_dataset("more", (10**10,), "f8", chunks=(1 << 20,), compression=1)
        else:
            file["group/more"] = file["group"]
    said = {
        "external": "'/more' is a link to another place or file",
        "soft": "'/more' is a link to another place or file",
        "raw": "the values of 'more' are in other files",
        "virtual": "the values of 'more' are in other files",
        "huge": "'more' declares 80000000000 bytes that are not there",
        "loop": "the group 'group' stands in two places, or is linked into itself",
    }
    with pytest.raises(MeshprepError, match=said[kind]):
        io.read(path)


@pytest.mark.parametrize("ending", [".e", ".med", ".cgns"])
def test_a_small_file_of_nothing_that_unpacks_to_gigabytes_is_refused(ending, tmp_path):
    """A thousandth of its size, which HDF5 can give."""
    path, n = tmp_path / f"a{ending}", 12_000_000
    with h5py.File(path, "w") as file:
        file["group/x"] = np.arange(30.0)
        made = file.create_dataset(
            "group/more", (n,), "f8", chunks=(n // 4,), compression=9
        )
        for begin in range(0, n, n // 4):
            made[begin : begin + n // 4] = 0.0
        assert made.nbytes > 900 * made.id.get_storage_size()
    said = r"'group/more' and others unpack to 91 MiB from a file of \d+ bytes, more than a mesh"
    with pytest.raises(MeshprepError, match=said):
        io.read(path)


def test_zeros_of_as_many_elements_as_a_mesh_has_are_read(tmp_path):
    """Fields of nothing at many steps, beside the places of the nodes."""
    n, steps = 40_000, 300
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["places"] = np.random.default_rng(0).random((n, 3))
        made = file.create_dataset("field", (steps, n), "f8", chunks=(50, n), compression=9)
        for begin in range(0, steps, 50):
            made[begin : begin + 50] = 0.0
        assert made.nbytes > 900 * made.id.get_storage_size()
        assert made.nbytes > 1 << 26
    dump.check_hdf5(tmp_path / "a.h5")


@pytest.mark.parametrize("is_netcdf", [False, True])
def test_a_dimension_of_netcdf_has_any_size_where_netcdf_reads_it(tmp_path, is_netcdf):
    with netCDF4.Dataset(tmp_path / "a.e", "w") as file:
        file.createDimension("many", 10**9)
    if is_netcdf:
        dump.check_hdf5(tmp_path / "a.e", is_netcdf=True)
    else:
        with pytest.raises(MeshprepError, match="declares 4000000000 bytes that are not"):
            dump.check_hdf5(tmp_path / "a.e")


def test_a_package_that_is_not_there_is_named():
    tree = child._Tree()
    with pytest.raises(MissingPackageError, match="pip install netCDF4"):
        tree.take({"missing": "netCDF4.utils"}, None)


def test_a_link_out_of_the_file_beside_an_xdmf_file_is_refused(tmp_path):
    """h5py follows it without a word."""
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = np.eye(3)
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["x"] = h5py.ExternalLink("other.h5", "/x")
    points = '<DataItem Format="HDF" Dimensions="3 3">b.h5:/x</DataItem>'
    cells = '<DataItem Format="XML" DataType="Int" Dimensions="1 3">0 1 2</DataItem>'
    (tmp_path / "b.xdmf").write_text(
        '<Xdmf Version="3.0"><Domain><Grid>'
        f'<Geometry GeometryType="XYZ">{points}</Geometry>'
        f'<Topology TopologyType="Triangle" NumberOfElements="1">{cells}</Topology>'
        "</Grid></Domain></Xdmf>"
    )
    with pytest.raises(MeshprepError, match="leads into another file: copy what is there"):
        io.read(tmp_path / "b.xdmf")
