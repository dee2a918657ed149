"""Exodus: numbers and names of blocks and node sets, values of elements, and every loss by name."""

from dataclasses import replace

import netCDF4
import numpy as np
import pytest
from io_meshes import plain_meshes
from texts import refusal

from meshprep import io
from meshprep.mesh import Dat, IndexList, Mesh, Tag
from meshprep.mesh.assemble import Block, assemble
from meshprep_cli.main import main
from meshprep_runtime import Plan
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.ordering import Ordering

pytestmark = pytest.mark.usefixtures("read_here")

POINTS = np.array([[i & 1, i >> 1 & 1, i >> 2] for i in range(8)], float)
POINTS = np.vstack([POINTS, POINTS[4:] + np.array([0, 0, 1]), [[0.5, 0.5, 3]]])


def blocked(numbers=(10, 20), names=("core", "tip of it")):
    """A hexahedron on another, two blocks, and a pyramid on them, one block."""
    hexes = np.array([[0, 1, 3, 2, 4, 5, 7, 6], [4, 5, 7, 6, 8, 9, 11, 10]])
    ids = np.array([numbers[0], numbers[0] + 1])
    blocks = [
        Block("hexahedron", hexes, tags={"exodus:block": ids}),
        Block(
            "pyramid",
            np.array([[8, 9, 11, 10, 12]]),
            tags={"exodus:block": np.array(numbers[1:])},
        ),
    ]
    mesh, _ = assemble(POINTS, blocks)
    tags = [
        Tag.from_ids("exodus:block", "hexahedron", ids, {numbers[0]: names[0]}),
        Tag.from_ids(
            "exodus:block", "pyramid", np.array(numbers[1:]), {numbers[1]: names[1]}
        ),
    ]
    dats = [Dat("q", s.name, np.arange(s.size) + 0.5) for s in mesh.cell_sets]
    lists = [
        IndexList(
            "the top", "nodes", np.array([12, 8]), {"kind": "point_set", "number": 7}
        ),
        IndexList(
            "node set 3", "nodes", np.array([0, 1]), {"kind": "point_set", "number": 3}
        ),
    ]
    dats.append(Dat("coordinates", "nodes", POINTS))
    return Mesh(mesh.sets.values(), mesh.maps.values(), dats, tags, lists)


def words(variable):
    return [b"".join(row).decode().strip("\0") for row in variable[:]]


def test_numbers_and_names_are_kept(tmp_path):
    mesh = blocked()
    assert io.write(mesh, tmp_path / "a.e") == []
    with netCDF4.Dataset(tmp_path / "a.e") as file:
        file.set_auto_mask(False)
        assert file["eb_prop1"][:].tolist() == [10, 11, 20]
        assert words(file["eb_names"]) == ["core", "", "tip of it"]
        assert file["ns_prop1"][:].tolist() == [7, 3]
        assert words(file["ns_names"]) == ["the top", ""]
        assert words(file["name_elem_var"]) == ["q"]
        assert [file[f"vals_elem_var1eb{b}"][0].tolist() for b in (1, 2, 3)] == [
            [0.5],
            [1.5],
            [0.5],
        ]
        assert [file[f"connect{b}"].elem_type for b in (1, 2, 3)] == [
            "HEX8",
            "HEX8",
            "PYRAMID",
        ]
    back = io.read(tmp_path / "a.e")
    assert back.tag("exodus:block", "hexahedron").first_ids().tolist() == [10, 11]
    assert dict(back.tag("exodus:block", "hexahedron").names) == {10: "core"}
    assert dict(back.tag("exodus:block", "pyramid").names) == {20: "tip of it"}
    assert back.dat("q", "hexahedron").values.tolist() == [0.5, 1.5]
    lists = {i.name: (i.index.tolist(), i.attrs["number"]) for i in back.lists}
    assert lists == {"the top": ([12, 8], 7), "node set 3": ([0, 1], 3)}


def test_coordinates_and_values_of_nodes_in_one_variable_each(tmp_path):
    """As small files had them first: all coordinates, and all values, beside each other."""
    points, values = POINTS[:, ::-1] + 7, np.random.default_rng(0).random((2, len(POINTS)))
    mesh = blocked()
    more = [Dat(name, "nodes", np.zeros(len(POINTS))) for name in ("T", "p")]
    io.write(mesh.with_(dats=more), tmp_path / "a.e")
    with netCDF4.Dataset(tmp_path / "a.e", "a") as file:
        file.createVariable("coord", "f8", ("num_dim", "num_nodes"))[:] = points.T
        file.createVariable(
            "vals_nod_var", "f8", ("time_step", "num_nod_var", "num_nodes")
        )[0] = values
        for i in (1, 2):
            file.renameVariable(f"vals_nod_var{i}", f"vals_nod_var{i + 7}")
    made = io.read(tmp_path / "a.e")
    assert np.array_equal(made.coordinates, points)
    for i, name in enumerate(("T", "p")):
        assert np.array_equal(made.dat(name, "nodes").values, values[i])


def test_blocks_of_one_and_two_stay_so(tmp_path):
    """They were counted from 0, which Exodus does not allow, and nobody was told."""
    mesh = plain_meshes()["mixed solid"]
    assert io.write(mesh, tmp_path / "a.e") == []
    with netCDF4.Dataset(tmp_path / "a.e") as file:
        assert file["eb_prop1"][:].tolist() == [1, 2, 3]
        assert file["eb_prop1"].getncattr("name") == "ID"
    assert io.read(tmp_path / "a.e").tag("exodus:block", "wedge") is None


def test_block_0_comes_back_as_block_0(tmp_path):
    io.write(blocked(names=("core", "tip")), tmp_path / "a.e")
    with netCDF4.Dataset(tmp_path / "a.e", "a") as file:
        file["eb_prop1"][:] = [0, 1, 20]
    mesh = io.read(tmp_path / "a.e")
    assert "unread" not in mesh.extras
    assert dict(mesh.tag("exodus:block", "hexahedron").names) == {2**31 - 1: "core"}
    turned = Ordering.from_new_to_old(np.array([1, 0]))
    assert io.write(mesh.renumber({"hexahedron": turned}), tmp_path / "b.e") == []
    with netCDF4.Dataset(tmp_path / "b.e") as file:
        file.set_auto_mask(False)
        assert file["eb_prop1"][:].tolist() == [1, 0, 20]
        assert words(file["eb_names"]) == ["", "core", "tip"]
    with netCDF4.Dataset(tmp_path / "b.e", "a") as file:
        file["eb_prop1"][:] = [1, 1, 20]
    refusal(tmp_path / "b.e", "the numbers 'eb_prop1' must be positive, and each another")


def test_an_order_that_mixes_blocks_loses_them_by_name(tmp_path):
    order = Ordering.from_new_to_old(np.array([0, 2, 1]))
    hexes = np.array([[0, 1, 3, 2, 4, 5, 7, 6], [4, 5, 7, 6, 8, 9, 11, 10]])
    third = hexes[:1] * 0 + np.array([0, 1, 3, 2, 8, 9, 11, 10])
    mesh, _ = assemble(POINTS, [Block("hexahedron", np.vstack([hexes, third]))])
    tag = Tag.from_ids("exodus:block", "cells", np.array([5, 5, 9]), {5: "low", 9: "high"})
    mesh = mesh.with_(tags=[tag])
    assert io.write(mesh, tmp_path / "a.e") == []
    mixed = mesh.renumber({"cells": order})
    told = "the blocks 'exodus:block' of 'cells', whose cells the order mixes"
    with pytest.raises(MeshprepError, match=told):
        io.write(mixed, tmp_path / "b.e")
    lost = io.write(mixed, tmp_path / "b.e", drop=True)
    assert any(told in text for text in lost)
    with netCDF4.Dataset(tmp_path / "b.e") as file:
        assert file["eb_prop1"][:].tolist() == [1]


def test_what_is_dropped_is_all_said(tmp_path, capsys):
    io.write(blocked(), tmp_path / "a.e")
    with netCDF4.Dataset(tmp_path / "a.e", "a") as file:
        file.createDimension("num_side_ss1", 1)
        for name in ("elem_ss1", "side_ss1", "edge_es1"):
            file.createVariable(name, "i4", ("num_side_ss1",))[:] = 2
        file.createVariable("attribute1", "f8", ("num_el_in_blk1",))[:] = 1.0
    words = ["reorder", str(tmp_path / "a.e"), "--block-size", "2"]
    assert main(words) == 2
    told = "'edge_es1' (not read)"
    assert told in capsys.readouterr().err
    assert main([*words, "--drop"]) == 0
    err = capsys.readouterr().err
    assert "dropped, a-reordered.e is written without it: 'edge_es1' (not read)" in err
    assert "dropped, a-reordered.e is written without it: 'attribute1' (not read)" in err
    # The two blocks of hexahedra have a cell each, so that no order mixes them.
    new = io.read(tmp_path / "a-reordered.e")
    assert sorted(new.tag("exodus:block", "hexahedron").first_ids().tolist()) == [10, 11]
    assert new.tag("exodus:block", "pyramid").first_ids().tolist() == [20]


def add(path, name, values, kind="i4", **attributes):
    """One more variable in a file."""
    with netCDF4.Dataset(path, "a") as file:
        sizes = [f"size of {name} {i}" for i in range(np.ndim(values))]
        for size, n in zip(sizes, np.shape(values), strict=True):
            file.createDimension(size, n)
        made = file.createVariable(name, kind, sizes)
        made[:] = values
        made.setncatts(attributes)


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("ebconn1", [[1, 2]], "'ebconn1'"),
        ("vals_glo_var", [[1.0]], "'vals_glo_var'"),
        ("dist_fact_ns7", [0.5, 2], "'dist_fact_ns7'"),
        ("elem_els1", [1], "'elem_els1'"),
        ("elem_num_map", [5, 6], "'elem_num_map'"),
    ],
)
def test_what_is_not_read_is_said(name, values, said, tmp_path):
    io.write(blocked(), tmp_path / "a.e")
    add(tmp_path / "a.e", name, values, "f8")
    assert io.read(tmp_path / "a.e").extras["unread"] == (said,)


def test_what_says_nothing_is_not_told_of(tmp_path):
    io.write(blocked(), tmp_path / "a.e")
    add(tmp_path / "a.e", "dist_fact_ns1", [1, 1], "f8")
    add(tmp_path / "a.e", "elem_num_map", [1, 2, 3])
    add(tmp_path / "a.e", "info_records", [b"a"], "S1")
    mesh = io.read(tmp_path / "a.e")
    assert "unread" not in mesh.extras
    assert not any(d.name == "label" for d in mesh.dats)


def test_polyhedra_and_polygons_are_refused(tmp_path):
    """Polyhedra were left out without a word."""
    io.write(blocked(), tmp_path / "a.e")
    add(tmp_path / "a.e", "facconn4", [1, 2, 3, 4], elem_type="nfaced")
    refusal(tmp_path / "a.e", "holds polyhedra, which are not supported")
    io.write(blocked(), tmp_path / "b.e")
    with netCDF4.Dataset(tmp_path / "b.e", "a") as file:
        file.renameVariable("connect3", "gone")
    add(tmp_path / "b.e", "connect3", [1, 2, 3, 4], elem_type="nsided")
    refusal(tmp_path / "b.e", "are of type nsided, whose nodes are not in rows")


def test_block_0_is_called_so_in_errors(tmp_path):
    """In memory it has another number, as 0 is no group."""
    io.write(blocked(), tmp_path / "a.e")
    with netCDF4.Dataset(tmp_path / "a.e", "a") as file:
        file["eb_prop1"][0] = 0
        file["connect1"].elem_type = "BEX_QUAD"
    refusal(tmp_path / "a.e", "elements of block 0 are of type BEX_QUAD")


def test_numbers_of_nodes_and_elements_and_the_time_are_kept(tmp_path):
    old, new = tmp_path / "a.e", tmp_path / "b.e"
    io.write(blocked(), old)
    nodes, elements = np.arange(13)[::-1] * 2 + 7, [30, 10, 20]
    add(old, "node_num_map", nodes)
    add(old, "elem_num_map", elements)
    with netCDF4.Dataset(old, "a") as file:
        file["time_whole"][0] = 2.5
    mesh = io.read(old)
    assert mesh.dat("label", "nodes").values.tolist() == nodes.tolist()
    assert mesh.dat("label", "hexahedron").values.tolist() == [30, 10]
    assert mesh.dat("label", "pyramid").values.tolist() == [20]
    turned = Ordering.from_new_to_old(np.arange(13)[::-1])
    assert io.write(mesh.renumber({"nodes": turned}), new) == []
    with netCDF4.Dataset(new) as file:
        file.set_auto_mask(False)
        assert file["node_num_map"][:].tolist() == nodes[::-1].tolist()
        assert file["elem_num_map"][:].tolist() == elements
        assert file["time_whole"][:].tolist() == [2.5]
        assert words(file["name_elem_var"]) == ["q"]
    assert main(["reorder", str(old), "-q"]) == 0
    plan = Plan.load(tmp_path / "a.plan.h5")
    numbers = plan.ordering["nodes"].restore(plan.tags["nodes"]["label"])
    assert numbers.tolist() == nodes.tolist()
    with pytest.raises(MeshprepError, match=r"'2\.5' of the time step"):
        io.write(mesh, tmp_path / "b.vtu")


def test_an_empty_block_shifts_no_numbers(tmp_path):
    io.write(blocked(), tmp_path / "a.e")
    with netCDF4.Dataset(tmp_path / "a.e", "a") as file:
        file.renameVariable("connect1", "left_out")
    back = io.read(tmp_path / "a.e")
    assert back.tag("exodus:block", "hexahedron").first_ids().tolist() == [11]
    assert back.dat("q", "hexahedron").values.tolist() == [1.5]


@pytest.mark.parametrize("kind", ["wedge15", "hexahedron20", "hexahedron27"])
def test_nodes_of_second_order_stand_as_exodus_has_them(kind, tmp_path):
    mesh = plain_meshes()[kind]
    io.write(mesh, tmp_path / "a.e")
    corners, edges = {"w": (6, (3, 3, 3)), "h": (8, (4, 4, 4))}[kind[0]]
    with netCDF4.Dataset(tmp_path / "a.e") as file:
        file.set_auto_mask(False)
        first = file["connect1"][0] - 1
    table = mesh.cell_map("cells").table[0]
    # Edges of the base, upright ones, edges of the top; ours has the upright ones last.
    low, top, upright = np.split(
        table[corners : corners + sum(edges)], np.cumsum(edges)[:2]
    )
    start = [*table[:corners], *low, *upright, *top]
    assert first[: len(start)].tolist() == start
    assert np.array_equal(
        io.read(tmp_path / "a.e").cell_map("cells").table, mesh.cell_map("cells").table
    )


def test_names_of_two_lengths_and_numbers_twice(tmp_path):
    long = blocked(names=("c" * 64, "tip"))
    with pytest.raises(MeshprepError, match=f"the name '{'c' * 64}' of a group"):
        io.write(long, tmp_path / "a.e")
    twice = blocked(numbers=(10, 10))
    with pytest.raises(MeshprepError, match="the blocks 'exodus:block' of 'pyramid'"):
        io.write(twice, tmp_path / "a.e")


def test_names_of_every_script_and_length_are_kept(tmp_path):
    long = "a wall whose name is longer than the usual 32 bytes"
    mesh = blocked(names=("entrée n° 1", long))
    lists = [replace(i, name=f"{i.name} ü") for i in mesh.lists]
    dats = [replace(d, name="q of ε") if d.name == "q" else d for d in mesh.dats]
    mesh = replace(mesh, dats=tuple(dats), lists=tuple(lists))
    assert io.write(mesh, tmp_path / "a.e") == []
    with netCDF4.Dataset(tmp_path / "a.e") as file:
        file.set_auto_mask(False)
        assert words(file["eb_names"]) == ["entrée n° 1", "", long]
        assert words(file["ns_names"]) == ["the top ü", "node set 3 ü"]
        assert words(file["name_elem_var"]) == ["q of ε"]
        assert (
            len(file.dimensions["len_name"])
            == len(long) + 1
            == file.maximum_name_length + 1
        )


def test_side_sets_and_time_steps_are_kept(tmp_path):
    """A set through two blocks, in an order of its own; values at three times, and at one."""
    mesh = blocked()
    one, other = mesh.cell_sets
    attrs = {"kind": "side_set", "number": 4}
    sides = [
        IndexList(
            "skin",
            one.name,
            np.array([1, 0]),
            attrs | {"sides": np.array([5, 2]), "at": np.array([0, 2])},
        ),
        IndexList(
            "skin",
            other.name,
            np.array([0]),
            attrs | {"sides": np.array([3]), "at": np.array([1])},
        ),
    ]
    n = len(POINTS)
    steps = [
        Dat("T", "nodes", np.arange(n) + 100.0 * i, None, {"step": i} if i else {})
        for i in range(3)
    ]
    steps += [
        Dat("q", s.name, np.arange(s.size) - 7.5, None, {"step": 2}) for s in mesh.cell_sets
    ]
    times = {"1: 0": 0.0, "2: 0.5": 0.5, "3: 2": 2.0}
    mesh = replace(
        mesh.with_(dats=steps), lists=(*mesh.lists, *sides), extras={"time step": times}
    )
    assert io.write(mesh, tmp_path / "a.e") == []
    with netCDF4.Dataset(tmp_path / "a.e") as file:
        file.set_auto_mask(False)
        assert (file["elem_ss1"][:].tolist(), file["side_ss1"][:].tolist()) == (
            [2, 3, 1],
            [5, 3, 2],
        )
        assert (file["ss_prop1"][:].tolist(), words(file["ss_names"])) == ([4], ["skin"])
        assert file["time_whole"][:].tolist() == [0, 0.5, 2]
        assert file["vals_nod_var1"][:, 3].tolist() == [3, 103, 203]
        assert np.isnan(file["vals_elem_var1eb3"][1, 0])
        assert file["vals_elem_var1eb3"][2, 0] == -7.5
    order = {"nodes": Ordering.from_new_to_old(np.arange(n)[::-1].copy())}
    assert io.write(io.read(tmp_path / "a.e").renumber(order), tmp_path / "b.e") == []
    back = io.read(tmp_path / "b.e")
    assert [d.values[0] for d in back.dats if d.name == "T"] == [n - 1, n + 99, n + 199]
    assert dict(back.extras["time step"]) == times
    assert [
        (i.set, i.index.tolist(), i.attrs["sides"].tolist())
        for i in back.lists
        if i.name == "skin"
    ] == [
        (one.name, [1, 0], [5, 2]),
        (other.name, [0], [3]),
    ]


@pytest.mark.parametrize("key", ["elem_ss1", "side_ss1"])
def test_a_side_set_that_names_no_element_is_refused(key, tmp_path):
    io.write(blocked(), tmp_path / "a.e")
    add(tmp_path / "a.e", key, [9])
    if key == "elem_ss1":
        add(tmp_path / "a.e", "side_ss1", [1])
        refusal(
            tmp_path / "a.e",
            "the side set 'side set 1' does not name a side of one of 3 elements",
        )
    else:
        assert io.read(tmp_path / "a.e").size("nodes") == 13
