"""SU2: names of markers, mixed cells, and everything that a file can have wrong."""

import numpy as np
import pytest
from io_meshes import decorated, plain_meshes
from texts import read, refused

from meshprep import io
from meshprep.mesh import Mesh, Tag
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.ordering import Ordering

SQUARE = """% a comment with = in it
NDIME= 2
NPOIN= 5   5
0 0 0
1 0 1
1 1 2   % the number of the point comes last
0 1 3
0.5 0.5 4
NELEM= 4
5 0 1 4 0
5 1 2 4 1
5 2 3 4 2
5 3 0 4 3
NMARK= 3
MARKER_TAG= lower wall
MARKER_ELEMS= 1
3 0 1
MARKER_TAG= 2
MARKER_ELEMS= 2
3 1 2
3 2 3
MARKER_TAG= inlet
MARKER_ELEMS= 1
3 3 0
"""


def test_markers_keep_names_and_numbers(tmp_path):
    mesh = read(SQUARE, tmp_path / "a.su2")
    assert {s.name: s.size for s in mesh.sets.values()} == {
        "nodes": 5,
        "cells": 4,
        "line": 4,
    }
    tag = mesh.tag("su2:tag", "line")
    assert tag.first_ids().tolist() == [1, 2, 2, 3]
    assert dict(tag.names) == {1: "lower wall", 3: "inlet"}
    assert mesh.cell_map("cells").table.tolist() == [
        [0, 1, 4],
        [1, 2, 4],
        [2, 3, 4],
        [3, 0, 4],
    ]
    assert mesh.coordinates[4].tolist() == [0.5, 0.5]


def test_entities_that_are_in_a_group_the_other_way_round_are_in_its_marker(tmp_path):
    mesh = plain_meshes()["with border"]
    tag = Tag.from_ids("physical", "line", np.array([5, -5, 7, 5]), {5: "wall"})
    with pytest.raises(MeshprepError, match="the minus of groups 'physical' on 'line'"):
        io.write(mesh.with_(tags=[tag]), tmp_path / "a.su2")
    io.write(mesh.with_(tags=[tag]), tmp_path / "a.su2", drop=True)
    text = (tmp_path / "a.su2").read_text()
    assert "NMARK= 2\nMARKER_TAG= wall\nMARKER_ELEMS= 3\n" in text
    assert "MARKER_TAG= 7\nMARKER_ELEMS= 1\n" in text


def test_markers_come_back(tmp_path):
    mesh = read(SQUARE, tmp_path / "a.su2")
    assert io.write(mesh, tmp_path / "b.su2") == []
    text = (tmp_path / "b.su2").read_text()
    assert "MARKER_TAG= lower wall\nMARKER_ELEMS= 1\n3 0 1\n" in text
    assert "MARKER_TAG= 2\nMARKER_ELEMS= 2\n" in text
    back = io.read(tmp_path / "b.su2")
    assert dict(back.tag("su2:tag", "line").names) == {1: "lower wall", 3: "inlet"}


def test_markers_of_a_surface_in_space_keep_their_names(tmp_path):
    nodes = "NPOIN= 4\n0 0 0\n1 0 0\n0 1 0\n1 1 1\n"
    cells = "NELEM= 2\n5 0 1 2\n5 1 3 2\n"
    wall = "NMARK= 1\nMARKER_TAG= wall\nMARKER_ELEMS= 2\n3 0 1\n3 1 3\n"
    mesh = read("NDIME= 3\n" + nodes + cells + wall, tmp_path / "a.su2")
    assert dict(mesh.tag("su2:tag", "line").names) == {1: "wall"}
    io.write(mesh, tmp_path / "a.msh")
    assert dict(io.read(tmp_path / "a.msh").tag("su2:tag", "line").names) == {1: "wall"}


def test_markers_stand_as_in_the_file_that_was_read(tmp_path):
    text = SQUARE.replace("lower wall", "9").replace("inlet", "a")
    mesh = read(text, tmp_path / "a.su2")
    assert io.write(mesh, tmp_path / "b.su2") == []
    tags = [
        t
        for t in (tmp_path / "b.su2").read_text().split("\n")
        if t.startswith("MARKER_TAG")
    ]
    assert tags == ["MARKER_TAG= 9", "MARKER_TAG= 2", "MARKER_TAG= a"]
    again = io.read(tmp_path / "b.su2")
    assert again.tag("su2:tag", "line").first_ids().tolist() == [9, 2, 2, 1]


def test_markers_without_cells_come_back_or_are_told(tmp_path):
    empty = "MARKER_TAG= gap\nMARKER_ELEMS= 0\n"
    mesh = read(SQUARE.replace("NMARK= 3", "NMARK= 4") + empty, tmp_path / "a.su2")
    assert io.write(mesh, tmp_path / "b.su2") == []
    assert empty in (tmp_path / "b.su2").read_text()
    numbered = read(
        SQUARE.replace("NMARK= 3", "NMARK= 4") + empty.replace("gap", "7"),
        tmp_path / "a.su2",
    )
    alone = read(SQUARE.partition("NMARK")[0] + "NMARK= 1\n" + empty, tmp_path / "a.su2")
    for one, name in ((numbered, "7"), (alone, "gap")):
        with pytest.raises(MeshprepError, match=f"marker '{name}' without cells"):
            io.write(one, tmp_path / "c.su2")


def test_mixed_cells_go_by_type_in_order(tmp_path):
    text = SQUARE.replace("NELEM= 4", "NELEM= 3").replace(
        "5 0 1 4 0\n5 1 2 4 1\n5 2 3 4 2\n5 3 0 4 3", "5 0 1 4 0\n9 1 2 3 4 1\n5 3 0 4 2"
    )
    mesh = read(text, tmp_path / "a.su2")
    assert mesh.sets["cells"].parts == ("triangle", "quad")
    assert mesh.cell_map("triangle").table.tolist() == [[0, 1, 4], [3, 0, 4]]
    assert mesh.cell_map("quad").table.tolist() == [[1, 2, 3, 4]]


def test_groups_of_another_format_become_markers(tmp_path):
    mesh = decorated(plain_meshes()["with border"], "border groups")
    tags = [
        Tag("physical", t.set, t.values, t.group_offset, t.group_id, t.names)
        for t in mesh.tags
    ]
    mesh = Mesh(mesh.sets.values(), mesh.maps.values(), mesh.dats, tags)
    with pytest.raises(MeshprepError, match="the order of 'line' "):
        io.write(mesh, tmp_path / "a.su2")
    io.write(mesh, tmp_path / "a.su2", drop=True)
    tag = io.read(tmp_path / "a.su2").tag("su2:tag", "line")
    assert dict(tag.names) == {1: "inlet", 2: "outer wall"}
    assert sorted(tag.first_ids().tolist()) == [1, 1, 2, 2]


def with_markers(names):
    mesh = decorated(plain_meshes()["with border"], "border groups")
    tags = [Tag.from_ids("su2:tag", t.set, t.first_ids(), names) for t in mesh.tags]
    return Mesh(
        mesh.sets.values(), mesh.maps.values(), [mesh.dat("coordinates", "nodes")], tags
    )


@pytest.mark.parametrize("names", [{1: "a", 2: "a"}, {1: "2"}])
def test_groups_that_would_be_one_marker_are_told(tmp_path, names):
    mesh = with_markers(names)
    told = f"that 2 groups have the marker '{names[1]}'"
    assert io.losses(mesh, io.FORMATS["su2"])[-1] == told
    io.write(mesh, tmp_path / "a.su2", drop=True)
    assert (
        np.unique(io.read(tmp_path / "a.su2").tag("su2:tag", "line").first_ids()).size == 1
    )


@pytest.mark.parametrize("name", ["a\tb", "a\x1b[2Jb", "a\0b", "a=b"])
def test_names_that_no_marker_has_are_told(tmp_path, name):
    mesh = with_markers({1: name, 2: 'a "b"; c'})
    assert io.losses(mesh, io.FORMATS["su2"])[-1] == f"the marker name '{name}'"
    io.write(mesh, tmp_path / "a.su2", drop=True)
    names = io.read(tmp_path / "a.su2").tag("su2:tag", "line").names
    assert dict(names) == {1: "a_b" if "[" not in name else "a_[2Jb", 2: 'a "b"; c'}


def test_a_border_without_groups_is_told(tmp_path):
    mesh = plain_meshes()["with border"]
    with pytest.raises(MeshprepError, match="4 boundary cells in no group"):
        io.write(mesh, tmp_path / "a.su2")
    io.write(mesh, tmp_path / "a.su2", drop=True)
    assert dict(io.read(tmp_path / "a.su2").tag("su2:tag", "line").names) == {1: "none"}


def test_other_sections_are_carried_and_their_nodes_renumbered(tmp_path):
    box = "FFD_NBOX= 1\nFFD_TAG= BOX\n1 2 3\nFFD_SURFACE_POINTS= 2\nwall 3 0.5 0\nwall\t1 0 1\n"
    mesh = read(SQUARE + box + "FFD_LEVEL= 0\n", tmp_path / "a.su2")
    assert mesh.lists[0].index.tolist() == [3, 1]
    order = Ordering.from_new_to_old(np.array([4, 3, 2, 1, 0]))
    assert io.write(mesh.renumber({"nodes": order}), tmp_path / "b.su2") == []
    text = (tmp_path / "b.su2").read_text()
    assert (
        "BOX\n1 2 3\nFFD_SURFACE_POINTS= 2\nwall 1 0.5 0\nwall 3 0 1\nFFD_LEVEL= 0\n"
        in text
    )
    with pytest.raises(MeshprepError, match="the list 'FFD_SURFACE_POINTS 1' of 'nodes'"):
        io.write(mesh, tmp_path / "b.vtu")


@pytest.mark.parametrize(
    "tag", ["MARKERTAG= ", "MARKERTAG=", "MARKER_TAG =", "marker_tag=\t"]
)
def test_markers_are_told_as_su2_tells_them(tag, tmp_path):
    mesh = read(SQUARE.replace("MARKER_TAG= inlet", f"{tag}inlet"), tmp_path / "a.su2")
    assert dict(mesh.tag("su2:tag", "line").names) == {1: "lower wall", 3: "inlet"}


HALOS = "MARKER_TAG= SEND_RECEIVE\nMARKER_ELEMS= 2\n{}= -1\n1 0 0\n1 3 0\n"


@pytest.mark.parametrize("keyword", ["SEND_TO", "SEND_RECV"])
def test_files_that_are_split_already_are_refused(keyword, tmp_path):
    text = SQUARE.replace("NMARK= 3", "NMARK= 4") + HALOS.format(keyword)
    with pytest.raises(MeshprepError) as caught:
        read(text, tmp_path / "a.su2")
    assert "split for parallel runs" in str(caught.value)
    assert "use the mesh without halos" in str(caught.value)
    refused(
        SQUARE + f"{keyword}= 1\n1 3 0\n", tmp_path / "a.su2", "split for parallel runs"
    )


def test_the_order_of_cells_and_points_is_that_of_the_mesh(tmp_path):
    mesh = plain_meshes()["tets"]
    io.write(mesh, tmp_path / "a.su2")
    lines = (tmp_path / "a.su2").read_text().split("\n")
    at = lines.index("NELEM= 5")
    assert lines[at + 1 : at + 6] == [
        "10 " + " ".join(map(str, row)) for row in mesh.cell_map("cells").table
    ]
    assert np.array_equal(io.read(tmp_path / "a.su2").coordinates, mesh.coordinates)


BAD = {
    "has 2 zones": SQUARE.replace("NDIME= 2", "NZONE= 2\nIZONE= 1\nNDIME= 2"),
    "NDIME is 4": SQUARE.replace("NDIME= 2", "NDIME= 4"),
    "NDIME= is missing: the file is cut off": SQUARE.replace("NDIME= 2", ""),
    "NELEM= stands 2 times": SQUARE + "NELEM= 0\n",
    "NPOIN= 1000000000000 is more than": SQUARE.replace(
        "NPOIN= 5   5", "NPOIN= 1000000000000"
    ),
    "NELEM= 1000000000000 is more than": SQUARE.replace("NELEM= 4", "NELEM= 1000000000000"),
    "'-4' is no count": SQUARE.replace("NELEM= 4", "NELEM= -4"),
    "NELEM= 5, but 4 cells follow": SQUARE.replace("NELEM= 4", "NELEM= 5"),
    "NPOIN= 6, but 15 numbers": SQUARE.replace("NPOIN= 5   5", "NPOIN= 6"),
    "NPOIN: point 2 has 4 numbers, the first 3": SQUARE.replace(
        "1 0 1\n1 1 2", "1 0 1 1\n1 2"
    ),
    "NPOIN: rows have 5 numbers for 2 coordinates": SQUARE.replace(
        SQUARE[SQUARE.index("0 0 0\n") : SQUARE.index("NELEM")], "0 0 0 0 0\n" * 5
    ),
    "NPOIN= 5 4: some points are copies": SQUARE.replace("NPOIN= 5   5", "NPOIN= 5 4"),
    # here with a tab between the two
    "NPOIN= 5 3: some points are copies": SQUARE.replace("NPOIN= 5   5", "NPOIN= 5\t3"),
    "NMARK= is missing: the file is cut off, or was": SQUARE.replace("NMARK= 3\n", ""),
    "CHUNKS= 1: cannot tell whether 7 in '7 0.5' is a point": SQUARE + "CHUNKS= 1\n7 0.5\n",
    "MARKER_TAG= tip: 2 lines '1 NODE' must follow": SQUARE.replace("NMARK= 3", "NMARK= 4")
    + "MARKER_TAG= tip\nMARKER_ELEMS= 2\n1 4\n3 0 1\n",
    "something there is no number": SQUARE.replace("0.5 0.5 4", "0.5 half 4"),
    "cell type 7 is unknown": SQUARE.replace("5 1 2 4 1", "7 1 2 4 1"),
    "NELEM: cell 1 is of type 'triangle', which has 3 nodes, but has 6": SQUARE.replace(
        "5 0 1 4 0", "5 0 1 4 0 7 8"
    ),
    # The nodes that one cell lacks stand with another, so that the numbers together are right.
    "NELEM: cell 2 is of type 'triangle', which has 3 nodes, but has 2": SQUARE.replace(
        "5 1 2 4 1\n5 2 3 4 2", "5 1 2\n5 2 3 4 2 4 1"
    ),
    "MARKER_ELEMS: cell 1 is of type 'line', which has 2 nodes, but has 4": SQUARE.replace(
        "3 0 1\n", "3 0 1 4 2\n"
    ),
    "has index 99": SQUARE.replace("5 0 1 4 0", "5 0 1 99 0"),
    "has index -1": SQUARE.replace("5 0 1 4 0", "5 0 -1 4 0"),
    "have the same nodes": SQUARE.replace("5 1 2 4 1", "5 1 0 4 1"),
    "names node 1 twice": SQUARE.replace("5 0 1 4 0", "5 0 0 4 0"),
    "must be finite": SQUARE.replace("0.5 0.5 4", "0.5 nan 4"),
    "NMARK= 4, but there are 3": SQUARE.replace("NMARK= 3", "NMARK= 4"),
    "no cells": SQUARE[: SQUARE.index("NELEM")] + "NELEM= 0\nNMARK= 0\n",
    "a row is not MARKER NODE": SQUARE + "FFD_SURFACE_POINTS= 1\nwall x\n",
    "FFD_SURFACE_POINTS= 2, but 1 rows": SQUARE + "FFD_SURFACE_POINTS= 2\nwall 1 0 0\n",
    "index list 'FFD_SURFACE_POINTS 1' points outside": SQUARE
    + "FFD_SURFACE_POINTS= 1\nwall 9 0 0\n",
    "1 lower-dimension cells": SQUARE.replace("3 3 0\n", "3 0 2\n"),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_files_say_what_is_wrong(message, tmp_path):
    with pytest.raises(MeshprepError) as caught:
        read(BAD[message], tmp_path / "a.su2")
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'a.su2'}: ")
    assert message in text
    assert "\n" not in text


@pytest.mark.parametrize("cut", range(20, len(SQUARE) - 4, 7))
def test_truncated_files_are_errors(cut, tmp_path):
    refused(SQUARE[:cut], tmp_path / "a.su2")


def test_points_are_numbered_by_their_places(tmp_path):
    """SU2 skips what stands behind the coordinates."""
    mesh = read(SQUARE.replace("0 0 0\n1 0 1", "0 0 10\n1 0 7"), tmp_path / "a.su2")
    assert mesh.coordinates.tolist() == [[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]]
    assert mesh.cell_map("cells").table[0].tolist() == [0, 1, 4]


def test_markers_of_nodes_follow(tmp_path):
    tip = "MARKER_TAG= tip\nMARKER_ELEMS= 2\n1 4\n1 2 0\n"
    text = SQUARE.replace("NMARK= 3\n", f"NMARK= 4\n{tip}")
    mesh = read(text, tmp_path / "a.su2")
    assert [(i.name, i.index.tolist()) for i in mesh.lists] == [("marker tip", [4, 2])]
    assert dict(mesh.tag("su2:tag", "line").names) == {1: "lower wall", 3: "inlet"}
    order = Ordering.from_new_to_old(np.array([4, 3, 2, 1, 0]))
    assert io.write(mesh.renumber({"nodes": order}), tmp_path / "b.su2") == []
    written = (tmp_path / "b.su2").read_text()
    assert (
        "NMARK= 4\nMARKER_TAG= tip\nMARKER_ELEMS= 2\n1 0\n1 2\nMARKER_TAG= lower" in written
    )
    with pytest.raises(MeshprepError, match="the list 'marker tip' of 'nodes'"):
        io.write(mesh, tmp_path / "b.vtu")


def test_periods_and_angles_are_carried(tmp_path):
    text = "NPERIODIC= 1\nPERIODIC_INDEX= 0\nPERIODIC_CENTER= 0 0 1\nAOA= 5\n"
    io.write(read(SQUARE + text, tmp_path / "a.su2"), tmp_path / "b.su2")
    assert (tmp_path / "b.su2").read_text().endswith(text)


def test_the_first_triangle_of_a_wedge_turns_out_of_it(tmp_path):
    """As VTK has wedges; in memory it turns into the cell, as in Gmsh."""
    points = "0 0 0\n1 0 0\n0 1 0\n0 0 1\n1 0 1\n0 1 1\n"
    text = f"NDIME= 3\nNPOIN= 6\n{points}NELEM= 1\n13 0 2 1 3 5 4 0\nNMARK= 0\n"
    mesh = read(text, tmp_path / "a.su2")
    assert mesh.map("cells->nodes").table.tolist() == [[0, 1, 2, 3, 4, 5]]
    io.write(mesh, tmp_path / "b.su2")
    assert "\n13 0 2 1 3 5 4\n" in (tmp_path / "b.su2").read_text()
