"""LULESH: forces at the nodes of a hexahedron from the stress inside it [S19].

Nodes 0 to 3 go round the bottom seen from outside clockwise, 4 to 7 lie above them. The stress
is diagonal, (xx, yy, zz).
"""


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
