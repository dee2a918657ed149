"""Forms of a loop's code: which are tried, and that all give the bits of a plain loop."""

import gc
import math
import threading
from dataclasses import replace
from functools import cache
from itertools import chain, cycle
from types import SimpleNamespace

import effort
import numba
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numba.core import event
from python_loops import INC, READ, RW, WRITE

from meshprep_runtime import Access, Arg, Loop, MeshprepError, ParLoop
from meshprep_runtime.cpu import executor
from meshprep_runtime.cpu.pool import Team
from meshprep_runtime.cpu.source import forms
from meshprep_runtime.cpu.source.element import CHUNK, LOCAL, ROWS
from meshprep_runtime.cpu.strategies import STRATEGIES
from meshprep_runtime.kernel.analysis import fresh
from meshprep_runtime.kernel.bind import slots
from meshprep_runtime.kernel.rows import rows_of
from meshprep_runtime.plan import ranges

MAP = "cells->p"
# Kernels that add once to each component, and the dats that they take: name, access, dim, mapped.
KERNELS = {}


def entered(*dats):
    def enter(kernel):
        KERNELS[kernel.__name__] = (kernel, dats)
        return kernel

    return enter


@entered(("u", READ, 1, True), ("r", INC, 1, True), ("w", READ, 1, False))
def flux(ua, ub, ra, rb, w):
    f = w[0] * (ub[0] - ua[0]) / 3.0
    ra[0] += f
    rb[0] -= f


@entered(("u", READ, 3, True), ("r", INC, 3, True))
def rows(ua, ub, ra, rb):
    for k in range(3):
        f = 0.1 * (ua[k] - ub[2 - k])
        ra[k] += f
        rb[k] -= f


@entered(("w", READ, 5, False), ("r", INC, 5, True))
def wide(w, ra, rb):
    if w[0] > 0.5:
        for k in range(5):
            ra[k] += w[k]
    else:
        for k in range(5):
            ra[k] -= 0.3 * w[k]
    rb[0] += w[1]


@entered(
    ("u", READ, 2, True), ("w", RW, 2, False), ("s", INC, 2, None), ("r", INC, 2, True)
)
def sums(ua, ub, w, s, ra, rb):
    w[0] = 0.5 * w[1] + ua[0]
    s[0] += ub[1] * w[1]
    s[1] -= ua[1] / (1.0 + w[0] * w[0])
    ra[0] += w[0]
    rb[1] -= w[1]


@entered(
    *(("v", READ, 2, False), ("w", RW, 1, False)),
    *(("s", INC, 2, None), ("t", INC, 1, None), ("more", INC, 4, None)),
)
def squares(v, w, s, t, more):
    w[0] = math.sqrt(0.5 + v[0] * v[0]) / (1.0 + w[0] * w[0])
    s[0] += v[0] * w[0]
    if v[1] > 0.0:
        s[1] -= v[1] / (2.0 + v[0] * v[0])
    t[0] += v[1] * v[1]
    for k in range(4):
        more[k] += v[0] / (1.5 + k)


@entered(("u", READ, 2, True), ("w", READ, 1, False), ("s", INC, 3, None))
def jumps(ua, ub, w, s):
    s[0] += w[0] * (ub[0] - ua[0]) * (ub[0] - ua[0])
    s[1] -= abs(ub[1] - ua[1])
    s[2] += w[0]


@entered(("u", READ, 2, True), ("r", INC, 2, True), ("v", WRITE, 1, False))
def heavy(ua, ub, ra, rb, v):
    c = math.sqrt(1.0 + ua[0] * ua[0]) / (2.0 + ub[1] * ub[1])
    d = math.sqrt(1.0 + ub[0] * ub[0]) / (2.0 + ua[1] * ua[1])
    v[0] = c / (1.0 + d) + d / (1.0 + c)
    for k in range(2):
        ra[k] += c * ua[k] - d * ub[k] + c / (1.0 + d)
        rb[k] -= d * ua[k] - c * ub[k] + d / (1.0 + c)


def a_plan(slow, name, seed, dtype="f8", lists=False, n=None):
    kernel, dats = KERNELS[name]
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 60)) if n is None else n
    points = int(rng.integers(2, 30))
    # neighbours in the order of a mesh, but for some
    near = np.arange(n)[:, None] * points // max(n, 1) + rng.integers(-2, 3, (n, 2))
    table = (
        np.where(rng.random((n, 2)) < 0.1, rng.integers(0, points, (n, 2)), near) % points
    )
    # no element reaches a point twice: see test_sums.py for those that do
    table[:, 1] = (
        np.where(table[:, 0] == table[:, 1], table[:, 1] + 1, table[:, 1]) % points
    )
    args = tuple(
        Arg(
            name,
            access,
            dim,
            dtype,
            *((MAP, (0, 1)) if mapped else ()),
            is_global=mapped is None,
        )
        if mapped is None
        else Arg(name, access, dim, dtype, *((MAP, (0, 1)) if mapped else ()))
        for name, access, dim, mapped in dats
    )
    sizes = {"cells": n, "p": points}
    plan = slow.plan(sizes, {MAP: table}, [Loop("l", "cells", args)], (8,), lists=lists)[
        "l"
    ]
    values = {
        s.name: rng.normal(size=s.shape).astype(s.dtype)
        if dtype[0] == "f"
        else rng.integers(-9, 9, s.shape).astype(s.dtype)
        for s in slots(plan)
    }
    return kernel, plan, values


def run_in(monkeypatch, form, kernel, plan, values, several, layout="aos"):
    """The arrays after two calls in one form, on one thread or on several."""
    with monkeypatch.context() as patch:
        if form:
            patch.setattr(executor, "forms", lambda **_: (form,))
        else:
            # rows are asked for ahead in every other piece
            patch.setattr(executor, "FETCHED_BYTES", 0)
        if not several:
            patch.setattr(Team, "_run_on_several", lambda *_, **named: False)
        arrays = {
            s.name: np.ascontiguousarray(values[s.name].T)
            if s.soa
            else values[s.name].copy()
            for s in slots(plan, layout)
        }
        loop = ParLoop(kernel, plan, layout=layout)
        for _ in range(2):
            loop(**arrays)
    pairs = zip(slots(plan, layout), arrays.values(), strict=False)
    return {s.name: a.T if s.soa else a for s, a in pairs}


@cache
def plain(kernel):
    return fresh(kernel, lambda function, _: numba.njit(error_model="numpy")(function))


def one_after_the_other(kernel, plan, values, calls=2):
    """Some calls of a plain loop in the order of the turns, which numba compiles for each element.

    Reductions have a sum a turn, or eight that elements take in turn, of up to three components and
    where nothing else is added through a map.
    """
    one = any(a.conflicts for a in plan.loop.args)
    lanes = {a.name: 1 if one or a.dim > 3 else 8 for a in plan.loop.args if a.is_global}
    schedule = STRATEGIES["ordered"].schedule(plan, plan.variants[plan.default])
    arrays = {name: value.copy() for name, value in values.items()}
    table = plan.maps[MAP].table if plan.maps else None
    for _ in range(calls):
        totals = {a.name: arrays[a.name].copy() for a in plan.loop.args if a.is_global}
        for start, stop, *_ in schedule.turns:
            parts = {
                n: np.full((lanes[n], t.size), -0.0, t.dtype) for n, t in totals.items()
            }
            for place in range(start, stop):
                e = place if schedule.order is None else schedule.order[place]
                given = []
                for a in plan.loop.args:
                    if a.is_global:
                        given.append(parts[a.name][(place - start) % lanes[a.name]])
                    elif a.map is None:
                        given.append(arrays[a.name][e])
                    else:
                        given += [arrays[a.name][table[e, i]] for i in a.index]
                plain(kernel)(*given)
            for name, part in parts.items():
                arrays[name] += np.add.accumulate(part)[-1]
    return arrays


def every_form_agrees(monkeypatch, kernel, plan, values):
    expected = one_after_the_other(kernel, plan, values)
    for form in (ROWS, LOCAL, CHUNK, ""):
        for several in (False, True):
            found = run_in(monkeypatch, form, kernel, plan, values, several)
            for slot, value in found.items():
                assert value.tobytes() == expected[slot].tobytes(), (form, several, slot)


@settings(
    deadline=None,
    max_examples=effort.examples(25),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.sampled_from(sorted(KERNELS)), st.integers(0, 2**32 - 1), st.booleans())
def test_every_form_has_the_bits_of_a_plain_loop(slow, monkeypatch, name, seed, lists):
    kernel, plan, values = a_plan(slow, name, seed, lists=lists)
    every_form_agrees(monkeypatch, kernel, plan, values)


@pytest.mark.parametrize("name", ["squares", "jumps"])
@pytest.mark.parametrize("n", effort.first([41, 0, 7, 100]))
def test_sums_alone_are_eight_in_every_form(slow, monkeypatch, name, n):
    monkeypatch.setattr(ranges, "LEAST", 24)
    kernel, plan, values = a_plan(slow, name, n, n=n)
    every_form_agrees(monkeypatch, kernel, plan, values)


@pytest.mark.parametrize("name", effort.first(["flux", "rows", "sums"]))
@pytest.mark.parametrize("form", [ROWS, LOCAL, CHUNK])
def test_layouts_do_not_change_bits(slow, monkeypatch, name, form):
    kernel, plan, values = a_plan(slow, name, 11)
    expected = run_in(monkeypatch, form, kernel, plan, values, True)
    found = run_in(monkeypatch, form, kernel, plan, values, True, "soa")
    for slot, value in found.items():
        assert np.array_equal(value, expected[slot]), slot


# ------------------------------------------- what forms could compute otherwise
AGAIN = (0, 0, 1)


def adds_whole_numbers(x, a, b):
    """numba adds a product of f4 and a whole number to f4 in f8."""
    a[0] += x[0] * 3
    a[1] += x[1]
    b[0] -= x[0] * 3
    b[1] -= x[1]


def adds_alone(x, a, b):
    a[0] += x[0]
    a[1] += x[1]
    b[0] -= x[0]
    b[1] -= x[1]


def adds_again(x, a, b):
    for k in AGAIN:
        a[k] += x[0] * 0.1
        b[k] += x[0] * 0.3


def adds_to_the_second_first(x, a, b):
    b[0] += x[0] * 0.3
    b[1] += x[0]
    a[0] += x[0] * 0.1
    a[1] -= x[0]


def adds_halves(x, a, b):
    a[0] += x[0] * 0.5
    b[1] -= x[1] * 0.5


def adds_by_turns(x, a, b):
    for k in range(2):
        a[k] += x[k] / 3
    a[0] += x[0]
    b[:] -= x[1]
    b[-1] -= 1.5


def adds_much(x, a, b):
    c = math.sqrt(1.0 + x[0] * x[0]) / (2.0 + x[1] * x[1])
    d = c / (1.0 + x[0] * x[0]) + x[1] / (3.0 + c)
    for k in range(2):
        a[k] += c / (1.0 + d * d) + d / (2.0 + c * c)
        b[k] -= d / (1.0 + c * c) - c / (2.0 + d * d)


def adds_much_to_one(x, a, b):
    adds_much(x, a, b)
    b[0] += x[0]


def adds_much_by_a_place(x, a, b):
    c = math.sqrt(1.0 + x[0] * x[0]) / (2.0 + x[1] * x[1])
    k = 0
    while k < 2:
        a[k % 2] += c / (1.0 + x[0] * x[0])
        b[0] -= x[1] / (3.0 + c)
        k += 1


UNUSUAL = (
    *(adds_alone, adds_again, adds_to_the_second_first, adds_by_turns),
    *(adds_much, adds_much_to_one, adds_much_by_a_place),
)


def reached(slow, read, added, repeats):
    """A loop that reads ``x`` and adds to two rows of ``a``, and values of these types."""
    rng = np.random.default_rng(3)
    n, points = 70, 31
    table = np.column_stack([np.arange(n), np.arange(n) + 1]) * points // n % points
    table[:, 1] = (
        np.where(table[:, 0] == table[:, 1], table[:, 1] + 2, table[:, 1]) % points
    )
    if repeats:
        table[::3, 1] = table[::3, 0]
    args = (Arg("x", READ, 2, read), Arg("a", INC, 2, added, MAP, (0, 1)))
    loops = [Loop("l", "cells", args)]
    plan = slow.plan({"cells": n, "p": points}, {MAP: table}, loops, (8,))["l"]
    values = {
        "x": (rng.normal(size=(n, 2)) * 3).astype(read),
        "a": (rng.normal(size=(points, 2)) * 5).astype(added),
    }
    return plan, values


@pytest.mark.parametrize(
    ("kernel", "read", "added", "repeats"),
    effort.first(
        [
            *((kernel, "f8", "f8", False) for kernel in UNUSUAL),
            *((kernel, "f8", "f8", True) for kernel in UNUSUAL),
            *((kernel, "f8", "f4", False) for kernel in (adds_alone, adds_much)),
            (adds_whole_numbers, "f4", "f4", False),
            *((adds_halves, "f8", whole, False) for whole in ("i4", "i8")),
            *((adds_alone, "i8", whole, True) for whole in ("i4", "i1", "u4")),
            (adds_alone, "i4", "f4", False),
        ],
        count=4,
    ),
)
def test_every_call_has_the_bits_of_a_plain_loop(
    slow, kernel, read, added, repeats, monkeypatch
):
    """Whatever the kernel does, and however many calls came before."""
    monkeypatch.setattr(executor, "PATIENT_CALLS", 2)
    plan, values = reached(slow, read, added, repeats)
    expected = one_after_the_other(kernel, plan, values, calls=1)
    loop = ParLoop(kernel, plan)
    for _ in range(16):
        arrays = {name: value.copy() for name, value in values.items()}
        loop(**arrays)
        assert arrays["a"].tobytes() == expected["a"].tobytes(), loop.form
    assert loop.form


def test_whole_numbers_are_those_of_numpy(slow):
    """Sums that do not fit begin anew, as they do there."""
    plan, values = reached(slow, "i4", "i1", True)
    table = plan.maps[MAP].table
    expected = values["a"].copy()
    np.add.at(expected, table[:, 0], values["x"].astype("i1"))
    np.subtract.at(expected, table[:, 1], values["x"].astype("i1"))
    ParLoop(adds_alone, plan)(**values)
    assert np.array_equal(values["a"], expected)


@numba.njit(fastmath=True)
def fast(v, w):
    return v * w + w


def adds_fast(x, a, b):
    a[0] += fast(x[0], x[1])
    b[0] -= fast(x[1], x[0])


def test_one_form_where_a_helper_may_be_fused(slow):
    plan, _ = reached(slow, "f8", "f8", False)
    given = rows_of(plan.loop, slots(plan))
    assert len(forms.forms(adds_fast, given, True)) == 1
    assert len(forms.forms(adds_alone, given, True)) == 2
    assert len(forms.forms(numba.njit(adds_alone), given, True)) == 2
    assert len(forms.forms(numba.njit(fastmath=True)(adds_alone), given, True)) == 1


def test_dats_without_a_sign_have_one_form(slow):
    """Vectors convert numbers below zero in a way of their own."""
    plan, _ = reached(slow, "f8", "u4", False)
    assert forms.forms(adds_halves, rows_of(plan.loop, slots(plan)), True) == (ROWS,)


def test_a_kernel_inside_a_function_runs_in_chunks(slow):
    """What it takes from there is known."""
    third = 3.0

    def inside(x, a, b):
        c = math.sqrt(1.0 + x[0] * x[0]) / (2.0 + x[1] * x[1])
        d = math.sqrt(1.0 + c * x[0]) / (2.0 + x[1] * c)
        a[0] += c / (1.0 + d * d) + d / (third + c * c)
        b[1] -= d / (1.0 + c * c) - c / (third + d * d)

    plan, _ = reached(slow, "f8", "f8", False)
    assert CHUNK in forms.forms(inside, rows_of(plan.loop, slots(plan)), True)


def what_is_summed(x, s, a, b):
    s[0] += x[0] * 3
    for _ in range(2):
        s[1] += x[1] / 3
    a[0] += x[0]
    b[0] -= x[1]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_what_an_element_adds_to_a_global_is_summed_first(slow, dtype, monkeypatch):
    """In every form, in the type of the global."""
    plan, values = reached(slow, "f4", "f8", False)
    x, a = plan.loop.args
    args = (x, Arg("s", INC, 2, dtype, is_global=True), a)
    plan = replace(plan, loop=Loop("l", "cells", args))
    values["s"] = np.array([1, 2]).astype(dtype)
    ways = [
        run_in(monkeypatch, f, what_is_summed, plan, values, True) for f in (ROWS, LOCAL)
    ]
    assert ways[0]["s"].tobytes() == ways[1]["s"].tobytes()
    found = run_in(monkeypatch, CHUNK, what_is_summed, plan, values, False)
    assert found["s"].tobytes() == ways[0]["s"].tobytes()


def test_minus_zero_stays(slow, monkeypatch):
    """A sum of zeros has the sign that a plain loop gives it."""
    kernel, plan, values = a_plan(slow, "flux", 3)
    values = {name: np.full_like(value, -0.0) for name, value in values.items()}
    expected = one_after_the_other(kernel, plan, values)
    for form in (ROWS, LOCAL, CHUNK):
        found = run_in(monkeypatch, form, kernel, plan, values, True)
        assert found["r"].tobytes() == expected["r"].tobytes()


def both(name, slow):
    """The loop of a kernel, and its slots."""
    _, plan, _ = a_plan(slow, name, 1)
    return plan.loop, slots(plan)


def test_forms_by_arithmetic(slow):
    found = {}
    for name in KERNELS:
        kernel, plan, _ = a_plan(slow, name, 1)
        found[name] = forms.forms(kernel, rows_of(plan.loop, slots(plan)), True)
    assert found["heavy"] == (CHUNK,)
    for name in ("flux", "rows", "wide"):
        assert {ROWS, LOCAL} <= {*found[name]}
    # nobody knows what a kernel without a text does, so that its sums may not wait
    scope = {}
    exec("def unknown(ua, ub, ra, rb, w):\n    ra[0] += w[0]", scope)
    _, plan, _ = a_plan(slow, "flux", 1)
    given = rows_of(plan.loop, slots(plan))
    assert forms.forms(scope["unknown"], given, True) == (ROWS, LOCAL)
    assert forms.forms(scope["unknown"], given, True, fixed=True) == (ROWS,)
    # nor may they be copied where a row may be there twice
    assert forms.forms(scope["unknown"], given, False) == (ROWS,)
    assert forms.forms(heavy, rows_of(*both("heavy", slow)), False) == (ROWS,)


def largest_jump(ua, ub, m):
    m[0] = max(m[0], abs(ub[0] - ua[0]))


def shortest_step(u, h, m):
    m[0] = max(m[0], (abs(u[0]) + 1.0) / h[0])


def largest_polynomial(u, m):
    v = u[0] * u[0] + 0.5
    m[0] = max(m[0], (v * u[0] - 1.0) * (v + u[0]))


def largest_of_a_high_degree(u, m):
    v = u[0] * u[0] + 0.5
    v = (v * u[0] - 1.0) * (v + u[0])
    m[0] = max(m[0], (v * u[0] - 1.0) * (v + u[0]))


@pytest.mark.parametrize(
    ("kernel", "args", "form"),
    [
        (largest_polynomial, [Arg("u", READ, 1, "f8")], ROWS),
        (largest_of_a_high_degree, [Arg("u", READ, 1, "f8")], CHUNK),
        (largest_jump, [Arg("u", READ, 1, "f8", MAP, (0, 1))], ROWS),
        (shortest_step, [Arg("u", READ, 1, "f8"), Arg("h", READ, 1, "f8")], CHUNK),
    ],
)
def test_chunks_of_largest_values_pay_for_much_arithmetic(slow, kernel, args, form):
    args = (*args, Arg("m", Access.MAX, 1, "f8", is_global=True))
    tables = {MAP: np.array([[0, 1]])}
    plan = slow.plan({"cells": 1, "p": 2}, tables, [Loop("l", "cells", args)])["l"]
    assert forms.forms(kernel, rows_of(plan.loop, slots(plan)), True) == (form,)


def test_wide_rows_are_not_copied(slow):
    """And what an element wrote through a map, the next one must see."""
    args = (Arg("a", INC, 128, "f8", MAP, (0, 1)),)
    sizes, tables = {"cells": 1, "p": 2}, {MAP: np.array([[0, 1]])}
    plan = slow.plan(sizes, tables, [Loop("l", "cells", args)])["l"]
    given = rows_of(plan.loop, slots(plan))
    assert CHUNK not in forms.forms(lambda a, b: None, given, True)
    plan = slow.plan(
        sizes, tables, [Loop("l", "cells", (Arg("a", RW, 1, "f8", MAP, (0,)),))]
    )["l"]
    assert forms.forms(lambda a: None, rows_of(plan.loop, slots(plan)), True) == (ROWS,)


def test_the_fastest_form_stays(slow, monkeypatch):
    """The first calls try each on one turn after another."""
    kernel, plan, values = a_plan(slow, "flux", 7)
    monkeypatch.setattr(executor, "forms", lambda **_: (ROWS, LOCAL, CHUNK))
    loop, arrays = ParLoop(kernel, plan), {n: v.copy() for n, v in values.items()}
    assert loop.form == ""
    for _ in range(40):
        loop(**arrays)
    assert loop.form in (ROWS, LOCAL, CHUNK)


@pytest.mark.parametrize(
    ("seconds_of_call", "first_calls"),
    [pytest.param(1, 4, id="short-calls"), pytest.param(6, 2, id="long-calls")],
)
def test_further_forms_are_compiled_after_some_calls(
    slow, monkeypatch, seconds_of_call, first_calls
):
    """After four, or once calls took the ten seconds of the first form."""
    kernel, plan, values = a_plan(slow, "flux", 7)
    # A clock by which the first form takes ten seconds, and each call what is said.
    clock = chain([0, 10], cycle([0, seconds_of_call]))
    monkeypatch.setattr(executor, "time", SimpleNamespace(perf_counter=clock.__next__))
    monkeypatch.setattr(executor, "forms", lambda **_: (ROWS, LOCAL, CHUNK))
    monkeypatch.setattr(executor, "PATIENT_CALLS", 4)
    compiled = []
    text_of = executor.Executor._text_of

    def watched(self, **asked):
        compiled.append(asked["form"])
        return text_of(self, **asked)

    monkeypatch.setattr(executor.Executor, "_text_of", watched)
    loop = ParLoop(kernel, plan, strategy="sequential")
    for _ in range(first_calls):
        loop(**{n: v.copy() for n, v in values.items()})
        assert compiled == [ROWS]
    loop(**{n: v.copy() for n, v in values.items()})
    assert compiled == [ROWS, LOCAL, CHUNK]


def test_calls_of_several_threads_take_turns_while_forms_are_tried(slow, monkeypatch):
    monkeypatch.setattr(executor, "PATIENT_CALLS", 2)
    _, plan, values = a_plan(slow, "rows", 7, dtype="i8")
    monkeypatch.setattr(executor, "forms", lambda **_: (ROWS, LOCAL, CHUNK))
    once, many = ({n: v.copy() for n, v in values.items()} for _ in range(2))
    loop = ParLoop(count, plan)
    loop(**once)

    def call():
        for _ in range(25):
            loop(**many)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = values["r"] + 75 * (once["r"] - values["r"])
    assert np.array_equal(many["r"], expected)


def count(ua, ub, ra, rb):
    for k in range(3):
        ra[k] += ub[k]
        rb[k] -= ua[k]


def test_no_two_forms_where_they_may_differ(slow, flow, monkeypatch):
    kernel, plan, values = a_plan(slow, "flux", 7)
    loop = ParLoop(kernel, plan, fastmath=True)
    loop(**{n: v.copy() for n, v in values.items()})
    assert loop.form == ROWS


def least(u, m):
    m[0] = min(m[0], u[0])


def test_a_nan_is_found_in_every_call(slow):
    """One form alone, so that a call gives what the one before gave."""
    args = (Arg("u", READ, 1, "f8"), Arg("m", Access.MIN, 1, "f8", is_global=True))
    plan = slow.plan({"cells": 20}, {}, [Loop("l", "cells", args)])["l"]
    assert forms.forms(least, rows_of(plan.loop, slots(plan)), True) == (ROWS,)
    u = np.arange(20.0)[:, None] + 3
    m = np.full(1, 9.0)
    loop = ParLoop(least, plan)
    for _ in range(30):
        m[0] = 9.0
        loop(u=u, m=m)
        assert m[0] == 3


# ---------------------------------------------------------------- the call
def test_the_names_of_a_call_are_compared(slow):
    """The same arrays in the same order, under other names, are other arguments."""
    kernel, plan, _ = a_plan(slow, "flux", 5)
    shape = next(s.shape for s in slots(plan) if s.name == "u")
    n = plan.sizes["cells"]
    one, two, w = np.ones(shape), np.arange(shape[0])[:, None] ** 2.0, np.ones((n, 1))
    loop = ParLoop(kernel, plan)
    for _ in range(40):
        loop(u=one, r=two, w=w)
    before = one.copy()
    loop(r=one, u=two, w=w)
    assert not np.array_equal(one, before)


def test_an_array_that_changed_its_form_is_refused(slow):
    kernel, plan, values = a_plan(slow, "rows", 5)
    arrays = {n: v.copy() for n, v in values.items()}
    loop = ParLoop(kernel, plan)
    for _ in range(40):
        loop(**arrays)
    arrays["r"].flags.writeable = False
    with pytest.raises(MeshprepError, match="argument 'r' is read-only"):
        loop(**arrays)
    arrays["r"].flags.writeable = True
    loop(**arrays)
    with pytest.raises(MeshprepError, match="argument 'u' is missing"):
        loop(r=arrays["r"])


def test_ranges_of_another_variant(slow):
    """Blocks that are asked for are not cut."""
    _, plan, _ = a_plan(slow, "rows", 23)
    more = slow.variant(plan.loop, plan.maps, plan.sizes["cells"], 5)
    plan = replace(plan, variants={**plan.variants, "other": replace(more, name="other")})
    found = STRATEGIES["ordered"].schedule(plan, plan.variants["other"])
    ends = {*plan.variants["other"].block_offset.tolist()}
    assert {*found.turns[:, 1].tolist()} <= ends


@pytest.mark.parametrize("form", [ROWS, LOCAL, CHUNK])
@pytest.mark.parametrize("layout", ["aos", "soa"])
def test_no_function_of_numba_is_compiled_for_a_loop(slow, monkeypatch, form, layout):
    """Each takes as long as a tenth of the kernel; and none takes a search for garbage."""
    compiled, collecting = set(), set()

    class Listener(event.Listener):
        def on_start(self, event):
            compiled.add(event.data["dispatcher"].py_func.__name__)
            collecting.add(gc.isenabled())

        def on_end(self, event):
            pass

    monkeypatch.setenv("MESHPREP_CACHE_DIR", "")
    monkeypatch.setattr(executor, "_kept", {})
    kernel, plan, values = a_plan(slow, "rows", seed=3, n=50)
    with event.install_listener("numba:compile", Listener()):
        run_in(monkeypatch, form, kernel, plan, values, several=False, layout=layout)
    # the launcher of the process is compiled where no loop has run before
    assert compiled - {"call"} == {"rows", "elements"}
    assert collecting == {False}
    assert gc.isenabled()
