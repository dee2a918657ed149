"""Kernels that do what their accesses say, and one that breaks each of them."""

import effort
import numba
import numpy as np
import pytest
from python_loops import INC, READ, RW, WRITE, edge_plan

from meshprep_runtime import Access, Arg, MeshprepError, ParLoop
from meshprep_runtime.cuda import DeviceFunction
from meshprep_runtime.kernel import access
from meshprep_runtime.kernel.access import check_sample
from meshprep_runtime.kernel.bind import bind, rows_by_name

GOOD = """
def kernel(q1, q2, r1, r2, w, v, total, low, high):
    f = q2[0] - q1[1]
    r1[0] += f
    r1[-1] -= 2 * f
    r1[1] += 3 * f
    r2[:] += f
    w[0] = f
    w[1] = v[0]
    v[0] = 3 * v[0] + f
    total[0] += f * f
    low[0] = min(low[0], f)
    if f > high[0]:
        high[0] = f
"""


def kernel_of(text):
    scope = {}
    exec(text, scope)
    return scope["kernel"]


def plan_of(slow, dtype="f8"):
    return edge_plan(
        slow,
        *(Arg("q", READ, 2, dtype, "edges->cells", (0, 1)),),
        *(Arg("r", INC, 2, dtype, "edges->cells", (0, 1)),),
        *(Arg("w", WRITE, 2, dtype), Arg("v", RW, 1, dtype)),
        *(Arg("total", INC, 1, dtype, is_global=True),),
        *(Arg("low", Access.MIN, 1, dtype, is_global=True),),
        *(Arg("high", Access.MAX, 1, dtype, is_global=True),),
    )


def arrays_of(loop, scale=20.0):
    rng = np.random.default_rng(1)
    return {s.name: (scale * (1 + rng.random(s.shape))).astype(s.dtype) for s in loop.slots}


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4"])
def test_a_good_kernel_passes_and_its_arrays_stay(slow, dtype):
    loop = ParLoop(kernel_of(GOOD), plan_of(slow, dtype))
    arrays = arrays_of(loop)
    before = {name: value.copy() for name, value in arrays.items()}
    loop.check_access(**arrays)
    for name, value in before.items():
        assert np.array_equal(arrays[name], value)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
@pytest.mark.parametrize(
    ("line", "instead", "message"),
    [
        ("r1[0] += f", "r1[0] = f", "'r', index 0, component 0: what is added depends"),
        ("r1[0] += f", "r1[0] += f + r1[0]", "'r', index 0, component 0: what is added depends"),
        ("r1[1] += 3 * f", "r1[1] += f if r1[1] < 0 else 0 * f", "'r', index 0, component 1: what"),
        ("r2[:] += f", "r2[:] = f", "'r', index 1, component 0: what is added depends"),
        ("total[0] += f * f", "total[0] = f * f", "'total', component 0: what is added depends"),
        ("w[1] = v[0]", "pass", "'w', component 1: the kernel does not set it"),
        ("w[1] = v[0]", "w[1] = w[1] + 1", "'w', component 1: its result depends on old values"),
        ("w[0] = f", "w[0] = r2[0]", "'w', component 0: its result depends on old values"),
        ("v[0] = 3 * v[0]", "v[0] = total[0]", "'v', component 0: its result depends on old"),
        ("w[0] = f", "q2[1] = w[0] = f", "'q', index 1, component 1: the kernel sets it, but its"),
        ("w[0] = f", "w[0] = f; q1 += f", "'q', index 0, component 0: the kernel changes it"),
        ("w[1] = v[0]", "w[1] = w[2] = f", "'w': the kernel reaches component 2, but its dim is 2"),
        ("f = q2[0]", "f = q2[-3]", "'q', index 1: the kernel reaches component -3, but its dim"),
        ("low[0] = min(low[0], f)", "low[0] = f", "'low', component 0: the kernel sets it what"),
        ("if f > high[0]", "if True", r"'high', component 0: .*'max' needs max\(\)"),
        ("low[0] =", "assert f is None; low[0] =", "the kernel raised AssertionError"),
    ],
)  # fmt: skip
def test_each_access_is_checked(slow, line, instead, message, dtype):
    assert line in GOOD
    loop = ParLoop(kernel_of(GOOD.replace(line, instead)), plan_of(slow, dtype))
    with pytest.raises(MeshprepError, match=f"^loop 'loop', element 0: .*{message}"):
        loop.check_access(**arrays_of(loop))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("exponent", [-30, 0, 30])
def test_rounding_is_no_fault(slow, dtype, exponent):
    """Terms that nearly cancel, of every size, in an order that loses most of their digits."""

    def kernel(w, r1, r2):
        r1[0] += w[0]
        r1[0] += w[1]
        r1[0] -= w[0]
        for k in range(4):
            r2[0] += w[k]

    args = Arg("w", READ, 4, dtype), Arg("r", INC, 1, dtype, "edges->cells", (0, 1))
    loop = ParLoop(kernel, edge_plan(slow, *args))
    rng = np.random.default_rng(2)
    w = rng.standard_normal(loop.slots[0].shape) * 10.0 ** rng.integers(
        -7, 7, loop.slots[0].shape
    )
    r = np.ones(loop.slots[1].shape, dtype)
    loop.check_access(w=(w * 10.0**exponent).astype(dtype), r=r)


def test_layouts_helpers_and_a_fault_of_one_element(slow):
    @numba.njit
    def half(x):
        return 0.5 * x

    def kernel(w, v):
        v[0] = half(w[1])
        if w[0] != 3.0:
            v[1] = w[0]

    plan = edge_plan(slow, Arg("w", READ, 2), Arg("v", WRITE, 2))
    loop = ParLoop(kernel, plan, layout={"w": "soa"})
    w, v = np.zeros((2, plan.sizes["edges"])), np.zeros((plan.sizes["edges"], 2))
    loop.check_access(w=w, v=v)
    w[0, 7] = 3.0
    with pytest.raises(
        MeshprepError, match="element 7: argument 'v', component 1: the kernel does"
    ):
        loop.check_access(w=w, v=v)
    # of two elements the first and the last are looked at
    loop.check_access(2, w=w, v=v)


def test_what_cannot_be_checked(slow):
    plan = edge_plan(slow, Arg("w", READ, 2))
    with pytest.raises(MeshprepError, match=r"its kernel is in CUDA C, for a GPU"):
        ParLoop(DeviceFunction("f", "__device__ void f(double *w) {}"), plan).check_access(
            w=None
        )
    with pytest.raises(MeshprepError, match="argument 'w' has shape"):
        ParLoop(lambda w: None, plan).check_access(w=np.zeros((3, 2)))


ROWS = """
def kernel(x, c, y1, y2, w, least):
    {first}
    w[0] = x[0]
    y1[0] += x[1]
    y2[0] -= x[1]
    least[0] = min(least[0], x[0])
"""


@pytest.mark.parametrize("step", [0.5, -0.5, 1.75])
def test_a_fraction_that_whole_numbers_lose_is_no_fault(slow, step):
    def kernel(x, count1, count2):
        count1[0] += step * x[0]
        count2[0] -= step * x[0]

    count = Arg("count", INC, 1, "i4", "edges->cells", (0, 1))
    loop = ParLoop(kernel, edge_plan(slow, Arg("x", READ, 1), count))
    arrays = {s.name: np.ones(s.shape, s.dtype) for s in loop.slots}
    loop.check_access(**arrays)
    views = bind(loop.loop, loop.slots, arrays)
    check_sample(loop.kernel, loop._plan, lambda: rows_by_name(loop.slots, views))


def rows_of_sample(slow, text):
    """A loop with a kernel without a source, and arrays of which every second ``c`` is 1."""
    loop = ParLoop(
        kernel_of(text),
        edge_plan(
            slow,
            *(Arg("x", READ, 2), Arg("c", READ, 1, "u1")),
            Arg("y", INC, 1, "f8", "edges->cells", (0, 1)),
            *(Arg("w", WRITE, 1), Arg("least", Access.MIN, 1, is_global=True)),
        ),
    )
    arrays = {s.name: np.ones(s.shape, s.dtype) for s in loop.slots}
    arrays["c"][::2] = 0
    return loop, arrays


@pytest.mark.parametrize(
    ("first", "message"),
    effort.first(
        [
            (
                "y1[c[0]] += 1",
                "argument 'y', index 0: the kernel reaches component 1, but its dim",
            ),
            (
                "x[2 * c[0]]",
                "argument 'x': the kernel reaches component 2, but its dim is 2",
            ),
            ("t = np.zeros(2); t[2 * c[0]] = 1", "the kernel raised IndexError"),
            ("y2[0] = x[0]", "argument 'y', index 1, component 0: what is added depends"),
            ("w[0] = 0.5 * w[0]; y1[0] += w[0]", "component 0: what is added depends"),
            (
                "least[0] = x[0]",
                "argument 'least', component 0: the kernel sets it whatever",
            ),
        ],
        count=2,
    ),
)
def test_the_first_call_looks_at_a_sample_and_runs_nothing(
    slow, first, message, monkeypatch
):
    # the time of the look is not up, however slow the machine is
    monkeypatch.setattr(access, "SAMPLE_SECONDS", np.inf)
    text = "import numpy as np\n" + ROWS.format(first=first)
    loop, arrays = rows_of_sample(slow, text)
    before = {name: value.copy() for name, value in arrays.items()}
    for _ in range(2):
        with pytest.raises(MeshprepError, match=f"^loop 'loop', element \\d+: .*{message}"):
            loop(**arrays)
    for name, value in before.items():
        assert np.array_equal(arrays[name], value)


@pytest.mark.parametrize(
    "first",
    [
        # what is not set stays
        "if c[0] == 0: return",
        # whole numbers count further than NumPy's
        "x[c[0] - 1]",
        # what is made of a row is no row
        "t = 2 * x; t[0] = 1",
        # as an exception of a kernel that is run
        "1 / (c[0] - 2); assert c[0] < 2",
        "w[0] = np.random.rand()",
        "print(x[0])",
        "q = x[0] / (x[0] - 1) ",
    ],
)
def test_the_sample_refuses_no_right_kernel(slow, first, capfd):
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    text = "import numpy as np\n" + ROWS.format(first=first)
    loop, arrays = rows_of_sample(slow, text)
    views = bind(loop.loop, loop.slots, arrays)
    check_sample(loop.kernel, loop._plan, lambda: rows_by_name(loop.slots, views))
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    assert capfd.readouterr().out == ""


def test_a_kernel_that_passed_is_not_looked_at_again(slow, monkeypatch, tmp_path):
    monkeypatch.setenv("MESHPREP_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(access, "_passed", set())
    text = "import numpy as np\n" + ROWS.format(first="pass")
    asked = []

    def look(text):
        loop, arrays = rows_of_sample(slow, text)
        rows = rows_by_name(loop.slots, bind(loop.loop, loop.slots, arrays))
        check_sample(loop.kernel, loop._plan, lambda: asked.append(text) or rows)

    look(text)
    look(text)
    # as another process finds it
    monkeypatch.setattr(access, "_passed", set())
    look(text)
    assert asked == [text]
    # other code is another kernel
    other = text.replace("x[1]", "x[0]")
    look(other)
    assert asked == [text, other]
