"""What a variant says of its elements and blocks, against loops."""

import numpy as np


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
