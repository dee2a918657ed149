"""VTU and XDMF where our own code stands for meshio's: each reads what the other writes."""

import base64
import zlib
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import h5py
import meshio
import numpy as np
import pytest
from io_meshes import plain_meshes
from texts import read, refused

from meshprep import io
from meshprep.io.compare import difference
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.ordering import Ordering


def grid(n):
    """n x n squares, each two triangles, with values that are hard to write."""
    rng = np.random.default_rng(n)
    at = np.arange(n * n).reshape(n, n)[:-1, :-1].reshape(-1, 1)
    lower, upper = np.array([0, 1, n]), np.array([1, n + 1, n])
    cells = np.concatenate([at + lower, at + upper]).astype(np.int32)
    points = rng.standard_normal((n * n, 3)) * 10.0 ** rng.integers(-300, 300, (n * n, 1))
    values = {
        "f8": rng.standard_normal(n * n),
        "f4": rng.standard_normal((n * n, 3)).astype(np.float32),
        "i4": rng.integers(-(2**31), 2**31, n * n, dtype=np.int32),
        "i8": rng.integers(-(2**63), 2**63, n * n, dtype=np.int64),
        "u8": rng.integers(2**63, 2**64, n * n, dtype=np.uint64),
    }
    values["f8"][:3] = np.nan, np.inf, -0.0
    return meshio.Mesh(points, [("triangle", cells)], point_data=values)


@pytest.mark.parametrize("n", [2, 50, 300])
@pytest.mark.parametrize(
    ("ending", "options"), [("vtu", {}), ("xdmf", {"data_format": "XML"})]
)
def test_files_of_meshio_are_read_exactly(tmp_path, ending, options, n):
    mesh, path = grid(n), tmp_path / f"a.{ending}"
    meshio.write(path, mesh, **options)
    found = io.read(path)
    assert np.array_equal(found.coordinates, mesh.points)
    assert np.array_equal(found.map("cells->nodes").table, mesh.cells[0].data)
    for name, values in mesh.point_data.items():
        # meshio writes single precision to XDMF with eight digits.
        near = 2e-7 if (ending, name) == ("xdmf", "f4") else 0
        read = found.dat(name, "nodes").values
        assert read.dtype == values.dtype
        if values.dtype.kind == "f":
            np.testing.assert_allclose(read, values, rtol=near)
        else:
            assert np.array_equal(read, values)


@pytest.mark.parametrize(
    "options",
    [
        {"compression": None},
        {"compression": "lzma"},
        {"binary": False},
        {"header_type": "UInt64"},
    ],
)
def test_every_kind_of_vtu_is_read(tmp_path, options):
    mesh, path = grid(40), tmp_path / "a.vtu"
    if "binary" in options:
        mesh = meshio.Mesh(np.round(mesh.points * 0 + 1.5), mesh.cells)
    meshio.vtu.write(path, mesh, **options)
    assert np.array_equal(io.read(path).coordinates, mesh.points)


HAS_NO_BLOCKS = ("triangle7", "pyramid13", "wedge12", "wedge15", "hexahedron24")


@pytest.mark.parametrize(
    ("name", "ending"),
    # meshio makes no blocks of these types
    [(name, "vtu") for name in plain_meshes() if name not in HAS_NO_BLOCKS]
    + [("tets with skin", "xdmf"), ("mixed solid", "xdmf")],
)
def test_meshio_reads_what_is_written(tmp_path, name, ending):
    mesh, path = plain_meshes()[name], tmp_path / f"a.{ending}"
    io.write(mesh, path)
    theirs = meshio.read(path)
    points = mesh.coordinates
    assert np.array_equal(theirs.points[:, : points.shape[1]], points)
    assert {b.type: b.data.tolist() for b in theirs.cells} == {
        s.cell_type: mesh.cell_map(s.name).table.tolist() for s in mesh.cell_sets
    }


def test_large_vtu_files_come_back(tmp_path):
    meshio.write(tmp_path / "a.vtu", grid(300))
    mesh = io.read(tmp_path / "a.vtu")
    io.write(mesh, tmp_path / "b.vtu")
    assert difference(mesh, io.read(tmp_path / "b.vtu")) is None


def test_headers_of_vtu_arrays_say_how_they_are_cut(tmp_path):
    """VTK allocates by them: how many blocks, of how many bytes, of how many in the last."""
    meshio.write(tmp_path / "a.vtu", grid(60))
    io.write(io.read(tmp_path / "a.vtu"), tmp_path / "b.vtu")
    arrays = [a.text for a in ElementTree.parse(tmp_path / "b.vtu").iter("DataArray")]
    counts = set()
    for text in arrays:
        count, whole, last = np.frombuffer(base64.b64decode(text[:32]), "u8")
        header = 8 * (3 + int(count))
        letters = -(-header // 3) * 4
        sizes = np.frombuffer(base64.b64decode(text[:letters])[:header], "u8")[3:].tolist()
        packed = base64.b64decode(text[letters:])
        cuts = np.cumsum([0, *sizes]).tolist()
        found = [len(zlib.decompress(packed[a:b])) for a, b in pairwise(cuts)]
        assert found == [whole] * (count - 1) + [last]
        counts.add(int(count))
    assert {1, 2, 3} <= counts


def test_base64_with_line_breaks_is_read(tmp_path):
    meshio.write(tmp_path / "a.vtu", grid(100))
    lines = (tmp_path / "a.vtu").read_text().split(">")
    # Behind the header, which meshio takes to be in one piece.
    broken = [f"{x[:2000]}\n{x[2000:]}" if len(x) > 8000 else x for x in lines]
    assert broken != lines
    (tmp_path / "b.vtu").write_text(">".join(broken))
    a, b = (io.read(tmp_path / f"{name}.vtu") for name in "ab")
    assert difference(a, b) is None


def test_a_vtu_file_of_several_pieces_is_refused(tmp_path):
    path = tmp_path / "a.vtu"
    meshio.write(path, grid(2))
    begin, piece, end = path.read_text().partition("<Piece")
    piece, close, end = (piece + end).partition("</Piece>")
    refused(
        f"{begin}{piece}{close}{piece}{close}{end}",
        path,
        "has 2 pieces: merge them into one first",
    )


@pytest.mark.parametrize("keep", [0, 3, 11, 100, 1000])
def test_a_vtu_array_cut_short_is_an_error(tmp_path, keep):
    path = tmp_path / "a.vtu"
    meshio.write(path, grid(50))
    begin, array, end = path.read_text().partition('format="binary">')
    values, rest = end.split("<", 1)
    refused(f"{begin}{array}{values[:keep]}<{rest}", path, "not a readable vtu file")


@pytest.mark.parametrize(
    "change", [lambda t: t[:-30], lambda t: t + " 5", lambda t: t + " x"]
)
def test_an_xdmf_item_of_another_length_is_an_error(tmp_path, change):
    path = tmp_path / "a.xdmf"
    meshio.write(path, grid(5), data_format="XML")
    begin, item, end = path.read_text().partition('Precision="8">')
    numbers, rest = end.split("<", 1)
    refused(f"{begin}{item}{change(numbers.rstrip())}<{rest}", path, "numbers")


def _xdmf(folder, **changed):
    """Two triangles with values on them, parts of the text changed."""
    parts = {
        "version": "3.0",
        "geometry": '<Geometry GeometryType="XYZ"><DataItem DataType="Float" Dimensions="5 3" '
        'Format="XML" Precision="8">0 0 0 1 0 0 0 1 0 1 1 0 2 2 0</DataItem></Geometry>',
        "offset": "",
        "cells": 'Dimensions="2 3" Format="XML">0 1 2 1 3 2',
        "values": _values("Cell"),
    }
    parts |= changed
    (folder / "a.xdmf").write_text(
        '<Xdmf Version="{version}"><Domain><Grid GridType="Uniform">{geometry}'
        '<Topology TopologyType="Triangle" NumberOfElements="2" {offset}>'
        '<DataItem DataType="Int" {cells}</DataItem></Topology>{values}'
        "</Grid></Domain></Xdmf>".format(**parts)
    )
    return io.read(folder / "a.xdmf")


def _values(center, name="q"):
    return (
        f'<Attribute Name="{name}" Center="{center}"><DataItem DataType="Float" '
        'Dimensions="2" Format="XML">1 2</DataItem></Attribute>'
    )


def test_what_xdmf_says_of_its_numbers_is_not_passed_over(tmp_path):
    with h5py.File(tmp_path / "cells.h5", "w") as file:
        file["three"] = np.array([[0, 1, 2], [1, 3, 2], [1, 4, 3]])
    plain = _xdmf(tmp_path, offset='BaseOffset="0" Order="0 1 2"')
    assert plain.map("cells->nodes").table.tolist() == [[0, 1, 2], [1, 3, 2]]
    for changed, message in (
        ({"offset": 'BaseOffset="1"'}, "counts nodes from 1"),
        ({"offset": 'Order="0 2 1"'}, "nodes of cells in the order 0 2 1"),
        ({"values": _values("Cell") * 2}, "several attributes 'q'"),
        (
            {"cells": 'Dimensions="2 3" Format="HDF">cells.h5:/three'},
            "declares 2 x 3 numbers",
        ),
    ):
        with pytest.raises(MeshprepError, match=message):
            _xdmf(tmp_path, **changed)
    whole = _xdmf(tmp_path, version="2.0", values=_values("Grid", "time"))
    assert whole.extras["field data"]["time"].tolist() == [1, 2]


def test_arrays_of_one_name_in_a_vtu_file_are_refused(tmp_path):
    cells = [("triangle", np.array([[0, 1, 2]]))]
    made = meshio.Mesh(
        np.eye(3), cells, {"p": np.arange(3.0), "r": np.arange(3.0)}, {"p": [[1.0]]}
    )
    meshio.write(tmp_path / "a.vtu", made, binary=False)
    assert [d.name for d in io.read(tmp_path / "a.vtu").dats].count("p") == 2
    text = (tmp_path / "a.vtu").read_text()
    refused(
        text.replace('Name="r"', 'Name="p"'),
        tmp_path / "b.vtu",
        "several arrays of one name, 'p'",
    )


VTU = """<VTKFile type="UnstructuredGrid" version="0.1" byte_order="LittleEndian">
<UnstructuredGrid><Piece NumberOfPoints="4" NumberOfCells="2">
<PointData Scalars="p &lt;&gt; 1" GlobalIds='ids'>
<DataArray type="Float64" Name="u" NumberOfComponents="3" ComponentName0="x > &quot;0&quot;"
  ComponentName2="z" format="ascii">0 1 2 3 4 5 6 7 8 9 10 11</DataArray>
<DataArray type="Float64" Name="p &lt;&gt; 1" format="ascii">0 1 2 3</DataArray>
<DataArray type="Int64" Name="ids" format="ascii">40 30 20 10</DataArray></PointData>
<CellData Vectors="gone"><DataArray type="Float32" Name="u" ComponentName0="magnitude"
  format="ascii">5 6</DataArray></CellData>
<Points><DataArray type="Float64" NumberOfComponents="3" ComponentName0="X" format="ascii">
0 0 0 1 0 0 1 1 0 0 1 0</DataArray></Points>
<Cells><DataArray type="Int32" Name="connectivity" format="ascii">0 1 2 0 2 3</DataArray>
<DataArray type="Int32" Name="offsets" format="ascii">3 6</DataArray>
<DataArray type="UInt8" Name="types" format="ascii">5 5</DataArray></Cells>
</Piece></UnstructuredGrid></VTKFile>
"""


def test_roles_and_names_of_components_stay_with_their_arrays(tmp_path):
    (tmp_path / "a.vtu").write_text(VTU)
    order = Ordering.from_new_to_old(np.array([3, 1, 0, 2]))
    mesh = io.read(tmp_path / "a.vtu").renumber({"nodes": order})
    assert io.write(mesh, tmp_path / "b.vtu") == []
    piece = ElementTree.parse(tmp_path / "b.vtu").getroot()[0][0]
    points, cells = piece.find("PointData"), piece.find("CellData")
    assert points.attrib == {"Scalars": "p <> 1", "GlobalIds": "ids"}
    assert cells.attrib == {}
    names = {a.get("Name"): [a.get(f"ComponentName{i}") for i in range(3)] for a in points}
    assert names == {"u": ['x > "0"', None, "z"], "p <> 1": [None] * 3, "ids": [None] * 3}
    assert cells[0].get("ComponentName0") == "magnitude"
    assert io.read(tmp_path / "b.vtu").dat("ids", "nodes").values.tolist() == [
        10,
        30,
        40,
        20,
    ]
    # notes of VTU: other formats go without
    assert io.write(mesh, tmp_path / "b.xdmf") == []


GRID = """<Xdmf Version="VERSION"><Domain><Grid Name="g">
<Time Value="0.5"/>
<Attribute Name="t" AttributeType="Tensor" Center="Node">
<DataItem Dimensions="3 3 3" Format="XML">NUMBERS</DataItem></Attribute>
<Geometry GeometryType="XYZ"><DataItem Dimensions="3 3" Format="XML">0 0 0 1 0 0 0 1 0
</DataItem></Geometry>
<Attribute Name="mass" AttributeType="Scalar" Center="Grid">
<DataItem Dimensions="1" Format="XML">7</DataItem></Attribute>
<Topology TopologyType="Triangle" NumberOfElements="1">
<DataItem Dimensions="1 3" KIND="Int" Format="XML">0 1 2</DataItem></Topology>
</Grid></Domain></Xdmf>"""


@pytest.mark.parametrize(("version", "name"), [("2.0", "NumberType"), ("3.0", "DataType")])
def test_what_an_xdmf_file_says_of_the_whole_mesh_is_kept(tmp_path, version, name):
    text = GRID.replace("VERSION", version).replace("KIND", name)
    text = text.replace("NUMBERS", " ".join(map(str, range(27))))
    mesh = read(text, tmp_path / "a.xdmf")
    assert io.write(mesh, tmp_path / "b.xdmf") == []
    back = io.read(tmp_path / "b.xdmf")
    assert list(back.extras["time step"].values()) == [0.5]
    assert back.extras["field data"]["mass"].tolist() == [7]
    tensors = back.dat("t", "nodes").values
    assert tensors.tolist() == np.arange(27.0).reshape(3, 9).tolist()


def test_values_of_the_whole_mesh_stay_in_a_vtu_file(tmp_path):
    """Two whole numbers were taken for a group and its dimension, and left out."""
    fields = '<FieldData><DataArray type="Float64" Name="TimeValue" NumberOfTuples="1">2.5'
    fields += '</DataArray><DataArray type="Int32" Name="range" NumberOfTuples="2">3 1</DataArray>'
    fields += (
        '<DataArray type="Float32" Name="box" NumberOfTuples="2" NumberOfComponents="2">'
    )
    fields += "1 2 3 4</DataArray></FieldData>"
    mesh = read(VTU.replace("<Piece", f"{fields}<Piece"), tmp_path / "a.vtu")
    assert io.write(mesh, tmp_path / "b.vtu") == []
    kept = io.read(tmp_path / "b.vtu").extras["field data"]
    assert {name: values.tolist() for name, values in kept.items()} == {
        **{"TimeValue": [2.5], "range": [3, 1]},
        "box": [[1, 2], [3, 4]],
    }
    with pytest.raises(
        MeshprepError, match="'TimeValue' of the field data, 'range' of the field"
    ):
        io.write(mesh, tmp_path / "b.su2")
    odd = {"by": np.array([b"me"]), "n": np.array([1.0])}
    words = replace(mesh, extras={"field data": odd})
    with pytest.raises(MeshprepError, match="'by' of the field data"):
        io.write(words, tmp_path / "c.vtu")
    assert io.write(words, tmp_path / "c.vtu", drop=True) == ["'by' of the field data"]
    assert list(io.read(tmp_path / "c.vtu").extras["field data"]) == ["n"]
