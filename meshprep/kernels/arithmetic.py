"""Elementary functions and small matrices with the same bits on every processor.

IEEE 754 fixes the last bit only of sums, differences, products, quotients and square roots.
Logarithms, angles and matrices from libm, LAPACK, BLAS and NumPy's vector instructions
depend on the processor. A plan must not depend on it, so all numbers that decide about a
plan come from these functions, which compute in a fixed order.
"""

import math

import numpy as np

from meshprep_runtime.types.maps import Float64s

from .compiled import helper, kernel

LOG_OF_2 = 0.6931471805599453
# Terms of each series, so many that further ones would not change a double.
LOG_TERMS = 12
EXP_TERMS = 18
ANGLE_TERMS = 28
# An entry off the diagonal counts as 0 up to this share of the trace.
NEGLIGIBLE = 1e-16
# Sweeps of rotations, at most: twice as many as are needed.
MOST_SWEEPS = 20
# A random direction is drawn again if less than this length of it is orthogonal to the
# directions before it.
LEAST_LENGTH = 0.1


def log(x: float) -> float:
    """The natural logarithm of a positive number; kernels may use it as a helper."""
    # x = m 2^e, with m from sqrt(1/2) to sqrt(2), where the series converges fastest.
    mantissa, exponent = math.frexp(x)
    if mantissa < 0.7071067811865476:
        mantissa *= 2.0
        exponent -= 1
    # log(m) = 2 artanh(s), with s = (m - 1) / (m + 1), as a series by Horner's scheme.
    s = (mantissa - 1.0) / (mantissa + 1.0)
    total = 0.0
    square = s * s
    for k in range(LOG_TERMS - 1, -1, -1):
        total = total * square + 1.0 / (2 * k + 1)
    return 2.0 * s * total + exponent * LOG_OF_2


def exp(x: float) -> float:
    """The exponential function, for results that a double holds."""
    # exp(x) = 2^twos exp(remainder), with a remainder of up to log(2) / 2 either way.
    twos = round(x / LOG_OF_2)
    remainder = x - twos * LOG_OF_2
    # Taylor's series by Horner's scheme.
    total = 1.0
    for k in range(EXP_TERMS, 0, -1):
        total = 1.0 + total * remainder / k
    return math.ldexp(total, twos)


def power(base: float, exponent: float) -> float:
    """``base ** exponent`` of a positive base."""
    return exp(exponent * log(base))


def cosine_and_sine(angle: float) -> tuple[float, float]:
    """Cosine and sine of an angle from -pi/2 to pi/2, by Taylor's series."""
    cosine = 1.0
    sine = 1.0
    square = angle * angle
    for k in range(ANGLE_TERMS, 0, -2):
        cosine = 1.0 - square / (k * (k - 1)) * cosine
        sine = 1.0 - square / (k * (k + 1)) * sine
    return cosine, angle * sine


def half_angle(cosine: float, sine: float) -> tuple[float, float]:
    """Cosine and sine of half an angle from -pi to pi; kernels may use it as a helper."""
    # Take the root of the larger one, and the other from sine = 2 sin(half) cos(half).
    if cosine > 0.0:
        half = math.sqrt((1.0 + cosine) / 2.0)
        return half, sine / (2.0 * half)
    half = math.sqrt((1.0 - cosine) / 2.0)
    return abs(sine) / (2.0 * half), half if sine >= 0.0 else -half


def random_frame(seed: int, d: int) -> Float64s:
    """Random orthonormal directions, the rows of a matrix (d, d)."""
    random = np.random.default_rng(seed)
    rows = list[Float64s]()
    while len(rows) < d:
        # Sums of a dozen numbers are nearly normal, so that no direction is preferred.
        row = random.random((12, d)).sum(axis=0) - 6.0
        # Take off what lies along the directions before (Gram and Schmidt).
        for other in rows:
            row = row - (row * other).sum() * other
        length = math.sqrt((row * row).sum())
        if length > LEAST_LENGTH:
            rows.append(row / length)
    return np.stack(rows)


@kernel
def principal_axes(matrix: Float64s) -> Float64s:
    """Eigenvectors of a symmetric matrix as columns, of the largest eigenvalue first.

    By Jacobi's rotations, in the order of rows and columns. Of equal eigenvalues the one
    that ends up in the lower row comes first, and the sum of a vector's numbers is not
    negative. O(n^3).
    """
    # Begin with the axes of the coordinates.
    n = matrix.shape[0]
    a = matrix.copy()
    limit = 0.0
    axes = np.zeros((n, n))
    for k in range(n):
        axes[k, k] = 1.0
        limit += NEGLIGIBLE * abs(a[k, k])
    # Rotate every pair of axes, until no entry off the diagonal counts.
    for _ in range(MOST_SWEEPS):
        turns = 0
        for p in range(n):
            for q in range(p + 1, n):
                if abs(a[p, q]) > limit:
                    turns += 1
                    _rotate(a, axes, p, q)
        if turns == 0:
            break
    return _sorted_axes(a, axes)


@helper
def _rotate(a: Float64s, axes: Float64s, p: int, q: int) -> None:
    """Rotate the axes p and q so that the entry (p, q) of the matrix becomes 0."""
    # The smaller angle that does it: t^2 + 2 ratio t = 1, with t its tangent.
    n = a.shape[0]
    ratio = (a[q, q] - a[p, p]) / (2.0 * a[p, q])
    tangent = 1.0 / (abs(ratio) + math.sqrt(ratio * ratio + 1.0))
    cosine = 1.0 / math.sqrt(tangent * tangent + 1.0)
    sine = (tangent if ratio >= 0.0 else -tangent) * cosine
    # Rotate the rows of the matrix, then its columns and those of the axes.
    for k in range(n):
        first = a[p, k]
        second = a[q, k]
        a[p, k] = cosine * first - sine * second
        a[q, k] = sine * first + cosine * second
    for rows in (a, axes):
        for k in range(n):
            first = rows[k, p]
            second = rows[k, q]
            rows[k, p] = cosine * first - sine * second
            rows[k, q] = sine * first + cosine * second
    a[p, q] = 0.0
    a[q, p] = 0.0


@helper
def _sorted_axes(a: Float64s, axes: Float64s) -> Float64s:
    """The axes by falling eigenvalue, which are on the diagonal of ``a``."""
    n = a.shape[0]
    out = np.empty((n, n))
    done = np.zeros(n, np.bool_)
    for column in range(n):
        best = -1
        for k in range(n):
            if not done[k] and (best < 0 or a[k, k] > a[best, best]):
                best = k
        done[best] = True
        # An eigenvector may point either way: turn it so that its sum is not negative.
        total = 0.0
        for k in range(n):
            total += axes[k, best]
        for k in range(n):
            if total < 0.0:
                out[k, column] = -axes[k, best]
            else:
                out[k, column] = axes[k, best]
    return out


def inverses(matrices: Float64s) -> Float64s:
    """Inverses of symmetric positive definite matrices, (k, d, d), by Cholesky factors."""
    d = matrices.shape[1]
    lower = np.zeros(matrices.shape)
    back = np.zeros(matrices.shape)
    out = np.zeros(matrices.shape)
    # The factors.
    for a in range(d):
        for b in range(a + 1):
            total = matrices[:, a, b].copy()
            for c in range(b):
                total -= lower[:, a, c] * lower[:, b, c]
            if a == b:
                lower[:, a, b] = np.sqrt(total)
            else:
                lower[:, a, b] = total / lower[:, b, b]
    # Their inverses.
    for b in range(d):
        back[:, b, b] = 1.0 / lower[:, b, b]
        for a in range(b + 1, d):
            for c in range(b, a):
                back[:, a, b] -= lower[:, a, c] * back[:, c, b]
            back[:, a, b] /= lower[:, a, a]
    # The products of these with their transposes.
    for a in range(d):
        for b in range(d):
            for c in range(max(a, b), d):
                out[:, a, b] += back[:, c, a] * back[:, c, b]
    return out
