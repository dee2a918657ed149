import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import get_num_threads, set_num_threads

from meshprep.ordering import METHODS, LocalityProblem
from meshprep.ordering.curve import curve_keys
from meshprep_runtime import MeshprepError


def hilbert(points):
    points = np.asarray(points, dtype=np.float64)
    problem = LocalityProblem(np.empty((0, 2), np.int32), len(points), points)
    return METHODS["hilbert"].function(problem)


def lattice(*sizes, seed=0):
    axes = np.meshgrid(*(np.arange(s, dtype=float) for s in sizes), indexing="ij")
    points = np.stack([a.ravel() for a in axes], 1)
    return np.random.default_rng(seed).permutation(points)


@pytest.mark.parametrize("sizes", [(2, 2), (16, 16), (2, 2, 2), (8, 8, 8)])
def test_one_step_at_a_time_through_a_whole_lattice(sizes):
    points = lattice(*sizes)
    steps = np.abs(np.diff(points[hilbert(points)], axis=0)).sum(axis=1)
    assert (steps == 1).all()


@pytest.mark.parametrize("sizes", [(16, 16), (8, 8, 8)])
def test_few_digits_are_enough_for_a_coarse_lattice(sizes):
    points = lattice(*sizes)
    box, digits = (
        (points.min(axis=0), points.max(axis=0)),
        sum(n.bit_length() - 1 for n in sizes),
    )
    keys = curve_keys(points, box, digits)
    assert sorted(keys.tolist()) == list(range(len(points)))
    steps = np.abs(np.diff(points[np.argsort(keys)], axis=0)).sum(axis=1)
    assert (steps == 1).all()


def test_keys_do_not_depend_on_the_number_of_threads():
    points = np.random.default_rng(0).random((70_001, 3))
    found, threads = [], get_num_threads()
    for count in (threads, 1):
        set_num_threads(count)
        found.append(curve_keys(points, (np.zeros(3), np.ones(3))))
    set_num_threads(threads)
    assert np.array_equal(*found)


def test_every_octant_is_left_before_the_next_is_entered():
    points = lattice(8, 8, 8)
    octant = (points[hilbert(points)] // 4) @ [4, 2, 1]
    assert np.count_nonzero(np.diff(octant)) == 7


def test_a_planar_mesh_in_space_gets_the_curve_of_the_plane():
    plane = lattice(16, 16)
    for axis in range(3):
        in_space = np.insert(plane, axis, 3.5, axis=1)
        assert hilbert(in_space).tolist() == hilbert(plane).tolist()
    noisy = np.insert(
        plane, 2, np.random.default_rng(1).normal(0, 1e-12, len(plane)), axis=1
    )
    assert hilbert(noisy).tolist() == hilbert(plane).tolist()


def test_points_on_a_line_are_sorted_along_it():
    x = np.random.default_rng(2).permutation(50).astype(float)
    expected = np.argsort(x).tolist()
    assert hilbert(x[:, None]).tolist() == expected
    assert hilbert(np.stack([np.zeros(50), x, np.zeros(50)], 1)).tolist() == expected


def test_a_sphere_gets_an_order_of_short_steps():
    random = np.random.default_rng(3)
    points = random.normal(size=(4000, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    steps = np.linalg.norm(np.diff(points[hilbert(points)], axis=0), axis=1)
    # neighbours on the sphere are about 0.056 apart
    assert steps.mean() < 0.1


@pytest.mark.parametrize(
    "points", [[[1.0, 2.0]], [[1.0, 2.0]] * 5, np.empty((0, 2)), [[5e-324]] * 3]
)
def test_no_extent_keeps_the_order(points):
    assert hilbert(points).tolist() == list(range(len(points)))


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1.0, 1e15, 1.7e308])
def test_the_scale_does_not_matter(scale):
    points = lattice(8, 8) / 8 - 0.5
    assert hilbert(points * scale).tolist() == hilbert(points).tolist()


@given(st.integers(1, 3), st.integers(1, 60), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=effort.examples(60))
def test_always_a_permutation_and_the_input_is_untouched(dim, n, seed):
    points = np.random.default_rng(seed).choice([0.0, 0.1, 1.0, 1e6, -3.0], (n, dim))
    before = points.copy()
    order = hilbert(points)
    assert order.dtype == np.int32
    assert sorted(order.tolist()) == list(range(n))
    assert (points == before).all()


def test_without_usable_coordinates_it_says_what_to_use():
    table = np.array([[0, 1]], dtype=np.int32)
    with pytest.raises(MeshprepError, match="needs coordinates: use gps or rcm"):
        METHODS["hilbert"].function(LocalityProblem(table, 2))
    with pytest.raises(MeshprepError, match="needs finite coordinates: use gps or rcm"):
        hilbert([[0.0, np.nan], [1.0, 1.0]])
    with pytest.raises(MeshprepError, match="not 4-D ones"):
        hilbert(np.eye(5)[:, :4])
