"""Loops on whole numbers, of every access, whose results do not depend on the order."""

from meshprep_runtime import Access, Arg, Loop

READ, WRITE, RW, INC = Access.READ, Access.WRITE, Access.RW, Access.INC
EC, EN, BC, CN, CC = (
    "edges->cells",
    "edges->nodes",
    "bedges->cells",
    "cells->nodes",
    "cells->cells",
)
DIMS = {
    "q": 2,
    "res": 2,
    "qold": 2,
    "x": 1,
    "a": 1,
    "w": 1,
    "most": 1,
    "flag": 1,
    "near": 1,
}
SETS = {"x": "nodes", "w": "edges"}
# Component after component.
SOA = {"q"}


def dat(name, access, over=None, *index):
    return Arg(name, access, DIMS[name], "i8", over, index)


def reduced(name, access, dim=1):
    return Arg(name, access, dim, "i8", is_global=True)


def flux(x1, x2, q1, q2, a1, a2, res1, res2, total, least, largest):
    f = (q1[0] * 3 - q2[1] + a1[0] * a2[0] + x1[0] + x2[0]) % 101
    res1[0] += f
    res1[1] -= 2 * f
    res2[0] -= f
    total[0] += f
    least[0] = min(least[0], f)
    largest[0] = max(largest[0], f)


def mark(flag, most, q):
    flag[0] = 5
    most[0] = max(most[0], q[0])


def update(qold, q, res, a, total):
    for k in range(2):
        q[k] = (qold[k] + res[k] + a[0]) % 1009
        res[k] = 0
        total[k] += q[k]


def areas(x1, x2, x3, q, a, near1, near2):
    a[0] = (x1[0] + x2[0] + x3[0]) % 7 + q[0] % 5
    near1[0] += q[1]
    near2[0] += 2 * q[1] + 1


def spread(w, a1, res1, res2):
    w[0] = (w[0] * 3 + a1[0]) % 97
    res1[1] += w[0]
    res2[1] -= w[0]


LOOPS = {
    flux: Loop(
        "flux",
        "edges",
        (
            dat("x", READ, EN, 0, 1),
            dat("q", READ, EC, 0, 1),
            dat("a", READ, EC, 0, 1),
            dat("res", INC, EC, 0, 1),
            reduced("total", INC),
            reduced("least", Access.MIN),
            reduced("largest", Access.MAX),
        ),
    ),
    mark: Loop(
        "mark",
        "bedges",
        (dat("flag", WRITE, BC, 0), dat("most", RW, BC, 0), dat("q", READ, BC, 0)),
    ),
    update: Loop(
        "update",
        "cells",
        (
            dat("qold", READ),
            dat("q", WRITE),
            dat("res", RW),
            dat("a", READ),
            reduced("total", INC, 2),
        ),
    ),
    areas: Loop(
        "areas",
        "cells",
        (
            dat("x", READ, CN, 0, 1, 2),
            dat("q", READ),
            dat("a", WRITE),
            dat("near", INC, CC, 0, 1),
        ),
    ),
    spread: Loop(
        "spread", "edges", (dat("w", RW), dat("a", READ, EC, 0), dat("res", INC, EC, 0, 1))
    ),
}
# Those that may send increments back instead.
REVERSIBLE = ("flux", "spread", "areas")
