"""One increment for each number of points, so that every case runs compiled loops of few kinds."""


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
