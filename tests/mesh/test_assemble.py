import numpy as np
import pytest

from meshprep.mesh.assemble import Block, GroupTable, assemble
from meshprep_runtime import MeshprepError

POINTS = np.zeros((9, 3))


def test_blocks_of_one_type_become_one_set_in_the_order_of_the_file():
    blocks = [
        Block("triangle", np.array([[0, 1, 2]]), tags={"physical": np.array([7])}),
        Block("line", np.array([[0, 1]]), np.array([40])),
        Block(
            "triangle", np.array([[3, 4, 5], [6, 7, 8]]), data={"t": np.array([1.5, 2.5])}
        ),
        Block("quad", np.empty((0, 4), int)),
    ]
    mesh, places = assemble(POINTS, blocks, tag_names={("physical", 2): {7: "in"}})
    assert list(mesh.sets) == ["nodes", "cells", "line"]
    np.testing.assert_array_equal(
        mesh.cell_map("cells").table, [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    )
    assert [(p.set, p.start, p.stop) for p in places[:3]] == [
        ("cells", 0, 1),
        ("line", 0, 1),
        ("cells", 1, 3),
    ]
    tag = mesh.tag("physical", "cells")
    np.testing.assert_array_equal(tag.first_ids(), [7, 0, 0])
    assert tag.names == {7: "in"}
    np.testing.assert_array_equal(mesh.dat("t", "cells").index, [1, 2])
    np.testing.assert_array_equal(mesh.dat("label", "line").values, [40])


def test_cells_of_several_types_make_a_union():
    blocks = [
        Block("quad", np.array([[0, 1, 2, 3]])),
        Block("triangle", np.array([[3, 4, 5], [6, 7, 8]])),
    ]
    mesh, _ = assemble(POINTS, blocks)
    assert mesh.sets["cells"].parts == ("quad", "triangle")
    assert mesh.size("cells") == 3
    assert set(mesh.maps) == {"quad->nodes", "triangle->nodes"}


def test_group_lists_of_several_blocks_are_joined():
    both = GroupTable(np.array([0]), np.array([0, 2]), np.array([1, 2]))
    blocks = [
        Block("line", np.array([[0, 1], [1, 2]]), tags={"physical": np.array([1, 0])}),
        Block("line", np.array([[2, 3]]), tags={"physical": both}),
    ]
    mesh, _ = assemble(POINTS, blocks)
    tag = mesh.tag("physical", "cells")
    assert [tag.groups(v) for v in tag.values] == [(1,), (), (1, 2)]


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([], "there are no cells"),
        ([Block("vertex", np.array([[0]]))], "there are no cells"),
        ([Block("triangle", np.array([[0, 1]]))], "has 3 nodes, but has 2"),
        (
            [Block("hexahedron", np.zeros((1, 20), int))],
            "has 8 nodes, but has 20 in the file",
        ),
        (
            [Block("VTK_LAGRANGE_WEDGE", np.zeros((1, 5), int))],
            "has at least 6 nodes, but has 5",
        ),
        ([Block("polygon", np.array([[0, 1, 2]]))], "'polygon' are not supported"),
        ([Block("line", np.array([[0, 9]]))], "has index 9, but set 'nodes' has 9"),
    ],
)
def test_what_is_wrong_is_said(blocks, message):
    with pytest.raises(MeshprepError, match=message):
        assemble(POINTS, blocks)
