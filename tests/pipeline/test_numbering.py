import numpy as np
import pytest

from meshprep.mesh import ElementSet, Mesh, SetMap
from meshprep.pipeline.numbering import Numbering
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
    numbering = Numbering(mixed())
    numbering.move("cells", np.array([1, 0, 2], np.int32))
    numbering.settle("cells")
    np.testing.assert_array_equal(numbering.ordering("triangle").new_to_old, [1, 0])
    np.testing.assert_array_equal(numbering.ordering("cells").new_to_old, [1, 0, 2])
    np.testing.assert_array_equal(numbering.present_map("edges->cells").table, [[1, 0], [0, 2]])
    assert numbering.movable("cells") == ()
    assert numbering.movable("edges") == ("edges",)
    assert set(numbering.settled()) == {"triangle", "quad"}


def test_nothing_is_read_before_it_is_final():
    numbering = Numbering(mixed())
    numbering.settle("quad")
    assert numbering.movable("cells") == ("triangle",)
    for read in (lambda: numbering.ordering("cells"), lambda: numbering.map("edges->cells")):
        with pytest.raises(RuntimeError, match=r"'triangle' is not final|'edges' is not final"):
            read()
    numbering.finish(numbering.settled())
    np.testing.assert_array_equal(numbering.map("edges->cells").table, [[0, 1], [1, 2]])
    assert set(numbering.all()) == {"triangle", "quad", "cells", "edges"}


def test_a_final_map_is_made_once():
    numbering = Numbering(mixed())
    before = numbering.present_map("edges->cells")
    numbering.move("edges", np.array([1, 0], np.int32))
    numbering.settle("edges")
    numbering.settle("cells")
    found = numbering.map("edges->cells")
    np.testing.assert_array_equal(found.table, before.table[::-1])
    assert numbering.present_map("edges->cells") is found
    assert numbering.map("edges->cells") is found


def test_the_settled_part_of_a_union_stays():
    numbering = Numbering(mixed())
    numbering.settle("triangle")
    numbering.move("cells", np.array([1, 0, 2], np.int32))
    assert numbering.present_ordering("cells").is_identity


def test_a_move_that_mixes_the_parts_is_refused():
    with pytest.raises(MeshprepError, match="outside"):
        Numbering(mixed()).move("cells", np.array([2, 0, 1], np.int32))


def test_settled_sets_do_not_follow():
    numbering = Numbering(mixed(), settled=["edges"])
    flipped = Numbering(mixed())
    flipped.move("edges", np.array([1, 0], np.int32))
    flipped.move("triangle", np.array([1, 0], np.int32))
    flipped.finish({})
    numbering.follow(flipped.all())
    assert numbering.ordering("edges").is_identity
    np.testing.assert_array_equal(numbering.present_ordering("triangle").new_to_old, [1, 0])


def test_sets_that_keep_their_order_are_cut_in_another_numbering():
    numbering, temporary = Numbering(mixed(), settled=["quad"]), Numbering(mixed())
    assert numbering.to_cut_in("cells") is numbering
    numbering.cut_frozen_in(temporary)
    assert numbering.to_cut_in("cells") is numbering.copy().to_cut_in("cells") is temporary
    assert numbering.to_cut_in("edges") is numbering


def test_fixed_orders_come_at_once_or_last():
    numbering, flip = Numbering(mixed()), Ordering.from_new_to_old(np.array([1, 0]))
    numbering.fix({"edges": flip, "triangle": flip}, now=["edges", "cells"])
    assert numbering.ordering("edges") is flip
    assert numbering.movable("triangle") == ("triangle",)
    assert numbering.present_ordering("triangle").is_identity
    numbering.finish({"triangle": Ordering.identity(2), "quad": Ordering.identity(1)})
    assert numbering.ordering("triangle") is flip
