import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from meshprep_runtime.types.maps import distinct, distinct_without

NUMBERS = st.lists(st.integers(-5, 20), max_size=30)


@given(NUMBERS, NUMBERS)
def test_distinct_values_and_those_that_others_lack(values, others):
    one, other = np.array(values, np.int64), np.array(others, np.int64)
    assert distinct(one).tolist() == sorted(set(values))
    assert distinct_without(one, other).tolist() == sorted(set(values) - set(others))
    assert one.tolist() == values


def test_tables_are_taken_as_one_list():
    table = np.array([[3, 1], [1, 7]], np.int32)
    assert distinct(table).tolist() == [1, 3, 7]
    assert distinct(table).dtype == np.int32
