"""Abaqus: sets on the elements they name, types of elements, and lines that go on."""

from dataclasses import replace

import numpy as np
import pytest
from io_meshes import plain_meshes
from texts import read, refused

from meshprep import io
from meshprep.io.generate import generate
from meshprep.mesh import Dat
from meshprep_cli.main import main
from meshprep_runtime import Plan
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.ordering import Ordering

DECK = """** a comment
*HEADING
plate
*NODE, NSET=every
1, 0., 0.
2, 1., 0.
3, , 1.
4, 1., 1.
15, 2., 0.
6, 2., 1.
*ELEMENT, TYPE=CPS3
11, 1, 2, 3
12, 2, 4, 3
*ELEMENT, type=CPE4,
 elset=Right
13, 2, 15, 6, 4
*ELSET, ELSET=both
Right, 12
*ELSET, ELSET=row, GENERATE
11, 13, 2
*NSET, NSET=left
1, 3
*NSET, NSET=more
LEFT, 15
"""


def lists_of(mesh):
    return {(i.name, i.set): i.index.tolist() for i in mesh.lists}


def test_sets_are_on_the_elements_they_name(tmp_path):
    mesh = read(DECK, tmp_path / "a.inp")
    assert mesh.coordinates[2].tolist() == [0, 1]
    assert mesh.cell_map("quad").table.tolist() == [[1, 4, 5, 3]]
    assert lists_of(mesh) == {
        ("every", "nodes"): [0, 1, 2, 3, 4, 5],
        ("left", "nodes"): [0, 2],
        ("more", "nodes"): [0, 2, 4],
        ("Right", "quad"): [0],
        ("both", "quad"): [0],
        ("both", "triangle"): [1],
        ("row", "triangle"): [0],
        ("row", "quad"): [0],
    }


def test_a_set_of_the_second_block_alone(tmp_path):
    """meshio gives it to the first one."""
    text = DECK[: DECK.index("*ELSET")]
    assert lists_of(read(text, tmp_path / "a.inp"))["Right", "quad"] == [0]
    twice = text.replace("TYPE=CPS3", "TYPE=CPS3, ELSET=RIGHT")
    assert lists_of(read(twice, tmp_path / "a.inp"))["RIGHT", "triangle"] == [0, 1]
    assert lists_of(read(twice, tmp_path / "a.inp"))["RIGHT", "quad"] == [0]


def test_types_of_elements_are_kept(tmp_path):
    mesh = read(DECK, tmp_path / "a.inp")
    assert mesh.tag("abaqus:type", "triangle") is None
    assert list(mesh.tag("abaqus:type", "quad").names.values()) == ["CPE4"]
    order = {
        "nodes": Ordering.from_new_to_old(np.array([5, 3, 1, 0, 2, 4])),
        "triangle": Ordering.from_new_to_old(np.array([1, 0])),
    }
    assert io.write(mesh.renumber(order), tmp_path / "b.inp") == []
    text = (tmp_path / "b.inp").read_text()
    assert (
        "*ELEMENT, TYPE=CPS3\n12, 2, 4, 3\n11, 1, 2, 3\n*ELEMENT, TYPE=CPE4\n13, 2, 15, 6, 4\n"
        in text
    )
    assert "*ELSET, ELSET=both\n12\n*ELSET, ELSET=both\n13\n" in text
    assert lists_of(io.read(tmp_path / "b.inp"))["both", "triangle"] == [0]
    with pytest.raises(MeshprepError, match="the names of the groups 'abaqus:type' on 'quad'"):
        io.write(mesh, tmp_path / "b.vtu")


def test_types_that_change_from_element_to_element(tmp_path):
    text = DECK.replace("12, 2, 4, 3\n", "*ELEMENT, TYPE=CPE3\n12, 2, 4, 3\n")
    mesh = read(text, tmp_path / "a.inp")
    order = {"triangle": Ordering.from_new_to_old(np.array([1, 0]))}
    io.write(mesh.renumber(order), tmp_path / "b.inp")
    assert (
        "TYPE=CPE3\n12, 2, 4, 3\n*ELEMENT, TYPE=CPS3\n11, 1, 2, 3\n"
        in (tmp_path / "b.inp").read_text()
    )


def test_numbers_go_into_the_plan(tmp_path):
    mesh = replace(generate("delaunay2d", cells=50), tags=())
    begin = {"nodes": 7, "line": 1000, "cells": 10}
    numbers = {name: 3 * np.arange(mesh.size(name)) + first for name, first in begin.items()}
    mesh = mesh.with_(dats=[Dat("label", name, values) for name, values in numbers.items()])
    assert io.write(mesh, tmp_path / "a.inp") == []
    assert main(["reorder", str(tmp_path / "a.inp"), "-q"]) == 0
    plan = Plan.load(tmp_path / "a.plan.h5")
    for name, values in numbers.items():
        found = plan.ordering[name].restore(plan.tags[name]["label"])
        assert found.tolist() == values.tolist()
    assert [d.name for d in io.read(tmp_path / "a-reordered.inp").dats] == ["coordinates"]


def test_names_with_commas_are_refused(tmp_path):
    """They were cut at the comma."""
    refused(
        DECK.replace("NSET=left", 'NSET="le,ft"'), tmp_path / "a.inp", "has a name with a comma"
    )


def test_numbers_that_only_count_are_none(tmp_path):
    for name in ("mixed plane", "with border", "triangles"):
        io.write(plain_meshes()[name], tmp_path / "a.inp", overwrite=True)
        assert [d.name for d in io.read(tmp_path / "a.inp").dats] == ["coordinates"]


def test_usual_types_in_a_plane_and_in_space(tmp_path):
    io.write(plain_meshes()["mixed plane"], tmp_path / "a.inp")
    text = (tmp_path / "a.inp").read_text()
    assert "TYPE=CPS3" in text
    assert "TYPE=CPS4" in text
    io.write(plain_meshes()["surface"], tmp_path / "b.inp")
    assert "TYPE=S3" in (tmp_path / "b.inp").read_text()
    assert io.read(tmp_path / "b.inp").tags == ()


def test_groups_of_other_formats_are_no_types(tmp_path):
    from io_meshes import decorated

    mesh = decorated(plain_meshes()["triangles"], "named groups")
    assert io.write(mesh, tmp_path / "a.inp", drop=True) == ["groups 'physical' on 'cells'"]
    assert "TYPE=CPS3" in (tmp_path / "a.inp").read_text()


def test_elements_of_more_than_a_line(tmp_path):
    mesh = plain_meshes()["hexahedron20"]
    io.write(mesh, tmp_path / "a.inp")
    text = (tmp_path / "a.inp").read_text()
    first = text[text.index("*ELEMENT") :].splitlines()[1:3]
    assert [len(line.rstrip(",").split(",")) for line in first] == [16, 5]
    assert first[0].endswith(",")
    assert np.array_equal(
        io.read(tmp_path / "a.inp").cell_map("cells").table, mesh.cell_map("cells").table
    )


BAD = {
    "element 11 of type CPS3 is of type 'triangle', which has 3 nodes, but has 4": DECK.replace(
        "11, 1, 2, 3", "11, 1, 2, 3, 4"
    ),
    "holds elements of type CPX9": DECK.replace("CPS3", "CPX9"),
    "*NSET more takes in the set 'LEFT', which is not there": DECK.replace("NSET=left", "NSET=l"),
    "names element 99, which is not there": DECK.replace("Right, 12", "Right, 99"),
    "names node 99, which is not there": DECK.replace("11, 1, 2, 3", "11, 1, 2, 99"),
    "node 6 has 4 coordinates": DECK.replace("6, 2., 1.", "6, 2., 1., 0., 1."),
    "its nodes have 2 and 3 coordinates": DECK.replace("6, 2., 1.", "6, 2., 1., 0."),
    "node 4 stands twice": DECK.replace("6, 2., 1.", "4, 2., 1."),
    "element 11 stands twice": DECK.replace("13, 2, 15", "11, 2, 15"),
    "*ELEMENT takes its lines from more.inp": DECK + "*ELEMENT, TYPE=CPS3, INPUT=more.inp\n",
    "in the coordinates SYSTEM=C": DECK.replace("*NODE, NSET=every", "*NODE, SYSTEM=C"),
    "*NSET rim is the nodes of the elements both": DECK + "*NSET, NSET=rim, ELSET=both\n",
    "*NSET n generates '4, 1, -1'": DECK + "*NSET, NSET=n, GENERATE\n4, 1, -1\n",
    "makes or moves nodes or elements by *ELGEN": DECK + "*ELGEN\n11, 2, 1, 1\n",
    "*ELSET row generates 2999999990 numbers, but 3 are there": DECK.replace(
        "11, 13, 2", "11, 3000000000"
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_decks_say_what_is_wrong(message, tmp_path):
    with pytest.raises(MeshprepError) as caught:
        read(BAD[message], tmp_path / "a.inp")
    assert message in str(caught.value)


def test_the_middle_of_a_line_stands_between_its_ends(tmp_path):
    """As Abaqus has it; in memory it follows the ends, as in all other formats."""
    text = "*NODE\n1, 0, 0\n2, 1, 0\n3, 2, 0\n4, 3, 0\n5, 4, 0\n*ELEMENT, TYPE=B22\n"
    mesh = read(f"{text}1, 1, 2, 3\n2, 5, 4, 3\n", tmp_path / "a.inp")
    assert mesh.map("cells->nodes").table.tolist() == [[0, 2, 1], [4, 2, 3]]
    io.write(mesh, tmp_path / "b.inp")
    assert (tmp_path / "b.inp").read_text().endswith("TYPE=B22\n1, 1, 2, 3\n2, 5, 4, 3\n")


def test_sets_that_are_empty_are_told(tmp_path):
    (tmp_path / "a.inp").write_text(
        DECK + "*NSET, NSET=none\n*ELSET, ELSET=nothing\n*NSET, NSET=r\n15\n"
    )
    told = ("set 'none' without nodes", "set 'nothing' without cells")
    assert io.read(tmp_path / "a.inp").extras["unread"][-2:] == told
