"""ParLoop against the same kernel called in a Python loop, element by element."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import effort
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_loops import INC, READ, RW, WRITE, check, edge_plan, reference, res_calc

from meshprep_runtime import Access, Arg, Loop, MeshprepError, ParLoop, Plan
from meshprep_runtime.cpu import STRATEGIES

BOTH = pytest.mark.parametrize(
    "strategy", effort.first(["hierarchical", "ordered", "sequential"], count=2)
)
# --- A real kernel, and what must hold for every one ---


@BOTH
def test_strategies_agree_to_rounding(airfoil, flow, strategy):
    ours = check(res_calc, airfoil["res_calc"], flow, strategy, rtol=1e-13)
    for name in ("x", "q", "adt"):
        assert np.array_equal(ours[name], flow[name])


def test_a_loaded_plan_runs(airfoil, flow, tmp_path):
    airfoil.save(tmp_path / "a.plan.h5")
    loaded = Plan.load(tmp_path / "a.plan.h5")["res_calc"]
    check(res_calc, loaded, flow, "sequential", rtol=1e-13)


@pytest.mark.parametrize("names", [("q",), ("x", "res")])
def test_layouts_of_some_dats(airfoil, flow, names):
    given = {k: v.T.copy() if k in names else v.copy() for k, v in flow.items()}
    layout = dict.fromkeys(names, "soa")
    ParLoop(res_calc, airfoil["res_calc"], strategy="sequential", layout=layout)(**given)
    expected = {k: v.copy() for k, v in flow.items()}
    reference(res_calc, airfoil["res_calc"], expected)
    res = given["res"].T if "res" in names else given["res"]
    np.testing.assert_allclose(res, expected["res"], rtol=1e-13, atol=1e-13)


def test_rows_changed_in_turn_where_components_come_first(slow):
    """A loop that cannot be vectorised, with strided rows."""

    def turn(v1, v2, w):
        v1[0], v2[1] = v2[1] + w[1], v1[0] - w[0]

    args = (Arg("v", RW, 2, "i8", "edges->cells", (0, 1)), Arg("w", READ, 2, "i8"))
    plan = edge_plan(slow, *args)
    rng = np.random.default_rng(8)
    given = {
        "v": rng.integers(0, 99, (20, 2)),
        "w": rng.integers(0, 99, (plan.sizes["edges"], 2)),
    }
    ours = {name: value.T.copy() for name, value in given.items()}
    ParLoop(turn, plan, strategy="sequential", layout="soa")(**ours)
    reference(turn, plan, given)
    assert np.array_equal(ours["v"].T, given["v"])


def test_threads_do_not_change_the_result(airfoil, flow):
    results = []
    before = numba.get_num_threads()
    for threads in sorted({1, before}):
        numba.set_num_threads(threads)
        res = flow["res"].copy()
        for _ in range(5):
            ParLoop(res_calc, airfoil["res_calc"], strategy="hierarchical")(
                **{**flow, "res": res}
            )
        results.append(res)
    numba.set_num_threads(before)
    assert all(np.array_equal(r, results[0]) for r in results)


def test_variants_give_the_same_sums(airfoil, flow):
    results = []
    for variant in ("s8", "s16"):
        res = np.zeros((24, 4))
        loop = ParLoop(
            res_calc, airfoil["res_calc"], strategy="hierarchical", variant=variant
        )
        loop(**{**flow, "res": res})
        results.append(res)
    np.testing.assert_allclose(results[0], results[1], rtol=1e-13, atol=1e-13)


# --- Integers: exact, whatever the maps ---


def add(a1, a2, b1, b2):
    b1[0] += 3 * a1[0] + a2[1]
    b2[0] -= a2[0] * a1[1]
    b2[1] += 1


@st.composite
def random_case(draw):
    n, m = draw(st.integers(0, 20)), draw(st.integers(1, 8))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    table = rng.integers(0, m, (n, draw(st.integers(2, 3))))
    return {"cells": n, "p": m}, table, draw(st.integers(1, 8)), rng


ADD = Loop(
    "add",
    "cells",
    (
        Arg("a", READ, 2, "i8", "cells->p", (0, 1)),
        Arg("b", INC, 2, "i8", "cells->p", (1, 0)),
    ),
)


@BOTH
@settings(deadline=None, max_examples=effort.examples(60))
@given(random_case(), st.booleans())
def test_integer_increments_are_exact(slow, strategy, case, lists):
    sizes, table, block_size, rng = case
    plan = slow.plan(sizes, {"cells->p": table}, [ADD], (block_size,), lists=lists)["add"]
    a, b = rng.integers(-99, 99, (2, sizes["p"], 2))
    ours = check(add, plan, {"a": a, "b": b}, strategy)
    expected = b.copy()
    i, j = table[:, 0], table[:, 1]
    np.add.at(expected[:, 0], j, 3 * a[i, 0] + a[j, 1])
    np.add.at(expected[:, 0], i, -a[j, 0] * a[i, 1])
    np.add.at(expected[:, 1], i, 1)
    assert np.array_equal(ours["b"], expected)


def every_access(d, w, rw, p1, p2, s, inc_d, n1, n2, c, total, low, high):
    w[0] = 2 * d[0]
    w[1] = d[0] - 1
    rw[0] = rw[0] * 3 + c[0]
    p1[0] = 1
    p2[0] = 1
    s[0] = max(s[0], d[0])
    inc_d[0] += c[1]
    n1[0] += d[0]
    n2[2] += 7
    total[0] += d[0]
    total[1] += 1
    low[0] = min(low[0], d[0])
    high[0] = max(high[0], d[0])


EVERY = Loop(
    "every",
    "cells",
    (
        Arg("d", READ, 1, "i4"),
        Arg("w", WRITE, 2, "i8"),
        Arg("rw", RW, 1, "i4"),
        Arg("touched", WRITE, 1, "i4", "cells->p", (0, 2)),
        Arg("largest", RW, 1, "i4", "cells->q", (1,)),
        Arg("inc_d", INC, 1, "i8"),
        Arg("n", INC, 3, "i8", "cells->q", (1, 0)),
        Arg("c", READ, 2, "i4", is_global=True),
        Arg("total", INC, 2, "i8", is_global=True),
        Arg("low", Access.MIN, 1, "i4", is_global=True),
        Arg("high", Access.MAX, 1, "i4", is_global=True),
    ),
)


@BOTH
@settings(deadline=None, max_examples=effort.examples(40))
@given(random_case(), st.integers(1, 5), st.booleans())
def test_every_access(slow, strategy, case, q, lists):
    sizes, _, block_size, rng = case
    n = sizes["cells"]
    sizes = {**sizes, "q": q}
    tables = {
        "cells->p": rng.integers(0, sizes["p"], (n, 3)),
        "cells->q": rng.integers(0, q, (n, 2)),
    }
    plan = slow.plan(sizes, tables, [EVERY], (block_size,), n, lists=lists)["every"]
    shapes = {"d": n, "rw": n, "inc_d": n, "touched": sizes["p"], "largest": q}
    arrays = {name: rng.integers(-50, 50, size) for name, size in shapes.items()}
    arrays |= {"w": rng.integers(0, 9, (n, 2)), "n": rng.integers(0, 9, (q, 3))}
    arrays |= {"c": np.array([4, 5]), "total": np.array([100, 0])}
    arrays |= {"low": np.array([3]), "high": np.array([-7])}
    typed = {a.name: arrays[a.name].astype(a.dtype) for a in EVERY.args}
    ours = check(every_access, plan, typed, strategy)
    assert ours["total"].tolist() == [100 + int(arrays["d"].sum()), n]
    assert ours["low"][0] == min([3, *arrays["d"]])
    assert ours["high"][0] == max([-7, *arrays["d"]])


def vectors(d, w, rw, inc_d, a1, a2, n1, n2, c, total, low, high):
    w[0] = 2 * d[0] + a1[0]
    w[1] = d[1] - a1[4]
    inc_d[2] += c[1] + a2[3]
    n2[0] += d[0]
    n2[3] += a1[2]
    if rw[0] > 0:
        rw[0] = rw[0] * 3 + c[0]
    n1[4] -= a2[0] * a1[1]
    total[0] += d[0]
    total[1] += 1
    low[0] = min(low[0], d[0])
    high[0] = max(high[0], d[0])


VECTORS = Loop(
    "vectors",
    "cells",
    (
        Arg("d", READ, 2, "i4"),
        Arg("w", WRITE, 2, "i8"),
        Arg("rw", RW, 1, "i4"),
        Arg("inc_d", INC, 3, "i8"),
        Arg("a", READ, 5, "i4", "cells->p", (1, 0)),
        Arg("n", INC, 5, "i8", "cells->p", (0, 1)),
        Arg("c", READ, 2, "i4", is_global=True),
        Arg("total", INC, 2, "i8", is_global=True),
        Arg("low", Access.MIN, 1, "i4", is_global=True),
        Arg("high", Access.MAX, 1, "i4", is_global=True),
    ),
)


@pytest.mark.parametrize(
    ("strategy", "layout"),
    [
        *effort.first(
            [("hierarchical", "soa"), *((name, "aos") for name in STRATEGIES)], count=2
        ),
        *(
            pytest.param(s, "soa", marks=pytest.mark.long)
            for s in ("sequential", "two-step", "block-permute")
        ),
    ],
)
@pytest.mark.parametrize("lists", [False, pytest.param(True, marks=pytest.mark.long)])
def test_chunks(slow, strategy, layout, lists):
    """Whole numbers, so exact: full chunks, the last one, and rows of 1 to 5 values."""
    loop = VECTORS
    if strategy == "two-step":
        # it sums no integers
        args = [replace(a, dtype="f8") if a.conflicts else a for a in VECTORS.args]
        loop = replace(VECTORS, args=tuple(args))
    for n, m, block_size in ((0, 1, 4), (3, 2, 2), (64, 9, 16), (131, 40, 50), (99, 1, 40)):
        rng = np.random.default_rng(n)
        sizes, table = {"cells": n, "p": m}, rng.integers(0, m, (n, 2))
        tables = {"cells->p": table}
        plan = slow.plan(sizes, tables, [loop], (block_size,), n, lists=lists)["vectors"]
        shapes = {
            a.name: (sizes["cells" if a.map is None else "p"], a.dim) for a in loop.args
        }
        given = {a.name: rng.integers(-50, 50, shapes[a.name]) for a in loop.args[:6]}
        given |= {"c": np.array([4, 5]), "total": np.array([100, 0])}
        given |= {"low": np.array([3]), "high": np.array([-7])}
        given = {a.name: given[a.name].astype(a.dtype) for a in loop.args}
        expected = {k: v.copy() for k, v in given.items()}
        reference(vectors, plan, expected)
        turned = [
            a.name for a in loop.args if layout == "soa" and a.dim > 1 and not a.is_global
        ]
        ours = {k: v.T.copy() if k in turned else v for k, v in given.items()}
        ParLoop(vectors, plan, strategy=strategy, layout=layout)(**ours)
        for name, value in ours.items():
            assert np.array_equal(value.T if name in turned else value, expected[name]), (
                name
            )


def scale_two(a1, a2, b1, b2, k, c1, c2, d1, d2, m):
    b1[0] += a1[0] * k[0]
    b2[0] += a2[0]
    d1[0] += c1[0] * m[0]
    d2[0] += c2[0]


@BOTH
@pytest.mark.parametrize("dtypes", [("f4", "i4"), ("f8", "i8")])
def test_dtypes(slow, strategy, dtypes):
    """Two in one loop, which takes a second to compile; f4 beside f8 would be computed in f8."""
    args, given = [], {}
    for (a, b, k), dtype in zip(("abk", "cdm"), dtypes, strict=True):
        args.append(Arg(a, READ, 1, dtype, "edges->cells", (0, 1)))
        args.append(Arg(b, INC, 1, dtype, "edges->nodes", (0, 1)))
        args.append(Arg(k, READ, 1, dtype, is_global=True))
        # Small whole numbers: exact in every dtype, in any order.
        given |= {a: np.arange(20, dtype=dtype), b: np.zeros(30, dtype=dtype)}
        given[k] = np.array([3], dtype=dtype)
    plan = edge_plan(slow, *args)
    ours = check(scale_two, plan, given, strategy)
    expected = sum(3 * i + j for i, j in plan.maps["edges->cells"].table)
    for name, dtype in zip("bd", dtypes, strict=True):
        assert ours[name].dtype == np.dtype(dtype)
        assert ours[name].sum() == expected


def norm(v, rms, largest):
    rms[0] += v[0] * v[0]
    largest[0] = max(largest[0], abs(v[0]))


def test_float_reductions_do_not_depend_on_threads(slow):
    args = (
        Arg("v", READ, 1, "f8"),
        Arg("rms", INC, 1, "f8", is_global=True),
        Arg("largest", Access.MAX, 1, "f8", is_global=True),
    )
    plan = edge_plan(slow, *args, n=(9, 8))
    v = np.random.default_rng(5).standard_normal(plan.sizes["edges"])
    found = set()
    before = numba.get_num_threads()
    for threads in sorted({1, before}):
        numba.set_num_threads(threads)
        rms, largest = np.array([1.0]), np.array([0.0])
        ParLoop(norm, plan, strategy="hierarchical")(v=v, rms=rms, largest=largest)
        found.add((float(rms[0]), float(largest[0])))
    numba.set_num_threads(before)
    assert len(found) == 1
    assert found.pop() == (pytest.approx(1 + v @ v, rel=1e-14), np.abs(v).max())


@pytest.mark.parametrize("strategy", ["sequential", "hierarchical"])
@pytest.mark.parametrize("place", [0, 40, 126])
def test_a_nan_that_a_kernel_leaves_stays(slow, strategy, place):
    def extremes(v, least, largest):
        least[0] = np.minimum(least[0], v[0])
        largest[0] = np.maximum(largest[0], v[1])

    args = [
        Arg(n, a, 1, "f4", is_global=True)
        for n, a in (("lo", Access.MIN), ("hi", Access.MAX))
    ]
    plan = edge_plan(slow, Arg("v", READ, 2, "f4"), *args, n=(9, 8))
    v = np.random.default_rng(5).standard_normal((plan.sizes["edges"], 2)).astype("f4")
    for column, nans in ((0, [True, False]), (1, [False, True])):
        given = v.copy()
        given[place, column] = np.nan
        start = np.zeros((2, 1), "f4")
        ours = check(extremes, plan, {"v": given, "lo": start[0], "hi": start[1]}, strategy)
        assert np.isnan([*ours["lo"], *ours["hi"]]).tolist() == nans


def test_constants_may_be_numbers(slow):
    args = (Arg("v", RW, 1, "f8"), Arg("g", READ, 1, "f8", is_global=True))
    plan = edge_plan(slow, *args)

    def times(v, g):
        v[0] *= g[0]

    loop = ParLoop(times, plan, strategy="sequential")
    v = np.ones(plan.sizes["edges"])
    loop(v=v, g=1.5)
    loop(v=v, g=np.float64(2.0))
    loop(v=v, g=3)
    loop(v=v, g=np.array([2.0]))
    assert np.array_equal(v, np.full(v.size, 18.0))


def test_a_dat_may_be_called_self(slow):
    plan = edge_plan(slow, Arg("self", RW, 1, "f8"))

    def double(v):
        v[0] *= 2

    v = np.ones(plan.sizes["edges"])
    ParLoop(double, plan, strategy="sequential")(self=v)
    assert np.array_equal(v, np.full(v.size, 2.0))


def test_one_dat_through_two_maps(slow):
    """Increments of one dat by two arguments: kept apart by the same colours."""
    loop = Loop(
        "two",
        "cells",
        (
            Arg("v", INC, 1, "i8", "cells->p", (0,)),
            Arg("v", INC, 1, "i8", "cells->p", (1,)),
        ),
    )

    def two(v1, v2):
        v1[0] += 1
        v2[0] += 10

    table = np.array([[0, 1], [1, 2], [2, 0], [0, 0]])
    plan = slow.plan({"cells": 4, "p": 3}, {"cells->p": table}, [loop], (1,))["two"]
    ours = check(two, plan, {"v": np.zeros(3, dtype=np.int64)}, "hierarchical")
    assert ours["v"].tolist() == [22, 11, 11]


def test_nan_and_division_by_zero_are_numpys(slow):
    plan = edge_plan(slow, Arg("v", RW, 1, "f8"))

    def inverse(v):
        v[0] = 1.0 / v[0]

    v = np.zeros(plan.sizes["edges"])
    ParLoop(inverse, plan, strategy="hierarchical")(v=v)
    assert (v == math.inf).all()


def test_constants_are_single_beside_single(slow):
    """numba would compute 0.1 * a in f8, and round once less than NumPy does."""
    args = (Arg("a", READ, 1, "f4"), Arg("b", WRITE, 1, "f4"))
    plan = edge_plan(slow, *args)

    def tenth(a, b):
        b[0] = 0.1 * a[0] + 0.3

    a = np.random.default_rng(3).random(plan.sizes["edges"]).astype("f4")
    b = np.zeros_like(a)
    ParLoop(tenth, plan, strategy="sequential")(a=a, b=b)
    assert np.array_equal(b, np.float32(0.1) * a + np.float32(0.3))


# --- Calls one after the other: what is kept of the last ones must not show ---


def locked(a):
    a.flags.writeable = False
    return a


# Of the same memory, where it is not a copy: forty numbers, of which the loop takes twenty.
WAYS = {
    "itself": lambda a: a[:20],
    "column": lambda a: a[:20].reshape(-1, 1),
    "copy": lambda a: a[:20].copy(),
    "read-only": lambda a: locked(a[:20]),
    "every other": lambda a: a[::2],
    "single": lambda a: a.view("f4")[:20],
    "short": lambda a: a[:19],
}
REFUSED = ("every other", "single", "short")
CALLS = st.lists(
    st.tuples(
        *[st.one_of(st.just("itself"), st.sampled_from(sorted(WAYS)))] * 2,
        st.integers(-4, 4),
        st.sampled_from(
            [int, float, np.float64, np.float32, lambda k: np.full(1, float(k))]
        ),
    ),
    max_size=12,
)


@settings(max_examples=effort.examples(100), deadline=None)
@given(calls=CALLS)
def test_calls_in_any_order(slow, calls):
    args = [Arg("q", READ, 1, "f8", "edges->cells", (0, 1))]
    args.append(Arg("res", INC, 1, "f8", "edges->cells", (0, 1)))
    plan = edge_plan(slow, *args, Arg("a", READ, 1, "f8", is_global=True))
    left, right = plan.maps["edges->cells"].table.T

    def flux(q1, q2, r1, r2, a):
        r1[0] += a[0] * q2[0]
        r2[0] += a[0] * q1[0]

    # one form, so that nothing is tried first
    loop = ParLoop(flux, plan, strategy="sequential")
    q, res, expected = np.arange(40.0), np.zeros(40), np.zeros(20)
    for way, other, a, kind in calls:
        values, sums = WAYS[way](q), WAYS[other](res)
        bad = "q" * (way in REFUSED) or "res" * (other in (*REFUSED, "read-only"))
        if bad:
            with pytest.raises(MeshprepError, match=f"argument '{bad}'"):
                loop(q=values, res=sums, a=kind(a))
            continue
        loop(q=values, res=sums, a=kind(a))
        if other != "copy":
            np.add.at(expected, left, a * q[right])
            np.add.at(expected, right, a * q[left])
    np.testing.assert_array_equal(res[:20], expected)
    assert not res[20:].any()


def test_a_single_constant_is_checked_in_every_call(slow):
    plan = edge_plan(
        slow, Arg("n", WRITE, 1, "f4"), Arg("a", READ, 1, "f4", is_global=True)
    )

    def fill(n, a):
        n[0] = a[0]

    loop, own = (
        ParLoop(fill, plan, strategy="sequential"),
        np.zeros(plan.sizes["edges"], "f4"),
    )
    for a in (0.5, 0.25, 0.25):
        loop(n=own, a=a)
        assert (own == a).all()
    with pytest.raises(MeshprepError, match="argument 'a' is 1e\\+300, must be float32"):
        loop(n=own, a=1e300)


def test_threads_that_call_with_numbers_of_their_own(slow):
    plan = edge_plan(
        slow, Arg("n", WRITE, 1, "f8"), Arg("a", READ, 1, "f8", is_global=True)
    )

    def fill(n, a):
        n[0] = a[0]

    loop, wrong = ParLoop(fill, plan), []

    def work(number):
        own = np.zeros(plan.sizes["edges"])
        for k in range(300):
            loop(n=own, a=number + k)
            wrong.extend(own[own != number + k])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, [0.5, 1000.5, 2000.5, 3000.5]))
    assert wrong == []


def test_an_option_that_is_not_there_is_answered_by_the_one_that_is(airfoil):
    with pytest.raises(TypeError, match="has no option 'thread': choose threads"):
        ParLoop(res_calc, airfoil["res_calc"], thread=2)


def test_a_path_in_place_of_the_fields_of_a_plan_names_load():
    with pytest.raises(TypeError, match=r"a plan file is read by Plan.load\('x.plan.h5'\)"):
        Plan("x.plan.h5")
