import numpy as np
import pytest

from meshprep.io.generate import generate
from meshprep.mesh import Dat, ElementSet, IndexList, Mesh, SetMap, Tag
from meshprep.topology import derive
from meshprep_runtime import MeshprepError, Ordering


def two_triangles(**kwargs):
    """A unit square cut along its diagonal; node 4 is unused."""
    return Mesh(
        [ElementSet("nodes", 5), ElementSet("cells", 2, "triangle")],
        [SetMap("cells->nodes", "cells", "nodes", np.array([[0, 1, 2], [0, 2, 3]]))],
        [Dat("coordinates", "nodes", np.array([[0, 0], [1, 0], [1, 1], [0, 1], [9, 9.0]]))],
        **kwargs,
    )


def test_a_mesh_knows_its_sizes_and_maps():
    mesh = two_triangles()
    assert mesh.size("nodes") == 5
    assert mesh.map("cells->nodes").arity == 3
    assert mesh.map("cells->nodes").table.dtype == np.int32
    assert [s.name for s in mesh.cell_sets] == ["cells"]
    np.testing.assert_array_equal(mesh.coordinates[4], [9, 9])


def test_a_mesh_of_sizes_and_tables_is_the_one_of_sets_and_maps():
    table = np.array([[0, 1], [1, 2]])
    union = ElementSet("all", np.int64(5), parts=("cells", "edges"))
    sizes = {"edges": table[:, 0].size, "cells": np.int64(3), "all": union}
    mesh = Mesh(sizes, {"edges->cells": table, "edges->cells:flipped": table[:, ::-1]})
    sets = [ElementSet("edges", 2), ElementSet("cells", 3), union]
    maps = [SetMap("edges->cells", "edges", "cells", table)]
    maps += [SetMap("edges->cells:flipped", "edges", "cells", table[:, ::-1])]
    wanted = Mesh(sets, maps)
    assert dict(mesh.sets) == dict(wanted.sets)
    assert {type(s.size) for s in mesh.sets.values()} == {int}
    assert mesh.content_hash() == wanted.content_hash()
    for name, m in wanted.maps.items():
        same = mesh.map(name)
        assert (same.from_set, same.to_set) == (m.from_set, m.to_set)
        np.testing.assert_array_equal(same.table, m.table)
    more = Mesh({"edges": 2}, {}).with_(sets={"cells": 3}, maps={"edges->cells": table})
    np.testing.assert_array_equal(more.map("edges->cells").table, table)
    composed = Mesh({"a": 1, "c": 3}, {"a->b->c": [[2]]}).map("a->b->c")
    assert (composed.from_set, composed.to_set) == ("a", "c")


def test_one_name_stands_twice_on_a_set_only_with_other_attributes():
    """As steps in time have; what adds coordinates to a mesh that has some would be ignored."""
    mesh, other = two_triangles(), Dat("coordinates", "nodes", np.zeros((5, 2)))
    groups = Tag.from_ids("part", "cells", np.array([1, 2]))
    steps = [Dat("q", "cells", np.ones(2), attrs={"at": np.array([t])}) for t in (0.0, 0.5)]
    more = mesh.with_(dats=[*steps, Dat("q", "nodes", np.ones(5))], tags=[groups])
    assert len(more.dats) == 4
    for what, added in [
        ("dats are named 'coordinates' on 'nodes'", {"dats": [other]}),
        ("dats are named 'q' on 'cells'", {"dats": steps[1:]}),
        ("tags are named 'part' on 'cells'", {"tags": [groups]}),
    ]:
        with pytest.raises(MeshprepError, match=f"two {what}: names must be unique"):
            more.with_(**added)


def test_arrays_refuse_to_be_written():
    mesh = two_triangles()
    with pytest.raises(ValueError, match="read-only"):
        mesh.map("cells->nodes").table[0, 0] = 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ElementSet("a->b", 1), "no name for a set"),
        (lambda: ElementSet("a", -1), "size -1"),
        (lambda: ElementSet("a", 2**31), "size 2147483648"),
        (lambda: ElementSet("a", 2.5), "size 2.5, must be a whole number"),
        (lambda: ElementSet("a", 2, parts=("a",)), "part of itself"),
        (lambda: Mesh([5], []), r"5 is no ElementSet: give \{name: size\}"),
        (lambda: Mesh({"a": "5"}, {}), "size 5, must be a whole number"),
        (lambda: Mesh({"a": 5}, {"a": [[1]]}), "map 'a' must read FROM->TO"),
        (lambda: Mesh({"a": 5}, [np.zeros((5, 2))]), r"is no SetMap: give \{name: table\}"),
        (lambda: SetMap("m", "a", "b", np.zeros((2, 0), int)), "arity >= 1"),
        (lambda: SetMap("m", "a", "b", np.zeros((2, 2))), "must be integers"),
        (lambda: SetMap("m", "a", "b", np.array([[2**31]])), "past 2\\^31-1"),
        (lambda: Dat("d", "a", np.array([None])), "must be numbers"),
        (lambda: Dat("d", "a", np.zeros(2), np.array([1, 1])), "ascending"),
        (
            lambda: Tag("t", "a", np.array([1]), np.array([0, 0]), np.array([])),
            "outside its 1",
        ),
        (lambda: Tag("t", "a", np.array([0]), np.array([0, 2]), np.array([1])), "end at 1"),
        (
            lambda: Tag("t", "a", np.array([-1]), np.array([0, 1]), np.array([1])),
            "outside its 1",
        ),
        (
            lambda: Tag("t", "a", np.array([[0]]), np.array([0, 1]), np.array([1])),
            "one a row",
        ),
        (
            lambda: Tag("t", "a", np.array([]), np.array([]), np.array([])),
            "must rise from 0",
        ),
        (
            lambda: Tag("t", "a", np.array([0]), np.array([1, 1]), np.array([1])),
            "must rise from 0",
        ),
        (
            lambda: Tag("t", "a", [0], np.array([0, 2, 1]), np.array([1])),
            "must rise from 0",
        ),
        (lambda: IndexList("i", "a", np.zeros(3)), "must be integers"),
        (
            lambda: IndexList("i", "a", np.zeros((1, 1, 1), int)),
            "must be integers of shape",
        ),
        (lambda: Dat("d", "a", np.float64(1)), "must be numbers with one row an element"),
        (lambda: Dat("d", "a", np.zeros(2), np.array([1])), "ascending, one a row"),
        (lambda: IndexList("i", "a", np.array([2**32 + 1])), "past 2\\^31-1"),
        (lambda: Dat("d", "a", np.zeros(2), np.array([0, 2**32 + 1])), "past 2\\^31-1"),
        (lambda: Dat("d", "a", np.zeros(2), np.array([0.5, 1.5])), "must be integers"),
        (
            lambda: Tag("t", "a", np.array([2**32]), np.array([0, 1]), np.array([5])),
            "past 2",
        ),
        (lambda: Tag.from_ids("t", "a", np.array([1.5, 2])), "whole numbers"),
        (lambda: Tag.from_ids("t", "a", np.array([2**63], np.uint64)), "whole numbers"),
        (lambda: two_triangles(tags=[Tag.from_ids("t", "cells", np.ones(3))]), "3 rows"),
        (
            lambda: two_triangles(lists=[IndexList("i", "nodes", np.array([5]))]),
            "outside the 5",
        ),
        (
            lambda: two_triangles(lists=[IndexList("i", "edges", np.array([0]))]),
            "no set 'edges'",
        ),
        (
            lambda: Mesh(
                [ElementSet("a", 1), ElementSet("b", 3)],
                [SetMap("m", "a", "b", np.array([[0, -1]]))],
            ),
            "column 1 has index -1, but set 'b' has 3 elements: elements that reach nothing must",
        ),
        (
            lambda: Mesh([ElementSet("a", 1), ElementSet("a", 2)], []),
            "two sets are named 'a'",
        ),
        (
            lambda: Mesh([ElementSet("a", 1), ElementSet("u", 2, parts=("a",))], []),
            "its parts",
        ),
    ],
)
def test_what_is_wrong_is_said(make, message):
    with pytest.raises(MeshprepError, match=message):
        make()


@pytest.mark.parametrize(
    ("values", "numbering"),
    [
        (np.array([5, 2**63 - 1], np.uint64), True),
        (np.array([5, 2**63], np.uint64), False),
        (np.array([7], np.int32), True),
        (np.array([7.0]), False),
        (np.array([[7]]), False),
    ],
)
def test_labels_that_fit_64_bits_are_numbers_of_a_file(values, numbering):
    assert Dat("label", "a", values).is_numbering == numbering
    assert not Dat("other", "a", values).is_numbering
    assert not Dat("label", "a", values, np.arange(len(values))).is_numbering


def test_a_tag_holds_several_groups_an_element():
    tag = Tag(
        "physical",
        "cells",
        np.array([2, 0, 1]),
        np.array([0, 0, 1, 3]),
        [7, 7, 9],
        {7: "in"},
    )
    assert [tag.groups(r) for r in tag.values] == [(7, 9), (), (7,)]
    np.testing.assert_array_equal(tag.first_ids(), [7, 0, 7])
    assert tag.further_ids().tolist() == [[0, 9]]


@pytest.mark.parametrize("seed", range(5))
def test_the_first_group_and_the_further_ones_are_all(seed):
    rng = np.random.default_rng(seed)
    rows = [rng.integers(-3, 4, rng.integers(0, 5)) for _ in range(6)]
    offset = np.cumsum([0, *map(len, rows)])
    tag = Tag("t", "cells", rng.integers(0, 6, 40), offset, np.concatenate(rows))
    first, further = tag.first_ids(), tag.further_ids()
    wanted = [
        [e, group]
        for e in range(40)
        for group in sorted(set(tag.groups(tag.values[e])) - {first[e]})
    ]
    assert further.tolist() == wanted


def test_a_tag_from_ids_takes_zero_for_none():
    tag = Tag.from_ids("physical", "cells", np.array([5, 0, -3, 5]))
    np.testing.assert_array_equal(tag.first_ids(), [5, 0, -3, 5])
    assert tag.groups(tag.values[1]) == ()


def test_a_tag_without_groups():
    tag = Tag("t", "a", np.array([0, 0]), [0, 0], [])
    assert tag.first_ids().tolist() == [0, 0]
    for array in (tag.values, tag.group_offset, tag.group_id):
        assert not array.flags.writeable
    assert tag.group_offset.dtype == tag.group_id.dtype == np.int64


def test_renumbering_reaches_everything_that_holds_an_index():
    tag = Tag.from_ids("physical", "cells", np.array([4, 6]))
    partial = Dat("t", "nodes", np.array([10.0, 30.0]), np.array([1, 3]))
    pairs = IndexList("periodic", "nodes", np.array([[0, 1], [3, 2]]))
    mesh = two_triangles(tags=[tag], lists=[pairs]).with_(dats=[partial])
    nodes = Ordering.from_new_to_old(np.array([3, 2, 1, 0, 4]))
    cells = Ordering.from_new_to_old(np.array([1, 0]))
    new = mesh.renumber({"nodes": nodes, "cells": cells})
    np.testing.assert_array_equal(new.map("cells->nodes").table, [[3, 1, 0], [3, 2, 1]])
    np.testing.assert_array_equal(new.coordinates[:2], [[0, 1], [1, 1]])
    np.testing.assert_array_equal(new.tag("physical", "cells").first_ids(), [6, 4])
    moved = new.dat("t", "nodes")
    np.testing.assert_array_equal(moved.index, [0, 2])
    np.testing.assert_array_equal(moved.values, [30, 10])
    np.testing.assert_array_equal(new.lists[0].index, [[3, 2], [0, 1]])
    back = new.renumber(
        {
            "nodes": Ordering.from_new_to_old(nodes.old_to_new),
            "cells": Ordering.from_new_to_old(cells.old_to_new),
        }
    )
    assert back.content_hash() == mesh.content_hash() != new.content_hash()


def test_a_union_follows_its_parts():
    mesh = derive(generate("mixed2d", nx=4, ny=3), ["edges->cells"])
    first, second = mesh.sets["cells"].parts
    n, m = mesh.size(first), mesh.size(second)
    order = Ordering.from_new_to_old(np.arange(n)[::-1])
    both = np.concatenate([np.arange(n)[::-1], np.arange(n, n + m)])
    table = both[mesh.map("edges->cells").table]
    whole = Ordering.from_new_to_old(both)
    for given in ({first: order}, {first: order, "cells": whole}):
        assert np.array_equal(mesh.renumber(given).map("edges->cells").table, table)
    for given in ({"cells": whole}, {second: Ordering.identity(m), "cells": whole}):
        with pytest.raises(MeshprepError, match=f"not that of {first}, {second} one after"):
            mesh.renumber(given)


def test_orderings_that_do_not_fit_are_refused():
    mesh, order = three_sets()
    with pytest.raises(MeshprepError, match="ordering of 'a' has 20 elements, the set 30"):
        mesh.renumber({"a": order["b"]})
    with pytest.raises(MeshprepError, match="no set 'nodes' to renumber: choose a, b, c"):
        mesh.renumber({"nodes": order["b"]})


def test_the_hash_ignores_coordinates_and_lower_dimensions():
    mesh = two_triangles()
    lines = mesh.with_(
        sets=[ElementSet("line", 1, "line")],
        maps=[SetMap("line->nodes", "line", "nodes", np.array([[0, 1]]))],
    )
    assert lines.content_hash() == mesh.content_hash()
    other = Mesh(mesh.sets.values(), mesh.maps.values())
    assert other.content_hash() == mesh.content_hash()


def three_sets(seed=0):
    """Random maps from a to b and from b to c, and a new order of each set."""
    rng = np.random.default_rng(seed)
    sizes = {"a": 30, "b": 20, "c": 9}
    maps = [
        SetMap("a->b", "a", "b", rng.integers(0, 20, (30, 2))),
        SetMap("b->c", "b", "c", rng.integers(0, 9, (20, 3))),
    ]
    order = {n: Ordering.from_new_to_old(rng.permutation(k)) for n, k in sizes.items()}
    return Mesh([ElementSet(n, k) for n, k in sizes.items()], maps), order


def test_a_map_of_a_map_is_numpys_indexing():
    mesh, order = three_sets()
    first, then = mesh.maps.values()
    both = first.compose(then)
    assert (both.name, both.from_set, both.to_set, both.arity) == ("a->b->c", "a", "c", 6)
    np.testing.assert_array_equal(both.table, then.table[first.table].reshape(30, 6))
    assert both.table.dtype == np.int32
    assert both.table[4, 3:].tolist() == then.table[first.table[4, 1]].tolist()
    assert first.compose(then, "short").name == "short"
    # renumbered and then composed is composed and then renumbered
    new = mesh.with_(maps=[both]).renumber(order)
    again = new.map("a->b").compose(new.map("b->c"))
    np.testing.assert_array_equal(again.table, new.map("a->b->c").table)


def test_maps_that_do_not_join_are_refused():
    mesh, _ = three_sets()
    first, then = mesh.maps.values()
    with pytest.raises(
        MeshprepError, match="'b->c' leads to 'c', but map 'a->b' starts at 'a'"
    ):
        then.compose(first)
    short = SetMap("b->c", "b", "c", then.table[:19])
    with pytest.raises(MeshprepError, match=r"map 'a->b': .* index 19, but set 'b' has 19"):
        first.compose(short)
    none = SetMap("a->b", "a", "b", np.zeros((0, 2), int)).compose(then)
    assert none.table.shape == (0, 6)
