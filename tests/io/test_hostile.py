"""Files that would make meshio hang, exit, allocate without end, or err silently."""

import random
import signal
import sys
import time
import tracemalloc
from contextlib import suppress
from dataclasses import replace

import h5py

# whole, before its names are compared
import meshio
import numpy as np
import pytest
from damage import read_spoiled
from good_files import (
    ABAQUS,
    GOOD,
    MEDIT,
    NASTRAN,
    VTU,
)
from io_meshes import decorated, plain_meshes
from texts import read, refusal, refused

from meshprep import io
from meshprep.io import guard
from meshprep.mesh import Tag
from meshprep_runtime.errors import MeshprepError, MissingPackageError

HUGE = 10**12


@pytest.fixture(autouse=True)
def no_hanging():
    """Ends a test that hangs."""

    def stop(number, frame):
        raise TimeoutError("it hangs")

    old = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)


@pytest.mark.parametrize("ending", GOOD)
def test_the_files_of_these_tests_are_good(ending, tmp_path):
    assert read(GOOD[ending], tmp_path / f"a{ending}").size("cells") in (1, 2)


DECLARED = [
    (".vtk", "POINTS 4", f"POINTS {HUGE}"),
    (".vtk", "CELLS 1 5", f"CELLS {HUGE} {5 * HUGE}"),
    (".vtk", "CELL_TYPES 1", f"CELL_TYPES {HUGE}"),
    (".vtk", "POINTS 4", "POINTS -7"),
    (".mesh", "Vertices\n4", f"Vertices\n{HUGE}"),
    (".mesh", "Tetrahedra\n1", f"Tetrahedra\n{HUGE}"),
    (".vtu", 'NumberOfPoints="3"', f'NumberOfPoints="{HUGE}"'),
    (".vtu", 'NumberOfCells="1"', f'NumberOfCells="{HUGE}"'),
]


@pytest.mark.parametrize(("ending", "old", "new"), DECLARED)
def test_headers_that_declare_too_much(ending, old, new, tmp_path):
    read(GOOD[ending], tmp_path / f"a{ending}")
    start = time.process_time()
    tracemalloc.start()
    try:
        refused(GOOD[ending].replace(old, new), tmp_path / f"a{ending}")
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    # of the processor, which others may keep busy
    assert time.process_time() - start < 5


def test_a_structured_grid_out_of_nothing(tmp_path):
    text = "# vtk DataFile Version 3.0\nt\nASCII\nDATASET STRUCTURED_POINTS\n"
    text += "DIMENSIONS 10000 10000 10000\nORIGIN 0 0 0\nSPACING 1 1 1\n"
    assert "holds STRUCTURED_POINTS" in refused(text, tmp_path / "a.vtk")


@pytest.mark.parametrize("ending", [".med", ".e"])
def test_datasets_that_are_not_there(ending, tmp_path):
    path = tmp_path / f"a{ending}"
    io.write(plain_meshes()["tets"], path)
    with h5py.File(path, "a") as file:
        file.create_dataset("large", (10**10,), "f8", chunks=(1000,))
    refusal(path, "declares 80000000000 bytes that are not there")


def test_a_med_file_that_declares_too_many_nodes(tmp_path):
    path = tmp_path / "a.med"
    io.write(plain_meshes()["tets"], path)
    with h5py.File(path, "a") as file:
        step = next(iter(file["ENS_MAA/mesh"].values()))
        step["NOE/COO"].attrs["NBR"] = HUGE
    refusal(path, "declares 1000000000000 entries")


@pytest.mark.parametrize("ending", GOOD)
def test_truncated_text_is_an_error_or_whole(ending, tmp_path):
    text = GOOD[ending]
    cells = read(text, tmp_path / f"a{ending}").size("cells")
    for cut in range(1, len(text) - 1, max(1, len(text) // 40)):
        with suppress(MeshprepError):
            assert read(text[:cut], tmp_path / f"a{ending}").size("cells") <= cells


@pytest.mark.parametrize("ending", GOOD)
def test_other_things_than_text(ending, tmp_path):
    refused(bytes(range(256)) * 8, tmp_path / f"a{ending}")
    refused("\n" * 50, tmp_path / f"a{ending}")
    refused("lorem ipsum dolor\n" * 9, tmp_path / f"a{ending}")


@pytest.mark.parametrize("ending", [".med", ".e", ".cgns", ".xdmf", ".meshb"])
def test_binary_formats_that_are_something_else(ending, tmp_path):
    said = refused(bytes(range(256)) * 8, tmp_path / f"a{ending}")
    assert "not a readable" in said or "this is no mesh of" in said


def test_two_pieces_of_a_vtu_file(tmp_path):
    start, end = VTU.index("<Piece"), VTU.index("</UnstructuredGrid>")
    assert "has 2 pieces" in refused(
        VTU[:end] + VTU[start:end] + VTU[end:], tmp_path / "a.vtu"
    )


def test_unknown_cells_are_not_skipped(tmp_path):
    assert "type 11" in refused(VTU.replace(">5</Data", ">11</Data"), tmp_path / "a.vtu")


def test_polygons_are_named(tmp_path):
    polygon = VTU.replace(">5</Data", ">7</Data").replace(">0 1 2<", ">0 1 2 0 1<")
    told = refused(polygon.replace(">3</Data", ">5</Data"), tmp_path / "a.vtu")
    assert "cell 1 is of VTK's type 7 (a polygon) with 5 nodes" in told


def test_numbers_that_are_none(tmp_path):
    refused(VTU.replace("0 1 2<", "0 1 x<"), tmp_path / "a.vtu")
    refused(MEDIT.replace("1 2 3 4 7", "1 2 3 x 7"), tmp_path / "a.mesh")


@pytest.mark.parametrize("index", ["9", "-1"])
def test_indices_out_of_range(index, tmp_path):
    assert f"has index {index}" in refused(
        VTU.replace("0 1 2<", f"0 1 {index}<"), tmp_path / "a.vtu"
    )


def test_no_cells(tmp_path):
    text = MEDIT.replace("Tetrahedra\n1\n1 2 3 4 7\n", "")
    assert "there are no cells" in refused(text, tmp_path / "a.mesh")


def test_groups_and_what_medit_leaves_out(tmp_path):
    mesh = read(MEDIT, tmp_path / "a.mesh")
    assert mesh.tag("medit:ref", "cells").first_ids().tolist() == [7]
    assert mesh.tag("medit:ref", "nodes").first_ids().tolist() == [1, 2, 0, 0]
    assert mesh.lists[0].name == "Corners"
    more = read(MEDIT.replace("End", "BoundingBox\n1\n0 1 0 1\nEnd"), tmp_path / "a.mesh")
    assert more.extras["unread"] == ("BoundingBox",)
    with pytest.raises(MeshprepError, match=r"written without BoundingBox \(not read\)"):
        io.write(more, tmp_path / "b.mesh")


def test_what_is_left_out_of_a_deck_is_told(tmp_path):
    assert read(NASTRAN, tmp_path / "a.bdf").extras["unread"] == ("PSHELL",)
    shear = NASTRAN.replace("CTRIA3", "CTRIAR")
    assert read(shear, tmp_path / "a.bdf").extras["unread"] == ("CTRIAR", "PSHELL")


def test_abaqus_sets_and_what_it_takes_in(tmp_path):
    mesh = read(ABAQUS, tmp_path / "a.inp")
    assert {(i.name, i.set): i.index.tolist() for i in mesh.lists} == {
        ("left", "nodes"): [0, 2],
        ("plate", "cells"): [0],
    }
    assert mesh.coordinates.shape == (3, 2)
    assert "*INCLUDE" in refused(ABAQUS + "*INCLUDE, INPUT=/dev/zero\n", tmp_path / "a.inp")
    more = read(ABAQUS + "*NODE\n4, 1., 1.\n", tmp_path / "a.inp")
    assert more.coordinates.tolist()[3] == [1, 1]


def test_xdmf_does_not_open_devices(tmp_path):
    text = '<Xdmf Version="3.0"><Domain><Grid><Geometry GeometryType="XYZ"><DataItem {}>{}'
    text += (
        '</DataItem></Geometry><Topology TopologyType="Triangle"><DataItem Dimensions="3">'
    )
    text += "0 1 2</DataItem></Topology></Grid></Domain></Xdmf>"
    binary = text.format('Format="Binary" Dimensions="3 3"', "/dev/zero")
    assert "raw binary files" in refused(binary, tmp_path / "a.xdmf")
    (tmp_path / "b.h5").symlink_to("/dev/zero")
    hdf = text.format('Format="HDF" Dimensions="3 3"', "b.h5:/data0")
    assert "b.h5 is no regular file" in refused(hdf, tmp_path / "a.xdmf")


def test_texts_keep_their_digits(tmp_path):
    """Whatever precision a format is said to have."""
    text = MEDIT.replace("Formatted 2", "Formatted 1").replace(
        "1 0 0 2", "0.1234567890123 0 0 2"
    )
    assert read(text, tmp_path / "a.mesh").coordinates[1, 0] == 0.1234567890123


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ("GRID,2,,9.,9.,9.", "node 2 stands twice"),
        ("GRID*                  2                             9.", "node 2 stands twice"),
        ("CQUAD4  1       1       1       2       3       4", "element 1 stands twice"),
        ("INCLUDE 'more.bdf'", "line 8: INCLUDE: more.bdf does not exist"),
        ("INCLUDE '../more.bdf'", "INCLUDE: ../more.bdf does not exist"),
        ("INCLUDE 'a.bdf'", "line 8: INCLUDE of a.bdf takes itself in"),
        ("=,*1,,*(1.),==", "line 8: '=' repeats the card before it: write it out"),
        ("CQUAD4,7,1,1,2,4", "cell 7 is of type 'quad', which has 4 nodes, but has 3"),
        ("BEGIN SUPER=1", "line 8: 'BEGIN SUPER=1': several models in a deck are not"),
        ("GRDSET,,5", r"nodes are in other coordinates \(GRDSET\)"),
    ],
)
def test_cards_of_nastran_that_would_give_another_mesh(card, message, tmp_path):
    nodes = "".join(f"GRID,{i},,{i % 2}.,{i // 2}.,0.\n" for i in (1, 2, 3, 4))
    deck = f"BEGIN BULK\n{nodes}CTRIA3,1,1,1,2,3\nCTRIA3,2,1,2,3,4\n{{}}ENDDATA\nGRID,2\n"
    assert read(deck.format(""), tmp_path / "a.bdf").size("cells") == 2
    refused(deck.format(f"{card}\n"), tmp_path / "a.bdf", message)


GRIDS = "GRID,4,{},1.,1.,0.", "GRID    4       {:8}1.      1.      0."


@pytest.mark.parametrize(
    "node", [*GRIDS, f"GRID*   4{'':15}{{:16}}1.{'':14}1.\n*       0."]
)
def test_nodes_of_nastran_in_coordinates_of_their_own(node, tmp_path):
    nodes = "".join(f"GRID,{i},,{i}.,0.,0.\n" for i in (1, 2, 3))
    deck, system = (
        f"BEGIN BULK\n{{}}\n{nodes}{node}\nCTRIA3,1,1,1,2,3\nENDDATA\n",
        "CORD2C,5",
    )
    for place in ("0", ""):
        assert read(deck.format(system, place), tmp_path / "a.bdf").coordinates[3, 0] == 1
    assert "other coordinates (CORD2C)" in refused(
        deck.format(system, "5"), tmp_path / "a.bdf"
    )
    tag = read(deck.format("$", "5"), tmp_path / "a.bdf").tag("nastran:ref", "nodes")
    assert tag.first_ids().tolist() == [0, 0, 0, 5]


def test_numbers_in_nastran_are_kept(tmp_path):
    numbers = {1: 70, 2: 30, 3: 50, 4: 10}
    nodes = "".join(f"GRID,{n},,{i % 2}.,{i // 2}.,0.\n" for i, n in numbers.items())
    deck = f"BEGIN BULK\n{nodes}CTRIA3,9,1,70,30,50\nCTRIA3  5       1       30      50      10\n"
    mesh = read(f"{deck}ENDDATA\n", tmp_path / "a.bdf")
    assert mesh.dat("label", "nodes").values.tolist() == [70, 30, 50, 10]
    assert mesh.dat("label", "cells").values.tolist() == [9, 5]
    io.write(mesh, tmp_path / "b.bdf")
    back = io.read(tmp_path / "b.bdf")
    assert back.dat("label", "nodes").values.tolist() == [70, 30, 50, 10]
    assert back.dat("label", "cells").values.tolist() == [9, 5]


FRAMES = ("CD, PS and SEID of nodes",)


@pytest.mark.parametrize(
    ("head", "node", "said"),
    [
        ("$ a comment\n\n", "GRID,4,,1.,1.,0.,0", ()),
        ("SOL 101\nCEND\n", "GRID,4,,1.,1.,0.", ()),
        ("SOL 103\nCEND\n", "GRID,4,,1.,1.,0.", ("executive and case control",)),
        ("SOL 101\nCEND\nSPC = 1\n", "GRID,4,,1.,1.,0.", ("executive and case control",)),
        ("", "GRID,4,,1.,1.,0.,7", FRAMES),
        ("", f"GRID    {4:>8}{'':8}{1.0:>8}{1.0:>8}{0.0:>8}{'':8}     123", FRAMES),
        ("", f"GRID*   {4:>16}{'':16}{1.0:>16}{1.0:>16}\n*       {0.0:>16}", ()),
        ("", f"GRID*   {4:>16}{'':16}{1.0:>16}{1.0:>16}\n*       {0.0:>16}{7:>16}", FRAMES),
    ],
)
def test_what_nastran_says_besides_the_mesh_is_told(head, node, said, tmp_path):
    nodes = "GRID,1,,0.,0.,0.\nGRID,2,,1.,0.,0.\nGRID,3,,0.,1.,0.\n"
    deck = f"{head}BEGIN BULK\n{nodes}{node}\nCTRIA3,1,1,1,2,3\nCTRIA3,2,1,2,4,3\nENDDATA\n"
    mesh = read(deck, tmp_path / "a.bdf")
    assert mesh.coordinates[3].tolist() == [1, 1, 0]
    assert mesh.extras.get("unread", ()) == said


def test_large_fields_of_nastran_are_read(tmp_path):
    nodes = "GRID,1,,0.,0.,0.\nGRID,2,,1.,0.,0.\nGRID,3,,0.,1.,-1.5-1\n"
    card = f"CTRIA3* {7:>16}{5:>16}{1:>16}{2:>16}\n*       {3:>16}\n"
    mesh = read(f"BEGIN BULK\n{nodes}{card}ENDDATA\n", tmp_path / "a.bdf")
    assert mesh.map("cells->nodes").table.tolist() == [[0, 1, 2]]
    assert mesh.coordinates[2, 2] == -0.15


def test_lines_of_nastran_are_rods(tmp_path):
    io.write(plain_meshes()["lines"], tmp_path / "a.bdf")
    text = (tmp_path / "a.bdf").read_text()
    assert text.count("CROD") == 4
    assert "CBAR" not in text


@pytest.mark.parametrize("number", [12345678901234567, -1234567890123456])
def test_numbers_that_fields_of_nastran_are_too_small_for(number, tmp_path):
    mesh = plain_meshes()["triangles"]
    ids = np.where(np.arange(mesh.size("cells")) == 1, number, 2)
    tags = (Tag.from_ids("nastran:ref", mesh.cell_sets[0].name, ids),)
    with pytest.raises(
        MeshprepError, match=f"a.bdf: group {number} of 'nastran:ref' has more"
    ):
        io.write(
            replace(mesh, tags=tags, dats=mesh.dats[:1]), tmp_path / "a.bdf", drop=True
        )
    card = f"{'CTRIA3':8}{1:<8}{123456789:<8}{1:<8}{2:<8}{3:<8}\n"
    text = NASTRAN[: NASTRAN.index("CTRIA3")] + card + "ENDDATA\n"
    said = (
        "a cell has node 91, which is not there: numbers have at most 8 characters in small"
    )
    assert said in refused(text, tmp_path / "a.bdf")


def test_point_data_cannot_pass_for_coordinates(tmp_path):
    data = '<PointData><DataArray type="Int32" Name="coordinates" format="ascii">7 8 9</DataArray>'
    mesh = read(VTU.replace("<Cells>", data + "</PointData><Cells>"), tmp_path / "a.vtu")
    assert mesh.coordinates.shape == (3, 3)
    assert mesh.dat("data:coordinates", "nodes").values.tolist() == [7, 8, 9]


def test_meshio_leaves_neither_words_nor_the_interpreter(tmp_path, capfd):
    for ending in (".vtk", ".e", ".med", ".mesh"):
        refused("nonsense", tmp_path / f"a{ending}")
    assert capfd.readouterr() == ("", "")


def of_meshio():
    """Every name in every module of meshio, by what it stands for, and its tables."""
    modules = {
        name: m
        for name, m in sys.modules.items()
        if f"{name}.".startswith(f"{meshio.__name__}.")
    }
    return {
        (module, name): (id(value), repr(value) if isinstance(value, dict | list) else "")
        for module, m in modules.items()
        for name, value in vars(m).items()
        if name != "__builtins__"
    }


@pytest.mark.parametrize("ending", [*GOOD, ".meshb", ".e", ".med", ".xdmf", ".cgns"])
def test_reading_leaves_meshio_as_it_was(ending, tmp_path):
    before = of_meshio()
    path = tmp_path / f"a{ending}"
    if ending in GOOD:
        read(GOOD[ending], path)
        refused(GOOD[ending][:40], path)
    elif ending == ".cgns":
        refused("x", path)
    else:
        io.write(plain_meshes()["tets with skin"], path)
        io.read(path)
    assert of_meshio() == before


@pytest.mark.parametrize(
    "error", [SystemExit(1), MemoryError(), KeyError("a"), RecursionError()]
)
def test_whatever_is_raised_becomes_one_error(error):
    with (
        pytest.raises(MeshprepError, match=r"^not readable: "),
        guard.guarded("not readable"),
    ):
        raise error


def test_a_missing_package_is_named():
    with (
        pytest.raises(MissingPackageError, match="pip install netCDF4"),
        guard.guarded("x"),
    ):
        raise ModuleNotFoundError("no", name="netCDF4")


def test_an_interrupt_passes():
    with pytest.raises(KeyboardInterrupt), guard.guarded("x"):
        raise KeyboardInterrupt


FUZZED = [
    ".cgns",
    ".vtu",
    ".vtk",
    ".su2",
    ".mesh",
    ".meshb",
    ".e",
    ".xdmf",
    ".med",
    ".inp",
    ".bdf",
]


# Those that a process of its own reads, which takes a while: fewer are spoiled, or read here.
FEWER = {".e": 15}
READ_HERE = (".med", ".cgns")


@pytest.mark.parametrize("ending", FUZZED)
def test_spoiled_files_give_an_error_or_a_mesh(ending, tmp_path, monkeypatch):
    if ending in READ_HERE:
        monkeypatch.setattr(sys, "executable", "")
    mesh = decorated(decorated(plain_meshes()["tets with skin"], "groups"), "floats")
    path = tmp_path / f"a{ending}"
    io.write(mesh, path, drop=True)
    good, chance = path.read_bytes(), random.Random(ending)
    for _ in range(FEWER.get(ending, 60)):
        read_spoiled(path, good, chance)
