"""Abaqus: sets on the elements they name, types of elements, and lines that go on."""

import shutil
import subprocess
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
    assert "*ELSET, ELSET=both\n12, 13\n" in text
    assert lists_of(io.read(tmp_path / "b.inp"))["both", "triangle"] == [0]
    with pytest.raises(
        MeshprepError, match="the names of the groups 'abaqus:type' on 'quad'"
    ):
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
    numbers = {
        name: 3 * np.arange(mesh.size(name)) + first for name, first in begin.items()
    }
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
        DECK.replace("NSET=left", 'NSET="le,ft"'),
        tmp_path / "a.inp",
        "has a name with a comma",
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
    "there are only elements of the types SPRINGA": "*NODE\n1, 0., 0.\n2, 1., 0.\n"
    "*ELEMENT, TYPE=SPRINGA\n1, 1, 2\n",
    "*ELEMENT has no TYPE=": DECK.replace("TYPE=CPS3", "ELSET=a"),
    "*NSET more takes in the set 'LEFT', which is not there": DECK.replace(
        "NSET=left", "NSET=l"
    ),
    "names element 99, which is not there": DECK.replace("Right, 12", "Right, 99"),
    "names node 99, which is not there": DECK.replace("11, 1, 2, 3", "11, 1, 2, 99"),
    "line 10: node 6 has 7 coordinates": DECK.replace("6, 2.", "6, 2., 1., 0., 0., 0., 1."),
    "*NODE: '1.5' is no number of a node": DECK.replace("6, 2., 1.", "1.5, 2., 1."),
    "*NODE: '1_0' is no number": DECK.replace("6, 2., 1.", "6, 1_0, 1."),
    "'9223372036854775808' is no number of a node or": DECK.replace(
        "13, 2, 15", "13, 9223372036854775808, 15"
    ),
    "'9223372036854775807' is no number of a node or": DECK.replace(
        "12, 2, 4, 3", "12, 2, 9223372036854775807, 3"
    ),
    "'\u0663' is no number of a node or an element": DECK.replace(
        "12, 2, 4, 3", "12, 2, 4, \u0663"
    ),
    "node 4 stands twice": DECK.replace("6, 2., 1.", "4, 2., 1."),
    "element 11 stands twice": DECK.replace("13, 2, 15", "11, 2, 15"),
    "line 25: *ELEMENT: more.inp does not exist": DECK
    + "*ELEMENT, TYPE=CPS3, INPUT=more.inp\n",
    "in the coordinates SYSTEM=C": DECK.replace("*NODE, NSET=every", "*NODE, SYSTEM=C"),
    "*NSET rim is the nodes of the elements both": DECK + "*NSET, NSET=rim, ELSET=both\n",
    "*NSET n generates '4, 1, -1'": DECK + "*NSET, NSET=n, GENERATE\n4, 1, -1\n",
    "makes or moves nodes or elements by *ELGEN": DECK + "*ELGEN\n11, 2, 1, 1\n",
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


def test_what_is_left_out_is_nothing(tmp_path):
    """Coordinates are 0 then, and ranges have the elements that there are."""
    text = DECK.replace("6, 2., 1.", "6, 2., 1., .5").replace(
        "11, 13, 2", "11, 3000000000, 2"
    )
    mesh = read(text, tmp_path / "a.inp")
    assert mesh.coordinates[:, 2].tolist() == [0, 0, 0, 0, 0, 0.5]
    assert lists_of(mesh)["row", "triangle"] == [0]
    assert lists_of(mesh)["row", "quad"] == [0]


def test_empty_sets_come_back_empty(tmp_path):
    text = DECK + "*NSET, NSET=none\n*ELSET, ELSET=nothing\n*NSET, NSET=r\n15\n"
    mesh = read(text, tmp_path / "a.inp")
    assert io.write(mesh, tmp_path / "b.inp") == []
    assert (tmp_path / "b.inp").read_text().endswith(text[len(DECK) :])


# What stands around the mesh; numbers of nodes and elements in every place that can have one.
AROUND = """*MATERIAL, NAME=Steel
*ELASTIC
 210000., .3
** loads
*SOLID SECTION, ELSET=both, MATERIAL=Steel
*SURFACE, NAME=top, TYPE=ELEMENT
 13, S3
both, S1
*SURFACE, NAME=rim, TYPE=NODE
15, 1.
*RIGID BODY, NSET=left, REF NODE=6, ROT NODE = 4
*EQUATION
3
 2, 1, 1., 15, 1, -1.,
left, 2, 5.
*INITIAL CONDITIONS, TYPE=TEMPERATURE
15, 293.
*AMPLITUDE, NAME=a
0., 0., 1., 1.
*BOUNDARY
 1, 1, 2
left, 2, 2
*STEP, NLGEOM
*STATIC
1, 1
*CLOAD, AMPLITUDE=a
15, 1, 10.
P-1.6, 2, 10.
*DLOAD
12, P1, 5.
both, P2NP, 6
*NODE PRINT, NSET=left
U
*END STEP
"""
MOVED = {
    "nodes": Ordering.from_new_to_old(np.array([5, 3, 1, 0, 2, 4])),
    "triangle": Ordering.from_new_to_old(np.array([1, 0])),
}


def without_numbers(mesh):
    """As a plan writes it: renumbered from 1."""
    return replace(mesh, dats=tuple(d for d in mesh.dats if d.name != "label"))


def test_all_else_comes_back_as_it_was_and_where_it_was(tmp_path):
    text = DECK.replace("*NODE, NSET=every", "*PARAMETER\n*NODE, NSET=every") + AROUND
    mesh = read(text, tmp_path / "a.inp")
    assert io.write(mesh, tmp_path / "b.inp") == []
    assert (tmp_path / "b.inp").read_text().endswith(AROUND)
    assert (tmp_path / "b.inp").read_text().startswith(text[: text.index("1, 0., 0.")][:38])


def test_numbers_in_loads_and_conditions_follow(tmp_path):
    mesh = read(DECK + AROUND, tmp_path / "a.inp")
    assert io.write(without_numbers(mesh.renumber(MOVED)), tmp_path / "b.inp") == []
    # nodes were 1 2 3 4 15 6, elements 11 12 13
    new = {1: 4, 2: 3, 3: 5, 4: 2, 15: 6, 6: 1}
    expected = AROUND.replace("13, S3", "3, S3").replace("12, P1", "1, P1")
    for old, now in (
        *(("15, 1.\n", f"{new[15]}, 1.\n"), ("REF NODE=6", f"REF NODE={new[6]}")),
        *(("ROT NODE = 4", f"ROT NODE = {new[4]}"), ("P-1.6, 2", f"P-1.{new[6]}, 2")),
        (" 2, 1, 1., 15, 1, -1.,", f" {new[2]}, 1, 1., {new[15]}, 1, -1.,"),
        *(("15, 293.", f"{new[15]}, 293."), (" 1, 1, 2", f" {new[1]}, 1, 2")),
        *(("15, 1, 10.", f"{new[15]}, 1, 10."), ("P2NP, 6", f"P2NP, {new[6]}")),
    ):
        assert old in expected
        expected = expected.replace(old, now)
    text = (tmp_path / "b.inp").read_text()
    assert text.endswith(expected)
    assert "*NSET, NSET=left\n4, 5\n" in text
    assert "*ELEMENT, TYPE=CPE4\n3, 3, 6, 1, 2\n" in text


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            "*GADGET\n7, 1.\n",
            "line 26: cannot tell whether '7' of *GADGET is a node or an element",
        ),
        ("*NODE PRINT, NSET=7\nU\n", "line 25: cannot tell what NSET=7 is"),
        ("*CLOAD\n77, 1, 1.\n", "names node 77, which is not there"),
        (
            "*PART, NAME=a\n*END PART\n*PART, NAME=b\n",
            "line 27: has the parts a and b: several",
        ),
        ("*EQUATION\nx\n", "line 26: *EQUATION: 'x' is no number of terms"),
        ("*NODE\n91, 0., 0.\n92, 1x, 0.\n", "line 27: *NODE: '1x' is no number"),
        (
            "*NSET, NSET=self\nself\n",
            "*NSET self takes in the set 'self', which is not there",
        ),
        ("*INCLUDE, INPUT=a.inp\n", "*INCLUDE of a.inp takes itself in"),
    ],
)
def test_what_cannot_be_told_is_refused_by_line(lines, said, tmp_path):
    assert said in refused(DECK + lines, tmp_path / "a.inp")


def test_files_of_other_programs_are_told(tmp_path):
    ucd = "# from AVS UCD\n3 1 0 0 0\n1 0 0 0\n2 1 0 0\n3 0 1 0\n1 0 tri 1 2 3\n"
    said = refused(ucd, tmp_path / "a.inp", "this is no deck of Abaqus or CalculiX")
    assert "meshio convert --input-format avsucd a.inp new.vtu" in said
    refused(b"\7*AB\0\0\1*7, 1\n*X\n7", tmp_path / "b.inp", "is no text: it has zero bytes")


def test_pyramids_are_cells(tmp_path):
    """Of a pyramid and a hexahedron below it."""
    square = ["0,0", "1,0", "1,1", "0,1"]
    points = [f"{at},{z}" for z in (0, 1) for at in square] + [".5,.5,2"]
    nodes = "".join(f"{i}, {at}\n" for i, at in enumerate(points, 1))
    text = f"*NODE\n{nodes}*ELEMENT, TYPE=C3D8\n1, 1, 2, 3, 4, 5, 6, 7, 8\n"
    mesh = read(text + "*ELEMENT, TYPE=C3D5\n2, 5, 6, 7, 8, 9\n", tmp_path / "a.inp")
    assert mesh.cell_map("pyramid").table.tolist() == [[4, 5, 6, 7, 8]]
    io.write(mesh, tmp_path / "b.inp")
    assert "*ELEMENT, TYPE=C3D5\n2, 5, 6, 7, 8, 9\n" in (tmp_path / "b.inp").read_text()


def test_files_that_are_taken_in_stand_in_their_place(tmp_path):
    (tmp_path / "sub").mkdir()
    nodes = DECK[DECK.index("1, 0.") : DECK.index("*ELEMENT")]
    (tmp_path / "sub/nodes.txt").write_text(nodes)
    (tmp_path / "load.inp").write_text("** of the load\n*CLOAD\n15, 1, 3.\n")
    text = DECK.replace(nodes, "").replace("NSET=every", "NSET=every, INPUT=sub/nodes.txt")
    mesh = read(text + "*INCLUDE, INPUT=load.inp\n*END STEP\n", tmp_path / "a.inp")
    io.write(mesh, tmp_path / "b.inp")
    assert (
        (tmp_path / "b.inp")
        .read_text()
        .endswith("** of the load\n*CLOAD\n15, 1, 3.\n*END STEP\n")
    )
    assert mesh.coordinates.tolist() == read(DECK, tmp_path / "c.inp").coordinates.tolist()


def test_one_part_and_its_assembly(tmp_path):
    text = (
        "*PART, NAME=P\n" + DECK[DECK.index("*NODE") :] + "*END PART\n*ASSEMBLY, NAME=A\n"
    )
    text += (
        "*INSTANCE, NAME=P-1, PART=P\n*END INSTANCE\n*NSET, NSET=left, INSTANCE=P-1\n6,\n"
    )
    text += "*END ASSEMBLY\n*BOUNDARY\nleft, 1, 1\n"
    mesh = read(text, tmp_path / "a.inp")
    assert [i.index.tolist() for i in mesh.lists if i.name == "left"] == [[0, 2], [5]]
    assert io.write(without_numbers(mesh.renumber(MOVED)), tmp_path / "b.inp") == []
    assert (
        "*NSET, NSET=left, INSTANCE=P-1\n1\n*END ASSEMBLY\n"
        in (tmp_path / "b.inp").read_text()
    )


BEAM = """*NODE, NSET=All
{nodes}*ELEMENT, TYPE=C3D8, ELSET=Eall
{elements}*INCLUDE, INPUT=more.txt
*ELEMENT, TYPE=C3D8, ELSET=Over
50, 13, 17, 19, 15, 14, 18, 20, 16
*ELEMENT, TYPE=SPRINGA, ELSET=Springs
3, 22, 1
*SPRING, ELSET=Springs

20.
*ELEMENT, TYPE=MASS, ELSET=Weights
60, 23
*MASS, ELSET=Weights
2.
*NSET, NSET=Fix, GENERATE
1, 4, 1
*MATERIAL, NAME=M
*ELASTIC
1000., 0.3
*SOLID SECTION, ELSET=Eall, MATERIAL=M
*SOLID SECTION, ELSET=Over, MATERIAL=M
*EQUATION
*INCLUDE, INPUT=equal.txt
*BOUNDARY
Fix, 1, 3
*STEP
*STATIC
*CLOAD
21, 2, 1.5
24, 3, -0.5
*DLOAD
13, P2, 0.7
*NODE PRINT, NSET=All
U
*END STEP
"""


def displacements(folder):
    """What CalculiX finds at each place."""
    nodes, where = {}, {}
    lines = iter((folder / "beam.inp").read_text().splitlines())
    for line in lines:
        words = line.split(",")
        if line.startswith("*"):
            reading = line.upper().startswith("*NODE") and "PRINT" not in line
        elif reading:
            nodes[int(words[0])] = tuple(round(float(x), 9) for x in words[1:])
    subprocess.run(["ccx", "beam"], cwd=folder, check=True, capture_output=True)
    for line in (folder / "beam.dat").read_text().splitlines():
        if len(line.split()) == 4:
            number, *u = line.split()
            where[nodes[int(number)]] = [float(x) for x in u]
    return where


@pytest.mark.skipif(shutil.which("ccx") is None, reason="CalculiX is not here")
def test_calculix_finds_the_same(tmp_path):
    points = [(x, y, z) for x in range(6) for y in (0, 1) for z in (0, 1)]
    rows = [[4 * i + j for j in (1, 5, 7, 3, 2, 6, 8, 4)] for i in range(5)]
    nodes = "".join(f"{i}, {x}.25, {y}., {z}.\n" for i, (x, y, z) in enumerate(points, 1))
    lines = [f"{10 + i}, {', '.join(map(str, r))}\n" for i, r in enumerate(rows, 1)]
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    old, new = tmp_path / "old/beam.inp", tmp_path / "new/beam.inp"
    # elements that go on in another file, an equation, a layer, a spring and a weight
    old.write_text(BEAM.format(nodes=nodes, elements="".join(lines[:2])))
    (tmp_path / "old/more.txt").write_text("".join(lines[2:]))
    (tmp_path / "old/equal.txt").write_text("2\n21, 2, 1., 22, 2, -1.\n")
    command = ["reorder", str(old), "-o", str(new), "-q", "--method", "hilbert"]
    assert main([*command, "--loop", "cells:nodes"]) == 0
    assert (
        io.read(new).cell_map("cells").table.tolist()
        != io.read(old).cell_map("cells").table.tolist()
    )
    before, after = displacements(tmp_path / "old"), displacements(tmp_path / "new")
    assert len(before) == 24
    assert max(abs(u) for place in before.values() for u in place) > 0.1
    assert before.keys() == after.keys()
    for place, u in before.items():
        assert after[place] == pytest.approx(u, rel=1e-5, abs=1e-7)
