"""Aero: the full potential equation around an airfoil, by bilinear elements and Newton's method.

The velocity is grad phi, in units of the speed of sound far away; the density follows from it.
``examples/aero.py`` puts the kernels together. Corners of a cell are anticlockwise.
"""

from math import sqrt

MACH = 0.1
GAM = 1.4
GM1 = GAM - 1.0
G = 1.0 / sqrt(3.0)
# Gauss points of the square from -1 to 1; each has the weight 1.
POINTS = ((-G, -G), (G, -G), (G, G), (-G, G))


def res_calc(x1, x2, x3, x4, f1, f2, f3, f4, k, r1, r2, r3, r4):
    """Half of the matrix of a cell, and what it adds to the residual.

    The residual of node i is the integral of rho grad phi . grad N_i, and the matrix its
    derivative: rho grad N_i . grad N_j - rho / d (grad phi . grad N_i) (grad phi . grad N_j).
    """
    for m in range(10):
        k[m] = 0.0
    for point in range(4):
        a, b = POINTS[point]
        # derivatives of N on the square
        s = (0.25 * (b - 1), 0.25 * (1 - b), 0.25 * (1 + b), -0.25 * (1 + b))
        t = (0.25 * (a - 1), -0.25 * (1 + a), 0.25 * (1 + a), 0.25 * (1 - a))
        xs = s[0] * x1[0] + s[1] * x2[0] + s[2] * x3[0] + s[3] * x4[0]
        ys = s[0] * x1[1] + s[1] * x2[1] + s[2] * x3[1] + s[3] * x4[1]
        xt = t[0] * x1[0] + t[1] * x2[0] + t[2] * x3[0] + t[3] * x4[0]
        yt = t[0] * x1[1] + t[1] * x2[1] + t[2] * x3[1] + t[3] * x4[1]
        area = xs * yt - xt * ys
        su = s[0] * f1[0] + s[1] * f2[0] + s[2] * f3[0] + s[3] * f4[0]
        tu = t[0] * f1[0] + t[1] * f2[0] + t[2] * f3[0] + t[3] * f4[0]
        u, v = (yt * su - ys * tu) / area, (xs * tu - xt * su) / area
        d = 1.0 + 0.5 * GM1 * (MACH * MACH - (u * u + v * v))
        rho = d ** (1.0 / GM1)
        # of the residual: what the velocity has of each gradient
        along = (
            (u * (yt * s[0] - ys * t[0]) + v * (xs * t[0] - xt * s[0])) / area,
            (u * (yt * s[1] - ys * t[1]) + v * (xs * t[1] - xt * s[1])) / area,
            (u * (yt * s[2] - ys * t[2]) + v * (xs * t[2] - xt * s[2])) / area,
            (u * (yt * s[3] - ys * t[3]) + v * (xs * t[3] - xt * s[3])) / area,
        )
        r1[0] += area * rho * along[0]
        r2[0] += area * rho * along[1]
        r3[0] += area * rho * along[2]
        r4[0] += area * rho * along[3]
        # grad N_i . grad N_j by the metric of the map
        ss, st, tt = xt * xt + yt * yt, -(xs * xt + ys * yt), xs * xs + ys * ys
        m = 0
        for i in range(4):
            for j in range(i, 4):
                dot = ss * s[i] * s[j] + st * (s[i] * t[j] + t[i] * s[j]) + tt * t[i] * t[j]
                k[m] += rho * dot / area - area * rho / d * along[i] * along[j]
                m += 1


def spmv(k, p1, p2, p3, p4, v1, v2, v3, v4):
    """What one cell adds to the product: every entry above the diagonal counts twice."""
    v1[0] += k[0] * p1[0] + k[1] * p2[0] + k[2] * p3[0] + k[3] * p4[0]
    v2[0] += k[1] * p1[0] + k[4] * p2[0] + k[5] * p3[0] + k[6] * p4[0]
    v3[0] += k[2] * p1[0] + k[5] * p2[0] + k[7] * p3[0] + k[8] * p4[0]
    v4[0] += k[3] * p1[0] + k[6] * p2[0] + k[8] * p3[0] + k[9] * p4[0]


def dirichlet(value):
    """Nothing changes where the potential is given."""
    value[0] = 0.0


def init_cg(res, u, v, p, c1):
    """Begin with u = 0 and the residual as direction."""
    u[0] = 0.0
    v[0] = 0.0
    p[0] = res[0]
    c1[0] += res[0] * res[0]


def dot_pv(p, v, c2):
    """Curvature along the direction."""
    c2[0] += p[0] * v[0]


def update_ur(p, u, res, v, alpha, c3):
    """A step along the direction; the product starts anew."""
    u[0] += alpha[0] * p[0]
    res[0] -= alpha[0] * v[0]
    v[0] = 0.0
    c3[0] += res[0] * res[0]


def update_p(res, p, beta):
    """The next direction."""
    p[0] = res[0] + beta[0] * p[0]


def update(u, phi, res, rms):
    """Newton's step."""
    phi[0] -= u[0]
    res[0] = 0.0
    rms[0] += u[0] * u[0]
