"""LULESH: shock hydrodynamics on hexahedra, nodes that move with the gas [S19].

``examples/lulesh.py`` joins the kernels to a cycle; [S19] measures ``integrate_stress``. Nodes 0
to 3 go round the bottom seen from outside clockwise, 4 to 7 lie above them: xi, eta and zeta lead
from node 0 to the nodes 1, 3 and 4. The stress is diagonal, (xx, yy, zz). A relative volume is a
volume by the one of the beginning, where the density is 1.
"""

from math import sqrt

# Below them a value is noise: of energy, pressure, viscosity, velocity; of a volume beside 1.
SMALL_ENERGY = 1e-7
SMALL_PRESSURE = 1e-7
SMALL_VISCOSITY = 1e-7
SMALL_VELOCITY = 1e-7
SMALL_CHANGE = 1e-10
# Where the equation of state ends.
LEAST_ENERGY = -1e15
LEAST_PRESSURE = 0.0
LEAST_VOLUME = 1e-9
LARGEST_VOLUME = 1e9
# Of the gas: pressure a volume and an energy; the least square of its speed of sound.
GAM_1 = 2.0 / 3.0
LEAST_SQUARE = 1.111111e-37
LEAST_SOUND = 3.333333e-19
# Shares of the forces against the twelve hourglass modes, and of the artificial viscosity.
HOURGLASS = 0.03
LINEAR = 0.5
QUADRATIC = 2.0 / 3.0
# The jumps of neighbours count up to so many times the mean of both; the most of the limiter.
STEEPEST = 2.0
MOST_LIMITED = 1.0
# Of the time step: the viscosity's share in the speed of a shock, the change of a volume.
SHOCK = 2.0
MOST_CHANGE = 0.1
TINY = 1e-36
TWELFTH = 1.0 / 12.0


def clear_force(force):
    """No cell has pushed yet."""
    force[0] = 0.0
    force[1] = 0.0
    force[2] = 0.0


def set_stress(pressure, viscosity, stress):
    """Pressure and artificial viscosity press from all sides."""
    stress[0] = -pressure[0] - viscosity[0]
    stress[1] = -pressure[0] - viscosity[0]
    stress[2] = -pressure[0] - viscosity[0]


def integrate_stress(
    x0, x1, x2, x3, x4, x5, x6, x7, stress, volume, f0, f1, f2, f3, f4, f5, f6, f7
):
    """Every face spreads stress times its area vector evenly over its four nodes."""
    face(x0, x3, x2, x1, stress, f0, f3, f2, f1)
    face(x4, x5, x6, x7, stress, f4, f5, f6, f7)
    face(x0, x1, x5, x4, stress, f0, f1, f5, f4)
    face(x1, x2, x6, x5, stress, f1, f2, f6, f5)
    face(x2, x3, x7, x6, stress, f2, f3, f7, f6)
    face(x3, x0, x4, x7, stress, f3, f0, f4, f7)
    volume[0] = mapped_volume(x0, x1, x2, x3, x4, x5, x6, x7)


def face(a, b, c, d, stress, fa, fb, fc, fd):
    """The area vector is half the cross product of the diagonals; a quarter for each node."""
    px, py, pz = c[0] - a[0], c[1] - a[1], c[2] - a[2]
    qx, qy, qz = d[0] - b[0], d[1] - b[1], d[2] - b[2]
    gx = 0.125 * stress[0] * (py * qz - pz * qy)
    gy = 0.125 * stress[1] * (pz * qx - px * qz)
    gz = 0.125 * stress[2] * (px * qy - py * qx)
    take(fa, gx, gy, gz)
    take(fb, gx, gy, gz)
    take(fc, gx, gy, gz)
    take(fd, gx, gy, gz)


def take(f, gx, gy, gz):
    """The force on a node is against the stress on the faces around it."""
    f[0] -= gx
    f[1] -= gy
    f[2] -= gz


def mapped_volume(x0, x1, x2, x3, x4, x5, x6, x7):
    """Eight times the determinant of the trilinear map at the centre."""
    ax, ay, az = side(x0, x3, x4, x7, x1, x2, x5, x6)
    bx, by, bz = side(x0, x1, x4, x5, x3, x2, x7, x6)
    cx, cy, cz = side(x0, x1, x2, x3, x4, x5, x6, x7)
    return ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)


def side(a, b, c, d, e, f, g, h):
    """From the middle of four nodes to the middle of the four opposite."""
    x = 0.25 * (e[0] + f[0] + g[0] + h[0] - a[0] - b[0] - c[0] - d[0])
    y = 0.25 * (e[1] + f[1] + g[1] + h[1] - a[1] - b[1] - c[1] - d[1])
    z = 0.25 * (e[2] + f[2] + g[2] + h[2] - a[2] - b[2] - c[2] - d[2])
    return x, y, z


def check_volume(volume, relative, least):
    """A cell that is inside out has no volume."""
    least[0] = min(least[0], volume[0], relative[0])


def resist_hourglass(
    x0, x1, x2, x3, x4, x5, x6, x7, u0, u1, u2, u3, u4, u5, u6, u7,
    initial, relative, mass, sound, f0, f1, f2, f3, f4, f5, f6, f7,
):  # fmt: skip
    """Forces against motion that changes neither volume nor shape [Flanagan, Belytschko 1981].

    A mode has the sign s_i at node i. What no linear motion has of it is g_i = s_i - b_i . h, where
    b_i is the slope of the volume by the place x_i of the node, and h the sum of s_i x_i / volume.
    The mode is as strong as w, the sum of g_i u_i, and pushes node i back by g_i w times a factor.
    """
    # The linear motion, by how the volume answers to each node.
    b0 = slope(x1, x3, x4, x2, x7, x5)
    b1 = slope(x2, x0, x5, x3, x4, x6)
    b2 = slope(x3, x1, x6, x0, x5, x7)
    b3 = slope(x0, x2, x7, x1, x6, x4)
    b4 = slope(x7, x5, x0, x6, x1, x3)
    b5 = slope(x4, x6, x1, x7, x2, x0)
    b6 = slope(x5, x7, x2, x4, x3, x1)
    b7 = slope(x6, x4, x3, x5, x0, x2)

    # How much of each mode the shape of the cell has, which linear motion would move along.
    volume = initial[0] * relative[0]
    hx = modes(0, 1.0 / volume, x0, x1, x2, x3, x4, x5, x6, x7)
    hy = modes(1, 1.0 / volume, x0, x1, x2, x3, x4, x5, x6, x7)
    hz = modes(2, 1.0 / volume, x0, x1, x2, x3, x4, x5, x6, x7)

    # Damped as fast as sound crosses the cell.
    factor = HOURGLASS * sound[0] * mass[0] / volume ** (1.0 / 3.0)
    push(0, factor, b0, b1, b2, b3, b4, b5, b6, b7, hx, hy, hz,
         u0, u1, u2, u3, u4, u5, u6, u7, f0, f1, f2, f3, f4, f5, f6, f7)  # fmt: skip
    push(1, factor, b0, b1, b2, b3, b4, b5, b6, b7, hx, hy, hz,
         u0, u1, u2, u3, u4, u5, u6, u7, f0, f1, f2, f3, f4, f5, f6, f7)  # fmt: skip
    push(2, factor, b0, b1, b2, b3, b4, b5, b6, b7, hx, hy, hz,
         u0, u1, u2, u3, u4, u5, u6, u7, f0, f1, f2, f3, f4, f5, f6, f7)  # fmt: skip


def push(
    k, factor, b0, b1, b2, b3, b4, b5, b6, b7, hx, hy, hz,
    u0, u1, u2, u3, u4, u5, u6, u7, f0, f1, f2, f3, f4, f5, f6, f7,
):  # fmt: skip
    """Components k of the forces against the modes; a loop over k would not become SIMD."""
    # The strength of the modes: what linear motion has of them is taken off.
    gx = product(0, k, b0, b1, b2, b3, b4, b5, b6, b7, u0, u1, u2, u3, u4, u5, u6, u7)
    gy = product(1, k, b0, b1, b2, b3, b4, b5, b6, b7, u0, u1, u2, u3, u4, u5, u6, u7)
    gz = product(2, k, b0, b1, b2, b3, b4, b5, b6, b7, u0, u1, u2, u3, u4, u5, u6, u7)
    whole = modes(k, factor, u0, u1, u2, u3, u4, u5, u6, u7)
    w0 = whole[0] - factor * (hx[0] * gx + hy[0] * gy + hz[0] * gz)
    w1 = whole[1] - factor * (hx[1] * gx + hy[1] * gy + hz[1] * gz)
    w2 = whole[2] - factor * (hx[2] * gx + hy[2] * gy + hz[2] * gz)
    w3 = whole[3] - factor * (hx[3] * gx + hy[3] * gy + hz[3] * gz)

    # The sum of s_i w over the modes less b_i . p is that of g_i w.
    p = (
        hx[0] * w0 + hx[1] * w1 + hx[2] * w2 + hx[3] * w3,
        hy[0] * w0 + hy[1] * w1 + hy[2] * w2 + hy[3] * w3,
        hz[0] * w0 + hz[1] * w1 + hz[2] * w2 + hz[3] * w3,
    )
    f0[k] -= w0 + w1 + w2 - w3 - dot(b0, p)
    f1[k] -= w0 - w1 - w2 + w3 - dot(b1, p)
    f2[k] -= w2 - w0 - w1 - w3 - dot(b2, p)
    f3[k] -= w1 - w0 - w2 + w3 - dot(b3, p)
    f4[k] -= w2 - w0 - w1 + w3 - dot(b4, p)
    f5[k] -= w1 - w0 - w2 - w3 - dot(b5, p)
    f6[k] -= w0 + w1 + w2 + w3 - dot(b6, p)
    f7[k] -= w0 - w1 - w2 - w3 - dot(b7, p)


def slope(a, b, c, ab, bc, ca):
    """The derivative of the volume by the place of a node.

    Its edges lead to a, b and c, a right-handed frame where the cell is a box; ab is the node of
    the face between a and b that lies opposite, and so on.
    """
    first = cross(total(b, ab), total(a, ab))
    second = cross(total(c, bc), total(b, bc))
    third = cross(total(a, ca), total(c, ca))
    return (
        TWELFTH * (first[0] + second[0] + third[0]),
        TWELFTH * (first[1] + second[1] + third[1]),
        TWELFTH * (first[2] + second[2] + third[2]),
    )


def modes(k, factor, a0, a1, a2, a3, a4, a5, a6, a7):
    """Components k in the four modes: the signs of eta zeta, xi zeta, xi eta, xi eta zeta."""
    return (
        factor * (a0[k] + a1[k] - a2[k] - a3[k] - a4[k] - a5[k] + a6[k] + a7[k]),
        factor * (a0[k] - a1[k] - a2[k] + a3[k] - a4[k] + a5[k] + a6[k] - a7[k]),
        factor * (a0[k] - a1[k] + a2[k] - a3[k] + a4[k] - a5[k] + a6[k] - a7[k]),
        factor * (a1[k] - a0[k] - a2[k] + a3[k] + a4[k] - a5[k] + a6[k] - a7[k]),
    )


def product(j, k, b0, b1, b2, b3, b4, b5, b6, b7, u0, u1, u2, u3, u4, u5, u6, u7):
    """Components j of the slopes times components k of the velocities."""
    low = b0[j] * u0[k] + b1[j] * u1[k] + b2[j] * u2[k] + b3[j] * u3[k]
    return low + b4[j] * u4[k] + b5[j] * u5[k] + b6[j] * u6[k] + b7[j] * u7[k]


def dot(a, b):
    """Of three components."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def accelerate(force, mass, acceleration):
    """Newton's second law."""
    acceleration[0] = force[0] / mass[0]
    acceleration[1] = force[1] / mass[0]
    acceleration[2] = force[2] / mass[0]


def hold_symmetry(axis, acceleration):
    """A node on a plane of symmetry stays on it."""
    acceleration[axis[0]] = 0.0


def change_velocity(acceleration, step, velocity):
    """What is nearly at rest, rests."""
    for k in range(3):
        velocity[k] += step[0] * acceleration[k]
        if abs(velocity[k]) < SMALL_VELOCITY:
            velocity[k] = 0.0


def move_node(velocity, step, x):
    """The mesh moves with the gas."""
    x[0] += step[0] * velocity[0]
    x[1] += step[0] * velocity[1]
    x[2] += step[0] * velocity[2]


def change_volume(
    x0, x1, x2, x3, x4, x5, x6, x7, u0, u1, u2, u3, u4, u5, u6, u7,
    initial, relative, step, new_relative, change, length, rate, least,
):  # fmt: skip
    """The new volume, and the rate of the mapped volume in the middle of the step."""
    volume = exact_volume(x0, x1, x2, x3, x4, x5, x6, x7)
    new_relative[0] = volume / initial[0]
    change[0] = new_relative[0] - relative[0]
    least[0] = min(least[0], new_relative[0])

    # The shortest way through the cell.
    largest = max(
        squared_area(x0, x1, x2, x3),
        squared_area(x4, x5, x6, x7),
        squared_area(x0, x1, x5, x4),
        squared_area(x1, x2, x6, x5),
        squared_area(x2, x3, x7, x6),
        squared_area(x3, x0, x4, x7),
    )
    length[0] = volume / sqrt(largest)

    # The sides of the cell half a step ago, and how fast they grow.
    da = side(u0, u3, u4, u7, u1, u2, u5, u6)
    db = side(u0, u1, u4, u5, u3, u2, u7, u6)
    dc = side(u0, u1, u2, u3, u4, u5, u6, u7)
    half = -0.5 * step[0]
    a = moved(side(x0, x3, x4, x7, x1, x2, x5, x6), half, da)
    b = moved(side(x0, x1, x4, x5, x3, x2, x7, x6), half, db)
    c = moved(side(x0, x1, x2, x3, x4, x5, x6, x7), half, dc)
    growth = dot(da, cross(b, c)) + dot(db, cross(c, a)) + dot(dc, cross(a, b))
    rate[0] = growth / dot(a, cross(b, c))


def exact_volume(x0, x1, x2, x3, x4, x5, x6, x7):
    """Of a hexahedron with bilinear faces [Grandy 1997]."""
    x70 = difference(x7, x0)
    x61 = difference(x6, x1)
    x63 = difference(x6, x3)
    x50 = difference(x5, x0)
    x64 = difference(x6, x4)
    x20 = difference(x2, x0)
    return TWELFTH * (
        dot(total(x61, x70), cross(x63, x20))
        + dot(x70, cross(total(x63, x50), x64))
        + dot(x61, cross(x50, total(x64, x20)))
    )


def squared_area(a, b, c, d):
    """Of a face, by its diagonals."""
    normal = cross(difference(c, a), difference(d, b))
    return 0.25 * dot(normal, normal)


def difference(a, b):
    """From b to a."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def total(a, b):
    """The sum of two vectors."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def cross(a, b):
    """The vector across two others."""
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


def moved(a, time, velocity):
    """Where a vector is after some time."""
    return (
        a[0] + time * velocity[0],
        a[1] + time * velocity[1],
        a[2] + time * velocity[2],
    )


def velocity_jumps(
    x0, x1, x2, x3, x4, x5, x6, x7, u0, u1, u2, u3, u4, u5, u6, u7,
    initial, new_relative, jump_xi, jump_eta, jump_zeta, width,
):  # fmt: skip
    """How fast the cell grows along each of its directions, and how wide it is there."""
    volume = initial[0] * new_relative[0]
    a = side(x0, x3, x4, x7, x1, x2, x5, x6)
    b = side(x0, x1, x4, x5, x3, x2, x7, x6)
    c = side(x0, x1, x2, x3, x4, x5, x6, x7)
    across = cross(b, c)
    width[0] = volume / sqrt(dot(across, across) + TINY)
    jump_xi[0] = dot(across, side(u0, u3, u4, u7, u1, u2, u5, u6)) / (volume + TINY)
    across = cross(c, a)
    width[1] = volume / sqrt(dot(across, across) + TINY)
    jump_eta[0] = dot(across, side(u0, u1, u4, u5, u3, u2, u7, u6)) / (volume + TINY)
    across = cross(a, b)
    width[2] = volume / sqrt(dot(across, across) + TINY)
    jump_zeta[0] = dot(across, side(u0, u1, u2, u3, u4, u5, u6, u7)) / (volume + TINY)


def limit_viscosity(
    xi, xi_before, xi_behind, eta, eta_before, eta_behind, zeta, zeta_before, zeta_behind,
    free, width, rate, mass, initial, new_relative, linear, quadratic,
):  # fmt: skip
    """Artificial viscosity where the gas is pressed, less where its motion is smooth.

    At a plane of symmetry a cell is its own neighbour. Beyond a free side nothing moves.
    """
    limit_xi = limiter(xi[0], xi_before[0], xi_behind[0], free[0], free[1])
    limit_eta = limiter(eta[0], eta_before[0], eta_behind[0], free[2], free[3])
    limit_zeta = limiter(zeta[0], zeta_before[0], zeta_behind[0], free[4], free[5])
    linear[0] = 0.0
    quadratic[0] = 0.0
    if rate[0] <= 0.0:
        density = mass[0] / (initial[0] * new_relative[0])
        a = min(xi[0] * width[0], 0.0)
        b = min(eta[0] * width[1], 0.0)
        c = min(zeta[0] * width[2], 0.0)
        first = a * (1.0 - limit_xi) + b * (1.0 - limit_eta) + c * (1.0 - limit_zeta)
        second = (
            a * a * (1.0 - limit_xi * limit_xi)
            + b * b * (1.0 - limit_eta * limit_eta)
            + c * c * (1.0 - limit_zeta * limit_zeta)
        )
        linear[0] = -LINEAR * density * first
        quadratic[0] = QUADRATIC * density * second


def limiter(own, before, behind, before_free, behind_free):
    """How smooth a motion is, by the jumps of a cell and its two neighbours: 0 to 1."""
    inverse = 1.0 / (own + TINY)
    first = 0.0 if before_free else before * inverse
    second = 0.0 if behind_free else behind * inverse
    smooth = min(0.5 * (first + second), STEEPEST * first, STEEPEST * second)
    return min(max(smooth, 0.0), MOST_LIMITED)


def evaluate_state(
    new_relative, change, linear, quadratic, energy, pressure, viscosity, sound
):
    """The energy after the work of pressure and viscosity: a guess, and two corrections."""
    v = min(max(new_relative[0], LEAST_VOLUME), LARGEST_VOLUME)
    p_old = pressure[0]
    compression = 1.0 / v - 1.0
    half_compression = 1.0 / (v - 0.5 * change[0]) - 1.0
    if v <= LEAST_VOLUME:
        half_compression = compression
    if v >= LARGEST_VOLUME:
        p_old = 0.0
        compression = 0.0
        half_compression = 0.0

    # Half the way with the old pressure, the other half with that of the middle.
    old = p_old + viscosity[0]
    e = max(energy[0] - 0.5 * change[0] * old, LEAST_ENERGY)
    p = gas_pressure(e, half_compression, v)
    c = sound_speed(e, p, half_compression, 1.0 / (1.0 + half_compression))
    middle = p + pressed(change[0], c, linear[0], quadratic[0])
    e = bounded(e + 0.5 * change[0] * (3.0 * old - 4.0 * middle))

    # The mean of beginning, middle and end.
    p = gas_pressure(e, compression, v)
    c = sound_speed(e, p, compression, v)
    end = p + pressed(change[0], c, linear[0], quadratic[0])
    e = bounded(e - change[0] / 6.0 * (7.0 * old - 8.0 * middle + end))
    p = gas_pressure(e, compression, v)
    c = sound_speed(e, p, compression, v)
    q = pressed(change[0], c, linear[0], quadratic[0])
    energy[0] = e
    pressure[0] = p
    viscosity[0] = 0.0 if abs(q) < SMALL_VISCOSITY else q
    sound[0] = c


def gas_pressure(e, compression, v):
    """Of an ideal gas of this energy a unit of its first volume."""
    p = GAM_1 * (compression + 1.0) * e
    if abs(p) < SMALL_PRESSURE or v >= LARGEST_VOLUME:
        p = 0.0
    return max(p, LEAST_PRESSURE)


def sound_speed(e, p, compression, v):
    """The root of the derivative of the pressure by the density."""
    square = GAM_1 * e + v * v * GAM_1 * (compression + 1.0) * p
    return LEAST_SOUND if square <= LEAST_SQUARE else sqrt(square)


def pressed(change, c, linear, quadratic):
    """The viscosity of a cell that does not grow."""
    return 0.0 if change > 0.0 else c * linear + quadratic


def bounded(e):
    """An energy that is not noise."""
    if abs(e) < SMALL_ENERGY:
        e = 0.0
    return max(e, LEAST_ENERGY)


def update_volume(new_relative, relative):
    """A volume that has hardly changed since the beginning has not."""
    v = new_relative[0]
    relative[0] = 1.0 if abs(v - 1.0) < SMALL_CHANGE else v


def time_constraints(sound, rate, length, viscosity, courant, growth, most_viscosity):
    """No wave crosses a cell, no volume changes much, in a step; still cells have no say."""
    most_viscosity[0] = max(most_viscosity[0], viscosity[0])
    if rate[0] != 0.0:
        shock = 8.0 * SHOCK * length[0] * rate[0] if rate[0] < 0.0 else 0.0
        courant[0] = min(courant[0], length[0] / sqrt(sound[0] * sound[0] + shock * shock))
        growth[0] = min(growth[0], MOST_CHANGE / (abs(rate[0]) + 1e-20))
