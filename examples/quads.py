"""The Laplacian on quads of degree 1 to 4 in CUDA C, in three forms [R14 Algorithms 2-4].

Each form computes the same matrix of an element; they differ in what a thread keeps meanwhile:

=============  ================================================  ==============================
form           order of the loops                                what is kept
=============  ================================================  ==============================
``global``     quadrature points, then pairs of basis functions  the matrix, updated at each point
``local``      pairs, then points                                the geometry at all points
``redundant``  pairs, then points                                nothing: geometry is computed again
=============  ================================================  ==============================

    K = {mat = "K", rows = "cells->dofs2", columns = "cells->dofs2", access = "inc"}

takes ``laplacian(2, "local")``, after the nodes' coordinates through ``cells->nodes``.
"""

import numpy as np
from numpy.typing import NDArray

from meshprep.mesh.cells import SHAPES
from meshprep.topology.dofs import local_points
from meshprep_runtime.cuda import DeviceFunction

FORMS = ("global", "local", "redundant")

GEOMETRY = """\
/* The map of the element at (s, t), and the weight: of grad u . grad v in reference coordinates. */
static __device__ __forceinline__ void at_point(const double* a, const double* b, const double* c,
                                                const double* d, int q, double* g) {
  const double s = S[q], t = T[q];
  const double xs = (1 - t) * (b[0] - a[0]) + t * (c[0] - d[0]);
  const double ys = (1 - t) * (b[1] - a[1]) + t * (c[1] - d[1]);
  const double xt = (1 - s) * (d[0] - a[0]) + s * (c[0] - b[0]);
  const double yt = (1 - s) * (d[1] - a[1]) + s * (c[1] - b[1]);
  const double det = xs * yt - xt * ys, f = W[q] / (det < 0 ? -det : det);
  g[0] = f * (xt * xt + yt * yt);
  g[1] = -f * (xs * xt + ys * yt);
  g[2] = f * (xs * xs + ys * ys);
}

static __device__ __forceinline__ double product(const double* g, int q, int i, int j) {
  const double u = DS[q * N + i], v = DT[q * N + i], x = DS[q * N + j], y = DT[q * N + j];
  return g[0] * u * x + g[1] * (u * y + v * x) + g[2] * v * y;
}
"""

BODIES = {
    "global": """\
  for (int q = 0; q < Q; ++q) {
    double g[3];
    at_point(a, b, c, d, q, g);
    for (int i = 0; i < N; ++i)
      for (int j = i; j < N; ++j) K[i * N + j] += product(g, q, i, j);
  }
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < i; ++j) K[i * N + j] = K[j * N + i];
""",
    "local": """\
  double g[3 * Q];
  for (int q = 0; q < Q; ++q) at_point(a, b, c, d, q, g + 3 * q);
  for (int i = 0; i < N; ++i)
    for (int j = i; j < N; ++j) {
      double sum = 0;
      for (int q = 0; q < Q; ++q) sum += product(g + 3 * q, q, i, j);
      K[i * N + j] = K[j * N + i] = sum;
    }
""",
    "redundant": """\
  for (int i = 0; i < N; ++i)
    for (int j = i; j < N; ++j) {
      double sum = 0;
#pragma unroll 1
      for (int q = 0; q < Q; ++q) {
        double g[3];
        at_point(a, b, c, d, q, g);
        sum += product(g, q, i, j);
      }
      K[i * N + j] = K[j * N + i] = sum;
    }
""",
}


def laplacian(degree: int, form: str) -> DeviceFunction:
    """The matrix of one quad, from its corners.

    Parameters
    ----------
    degree : int
        1 to 4.
    form : str
        One of ``FORMS``.

    Returns
    -------
    DeviceFunction
        ``laplacian(a, b, c, d, K)``: corners of two coordinates, and (degree + 1)^4 values.
    """
    s, t, weight = quadrature(degree)
    slopes = gradients(degree, np.stack([s, t], axis=1))
    tables = {"S": s, "T": t, "W": weight, "DS": slopes[..., 0], "DT": slopes[..., 1]}
    lines = [f"enum {{ N = {(degree + 1) ** 2}, Q = {s.size} }};"]
    for name, values in tables.items():
        listed = ", ".join(f"{v:.17g}" for v in values.ravel())
        lines.append(f"static __device__ const double {name}[] = {{{listed}}};")
    head = "__device__ void laplacian(const double* a, const double* b, const double* c,\n"
    head += "                          const double* d, double* K) {\n"
    return DeviceFunction(
        "laplacian", "\n".join([*lines, GEOMETRY, head + BODIES[form] + "}"])
    )


def quadrature(degree: int) -> tuple[NDArray[np.float64], ...]:
    """Coordinates and weights of (degree + 1)^2 points in the unit square."""
    x, w = np.polynomial.legendre.leggauss(degree + 1)
    s, t = np.meshgrid((x + 1) / 2, (x + 1) / 2)
    return s.ravel(), t.ravel(), np.outer(w, w).ravel() / 4


def gradients(degree: int, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gradients (points, dofs, 2) of the nodal basis, in the order of the dofs."""
    powers = np.indices((degree + 1, degree + 1)).reshape(2, -1).T
    points = local_points(SHAPES["quad"], degree) / degree
    nodal = np.linalg.inv(np.prod(points[:, None] ** powers, axis=2))
    found = []
    for axis in (0, 1):
        less = powers.copy()
        less[:, axis] = np.maximum(less[:, axis] - 1, 0)
        found.append(powers[:, axis] * np.prod(at[:, None] ** less, axis=2) @ nodal)
    return np.stack(found, axis=2)
