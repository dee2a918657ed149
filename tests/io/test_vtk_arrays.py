"""Arrays of VTK's files keep their role, type, names of components and place, as VTK sees them."""

import numpy as np
import other_readers
import pytest
from texts import read, refused

from meshprep import io
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.ordering import Ordering

TETRA = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
CELLS = """CELLS 2 4
OFFSETS vtktypeint64
0 4
CONNECTIVITY vtktypeint64
0 1 2 3
CELL_TYPES 1
10
"""
HEAD = f"""# vtk DataFile Version 5.1
a case of mine, t = 0.5
ASCII
DATASET UNSTRUCTURED_GRID
POINTS 4 double
0 0 0 1 0 0 0 1 0 0 0 1
{CELLS}"""


def vtk_grid(with_texts):
    """A tetrahedron of VTK's with an array in every role, named after it."""
    core = other_readers.package("vtkmodules.vtkCommonCore")
    model = other_readers.package("vtkmodules.vtkCommonDataModel")
    support = other_readers.package("vtkmodules.util.numpy_support")
    points = core.vtkPoints()
    points.SetDataTypeToDouble()
    for p in TETRA:
        points.InsertNextPoint(p)
    grid = model.vtkUnstructuredGrid()
    grid.SetPoints(points)
    ids = core.vtkIdList()
    for i in range(4):
        ids.InsertNextId(i)
    grid.InsertNextCell(10, ids)

    def array(values, name):
        made = support.numpy_to_vtk(np.array(values), deep=1)
        made.SetName(name)
        return made

    of_points = grid.GetPointData()
    of_points.SetScalars(array(np.arange(4, dtype="u1"), "sc"))
    of_points.SetVectors(array(np.arange(12.0).reshape(4, 3), "ve"))
    of_points.SetNormals(array(np.arange(12.0).reshape(4, 3) + 1, "no"))
    of_points.SetTensors(array(np.arange(24.0).reshape(4, 6), "te"))
    of_points.SetTCoords(array(np.arange(8.0).reshape(4, 2), "tc"))
    numbers = core.vtkIdTypeArray()
    numbers.SetName("gid")
    for i in range(4):
        numbers.InsertNextValue(10 * i)
    of_points.SetGlobalIds(numbers)
    bits = core.vtkBitArray()
    bits.SetName("bits")
    for i in range(4):
        bits.InsertNextValue(i % 2)
    of_points.AddArray(bits)
    two = array(np.arange(8.0).reshape(4, 2), "two of them")
    two.SetComponentName(0, "first one")
    two.SetComponentName(1, "second")
    of_points.AddArray(two)
    ghosts = array(np.array([1], "u1"), "vtkGhostType")
    grid.GetCellData().AddArray(ghosts)
    grid.GetCellData().SetScalars(array(np.array([7]), "mat"))
    notes = core.vtkStringArray()
    notes.SetName("note")
    for text in ("hello world", "", "é%\nz", "x" * 100, "y" * 20000):
        notes.InsertNextValue(text)
    grid.GetFieldData().AddArray(notes)
    grid.GetFieldData().AddArray(array(np.array([3.5]), "TimeValue"))
    if with_texts:
        names = core.vtkStringArray()
        names.SetName("ped")
        for text in ("a", "b b", "c%", "d"):
            names.InsertNextValue(text)
        of_points.SetPedigreeIds(names)
    return grid


def save(grid, path, kind):
    if path.suffix == ".vtk":
        writer = other_readers.package("vtkmodules.vtkIOLegacy").vtkUnstructuredGridWriter()
        writer.SetFileVersion(42 if kind.endswith("42") else 51)
        if kind.startswith("ascii"):
            writer.SetFileTypeToASCII()
        else:
            writer.SetFileTypeToBinary()
    else:
        xml = other_readers.package("vtkmodules.vtkIOXML")
        core = other_readers.package("vtkmodules.vtkIOCore")
        writer = xml.vtkXMLUnstructuredGridWriter()
        if kind == "ascii":
            writer.SetDataModeToAscii()
        elif kind == "plain":
            writer.SetDataModeToBinary()
            writer.SetCompressorTypeToNone()
        else:
            writer.SetDataModeToAppended()
            packer = {
                "lzma": core.vtkLZMADataCompressor,
                "zlib": core.vtkZLibDataCompressor,
            }
            writer.SetCompressor(packer[kind]())
    writer.SetFileName(str(path))
    writer.SetInputData(grid)
    assert writer.Write()


def load(path):
    """The grid as VTK reads it."""
    if path.suffix == ".vtk":
        reader = other_readers.package("vtkmodules.vtkIOLegacy").vtkUnstructuredGridReader()
    else:
        reader = other_readers.package("vtkmodules.vtkIOXML").vtkXMLUnstructuredGridReader()
    reader.SetFileName(str(path))
    reader.Update()
    return reader.GetOutput()


def values(array):
    """The values of an array of VTK's, row by row."""
    width = array.GetNumberOfComponents()
    if array.GetClassName() == "vtkStringArray":
        return [array.GetValue(i) for i in range(array.GetNumberOfValues())]
    return [
        [array.GetComponent(i, k) for k in range(width)]
        for i in range(array.GetNumberOfTuples())
    ]


ROLES = ("Scalars", "Vectors", "Normals", "Tensors", "TCoords", "GlobalIds")


@pytest.mark.parametrize(
    ("ending", "kind"),
    [
        (".vtk", "ascii42"),
        (".vtk", "ascii51"),
        (".vtk", "binary42"),
        (".vtk", "binary51"),
        (".vtu", "ascii"),
        (".vtu", "plain"),
        (".vtu", "zlib"),
        (".vtu", "lzma"),
    ],
)
def test_every_array_of_vtk_comes_back_to_vtk_with_its_role(ending, kind, tmp_path):
    # VTK itself crashes on texts as identifiers in a VTU file, and loses them in a binary one
    with_texts = ending == ".vtk" and kind.startswith("ascii")
    save(vtk_grid(with_texts), tmp_path / f"a{ending}", kind)
    mesh = io.read(tmp_path / f"a{ending}")
    order = Ordering.from_new_to_old(np.array([3, 1, 0, 2]))
    assert io.write(mesh.renumber({"nodes": order}), tmp_path / f"b{ending}") == []
    before, after = load(tmp_path / f"a{ending}"), load(tmp_path / f"b{ending}")
    for old, new in (
        (before.GetPointData(), after.GetPointData()),
        (before.GetCellData(), after.GetCellData()),
        (before.GetFieldData(), after.GetFieldData()),
    ):
        names = {old.GetArrayName(i) for i in range(old.GetNumberOfArrays())}
        assert {new.GetArrayName(i) for i in range(new.GetNumberOfArrays())} == names
        for name in names:
            one, other = old.GetAbstractArray(name), new.GetAbstractArray(name)
            expected = values(one)
            if old is before.GetPointData():
                expected = [expected[i] for i in order.new_to_old]
            assert values(other) == expected, name
            for k in range(one.GetNumberOfComponents()):
                assert one.GetComponentName(k) == other.GetComponentName(k)
    for role in ROLES:
        array = getattr(after.GetPointData(), f"Get{role}")()
        assert array.GetName() == getattr(before.GetPointData(), f"Get{role}")().GetName()
    types = [grid.GetPointData().GetScalars().GetDataType() for grid in (before, after)]
    assert types[0] == types[1]
    assert after.GetCellData().GetScalars().GetName() == "mat"
    # found only where it is of bytes
    assert after.GetCellGhostArray().GetValue(0) == 1
    if with_texts:
        assert after.GetPointData().GetPedigreeIds().GetName() == "ped"


def test_legacy_keywords_stand_in_the_file(tmp_path):
    """Programs look for them, without reading the rest."""
    text = "POINT_DATA 4\nSCALARS p double 1\nLOOKUP_TABLE default\n1 2 3 4\n"
    text += "SCALARS second float\nLOOKUP_TABLE mine\n5 6 7 8\n"
    text += "LOOKUP_TABLE mine 2\n0 0 1 1 1 0 0 1\n"
    text += "COLOR_SCALARS c 3\n" + "0 0.2 1 " * 4 + "\n"
    text += "TENSORS t double\n" + "1 0 0 0 1 0 0 0 1 " * 4 + "\nCELL_DATA 1\n"
    text += "VECTORS u double\n1 2 3\n"
    mesh = read(HEAD + text, tmp_path / "a.vtk")
    assert mesh.dat("c", "nodes").values.tolist() == [[0, 51, 255]] * 4
    assert io.write(mesh, tmp_path / "b.vtk") == []
    data = (tmp_path / "b.vtk").read_bytes()
    assert data.splitlines()[1] == b"a case of mine, t = 0.5"
    for line in (
        b"SCALARS p double 1\nLOOKUP_TABLE default\n",
        b"SCALARS second float 1\nLOOKUP_TABLE mine\n",
        b"LOOKUP_TABLE mine 2\n",
        b"COLOR_SCALARS c 3\n",
        b"TENSORS t double\n",
        b"VECTORS u double\n",
    ):
        assert b"\n" + line in data
    again = io.read(tmp_path / "b.vtk")
    assert again.extras["lookup tables"]["mine"].tolist() == [
        [0, 0, 255, 255],
        [255, 0, 0, 255],
    ]
    with pytest.raises(MeshprepError, match="'mine' of the lookup tables"):
        io.write(mesh, tmp_path / "b.vtu")


def test_scalars_without_a_line_for_their_table(tmp_path):
    text = "POINT_DATA 4\nSCALARS p double\n1 2 3 4\n"
    mesh = read(HEAD + text, tmp_path / "a.vtk")
    assert mesh.dat("p", "nodes").values.tolist() == [1, 2, 3, 4]


def test_texts_on_cells_move_with_them(tmp_path):
    two = HEAD.replace("POINTS 4", "POINTS 5").replace("0 0 1\n", "0 0 1 1 1 1\n", 1)
    two = two.replace(CELLS, CELLS.replace("2 4", "3 8").replace("0 4", "0 4 8"))
    two = two.replace("0 1 2 3\n", "0 1 2 3 1 2 3 4\n").replace(
        "TYPES 1\n10", "TYPES 2\n10 10"
    )
    text = "CELL_DATA 2\nFIELD FieldData 1\nwho 1 2 string\nthe%20first\nsecond\n"
    mesh = read(two + text, tmp_path / "a.vtk")
    order = Ordering.from_new_to_old(np.array([1, 0]))
    moved = mesh.renumber({"cells": order})
    for ending in (".vtk", ".vtu"):
        assert io.write(moved, tmp_path / f"b{ending}") == []
        found = io.read(tmp_path / f"b{ending}").dat("who", "cells").values
        assert found.tolist() == ["second", "the first"]
    with pytest.raises(MeshprepError, match=r"values 'who' on 'cells' \(texts\)"):
        io.write(moved, tmp_path / "b.xdmf")


def test_units_are_named_and_ranges_are_computed_anew(tmp_path):
    text = "POINT_DATA 4\nFIELD FieldData 1\nT 1 4 double\n1 2 3 4\nMETADATA\nCOMPONENT_NAMES\n"
    text += "temp\nINFORMATION 2\nNAME UNITS_LABEL LOCATION vtkDataArray\nDATA K\n"
    text += "NAME L2_NORM_RANGE LOCATION vtkDataArray\nDATA 2 1 4\n\nCELL_DATA 1\n"
    text += "SCALARS q double\nLOOKUP_TABLE default\n5\n"
    mesh = read(HEAD + text, tmp_path / "a.vtk")
    assert mesh.extras["unread"] == ("the note UNITS_LABEL on 'T'",)
    assert mesh.dat("q", "cells").values.tolist() == [5]


def test_a_damaged_keyword_is_refused_in_a_line(tmp_path):
    text = HEAD.replace("ASCII", "BINARY")
    start = text[: text.index("POINTS")].encode()
    data = b"POINTS 4 double\n" + np.array(TETRA, ">f8").tobytes() + b"\n"
    told = refused(start + b"POINTS 2 double\n" + data * 40, tmp_path / "a.vtk")
    assert len(told) < 300
    bits = HEAD + "POINT_DATA 4\nFIELD FieldData 1\nflag 1 4 complex\n0 1 1 0\n"
    refused(bits, tmp_path / "a.vtk", "holds values of type 'complex'")
    short = HEAD + "POINT_DATA\n"
    refused(
        short, tmp_path / "a.vtk", "section POINT_DATA is not written as the format wants"
    )


LEGACY = """# vtk DataFile Version 3.0
t
ASCII
DATASET UNSTRUCTURED_GRID
POINTS 12 double
0 0 0 1 0 0 2 0 0 0 1 0 1 1 0 2 1 0
0 0 1 1 0 1 2 0 1 0 1 1 1 1 1 2 1 1
CELLS {count} {size}
{cells}
CELL_TYPES {count}
{types}
CELL_DATA {count}
SCALARS q int
LOOKUP_TABLE default
{values}
"""


@pytest.mark.parametrize(
    ("number", "nodes", "kind", "row"),
    [
        (8, (0, 1, 3, 4), "quad", [0, 1, 4, 3]),
        (11, (0, 1, 3, 4, 6, 7, 9, 10), "hexahedron", [0, 1, 4, 3, 6, 7, 10, 9]),
        (7, (0, 1, 4, 3), "quad", [0, 1, 4, 3]),
        (7, (0, 1, 4), "triangle", [0, 1, 4]),
        (6, (0, 1, 4), "triangle", [0, 1, 4]),
        (4, (0, 1), "line", [0, 1]),
    ],
)
def test_cells_that_are_plain_ones_under_another_number(number, nodes, kind, row, tmp_path):
    cells = f"{len(nodes)} {' '.join(map(str, nodes))}"
    text = LEGACY.format(
        count=1, size=len(nodes) + 1, cells=cells, types=number, values="3"
    )
    mesh = read(text, tmp_path / "a.vtk")
    (found,) = mesh.cell_sets
    assert found.cell_type == kind
    assert mesh.cell_map(found.name).table.tolist() == [row]


def test_cells_under_two_numbers_keep_their_order(tmp_path):
    """A pixel between two quads of the same type stays between them."""
    cells = "4 0 1 4 3\n4 1 2 4 5\n4 6 7 10 9"
    text = LEGACY.format(count=3, size=15, cells=cells, types="9 8 9", values="1 2 3")
    mesh = read(text, tmp_path / "a.vtk")
    table = mesh.cell_map("cells").table.tolist()
    assert table == [[0, 1, 4, 3], [1, 2, 5, 4], [6, 7, 10, 9]]
    assert mesh.dat("q", "cells").values.tolist() == [1, 2, 3]


def test_names_of_components_of_points_and_field_data_stay(tmp_path):
    start, end = HEAD.split("CELLS 2 4")
    notes = "METADATA\nCOMPONENT_NAMES\nX\n\nheight\nINFORMATION 0\n\n"
    fields = "GRID\nFIELD FieldData 1\nbox 2 1 double\n1 2\n"
    fields += "METADATA\nCOMPONENT_NAMES\nlow\nhigh\nINFORMATION 0\n\n"
    text = f"{start}{notes}CELLS 2 4{end}".replace("GRID\n", fields)
    mesh = read(text, tmp_path / "a.vtk")
    for ending in (".vtk", ".vtu"):
        assert io.write(mesh, tmp_path / f"b{ending}") == []
        notes_found = io.read(tmp_path / f"b{ending}").extras["vtk:arrays"]
        points = notes_found["Points"]["Points"]
        assert points == {"ComponentName0": "X", "ComponentName2": "height"}
        box = notes_found["FieldData"]["box"]
        assert box == {"ComponentName0": "low", "ComponentName1": "high"}


def test_sections_of_a_vtu_file_without_a_place_are_named(tmp_path):
    text = """<VTKFile type="UnstructuredGrid" version="0.1" byte_order="LittleEndian">
<UnstructuredGrid><Hints/><Piece NumberOfPoints="4" NumberOfCells="1">
<PointData><Curve Name="x"/></PointData>
<Points><DataArray type="Float64" NumberOfComponents="3" format="ascii">
0 0 0 1 0 0 0 1 0 0 0 1</DataArray></Points>
<Cells><DataArray type="Int64" Name="connectivity" format="ascii">0 1 2 3</DataArray>
<DataArray type="Int64" Name="offsets" format="ascii">4</DataArray>
<DataArray type="Int64" Name="order" format="ascii">1</DataArray>
<DataArray type="UInt8" Name="types" format="ascii">10</DataArray></Cells>
</Piece></UnstructuredGrid></VTKFile>"""
    mesh = read(text, tmp_path / "a.vtu")
    assert set(mesh.extras["unread"]) == {
        "the section Hints",
        "the element Curve of PointData",
        "the array 'order' of the cells",
    }
    large = text.replace(">0 1 2 3<", ">0 1 2 99999999999<").replace("Int64", "Int32")
    refused(large, tmp_path / "a.vtu", "holds a number too large for int32")
