"""What a variant says of its elements and blocks, against loops; what a plan says of its names."""

import pickle

import numpy as np
import pytest

from meshprep_runtime import PlanError
from meshprep_runtime.plan.metrics import LoopMetrics


def test_blocks_of_elements_and_colours_of_blocks(airfoil):
    for variant in airfoil["res_calc"].variants.values():
        block = variant.block_of_element()
        assert (block.dtype, block.size) == (np.int32, 38)
        for b in range(variant.n_blocks):
            first, past = variant.block_offset[b : b + 2]
            assert (np.flatnonzero(block == b) == np.arange(first, past)).all()
        colour = variant.colour_of_block()
        for c in range(variant.n_block_colours):
            first, past = variant.block_colour_offset[c : c + 2]
            assert set(np.flatnonzero(colour == c)) == set(variant.block_order[first:past])


def test_places_are_elements_where_blocks_list_none(airfoil):
    variant, values = airfoil["res_calc"].variant(), np.arange(76).reshape(38, 2)
    assert variant.elements is None
    assert np.array_equal(variant.by_place(values), values)
    assert np.array_equal(variant.by_element(values), values)


def test_a_plan_is_shown_without_its_arrays(airfoil):
    assert "array(" not in repr(airfoil)
    assert repr(airfoil).startswith("Plan(loops ")
    loop = airfoil["res_calc"]
    assert repr(loop).startswith("LoopPlan(res_calc(")
    table = airfoil.maps["edges->cells"].table
    assert repr(airfoil.maps["edges->cells"]) == f"SetMap('edges->cells', {len(table)} x 2)"
    blocks = f"{loop.variant().n_blocks} blocks by"
    assert blocks in repr(loop.variant())


@pytest.mark.parametrize(
    ("reached", "said"),
    [
        (lambda p: p["x"], "the plan has no loop 'x': it has res_calc"),
        (lambda p: p.loops["x"], "there is no loop 'x': choose res_calc"),
        (lambda p: p.maps["x"], "there is no map 'x': choose edges->"),
        (lambda p: p.sizes["x"], "there is no set 'x': choose "),
        (lambda p: p.ordering["x"], "there is no set 'x': choose "),
        (lambda p: p.matrices["x"], "there is no matrix 'x': there is none"),
        (lambda p: p.tags["x"], "there is no tag of set 'x': "),
        (lambda p: p.group_names["x"], "there is no set with named groups 'x': "),
        (lambda p: p.metrics.loops["x"], "there is no loop 'x': "),
        (lambda p: LoopMetrics().variants["x"], "there is no variant 'x': there is none"),
        (lambda p: p["res_calc"].maps["x"], "there is no map 'x': choose edges->"),
        (lambda p: p["res_calc"].variants["x"], "there is no variant 'x': choose s"),
        (
            lambda p: p["res_calc"].variant("x"),
            "loop 'res_calc' has no variant 'x': choose s",
        ),
        (
            lambda p: p["res_calc"].variant().local["x"],
            "there is no map 'x': choose edges->",
        ),
        (
            lambda p: p["res_calc"].variant().staging["x"],
            "there is no staged set 'x': choose ",
        ),
    ],
)
def test_unknown_names_are_one_line_and_a_key_error(airfoil, reached, said):
    with pytest.raises(KeyError) as error:
        reached(airfoil)
    assert isinstance(error.value, PlanError)
    assert str(error.value).startswith(said)
    # what does not ask for the error works as with any mapping
    assert "x" not in airfoil.maps
    assert airfoil.maps.get("x") is None
    assert pickle.loads(pickle.dumps(airfoil.sizes)) == airfoil.sizes == {**airfoil.sizes}
