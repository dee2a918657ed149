"""What a variant says of its elements and blocks, against loops; what a plan says of its names."""

import numpy as np
import pytest

from meshprep_runtime import PlanError


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


def test_names_that_a_plan_does_not_have(airfoil):
    for wrong, said in (
        (lambda: airfoil.sizes["faces"], r"no set 'faces': it has .*cells"),
        (lambda: airfoil.ordering["faces"], r"no set 'faces': it has .*cells"),
        (lambda: airfoil.maps["faces->cells"], r"no map 'faces->cells': it has .*; a plan holds"),
    ):
        with pytest.raises(PlanError, match=said):
            wrong()
    assert airfoil.maps.get("faces->cells") is None


def test_a_plan_is_shown_without_its_arrays(airfoil):
    assert "array(" not in repr(airfoil)
    assert repr(airfoil).startswith("Plan(loops ")
    loop = airfoil["res_calc"]
    assert repr(loop).startswith("LoopPlan(res_calc(")
    table = airfoil.maps["edges->cells"].table
    assert repr(airfoil.maps["edges->cells"]) == f"SetMap('edges->cells', {len(table)} x 2)"
    blocks = f"{loop.variant().n_blocks} blocks by"
    assert blocks in repr(loop.variant())
