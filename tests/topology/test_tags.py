"""Tags of boundary cells, carried to the derived sets."""

import numpy as np

from meshprep.mesh.assemble import Block, GroupTable, assemble
from meshprep.topology import derive


def build(blocks, n_nodes, tag_names=None):
    return assemble(np.zeros((n_nodes, 3)), blocks, tag_names=tag_names)[0]


def rows(cells):
    return np.array(cells, np.int32)


def groups(mesh, name, set_name):
    tag = mesh.tag(name, set_name)
    return [tag.groups(v) for v in tag.values]


SQUARE = rows([[0, 1, 2], [0, 2, 3]])
ASK = ["edges->cells", "edges->nodes", "boundary_edges->cells", "boundary_edges->nodes"]


def test_boundary_edges_get_the_tags_of_the_lines_on_them():
    lines = Block("line", rows([[3, 2], [0, 1]]), tags={"physical": np.array([7, 5])})
    mesh = build(
        [lines, Block("triangle", SQUARE)], 4, {("physical", 1): {5: "floor", 7: "top"}}
    )
    out = derive(mesh, ASK)
    assert out.map("boundary_edges->nodes").table.tolist() == [
        [0, 1],
        [1, 2],
        [2, 3],
        [3, 0],
    ]
    assert groups(out, "physical", "boundary_edges") == [(5,), (), (7,), ()]
    assert out.tag("physical", "boundary_edges").names == {5: "floor", 7: "top"}
    assert out.tag("physical", "edges") is None


def test_an_entity_the_other_way_round_is_in_the_group():
    lines = Block("line", rows([[3, 2], [0, 1]]), tags={"physical": np.array([5, -5])})
    mesh = build([lines, Block("triangle", SQUARE)], 4, {("physical", 1): {5: "wall"}})
    assert groups(mesh, "physical", "line") == [(5,), (-5,)]
    out = derive(mesh, ["boundary_edges->cells"])
    assert groups(out, "physical", "boundary_edges") == [(5,), (), (5,), ()]


def test_tags_on_an_internal_interface():
    lines = Block("line", rows([[0, 2], [1, 2]]), tags={"physical": np.array([3, 4])})
    out = derive(build([lines, Block("triangle", SQUARE)], 4), ASK)
    assert groups(out, "physical", "edges") == [(3,)]
    assert groups(out, "physical", "boundary_edges") == [(), (4,), (), ()]


def test_all_edges_take_tags_too():
    lines = Block("line", rows([[0, 2], [1, 2]]), tags={"physical": np.array([3, 4])})
    out = derive(build([lines, Block("triangle", SQUARE)], 4), ["edges->nodes"])
    assert groups(out, "physical", "edges") == [(), (4,), (3,), (), ()]


def test_a_facet_listed_twice_is_in_both_groups():
    ids = np.array([9, 2, 2, 8, 5])
    lines = Block(
        "line", rows([[0, 1], [1, 0], [0, 1], [1, 2], [2, 3]]), tags={"physical": ids}
    )
    out = derive(build([lines, Block("triangle", SQUARE)], 4), ASK)
    assert groups(out, "physical", "boundary_edges") == [(2, 9), (8,), (5,), ()]


def test_several_groups_a_cell_and_several_tags():
    table = GroupTable(np.array([1, 0], np.int32), np.array([0, 0, 2]), np.array([4, 6]))
    lines = Block(
        "line3", rows([[0, 1, 4], [1, 2, 5]]), tags={"a": table, "b": np.array([1, 2])}
    )
    out = derive(build([lines, Block("triangle", SQUARE)], 6), ASK)
    assert groups(out, "a", "boundary_edges") == [(4, 6), (), (), ()]
    assert groups(out, "b", "boundary_edges") == [(1,), (2,), (), ()]


def test_a_tag_that_no_boundary_edge_has_is_there_and_empty():
    lines = Block("line", rows([[1, 3]]), tags={"physical": np.array([3])})
    out = derive(build([lines, Block("triangle", SQUARE)], 4), ASK)
    assert groups(out, "physical", "boundary_edges") == [(), (), (), ()]


def test_faces_of_both_types_share_one_tag_on_the_union():
    blocks = [
        Block("wedge", rows([[0, 1, 2, 3, 4, 5]])),
        Block("quad", rows([[1, 2, 5, 4]]), tags={"physical": np.array([2])}),
        Block("triangle", rows([[3, 4, 5]]), tags={"physical": np.array([1])}),
    ]
    mesh = build(blocks, 6, {("physical", 2): {1: "lid", 2: "side"}})
    out = derive(mesh, ["boundary_faces->cells", "edges->nodes"])
    # Two triangles, then three quads.
    assert groups(out, "physical", "boundary_faces") == [(), (1,), (), (2,), ()]
    assert out.tag("physical", "boundary_faces").names == {1: "lid", 2: "side"}
    assert out.tag("physical", "boundary_quad_faces") is None
    assert out.tag("physical", "edges") is None


def test_lines_tag_the_edges_of_a_volume():
    blocks = [
        Block("tetra", rows([[0, 1, 2, 3]])),
        Block("line", rows([[3, 0]]), tags={"physical": np.array([2])}),
    ]
    out = derive(build(blocks, 4), ["edges->nodes", "boundary_faces->cells"])
    assert groups(out, "physical", "edges") == [(), (), (), (2,), (), ()]
    assert out.tag("physical", "boundary_faces") is None
