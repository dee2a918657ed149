"""Volna: nonlinear shallow water by finite volumes [S19]; ``examples/volna.py`` joins the kernels.

The state of a cell is (h, hu, hv, bottom); the bottom does not move.
"""

from math import sqrt

G = 9.81
# Shallower water stands still.
DRY = 1e-5


def space_discretization(rate1, rate2, flux, source, normal, volume1, volume2):
    """Hand the flux through an edge from cell 1 to cell 2, and the slope of the bottom to both.

    ``flux`` is (h, hu, hv) through the edge, ``source`` the push along the normal on either side.
    """
    rate1[0] -= flux[0] / volume1[0]
    rate1[1] -= (flux[1] + source[0] * normal[0]) / volume1[0]
    rate1[2] -= (flux[2] + source[0] * normal[1]) / volume1[0]
    rate2[0] += flux[0] / volume2[0]
    rate2[1] += (flux[1] + source[1] * normal[0]) / volume2[0]
    rate2[2] += (flux[2] + source[1] * normal[1]) / volume2[0]


def save_state(state, old):
    """Keep the state that both stages start from."""
    for k in range(4):
        old[k] = state[k]


def compute_flux(left, right, normal, length, wall, flux, source, speed):
    """Flux through an edge from its first to its second cell, by HLL [Toro 2001].

    The water stands on the higher of both bottoms [Audusse et al. 2004]. ``source`` is what pushes
    either cell beyond the pressure of its own water, so that a lake at rest feels nothing. A wall
    mirrors its one cell.
    """
    bottom = max(left[3], right[3])
    h1, h2 = max(left[0] + left[3] - bottom, 0.0), max(right[0] + right[3] - bottom, 0.0)
    u1, v1 = velocity(left, normal)
    u2, v2 = velocity(right, normal)
    if wall[0] == 1:
        u2 = -u1
    slow, fast = wave_speeds(u1, sqrt(G * h1), u2, sqrt(G * h2))
    s1, s2 = min(slow, 0.0), max(fast, 0.0)
    share = s1 / (s2 - s1) if s2 > s1 else 0.0
    p1, p2 = 0.5 * G * h1 * h1, 0.5 * G * h2 * h2
    mass = h1 * u1 + share * (h1 * u1 - h2 * u2 + s2 * (h2 - h1))
    jump = h1 * u1 * u1 + p1 - (h2 * u2 * u2 + p2)
    push = h1 * u1 * u1 + share * (jump + s2 * (h2 * u2 - h1 * u1))
    source[0], source[1] = length[0] * push, length[0] * (push + (p1 - p2))
    if wall[0] == 1:
        mass, source[1] = 0.0, 0.0
    along = length[0] * mass * (v1 if mass > 0.0 else v2)
    flux[0] = length[0] * mass
    flux[1], flux[2] = -along * normal[1], along * normal[0]
    speed[0] = max(fast, -slow)


def velocity(state, normal):
    """Velocity of a cell's water through an edge, and along it; none where it is dry."""
    if state[0] < DRY:
        return 0.0, 0.0
    u, v = state[1] / state[0], state[2] / state[0]
    return u * normal[0] + v * normal[1], v * normal[0] - u * normal[1]


def wave_speeds(u1, c1, u2, c2):
    """The fastest waves to either side, between two rarefactions or beside dry land [Toro 2001]."""
    if c1 <= 0.0:
        return u2 - 2.0 * c2, u2 + c2
    if c2 <= 0.0:
        return u1 - c1, u1 + 2.0 * c1
    u, c = 0.5 * (u1 + u2) + c1 - c2, 0.5 * (c1 + c2) + 0.25 * (u1 - u2)
    return min(u1 - c1, u - c), max(u2 + c2, u + c)


def time_step(speed1, speed2, speed3, length1, length2, length3, volume, step):
    """The time in which the waves of its three edges fill a cell: the least of all cells."""
    through = speed1[0] * length1[0] + speed2[0] * length2[0] + speed3[0] * length3[0]
    step[0] = min(step[0], volume[0] / through)


def first_stage(old, rate, state, step):
    """A step of Euler's; the rate starts again from zero."""
    for k in range(4):
        state[k] = old[k] + step[0] * rate[k]
        rate[k] = 0.0


def second_stage(old, rate, state, step):
    """The mean of the old state and a second step of Euler's: Heun's method."""
    for k in range(4):
        state[k] = 0.5 * (old[k] + (state[k] + step[0] * rate[k]))
        rate[k] = 0.0
