"""miniAero: second-order compressible flow; Roe's flux through the faces [S19].

``examples/miniaero.py`` joins the kernels to a step of Runge and Kutta. The state of a cell is
(density, velocity in x, y, z, pressure). Each side of a face takes the limited linear
reconstruction of its cell, and Roe's approximate solution of the Riemann problem gives the flux:
the mean of both fluxes less |A| times the jump, wave by wave.
"""

from math import sqrt

GAM = 1.4
# Kinds of outer faces: others let the flow out as it comes.
WALL = 1
# Slopes below it are not limited.
SMALL = 1e-14


def save_flow(state, old):
    """Keep mass, momentum and energy a volume, which all stages start from."""
    kinetic = 0.5 * (state[1] * state[1] + state[2] * state[2] + state[3] * state[3])
    old[0] = state[0]
    old[1] = state[0] * state[1]
    old[2] = state[0] * state[2]
    old[3] = state[0] * state[3]
    old[4] = state[4] / (GAM - 1.0) + state[0] * kinetic


def time_step(state, width, step):
    """The time in which no wave crosses the cell."""
    speed = sqrt(state[1] * state[1] + state[2] * state[2] + state[3] * state[3])
    step[0] = min(step[0], width[0] / (speed + sqrt(GAM * state[4] / state[0])))


def begin_stage(state, gradient, low, high, limiter):
    """Nothing is known of the neighbours yet."""
    for k in range(15):
        gradient[k] = 0.0
    for k in range(5):
        low[k] = state[k]
        high[k] = state[k]
        limiter[k] = 1.0


def add_gradient(state1, state2, area, gradient1, gradient2, low1, low2, high1, high2):
    """The mean of both sides times the area [Gauss]; the least and largest value around a cell."""
    for k in range(5):
        mean = 0.5 * (state1[k] + state2[k])
        for j in range(3):
            gradient1[3 * k + j] += mean * area[j]
            gradient2[3 * k + j] -= mean * area[j]
        low1[k] = min(low1[k], state2[k])
        low2[k] = min(low2[k], state1[k])
        high1[k] = max(high1[k], state2[k])
        high2[k] = max(high2[k], state1[k])


def add_outer_gradient(state, area, gradient):
    """An outer face has the values of its cell."""
    for k in range(5):
        for j in range(3):
            gradient[3 * k + j] += state[k] * area[j]


def finish_gradient(volume, gradient):
    """The sum over the faces of a cell becomes a mean over its volume."""
    for k in range(15):
        gradient[k] /= volume[0]


def limit_slopes(
    state1, state2, gradient1, gradient2, low1, low2, high1, high2, centre1, centre2,
    middle, limiter1, limiter2,
):  # fmt: skip
    """No value at a face may lie outside of those around its cell [Barth, Jespersen 1989]."""
    for k in range(5):
        slope = slope_at(k, gradient1, centre1, middle)
        limiter1[k] = min(
            limiter1[k], share(slope, low1[k] - state1[k], high1[k] - state1[k])
        )
        slope = slope_at(k, gradient2, centre2, middle)
        limiter2[k] = min(
            limiter2[k], share(slope, low2[k] - state2[k], high2[k] - state2[k])
        )


def share(slope, down, up):
    """The largest share of a change that stays between both ends."""
    if slope > SMALL:
        return min(1.0, up / slope)
    if slope < -SMALL:
        return min(1.0, down / slope)
    return 1.0


def compute_face_flux(
    state1, state2, gradient1, gradient2, limiter1, limiter2, centre1, centre2,
    area, middle, residual1, residual2,
):  # fmt: skip
    """Flux through a face whose area vector points from cell 1 to cell 2."""
    size = sqrt(area[0] * area[0] + area[1] * area[1] + area[2] * area[2])
    nx, ny, nz = area[0] / size, area[1] / size, area[2] / size
    left = at_face(state1, gradient1, limiter1, centre1, middle)
    right = at_face(state2, gradient2, limiter2, centre2, middle)
    flux = roe_flux(left, right, nx, ny, nz)
    for k in range(5):
        residual1[k] += size * flux[k]
        residual2[k] -= size * flux[k]


def at_face(state, gradient, limiter, centre, middle):
    """The five values of a cell, carried to the middle of a face."""
    return (
        value_at(0, state, gradient, limiter, centre, middle),
        value_at(1, state, gradient, limiter, centre, middle),
        value_at(2, state, gradient, limiter, centre, middle),
        value_at(3, state, gradient, limiter, centre, middle),
        value_at(4, state, gradient, limiter, centre, middle),
    )


def value_at(k, state, gradient, limiter, centre, middle):
    """Value k there: that of the cell, and the limited slope times the way."""
    return state[k] + limiter[k] * slope_at(k, gradient, centre, middle)


def slope_at(k, gradient, centre, middle):
    """By how much value k would change from the centre of a cell to the middle of a face."""
    slope = gradient[3 * k] * (middle[0] - centre[0])
    slope += gradient[3 * k + 1] * (middle[1] - centre[1])
    slope += gradient[3 * k + 2] * (middle[2] - centre[2])
    return slope


def total_enthalpy(s):
    """Enthalpy a mass, kinetic energy included."""
    kinetic = 0.5 * (s[1] * s[1] + s[2] * s[2] + s[3] * s[3])
    return GAM / (GAM - 1.0) * s[4] / s[0] + kinetic


def roe_flux(left, right, nx, ny, nz):
    """Flux of mass, momentum and energy through a unit area with this normal."""
    vl = left[1] * nx + left[2] * ny + left[3] * nz
    vr = right[1] * nx + right[2] * ny + right[3] * nz
    hl, hr = total_enthalpy(left), total_enthalpy(right)
    # Roe's means: weights are the roots of the densities.
    root = sqrt(right[0] / left[0])
    w = 1.0 / (1.0 + root)
    rho = root * left[0]
    u, v = w * (left[1] + root * right[1]), w * (left[2] + root * right[2])
    z, h = w * (left[3] + root * right[3]), w * (hl + root * hr)
    q2 = u * u + v * v + z * z
    c = sqrt((GAM - 1.0) * (h - 0.5 * q2))
    vn = u * nx + v * ny + z * nz
    # Jumps, and the strengths of the two sound waves and the entropy wave.
    dr, dp, dv = right[0] - left[0], right[4] - left[4], vr - vl
    du, dw, dz = right[1] - left[1], right[2] - left[2], right[3] - left[3]
    slow = abs(vn - c) * (dp - rho * c * dv) / (2.0 * c * c)
    fast = abs(vn + c) * (dp + rho * c * dv) / (2.0 * c * c)
    entropy = abs(vn) * (dr - dp / (c * c))
    shear = abs(vn) * rho
    tangent = u * du + v * dw + z * dz - vn * dv
    return (
        half(left[0] * vl, right[0] * vr, slow + fast + entropy),
        half(left[0] * vl * left[1] + left[4] * nx, right[0] * vr * right[1] + right[4] * nx,
             slow * (u - c * nx) + fast * (u + c * nx) + entropy * u + shear * (du - dv * nx)),
        half(left[0] * vl * left[2] + left[4] * ny, right[0] * vr * right[2] + right[4] * ny,
             slow * (v - c * ny) + fast * (v + c * ny) + entropy * v + shear * (dw - dv * ny)),
        half(left[0] * vl * left[3] + left[4] * nz, right[0] * vr * right[3] + right[4] * nz,
             slow * (z - c * nz) + fast * (z + c * nz) + entropy * z + shear * (dz - dv * nz)),
        half(left[0] * vl * hl, right[0] * vr * hr,
             slow * (h - c * vn) + fast * (h + c * vn) + 0.5 * entropy * q2 + shear * tangent),
    )  # fmt: skip


def half(left, right, waves):
    """Mean flux less half of what the waves carry."""
    return 0.5 * (left + right) - 0.5 * waves


def compute_outer_flux(state, area, kind, residual):
    """Flux out of the mesh: at a wall the pressure alone, else what the cell has."""
    through = state[1] * area[0] + state[2] * area[1] + state[3] * area[2]
    if kind[0] == WALL:
        through = 0.0
    mass = state[0] * through
    residual[0] += mass
    for j in range(3):
        residual[1 + j] += mass * state[1 + j] + state[4] * area[j]
    residual[4] += mass * total_enthalpy(state)


def advance(old, volume, pace, residual, state):
    """A stage: from the beginning of the step on by the fluxes of the stage before.

    ``pace`` is the share of the time step that the stage takes, in seconds.
    """
    change = pace[0] / volume[0]
    rho = old[0] - change * residual[0]
    x = old[1] - change * residual[1]
    y = old[2] - change * residual[2]
    z = old[3] - change * residual[3]
    energy = old[4] - change * residual[4]
    for k in range(5):
        residual[k] = 0.0
    state[0] = rho
    state[1] = x / rho
    state[2] = y / rho
    state[3] = z / rho
    state[4] = (GAM - 1.0) * (energy - 0.5 * (x * x + y * y + z * z) / rho)
