import sys
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshprep_runtime import MeshprepError, Ordering, SetMap


@given(st.permutations(range(7)), st.permutations(range(7)))
def test_apply_restore_and_chains(first, second):
    values = np.arange(14.0).reshape(7, 2)
    one, two = (Ordering.from_new_to_old(np.array(p)) for p in (first, second))
    np.testing.assert_array_equal(one.apply(values), [values[i] for i in first])
    np.testing.assert_array_equal(one.restore(one.apply(values)), values)
    np.testing.assert_array_equal(one.then(two).apply(values), two.apply(one.apply(values)))


@given(st.permutations(range(5)), st.sampled_from([0, 1, 2, -1]))
def test_any_axis_and_memory_order(order, axis):
    one = Ordering.from_new_to_old(np.array(order))
    shape = [2, 3, 4]
    shape[axis] = 5
    for layout in "CF":
        values = np.arange(np.prod(shape)).reshape(shape, order=layout)
        new = one.apply(values, axis)
        expected = [np.take(values, i, axis) for i in order]
        np.testing.assert_array_equal(np.moveaxis(new, axis, 0), expected)
        np.testing.assert_array_equal(one.restore(new, axis=axis), values)


def test_nothing_is_copied_where_nothing_moves():
    values = np.arange(4)
    assert Ordering.identity(4).apply(values) is values
    assert Ordering.identity(4).restore(values[None], axis=1).base is values
    still = Ordering.from_new_to_old(np.arange(4))
    assert still.apply(values) is values
    assert Ordering.identity(0).apply(values[:0]).size == 0


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 0, 2], "1 is missing"),
        ([0, 3], "outside 0..1"),
        ([-1], "outside"),
        ([2**32, 1], "past 2"),
        ([-(2**32), 1], "past 2"),
        ([0.9, 1.2], "dtype float64"),
        ([[0, 1], [2, 3]], r"shape \(2, 2\)"),
    ],
)
def test_no_permutation(order, message):
    with pytest.raises(MeshprepError, match=message):
        Ordering.from_new_to_old(np.array(order), "cells")


def test_an_array_of_another_set_is_refused():
    with pytest.raises(MeshprepError, match="does not fit a set of 3"):
        Ordering.identity(3).apply(np.zeros(4))
    with pytest.raises(MeshprepError, match="axis 1 must run over the set"):
        Ordering.identity(3).apply(np.zeros((3, 4)), axis=1)
    with pytest.raises(MeshprepError, match="axis 1 must run over the set"):
        Ordering.identity(3).apply(np.zeros(3), axis=1)
    with pytest.raises(MeshprepError, match="values is a list, must be an array"):
        Ordering.identity(3).apply([1, 2, 3])


def test_arrays_of_another_library_are_indexed_by_its_own(monkeypatch):
    """CuPy takes no NumPy indices: they are handed over by the library of the array."""
    library = ModuleType("device_arrays")

    class Array:
        __module__ = "device_arrays.core"

        def __init__(self, values):
            self.held, self.shape = np.asarray(values), np.shape(values)

    def take(values, index, axis):
        assert isinstance(index, Array)
        return Array(values.held.take(index.held, axis))

    library.asarray, library.take = Array, take
    monkeypatch.setitem(sys.modules, "device_arrays", library)
    order = Ordering.from_new_to_old(np.array([2, 0, 1]))
    values = Array([[1, 2, 3]])
    assert order.apply(values, axis=1).held.tolist() == [[3, 1, 2]]
    assert Ordering.identity(3).apply(values, axis=1) is values


def test_cupy():
    cupy = pytest.importorskip("cupy")
    if not cupy.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    order = Ordering.from_new_to_old(np.array([2, 0, 1]))
    values = cupy.arange(6.0).reshape(3, 2)
    new = order.apply(values)
    assert isinstance(new, cupy.ndarray)
    assert new.get().tolist() == [[4, 5], [0, 1], [2, 3]]
    assert bool((order.restore(new) == values).all())


def test_what_all_share_cannot_be_written():
    one = Ordering.from_new_to_old(np.array([1, 0, 2]))
    for order in (one, Ordering.identity(3), one.then(one), one.inverse):
        for numbers in (order.new_to_old, order.old_to_new):
            with pytest.raises(ValueError, match="read-only"):
                numbers[0] = 1


def test_what_is_given_stays_writable():
    numbers = np.array([1, 0, 2], np.int32)
    order = Ordering.from_new_to_old(numbers)
    assert numbers.flags.writeable
    assert not order.new_to_old.flags.writeable


def test_what_is_no_array_is_refused():
    order = Ordering.from_new_to_old(np.array([2, 0, 1]))
    for values, axis, said in (
        ([1, 2, 3], 0, "values is a list, must be an array"),
        (np.zeros(3), None, "axis None must run over the set"),
        (memoryview(b"abc"), 0, "a builtins.memoryview is not taken"),
    ):
        with pytest.raises(MeshprepError, match=said):
            order.apply(values, axis=axis)


def test_masked_numbers_are_refused():
    masked = np.ma.array([[0, 1], [1, 2]], mask=[[0, 1], [0, 0]])
    for make in (
        lambda: SetMap("a->b", "a", "b", masked),
        lambda: Ordering.from_new_to_old(masked[0]),
    ):
        with pytest.raises(MeshprepError, match="has masked values"):
            make()
    assert SetMap("a->b", "a", "b", np.ma.array([[0, 1]])).table.tolist() == [[0, 1]]
