"""Arithmetic: right to the last digits, and in kernels the very numbers that Python has."""

import math

import numpy as np
import pytest

from meshprep.kernels import helper, kernel
from meshprep.kernels.arithmetic import (
    cosine_and_sine,
    exp,
    half_angle,
    inverses,
    log,
    power,
    principal_axes,
    random_frame,
)

_log, _half_angle = helper(log), helper(half_angle)


@kernel
def _logs(values):
    out = np.empty(values.size, np.float64)
    for i in range(values.size):
        out[i] = _log(values[i])
    return out


@kernel
def _halves(cosine, sine):
    return _half_angle(cosine, sine)


def near(found, wanted):
    return abs(found - wanted) <= 4e-16 * max(abs(wanted), 1e-3)


def test_logarithms_in_python_and_in_kernels():
    random = np.random.default_rng(1)
    values = np.concatenate([random.random(2000), 10.0 ** random.uniform(-300, 300, 2000)])
    values = np.append(values, [1.0, 0.5, 2.0, math.sqrt(0.5), 5e-324, 1e308])
    found = [log(float(x)) for x in values]
    assert all(near(y, math.log(x)) for x, y in zip(values, found, strict=True))
    assert _logs(values).tolist() == found
    assert (log(1.0), log(2.0)) == (0.0, math.log(2.0))


def test_powers_and_exponentials():
    random = np.random.default_rng(2)
    for base, exponent in random.uniform([0.01, -3], [100, 3], (2000, 2)).tolist():
        assert math.isclose(power(base, exponent), base**exponent, rel_tol=5e-15)
        assert math.isclose(exp(exponent), math.exp(exponent), rel_tol=1e-15)
    assert power(1.0, 0.7) == power(7.0, 0.0) == 1.0


def test_angles_and_their_halves():
    for angle in np.linspace(-math.pi / 2, math.pi / 2, 1001).tolist():
        cosine, sine = cosine_and_sine(angle)
        assert np.allclose((cosine, sine), (math.cos(angle), math.sin(angle)), 0, 3e-16)
        half = half_angle(math.cos(2 * angle), math.sin(2 * angle))
        assert np.allclose(half, (math.cos(angle), math.sin(angle)), atol=1e-15)
        assert _halves(math.cos(2 * angle), math.sin(2 * angle)) == half
    assert cosine_and_sine(0.0) == (1.0, 0.0)


@pytest.mark.parametrize("d", [1, 2, 3, 7])
def test_frames_are_orthonormal_and_differ(d):
    frames = [random_frame(seed, d) for seed in range(20)]
    for frame in frames:
        assert np.allclose(frame @ frame.T, np.eye(d), atol=1e-14)
    assert d == 1 or len({frame.tobytes() for frame in frames}) == 20


@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_principal_axes_are_those_of_lapack(n):
    random = np.random.default_rng(n)
    for _ in range(20):
        root = random.normal(size=(n, n)) * 10.0 ** random.uniform(-4, 4, n)
        matrix = root @ root.T
        axes = principal_axes(matrix)
        values, wanted = np.linalg.eigh(matrix)
        along = np.einsum("ki,kl,li->i", axes, matrix, axes)
        assert np.allclose(along, values[::-1], atol=1e-12 * values[-1])
        assert np.allclose(axes.T @ axes, np.eye(n), atol=1e-13)
        assert np.allclose(abs(axes[:, 0] @ wanted[:, -1]), 1.0)
        assert (axes.sum(axis=0) >= 0).all()


def test_of_equal_eigenvalues_the_lower_row_comes_first():
    assert (principal_axes(3.0 * np.eye(4)) == np.eye(4)).all()
    assert (principal_axes(np.zeros((2, 2))) == np.eye(2)).all()
    assert (principal_axes(np.diag([1.0, 5.0, 5.0])) == np.eye(3)[:, [1, 2, 0]]).all()
    # a symmetric ring: what is found is the same for each of its turns
    ring = np.array([[2.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.0, 2.0]])
    axes = principal_axes(ring)
    assert np.allclose(axes.T @ ring @ axes, np.diag([4.0, 1.0, 1.0]))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_inverses(d):
    roots = np.random.default_rng(d).normal(size=(50, d, d))
    matrices = roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(d)
    found = inverses(matrices)
    assert np.allclose(found @ matrices, np.eye(d), atol=1e-10)
    assert (found == found.transpose(0, 2, 1)).all()
    # of elements as flat as they may be
    flat = inverses(np.full((1, d, d), 1 / d) + 1e-12 * np.eye(d))[0]
    assert (np.linalg.eigvalsh(flat) > 0).all()
