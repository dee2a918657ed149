import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshprep_runtime import MeshprepError, Ordering


@given(st.permutations(range(7)), st.permutations(range(7)))
def test_apply_restore_and_chains(first, second):
    values = np.arange(14.0).reshape(7, 2)
    one, two = (Ordering.from_new_to_old(np.array(p)) for p in (first, second))
    np.testing.assert_array_equal(one.apply(values), [values[i] for i in first])
    np.testing.assert_array_equal(one.restore(one.apply(values)), values)
    np.testing.assert_array_equal(one.then(two).apply(values), two.apply(one.apply(values)))


def test_nothing_is_copied_where_nothing_moves():
    values = np.arange(4)
    assert Ordering.identity(4).apply(values) is values
    assert Ordering.identity(0).apply(values[:0]).size == 0


@pytest.mark.parametrize(
    ("order", "message"), [([0, 0, 2], "1 is missing"), ([0, 3], "outside 0..1"), ([-1], "outside")]
)
def test_no_permutation(order, message):
    with pytest.raises(MeshprepError, match=message):
        Ordering.from_new_to_old(np.array(order), "cells")


def test_an_array_of_another_set_is_refused():
    with pytest.raises(MeshprepError, match="does not fit a set of 3"):
        Ordering.identity(3).apply(np.zeros(4))
