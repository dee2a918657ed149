"""Orderings from long arrays: the same as the runtime's, on any number of threads."""

import numpy as np
import pytest

from meshprep.mesh.orderings import ordering_of
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.ordering import Ordering

LONG = 1 << 17


@pytest.mark.parametrize("n", [0, 1, 5, LONG])
def test_as_one_after_the_other(n):
    first, second = (np.random.default_rng(seed).permutation(n) for seed in (1, 2))
    one, other = Ordering.from_new_to_old(first), Ordering.from_new_to_old(second)
    both = one.then(other)
    for found, expected in (
        (ordering_of(first.astype(np.int32)), one),
        (ordering_of(second, before=Ordering.identity(n)), other),
        (ordering_of(second, before=one), both),
    ):
        assert found.new_to_old.tolist() == expected.new_to_old.tolist()
        assert found.old_to_new.tolist() == expected.old_to_new.tolist()
        assert not found.new_to_old.flags.writeable
        assert not found.old_to_new.flags.writeable


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (-1, f"of set 'cells' has a number outside 0..{LONG - 1}"),
        (LONG, f"of set 'cells' has a number outside 0..{LONG - 1}"),
        (7, f"of set 'cells' is not a permutation: {LONG - 1} is missing"),
    ],
)
@pytest.mark.parametrize("before", [None, Ordering.from_new_to_old(np.arange(LONG)[::-1])])
def test_what_is_no_permutation(number, message, before):
    wrong = np.arange(LONG)
    wrong[-1] = number
    with pytest.raises(MeshprepError) as error:
        ordering_of(wrong, "cells", before)
    assert str(error.value) == f"the ordering {message}"
