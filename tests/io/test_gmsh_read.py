"""What the Gmsh reader makes of files written by hand."""

import numpy as np
import pytest
from gmsh_meshes import CORNERS, MSH2, MSH4, binary2, binary4, groups

from meshprep import io
from meshprep.io.compare import difference
from meshprep.io.front import left_out
from meshprep.io.gmsh import FORMAT, read
from meshprep.io.gmsh.sections import GHOSTS
from meshprep_runtime.errors import MeshprepError


@pytest.fixture
def load(tmp_path):
    def read_text(text):
        path = tmp_path / "mesh.msh"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read(path)

    return read_text


def sizes(mesh):
    return {s.name: s.size for s in mesh.sets.values()}


def dat(mesh, name, set_name="nodes"):
    return mesh.dat(name, set_name).values.tolist()


def test_version_2(load):
    mesh = load(MSH2)
    assert sizes(mesh) == {"nodes": 5, "line": 1, "cells": 2, "vertex": 1}
    assert mesh.cell_map("cells").table.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert mesh.cell_map("line").table.tolist() == [[3, 0]]
    assert mesh.cell_map("vertex").table.tolist() == [[1]]
    assert dat(mesh, "coordinates")[2:] == [[1, 1, 0.1], [0, 1, 1e-3], [7, 7, 7]]
    assert dat(mesh, "label") == [10, 20, 30, 5, 99]
    # Element 8 is a copy of 2 for a second group.
    assert dat(mesh, "label", "cells") == [2, 4]
    assert groups(mesh, "physical", "cells") == [(5, 6), (5,)]
    assert groups(mesh, "entity", "cells") == [(1,), (2,)]
    assert groups(mesh, "partition", "cells") == [(), (1,)]
    assert groups(mesh, "physical", "line") == [(7,)]
    assert mesh.tag("physical", "vertex") is None
    assert mesh.tag("physical", "line").names == {7: "left side"}
    assert mesh.tag("physical", "cells").names == {5: "fluid 'inner'", 6: "whole"}
    assert mesh.extras["gmsh"]["sections"] == (("Comments", b"made by hand\n"),)


@pytest.mark.parametrize(("text", "name"), [(MSH2, "left side"), (MSH4, "wall")])
def test_text_behind_a_name_is_named_as_a_loss(load, text, name):
    """As Gmsh reads it: libMesh's files have such."""
    mesh = load(text.replace(f'"{name}"', f'"{name}" lower_dimensional_block'))
    assert mesh.tag("physical", "line").names == {7: name}
    left = f"'lower_dimensional_block' behind the name '{name}' of a group"
    assert mesh.extras["unread"][0] == left
    assert f"{left} (not read)" in left_out(mesh, FORMAT)


def test_a_name_that_is_not_closed(load):
    with pytest.raises(MeshprepError, match=r"line 9 in .* a quotation mark is not closed"):
        load(MSH2.replace('"left side"', '"left side'))


def test_values_of_version_2(load):
    mesh = load(MSH2)
    assert dat(mesh, "pressure") == [1, 2, 3.25, -4e-5, 0]
    assert mesh.dat("pressure", "nodes").attrs["gmsh:reals"] == (0.5,)
    assert mesh.dat("pressure", "nodes").attrs["gmsh:integers"] == (2,)
    flux = mesh.dat("flux", "cells")
    # The values of the copy are those of the cell.
    assert (flux.index.tolist(), flux.values.tolist()) == ([0], [[1, 2, 3]])
    assert flux.attrs["gmsh:strings"] == ("scheme",)
    assert flux.attrs["gmsh:integers"] == (0, 77)


def test_periodic_of_version_2(load):
    (link,) = load(MSH2).lists
    assert link.index.tolist() == [[1, 0], [2, 3]]
    affine = (
        1.0,
        0.0,
        0.0,
        1.0,
        0.0,
        1.0,
        0.0,
        0.0,
        0.0,
        0.0,
        1.0,
        0.0,
        0.0,
        0.0,
        0.0,
        1.0,
    )
    assert dict(link.attrs) == {
        **{"kind": "periodic", "dim": 1, "slave": 3, "master": 4},
        "affine": affine,
    }


def test_version_4(load):
    mesh = load(MSH4)
    assert sizes(mesh) == {"nodes": 5, "vertex": 1, "line": 1, "cells": 2}
    assert mesh.cell_map("cells").table.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert dat(mesh, "label") == [50, 2, 4, 3, 1]
    assert dat(mesh, "gmsh:entity_dim") == [0, 1, 1, 2, 2]
    assert dat(mesh, "gmsh:entity_tag") == [1, 3, 3, 1, 1]
    assert groups(mesh, "entity", "cells") == [(1,), (2,)]
    assert groups(mesh, "physical", "cells") == [(5,), ()]
    # Gmsh marks groups of the other orientation by a sign.
    assert groups(mesh, "physical", "line") == [(7, -8)]
    assert mesh.tag("physical", "vertex") is None
    assert mesh.lists[0].index.tolist() == [[1, 0]]
    u = mesh.dat("u", "nodes")
    assert u.index.tolist() == [0, 1]
    assert np.array_equal(u.values, [[np.nan, np.inf, -np.inf], [1, 2, 3]], equal_nan=True)


def test_entities_of_version_4(load):
    table = load(MSH4).extras["gmsh"]["entities"]
    assert [(e.dim, e.tag, e.physical, e.bounding) for e in table] == [
        (0, 1, (), ()),
        (1, 3, (7, -8), (1, -2)),
        (1, 4, (), ()),
        (2, 1, (5,), (-3,)),
        (2, 2, (), (3, 4)),
    ]
    assert table[1].box == (0, 0, 0, 1, 0, 0)


def test_version_4_binary(load):
    mesh = load(binary4())
    assert sizes(mesh) == {"nodes": 4, "cells": 2}
    assert mesh.cell_map("cells").table.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert dat(mesh, "coordinates") == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.125]]
    assert dat(mesh, "label") == [9, 1, 4, 5]
    assert groups(mesh, "physical", "cells") == [(5, -6), (5, -6)]
    assert mesh.tag("physical", "cells").names == {5: "plate"}
    assert mesh.lists[0].index.tolist() == [[0, 3]]
    assert mesh.lists[0].attrs["affine"] == (2.5,)
    assert mesh.dat("t", "nodes").index.tolist() == [0, 3]
    assert dat(mesh, "t") == [-2.5, 1.5]
    assert mesh.extras["gmsh"]["entities"][0].bounding == (-9,)
    assert mesh.extras["gmsh"]["binary"] is True


def test_version_2_binary(load):
    mesh = load(binary2())
    assert sizes(mesh) == {"nodes": 3, "cells": 1, "line": 1}
    assert mesh.cell_map("cells").table.tolist() == [[1, 2, 0]]
    assert dat(mesh, "coordinates") == [[3, 9, 0.5], [1, 1, 0.5], [2, 4, 0.5]]
    assert groups(mesh, "physical", "cells") == [(7, 8)]
    assert groups(mesh, "partition", "line") == [(5,)]


def test_line_ends_of_windows(load):
    for text in (MSH2, MSH4):
        assert difference(load(text), load(text.replace("\n", "\r\n"))) is None


def test_names_in_latin_1(load):
    mesh = load(MSH2.encode().replace(b"whole", b"tr\xe8s gro\xdf"))
    assert mesh.tag("physical", "cells").names[6] == "très groß"
    mesh = load(MSH2.replace("whole", "très groß").encode())
    assert mesh.tag("physical", "cells").names[6] == "très groß"


def test_numbers_spread_widely(load):
    mesh = load(MSH4.replace("50", "900000000000000"))
    assert dat(mesh, "label")[0] == 900000000000000
    assert mesh.cell_map("cells").table.tolist() == [[0, 1, 2], [0, 2, 3]]


def test_plain_numbers_are_not_kept(load):
    text = MSH4[: MSH4.index("$Nodes")] + (
        "$Nodes\n1 3 1 3\n2 1 0 3\n1\n2\n3\n0 0 0\n1 0 0\n0 1 0\n$EndNodes\n"
        "$Elements\n2 2 1 2\n1 3 1 1\n1 1 2\n2 1 2 1\n2 1 2 3\n$EndElements\n"
    )
    assert not [d for d in load(text).dats if d.name == "label"]


@pytest.mark.parametrize(("version", "expected"), [("2", 4), ("2.0", 4), ("2.1", 4)])
def test_the_third_tag_of_older_versions_is_the_partition(load, version, expected):
    text = MSH2.replace("2.2 0 8", f"{version} 0 8").replace("4 2 4 5 2 1 1", "4 2 3 5 2 4")
    assert groups(load(text), "partition", "cells") == [(), (expected,)]


def test_true_duplicates_stay(load):
    text = MSH2.replace("8 2 2 6 1 10 20 30", "8 2 2 5 1 10 20 30")
    mesh = load(text)
    assert mesh.cell_map("cells").table.tolist() == [[0, 1, 2], [0, 2, 3], [0, 1, 2]]
    assert groups(mesh, "physical", "cells") == [(5,), (5,), (5,)]


def test_values_several_times(load):
    again = MSH2[MSH2.index("$NodeData") : MSH2.index("$ElementData")]
    mesh = load(MSH2 + again.replace("0.5", "0.75"))
    found = [d for d in mesh.dats if d.name == "pressure"]
    assert [d.attrs["gmsh:reals"] for d in found] == [(0.5,), (0.75,)]
    with pytest.raises(MeshprepError, match="two dats are named 'pressure' on 'nodes'"):
        load(MSH2 + again)


def test_values_with_a_name_that_means_something_else(load):
    mesh = load(MSH2.replace('"pressure"', '"label"'))
    assert dat(mesh, "label") == [10, 20, 30, 5, 99]
    assert mesh.dat("gmsh:label", "nodes").attrs["gmsh:name"] == "label"


def test_values_at_the_nodes_of_cells_are_a_loss_with_a_name(load, tmp_path):
    mesh, lost = load(MSH2 + CORNERS), "values 'corner' at the nodes of cells"
    assert mesh.extras["unread"] == (lost,)
    for name in ("a.msh", "a.vtu"):
        with pytest.raises(MeshprepError, match=f"{lost} .not read.*--drop"):
            io.write(mesh, tmp_path / name)
    assert f"{lost} (not read)" in io.write(mesh, tmp_path / "b.msh", drop=True)
    assert "ElementNodeData" not in (tmp_path / "b.msh").read_text()


def test_numbers_with_very_many_digits(load):
    """Near the middle of two doubles either is right."""
    middle = "1.00000000000000011102230246251565404236316680908203125"
    mesh = load(MSH2.replace("30 1 1 0.1", f"30 1 1 {middle}1"))
    assert dat(mesh, "coordinates")[2][2] in (1.0, 1.0000000000000002)
    tenth = "0.1000000000000000055511151231257827"
    mesh = load(MSH4.replace("\n1 1 0\n2 1 0 0", f"\n1 {tenth} 0\n2 1 0 0"))
    assert dat(mesh, "coordinates")[2][1] == 0.1


def test_partitions_stay_and_ghosts_are_a_loss(load):
    head, tail = MSH4.split("$Nodes", 1)
    parts = (
        "$PartitionedEntities\n3\n1\n77 2\n0 0 2 0\n"
        "1 2 1 1 3 0 0 0 1 1 0 1 5 0\n2 2 1 2 1 2 0 0 0 1 1 0 0 0\n$EndPartitionedEntities\n"
    )
    ghosts = "$GhostElements\n3\n3 3 2 1 2\n2 1 1 3\n12345 1 1 2\n$EndGhostElements\n"
    mesh = load(f"{head}{parts}$Nodes{tail}{ghosts}")
    assert groups(mesh, "partition", "cells") == [(3,), (1, 2)]
    assert mesh.extras["unread"] == (GHOSTS,)


def test_second_order_stands_in_the_order_of_vtk(load):
    rows = "\n".join(f"{i} {i} 0 0" for i in range(1, 11))
    text = (
        f"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n10\n{rows}\n$EndNodes\n$Elements\n1\n"
        "1 11 2 0 1 1 2 3 4 5 6 7 8 9 10\n$EndElements\n"
    )
    assert load(text).cell_map("cells").table.tolist() == [[0, 1, 2, 3, 4, 5, 6, 7, 9, 8]]


def test_sections_of_unknown_names_are_left_out(load):
    mesh = load(MSH2 + "$Private\nanything $ at all\n$EndPrivate\n")
    assert mesh.extras["gmsh"]["sections"][-1] == ("Private", b"")


def test_without_cells(load):
    text = MSH2[: MSH2.index("$Elements")] + "$Elements\n0\n$EndElements\n"
    with pytest.raises(MeshprepError, match="there are no cells"):
        load(text)
