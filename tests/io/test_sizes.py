"""Cells with more or fewer nodes than their type has are refused by name, in every format."""

import h5py
import netCDF4
import numpy as np
import pytest
from good_files import ABAQUS, MEDIT, NASTRAN, VTK, VTU
from io_meshes import plain_meshes
from texts import read, refusal, refused

from meshprep import io

POINTS = np.random.default_rng(0).random((20, 3))


def vtk51(cell_types, offsets, connectivity, binary=True) -> bytes:
    """A legacy VTK file of version 5.1, as VTK writes it."""

    def numbers(values, kind):
        values = np.asarray(values)
        text = " ".join(map(str, values.ravel().tolist())).encode()
        return (values.astype(kind).tobytes() if binary else text) + b"\n"

    return b"".join(
        [
            b"# vtk DataFile Version 5.1\nt\n",
            b"BINARY\n" if binary else b"ASCII\n",
            f"DATASET UNSTRUCTURED_GRID\nPOINTS {len(POINTS)} double\n".encode(),
            numbers(POINTS, ">f8"),
            f"CELLS {len(offsets)} {len(connectivity)}\nOFFSETS vtktypeint64\n".encode(),
            numbers(offsets, ">i8"),
            b"CONNECTIVITY vtktypeint64\n",
            numbers(connectivity, ">i8"),
            f"CELL_TYPES {len(cell_types)}\n".encode(),
            numbers(cell_types, ">i4"),
        ]
    )


def vtk42(cell_types, rows, binary=True) -> bytes:
    flat = [n for row in rows for n in (len(row), *row)]
    cells = np.array(flat, ">i4").tobytes() if binary else " ".join(map(str, flat)).encode()
    types = (
        np.array(cell_types, ">i4").tobytes() if binary else " ".join(map(str, cell_types))
    )
    points = (
        POINTS.astype(">f8").tobytes() if binary else " ".join(map(str, POINTS.ravel()))
    )
    parts = [
        f"# vtk DataFile Version 4.2\nt\n{'BINARY' if binary else 'ASCII'}\n",
        f"DATASET UNSTRUCTURED_GRID\nPOINTS {len(POINTS)} double\n",
        *(points, f"\nCELLS {len(rows)} {len(flat)}\n", cells),
        *(f"\nCELL_TYPES {len(rows)}\n", types, "\n"),
    ]
    return b"".join(p if isinstance(p, bytes) else p.encode() for p in parts)


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize(
    ("number", "name", "has", "found"),
    [
        (12, "hexahedron", 8, 20),
        (13, "wedge", 6, 15),
        (10, "tetra", 4, 10),
        (24, "tetra10", 10, 4),
    ],
)
def test_vtk_cells_of_another_order(number, name, has, found, binary, tmp_path):
    nodes = np.concatenate([np.arange(found)] * 2)
    data = vtk51([number] * 2, [0, found, 2 * found], nodes, binary)
    told = f"cell 1 is of type '{name}', which has {has} nodes, but has {found} in the file"
    assert told in refused(data, tmp_path / "a.vtk")
    rows = [np.arange(found)] * 2
    assert told in refused(vtk42([number] * 2, rows, binary), tmp_path / "a.vtk")


@pytest.mark.parametrize("binary", [True, False])
def test_one_vtk_cell_among_good_ones(binary, tmp_path):
    data = vtk51([10, 10, 12], [0, 4, 9, 17], [*range(4), *range(5), *range(8)], binary)
    assert "cell 2 is of type 'tetra', which has 4 nodes, but has 5" in refused(
        data, tmp_path / "a.vtk"
    )
    # Two that are wrong in a way that the numbers together are right.
    data = vtk42([10, 10, 12], [range(5), range(3), range(8)], binary)
    assert "cell 1 is of type 'tetra', which has 4 nodes, but has 5" in refused(
        data, tmp_path / "a.vtk"
    )


def test_vtk_offsets_that_fall_or_end_elsewhere(tmp_path):
    told = refused(vtk51([10, 10], [0, 8, 4], range(4)), tmp_path / "a.vtk")
    assert "cell 1 is of type 'tetra', which has 4 nodes, but has 8" in told
    told = refused(vtk51([68], [0, 1], range(1)), tmp_path / "a.vtk")
    assert "has at least 2 nodes, but has 1" in told
    text = VTK.replace("CELLS 1 5", "CELLS 1 6").replace("0 1 2 3\n", "0 1 2 3 4\n")
    told = refused(text, tmp_path / "a.vtk")
    assert "its 1 cells take 5 numbers, but 6 are given" in told


def test_good_vtk_files_pass(tmp_path):
    for i, data in enumerate(
        [
            vtk51([12, 10], [0, 8, 12], [*range(8), *range(4)]),
            vtk42([12, 10], [range(8), range(4)]),
            vtk51([25], [0, 20], range(20)),
        ]
    ):
        path = tmp_path / f"{i}.vtk"
        assert read(data, path).size("cells") == (1 if i == 2 else 2)


def test_vtu_offsets(tmp_path):
    text = VTU.replace(">3</Data", ">2</Data").replace(">0 1 2<", ">0 1<")
    told = "cell 1 is of type 'triangle', which has 3 nodes, but has 2 in the file"
    assert told in refused(text, tmp_path / "a.vtu")
    assert "array 'connectivity' has 4 numbers where 3 belong" in refused(
        VTU.replace(">0 1 2<", ">0 1 2 1<"), tmp_path / "a.vtu"
    )


def test_values_of_other_lengths(tmp_path):
    data = '<CellData><DataArray type="Int32" Name="q" format="ascii">7 8</DataArray></CellData>'
    told = refused(VTU.replace("</Piece>", f"{data}</Piece>"), tmp_path / "a.vtu")
    assert "array 'q' has 2 numbers where 1 belong" in told


def xdmf(topology: str) -> str:
    points = " ".join(map(str, POINTS.ravel()))
    return (
        '<Xdmf Version="3.0"><Domain><Grid Name="g"><Geometry GeometryType="XYZ">'
        f'<DataItem DataType="Float" Precision="8" Dimensions="20 3" Format="XML">{points}'
        f"</DataItem></Geometry>{topology}</Grid></Domain></Xdmf>"
    )


def topology(kind: str, dims: str, numbers) -> str:
    text = " ".join(map(str, numbers))
    return (
        f'<Topology TopologyType="{kind}" NumberOfElements="1"><DataItem DataType="Int" '
        f'Precision="8" Dimensions="{dims}" Format="XML">{text}</DataItem></Topology>'
    )


@pytest.mark.parametrize(
    ("kind", "dims", "numbers", "told"),
    [
        ("Hexahedron", "1 20", range(20), "'hexahedron', which has 8 nodes, but has 20"),
        ("Polyline", "1 5", range(5), "'line', which has 2 nodes, but has 5"),
        ("Tet_10", "1 4", range(4), "'tetra10', which has 10 nodes, but has 4"),
        ("Hexahedron", "9", range(9), "9 numbers are given for cells of 8 nodes"),
        (
            "Mixed",
            "9",
            (6, 0, 1, 2, 3, 2, 3, 4, 5),
            "cell 2 is of type 'line', which has 2",
        ),
        (
            "Mixed",
            "8",
            (6, 0, 1, 2, 3, 5, 0, 1),
            "cell 2 is of type 'quad', which has 4 nodes",
        ),
        ("Mixed", "4", (99, 0, 1, 2), "cell 1 is of XDMF's type 99"),
    ],
)
def test_xdmf(kind, dims, numbers, told, tmp_path):
    assert told in refused(xdmf(topology(kind, dims, numbers)), tmp_path / "a.xdmf")


def test_points_among_the_cells_of_xdmf(tmp_path):
    numbers = (1, 1, 5, 2, 2, 0, 1, 6, 0, 1, 2, 3, 0x26, *range(10))
    (tmp_path / "a.xdmf").write_text(xdmf(topology("Mixed", str(len(numbers)), numbers)))
    mesh = io.read(tmp_path / "a.xdmf", dimension=3)
    assert mesh.cell_map("vertex").table.tolist() == [[5]]
    assert mesh.cell_map("line").table.tolist() == [[0, 1]]
    assert mesh.cell_map("tetra10").table.tolist() == [list(range(10))]


# Good file, what to write otherwise, and what is said of it.
WRONG = [
    (
        ".mesh",
        MEDIT,
        "1 2 3 4 7",
        "1 2 3 7",
        "declares 1 Tetrahedra of 5 numbers each, but",
    ),
    (".mesh", MEDIT, "1 2 3 4 7", "1 2 3 4 1 7", "of 5 numbers each, but has 6"),
    (
        ".bdf",
        NASTRAN,
        "5,1,2,3\n",
        "5,1,2\n",
        "cell 1 is of type 'triangle', which has 3",
    ),
    (
        ".bdf",
        NASTRAN,
        "CTRIA3,1",
        "CTETRA,1",
        "cell 1 is of type 'tetra', which has 4 nodes",
    ),
    (".inp", ABAQUS, "\n1, 1, 2, 3\n", "\n1, 1, 2\n", "element 1 of type CPS3 is of type"),
    (
        ".inp",
        ABAQUS,
        "\n1, 1, 2, 3\n",
        "\n1, 1, 2,\n3, 1\n",
        "which has 3 nodes, but has 4",
    ),
    (
        ".inp",
        ABAQUS,
        "\n1, 1, 2, 3\n",
        "\n1, 1, 2,\n",
        "element 1 of type CPS3 ends in the middle",
    ),
]


@pytest.mark.parametrize(("ending", "good", "old", "new", "told"), WRONG)
def test_text_formats(ending, good, old, new, told, tmp_path):
    path = tmp_path / f"a{ending}"
    read(good, path)
    assert good.count(old) == 1
    assert told in refused(good.replace(old, new), tmp_path / f"a{ending}")


GMSH2 = """$MeshFormat
2.2 0 8
$EndMeshFormat
$Nodes
5
1 0 0 0
2 1 0 0
3 0 1 0
4 0 0 1
5 1 1 1
$EndNodes
$Elements
2
1 4 2 0 1 1 2 3 4
2 4 2 0 1 2 3 4 5
$EndElements
"""
GMSH4 = """$MeshFormat
4.1 0 8
$EndMeshFormat
$Nodes
1 5 1 5
3 1 0 5
1
2
3
4
5
0 0 0
1 0 0
0 1 0
0 0 1
1 1 1
$EndNodes
$Elements
1 2 1 2
3 1 4 2
1 1 2 3 4
2 2 3 4 5
$EndElements
"""


@pytest.mark.parametrize("good", [GMSH2, GMSH4], ids=["2.2", "4.1"])
@pytest.mark.parametrize(
    ("first", "nodes"), [("1 2 3 4 1", 5), ("1 2 3", 3), ("1 2 3 4 2 4 2 0 1 2 3 4 5", 13)]
)
def test_gmsh(good, first, nodes, tmp_path):
    """The nodes of the next element, or its number, are not taken for those of this one."""
    path = tmp_path / "good.msh"
    assert read(good, path).size("cells") == 2
    told = f"element 1 is of type 'tetra', which has 4 nodes, but has {nodes} in the file"
    assert told in refused(good.replace("1 1 2 3 4\n", f"1 {first}\n"), tmp_path / "a.msh")


def test_exodus(tmp_path):
    path = tmp_path / "a.e"
    io.write(plain_meshes()["hexes"], path)
    with netCDF4.Dataset(path, "a") as file:
        file["connect1"].elem_type = "HEX20"
    told = refusal(path)
    assert "the elements of block 1 are of type HEX20 with 8 nodes" in told
    with netCDF4.Dataset(path, "a") as file:
        file["connect1"].elem_type = "WEDGE"
    assert "of type WEDGE with 8 nodes, which is not supported" in refusal(path)


def widened(path, name):
    """Give the cells of a dataset a column more."""
    with h5py.File(path, "a") as file:
        table = file[name][()]
        attrs = dict(file[name].attrs)
        del file[name]
        wide = np.hstack([table, table[:, :1]]) if table.ndim == 2 else table
        file.create_dataset(name, data=wide).attrs.update(attrs)


def test_med(tmp_path):
    path = tmp_path / "a.med"
    io.write(plain_meshes()["hexes"], path)
    with h5py.File(path, "a") as file:
        cells = next(iter(file["ENS_MAA/mesh"].values()))["MAI"]
        cells.move("HE8", "TE4")
    told = (
        "cell 1 of set 'cells' is of type 'tetra', which has 4 nodes, but has 8 in the file"
    )
    assert told in refusal(path)
