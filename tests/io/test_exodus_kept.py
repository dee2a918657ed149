"""Exodus: types of elements, sides, truth tables and values beside sets, after a new order."""

import netCDF4
import numpy as np
import other_readers
import pytest
from exodus_files import Seen, Writer, squares
from texts import refusal

from meshprep import io
from meshprep.mesh import Dat
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.ordering import Ordering

pytestmark = pytest.mark.usefixtures("read_here")


def reordered(old, new, **options):
    """Write the file in a random order that keeps the cells of a block together."""
    mesh, chance = io.read(old), np.random.default_rng(3)
    orders = {"nodes": chance.permutation(mesh.size("nodes"))}
    for s in mesh.cell_sets:
        tag = mesh.tag("exodus:block", s.name)
        block = np.zeros(s.size) if tag is None else tag.first_ids()
        mixed = chance.permutation(s.size)
        orders[s.name] = mixed[np.argsort(block[mixed], kind="stable")]
    turned = {name: Ordering.from_new_to_old(order) for name, order in orders.items()}
    return io.write(mesh.renumber(turned), new, **options)


@pytest.fixture
def shells(tmp_path):
    """Nine shells, the top face of all as a side set, and the edge at y = 0 as another."""
    path = tmp_path / "shells.exo"
    with Writer(path) as file:
        file.grid(3)
        file.block(1, "SHELL4", squares(3))
        file.put("eb_prop1", [7], "num_el_blk", name="ID")
        file.put("ss_prop1", [1, 2], "num_side_sets", name="ID")
        file.names("ss_names", "num_side_sets", ["top", "edge"])
        file.side_set(1, np.arange(1, 10), [1] * 9)
        file.side_set(2, [3, 1, 2], [3] * 3)
        file.put("dist_fact_ss2", np.arange(6) / 4, "num_df_ss2")
    return path


def test_sides_of_shells_are_where_they_were(shells, tmp_path):
    """Shells became quads, whose first side is another one."""
    assert reordered(shells, tmp_path / "b.exo") == []
    old, new = Seen(shells), Seen(tmp_path / "b.exo")
    assert new.types == {7: "SHELL4"}
    assert new.side_sets() == old.side_sets()
    assert new.side_sets()[2][1][0] == ((2.0, 0.0, 0.0), (3.0, 0.0, 0.0))
    assert new.data["dist_fact_ss2"].tolist() == [0, 0.25, 0.5, 0.75, 1, 1.25]
    with netCDF4.Dataset(tmp_path / "b.exo") as file:
        assert file.title == "a plate"


def test_vtk_sees_the_same_sides(shells, tmp_path):
    vtk = other_readers.package("vtk")
    reordered(shells, tmp_path / "b.exo")

    def edges(path):
        reader = vtk.vtkExodusIIReader()
        reader.SetFileName(str(path))
        reader.UpdateInformation()
        for k in range(reader.GetNumberOfObjects(reader.SIDE_SET)):
            reader.SetObjectStatus(reader.SIDE_SET, k, 1)
        reader.Update()
        blocks, found = reader.GetOutput(), []
        sets = blocks.GetBlock(4)
        for k in range(sets.GetNumberOfBlocks()):
            grid = sets.GetBlock(k)
            for i in range(grid.GetNumberOfCells()):
                points = grid.GetCell(i).GetPoints()
                corners = [points.GetPoint(j) for j in range(points.GetNumberOfPoints())]
                found.append((k, tuple(sorted(corners))))
        return sorted(found)

    assert len(edges(shells)) == 12
    assert edges(tmp_path / "b.exo") == edges(shells)


@pytest.mark.parametrize("elem_type", ["BEAM2", "TRUSS", "EDGE2", "BAR", "beam"])
def test_elements_of_lines_keep_their_type(elem_type, tmp_path):
    with Writer(tmp_path / "a.exo") as file:
        file.grid(2)
        file.block(1, elem_type, [[0, 1], [1, 2], [2, 5]])
        file.put("eb_prop1", [1], "num_el_blk", name="ID")
    assert reordered(tmp_path / "a.exo", tmp_path / "b.exo") == []
    assert Seen(tmp_path / "b.exo").types == {1: elem_type}


def shells_and_quads(path):
    """A block of shells and one of quads, with one side set through both."""
    with Writer(path) as file:
        file.grid(2)
        file.block(1, "SHELL4", squares(2)[:2])
        file.block(2, "QUAD4", squares(2)[2:])
        file.put("eb_prop1", [10, 20], "num_el_blk", name="ID")
        file.put("ss_prop1", [5], "num_side_sets", name="ID")
        file.names("ss_names", "num_side_sets", ["rim"])
        file.side_set(1, [1, 4, 2], [3, 2, 1])


def test_shells_beside_quads_have_sides_of_their_own(tmp_path):
    shells_and_quads(tmp_path / "a.exo")
    assert reordered(tmp_path / "a.exo", tmp_path / "b.exo") == []
    old, new = Seen(tmp_path / "a.exo"), Seen(tmp_path / "b.exo")
    assert new.types == {10: "SHELL4", 20: "QUAD4"}
    assert new.side_sets() == old.side_sets()


def test_an_order_that_mixes_shells_and_quads_loses_their_types_by_name(tmp_path):
    shells_and_quads(tmp_path / "a.exo")
    mesh = io.read(tmp_path / "a.exo")
    mixed = mesh.renumber({"cells": Ordering.from_new_to_old(np.array([0, 2, 1, 3]))})
    with pytest.raises(
        MeshprepError, match="the types QUAD4, SHELL4 of elements of 'cells'"
    ):
        io.write(mixed, tmp_path / "b.exo")
    lost = io.write(mixed, tmp_path / "b.exo", drop=True)
    assert "the list 'rim' of 'cells', whose sides have other numbers" in lost
    assert Seen(tmp_path / "b.exo").types == {1: "QUAD4"}


def test_the_second_of_two_sets_of_one_name_keeps_it(tmp_path):
    with Writer(tmp_path / "a.exo") as file:
        file.grid(2)
        file.block(1, "QUAD4", squares(2))
        file.put("eb_prop1", [1], "num_el_blk", name="ID")
        file.put("ss_prop1", [8, 3], "num_side_sets", name="ID")
        file.names("ss_names", "num_side_sets", ["wall", "wall"])
        file.side_set(1, [1], [1])
        file.side_set(2, [4], [3])
        file.put("ns_prop1", [8, 3], "num_node_sets", name="ID")
        file.names("ns_names", "num_node_sets", ["wall", "wall"])
        file.put("node_ns1", [1, 2], "num_nod_ns1")
        file.put("node_ns2", [9], "num_nod_ns2")
    assert reordered(tmp_path / "a.exo", tmp_path / "b.exo") == []
    old, new = Seen(tmp_path / "a.exo"), Seen(tmp_path / "b.exo")
    assert {number: title for number, (title, _) in new.side_sets().items()} == {
        8: "wall",
        3: "wall",
    }
    assert new.side_sets() == old.side_sets()
    assert new.words("ns_names") == ["wall", "wall"]
    assert new.data["ns_prop1"].tolist() == [8, 3]


def with_values(path):
    """Values of elements: u on block 800 alone, v on block 1, w on both, and an attribute."""
    with Writer(path) as file:
        file.grid(3)
        file.put("time_whole", [0.5, 1.5], "time_step")
        file.block(1, "TRI3", [[0, 1, 4], [1, 5, 4]])
        file.block(2, "QUAD4", squares(3)[1:3])
        file.block(3, "QUAD4", squares(3)[3:])
        file.put("eb_prop1", [1, 800, 4], "num_el_blk", name="ID")
        file.names("name_elem_var", "num_elem_var", ["u", "v", "w"])
        table = np.array([[0, 1, 1], [1, 0, 1], [0, 0, 1]], np.int32)
        file.put("elem_var_tab", table, "num_el_blk", "num_elem_var")
        for b, size in enumerate((2, 2, 6), 1):
            for i in np.flatnonzero(table[b - 1]) + 1:
                values = np.arange(2.0 * size).reshape(2, size) + 100 * b + 10 * i
                key = f"vals_elem_var{i}eb{b}"
                file.put(key, values, "time_step", f"num_el_in_blk{b}")
        file.put("attrib2", [[0.1, 7], [0.2, 8]], "num_el_in_blk2", "num_att_in_blk2")
        file.names("attrib_name2", "num_att_in_blk2", ["thickness", "offset"])
        file.put("attrib3", np.arange(6.0)[:, None], "num_el_in_blk3", "num_att_in_blk3")


def test_values_of_one_block_stay_in_that_block(tmp_path):
    """The truth table was filled, and the other blocks got NaN."""
    with_values(tmp_path / "a.exo")
    assert reordered(tmp_path / "a.exo", tmp_path / "b.exo") == []
    old, new = Seen(tmp_path / "a.exo"), Seen(tmp_path / "b.exo")
    assert new.element_values() == old.element_values()
    assert sorted(new.element_values()) == [
        ("u", 800),
        ("v", 1),
        ("w", 1),
        ("w", 4),
        ("w", 800),
    ]


def test_attributes_follow_their_elements(tmp_path):
    with_values(tmp_path / "a.exo")
    assert reordered(tmp_path / "a.exo", tmp_path / "b.exo") == []
    old, new = Seen(tmp_path / "a.exo"), Seen(tmp_path / "b.exo")

    def attributes(seen):
        found = {}
        for b, (number, cells) in enumerate(seen.blocks.items(), 1):
            if f"attrib{b}" in seen.data:
                rows = seen.data[f"attrib{b}"].tolist()
                found[number] = (
                    seen.words(f"attrib_name{b}"),
                    dict(zip(cells, rows, strict=True)),
                )
        return found

    assert attributes(new) == attributes(old)
    assert attributes(new)[800][0] == ["thickness", "offset"]
    assert attributes(new)[4][0] == []


def test_what_has_no_time_is_there_at_every_time(tmp_path):
    """Numbers of elements were NaN from the second step on."""
    with_values(tmp_path / "a.exo")
    mesh = io.read(tmp_path / "a.exo")
    ids = [Dat("id", s.name, np.arange(float(s.size))) for s in mesh.cell_sets]
    io.write(
        mesh.with_(dats=[*ids, Dat("n", "nodes", np.arange(16.0))]), tmp_path / "b.exo"
    )
    values = Seen(tmp_path / "b.exo").element_values()
    assert all(a == b for a, b in values["id", 1].values())
    with netCDF4.Dataset(tmp_path / "b.exo") as file:
        assert file["vals_nod_var1"][:].tolist() == [list(range(16))] * 2
    back = io.read(tmp_path / "b.exo")
    assert [d.attrs for d in back.dats if d.name == "n"] == [{}]


def test_values_that_end_after_the_first_step_end_there(tmp_path):
    with Writer(tmp_path / "a.exo") as file:
        file.grid(1)
        file.put("time_whole", [0.0, 1, 2], "time_step")
        file.block(1, "QUAD4", squares(1))
        file.put("eb_prop1", [1], "num_el_blk", name="ID")
        file.names("name_nod_var", "num_nod_var", ["T"])
        values = np.array([[1.0, 2, 3, 4], [np.nan] * 4, [np.nan] * 4])
        file.put("vals_nod_var1", values, "time_step", "num_nodes")
    assert io.write(io.read(tmp_path / "a.exo"), tmp_path / "b.exo") == []
    with netCDF4.Dataset(tmp_path / "b.exo") as file:
        assert np.array_equal(file["vals_nod_var1"][:], values, equal_nan=True)


def with_set_values(path):
    with Writer(path) as file:
        file.grid(2)
        file.put("time_whole", [0.0, 1.0], "time_step")
        file.block(1, "QUAD4", squares(2))
        file.put("eb_prop1", [1], "num_el_blk", name="ID")
        file.put("ns_prop1", [1, 2], "num_node_sets", name="ID")
        file.put("node_ns1", [9, 1, 5], "num_nod_ns1")
        file.put("node_ns2", [2], "num_nod_ns2")
        file.put("dist_fact_ns1", [0.9, 0.1, 0.5], "num_nod_ns1")
        file.names("name_nset_var", "num_nset_var", ["load"])
        file.put("nset_var_tab", [[1], [0]], "num_node_sets", "num_nset_var")
        loads = np.array([[9.0, 1, 5], [90, 10, 50]])
        file.put("vals_nset_var1ns1", loads, "time_step", "num_nod_ns1")
        file.put("ss_prop1", [6], "num_side_sets", name="ID")
        file.side_set(1, [4, 1], [2, 1])
        file.names("name_sset_var", "num_sset_var", ["flux"])
        fluxes = np.array([[4.0, 1], [40, 10]])
        file.put("vals_sset_var1ss1", fluxes, "time_step", "num_side_ss1")
        file.names("name_glo_var", "num_glo_var", ["energy", "mass"])
        file.put("vals_glo_var", [[1.0, 2], [3, 4]], "time_step", "num_glo_var")
        file.put("info_records", np.full((1, 81), b"i", "S1"), "num_info", "len_line")


def test_what_stands_beside_the_entries_of_sets_stays_with_them(tmp_path):
    with_set_values(tmp_path / "a.exo")
    assert reordered(tmp_path / "a.exo", tmp_path / "b.exo") == []
    old, new = Seen(tmp_path / "a.exo"), Seen(tmp_path / "b.exo")

    def of_nodes(seen):
        nodes = [seen.points[n - 1] for n in seen.data["node_ns1"]]
        loads = seen.data["vals_nset_var1ns1"].T.tolist()
        factors = seen.data["dist_fact_ns1"].tolist()
        return dict(zip(nodes, zip(factors, loads, strict=True), strict=True))

    def of_sides(seen):
        cells = [seen.cells[e - 1] for e in seen.data["elem_ss1"]]
        return dict(zip(cells, seen.data["vals_sset_var1ss1"].T.tolist(), strict=True))

    assert of_nodes(new) == of_nodes(old)
    assert of_nodes(new)[2.0, 2.0, 0.0] == (0.9, [9, 90])
    assert of_sides(new) == of_sides(old)
    assert new.data["nset_var_tab"].tolist() == [[1], [0]]
    assert new.words("name_glo_var") == ["energy", "mass"]
    assert new.data["vals_glo_var"].tolist() == [[1, 2], [3, 4]]
    assert new.words("info_records") == ["i" * 81]


def test_other_formats_lose_what_stands_beside_sets_by_name(tmp_path):
    with_set_values(tmp_path / "a.exo")
    lost = io.losses(io.read(tmp_path / "a.exo"), io.FORMATS["abaqus"])
    assert "the values of the list 'node set 1' of 'nodes'" in lost
    assert "'energy' of the global values, 'mass' of the global values" in lost


@pytest.mark.parametrize("kind", ["NETCDF4", "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET"])
def test_files_of_every_kind_of_netcdf_are_read(kind, tmp_path):
    with Writer(tmp_path / "a.exo", kind) as file:
        file.grid(2)
        file.block(1, "SHELL4", squares(2))
        file.put("eb_prop1", [1], "num_el_blk", kind="i4", name="ID")
    assert reordered(tmp_path / "a.exo", tmp_path / "b.exo") == []
    old, new = Seen(tmp_path / "a.exo"), Seen(tmp_path / "b.exo")
    assert sorted(new.blocks[1]) == sorted(old.blocks[1])


def test_numbers_of_64_bits_are_kept(tmp_path):
    big = 3_000_000_000
    with Writer(tmp_path / "a.exo") as file:
        file.grid(1)
        file.block(1, "QUAD4", squares(1))
        file.put("eb_prop1", np.array([big]), "num_el_blk", name="ID")
        file.put("ns_prop1", np.array([big + 1]), "num_node_sets", name="ID")
        file.put("node_ns1", np.array([1, 2]), "num_nod_ns1")
        file.put("node_num_map", np.arange(4) * big + 7, "num_nodes")
    assert reordered(tmp_path / "a.exo", tmp_path / "b.exo") == []
    with netCDF4.Dataset(tmp_path / "b.exo") as file:
        assert file["eb_prop1"][:].tolist() == [big]
        assert file["ns_prop1"][:].tolist() == [big + 1]
        assert sorted(file["node_num_map"][:].tolist()) == [i * big + 7 for i in range(4)]
        assert file.int64_status == 0x0800 | 0x0400


def test_the_number_that_stands_for_block_0_is_refused(tmp_path):
    with Writer(tmp_path / "a.exo") as file:
        file.grid(1)
        file.block(1, "QUAD4", squares(1))
        file.put("eb_prop1", [2**31 - 1], "num_el_blk", name="ID")
    refusal(
        tmp_path / "a.exo", "'eb_prop1' must be positive, and each another, and none 214"
    )


def test_blocks_and_sets_that_are_empty_are_kept(tmp_path):
    with Writer(tmp_path / "a.exo") as file:
        file.grid(1)
        file.block(2, "QUAD4", squares(1))
        file.put("eb_prop1", [30, 20], "num_el_blk", name="ID")
        file.names("eb_names", "num_el_blk", ["gap", "plate"])
        file.put("ns_prop1", [5, 6], "num_node_sets", name="ID")
        file.names("ns_names", "num_node_sets", ["none", "one"])
        file.put("node_ns2", [3], "num_nod_ns2")
        file.put("ss_prop1", [9], "num_side_sets", name="ID")
    assert reordered(tmp_path / "a.exo", tmp_path / "b.exo") == []
    new = Seen(tmp_path / "b.exo")
    assert new.data["eb_prop1"].tolist() == [20, 30]
    assert new.data["eb_status"].tolist() == [1, 0]
    assert new.words("eb_names") == ["plate", "gap"]
    assert new.data["ns_prop1"].tolist() == [6, 5]
    assert new.words("ns_names") == ["one", "none"]
    assert new.data["ss_prop1"].tolist() == [9]
    assert new.data["ss_status"].tolist() == [0]


@pytest.mark.parametrize(
    "name", ["elem_els1", "ebconn1", "edge_es1", "elem_map1", "eb_prop2", "frame_tags", "x"]
)
def test_every_variable_that_nothing_looks_at_is_named(name, tmp_path):
    with Writer(tmp_path / "a.exo") as file:
        file.grid(1)
        file.block(1, "QUAD4", squares(1))
        file.put(name, [2], "other")
    mesh = io.read(tmp_path / "a.exo")
    assert mesh.extras["unread"] == (f"'{name}'",)
    with pytest.raises(MeshprepError, match=rf"'{name}' \(not read\)"):
        io.write(mesh, tmp_path / "b.exo")
