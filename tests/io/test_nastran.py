"""Decks of Nastran: every form of a card, decks that are cut off, and what is written."""

import random

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from io_meshes import plain_meshes
from texts import put, refused

from meshprep import io
from meshprep.mesh import Dat
from meshprep.mesh.assemble import Block, assemble
from meshprep.mesh.cells import node_count
from meshprep_cli.main import main
from meshprep_runtime.types.ordering import Ordering

# Cards as their fields; what is left out is empty.
NODES = {1: (0, 0, 0), 2: (1, 0, 0), 3: (0, 1, 0), 4: (0.5, 0.25, 1e-7), 5: (1, 1, -1.5e12)}
CARDS = [
    *(
        ["GRID", str(n), "", *(f"{float(x)!r}" for x in place)]
        for n, place in NODES.items()
    ),
    ["CTETRA", "10", "7", "1", "2", "3", "4"],
    ["CTETRA", "20", "8", "2", "5", "3", "4"],
    ["CQUAD4", "30", "9", "1", "2", "5", "3"],
    ["CTRIA3", "40", "9", "1", "2", "4"],
    ["CROD", "50", "6", "1", "4"],
]


def read(text, path):
    """The mesh of a deck, whose faces need not be faces of its volumes."""
    return io.read(put(text, path), dimension=0)


def small(fields):
    """A card in fields of eight characters."""
    out = f"{fields[0]:<8}"
    for i, text in enumerate(fields[1:]):
        if i and i % 8 == 0:
            out += "+\n+       "
        out += f"{text[:8]:>8}"
    return out + "\n"


def large(fields):
    """A card in fields of sixteen characters."""
    out = f"{fields[0] + '*':<8}"
    for i, text in enumerate(fields[1:]):
        if i and i % 4 == 0:
            out += "*\n*       "
        out += f"{text:>16}"
    return out + "\n"


def free(fields):
    """A card with commas."""
    lines = [fields[1 + i : 9 + i] for i in range(0, len(fields) - 1, 8)]
    return fields[0] + "," + "\n,".join(",".join(line) for line in lines) + "\n"


def tabs(fields):
    """A card with tabs, each of which goes on to the next field."""
    return "\t".join(fields) + "\n"


def short(card):
    """Whether the fields of a card are small ones."""
    return all(len(text) <= 7 for text in card) and len(card) <= 9


@st.composite
def decks(draw):
    lines = []
    for card in draw(st.permutations(CARDS)):
        forms = [large, free, *([small, tabs] if short(card) else [])]
        text = draw(st.sampled_from(forms))(card)
        if draw(st.booleans()):
            text = text.lower()
        if draw(st.booleans()):
            text = text.replace("e-", draw(st.sampled_from(["-", "d-", "D-"])))
        if draw(st.booleans()):
            text = text.replace("\n", " $ a comment\n", 1) if "*\n" not in text else text
        lines.append(text)
    return lines


@settings(max_examples=effort.examples(60), deadline=None)
@given(decks())
def test_a_card_is_the_same_in_every_form(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("deck")
    mesh = read("".join(lines), folder / "a.bdf")
    numbers = mesh.dat("label", "nodes")
    found = [1, 2, 3, 4, 5] if numbers is None else numbers.values.tolist()
    for number, place in zip(found, mesh.coordinates.tolist(), strict=True):
        assert place == pytest.approx(NODES[number], abs=0, rel=1e-15)
    cells = set()
    for s in mesh.cell_sets:
        table = np.array(found)[mesh.cell_map(s.name).table]
        groups = mesh.tag("nastran:ref", s.name).first_ids()
        for group, row in zip(groups.tolist(), table.tolist(), strict=True):
            cells.add((group, *row))
    assert cells == {tuple(int(t) for t in card[2:]) for card in CARDS if card[0] != "GRID"}


DECK = "SOL 101\nCEND\nBEGIN BULK\n" + "".join(free(card) for card in CARDS) + "ENDDATA\n"


def test_a_deck_that_is_cut_off_is_refused_wherever_it_is_cut(tmp_path):
    end = DECK.index("ENDDATA") + len("ENDDATA")
    for cut in range(len("SOL 101\nCEND\n"), end):
        message = refused(DECK[:cut], tmp_path / "a.bdf")
        assert "cut off" in message, DECK[:cut]
    assert read(DECK[:end], tmp_path / "a.bdf").size("cells") == 2


def test_bulk_data_alone_may_end_without_a_word(tmp_path):
    """But not in the middle of a line."""
    bulk = DECK[DECK.index("GRID") : DECK.index("ENDDATA")]
    assert read(bulk, tmp_path / "a.bdf").size("cells") == 2
    for cut in range(len(bulk) - 40, len(bulk)):
        if bulk[cut - 1] != "\n":
            assert "ends in the middle of a line" in refused(bulk[:cut], tmp_path / "a.bdf")


def test_files_that_are_taken_in_are_read_in_place(tmp_path):
    """Before BEGIN BULK, too, and with a name that goes on in the next line."""
    (tmp_path / "parts").mkdir()
    begin, end = DECK.index("GRID"), DECK.index("CTETRA")
    put(DECK[begin:end], tmp_path / "parts/nodes.bdf")
    put("CEND\nBEGIN BULK\n", tmp_path / "head.inc")
    text = "SOL 101\ninclude head.inc\nINCLUDE 'parts/\n  nodes.bdf'\n" + DECK[end:]
    mesh = read(text, tmp_path / "a.bdf")
    assert mesh.size("nodes") == 5
    assert mesh.size("cells") == 2
    assert "unread" not in mesh.extras


def test_constraints_that_all_nodes_have_are_no_coordinates(tmp_path):
    constrained = DECK.replace("GRID,1,", "grdset,,,,,,,345\nGRID,1,", 1)
    mesh = read(constrained, tmp_path / "a.bdf")
    assert mesh.coordinates[1].tolist() == [1, 0, 0]
    assert mesh.extras["unread"] == ("GRDSET",)
    own = DECK.replace("GRID,1,", "GRDSET,,5\nGRID,1,", 1)
    assert "other coordinates (GRDSET)" in refused(own, tmp_path / "a.bdf")
    basic = own
    for number in NODES:
        basic = basic.replace(f"GRID,{number},,", f"GRID,{number},0,")
    assert read(basic, tmp_path / "a.bdf").size("nodes") == 5


@pytest.mark.parametrize("behind", [",3", ",30.", ",,0.1", ",30.,0.1\n,,,0.2,0.2,0.2,0.2"])
def test_what_stands_behind_the_nodes_of_a_cell_is_none_of_them(behind, tmp_path):
    text = DECK.replace("CQUAD4,30,9,1,2,5,3\n", f"CQUAD4,30,9,1,2,5,3{behind}\n")
    mesh = read(text, tmp_path / "a.bdf")
    assert mesh.map("quad->nodes").table.tolist() == [[0, 1, 4, 2]]
    said = "angles, offsets and thicknesses of CQUAD4"
    assert mesh.extras["unread"] == (said,)
    assert f"{said} (not read)" in io.losses(mesh, io.FORMATS["nastran"])


def test_middles_of_edges_are_all_there_or_none(tmp_path):
    nodes = "".join(f"GRID,{n},,{n % 3}.,{n // 3}.,{n * n}.\n" for n in range(1, 12))
    whole = "CTETRA,1,1,1,2,3,4,5,6\n,7,8,9,10\n"
    mesh = read(nodes + whole, tmp_path / "a.bdf")
    assert mesh.sets["cells"].cell_type == "tetra10"
    assert mesh.cell_map("cells").table.tolist() == [[*range(10)]]
    for part in ("CTETRA,1,1,1,2,3,4,5,6\n,7,,9,10\n", "CTETRA,1,1,1,2,3,4,,6\n"):
        said = refused(nodes + part, tmp_path / "a.bdf")
        assert "line 12: cell 1 is of type 'tetra10', which has 10 nodes, but has" in said
    for wrong in ("CTETRA,1,1,1,2,3\n", "CTETRA,1,1,1,2,,4\n"):
        said = refused(nodes + wrong, tmp_path / "a.bdf")
        assert "line 12: cell 1 is of type 'tetra', which has 4 nodes, but has 3" in said
    more = whole.replace("10\n", "10,11\n")
    assert "but has 11" in refused(nodes + more, tmp_path / "a.bdf")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("GRID,1,", "GRID,1x,", "line 4: field 2 of GRID is '1x', must be a whole number"),
        (
            "GRID,2,,1.0",
            "GRID,2,,1_0",
            "line 5: field 4 of GRID is '1_0', must be a number",
        ),
        ("CROD,50,6,1,4", "CROD,50,6,1,\u0664", "must be a whole number"),
        ("CROD,50,6,1,4", "CROD,50,6,1,99999999999999999999", "must be a whole number"),
        ("CROD,50,6,1,4", "CROD,50,6,1,4,,,,,,7", "has more than 10 fields"),
        ("GRID,1,", ",1,2\nGRID,1,", "line 4: '' goes on with no line above"),
        ("SOL 101\nCEND\nBEGIN BULK\n", "BEGIN BULK\nBEGIN BULK\n", "several models"),
    ],
)
def test_bad_fields_of_cards_are_refused_by_line(old, new, said, tmp_path):
    text = DECK.replace(old, new, 1)
    assert said in refused(text, tmp_path / "a.bdf")


def test_marks_of_lines_that_go_on_must_agree(tmp_path):
    """Old decks have such lines anywhere."""
    nodes = "".join(f"GRID,{n},,{n % 3}.,{n // 3}.,{n * n}.\n" for n in range(1, 9))
    first = f"{'CHEXA':<8}" + "".join(f"{n:>8}" for n in (1, 1, 1, 2, 3, 4, 5, 6)) + "+A1\n"
    assert read(f"{nodes}{first}{'+A1':<8}{7:>8}{8:>8}\n", tmp_path / "a.bdf").size("cells")
    said = refused(f"{nodes}{first}{'+A2':<8}{7:>8}{8:>8}\n", tmp_path / "a.bdf")
    assert "line 10: '+A2' goes on with no line above" in said


def test_layers_on_the_same_nodes_are_cells_of_their_own(tmp_path):
    text = DECK.replace("CTETRA,20,8,2,5,3,4", "CTETRA,20,8,1,2,3,4")
    assert read(text, tmp_path / "a.bdf").size("cells") == 2


def test_springs_to_the_ground_are_no_lines(tmp_path):
    text = DECK.replace("CROD,50", "CBUSH,60,6,4\nCBUSH,61,6,1,2\nCROD,50")
    mesh = read(text, tmp_path / "a.bdf")
    assert mesh.size("line") == 2
    assert mesh.extras["unread"] == ("CBUSH",)


def cards_of(path):
    """A slow reader of what is written: it knows the columns of small and large fields."""
    head, bulk = path.read_text().split("BEGIN BULK\n")
    assert head.splitlines()[1:] == ["SOL 101", "CEND"]
    assert bulk.endswith("ENDDATA\n")
    cards = []
    for line in bulk.splitlines()[:-1]:
        assert len(line) <= 73
        width = 16 if "*" in line[:8] else 8
        fields = [line[i : i + width].strip() for i in range(8, min(len(line), 72), width)]
        if line[0] in "+*":
            assert cards[-1][1].endswith(line[0])
            cards[-1][0].extend(fields)
            cards[-1] = (cards[-1][0], line[72:])
        else:
            cards.append(([line[:8].strip(" *"), *fields], line[72:]))
    return [fields for fields, _ in cards]


def number(text):
    """A real of Nastran: it has a point, and its exponent may have no letter."""
    assert "." in text
    assert len(text) <= 16
    sign = max(text.rfind("+"), text.rfind("-"))
    return float(text[:sign] + "e" + text[sign:] if sign > 0 else text)


@pytest.mark.parametrize("cell_type", ["tetra10", "pyramid13", "wedge15", "hexahedron20"])
def test_cells_of_second_order_are_written_in_their_order(cell_type, tmp_path):
    n = node_count(cell_type)
    points = np.random.default_rng(n).random((2 * n, 3))
    nodes = np.random.default_rng(1).permutation(2 * n).reshape(2, n)
    mesh = assemble(points, [Block(cell_type, nodes)])[0]
    assert io.write(mesh, tmp_path / "a.bdf") == []
    back = io.read(tmp_path / "a.bdf")
    assert np.array_equal(back.cell_map("cells").table, nodes)
    # upright edges stand before those of the top
    corners = {"tetra10": 4, "pyramid13": 5, "wedge15": 6, "hexahedron20": 8}[cell_type]
    upright = {"wedge15": [9, 10, 11], "hexahedron20": [12, 13, 14, 15]}.get(cell_type, [])
    expected = {"wedge15": [12, 13, 14], "hexahedron20": [16, 17, 18, 19]}.get(
        cell_type, []
    )
    rows = [card for card in cards_of(tmp_path / "a.bdf") if card[0] != "GRID"]
    for card, row in zip(rows, nodes.tolist(), strict=True):
        written = [int(text) - 1 for text in card[3:]]
        assert written[:corners] == row[:corners]
        assert [written[i] for i in upright] == [row[i] for i in expected]


@settings(max_examples=effort.examples(300), deadline=None)
@given(st.floats(-1e300, 1e300))
def test_reals_keep_ten_digits(value):
    from meshprep.io.nastran.write import _real

    assert number(_real(value)) == pytest.approx(value, rel=5e-10, abs=0)


def test_simple_reals_stay_short():
    from meshprep.io.nastran.write import _real

    shown = [_real(x) for x in (0.0, -0.0, 1.0, -2.5, 0.1, 1e7, 1.25e-9, 1e300)]
    assert shown == ["0.", "0.", "1.", "-2.5", "0.1", "10000000.", "1.25-9", "1.+300"]
    assert _real(9.99999999999999956) == "10."
    assert _real(-99999.999999999999) == "-100000."
    assert _real(0.123456789012345678) == "0.12345678901235"
    assert _real(-1234.56789012345678) == "-1234.5678901235"


@pytest.mark.parametrize("kind", ["surface", "tets with skin", "mixed solid", "lines"])
def test_what_is_written_is_what_was_read(kind, tmp_path):
    mesh = plain_meshes()[kind]
    chance = random.Random(3)
    dats = []
    begin = 123456789
    for s in mesh.cell_sets:
        values = np.arange(begin, begin + s.size)
        begin += s.size
        chance.shuffle(values)
        dats.append(Dat("label", s.name, values))
    numbers = np.arange(1, mesh.size("nodes") + 1)[::-1].copy()
    mesh = mesh.with_(dats=[*dats, Dat("label", "nodes", numbers)])
    assert io.write(mesh, tmp_path / "a.bdf") == []
    cards = cards_of(tmp_path / "a.bdf")
    places = {int(c[1]): [number(t) for t in c[3:6]] for c in cards if c[0] == "GRID"}
    rows = {int(c[1]): [int(t) for t in c[3:]] for c in cards if c[0] != "GRID"}
    for i, place in zip(numbers.tolist(), mesh.coordinates.tolist(), strict=True):
        assert places[i][: len(place)] == pytest.approx(place)
    for s in mesh.cell_sets:
        label = mesh.dat("label", s.name).values.tolist()
        for i, nodes in zip(label, mesh.cell_map(s.name).table, strict=True):
            assert rows[i] == numbers[nodes].tolist()


def test_properties_follow_their_cells(tmp_path):
    mesh = read(DECK, tmp_path / "a.bdf")
    order = {"cells": Ordering.from_new_to_old(np.array([1, 0]))}
    io.write(mesh.renumber(order), tmp_path / "b.bdf")
    found = {c[1]: c[2] for c in cards_of(tmp_path / "b.bdf") if c[0] != "GRID"}
    assert found == {"20": "8", "10": "7", "30": "9", "40": "9", "50": "6"}


def test_a_reordered_deck_can_be_reordered_again(tmp_path):
    put(DECK, tmp_path / "a.bdf")
    for old, new in (("a", "b"), ("b", "c")):
        command = [
            "reorder",
            str(tmp_path / f"{old}.bdf"),
            "-o",
            str(tmp_path / f"{new}.bdf"),
        ]
        assert main([*command, "-q", "--loop", "cells:nodes", "--dimension", "3"]) == 0
    assert len(cards_of(tmp_path / "c.bdf")) == len(CARDS)
