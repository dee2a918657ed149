"""What only Gmsh has a use for is no loss elsewhere, but told; all else still is one."""

import numpy as np
import pytest
from texts import read

from meshprep import io
from meshprep_cli.main import main
from meshprep_runtime.errors import MeshprepError

MSH = """$MeshFormat
4.1 0 8
$EndMeshFormat
$PhysicalNames
3
1 2 "wall"
2 1 "fluid"
2 3 "solid"
$EndPhysicalNames
$Entities
0 2 2 0
1 0 0 0 2 0 0 1 2 0
2 0 0 0 2 1 0 1 2 0
4 0 0 0 1 1 0 1 1 0
5 1 0 0 2 1 0 1 RIGHT 0
$EndEntities
$Nodes
3 6 1 6
1 1 0 3
1
2
3
0 0 0
1 0 0
2 0 0
1 2 0 2
4
5
0 1 0
1 1 0
2 5 0 1
6
2 1 0
$EndNodes
$Elements
4 5 1 5
1 1 1 2
1 1 2
2 2 3
1 2 1 1
3 4 5
2 4 3 1
4 1 2 5 4
2 5 3 1
5 2 3 6 5
$EndElements
"""


@pytest.fixture
def path(tmp_path):
    """Two squares on two surfaces of Gmsh, in one physical group."""
    path = tmp_path / "a.msh"
    path.write_text(
        MSH.replace("RIGHT", "1")
        .replace('2 3 "solid"\n', "")
        .replace("\n3\n1 2", "\n2\n1 2", 1)
    )
    return path


def test_gmsh_s_geometry_and_a_group_of_all_cells_are_no_loss(path, tmp_path, capsys):
    assert (
        main(["reorder", str(path), "-o", str(tmp_path / "b.su2"), "--loop", "cells:nodes"])
        == 0
    )
    err = capsys.readouterr().err
    told = next(line for line in err.splitlines() if "is written without it" in line)
    assert told == (
        "meshprep: dropped, b.su2 is written without it: values 'gmsh:entity_dim' on 'nodes'; "
        "values 'gmsh:entity_tag' on 'nodes'; groups 'entity' on 'cells'; "
        "groups 'physical' on 'cells'; groups 'entity' on 'line'"
    )
    found = io.read(tmp_path / "b.su2")
    tag = found.tag("su2:tag", "line")
    assert [tag.names[i] for i in tag.first_ids()] == ["wall"] * 3


def test_cells_in_two_groups_are_a_loss(tmp_path):
    path = tmp_path / "a.msh"
    path.write_text(MSH.replace("RIGHT", "3"))
    with pytest.raises(
        MeshprepError, match=r"written without groups 'physical' on 'cells': use"
    ):
        io.write(io.read(path), tmp_path / "b.su2")


def test_entities_are_the_groups_where_there_are_no_others(path, tmp_path):
    text = path.read_text()
    for old, new in ((" 1 2 0\n", " 0 0\n"), (" 1 1 0\n", " 0 0\n")):
        text = text.replace(old, new)
    mesh = read(text, path)
    assert {t.name for t in mesh.tags} == {"entity"}
    with pytest.raises(
        MeshprepError, match=r"written without groups 'entity' on 'cells': use"
    ):
        io.write(mesh, tmp_path / "b.su2")
    io.write(mesh, tmp_path / "b.su2", drop=True)
    assert io.read(tmp_path / "b.su2").tag("su2:tag", "line").first_ids().tolist() == [
        1,
        1,
        2,
    ]


def test_a_format_that_can_carry_them_does(path, tmp_path):
    mesh = io.read(path)
    lost = io.write(mesh, tmp_path / "b.vtu", drop=True)
    assert lost == [
        f"the names of the groups 'physical' on '{s}'" for s in ("line", "cells")
    ]
    back = io.read(tmp_path / "b.vtu")
    for name in ("gmsh:entity_dim", "gmsh:entity_tag"):
        assert np.array_equal(
            back.dat(name, "nodes").values, mesh.dat(name, "nodes").values
        )
    assert back.tag("entity", "cells").first_ids().tolist() == [4, 5]


def test_a_quiet_run_says_what_was_dropped_and_nothing_else(path, tmp_path, capsys):
    words = ["reorder", str(path), "--loop", "cells:nodes", "-q", "--force", "-o"]
    assert main([*words, str(tmp_path / "b.su2")]) == 0
    assert capsys.readouterr().err == ""
    assert main([*words, str(tmp_path / "b.vtu"), "--drop"]) == 0
    told = (
        "dropped, b.vtu is written without it: the names of the groups 'physical' on 'line'"
    )
    assert capsys.readouterr().err == f"meshprep: {told}\n"
    box = ["generate", "mixed2d", "-q", "-o", str(tmp_path / "b.h5"), "--drop"]
    assert main(box) == 0
    assert "dropped, b.h5 is written without it" in capsys.readouterr().err
