"""Distinct numbers and places among them, against NumPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from meshprep.distribute.homes import Places
from meshprep_runtime.types.maps import distinct

TOP = 2**31 - 1
FEW, MANY, FAR = (
    st.integers(0, 5),
    st.integers(0, 200),
    st.sampled_from([0, 1, 2, TOP - 1, TOP]),
)


@given(st.data(), st.sampled_from([FEW, MANY, FAR]), st.sampled_from([np.int32, np.int64]))
def test_numbers_are_found_as_by_numpy(data, values, kind):
    points = np.unique(data.draw(arrays.arrays(kind, st.integers(0, 60), elements=values)))
    shape = st.tuples(st.integers(0, 9), st.just(3))
    wanted = data.draw(arrays.arrays(np.int32, shape, elements=values))
    places = Places.among(points)
    assert np.array_equal(places.of(wanted), np.searchsorted(points, wanted))
    some = np.where(np.isin(wanted, points), places.of(wanted), -1)
    assert np.array_equal(places.known(wanted), some)
    assert np.array_equal(distinct(wanted), np.unique(wanted))


def test_numbers_that_crowd_together_are_found():
    points = np.append(np.arange(1000, dtype=np.int32), np.int32(TOP))
    places = Places.among(points)
    assert (places.first[1], places.first.size) == (1000, 513)
    assert places.of(points).tolist() == list(range(1001))


def test_wider_numbers_are_not_cut_short():
    with pytest.raises(TypeError, match="safe"):
        Places.among(np.arange(3, dtype=np.int32)).of(np.array([2**32]))
