"""Loops of solvers: ParLoop beside the plain loop that the author would compile with numba.

Kernels that stand in no paper: light and heavy ones, sums, least values, conditions, several maps,
rows of 1 to 64 values. Both run in the order of one plan, on the same arrays, and take turns; the
plain loop is made from the text of the kernel, ``row[k]`` becoming ``dat[map[e, i], k]``.
Ratios are the plain loop's time over ParLoop's: above 1 ParLoop is faster. Busy: beside so many
processes that never rest.

Usage: bench_loops.py [SIZES [THREADS [TARGETS [BUSY [SECONDS [KERNELS]]]]]], lists by commas.
"""

import ast
import inspect
import linecache
import math
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from bench_busy import busy_processes
from common import mesh_of, report

from meshprep import Options, prepare
from meshprep.io.generate import generate
from meshprep_runtime import LoopPlan, ParLoop
from meshprep_runtime.kernel.bind import slots

E, N = "edges->cells", "cells->nodes"
# Calls of ParLoop that find out what is the fastest.
CALLS = 60


def read(
    dat: str, over: str | None = None, dim: int = 1, dtype: str = "f8"
) -> dict[str, Any]:
    return _arg(dat, over, dim, dtype, "read")


def inc(
    dat: str, over: str | None = None, dim: int = 1, dtype: str = "f8"
) -> dict[str, Any]:
    return _arg(dat, over, dim, dtype, "inc")


def _arg(dat: str, over: str | None, dim: int, dtype: str, access: str) -> dict[str, Any]:
    given = {"dat": dat, "dim": dim, "dtype": dtype, "access": access}
    return {**given, "map": over} if over else given


def total(dat: str, access: str) -> dict[str, Any]:
    return {"global": dat, "dim": 1, "dtype": "f8", "access": access}


def upwind(ul, ur, rl, rr, g):
    vn = g[0] + 0.2 * g[1]
    f = 0.5 * (vn * (ul[0] + ur[0]) - abs(vn) * (ur[0] - ul[0])) - 1e-3 * g[2] * (
        ur[0] - ul[0]
    )
    rl[0] -= f
    rr[0] += f


def degree(a, b):
    a[0] += 1
    b[0] += 1


def smooth(xa, xb, ya, yb):
    for i in range(2):
        d = 0.5 * (xb[i] - xa[i])
        ya[i] += d
        yb[i] -= d


def euler(ql, qr, rl, rr, n):
    pl = 0.4 * (ql[3] - 0.5 * (ql[1] * ql[1] + ql[2] * ql[2]) / ql[0])
    pr = 0.4 * (qr[3] - 0.5 * (qr[1] * qr[1] + qr[2] * qr[2]) / qr[0])
    vl = (ql[1] * n[0] + ql[2] * n[1]) / ql[0]
    vr = (qr[1] * n[0] + qr[2] * n[1]) / qr[0]
    c = 0.5 * (abs(vl) + abs(vr)) + math.sqrt(0.7 * (pl / ql[0] + pr / qr[0]))
    f = 0.5 * (vl * ql[0] + vr * qr[0]) - 0.5 * c * (qr[0] - ql[0])
    rl[0] -= f
    rr[0] += f
    f = 0.5 * (vl * ql[1] + pl * n[0] + vr * qr[1] + pr * n[0]) - 0.5 * c * (qr[1] - ql[1])
    rl[1] -= f
    rr[1] += f
    f = 0.5 * (vl * ql[2] + pl * n[1] + vr * qr[2] + pr * n[1]) - 0.5 * c * (qr[2] - ql[2])
    rl[2] -= f
    rr[2] += f
    f = 0.5 * (vl * (ql[3] + pl) + vr * (qr[3] + pr)) - 0.5 * c * (qr[3] - ql[3])
    rl[3] -= f
    rr[3] += f


def species(left, right, w):
    for i in range(16):
        left[i] += w[i]
        right[i] -= w[i]


def average(x0, x1, x2, y):
    y[0] = (x0[0] + x1[0] + x2[0]) / 3


def lumped(m0, m1, m2, a):
    m0[0] += a[0]
    m1[0] += a[0]
    m2[0] += a[0]


def axpy(x, y):
    y[0] += 0.5 * x[0]


def gradient(ua, ub, n, ga, gb):
    for i in range(3):
        f = 0.5 * (ua[0] + ub[0]) * n[i]
        ga[i] += f
        gb[i] -= f


def cfl(u, h, dt):
    dt[0] = min(dt[0], h[0] / (abs(u[0]) + 1.0))


def dot(x, y, s):
    s[0] += x[0] * y[0]


def limited(u, least, most, w):
    if u[0] < least[0]:
        w[0] = least[0]
    elif u[0] > most[0]:
        w[0] = most[0]
    else:
        w[0] = u[0]


def arrhenius(t, y, w):
    w[0] = y[0] * math.exp(-1.5 / t[0])


def branch(ua, ub, v, ra, rb):
    if v[0] > 1.5:
        ra[0] -= v[0] * ua[0]
        rb[0] += v[0] * ua[0]
    else:
        ra[0] -= v[0] * ub[0]
        rb[0] += v[0] * ub[0]


def two_maps(xa, xb, ua, ub, ra, rb):
    d = (xb[0] - xa[0]) * (ub[0] - ua[0]) + (xb[1] - xa[1])
    ra[0] += d
    rb[0] -= d


def mixed(ua, ub, k, ra, rb):
    d = k[0] * (ub[0] - ua[0])
    ra[0] += d
    rb[0] -= d


def tets(x0, x1, x2, x3, y0, y1, y2, y3):
    for i in range(4):
        m = 0.25 * (x0[i] + x1[i] + x2[i] + x3[i])
        y0[i] += m - x0[i]
        y1[i] += m - x1[i]
        y2[i] += m - x2[i]
        y3[i] += m - x3[i]


def centroid(x0, x1, x2, x3, x4, x5, x6, x7, c):
    for i in range(3):
        c[i] = 0.125 * (x0[i] + x1[i] + x2[i] + x3[i] + x4[i] + x5[i] + x6[i] + x7[i])


def spread_mass(m0, m1, m2, m3, m4, m5, m6, m7, a):
    f = 0.125 * a[0]
    m0[0] += f
    m1[0] += f
    m2[0] += f
    m3[0] += f
    m4[0] += f
    m5[0] += f
    m6[0] += f
    m7[0] += f


def rows_of_two(dim: int) -> Callable[..., None]:
    text = f"""
def diffuse{dim}(xa, xb, ya, yb):
    for i in range({dim}):
        d = 0.5 * (xb[i] - xa[i])
        ya[i] += d
        yb[i] -= d
"""
    return _made(text, f"diffuse{dim}")


def rows_of_many(arity: int, dim: int) -> Callable[..., None]:
    x, y = ([f"{a}{i}" for i in range(arity)] for a in "xy")
    adds = "\n".join(f"        {b}[i] += m - {a}[i]" for a, b in zip(x, y, strict=True))
    name = f"mix{arity}_{dim}"
    text = f"""
def {name}({", ".join([*x, *y])}):
    for i in range({dim}):
        m = {1 / arity} * ({" + ".join(f"{a}[i]" for a in x)})
{adds}
"""
    return _made(text, name)


def _made(text: str, name: str) -> Callable[..., None]:
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope: dict[str, Any] = {}
    exec(compile(text, file, "exec"), scope)
    made: Callable[..., None] = scope[name]
    return made


@dataclass(frozen=True)
class Case:
    """A loop; ``mesh`` is the kind of its mesh."""

    kernel: Callable[..., None]
    over: str
    args: Sequence[dict[str, Any]]
    mesh: str = "delaunay2d"
    paper: bool = False  # one of the nine of which the mean is taken


EN = "edges->nodes"
CASES = {
    "upwind f8": Case(
        upwind, "edges", [read("u", E), inc("r", E), read("g", dim=3)], paper=True
    ),
    "upwind f4": Case(
        upwind,
        "edges",
        [read("u", E, 1, "f4"), inc("r", E, 1, "f4"), read("g", None, 3, "f4")],
        paper=True,
    ),
    "degree i4": Case(degree, "edges", [inc("n", E, 1, "i4")], paper=True),
    "smooth d2": Case(smooth, "edges", [read("x", E, 2), inc("y", E, 2)], paper=True),
    "euler d4": Case(
        euler, "edges", [read("q", E, 4), inc("r", E, 4), read("n", dim=2)], paper=True
    ),
    "species d16": Case(species, "edges", [inc("y", E, 16), read("w", dim=16)], paper=True),
    "average": Case(
        average, "cells", [read("x", N), _arg("y", None, 1, "f8", "write")], paper=True
    ),
    "lumped": Case(lumped, "cells", [inc("m", N), read("a")], paper=True),
    "axpy": Case(axpy, "cells", [read("x"), _arg("y", None, 1, "f8", "rw")], paper=True),
    "gradient d3": Case(
        gradient, "edges", [read("u", E), read("n", dim=3), inc("g", E, 3)]
    ),
    "cfl min": Case(cfl, "cells", [read("u"), read("h"), total("dt", "min")]),
    "dot": Case(dot, "cells", [read("x"), read("y"), total("s", "inc")]),
    "limited": Case(
        limited,
        "cells",
        [read("u"), read("least"), read("most"), _arg("w", None, 1, "f8", "write")],
    ),
    "arrhenius": Case(
        arrhenius, "cells", [read("t"), read("y"), _arg("w", None, 1, "f8", "write")]
    ),
    "branch": Case(branch, "edges", [read("u", E), read("v"), inc("r", E)]),
    "two maps": Case(two_maps, "edges", [read("x", EN, 2), read("u", E), inc("r", E)]),
    "f4 and f8": Case(mixed, "edges", [read("u", E, 1, "f4"), read("k"), inc("r", E)]),
    "tets d4": Case(tets, "cells", [read("x", N, 4), inc("y", N, 4)], "delaunay3d"),
    "hex centroid": Case(
        centroid, "cells", [read("x", N, 3), _arg("c", None, 3, "f8", "write")], "box"
    ),
    "hex mass": Case(spread_mass, "cells", [inc("m", N), read("a")], "box"),
    **{
        f"rows {d}{t}": Case(
            rows_of_two(d), "edges", [read("x", E, d, t), inc("y", E, d, t)]
        )
        for d, t in ((8, "f8"), (16, "f8"), (32, "f8"), (64, "f8"), (16, "f4"), (64, "f4"))
    },
    **{
        f"rows {d}f8 x {a}": Case(
            rows_of_many(a, d), "cells", [read("x", N, d), inc("y", N, d)], mesh
        )
        for a, mesh in ((4, "delaunay3d"), (8, "box"))
        for d in (16, 32, 64)
    },
}


def plain_loop(kernel: Callable[..., None], plan: LoopPlan) -> Callable[..., None]:
    """The loop over all elements that the author of a kernel would write, of maps and dats."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kernel))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    names = iter(a.arg for a in tree.args.args)
    rows, points = {}, {}
    maps = list(plan.loop.maps)
    for arg in plan.loop.args:
        for i in arg.kernel_columns:
            if arg.is_global:
                rows[next(names)] = (f"{arg.name}_", None)
            elif arg.map is None:
                rows[next(names)] = (f"{arg.name}_", "e_")
            else:
                point = f"p{maps.index(arg.map)}_{i}_"
                points[point] = f"m{maps.index(arg.map)}_[e_, {i}]"
                rows[next(names)] = (f"{arg.name}_", point)

    class InPlace(ast.NodeTransformer):
        def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
            self.generic_visit(node)
            dat, at = rows[ast.unparse(node.value)]
            k = ast.unparse(node.slice)
            new = f"{dat}[{k}]" if at is None else f"{dat}[{at}, {k}]"
            made = ast.parse(new).body[0]
            assert isinstance(made, ast.Expr)
            assert isinstance(made.value, ast.Subscript)
            made.value.ctx = node.ctx
            return made.value

    body = [ast.unparse(InPlace().visit(statement)) for statement in tree.body]
    lines = [*(f"{p} = {at}" for p, at in points.items()), *"\n".join(body).split("\n")]
    dats = dict.fromkeys(f"{a.name}_" for a in plan.loop.args)
    given = [*(f"m{i}_" for i in range(len(maps))), *dats]
    text = f"def plain({', '.join(given)}):\n    for e_ in range({plan.sizes[plan.loop.over]}):\n"
    text += "".join(f"        {line}\n" for line in lines)
    scope: dict[str, Any] = {**kernel.__globals__, "math": math}
    exec(text, scope)
    loop: Callable[..., None] = numba.njit(scope["plain"])
    return loop


def values_for(plan: LoopPlan) -> dict[str, Any]:
    """Arrays with the fourth value of a row well above the others, as an energy is."""
    rng, made = np.random.default_rng(1), {}
    for slot in slots(plan):
        high = 5 * (np.arange(slot.shape[-1]) == 3) if slot.dim == 4 else 0
        made[slot.name] = (1 + rng.random(slot.shape) + high).astype(slot.dtype)
    return made


def main(
    sizes: str = "20000,200000,2000000",
    threads: str = "1,2",
    targets: str = "gpu",
    busy: str = "0",
    seconds: str = "0.4",
    only: str = "",
) -> None:
    """Print and save the table."""
    rows: list[dict[str, Any]] = []
    cases = {
        n: c for n, c in CASES.items() if not only or any(o in n for o in only.split(","))
    }
    for target in targets.split(","):
        for size in map(int, sizes.split(",")):
            for name, case in cases.items():
                rows += _case(name, case, size, target, threads, busy, float(seconds))
    report("loops", [*rows, *_means(rows)])


def _case(
    name: str, case: Case, size: int, target: str, threads: str, busy: str, seconds: float
) -> list[dict[str, Any]]:
    widest = max(a["dim"] for a in case.args)
    if widest > 8 and size > 200_000:
        return []
    mesh = mesh_of_case(case.mesh, size)
    made = prepare(
        mesh, {"loop": {"over": case.over, "args": case.args}}, Options(target=target)
    )
    plan = made.plan["loop"]
    arrays = values_for(plan)
    plain = plain_loop(case.kernel, plan)
    given = [*(plan.maps[m].table for m in plan.loop.maps), *arrays.values()]
    rows = []
    for many in map(int, threads.split(",")):
        for beside in map(int, busy.split(",")):
            numba.set_num_threads(many)
            loop = ParLoop(case.kernel, plan)
            start = time.perf_counter()
            loop(**arrays)
            first = time.perf_counter() - start
            with busy_processes(beside):
                took = _in_turns(
                    [lambda: plain(*given), lambda loop=loop: loop(**arrays)], seconds
                )
            best, median = (f(took[0]) / f(took[1]) for f in (min, np.median))
            rows.append(
                {
                    **{"kernel": name, "elements": plan.sizes[case.over], "target": target},
                    **{"threads": many, "busy": beside, "plain, us": 1e6 * min(took[0])},
                    **{"best": best, "median": float(median), "form": loop.form},
                    **{"first call, s": first, "nine": case.paper},
                }
            )
            print(rows[-1], flush=True)
    return rows


def mesh_of_case(kind: str, size: int) -> Any:
    if kind != "box":
        return mesh_of(kind, size)
    n = round(size ** (1 / 3))
    return generate(kind, nx=n, ny=n, nz=n, type="hexahedron", shuffle=True)


def _in_turns(works: Sequence[Callable[[], Any]], seconds: float) -> list[list[float]]:
    took: list[list[float]] = [[] for _ in works]
    works[0]()
    for _ in range(CALLS):
        works[1]()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(took[0]) < 9:
        for work, times in zip(works, took, strict=True):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
    return took


def _means(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The least ratio of a size, target and number of threads, and the mean of the nine."""
    means = []
    keys = ("target", "threads", "busy")
    groups = dict.fromkeys((tuple(r[k] for k in keys), _magnitude(r)) for r in rows)
    for key, size in groups:
        group = [
            r for r in rows if (tuple(r[k] for k in keys), _magnitude(r)) == (key, size)
        ]
        nine = [r for r in group if r["nine"]] or group
        for word in ("least", "mean of nine"):
            found = {
                column: min(r[column] for r in group)
                if word == "least"
                else float(np.exp(np.mean([np.log(r[column]) for r in nine])))
                for column in ("best", "median")
            }
            means.append(
                {
                    "kernel": word,
                    "elements": 10**size,
                    **dict(zip(keys, key, strict=True)),
                    **found,
                }
            )
    return means


def _magnitude(row: dict[str, Any]) -> int:
    return round(math.log10(row["elements"]) - 0.2)


if __name__ == "__main__":
    main(*sys.argv[1:])
