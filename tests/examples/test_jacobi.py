"""Jacobi's iteration against its closed form: sines, each damped by its own eigenvalue."""

import sys
from math import cos, pi

import effort
import numpy as np
import pytest

import jacobi
from jacobi import Jacobi, laplace
from kernels import jacobi as kernels

pytestmark = pytest.mark.usefixtures("one_thread")
N = 12


def error_after(iterations, n=N):
    """1 - u on the inner points: the sines that make 1, times powers of the mean of two cosines."""
    k = np.arange(1, n)
    sine = np.sin(np.outer(k, k) * pi / n)
    weight = 2 / n * sine.sum(axis=1)
    damped = (0.5 * np.add.outer(np.cos(k * pi / n), np.cos(k * pi / n))) ** iterations
    return sine @ (np.outer(weight, weight) * damped) @ sine


@pytest.fixture(scope="module")
def problem():
    return laplace(N)


def number():
    return np.random.default_rng(0).permutation((N - 1) ** 2)


@pytest.mark.parametrize("strategy", effort.first(["hierarchical", "sequential"]))
def test_every_iterate_is_the_closed_form(problem, strategy):
    made = Jacobi(*problem, block_size=64, strategy=strategy)
    before = error_after(0)
    np.testing.assert_allclose(before, 1.0, rtol=1e-13)
    for i, (root, largest) in enumerate(made.steps(30), start=1):
        error = error_after(i)
        np.testing.assert_allclose(made.u[number()], 1 - error.ravel(), atol=1e-14)
        assert root == pytest.approx(np.linalg.norm(error - before), rel=1e-12)
        assert largest == pytest.approx(np.abs(error - before).max(), rel=1e-12)
        before = error


@pytest.mark.slow
def test_on_a_device(problem, device):
    made = Jacobi(*problem, block_size=64, device=device)
    for i, (root, largest) in enumerate(made.steps(3), start=1):
        error = error_after(i)
        np.testing.assert_allclose(made.u[number()], 1 - error.ravel(), atol=1e-14)
        assert root == pytest.approx(np.linalg.norm(error - error_after(i - 1)), rel=1e-12)
        assert largest == pytest.approx(np.abs(error - error_after(i - 1)).max(), rel=1e-12)
    assert made.multiply.par_loop.on_gpu.variant == "s64"


def test_the_error_falls_by_the_cosine(problem):
    made = Jacobi(*problem, block_size=64, strategy="hierarchical")
    *_, (last, _), (root, _) = made.steps(400)
    assert root / last == pytest.approx(cos(pi / N), rel=1e-9)
    assert np.abs(made.u - 1).max() < 2e-6


def test_the_kernels_do_what_they_say(problem):
    made = Jacobi(*problem, block_size=64, strategy="hierarchical")
    arrays = made.dats | {"square": np.zeros(1), "largest": np.zeros(1)}
    for loop in (made.multiply.par_loop, made.update.par_loop):
        loop.check_access(**{s.name: arrays[s.name] for s in loop.slots})
    assert made.update.par_loop.kernel is kernels.update


def test_the_program_prints_its_factor(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["jacobi.py", "--cells", "12", "--iterations", "400"])
    jacobi.main()
    *lines, last = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert lines[-1].endswith("fell by 0.965926")
    assert last.startswith("cos(pi / n) is 0.965926; error 1.")
