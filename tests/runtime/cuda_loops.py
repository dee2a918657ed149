"""A loop with every kind of argument, its body in CUDA C, and what NumPy makes of it."""

import numpy as np

from meshprep_cuda_check.checked import run_checked
from meshprep_runtime import Access, Arg, Loop, ParLoop
from meshprep_runtime.cuda import COMMITS, STRATEGIES, DeviceFunction, refusal

SUMS = Loop(
    "sums",
    "elements",
    (
        Arg("w", Access.READ, 1, "i4"),
        Arg("d", Access.RW, 2, "i8"),
        Arg("x", Access.READ, 2, "f4", "elements->points", (2, 0)),
        Arg("c", Access.READ, 1, "i4", is_global=True),
        # Column 2 is read only, so that not every staged point is written.
        Arg("a", Access.INC, 3, "f8", "elements->points", (0, 1)),
        Arg("b", Access.INC, 1, "i4", "elements->parents", (0,)),
        Arg("total", Access.INC, 2, "i8", is_global=True),
        Arg("least", Access.MIN, 1, "f4", is_global=True),
        Arg("most", Access.MAX, 1, "i2", is_global=True),
    ),
)
LAYOUT = {"d": "soa", "x": "soa", "a": "soa"}
# Strategies with the commits that differ there.
WAYS = [
    (name, commit)
    for name, strategy in STRATEGIES.items()
    for commit in (COMMITS if strategy.blocks else COMMITS[:1])
    if refusal(SUMS, name, commit) is None
]
# One of each kind, for checks whose other ways CI alone tries.
OFTEN = [
    ("hierarchical", "colours"),
    ("staged-gather", "atomics"),
    ("global-atomics", "colours"),
    ("two-step", "colours"),
]


def body(w, d, x2, x0, c, a0, a1, b, total, least, most):
    d[0] += w[0]
    d[1] = 2 * d[0]
    for k in range(3):
        a0[k] += (k + 1) * x2[0] * c[0]
        a1[k] -= x0[1] + w[0]
    b[0] += w[0] * c[0]
    total[0] += w[0]
    total[-1] -= 2
    least[0] = min(least[0], x2[1] - w[0])
    most[0] = max(most[0], w[0])


BODY = DeviceFunction(
    "body",
    """\
__device__ void body(const int* w, long long* d, const float* x2, const float* x0, const int* c,
                     double* a0, double* a1, int* b, long long* total, float* least,
                     short* most) {
  d[0] += w[0];
  d[1] = 2 * d[0];
  for (int k = 0; k < 3; ++k) {
    a0[k] += (k + 1) * x2[0] * c[0];
    a1[k] -= x0[1] + w[0];
  }
  b[0] += w[0] * c[0];
  total[0] += w[0];
  total[1] -= 2;
  least[0] = min(least[0], x2[1] - w[0]);
  most[0] = w[0] > most[0] ? w[0] : most[0];
}
""",
)


def random_plan(slow, n, n_points, block_size, seed, **options):
    """A loop over elements with three points and a parent each, by chance."""
    rng = np.random.default_rng(seed)
    sizes = {"elements": n, "points": n_points, "parents": n_points}
    # Near points, so that some blocks have points of their own.
    near = np.linspace(0, n_points - 1, n).astype(int)[:, None] + rng.integers(
        -3, 4, (n, 3)
    )
    near = np.clip(near, 0, n_points - 1)
    tables = {"elements->points": near, "elements->parents": near[:, :1] // 2}
    return slow.plan(sizes, tables, [SUMS], (block_size,), seed, **options)["sums"]


def arrays(plan, seed=0):
    """Whole numbers, so that no order of adding can differ."""
    rng = np.random.default_rng(seed)
    n, n_points = plan.sizes["elements"], plan.sizes["points"]
    shapes = {"w": (n, 1), "d": (n, 2), "x": (n_points, 2), "c": (1,), "a": (n_points, 3)}
    shapes |= {"b": (plan.sizes["parents"], 1), "total": (2,), "least": (1,), "most": (1,)}
    dtypes = {arg.name: arg.dtype for arg in SUMS.args}
    return {k: rng.integers(1, 50, shape).astype(dtypes[k]) for k, shape in shapes.items()}


def expected(plan, given):
    """The loop by np.add.at."""
    points = plan.maps["elements->points"].table
    out = {k: v.copy() for k, v in given.items()}
    w, c = given["w"][:, 0], given["c"][0]
    out["d"][:, 0] += w
    out["d"][:, 1] = 2 * out["d"][:, 0]
    for k in range(3):
        np.add.at(out["a"][:, k], points[:, 0], (k + 1) * given["x"][points[:, 2], 0] * c)
        np.add.at(out["a"][:, k], points[:, 1], -(given["x"][points[:, 0], 1] + w))
    np.add.at(out["b"][:, 0], plan.maps["elements->parents"].table[:, 0], w * c)
    out["total"] += [w.sum(), -2 * w.size]
    out["least"] = np.minimum(out["least"], (given["x"][points[:, 2], 1] - w).min())
    out["most"] = np.maximum(out["most"], w.max()).astype("i2")
    return out


def laid_out(given, layout):
    """The arrays as a program with that layout takes them."""
    return {
        k: (v.T if layout.get(k) == "soa" else v).copy(order="C") for k, v in given.items()
    }


def uploaded(device, given, leave=()):
    return {k: v if k in leave else device.array(v) for k, v in given.items()}


def fetched(given):
    return {k: v if isinstance(v, np.ndarray) else v.get() for k, v in given.items()}


def check(found, theirs):
    for name, value in fetched(found).items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)


def run_and_check(made, plan, layout=LAYOUT, seed=0):
    """Run a program on the CPU; what it makes must be what NumPy makes, to the last bit."""
    given = arrays(plan, seed)
    ours = laid_out(given, layout)
    run_checked(made, **ours)
    check(ours, laid_out(expected(plan, given), layout))


def loop_of(plan, **options):
    return ParLoop(BODY, plan, **{"strategy": "hierarchical", "layout": LAYOUT, **options})
