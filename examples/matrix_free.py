"""A product without a matrix, of the mesh wing.msh: docs/solvers/products.md"""

import numpy as np

import meshprep
from meshprep_runtime import ParLoop


def multiply(a, b, c, u1, u2, u3, y1, y2, y3):  # linear triangles
    bx, by, cx, cy = b[0] - a[0], b[1] - a[1], c[0] - a[0], c[1] - a[1]
    v, w = u2[0] - u1[0], u3[0] - u1[0]
    gx, gy = v * cy - w * by, w * bx - v * cx  # the gradient, times det
    f = 0.5 / abs(bx * cy - by * cx)
    k2, k3 = f * (gx * cy - gy * cx), f * (gy * bx - gx * by)
    y1[0] -= k2 + k3
    y2[0] += k2
    y3[0] += k3


args = [
    {"dat": "x", "map": "cells->nodes", "dim": 2},
    {"dat": "u", "map": "cells->nodes"},
    {"dat": "y", "map": "cells->nodes", "access": "inc"},
]
done = meshprep.prepare(
    meshprep.read("wing.msh"), {"multiply": {"over": "cells", "args": args}}
)
loop = ParLoop(multiply, done.plan["multiply"])
x = np.ascontiguousarray(done.mesh.coordinates[:, :2])


def product(u):
    y = np.zeros_like(u)
    loop(x=x, u=u, y=y)
    return y
