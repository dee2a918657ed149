import numpy as np
import pytest

from meshprep.mesh import ElementSet, Mesh, SetMap
from meshprep.staging.numbering import Numbering
from meshprep_runtime import MeshprepError, Ordering


def mixed():
    """Two triangles and one quad as the union cells, seen by two edges."""
    return Mesh(
        [
            ElementSet("triangle", 2, "triangle"),
            ElementSet("quad", 1, "quad"),
            ElementSet("cells", 3, parts=("triangle", "quad")),
            ElementSet("edges", 2),
        ],
        [SetMap("edges->cells", "edges", "cells", np.array([[0, 1], [1, 2]]))],
    )


def test_a_union_is_its_parts_one_after_the_other():
    start = Numbering.of(mixed())
    numbering = start.moved("cells", np.array([1, 0, 2], np.int32)).settled("cells")
    np.testing.assert_array_equal(numbering.ordering("triangle").new_to_old, [1, 0])
    np.testing.assert_array_equal(numbering.ordering("cells").new_to_old, [1, 0, 2])
    np.testing.assert_array_equal(numbering.map("edges->cells").table, [[1, 0], [0, 2]])
    assert numbering.movable("cells") == ()
    assert numbering.movable("edges") == ("edges",)
    assert set(numbering.known()) == {"triangle", "quad"}
    assert set(numbering.all()) == {"triangle", "quad", "cells", "edges"}
    # a step leaves what it was given
    assert start.ordering("cells").is_identity
    assert start.movable("cells") == ("triangle", "quad")


def test_a_map_is_made_once_for_an_order():
    start = Numbering.of(mixed())
    before = start.map("edges->cells")
    numbering = start.moved("edges", np.array([1, 0], np.int32))
    found = numbering.map("edges->cells")
    np.testing.assert_array_equal(found.table, before.table[::-1])
    assert numbering.settled("edges").map("edges->cells") is found
    np.testing.assert_array_equal(start.map("edges->cells").table, before.table)


def test_the_final_part_of_a_union_stays():
    numbering = Numbering.of(mixed()).settled("triangle")
    assert (
        numbering.moved("cells", np.array([1, 0, 2], np.int32))
        .ordering("cells")
        .is_identity
    )


def test_a_move_that_mixes_the_parts_is_refused():
    with pytest.raises(MeshprepError, match="outside"):
        Numbering.of(mixed()).moved("cells", np.array([2, 0, 1], np.int32))


def test_final_sets_do_not_follow():
    numbering = Numbering.of(mixed(), frozen=["edges"])
    flip = Ordering.from_new_to_old(np.array([1, 0]))
    numbering = numbering.following({"edges": flip, "triangle": flip})
    assert numbering.ordering("edges").is_identity
    assert numbering.ordering("triangle") is flip
    assert numbering.is_frozen("edges")
    assert not numbering.is_frozen("cells")
    with pytest.raises(MeshprepError, match="'quad' has the wrong size"):
        numbering.following({"quad": flip})
