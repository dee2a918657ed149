import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.reorder import METHODS, LocalityProblem
from meshprep_runtime import MeshprepError


def ordered(method, points):
    points = np.asarray(points, dtype=np.float64)
    problem = LocalityProblem(np.empty((0, 2), np.int32), len(points), points)
    return METHODS[method].function(problem)


def slow_rcb(points, numbers):
    """Sort along the longest side of the box, cut in the middle, and so on."""
    if len(numbers) < 2:
        return numbers
    box = points[numbers]
    extent = box.max(axis=0) / 2 - box.min(axis=0) / 2
    if extent.max() == 0:
        return sorted(numbers)
    axis = int(np.argmax(extent))
    numbers = sorted(numbers, key=lambda p: (points[p, axis], p))
    half = (len(numbers) + 1) // 2
    return slow_rcb(points, numbers[:half]) + slow_rcb(points, numbers[half:])


def slow_morton(cells, bits):
    """Numbers of lattice points made of their bits by turns, axis 0 first."""
    return [
        int("".join(str(int(c) >> b & 1) for b in reversed(range(bits)) for c in cell), 2)
        for cell in cells
    ]


@given(st.integers(1, 4), st.integers(0, 70), st.integers(1, 6), st.integers(0, 2**31))
@settings(deadline=None, max_examples=100)
def test_rcb_against_the_slow_version(dim, n, values, seed):
    # few values: many points share coordinates, and some share all of them
    points = np.random.default_rng(seed).integers(0, values, (n, dim)).astype(float)
    found = ordered("rcb", points)
    assert found.dtype == np.int32
    assert found.tolist() == slow_rcb(points, list(range(n)))


@pytest.mark.parametrize("kind", ["sorted", "backwards", "equal", "organ pipe"])
def test_rcb_takes_no_longer_on_points_in_order(kind):
    n = 100_000
    x = np.arange(n, dtype=float)
    x = {"backwards": -x, "equal": x * 0, "organ pipe": np.minimum(x, n - x)}.get(kind, x)
    order = ordered("rcb", x[:, None])
    assert (np.diff(x[order]) >= 0).all()


def test_rcb_of_huge_and_tiny_extents():
    huge = np.array([[1e308, 0], [-1e308, 0], [0, 1e300]])
    assert ordered("rcb", huge).tolist() == [1, 2, 0]
    assert ordered("rcb", huge * 1e-300).tolist() == [1, 2, 0]
    assert ordered("rcb", np.zeros((4, 0))).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_morton_interleaves_the_bits(dim):
    bits = 3
    cells = np.stack(np.meshgrid(*[np.arange(1 << bits)] * dim, indexing="ij"), -1)
    cells = np.random.default_rng(dim).permutation(cells.reshape(-1, dim))
    # centres of the cells of the unit cube's grid, whose corners hold two points
    keys = slow_morton(cells, bits)
    order = ordered("morton", np.vstack([(cells + 0.5) / (1 << bits), [[0] * dim, [1] * dim]]))
    inside = [p for p in order.tolist() if p < len(cells)]
    assert [keys[p] for p in inside] == sorted(keys)
    assert order[0] == len(cells)
    assert order[-1] == len(cells) + 1


@pytest.mark.parametrize("method", ["morton", "rcb"])
def test_without_usable_coordinates_they_say_what_to_use(method):
    bare = LocalityProblem(np.empty((0, 2), np.int32), 2)
    with pytest.raises(MeshprepError, match=f"'{method}' needs coordinates: use gps or rcm"):
        METHODS[method].function(bare)
    with pytest.raises(MeshprepError, match=f"'{method}' needs finite coordinates"):
        ordered(method, [[0, np.nan]])


def test_morton_takes_three_dimensions_at_most():
    with pytest.raises(MeshprepError, match="'morton' takes 2-D and 3-D points, not 4-D"):
        ordered("morton", np.eye(4))
