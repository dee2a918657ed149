"""Formats that are only read, beside what meshio reads."""

import meshio
import numpy as np
import pytest

from meshprep import MeshprepError, io

UGRID = "4 1 0 1 0 0 0\n0 0 0\n0.1234567890123 0 0\n0 1 0\n0 0 1\n1 2 3\n7\n1 2 3 4\n"
NETGEN = """mesh3d
dimension
3
geomtype
0
surfaceelements
1
1 1 1 0 3 1 2 3
volumeelements
1
1 4 1 2 3 4
points
4
0 0 0
1 0 0
0 1 0
0 0 1
"""
NODES, ELEMENTS = "4 3 0 0\n0 0 0 0\n1 1 0 0\n2 0 1 0\n3 0 0 1\n", "1 4 0\n0 0 1 2 3\n"


def test_text_of_ugrid_keeps_its_digits_and_groups(tmp_path):
    path = tmp_path / "a.ugrid"
    path.write_text(UGRID)
    mesh = io.read(path)
    assert mesh.coordinates[1, 0] == 0.1234567890123
    assert mesh.cell_map("cells").table.tolist() == [[0, 1, 2, 3]]
    assert [(t.name, t.group_id.tolist()) for t in mesh.tags] == [("ugrid:ref", [7])]
    path.write_text(UGRID + "7 8\n")
    assert io.read(path).extras["unread"] == ("2 numbers after the cells",)


@pytest.mark.parametrize("kind", ["b8", "lb8", "b4", "lb4"])
def test_binary_ugrid_is_what_meshio_reads(kind, tmp_path):
    """All types of cells, of which those of pyramids stand in another order."""
    rng, path = np.random.default_rng(3), tmp_path / f"a.{kind}.ugrid"
    points = rng.random((9, 3)).astype("f4").astype("f8")
    cells = [("tetra", [[0, 1, 2, 8]]), ("pyramid", [[0, 1, 2, 3, 4]])]
    cells += [("wedge", [[0, 1, 2, 4, 5, 6]]), ("hexahedron", [[0, 1, 2, 3, 4, 5, 6, 7]])]
    order, ends = ">" if kind[0] == "b" else "<", kind[-1]
    flat = [[0, 1, 2]]
    words = np.array([9, 1, 0, 1, 1, 1, 1], f"{order}i4").tobytes()
    words += points.astype(f"{order}f{ends}").tobytes()
    for table in (flat, [[5 - 1]], *(t for _, t in cells)):
        words += (np.array(table) + 1).astype(f"{order}i4").tobytes()
    path.write_bytes(words)
    mesh, theirs = io.read(path), meshio.read(path)
    assert np.array_equal(mesh.coordinates, theirs.points)
    for block in theirs.cells:
        assert np.array_equal(mesh.map(f"{block.type}->nodes").table, block.data)
    path.write_bytes(words[:-1])
    with pytest.raises(MeshprepError, match="it ends before the numbers"):
        io.read(path)


def test_netgen_comes_by_meshio_and_tetgen_as_two_files(tmp_path):
    (tmp_path / "a.vol").write_text(NETGEN)
    mesh = io.read(tmp_path / "a.vol")
    assert mesh.cell_map("cells").table.tolist() == [[0, 2, 1, 3]]
    assert {t.name for t in mesh.tags} == {"netgen:index"}
    (tmp_path / "a.node").write_text(NODES)
    with pytest.raises(
        MeshprepError, match=r"needs a\.ele beside it, which does not exist"
    ):
        io.read(tmp_path / "a.node")
    (tmp_path / "a.ele").write_text(ELEMENTS)
    for name in ("a.node", "a.ele"):
        assert io.read(tmp_path / name).cell_map("cells").table.tolist() == [[0, 1, 2, 3]]


def test_tetgen_is_what_meshio_reads(tmp_path):
    """Attributes and marks, comments anywhere, and numbers from 1."""
    rng = np.random.default_rng(1)
    points = rng.random((5, 3))
    rows = [
        f"{k + 1} {x!r} {y!r} {z!r} 0.5 {k}  # more"
        for k, (x, y, z) in enumerate(points.tolist())
    ]
    plain = "\n".join(["# nodes", "", "5 3 1 1", *rows, "# end", ""])
    (tmp_path / "a.node").write_text(plain)
    (tmp_path / "a.ele").write_text("\n# tets\n2 4 1\n1 1 2 3 4 7\n2 2 3 4 5 8\n# end\n")
    mesh = io.read(tmp_path / "a.node")
    (tmp_path / "a.node").write_text(plain.replace("  # more", ""))
    theirs = meshio.read(tmp_path / "a.node")
    assert np.array_equal(mesh.coordinates, theirs.points)
    assert np.array_equal(mesh.cell_map("cells").table, theirs.cells[0].data)
    marks = {(t.name, t.set): t.first_ids().tolist() for t in mesh.tags}
    nodes = theirs.point_data["tetgen:ref"].tolist()
    assert marks == {("tetgen:ref", "cells"): [7, 8], ("tetgen:ref", "nodes"): nodes}
    values = mesh.dat("tetgen:attr1", "nodes").values
    assert values.tolist() == theirs.point_data["tetgen:attr1"].tolist()


@pytest.mark.parametrize("name", ["a.node", "a.ele"])
def test_tetgen_cut_off_anywhere_is_refused_at_once(name, tmp_path):
    for start in ("# comment\n\n", ""):
        texts = {"a.node": start + NODES, "a.ele": start + ELEMENTS}
        for file, text in texts.items():
            (tmp_path / file).write_text(text)
        # a last digit and the end of the last line may be missing
        for cut in range(len(texts[name]) - 2):
            (tmp_path / name).write_text(texts[name][:cut])
            with pytest.raises(MeshprepError):
                io.read(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("a.node", "# no more\n", "a.node ends before the number of its rows"),
        ("a.node", "1 2\n0 0 0\n", "its nodes have 2 coordinates"),
        ("a.node", NODES.replace("\n3 ", "\n7 "), "not numbered one after the other"),
        ("a.node", NODES.replace("1 1 0", "1 x 0"), "a.node holds what is no number"),
        ("a.ele", "1 10 0\n0 0 1 2 3 4 5 6 7 8 9\n", "its tetrahedra have 10 nodes"),
        ("a.ele", "1 4\n0 0 1 2.5 3\n", "no whole number"),
        ("a.ele", "-1 4\n", "holds a negative number"),
        ("a.ele", "9 4\n0 0 1 2 3\n", "declares 9 rows of 5 numbers, but holds 5"),
    ],
)
def test_what_is_said_of_damaged_tetgen(name, text, match, tmp_path):
    (tmp_path / "a.node").write_text(NODES)
    (tmp_path / "a.ele").write_text(ELEMENTS)
    (tmp_path / name).write_text(text)
    with pytest.raises(MeshprepError, match=match):
        io.read(tmp_path / "a.ele")


@pytest.mark.parametrize(
    ("name", "text", "old", "new"),
    [
        ("a.ugrid", UGRID, "4 1 0 1", "400000000 1 0 1"),
        ("a.ugrid", UGRID, "4 1 0 1", "4 1 0 400000000"),
        ("a.ugrid", UGRID, "1 2 3 4\n", "1 2 3\n"),
        ("a.ugrid", UGRID, "1 2 3 4\n", "1 2 3 9\n"),
        ("a.vol", NETGEN, "points\n4", "points\n400000000"),
        ("a.vol", NETGEN, "1 4 1 2 3 4", "1 4 1 2 3 9"),
        ("a.node", NODES, "4 3 0 0", "400000000 3 0 0"),
    ],
)
def test_damaged_files_are_refused(name, text, old, new, tmp_path):
    (tmp_path / "a.ele").write_text(ELEMENTS)
    (tmp_path / name).write_text(text.replace(old, new))
    with pytest.raises(MeshprepError, match=name):
        io.read(tmp_path / name)


@pytest.mark.parametrize("name", ["tetgen", "ugrid", "netgen"])
def test_formats_that_are_only_read_say_so(name, tmp_path):
    (tmp_path / "a.ugrid").write_text(UGRID)
    path = tmp_path / f"b{io.FORMATS[name].extensions[0]}"
    with pytest.raises(MeshprepError, match="can only be read"):
        io.write(io.read(tmp_path / "a.ugrid"), path)
    assert not path.exists()
