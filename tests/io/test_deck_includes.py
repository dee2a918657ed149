"""Decks in several files: all of it is read in place, and what is written is one file."""

import random

import effort
import pytest
from decks import told
from hypothesis import given, settings
from hypothesis import strategies as st
from texts import put, read, refused

from meshprep import io
from meshprep_cli.main import main
from meshprep_runtime.errors import MeshprepError

DECK = """*HEADING
two rows of plates
*NODE, NSET=all
10, 0.0, 0.0
20, 1.0, 0.0
30, 2.0, 0.0
40, 0.0, 1.0
50, 1.0, 1.0
60, 2.0, 1.0
70, 0.0, 2.0
80, 1.0, 2.0
90, 2.0, 2.0
*ELEMENT, TYPE=CPS4, ELSET=plates
1, 10, 20, 50, 40
3, 20, 30, 60, 50
5, 40, 50, 80, 70
7, 50, 60, 90, 80
*NSET, NSET=left
10, 40
70
*ELSET, ELSET=upper
5, 7
*BOUNDARY
left, 1, 2
20, 2
*EQUATION
2
30, 1, 1., 60, 1, -1.
*STEP
*STATIC
*CLOAD
90, 1, 10.
80, 1, 10.
*DLOAD
upper, P3, 1.5
1, P1, 2.5
*END STEP
"""
LINES = DECK.splitlines(keepends=True)


def renumbered(tmp_path, text, **files):
    """What the deck says, and what the reordered one says."""
    for name, content in files.items():
        put(content, tmp_path / f"{name}.inc")
    put(text, tmp_path / "a.inp")
    command = ["reorder", str(tmp_path / "a.inp"), "-o", str(tmp_path / "b.inp"), "-q"]
    assert main([*command, "--method", "hilbert", "--force"]) == 0
    assert ".inc" not in (tmp_path / "b.inp").read_text()
    return told(tmp_path / "a.inp"), told(tmp_path / "b.inp")


def test_elements_that_go_on_in_another_file_are_all_there(tmp_path):
    """The lines behind *INCLUDE belong to the keyword before it."""
    cut = LINES.index("5, 40, 50, 80, 70\n")
    text = "".join([*LINES[:cut], "*include, input=rest.inc\n", *LINES[cut + 2 :]])
    before, after = renumbered(tmp_path, text, rest="".join(LINES[cut : cut + 2]))
    assert sum(before.elements.values()) == 4
    assert before == after


def test_a_file_that_is_taken_in_takes_in_another(tmp_path):
    """Both are looked for in the folder of the deck, as solvers do."""
    cut = LINES.index("5, 40, 50, 80, 70\n")
    (tmp_path / "more").mkdir()
    put("*INCLUDE, INPUT=more/last.inc\n", tmp_path / "more/first.inc")
    put("7, 50, 60, 90, 80\n", tmp_path / "more/last.inc")
    text = [*LINES[: cut + 1], "*INCLUDE, INPUT=more/first.inc\n", *LINES[cut + 2 :]]
    assert read("".join(text), tmp_path / "a.inp").size("cells") == 4


@settings(max_examples=effort.examples(25), deadline=None)
@given(st.integers(0, 2**32))
def test_a_deck_says_the_same_wherever_it_is_cut_into_files(tmp_path_factory, seed):
    folder = tmp_path_factory.mktemp("deck")
    chance = random.Random(seed)
    put(pieces(LINES, folder, chance, 3), folder / "a.inp")
    put(DECK, folder / "whole.inp")
    io.write(io.read(folder / "a.inp"), folder / "b.inp")
    io.write(io.read(folder / "whole.inp"), folder / "c.inp")
    assert (folder / "b.inp").read_text() == (folder / "c.inp").read_text()
    assert told(folder / "a.inp") == told(folder / "whole.inp")


def pieces(lines, folder, chance, depth):
    """The lines with some of them in other files."""
    if depth == 0 or len(lines) < 3:
        return "".join(lines)
    begin, end = sorted(chance.sample(range(len(lines) + 1), 2))
    name = f"{depth}-{chance.randrange(10**6)}.txt"
    put(pieces(lines[begin:end], folder, chance, depth - 1) or "\n", folder / name)
    return "".join([*lines[:begin], f"*INCLUDE, INPUT={name}\n", *lines[end:]])


def test_lines_of_every_keyword_are_written_out_with_the_new_numbers(tmp_path):
    text = DECK
    files = {
        "nodes": "".join(LINES[3:12]),
        "plates": "".join(LINES[13:17]),
        "left": "10, 40\n70\n",
        "fixed": "left, 1, 2\n20, 2\n",
        "equal": "2\n30, 1, 1., 60, 1, -1.\n",
        "pull": "90, 1, 10.\n80, 1, 10.\n",
        "press": "upper, P3, 1.5\n1, P1, 2.5\n",
    }
    heads = {
        "nodes": "*NODE, NSET=all\n",
        "plates": "*ELEMENT, TYPE=CPS4, ELSET=plates\n",
        "left": "*NSET, NSET=left\n",
        "fixed": "*BOUNDARY\n",
        "equal": "*EQUATION\n",
        "pull": "*CLOAD\n",
        "press": "*DLOAD\n",
    }
    for name, content in files.items():
        head = heads[name].rstrip()
        assert heads[name] + content in text
        text = text.replace(heads[name] + content, f"{head}, INPUT={name}.inc\n")
    before, after = renumbered(tmp_path, text, **files)
    assert before == after
    assert before.sets["NSET", "LEFT"].total() == 3
    put(DECK, tmp_path / "whole.inp")
    assert told(tmp_path / "whole.inp") == before


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("*INCLUDE, INPUT=none.inc", "line 1: *INCLUDE: none.inc does not exist"),
        ("*INCLUDE", "line 1: *INCLUDE: names no file: name one"),
        (
            "*INCLUDE, INPUT=../b.inc",
            "takes in ../b.inc, which is not in the folder of the",
        ),
        ("*NODE, INPUT=../b.inc", "*NODE takes in ../b.inc, which is not in the folder of"),
        (
            "*CLOAD, INPUT={outside}",
            "which is not in the folder of the deck: copy it there",
        ),
        ("*INCLUDE, INPUT=link.inc", "takes in link.inc, which is not in the folder"),
        ("*INCLUDE, INPUT=a.inp", "line 1: *INCLUDE of a.inp takes itself in"),
        (
            "*INCLUDE, INPUT=round.inc",
            "round.inc line 1: *INCLUDE of a.inp takes itself in",
        ),
        ("*INCLUDE, INPUT=/dev/zero", "*INCLUDE: /dev/zero is no regular file"),
        ("*INCLUDE, INPUT=bad.inc", "bad.inc line 2: cannot tell"),
    ],
)
def test_files_that_cannot_be_taken_in_are_refused_in_a_line(line, said, tmp_path):
    put("9, 0., 0.\n", tmp_path / "b.inc")
    folder = tmp_path / "deck"
    folder.mkdir()
    (folder / "link.inc").symlink_to(tmp_path / "b.inc")
    put("*INCLUDE, INPUT=a.inp\n", folder / "round.inc")
    put("*GADGET\n7, 1.\n", folder / "bad.inc")
    text = line.format(outside=tmp_path / "b.inc") + "\n" + DECK
    assert said in refused(text, folder / "a.inp")


def test_files_that_multiply_are_refused(tmp_path):
    """Four files of a few lines would be more than ten million."""
    for name, other in (("a.inp", "b"), ("b", "c"), ("c", "d")):
        put(f"*INCLUDE, INPUT={other}\n" * 60, tmp_path / name)
    put("** a line\n" * 60, tmp_path / "d")
    with pytest.raises(MeshprepError, match="takes in d more than 100 times"):
        io.read(tmp_path / "a.inp")


def test_the_place_in_a_file_that_is_taken_in_is_named(tmp_path):
    put("90, 1, 10.\n** a comment\n99, 1, 10.\nX, 7.\n", tmp_path / "loads.inc")
    text = DECK.replace("90, 1, 10.\n", "*GADGET\n*INCLUDE, INPUT=loads.inc\n")
    assert "loads.inc line 1: cannot tell whether '90' of *GADGET" in refused(
        text, tmp_path / "a.inp"
    )
