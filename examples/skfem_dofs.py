"""Poisson's equation with scikit-fem's dofs as a set of a plan: python examples/skfem_dofs.py"""

import numpy as np
import skfem
from skfem.models.poisson import unit_load

import meshprep
from meshprep_runtime.matrix import Assembly

m = skfem.MeshTri().refined(5)
basis = skfem.Basis(m, skfem.ElementTriP2())
reached = {"cells->dofs": basis.element_dofs.T}
mesh = meshprep.from_skfem(m).with_(sets={"dofs": basis.N}, maps=reached)
args = [
    {"dat": "x", "map": "cells->nodes", "dim": 2},
    {"mat": "K", "rows": "cells->dofs", "columns": "cells->dofs", "access": "inc"},
]
plan = meshprep.prepare(mesh, {"stiffness": {"over": "cells", "args": args}}).plan

points, weights = skfem.quadrature.get_quadrature(basis.elem, 2)
slopes = np.array([basis.elem.lbasis(points, i)[1] for i in range(6)])


def stiffness(a, b, c, K):
    bx, by, cx, cy = b[0] - a[0], b[1] - a[1], c[0] - a[0], c[1] - a[1]
    det = bx * cy - by * cx
    gx, gy = np.empty(6), np.empty(6)
    for q in range(weights.size):
        for i in range(6):
            gx[i] = (cy * slopes[i, 0, q] - by * slopes[i, 1, q]) / det
            gy[i] = (bx * slopes[i, 1, q] - cx * slopes[i, 0, q]) / det
        for i in range(6):
            for j in range(6):
                K[6 * i + j] += weights[q] * abs(det) * (gx[i] * gx[j] + gy[i] * gy[j])


order = plan.ordering["dofs"]
K = Assembly(stiffness, plan["stiffness"])(x=plan.ordering["nodes"].apply(m.p.T)).to_scipy()
load = order.apply(unit_load.assemble(basis))
fixed = order.old_to_new[basis.get_dofs().flatten()]
u = order.restore(skfem.solve(*skfem.condense(K, load, D=fixed)))
