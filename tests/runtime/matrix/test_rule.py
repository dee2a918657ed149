"""The fixed rule of CSR products against the matrices of [R14 Table 4.1]."""

import pytest

from meshprep_runtime import MeshprepError
from meshprep_runtime.matrix.cuda_text import CsrThreads, fixed_rule

# Rows, nonzeros; coop, repeat and thread blocks by the rule.
MATRICES = {
    "atmosmodd": (1_270_432, 8_814_880, 4, 26, 1527),
    "cage14": (1_505_785, 27_130_349, 8, 62, 1518),
    "cant": (62_451, 4_007_383, 16, 5, 1562),
    "cop20k_A": (121_192, 2_624_331, 8, 5, 1515),
    "F1": (343_791, 26_837_113, 16, 28, 1535),
    "mac_econ_fwd500": (206_500, 1_273_389, 4, 4, 1614),
    "pdb1HYS": (36_417, 4_344_765, 16, 3, 1518),
    "scircuit": (170_998, 958_936, 4, 3, 1782),
    "shallow_water1": (81_920, 327_680, 4, 1, 2560),
    "webbase-1M": (1_000_005, 3_105_536, 2, 10, 1563),
    "nd24k": (72_000, 28_715_634, 32, 12, 1500),
    "crankseg_2": (63_838, 14_148_858, 16, 5, 1596),
    "pwtk": (217_918, 11_524_432, 8, 9, 1514),
    "ldoor": (952_203, 42_493_817, 8, 39, 1526),
    "2cubes_sphere": (101_492, 1_647_264, 8, 4, 1586),
}


@pytest.mark.parametrize("name", MATRICES)
def test_the_rule(name):
    rows, nonzeros, coop, repeat, blocks = MATRICES[name]
    found = fixed_rule(rows, nonzeros)
    assert found == CsrThreads(128, coop, repeat)
    assert found.blocks(rows) == blocks
    # one more row a group would leave too few blocks
    assert repeat == 1 or CsrThreads(128, coop, repeat + 1).blocks(rows) < 1500


def test_small_matrices():
    assert fixed_rule(0, 0).blocks(0) == 0
    assert fixed_rule(1, 0) == CsrThreads(128, 1, 1)
    assert fixed_rule(1, 10**6) == CsrThreads(128, 32, 1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((48, 1, 1), "block_size is 48"),
        ((64, 3, 1), "coop is 3"),
        ((64, 2, 0), "repeat is 0"),
    ],
)
def test_numbers_that_no_launch_can_have(given, words):
    with pytest.raises(MeshprepError, match=words):
        CsrThreads(*given)
