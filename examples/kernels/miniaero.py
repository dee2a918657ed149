"""miniAero: second-order compressible flow; Roe's flux through the faces [S19].

The state of a cell is (density, velocity in x, y, z, pressure). Each side of a face takes the
limited linear reconstruction of its cell, and Roe's approximate solution of the Riemann problem
gives the flux: the mean of both fluxes less |A| times the jump, wave by wave.
"""

from math import sqrt

GAM = 1.4


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
    slope = gradient[3 * k] * (middle[0] - centre[0])
    slope += gradient[3 * k + 1] * (middle[1] - centre[1])
    slope += gradient[3 * k + 2] * (middle[2] - centre[2])
    return state[k] + limiter[k] * slope


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
