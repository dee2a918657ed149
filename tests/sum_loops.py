"""Loops that add up integers: one increment for each number of points, compiled once for all."""

from meshprep.loops.requests import LoopRequest


def add1(v, a):
    a[0] += v[0]


def add2(v, a, b):
    a[0] += v[0]
    b[0] -= 2 * v[0]


def add3(v, a, b, c):
    a[0] += v[0]
    b[0] -= 2 * v[0]
    c[0] += 3 * v[0]


def add4(v, a, b, c, d):
    a[0] += v[0]
    b[0] -= 2 * v[0]
    c[0] += 3 * v[0]
    d[0] -= 4 * v[0]


KERNELS = {1: add1, 2: add2, 3: add3, 4: add4}
FACTORS = (1, -2, 3, -4)


def sum_request(name, through, **options):
    """A loop that adds ``value`` of the from-set to ``total`` of the to-set."""
    args = [
        {"dat": "value", "dtype": "i8"},
        {"dat": "total", "map": through, "access": "inc", "dtype": "i8"},
    ]
    return LoopRequest(
        name, {"over": through.partition("->")[0], "args": args, **options}, "test"
    )
