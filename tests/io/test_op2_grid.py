"""Airfoil's text grid: every digit kept, damage found."""

import itertools
import re

import numpy as np
import pytest
from op2_files import c_mesh, shuffles, write_text
from texts import read, refused

from meshprep import io
from meshprep_runtime import MeshprepError


def test_the_text_grid_keeps_every_digit(tmp_path):
    mesh = c_mesh()
    write_text(tmp_path / "new_grid.dat", mesh)
    read = io.read(tmp_path / "new_grid.dat")
    order = shuffles({s.name: s.size for s in read.sets.values()})
    assert io.write(read.renumber(order), tmp_path / "new.dat") == []
    old, new = (
        [line.split() for line in (tmp_path / n).read_text().splitlines()]
        for n in ("new_grid.dat", "new.dat")
    )
    assert old[0] == new[0]
    n, e, b = (order[s] for s in ("nodes", "edges", "bedges"))
    cells = order["cells"]
    first = [1]
    for s in (n, cells, e, b):
        first.append(first[-1] + s.size)
    text = [new[a:z] for a, z in itertools.pairwise(first)]
    before = [old[a:z] for a, z in itertools.pairwise(first)]
    assert text[0] == [before[0][i] for i in n.new_to_old]
    moved = lambda order, words: [str(order.old_to_new[int(w)]) for w in words]  # noqa: E731
    assert text[1] == [moved(n, before[1][i]) for i in cells.new_to_old]
    assert text[2] == [
        moved(n, before[2][i][:2]) + moved(cells, before[2][i][2:]) for i in e.new_to_old
    ]
    assert text[3] == [
        moved(n, row[:2]) + moved(cells, row[2:3]) + row[3:]
        for row in (before[3][i] for i in b.new_to_old)
    ]


def test_text_grids_of_other_digits_keep_their_values(tmp_path):
    x, *tables = c_mesh()
    path = tmp_path / "grid.dat"
    write_text(path, (x, *tables))
    lines = path.read_text().splitlines()
    lines[3] = "1e-3 0.12345678901234567"
    mesh = read("\n".join(lines), path)
    io.write(mesh, tmp_path / "b.dat")
    assert np.array_equal(io.read(tmp_path / "b.dat").coordinates, mesh.coordinates)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t[:-6], "the file ends before boundary edges"),
        (lambda t: t + "1\n", "more in the file than its first line says"),
        (lambda t: re.sub(r"\n.*\n", "\nnan nan\n", t, count=1), "finite"),
        (lambda t: t.replace(" ", " x", 5), "expected"),
        (lambda t: "9" + t, "declares"),
        (lambda t: t.replace("\n1 2 15 14\n", "\n1 2 99 14\n", 1), "index 99"),
    ],
)
def test_damaged_text_grids(tmp_path, change, message):
    path = tmp_path / "grid.dat"
    write_text(path, c_mesh())
    path.write_text(change(path.read_text()))
    with pytest.raises(MeshprepError, match=message):
        io.read(path, format="op2-grid")


def test_a_deck_of_nastran_of_this_ending_is_told(tmp_path):
    deck = "ID A,B\nSOL 101\nCEND\nBEGIN BULK\nGRID,1,,0.,0.,0.\nENDDATA\n"
    refused(deck, tmp_path / "a.dat", "this is no grid of Airfoil; .* such as nastran")
