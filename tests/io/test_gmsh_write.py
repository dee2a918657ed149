"""What the Gmsh writer puts on disk, and that reading it gives the mesh back."""

from dataclasses import replace

import meshio
import numpy as np
import pytest
from gmsh_meshes import KINDS, MSH2, MSH4, binary4, decorated, groups, plate, section

from meshprep import io
from meshprep.io.compare import difference
from meshprep.io.gmsh import FORMAT, emit, losses, read, write
from meshprep.io.gmsh.layout import UNFIT
from meshprep.io.text import writer
from meshprep.mesh import Dat, Mesh, Tag
from meshprep.mesh.assemble import Block, GroupTable, assemble
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.ordering import Ordering

SEVERAL = "several of an element, 0, or beyond 2^53"
both = pytest.mark.parametrize("binary", [False, True])
every = pytest.mark.parametrize(("version", "binary"), KINDS)


def again(mesh, folder, **options):
    path = folder / "again.msh"
    write(mesh, path, **options)
    return read(path)


def hand(folder, text):
    path = folder / "hand.msh"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(path)


def nodes_on_disk(path):
    """Number and coordinates of the nodes of a text file, MSH 4.1, in their order."""
    rows = section(path, "Nodes")
    out, at = [], 1
    for _ in range(int(rows[0][0])):
        n = int(rows[at][3])
        numbers, points = rows[at + 1 : at + 1 + n], rows[at + 1 + n : at + 1 + 2 * n]
        out += [
            (int(i[0]), *map(float, p[:3])) for i, p in zip(numbers, points, strict=True)
        ]
        at += 1 + 2 * n
    return out


@every
@pytest.mark.parametrize("seed", range(3))
def test_everything_comes_back(tmp_path, version, binary, seed):
    mesh = decorated(seed)
    assert losses(mesh, version=version) == []
    found = again(mesh, tmp_path, version=version, binary=binary)
    assert difference(mesh, found) is None
    assert mesh.content_hash() == found.content_hash()
    for d in mesh.dats:
        same = next(x for x in found.dats if (x.name, x.set) == (d.name, d.set))
        assert same.values.dtype == d.values.dtype
        assert same.values.shape == d.values.shape


@every
@pytest.mark.parametrize("text", [MSH2, MSH4])
def test_files_by_hand_come_back(tmp_path, version, binary, text):
    mesh = hand(tmp_path, text)
    assert difference(mesh, again(mesh, tmp_path, version=version, binary=binary)) is None


ZERO = (
    "$MeshFormat\n{} 0 8\n$EndMeshFormat\n$Nodes\n{}$EndNodes\n$Elements\n{}$EndElements\n"
)
POINTS = "0 0 0\n", "1 0 0\n", "1 1 0\n", "0 1 0\n"
NODES2 = "4\n" + "".join(f"{i} {p}" for i, p in enumerate(POINTS, 1))
NODES4 = "1 4 1 4\n2 0 0 4\n1\n2\n3\n4\n" + "".join(POINTS)


@both
@pytest.mark.parametrize(
    "text",
    [
        ZERO.format("2.2", NODES2, "3\n1 1 2 7 0 1 2\n2 2 2 5 0 1 2 3\n3 2 2 6 0 1 3 4\n"),
        ZERO.format("2.2", NODES2, "3\n1 1 2 0 3 1 2\n2 2 2 0 0 1 2 3\n3 2 2 6 1 1 3 4\n"),
        ZERO.format("4.1", NODES4, "2 3 1 3\n1 0 1 1\n1 1 2\n2 0 2 2\n2 1 2 3\n3 1 3 4\n"),
        ZERO.format("4.1", NODES4, "2 2 2 3\n2 1 2 1\n2 1 2 3\n2 0 2 1\n3 1 3 4\n"),
    ],
)
def test_entity_0_stays_0(tmp_path, text, binary):
    """As another program reads it; group 0, which is none, is 0 in MSH 2."""
    old, new, again = (tmp_path / f"{name}.msh" for name in ("old", "new", "again"))
    old.write_text(text)
    io.write(io.read(old), new, binary=binary)
    found = [meshio.read(path).cell_data for path in (old, new)]
    for name in found[0]:
        assert [ids.tolist() for ids in found[0][name]] == [
            ids.tolist() for ids in found[1][name]
        ]
    assert 0 in np.concatenate(found[1]["gmsh:geometrical"])
    io.write(io.read(new), again)
    assert new.read_bytes() == again.read_bytes()


@every
def test_the_second_file_is_the_first(tmp_path, version, binary):
    first, second = tmp_path / "1.msh", tmp_path / "2.msh"
    write(decorated(), first, version=version, binary=binary)
    write(read(first), second)
    assert first.read_bytes() == second.read_bytes()


@both
def test_entities_of_nodes_alone_get_boxes(tmp_path, binary):
    """No $Entities, and no cell in the point; the curve's number is none that a dimension has."""
    begin, end = MSH4.index("$Entities"), MSH4.index("$Nodes")
    text = (MSH4[:begin] + MSH4[end:]).replace("\n1 3 ", "\n1 40 ")
    text = text.replace("4 4 1 9\n0 1 15 1\n9 50\n", "3 3 1 3\n")
    text = text.replace("50\n0 0 0\n", "50\n0 0.5 0\n")
    mesh = hand(tmp_path, text)
    assert losses(mesh, version="4.1") == []
    assert difference(mesh, again(mesh, tmp_path, version="4.1", binary=binary)) is None
    write(mesh, tmp_path / "out.msh", binary=False)
    words = [w for line in section(tmp_path / "out.msh", "Entities") for w in line]
    # One point, one curve, two surfaces; the point is where its node is, and in no group.
    assert [*map(float, words[:10])] == [1, 1, 2, 0, 1, 0, 0.5, 0, 0, 40]
    dim = mesh.dat("gmsh:entity_dim", "nodes")
    wrong = [replace(d, values=d.values + 3) if d is dim else d for d in mesh.dats]
    bad = Mesh(mesh.sets.values(), mesh.maps.values(), wrong, mesh.tags, extras=mesh.extras)
    assert difference(bad, again(bad, tmp_path, version="4.1", binary=binary)) is None


def test_version_and_mode_are_those_of_the_source(tmp_path):
    for text, head in ((MSH2, b"2.2 0 8"), (MSH4, b"4.1 0 8"), (binary4(), b"4.1 1 8")):
        write(hand(tmp_path, text), tmp_path / "out.msh")
        assert (tmp_path / "out.msh").read_bytes()[12:19] == head
    points, triangles, _ = plate()
    write(assemble(points, [Block("triangle", triangles)])[0], tmp_path / "out.msh")
    assert (tmp_path / "out.msh").read_bytes()[12:19] == b"4.1 1 8"
    assert dict(FORMAT.options) == {"version": None, "binary": None}


@both
def test_a_new_order_stays_on_disk(tmp_path, binary):
    r = np.random.default_rng(5)
    mesh = hand(tmp_path, MSH4)
    order = {
        "nodes": Ordering.from_new_to_old(np.array([3, 0, 4, 2, 1])),
        "cells": Ordering.from_new_to_old(r.permutation(2)),
    }
    mesh = mesh.renumber(order)
    for version in ("2.2", "4.1"):
        assert (
            difference(mesh, again(mesh, tmp_path, version=version, binary=binary)) is None
        )
    path = tmp_path / "text.msh"
    write(mesh, path, version="4.1", binary=False)
    expected = np.column_stack([[3, 50, 1, 4, 2], mesh.coordinates]).tolist()
    assert [list(row) for row in nodes_on_disk(path)] == expected
    write(mesh, path, version="2.2", binary=False)
    assert [[float(x) for x in row] for row in section(path, "Nodes")[1:]] == expected


def test_numbers_without_labels(tmp_path):
    points, triangles, lines = plate(2)
    mesh, _ = assemble(points, [Block("line", lines), Block("triangle", triangles)])
    path = tmp_path / "text.msh"
    write(mesh, path, version="2.2", binary=False)
    assert [int(row[0]) for row in section(path, "Nodes")[1:]] == list(range(1, 10))
    rows = section(path, "Elements")[1:]
    assert [int(row[0]) for row in rows] == list(range(1, 11))
    assert [[int(i) - 1 for i in row[-3:]] for row in rows[2:]] == triangles.tolist()
    assert not [d for d in read(path).dats if d.name == "label"]


def test_cells_in_several_groups_are_repeated_behind_all_others(tmp_path):
    path = tmp_path / "text.msh"
    write(hand(tmp_path, MSH2), path)
    rows = [[int(x) for x in row] for row in section(path, "Elements")[1:]]
    assert rows == [
        [1, 1, 2, 7, 3, 5, 10],
        [2, 2, 2, 5, 1, 10, 20, 30],
        [4, 2, 4, 5, 2, 1, 1, 10, 30, 5],
        [9, 15, 2, 0, 4, 20],
        [10, 2, 2, 6, 1, 10, 20, 30],
    ]


@every
def test_equal_cells_of_different_groups_are_no_copies(tmp_path, version, binary):
    points, triangles, _ = plate(2)
    twice = np.concatenate([triangles, triangles[:1]])
    block = Block("triangle", twice, tags={"physical": np.array([1] * 8 + [2])})
    mesh, _ = assemble(points, [block])
    assert difference(mesh, again(mesh, tmp_path, version=version, binary=binary)) is None


def test_equal_cells_of_one_entity_in_several_groups_are_refused(tmp_path):
    """MSH 2.2 would have them as copies of one."""
    points, triangles, _ = plate(2)
    twice = np.concatenate([triangles, triangles[:1]])
    place = np.array([0] * 8 + [1], dtype=np.int32)
    table = GroupTable(place, np.array([0, 1, 3]), np.array([1, 1, 2]))
    tags = {"physical": table, "entity": np.ones(9, np.int64)}
    mesh, _ = assemble(points, [Block("triangle", twice, tags=tags)])
    with pytest.raises(
        MeshprepError, match=r"does not keep this mesh .* use another format"
    ):
        io.write(mesh, tmp_path / "out.msh", version="2.2")
    assert difference(mesh, again(mesh, tmp_path, version="4.1")) is None


def test_groups_that_differ_split_entities(tmp_path):
    mesh = hand(tmp_path, MSH4)
    tag = Tag.from_ids("physical", "cells", np.array([5, 6]), {5: "fluid"})
    entity = Tag.from_ids("entity", "cells", np.array([1, 1]))
    tags = [t for t in mesh.tags if t.set != "cells"] + [tag, entity]
    mesh = Mesh(
        mesh.sets.values(), mesh.maps.values(), mesh.dats, tags, mesh.lists, mesh.extras
    )
    path = tmp_path / "split.msh"
    write(mesh, path)
    # The cell with the groups of the table keeps entity 1; 2 is taken, so that 3 is new.
    assert section(path, "Elements")[-4:] == [
        ["2", "1", "2", "1"],
        ["3", "50", "2", "4"],
        ["2", "3", "2", "1"],
        ["2", "50", "4", "3"],
    ]
    assert section(path, "Meshprep") == [["1"], ["entity", "2", "3", "1"]]
    found = read(path)
    assert difference(mesh, found) is None
    assert [e.tag for e in found.extras["gmsh"]["entities"] if e.dim == 2] == [1, 2]


@every
def test_the_only_other_tag_becomes_the_physical_groups(tmp_path, version, binary):
    points, triangles, _ = plate(2)
    block = Block("triangle", triangles, tags={"su2:tag": np.arange(8) % 3})
    mesh, _ = assemble(
        points, [block], tag_names={("su2:tag", 2): {1: "wall", 2: "far field"}}
    )
    found = again(mesh, tmp_path, version=version, binary=binary)
    assert difference(mesh, found) is None
    content = (tmp_path / "again.msh").read_bytes()
    assert b'2 2 "far field"\n' in content
    assert b'physical "su2:tag"\n' in content


def numbered(*labels):
    """Lines and triangles with these numbers, None for none."""
    points, triangles, lines = plate(2)
    blocks = [Block("line", lines, labels[0]), Block("triangle", triangles, labels[1])]
    return assemble(points, blocks)[0]


@pytest.mark.parametrize(
    "labels",
    [
        (None, np.arange(8) + 3),
        (np.array([9, 10]), None),
        (np.array([2, 1]), np.arange(8)[::-1] + 10),
        (np.array([2, 1]), np.arange(8)[::-1]),
        (np.array([0, 2**31 - 1]), None),
    ],
)
@every
def test_some_cells_are_numbered(tmp_path, version, binary, labels):
    mesh = numbered(*labels)
    assert losses(mesh, version=version) == []
    assert difference(mesh, again(mesh, tmp_path, version=version, binary=binary)) is None


def test_numbers_that_do_not_fit():
    lost = ["cell numbers (some are missing, occur twice or out of range)"]
    assert losses(numbered(np.array([9, 2**31]), None)) == []
    assert losses(numbered(np.array([9, 2**31]), None), version="2.2") == lost
    assert losses(numbered(np.array([9, 7]), None)) == lost
    assert losses(numbered(None, np.arange(8)[::-1])) == lost
    assert losses(numbered(np.array([1, -2]), None)) == lost
    double = numbered(np.array([5, 5]), np.arange(8) + 9)
    assert losses(double) == []
    values = Dat("v", "line", np.array([1.0, 2.0]))
    assert losses(double.with_(dats=[values])) == lost
    nodes = Dat("label", "nodes", np.array([1, 1, 2, 3, 4, 5, 6, 7, 8]))
    assert losses(numbered(None, None).with_(dats=[nodes])) == [
        "node numbers (some occur twice or are out of range)"
    ]


def test_sections_kept_as_they_are(tmp_path):
    scheme = (
        '$InterpolationScheme\n"s"\n1\n3\n2\n1 1\n1\n1 3\n0 0 0\n$EndInterpolationScheme\n'
    )
    curves = "$Parametrizations\n0 0\n$EndParametrizations\n"
    path = tmp_path / "hand.msh"
    path.write_text(MSH4 + scheme)
    mesh = read(path)
    assert losses(mesh) == []
    write(mesh, tmp_path / "out.msh")
    content = (tmp_path / "out.msh").read_text()
    assert scheme in content
    boxes = "boxes, boundaries and own groups of entities (MSH 2.2)"
    assert losses(mesh, version="2.2") == [boxes]
    path.write_text(MSH4 + curves)
    assert losses(read(path)) == ["section $Parametrizations"]


def test_plane_coordinates_get_a_zero(tmp_path):
    points, triangles, _ = plate(2)
    mesh, _ = assemble(points[:, :2], [Block("triangle", triangles)])
    for version, binary in KINDS:
        found = again(mesh, tmp_path, version=version, binary=binary)
        assert found.coordinates.shape == (9, 3)
        assert difference(mesh, found) is None


@every
def test_long_names(tmp_path, version, binary):
    points, triangles, _ = plate(2)
    block = Block("triangle", triangles, tags={"physical": np.arange(8) % 2})
    for size, lost in (
        (200, []),
        (201, [f"names of groups 'physical' that {UNFIT}"]),
    ):
        mesh, _ = assemble(points, [block], tag_names={("physical", 2): {1: "x" * size}})
        assert losses(mesh, version=version) == lost
        found = again(mesh, tmp_path, version=version, binary=binary)
        assert difference(mesh, found, partial=bool(lost)) is None


@every
def test_names_with_quotation_marks_are_no_names_of_gmsh(tmp_path, version, binary):
    """Gmsh would read an empty name, and meshio none at all."""
    points, triangles, _ = plate(2)
    ids = np.arange(8) % 2 + 1
    block = Block("triangle", triangles, tags={"physical": ids}, data={'"q': np.ones(8)})
    names = {("physical", 2): {1: '"a" b', 2: "c"}}
    mesh, _ = assemble(points, [block], tag_names=names)
    lost = [
        f"values '\"q' on 'cells' (names that {UNFIT})",
        f"names of groups 'physical' that {UNFIT}",
    ]
    assert losses(mesh, version=version) == lost
    io.write(mesh, tmp_path / "a.msh", version=version, binary=binary, drop=True)
    found = read(tmp_path / "a.msh")
    assert found.tag("physical", "cells").names == {2: "c"}
    assert [d.name for d in found.dats if d.set == "cells"] == []


@both
def test_meshio_reads_msh2_files_in_which_some_cells_have_groups(tmp_path, binary):
    points, triangles, lines = plate(2)
    ids = np.array([4, 4, 0, 0, 0, 9, 0, 4])
    blocks = [Block("line", lines), Block("triangle", triangles, tags={"physical": ids})]
    mesh, _ = assemble(points, blocks, tag_names={("physical", 2): {4: "a"}})
    found = again(mesh, tmp_path, version="2.2", binary=binary)
    assert difference(mesh, found) is None
    theirs = meshio.read(tmp_path / "again.msh")
    kinds = [block.type for block in theirs.cells]
    groups = zip(kinds, theirs.cell_data["gmsh:physical"], strict=True)
    assert (
        np.concatenate([g for kind, g in groups if kind == "triangle"]).tolist()
        == ids.tolist()
    )


@both
def test_partitions(tmp_path, binary):
    """Lists of them, negative ones of ghosts too, in MSH 2.2; in 4.1 one of each cell."""
    points, triangles, _ = plate(2)
    lists = [(1,), (2, 1), (3, -1, -2), (), (-4,)]
    offset = np.concatenate([[0], np.cumsum([len(x) for x in lists])])
    flat = np.array([i for x in lists for i in x])
    table = GroupTable(np.arange(8, dtype=np.int32) % 5, offset, flat)
    tags = {"partition": table, "entity": np.array([1, 1, 1, 1, 2, 2, 2, 0])}
    mesh, _ = assemble(points, [Block("triangle", triangles, tags=tags)])
    found = again(mesh, tmp_path, version="2.2", binary=binary)
    assert difference(mesh, found) is None
    assert groups(found, "partition", "cells") == [lists[i % 5] for i in range(8)]
    assert losses(mesh, version="4.1") == [f"groups 'partition' on 'cells' ({SEVERAL})"]
    tags["partition"] = np.array([1, 2, 1, 1, 0, 3, 3, 2])
    mesh, _ = assemble(points, [Block("triangle", triangles, tags=tags)])
    assert difference(mesh, again(mesh, tmp_path, version="4.1", binary=binary)) is None


@every
@pytest.mark.parametrize("size", [1, 29, 100, 240])
def test_pieces_of_any_size_make_the_same_file(
    tmp_path, monkeypatch, version, binary, size
):
    mesh = decorated(1)
    write(mesh, tmp_path / "one.msh", version=version, binary=binary)
    for module in (emit, writer):
        monkeypatch.setattr(module, "SMALL_PIECE", size)
    monkeypatch.setattr(writer, "PIECE", 40 * size)
    write(mesh, tmp_path / "many.msh", version=version, binary=binary)
    assert (tmp_path / "one.msh").read_bytes() == (tmp_path / "many.msh").read_bytes()


def test_groups_of_nodes_are_what_other_programs_see(tmp_path):
    """Gmsh knows no groups of nodes: the values of their section are the groups themselves."""
    made = assemble(np.eye(4, 3), [Block("triangle", np.array([[0, 1, 2], [0, 2, 3]]))])[0]
    ids = np.array([5, 0, -7, 2**40])
    several = Tag(
        "both", "nodes", np.array([0, 1, 0, 1]), np.array([0, 2, 3]), [3, 4, 9], {}
    )
    made = made.with_(tags=[Tag.from_ids("zone", "nodes", ids, {5: "five"})])
    assert losses(made) == []
    assert losses(made.with_(tags=[several])) == [f"groups 'both' on 'nodes' ({SEVERAL})"]
    path = tmp_path / "a.msh"
    write(made, path, binary=False)
    lines = path.read_text().partition('"zone"')[2].partition("$End")[0].splitlines()
    assert [float(line.split()[1]) for line in lines[-4:]] == ids.tolist()
    back = read(path)
    assert back.tag("zone", "nodes").first_ids().tolist() == ids.tolist()
    assert back.tag("zone", "nodes").names == {5: "five"}
