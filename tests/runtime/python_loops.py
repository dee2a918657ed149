"""Loops run by plain Python, one element after the other, beside what a ParLoop makes of them."""

import numpy as np

from meshprep_runtime import Access, Loop, ParLoop

READ, WRITE, RW, INC = Access.READ, Access.WRITE, Access.RW, Access.INC


def rows(array, dim):
    return array.reshape(-1, dim)


def reference(kernel, loop_plan, arrays):
    """Call the kernel in plain Python for one element after the other."""
    loop = loop_plan.loop
    for e in range(loop_plan.sizes[loop.over]):
        given_rows = []
        for a in loop.args:
            if a.is_global:
                given_rows.append(arrays[a.name])
            elif a.map is None:
                given_rows.append(rows(arrays[a.name], a.dim)[e])
            else:
                points = loop_plan.maps[a.map].table[e]
                given_rows += [rows(arrays[a.name], a.dim)[points[k]] for k in a.index]
        kernel(*given_rows)


def check(kernel, loop_plan, arrays, strategy, rtol=0.0):
    """Run both ways on copies; returns what ParLoop made of the arrays."""
    ours = {k: v.copy() for k, v in arrays.items()}
    theirs = {k: v.copy() for k, v in arrays.items()}
    ParLoop(kernel, loop_plan, strategy=strategy)(**ours)
    reference(kernel, loop_plan, theirs)
    for name, value in ours.items():
        if rtol:
            np.testing.assert_allclose(value, theirs[name], rtol=rtol, atol=rtol)
        else:
            np.testing.assert_array_equal(value, theirs[name])
    return ours


def edge_plan(slow, *args, n=(5, 4), block_size=6):
    grid = slow.quads(*n)
    return slow.plan(grid.sizes, grid.tables, [Loop("loop", "edges", args)], (block_size,))[
        "loop"
    ]


def res_calc(x1, x2, q1, q2, adt1, adt2, res1, res2):
    dx = x1[0] - x2[0]
    dy = x1[1] - x2[1]
    mu = 0.05 * (adt1[0] + adt2[0])
    for k in range(4):
        f = 0.5 * (q1[k] * dy - q2[k] * dx) + mu * (q1[k] - q2[k])
        res1[k] += f
        res2[k] -= f
