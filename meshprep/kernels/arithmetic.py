"""Elementary functions and small matrices that are the same, bit for bit, on every processor.

IEEE 754 fixes the last bit of sums, differences, products, quotients and square roots, and of
nothing else. What libm, LAPACK, BLAS and NumPy's vector instructions give for logarithms, angles
and matrices depends on the processor that they run on. A plan must not, so all that decides about
one is computed by these functions, in a fixed order.
"""

import math

import numpy as np

from meshprep_runtime.types.maps import Float64s

from .compiled import kernel

LOG_OF_2 = 0.6931471805599453
# Terms of the series that leave nothing to add to a double.
LOG_TERMS, EXP_TERMS, ANGLE_TERMS = 12, 18, 28
# A number off the diagonal counts as 0 up to this share of the sum of those on it, which half of
# these sweeps reach.
NEGLIGIBLE, MOST_SWEEPS = 1e-16, 20
# A direction is drawn again where those before it leave less than this of it.
LEAST_LENGTH = 0.1


def log(x: float) -> float:
    """The natural logarithm of a positive number; kernels may compile it as a helper."""
    mantissa, exponent = math.frexp(x)
    if mantissa < 0.7071067811865476:
        mantissa *= 2.0
        exponent -= 1
    # log(m) = 2 artanh((m - 1) / (m + 1))
    s, total = (mantissa - 1.0) / (mantissa + 1.0), 0.0
    square = s * s
    for k in range(LOG_TERMS - 1, -1, -1):
        total = total * square + 1.0 / (2 * k + 1)
    return 2.0 * s * total + exponent * LOG_OF_2


def exp(x: float) -> float:
    """The exponential function, for results that a double holds."""
    twos = round(x / LOG_OF_2)
    rest, total = x - twos * LOG_OF_2, 1.0
    for k in range(EXP_TERMS, 0, -1):
        total = 1.0 + total * rest / k
    return math.ldexp(total, twos)


def power(base: float, exponent: float) -> float:
    """``base ** exponent`` of a positive base."""
    return exp(exponent * log(base))


def cosine_and_sine(angle: float) -> tuple[float, float]:
    """Cosine and sine of an angle from -pi/2 to pi/2."""
    cosine, sine, square = 1.0, 1.0, angle * angle
    for k in range(ANGLE_TERMS, 0, -2):
        cosine = 1.0 - square / (k * (k - 1)) * cosine
        sine = 1.0 - square / (k * (k + 1)) * sine
    return cosine, angle * sine


def half_angle(cosine: float, sine: float) -> tuple[float, float]:
    """Cosine and sine of half an angle from -pi to pi; kernels may compile it as a helper."""
    if cosine > 0.0:
        half = math.sqrt((1.0 + cosine) / 2.0)
        return half, sine / (2.0 * half)
    half = math.sqrt((1.0 - cosine) / 2.0)
    return abs(sine) / (2.0 * half), half if sine >= 0.0 else -half


def random_frame(seed: int, d: int) -> Float64s:
    """``d`` orthonormal directions, (d, d), drawn at random; rows are directions."""
    random, rows = np.random.default_rng(seed), list[Float64s]()
    while len(rows) < d:
        # sums of a dozen numbers are nearly normal, so that no direction is preferred
        row = random.random((12, d)).sum(axis=0) - 6.0
        for other in rows:
            row = row - (row * other).sum() * other
        length = math.sqrt((row * row).sum())
        if length > LEAST_LENGTH:
            rows.append(row / length)
    return np.stack(rows)


@kernel
def principal_axes(matrix: Float64s) -> Float64s:
    """Eigenvectors of a symmetric matrix as columns, of the largest eigenvalue first.

    By Jacobi's rotations, in the order of rows and columns. Of equal eigenvalues the one that ends
    up in the lower row comes first, and a vector's numbers add up to 0 or more. O(n^3).
    """
    n, a, limit = matrix.shape[0], matrix.copy(), 0.0
    axes, out, done = np.zeros((n, n)), np.empty((n, n)), np.zeros(n, np.bool_)
    for k in range(n):
        axes[k, k] = 1.0
        limit += NEGLIGIBLE * abs(a[k, k])
    for _ in range(MOST_SWEEPS):
        turns = 0
        for p in range(n):
            for q in range(p + 1, n):
                if abs(a[p, q]) <= limit:
                    continue
                turns += 1
                ratio = (a[q, q] - a[p, p]) / (2.0 * a[p, q])
                tangent = 1.0 / (abs(ratio) + math.sqrt(ratio * ratio + 1.0))
                cosine = 1.0 / math.sqrt(tangent * tangent + 1.0)
                sine = (tangent if ratio >= 0.0 else -tangent) * cosine
                for k in range(n):
                    first, second = a[p, k], a[q, k]
                    a[p, k], a[q, k] = (
                        cosine * first - sine * second,
                        sine * first + cosine * second,
                    )
                for rows in (a, axes):
                    for k in range(n):
                        first, second = rows[k, p], rows[k, q]
                        rows[k, p] = cosine * first - sine * second
                        rows[k, q] = sine * first + cosine * second
                a[p, q] = a[q, p] = 0.0
        if turns == 0:
            break
    for place in range(n):
        best, total = -1, 0.0
        for k in range(n):
            if not done[k] and (best < 0 or a[k, k] > a[best, best]):
                best = k
        done[best] = True
        for k in range(n):
            total += axes[k, best]
        for k in range(n):
            out[k, place] = -axes[k, best] if total < 0.0 else axes[k, best]
    return out


def inverses(matrices: Float64s) -> Float64s:
    """Inverses of symmetric positive definite matrices, (k, d, d), by Cholesky's factors."""
    d = matrices.shape[1]
    lower, back, out = np.zeros((3, *matrices.shape))
    for a in range(d):
        for b in range(a + 1):
            total = matrices[:, a, b].copy()
            for c in range(b):
                total -= lower[:, a, c] * lower[:, b, c]
            lower[:, a, b] = np.sqrt(total) if a == b else total / lower[:, b, b]
    for b in range(d):
        back[:, b, b] = 1.0 / lower[:, b, b]
        for a in range(b + 1, d):
            for c in range(b, a):
                back[:, a, b] -= lower[:, a, c] * back[:, c, b]
            back[:, a, b] /= lower[:, a, a]
    for a in range(d):
        for b in range(d):
            for c in range(max(a, b), d):
                out[:, a, b] += back[:, c, a] * back[:, c, b]
    return out
