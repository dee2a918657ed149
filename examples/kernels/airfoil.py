"""Airfoil: inviscid flow over NACA0012 at Mach 0.4, first order in space and time [G12].

State q = (rho, rho u, rho v, rho E) a cell. ``examples/airfoil.py`` puts the kernels together.
"""

from math import sqrt

import numpy as np

GAM = 1.4
GM1 = GAM - 1.0
CFL = 0.9
EPS = 0.05
MACH = 0.4
WALL = 1

U_FREE = MACH * sqrt(GAM)
FREE_STREAM = np.array([1.0, U_FREE, 0.0, 1.0 / GM1 + 0.5 * U_FREE**2])


def pressure(q):
    """Pressure of a state."""
    return GM1 * (q[3] - 0.5 * (1.0 / q[0]) * (q[1] * q[1] + q[2] * q[2]))


def save_soln(q, qold):
    """Keep the state that both stages start from."""
    for k in range(4):
        qold[k] = q[k]


def adt_calc(x1, x2, x3, x4, q, adt):
    """Area over time step: the fastest wave through the sides of a cell, over cfl."""
    u, v = q[1] / q[0], q[2] / q[0]
    c = sqrt(GAM * pressure(q) / q[0])
    total = side_speed(x1, x2, u, v, c) + side_speed(x2, x3, u, v, c)
    total += side_speed(x3, x4, u, v, c) + side_speed(x4, x1, u, v, c)
    adt[0] = total / CFL


def side_speed(a, b, u, v, c):
    """Speed of the fastest wave through one side, times its length."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    return abs(u * dy - v * dx) + c * sqrt(dx * dx + dy * dy)


def res_calc(x1, x2, q1, q2, adt1, adt2, res1, res2):
    """Flux through an edge from cell 1 to cell 2: the mean, and some of the difference."""
    dx, dy = x1[0] - x2[0], x1[1] - x2[1]
    p1, p2 = pressure(q1), pressure(q2)
    # As in OP2's kernel: the same quotient as in the pressure, which is divided out once.
    vol1 = (1.0 / q1[0]) * (q1[1] * dy - q1[2] * dx)
    vol2 = (1.0 / q2[0]) * (q2[1] * dy - q2[2] * dx)
    mu = 0.5 * EPS * (adt1[0] + adt2[0])
    f = 0.5 * (vol1 * q1[0] + vol2 * q2[0]) + mu * (q1[0] - q2[0])
    res1[0] += f
    res2[0] -= f
    f = 0.5 * (vol1 * q1[1] + p1 * dy + vol2 * q2[1] + p2 * dy) + mu * (q1[1] - q2[1])
    res1[1] += f
    res2[1] -= f
    f = 0.5 * (vol1 * q1[2] - p1 * dx + vol2 * q2[2] - p2 * dx) + mu * (q1[2] - q2[2])
    res1[2] += f
    res2[2] -= f
    f = 0.5 * (vol1 * (q1[3] + p1) + vol2 * (q2[3] + p2)) + mu * (q1[3] - q2[3])
    res1[3] += f
    res2[3] -= f


def bres_calc(x1, x2, q1, adt1, res1, bound):
    """Flux out of the domain: pressure alone at a wall, else towards the free stream."""
    dx, dy = x1[0] - x2[0], x1[1] - x2[1]
    p1 = pressure(q1)
    if bound[0] == WALL:
        res1[1] += p1 * dy
        res1[2] -= p1 * dx
    else:
        p2 = pressure(FREE_STREAM)
        vol1 = (q1[1] * dy - q1[2] * dx) / q1[0]
        vol2 = (FREE_STREAM[1] * dy - FREE_STREAM[2] * dx) / FREE_STREAM[0]
        mu = EPS * adt1[0]
        mean = 0.5 * (vol1 * q1[0] + vol2 * FREE_STREAM[0])
        res1[0] += mean + mu * (q1[0] - FREE_STREAM[0])
        mean = 0.5 * (vol1 * q1[1] + p1 * dy + vol2 * FREE_STREAM[1] + p2 * dy)
        res1[1] += mean + mu * (q1[1] - FREE_STREAM[1])
        mean = 0.5 * (vol1 * q1[2] - p1 * dx + vol2 * FREE_STREAM[2] - p2 * dx)
        res1[2] += mean + mu * (q1[2] - FREE_STREAM[2])
        mean = 0.5 * (vol1 * (q1[3] + p1) + vol2 * (FREE_STREAM[3] + p2))
        res1[3] += mean + mu * (q1[3] - FREE_STREAM[3])


def update(qold, q, res, adt, rms):
    """One stage of the time step; the residual starts again from zero."""
    for k in range(4):
        change = res[k] / adt[0]
        q[k] = qold[k] - change
        res[k] = 0.0
        rms[0] += change * change
