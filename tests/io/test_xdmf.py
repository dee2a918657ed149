"""XDMF files of other programs: references, parts of the mesh, steps of time, second order."""

import h5py
import meshio
import numpy as np
import other_readers
import pytest
from texts import read, refused

from meshprep import io
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.ordering import Ordering

POINTS = "0 0 0 1 0 0 1 1 0 0 1 0 2 0 0 2 1 0"
GEOMETRY = f"""<Geometry GeometryType="XYZ"><DataItem Dimensions="6 3" NumberType="Float"
Precision="8" Format="XML">{POINTS}</DataItem></Geometry>"""
TOPOLOGY = """<Topology TopologyType="Quadrilateral" NumberOfElements="2">
<DataItem Dimensions="2 4" NumberType="Int" Format="XML">0 1 2 3 1 4 5 2</DataItem></Topology>"""
START = '<?xml version="1.0"?><!DOCTYPE Xdmf SYSTEM "Xdmf.dtd" []>'
START += '<Xdmf Version="3.0" xmlns:xi="https://www.w3.org/2001/XInclude"><Domain>'
END = "</Domain></Xdmf>"
MESH = f'<Grid Name="wing" GridType="Uniform">{TOPOLOGY}{GEOMETRY}</Grid>'


def attribute(name, center, values, kind="Int"):
    text = " ".join(map(str, np.ravel(values)))
    dims = " ".join(map(str, np.shape(values)))
    return f"""<Attribute Name="{name}" AttributeType="Scalar" Center="{center}">
<DataItem Dimensions="{dims}" NumberType="{kind}" Precision="8" Format="XML">{text}</DataItem>
</Attribute>"""


def part(name, kind, rows, attributes):
    """A grid of cells of the mesh, as dolfinx writes its tags."""
    text = " ".join(map(str, np.ravel(rows)))
    n, width = np.shape(rows)
    return f"""<Grid Name="{name}" GridType="Uniform">
<xi:include xpointer="xpointer(/Xdmf/Domain/Grid/Geometry)" />
<Topology TopologyType="{kind}" NumberOfElements="{n}" NodesPerElement="{width}">
<DataItem Dimensions="{n} {width}" NumberType="Int" Format="XML">{text}</DataItem></Topology>
{attributes}</Grid>"""


TAGS = attribute("facet_tags", "Cell", [7, 8])


def turned(mesh):
    """The mesh in another order."""
    orders = {"nodes": np.array([5, 3, 1, 0, 2, 4]), "cells": np.array([1, 0])}
    return mesh.renumber({n: Ordering.from_new_to_old(o) for n, o in orders.items()})


def by_place(mesh, name):
    """Values of a grid by the places of the nodes of each cell."""
    (d,) = [d for d in mesh.dats if d.name == name and d.attrs.get("grid")]
    table = mesh.cell_map(d.set).table
    rows = np.arange(len(table)) if d.index is None else d.index
    points = [tuple(p) for p in mesh.coordinates.tolist()]
    found = {}
    for row, value in zip(rows, d.values.tolist(), strict=True):
        found[frozenset(points[n] for n in table[row])] = value
    return d.attrs["grid"], found


def test_tags_of_dolfinx_stay_in_grids_of_their_own(tmp_path):
    facets = part("facet_tags", "PolyLine", [[0, 1], [1, 4]], TAGS)
    more = part("inlet", "PolyLine", [[4, 1], [4, 5]], attribute("inlet", "Cell", [1, 2]))
    cells = part("zones", "Quadrilateral", [[1, 4, 5, 2]], attribute("zones", "Cell", [30]))
    mesh = read(START + MESH + facets + more + cells + END, tmp_path / "a.xdmf")
    assert mesh.sizes == {"nodes": 6, "cells": 2, "line": 3}
    moved = turned(mesh)
    moved = moved.renumber({"line": Ordering.from_new_to_old(np.array([2, 0, 1]))})
    assert io.write(moved, tmp_path / "b.xdmf") == []
    back = io.read(tmp_path / "b.xdmf")
    for name in ("facet_tags", "inlet", "zones"):
        assert by_place(back, name) == by_place(mesh, name)
        assert by_place(back, name)[0] == name
    assert sorted(by_place(back, "inlet")[1].values()) == [1, 2]
    text = (tmp_path / "b.xdmf").read_text()
    assert '<Grid Name="wing" GridType="Uniform">' in text
    # what has values on a part alone goes to no format without such parts
    with pytest.raises(MeshprepError, match="values 'facet_tags'"):
        io.write(mesh, tmp_path / "b.vtu")


def test_facets_of_one_grid_are_no_cells_of_the_mesh(tmp_path):
    """So that a reader of the grid of the mesh finds cells of one dimension."""
    facets = part("facet_tags", "PolyLine", [[0, 1], [1, 4]], TAGS)
    mesh = read(START + MESH + facets + END, tmp_path / "a.xdmf")
    assert io.write(mesh, tmp_path / "b.xdmf") == []
    grid = load(tmp_path / "b.xdmf")
    assert grid.GetNumberOfBlocks() == 2
    whole, tags = grid.GetBlock(0), grid.GetBlock(1)
    assert [whole.GetCellType(i) for i in range(whole.GetNumberOfCells())] == [9, 9]
    array = tags.GetCellData().GetArray("facet_tags")
    assert [array.GetComponent(i, 0) for i in range(2)] == [7, 8]
    assert tags.GetNumberOfCells() == 2


def load(path):
    """What VTK's reader, which is ParaView's, finds."""
    reader = other_readers.package("vtkmodules.vtkIOXdmf2").vtkXdmfReader()
    reader.SetFileName(str(path))
    reader.UpdateInformation()
    reader.Update()
    return reader.GetOutputDataObject(0)


def series(n, head=""):
    """As FEniCS writes a field: the mesh is in the first grid, later ones refer to it."""
    grids = ""
    for k in range(n):
        own = TOPOLOGY + GEOMETRY
        if k:
            own = '<xi:include xpointer="xpointer(//Grid[@Name=&quot;TimeSeries&quot;]/Grid[1]'
            own += '/*[self::Topology or self::Geometry])" />'
        values = attribute("u", "Node", np.arange(6.0) + 10 * k, "Float")
        values += attribute("p", "Cell", [[k], [k + 1]], "Float")
        grids += f'<Grid Name="u_{k}">{own}<Time Value="{0.5 * k}" />{values}</Grid>'
    text = f'<Grid Name="TimeSeries" GridType="Collection" CollectionType="Temporal">{grids}</Grid>'
    return START.replace("https", "http") + head + text + END


def test_every_step_of_a_time_series_is_kept(tmp_path):
    mesh = read(series(3), tmp_path / "a.xdmf")
    assert list(mesh.extras["time step"].values()) == [0, 0.5, 1]
    assert [d.attrs.get("step", 0) for d in mesh.dats if d.name == "u"] == [0, 1, 2]
    moved = turned(mesh)
    assert io.write(moved, tmp_path / "b.xdmf") == []
    back = io.read(tmp_path / "b.xdmf")
    assert list(back.extras["time step"].values()) == [0, 0.5, 1]
    for k in range(3):
        u = next(d for d in back.dats if d.name == "u" and d.attrs.get("step", 0) == k)
        assert u.values.tolist() == [10 * k + i for i in (5, 3, 1, 0, 2, 4)]
        p = next(d for d in back.dats if d.name == "p" and d.attrs.get("step", 0) == k)
        assert p.values.tolist() == [k + 1, k]
    with meshio.xdmf.TimeSeriesReader(tmp_path / "b.xdmf") as theirs:
        points, cells = theirs.read_points_cells()
        assert np.array_equal(points, back.coordinates)
        assert cells[0].data.tolist() == back.cell_map("cells").table.tolist()
        assert theirs.num_steps == 3
        time, point_data, cell_data = theirs.read_data(2)
        assert time == 1
        assert point_data["u"].tolist() == [25, 23, 21, 20, 22, 24]
        assert cell_data["p"][0].ravel().tolist() == [3, 2]
    # Exodus has steps, too
    io.write(mesh, tmp_path / "b.e", drop=True)
    steps = [d.values[2] for d in io.read(tmp_path / "b.e").dats if d.name == "u"]
    assert steps == [2, 12, 22]


def test_a_mesh_beside_its_time_series(tmp_path):
    mesh = read(series(2, head=MESH), tmp_path / "a.xdmf")
    assert mesh.sizes == {"nodes": 6, "cells": 2}
    assert io.write(mesh, tmp_path / "b.xdmf") == []
    changed = series(2, head=MESH).replace(
        '<xi:include xpointer="xpointer(//Grid[@Name=&quot;TimeSeries&quot;]/Grid[1]'
        '/*[self::Topology or self::Geometry])" />',
        TOPOLOGY.replace("0 1 2 3 1 4 5 2", "1 2 3 0 4 5 2 1") + GEOMETRY,
    )
    refused(changed, tmp_path / "d.xdmf", "the cells change at step 2 of time")


def test_items_that_stand_for_others(tmp_path):
    """As PyLith writes: entities, references by path, and a step of an array of all steps."""
    with h5py.File(tmp_path / "heavy.h5", "w") as file:
        file["cells"] = np.array([[0, 1, 2, 3], [1, 4, 5, 2]], float)
        file["u"] = np.arange(36.0).reshape(3, 6, 2)
    text = f"""<?xml version="1.0"?>
<!DOCTYPE Xdmf SYSTEM "Xdmf.dtd" [<!ENTITY HeavyData "heavy.h5">]>
<Xdmf><Domain Name="domain">
<DataItem Name="cells" ItemType="Uniform" Format="HDF" NumberType="Float" Precision="8"
Dimensions="2 4">&HeavyData;:/cells</DataItem>
<Grid Name="series" GridType="Collection" CollectionType="Temporal">
<Time TimeType="List"><DataItem NumberType="Float" Dimensions="2">0.0 4.0</DataItem></Time>
{"".join(step(k) for k in (0, 2))}</Grid></Domain></Xdmf>"""
    mesh = read(text, tmp_path / "a.xmf")
    assert mesh.cell_map("cells").table.tolist() == [[0, 1, 2, 3], [1, 4, 5, 2]]
    assert list(mesh.extras["time step"].values()) == [0, 4]
    u = [d.values for d in mesh.dats if d.name == "u"]
    assert u[0].tolist() == np.arange(12.0).reshape(6, 2).tolist()
    assert u[1].tolist() == (np.arange(12.0).reshape(6, 2) + 24).tolist()
    wrong = text.replace('[@Name="cells"]', '[@Name="none"]')
    refused(wrong, tmp_path / "a.xmf", "which is not there")
    beyond = text.replace(">2 0 0 1 1 1 1 6 2<", ">2 0 0 1 1 1 2 6 2<")
    refused(
        beyond,
        tmp_path / "a.xmf",
        "a HyperSlab takes 2 x 6 x 2 numbers, but there are 1 x 6",
    )


def step(k):
    return f"""<Grid Name="domain" GridType="Uniform">
<Topology TopologyType="Quadrilateral" NumberOfElements="2">
<DataItem Reference="XML"> /Xdmf/Domain/DataItem[@Name="cells"] </DataItem></Topology>{GEOMETRY}
<Attribute Name="u" Type="Vector" Center="Node">
<DataItem ItemType="HyperSlab" Dimensions="1 6 2" Type="HyperSlab">
<DataItem Dimensions="3 3" Format="XML">{k} 0 0 1 1 1 1 6 2</DataItem>
<DataItem DataType="Float" Precision="8" Dimensions="3 6 2" Format="HDF">&HeavyData;:/u</DataItem>
</DataItem></Attribute></Grid>"""


def test_what_is_said_of_the_whole_mesh_stays(tmp_path):
    more = '<Information Name="who" Value="me"/><Time Value="2.5"/>'
    more += attribute("mass", "Grid", [7.5], "Float")
    text = START + MESH.replace("</Grid>", f"{more}</Grid>") + END
    mesh = read(text, tmp_path / "a.xdmf")
    assert io.write(mesh, tmp_path / "b.xdmf") == []
    back = io.read(tmp_path / "b.xdmf")
    assert back.extras["field data"]["who"].tolist() == ["me"]
    assert back.extras["field data"]["mass"].tolist() == [7.5]
    assert list(back.extras["time step"].values()) == [2.5]
    assert io.write(mesh, tmp_path / "b.vtu", drop=True) == ["'2.5' of the time step"]
    assert io.read(tmp_path / "b.vtu").extras["field data"]["who"].tolist() == ["me"]


def test_values_on_edges_and_sets_are_named(tmp_path):
    more = attribute("e", "Edge", np.arange(7)) + '<Set Name="left" SetType="Node"/>'
    text = START + MESH.replace("</Grid>", f"{more}</Grid>") + END
    mesh = read(text, tmp_path / "a.xdmf")
    assert set(mesh.extras["unread"]) == {"values 'e' on XDMF's Edges", "the set 'left'"}


@pytest.mark.parametrize("old", [' Dimensions="6 3"', 'Dimensions="2 4" '])
def test_items_without_dimensions_or_with_flat_ones(old, tmp_path):
    flat = {' Dimensions="6 3"': ' Dimensions="18"', 'Dimensions="2 4" ': 'Dimensions="8" '}
    vector = attribute("v", "Node", np.arange(18.0), "Float")
    text = START + MESH.replace("</Grid>", f"{vector}</Grid>") + END
    for new in ("", flat[old]):
        mesh = read(text.replace(old, new), tmp_path / "a.xdmf")
        assert mesh.cell_map("cells").table.tolist() == [[0, 1, 2, 3], [1, 4, 5, 2]]
        assert (
            mesh.dat("v", "nodes").values.tolist() == np.arange(18.0).reshape(6, 3).tolist()
        )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Tet_10", "tetra10"),
        ("Tetrahedron_10", "tetra10"),
        ("TRI_6", "triangle6"),
        ("Quad_8", "quad8"),
        ("Hex_20", "hexahedron20"),
        ("Wedge_15", "wedge15"),
        ("Pyramid_13", "pyramid13"),
        ("Hexahedron_27", "hexahedron27"),
    ],
)
def test_cells_of_second_order_come_in_and_go_out(name, kind, tmp_path):
    n = int("".join(c for c in kind if c.isdigit()))
    points = np.random.default_rng(0).random((n, 3))
    text = f"""{START}<Grid><Topology TopologyType="{name}" NumberOfElements="1">
<DataItem Dimensions="1 {n}" NumberType="Int">{" ".join(map(str, range(n)))}</DataItem></Topology>
<Geometry><DataItem Dimensions="{n} 3" Precision="8">{" ".join(map(str, points.ravel()))}</DataItem>
</Geometry></Grid>{END}"""
    mesh = read(text, tmp_path / "a.xdmf")
    assert mesh.cell_sets[0].cell_type == kind
    assert io.write(mesh, tmp_path / "b.xdmf") == []
    if kind not in ("wedge15", "pyramid13"):  # of which meshio makes no blocks
        assert meshio.read(tmp_path / "b.xdmf").cells[0].type == kind
    theirs = load(tmp_path / "b.xdmf")
    assert [theirs.GetCell(0).GetPointId(i) for i in range(n)] == list(range(n))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            MESH + MESH.replace(POINTS, POINTS.replace("2 1 0", "3 1 0")),
            "has points of its own",
        ),
        (MESH.replace("Uniform", "Tree"), "has a grid of type 'Tree'"),
        (MESH.replace("Quadrilateral", "3DSMesh"), "is a structured grid"),
        (MESH.replace(TOPOLOGY, ""), "has 0 topologies and 1 geometries"),
        (MESH.replace("<Geometry ", '<Geometry Reference="/Xdmf/Domain/X" '), "not there"),
        (MESH.replace("0 1 2 3 1", "0 1 2 3.5 1"), "something is no number"),
        (MESH.replace("0 1 2 3 1", "0 1 2 99999999999 1"), "a number is too large for Int"),
        (MESH.replace("0 1 2 3 1 4 5 2", "0 1 2 3 1 4 5"), "2 x 4 numbers are declared"),
        (MESH.replace("<Topology ", "<Fun/><Topology "), "has a section Fun"),
        (
            '<DataItem Reference="XML" Name="a">/Xdmf/Domain/DataItem</DataItem>',
            "in a circle",
        ),
    ],
)
def test_what_cannot_be_read_is_one_line(text, message, tmp_path):
    refused(START + text + END, tmp_path / "a.xdmf", message)
