"""VTK's own files: every type of numbers, names with blanks, and what meshio takes otherwise."""

import meshio
import numpy as np
import other_readers
import pytest
from io_meshes import plain_meshes
from texts import read, refused

from meshprep import io
from meshprep.mesh import Dat
from meshprep_runtime.types.ordering import Ordering

HEAD = """# vtk DataFile Version 5.1
t
ASCII
DATASET UNSTRUCTURED_GRID
POINTS 4 double
0 0 0 1 0 0 0 1 0 0 0 1
CELLS 2 4
OFFSETS vtktypeint64
0 4
CONNECTIVITY vtktypeint64
0 1 2 3
CELL_TYPES 1
10
"""
TYPES = {
    "char": "i1",
    "unsigned_char": "u1",
    "short": "i2",
    "unsigned_short": "u2",
    "int": "i4",
    "unsigned_int": "u4",
    "long": "i8",
    "unsigned_long": "u8",
    "vtktypeint64": "i8",
    "vtktypeuint64": "u8",
    "vtkIdType": "i4",
    "float": "f4",
    "double": "f8",
}


def binary(version: str, name: str, kind: str, values) -> bytes:
    """A tetrahedron with one field of nodes, as VTK writes it."""
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], ">f8").tobytes()
    if version == "5.1":
        cells = b"CELLS 2 4\nOFFSETS vtktypeint64\n" + np.array([0, 4], ">i8").tobytes()
        cells += b"\nCONNECTIVITY vtktypeint64\n" + np.arange(4).astype(">i8").tobytes()
    else:
        cells = b"CELLS 1 5\n" + np.array([4, 0, 1, 2, 3], ">i4").tobytes()
    head = f"# vtk DataFile Version {version}\nt\nBINARY\nDATASET UNSTRUCTURED_GRID\n"
    data = np.array(values, f">{TYPES[kind]}").tobytes()
    return b"".join(
        [
            *(head.encode(), b"POINTS 4 double\n", points, b"\n", cells),
            *(b"\nCELL_TYPES 1\n", np.array([10], ">i4").tobytes()),
            *(
                b"\nPOINT_DATA 4\nFIELD FieldData 2\n",
                f"{name} 1 4 {kind}\n".encode(),
                data,
            ),
            *(b"\nlast 1 4 double\n", np.arange(4).astype(">f8").tobytes(), b"\n"),
        ]
    )


@pytest.mark.parametrize("version", ["5.1", "4.2"])
@pytest.mark.parametrize("kind", TYPES)
def test_every_type_of_numbers_that_vtk_writes(kind, version, tmp_path):
    dtype = np.dtype(TYPES[kind])
    ends = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    values = np.array([ends.min, ends.max, 1, 2], dtype)
    mesh = read(binary(version, "of%20mine%25", kind, values), tmp_path / "a.vtk")
    found = mesh.dat("of mine%", "nodes").values
    assert found.dtype == dtype
    assert found.tolist() == values.tolist()
    assert mesh.dat("last", "nodes").values.tolist() == [0, 1, 2, 3]


def test_arrays_of_one_name_in_two_spellings_are_refused(tmp_path):
    two = (
        HEAD + "POINT_DATA 4\nFIELD FieldData 2\na 1 4 int\n0 1 1 0\n%61 1 4 int\n0 1 1 0\n"
    )
    refused(two, tmp_path / "a.vtk", "several arrays of one name")


def test_structured_grids_name_what_converts_them(tmp_path):
    text = "# vtk DataFile Version 3.0\nt\nASCII\nDATASET STRUCTURED_POINTS\n"
    text += "DIMENSIONS 3 2 2\nORIGIN 0 0 0\nSPACING 1 1 1\n"
    refused(
        text, tmp_path / "a.vtk", "holds STRUCTURED_POINTS: convert it with meshio convert"
    )
    # which meshio does not read either
    text = "# vtk DataFile Version 3.0\nt\nASCII\nDATASET POLYDATA\n"
    refused(text, tmp_path / "b.vtk", "holds POLYDATA: convert it with ParaView")


def test_names_that_vtk_would_read_otherwise(tmp_path):
    (tmp_path / "a.vtk").write_text(HEAD)
    names = ["with blank", "100%", "a%20b", 'a "quoted" one', "Größe"]
    dats = [Dat(name, "nodes", np.arange(4) + i) for i, name in enumerate(names)]
    io.write(io.read(tmp_path / "a.vtk").with_(dats=dats), tmp_path / "b.vtk")
    text = (tmp_path / "b.vtk").read_bytes()
    assert b"with%20blank 1 4 vtktypeint64" in text
    assert b"100%25 1 4" in text
    assert b"a%2520b 1 4" in text
    back = io.read(tmp_path / "b.vtk")
    assert [d.name for d in back.dats if d.name != "coordinates"] == names


OLD = """# vtk DataFile Version 3.0
two cells
ASCII
DATASET UNSTRUCTURED_GRID
POINTS 4 float
0 0 0
0.1 0 0
0 0.12345678901234 0
0 0 1
CELLS 2 9
4 0 1 2 3
3 0 1 2
CELL_TYPES 2
10
5
CELL_DATA 2
SCALARS material int 1
LOOKUP_TABLE default
7
8
POINT_DATA 4
FIELD FieldData 3
heat 1 4 float
0.1
nan
inf
1e-07
bytes 2 4 unsigned_char
1 2
3 4
5 6
7 255
large 1 4 unsigned_long
1
2
3
18446744073709551615
"""


def test_a_text_of_an_old_version_stays_one(tmp_path):
    """MFEM and deal.II read nothing else, and go by the digits, not by the type."""
    io.write(read(OLD, tmp_path / "a.vtk"), tmp_path / "b.vtk")
    assert (tmp_path / "b.vtk").read_text() == OLD


def test_a_legacy_file_of_the_newer_ending_is_told(tmp_path):
    refused(OLD, tmp_path / "a.vtu", "is a legacy VTK file: give it the ending .vtk")


def test_texts_and_colours_of_a_text_are_kept(tmp_path):
    more = """FIELD FieldData 1
name 1 4 string
with%20blank

a
100%25
"""
    colours = "COLOR_SCALARS light 3\n" + "0 0.2 1\n" * 4
    text = OLD[: OLD.index("FIELD")] + more + colours
    mesh = read(text, tmp_path / "a.vtk")
    io.write(mesh, tmp_path / "b.vtk")
    back = io.read(tmp_path / "b.vtk")
    for found in (mesh, back):
        assert found.dat("name", "nodes").values.tolist() == ["with blank", "", "a", "100%"]
        assert found.dat("light", "nodes").values.tolist() == [[0, 51, 255]] * 4
    assert "0 0.2 1\n" in (tmp_path / "b.vtk").read_text()


def test_bytes_of_an_old_version_keep_its_layout(tmp_path):
    """A cell has its number of nodes before it; newer files have them in one list."""
    data = binary("4.2", "q", "short", [1, 2, 3, -4])
    one = b"CELLS 1 5\n" + np.array([4, 0, 1, 2, 3], ">i4").tobytes()
    two = b"CELLS 2 9\n" + np.array([4, 0, 1, 2, 3, 3, 0, 1, 2], ">i4").tobytes()
    types = b"\nCELL_TYPES 1\n" + np.array([10], ">i4").tobytes()
    more_types = b"\nCELL_TYPES 2\n" + np.array([10, 5], ">i4").tobytes()
    data = data.replace(one, two).replace(types, more_types)
    io.write(read(data, tmp_path / "a.vtk"), tmp_path / "b.vtk")
    written = (tmp_path / "b.vtk").read_bytes()
    assert written.startswith(b"# vtk DataFile Version 4.2\nt\nBINARY\n")
    assert two + more_types in written
    assert b"q 1 4 short\n" + np.array([1, 2, 3, -4], ">i2").tobytes() in written
    seen = other_readers.vtk(tmp_path / "b.vtk", "vtk")
    assert seen.cells == [("tetra", [0, 1, 2, 3]), ("triangle", [0, 1, 2])]
    assert [len(c.data) for c in meshio.read(tmp_path / "b.vtk").cells] == [1, 1]


def test_an_array_without_rows_in_a_text(tmp_path):
    empty = "FIELD FieldData 1\nnone 1 0 double\n"
    text = OLD.replace("POINTS", f"{empty}POINTS", 1)
    io.write(read(text, tmp_path / "a.vtk"), tmp_path / "b.vtk")
    assert empty in (tmp_path / "b.vtk").read_text()


def test_meshes_of_other_files_are_written_as_bytes(tmp_path):
    io.write(plain_meshes()["tets"], tmp_path / "a.vtk")
    data = (tmp_path / "a.vtk").read_bytes()
    assert data.startswith(b"# vtk DataFile Version 5.1\nwritten by meshprep\nBINARY\n")
    io.write(read(HEAD, tmp_path / "b.vtk"), tmp_path / "c.vtk")
    assert "OFFSETS vtktypeint64\n0\n4\nCONN" in (tmp_path / "c.vtk").read_text()


@pytest.mark.parametrize("version", ["3.0", "5.1"])
def test_vtk_and_meshio_read_a_text_that_was_reordered(version, tmp_path):
    cells = (
        "CELLS 3 7\nOFFSETS vtktypeint64\n0 4 7\nCONNECTIVITY vtktypeint64\n0 1 2 3 0 1 2\n"
    )
    text = OLD if version == "3.0" else OLD.replace("3.0", "5.1", 1)
    if version == "5.1":
        text = text.replace("CELLS 2 9\n4 0 1 2 3\n3 0 1 2\n", cells)
    mesh = read(text.replace("unsigned_char", "int"), tmp_path / "a.vtk")
    order = {"nodes": Ordering.from_new_to_old(np.array([3, 1, 0, 2]))}
    io.write(mesh.renumber(order), tmp_path / "b.vtk")
    places = [[0, 0, 1], [0.1, 0, 0], [0, 0, 0], [0, 0.12345678901234, 0]]
    seen = other_readers.vtk(tmp_path / "b.vtk", "vtk")
    assert np.allclose(seen.points, places)
    assert seen.cells == [("tetra", [2, 1, 3, 0]), ("triangle", [2, 1, 3])]
    assert seen.cell_values["material"].tolist() == [7, 8]
    assert seen.node_values["bytes"].tolist() == [[7, 255], [3, 4], [1, 2], [5, 6]]
    other = meshio.read(tmp_path / "b.vtk")
    assert np.allclose(other.points, places)
    assert [c.data.tolist() for c in other.cells] == [[[2, 1, 3, 0]], [[2, 1, 3]]]
    assert other.point_data["bytes"].tolist() == [[7, 255], [3, 4], [1, 2], [5, 6]]


RAW = """<VTKFile type="UnstructuredGrid" version="1.0" byte_order="LittleEndian" \
header_type="UInt64"><UnstructuredGrid><Piece NumberOfPoints="15" NumberOfCells="12">
<Points><DataArray type="Float64" NumberOfComponents="3" format="appended" offset="0"/></Points>
<Cells><DataArray type="Int64" Name="connectivity" format="appended" offset="368"/>
<DataArray type="Int64" Name="offsets" format="appended" offset="760"/>
<DataArray type="UInt8" Name="types" format="appended" offset="864"/></Cells>
</Piece></UnstructuredGrid><AppendedData encoding="raw">_"""


@pytest.mark.parametrize("end", ["", "\n", "\n  ", "  "])
def test_raw_arrays_end_with_or_without_a_line_break(end, tmp_path):
    """Numbers of nodes and the type of a tetrahedron have the byte of a line break."""
    rng = np.random.default_rng(1)
    points, table = rng.random((15, 3)), np.arange(12)[:, None] + np.arange(4)
    arrays = points, table, np.arange(4, 49, 4), np.full(12, 10, np.uint8)
    data = b"".join(np.uint64(a.nbytes).tobytes() + a.tobytes() for a in arrays)
    text = f"{end}</AppendedData></VTKFile>".encode()
    (tmp_path / "a.vtu").write_bytes(RAW.encode() + data + text)
    mesh = io.read(tmp_path / "a.vtu")
    assert mesh.map("cells->nodes").table.tolist() == table.tolist()
    assert np.array_equal(mesh.coordinates, points)


@pytest.mark.parametrize("options", ["ascii", "binary", "4.2", "appended", "raw", "plain"])
def test_what_vtk_writes_is_read(options, tmp_path):
    """A mesh of several types that VTK itself writes, values of all types included."""
    core = other_readers.package("vtkmodules.vtkCommonCore")
    model = other_readers.package("vtkmodules.vtkCommonDataModel")
    support = other_readers.package("vtkmodules.util.numpy_support")
    points = core.vtkPoints()
    points.SetDataTypeToDouble()
    random = np.random.default_rng(0).random((10, 3))
    for p in random:
        points.InsertNextPoint(p)
    grid = model.vtkUnstructuredGrid()
    grid.SetPoints(points)
    for kind, nodes in ((10, (0, 1, 2, 3)), (14, (4, 5, 6, 7, 8)), (10, (1, 2, 3, 9))):
        ids = core.vtkIdList()
        for n in nodes:
            ids.InsertNextId(n)
        grid.InsertNextCell(kind, ids)
    for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"):
        array = support.numpy_to_vtk(np.arange(3).astype(kind), deep=1)
        array.SetName(f"{kind} of mine")
        grid.GetCellData().AddArray(array)
    path = _write_by_vtk(grid, options, tmp_path)
    mesh = io.read(path)
    # VTK writes ten digits of a text.
    np.testing.assert_allclose(mesh.coordinates, random, rtol=0, atol=1e-10)
    assert mesh.cell_map("tetra").table.tolist() == [[0, 1, 2, 3], [1, 2, 3, 9]]
    assert mesh.cell_map("pyramid").table.tolist() == [[4, 5, 6, 7, 8]]
    for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"):
        values = mesh.dat(f"{kind} of mine", "tetra").values
        assert (values.tolist(), values.dtype) == ([0, 2], np.dtype(kind))


def _write_by_vtk(grid, options, folder):
    if options in ("ascii", "binary", "4.2"):
        writer = other_readers.package("vtkmodules.vtkIOLegacy").vtkUnstructuredGridWriter()
        writer.SetFileTypeToASCII() if options == "ascii" else writer.SetFileTypeToBinary()
        writer.SetFileVersion(42 if options == "4.2" else 51)
        path = folder / "a.vtk"
    else:
        writer = other_readers.package("vtkmodules.vtkIOXML").vtkXMLUnstructuredGridWriter()
        writer.SetDataModeToAppended()
        writer.SetEncodeAppendedData(options == "appended")
        if options == "plain":
            writer.SetDataModeToBinary()
            writer.SetCompressorTypeToNone()
        path = folder / "a.vtu"
    writer.SetFileName(str(path))
    writer.SetInputData(grid)
    assert writer.Write()
    return path


@pytest.mark.parametrize("version", ["5.1", "3.0"])
@pytest.mark.parametrize(
    "values",
    [
        "SCALARS q double 1\nLOOKUP_TABLE default\n1 2 3 4\nVECTORS q double\n"
        + "1 2 3 " * 4,
        "FIELD FieldData 2\nq 1 4 double\n1 2 3 4\nq 1 4 double\n5 6 7 8\n",
    ],
)
def test_arrays_of_one_name_are_refused(version, values, tmp_path):
    text = HEAD + f"POINT_DATA 4\n{values}\n"
    if version == "3.0":
        cells = text[text.index("CELLS") : text.index("CELL_TYPES")]
        text = text.replace(cells, "CELLS 1 5\n4 0 1 2 3\n").replace("5.1", "3.0")
    refused(text, tmp_path / "a.vtk", "has several arrays of one name")


@pytest.mark.parametrize(
    ("kind", "number"), [("f8", 1e20), ("u8", 2**63 + 5), ("f8", -(2.0**63))]
)
def test_whole_numbers_too_large_for_groups_are_values(kind, number, tmp_path):
    """They became other numbers."""
    tets = plain_meshes()["tets"]
    values = np.full(tets.size("cells"), number, kind)
    io.write(tets.with_(dats=[Dat("gmsh:physical", "cells", values)]), tmp_path / "a.vtu")
    found = io.read(tmp_path / "a.vtu").dat("gmsh:physical", "cells")
    assert found.values.tolist() == values.tolist()


def with_values(text, kind="ASCII", version="5.1"):
    """The tetrahedron with these sections for its nodes."""
    head = HEAD.replace("ASCII", kind).replace("5.1", version)
    if version != "5.1":
        start, stop = head.index("CELLS"), head.index("CELL_TYPES")
        head = f"{head[:start]}CELLS 1 5\n4 0 1 2 3\n{head[stop:]}"
    return head + text


def test_notes_without_names_of_components_are_no_loss(tmp_path):
    more = (
        "POINT_DATA 4\nFIELD FieldData 2\np 1 4 double\n1 2 3 4\nMETADATA\nINFORMATION 1\n"
    )
    more += (
        "NAME L2_NORM_RANGE LOCATION vtkDataArray\nDATA 2 1 4 \n\nq 1 4 double\n5 6 7 8\n"
    )
    mesh = read(HEAD + more, tmp_path / "a.vtk")
    assert mesh.dat("q", "nodes").values.tolist() == [5, 6, 7, 8]
    assert io.write(mesh, tmp_path / "b.vtk") == []


@pytest.mark.parametrize("place", ["POINT_DATA 4", "CELL_DATA 1"])
def test_tensors_are_nine_components(place, tmp_path):
    n = int(place.split()[1])
    numbers = np.arange(9.0 * n).reshape(n, 9)
    text = f"{place}\nTENSORS t double\n{' '.join(map(str, numbers.ravel()))}\n"
    mesh = read(HEAD + text, tmp_path / "a.vtk")
    assert io.write(mesh, tmp_path / "b.vtk") == []
    back = io.read(tmp_path / "b.vtk").dat("t", "nodes" if n == 4 else "cells")
    assert back.values.tolist() == numbers.tolist()
