"""Decks: whatever names a node or an element by its number says the same after renumbering."""

from dataclasses import replace

import effort
import numpy as np
import pytest
from decks import told
from hypothesis import given, settings
from hypothesis import strategies as st
from texts import read, refused

from meshprep import io
from meshprep_runtime.types.ordering import Ordering

PLATE = """*NODE
153, 0.0, 0.0, 0.
133, 1.0, 0.0, 0.
83, 2.0, 0.0, 0.
183, 0.0, 1.0, 0.
73, 1.0, 1.0, 0.
13, 2.0, 1.0, 0.
*ELEMENT, TYPE=S4, ELSET=plates
100, 153, 133, 73, 183
107, 133, 83, 13, 73
"""


def numbered_from_1(mesh):
    """As a reordered file is."""
    return replace(mesh, dats=tuple(d for d in mesh.dats if d.name != "label"))


def again(text, tmp_path, seed=0):
    """What a deck says, and what it says in another order, numbered from 1."""
    mesh = read(text, tmp_path / "a.inp")
    chance = np.random.default_rng(seed)
    names = ["nodes", *(s.name for s in mesh.cell_sets)]
    order = {n: Ordering.from_new_to_old(chance.permutation(mesh.size(n))) for n in names}
    moved = mesh.renumber(order)
    assert io.write(numbered_from_1(moved), tmp_path / "b.inp", overwrite=True) == []
    return told(tmp_path / "a.inp"), told(tmp_path / "b.inp")


LINES = {
    "BOUNDARY": ["{n}, 1, 2", "plates2, 1"],
    "CLOAD": ["{n}, 2, 7."],
    "TEMPERATURE": ["{n}, 300."],
    "NORMAL": ["{e}, {n}, 0., 0., 1."],
    "MPC": ["BEAM, {n}, {n}", "PLANE, {n}, {n}, {n}, {n}, 0, 0"],
    "EQUATION": ["2\n{n}, 1, 1., {n}, 1, -1.", "1\n{n}, 3, 1."],
    "DLOAD": ["{e}, P, 5.", "plates, P, 5.", ", GRAV, 9.81"],
    "FILM": ["{e}, F1FC, {n}, 3.", "{e}, F1NU, 73, 3.", "{e}, F1, 13, 3."],
    "MODEL CHANGE, TYPE=ELEMENT, REMOVE": ["{e}, {e}"],
    "INITIAL CONDITIONS, TYPE=TEMPERATURE": ["{n}, 20."],
    "DISTRIBUTION, NAME=t, LOCATION=ELEMENT": [", 0.1\n{e}, 0.2"],
    "SURFACE, NAME=top, TYPE=ELEMENT": ["{e}, S1"],
}


@st.composite
def decks(draw):
    nodes = st.sampled_from([153, 133, 83, 183, 73, 13])
    elements = st.sampled_from([100, 107, 900, 3])
    text = PLATE
    others = "*ELEMENT, TYPE=SPRINGA, ELSET=springs\n3, 153, 13\n900, 83, 183\n"
    sets = "*NSET, NSET=plates2\n13, 153\n*ELSET, ELSET=mixed\n3, 107\n"
    text += others + sets
    for _ in range(draw(st.integers(1, 6))):
        keyword = draw(st.sampled_from([*LINES]))
        line = draw(st.sampled_from(LINES[keyword]))
        while "{n}" in line or "{e}" in line:
            line = line.replace("{n}", str(draw(nodes)), 1)
            line = line.replace("{e}", str(draw(elements)), 1)
        text += f"*{keyword}\n{line}\n"
    return text


@settings(max_examples=effort.examples(40), deadline=None)
@given(decks(), st.integers(0, 1000))
def test_decks_say_the_same_in_any_order(tmp_path_factory, text, seed):
    before, after = again(text, tmp_path_factory.mktemp("deck"), seed)
    assert before.elements == after.elements
    assert before == after


def test_elements_that_loops_do_not_run_over_keep_their_numbers_where_they_can(tmp_path):
    text = (
        PLATE
        + "*ELEMENT, TYPE=SPRINGA, ELSET=s\n2, 153, 13\n900, 83,\n183\n"
        + "*ELEMENT, TYPE=D\n7, 0, 73, 83\n8, 83, 153, 0\n*DLOAD\n2, GRAV, 1.\n"
    )
    before, after = again(text, tmp_path)
    assert before.elements == after.elements
    written = (tmp_path / "b.inp").read_text()
    lines = written.splitlines()
    at = lines.index("*ELEMENT, TYPE=SPRINGA")
    # two cells have the numbers 1 and 2: the spring of that number comes behind all
    assert lines[at + 1].startswith("901, ")
    assert lines[at + 2].startswith("900, ")
    assert lines[lines.index("*ELEMENT, TYPE=D") + 1].startswith("7, 0, ")
    assert "*ELSET, ELSET=s\n901, 900\n" in written
    assert written.endswith("*DLOAD\n901, GRAV, 1.\n")
    mesh = io.read(tmp_path / "b.inp")
    names = {i.name for i in mesh.lists if i.set == "nodes"}
    assert {"elements of type SPRINGA", "elements of type D"} <= names
    lost = io.losses(mesh, io.FORMATS["vtu"])
    assert "the list 'elements of type SPRINGA' of 'nodes'" in lost


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        ("*ELEMENT, TYPE=MASS\n9, 13\n", 1),
        ("*ELEMENT, TYPE=DCOUP3D\n9, 13\n", 1),
        ("*ELEMENT, TYPE=GAPUNI\n9, 13, 73\n", 2),
        (
            "*USER ELEMENT, TYPE=U7, NODES=4, MAXDOF=3\n*ELEMENT, TYPE=U7\n9, 13, 73,\n83, 153\n",
            4,
        ),
        ("*ELEMENT, TYPE=US3\n9, 13, 73, 83\n", 3),
        ("*ELEMENT, TYPE=COH3D6\n9, 153, 133, 83, 183, 73, 13\n", 6),
        ("*ELEMENT, TYPE=GK3D4\n9, 153, 133, 83, 183\n", 4),
    ],
)
def test_elements_of_other_types_come_back(lines, count, tmp_path):
    before, after = again(PLATE + lines, tmp_path)
    assert before.elements == after.elements
    mesh = io.read(tmp_path / "b.inp")
    found = [i.index.size for i in mesh.lists if i.name.startswith("elements of type")]
    assert found == [count]
    assert mesh.size("cells") == 2


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("*ELEMENT, TYPE=MASS\n9, 13, 73\n", "line 12: element 9 of type MASS has 2 nodes"),
        (
            "*ELEMENT, TYPE=SPRINGA\n9, 13,\n",
            "element 9 of type SPRINGA ends in the middle",
        ),
        ("*ELEMENT, TYPE=GK3D4\n9, 13,\n73\n", "line 12: cannot tell whether element 9 of"),
        (
            "*ELEMENT, TYPE=MASS\n9, 14\n",
            "an element of type MASS names node 14, which is not",
        ),
        ("*ELEMENT, TYPE=MASS\n100, 13\n", "element 100 stands twice"),
        (
            "*TEMPERATURE, FILE=heat.frd\n",
            "line 11: *TEMPERATURE takes in results of heat.frd",
        ),
        (
            "*RESTART, READ\n",
            "line 11: *RESTART takes in results of a job with the old numbers",
        ),
        ("*INITIAL CONDITIONS, TYPE=STRESS, FILE=a.odb\n", "takes in results of a.odb"),
        ("*IMPORT, STEP=2\n", "line 11: *IMPORT takes in results"),
        ("*VIEWFACTOR, READ, INPUT=a.vwf\n", "line 11: *VIEWFACTOR takes in results"),
        (
            "*MATRIX INPUT\n7, 1, 7, 1, 5.\n",
            "line 12: cannot tell whether '7' of *MATRIX INPUT",
        ),
        (
            "*TEMPERATURE\n13, 1., 2., 3., 4., 5., 6., 7.\n8, 9.\n",
            "line 13: cannot tell whether '8' of *TEMPERATURE",
        ),
        ("*SURFACE, TYPE=USER, NAME=a\n7, 1\n", "cannot tell whether '7' of *SURFACE"),
        ("*NSET\n13\n", "line 11: *NSET has no name"),
    ],
)
def test_what_would_be_wrong_with_other_numbers_is_refused_by_line(lines, said, tmp_path):
    assert said in refused(PLATE + lines, tmp_path / "a.inp")


def test_zero_is_no_number_of_a_node(tmp_path):
    """A section of a network has numbers of elements in some types, and 0 for none."""
    section = "*FLUID SECTION, TYPE=GAS PIPE, ELSET=plates\n7.1E-4, 0, 1.\n"
    before, after = again(PLATE + section, tmp_path)
    assert after == before
    assert section in (tmp_path / "b.inp").read_text()


def test_jobs_that_write_results_are_no_trouble(tmp_path):
    text = (
        PLATE + "*RESTART, WRITE, FREQUENCY=2\n*VIEWFACTOR, WRITE\n*SUBMODEL, TYPE=NODE, "
    )
    before, after = again(text + "INPUT=global.frd\n13,\n", tmp_path)
    assert (tmp_path / "b.inp").read_text().count("INPUT=global.frd") == 1
    assert before.elements == after.elements


def test_numbers_in_unusual_places_follow(tmp_path):
    """Nodes that an orientation, a riks step or an option names."""
    text = PLATE + (
        "*ORIENTATION, NAME=o, DEFINITION=NODES\n153, 133, 183\n3, 13.\n"
        "*STATIC, RIKS\n1., 1., 1., 1., 1., 13, 2, 83.\n"
        "*PRE-TENSION SECTION, ELEMENT=107, NODE=83\n"
        "*STATIC\n13, 13\n"
    )
    mesh = read(text, tmp_path / "a.inp")
    order = {
        "nodes": Ordering.from_new_to_old(np.array([5, 4, 3, 2, 1, 0])),
        "cells": Ordering.from_new_to_old(np.array([1, 0])),
    }
    io.write(mesh.renumber(order), tmp_path / "b.inp")
    # numbers that are kept: what is no node or element is as it was
    written = (tmp_path / "b.inp").read_text()
    tail = text[text.index("*ORIENTATION") :]
    assert written.endswith(tail)
    io.write(numbered_from_1(mesh.renumber(order)), tmp_path / "c.inp")
    assert (
        (tmp_path / "c.inp")
        .read_text()
        .endswith(
            "*ORIENTATION, NAME=o, DEFINITION=NODES\n6, 5, 3\n3, 13.\n"
            "*STATIC, RIKS\n1., 1., 1., 1., 1., 1, 2, 83.\n"
            "*PRE-TENSION SECTION, ELEMENT=1, NODE=4\n"
            "*STATIC\n13, 13\n"
        )
    )


EQUAL = "*NSET, NSET=a{}\n153, 133\n*NSET, NSET=b{}\n183, 73\n"


def test_sets_that_an_equation_goes_through_in_step(tmp_path):
    """Abaqus takes the nodes of a set by their numbers, unless the set is UNSORTED."""
    lines = "*EQUATION\n2\na, 1, 1., b, 1, -1.\n"
    said = refused(PLATE + EQUAL.format("", "") + lines, tmp_path / "a.inp")
    assert "line 17: *EQUATION goes through the sets a and b by the numbers" in said
    assert "make a UNSORTED" in said
    tie = "*MPC\nTIE, a, b\n"
    said = refused(PLATE + EQUAL.format(", UNSORTED", "") + tie, tmp_path / "a.inp")
    assert "make b UNSORTED" in said
    text = PLATE + EQUAL.format(", UNSORTED", ", UNSORTED") + lines + tie
    mesh = read(text, tmp_path / "a.inp")
    io.write(mesh, tmp_path / "b.inp")
    assert "*NSET, NSET=b, UNSORTED\n183, 73\n" in (tmp_path / "b.inp").read_text()
    one = PLATE + EQUAL.format("", "") + "*MPC\nBEAM, a, 13\nPLANE, a, b\n"
    assert read(one, tmp_path / "c.inp").size("cells") == 2


def test_layers_of_elements_on_the_same_nodes(tmp_path):
    """Removing one would halve the stiffness."""
    text = PLATE + "*ELEMENT, TYPE=S4, ELSET=over\n900, 153, 133, 73, 183\n"
    mesh = read(text, tmp_path / "a.inp")
    assert mesh.size("cells") == 3
    before, after = again(text, tmp_path)
    assert before == after
    assert before.elements.most_common(1)[0][1] == 2


def test_numbers_as_fortran_writes_them(tmp_path):
    text = PLATE.replace("133, 1.0, 0.0", "133, 1.0D0, 0.0d+00").replace(
        "83, 2.0, 0.0", "83, .2+1, 0.0"
    )
    mesh = read(text, tmp_path / "a.inp")
    assert mesh.coordinates[:3, 0].tolist() == [0, 1, 2]


def test_normals_of_nodes_follow(tmp_path):
    text = PLATE.replace("73, 1.0, 1.0, 0.", "73, 1.0, 1.0, 0., 0., 0., 1.")
    text = text.replace("13, 2.0, 1.0, 0.", "13, 2.0, 1.0, 0., 0., 1.")
    mesh = read(text, tmp_path / "a.inp")
    order = {"nodes": Ordering.from_new_to_old(np.array([5, 4, 3, 2, 1, 0]))}
    io.write(mesh.renumber(order), tmp_path / "b.inp")
    lines = (tmp_path / "b.inp").read_text().splitlines()
    assert lines[1:4] == [
        "13, 2.0, 1.0, 0.0, 0.0, 1.0, 0.0",
        "73, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0",
        "183, 0.0, 1.0, 0.0",
    ]
    back = io.read(tmp_path / "b.inp").dat("abaqus:normal", "nodes")
    assert back.index.tolist() == [0, 1]
