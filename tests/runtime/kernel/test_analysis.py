"""Kernels: compiled with all they reach, never stale, and explained when they do not compile."""

from collections import Counter, namedtuple
from types import ModuleType

import numba
import numpy as np
import pytest
from numba.core import event

from meshprep_runtime import Access, Arg, Loop, MeshprepError, ParLoop
from meshprep_runtime.cpu import executor
from meshprep_runtime.kernel.analysis import reach
from meshprep_runtime.kernel.compiler import compile_error

FACTOR = 2.0
TABLE = np.array([1.0, 10.0])
PAIR = (1.0, (2.0, 3.0))


def helper(x):
    return deeper(x) + FACTOR


def deeper(x):
    return 10.0 * x


@numba.njit(fastmath=True)
def jitted(x):
    return x * FACTOR


def calls_helper(v):
    v[0] = helper(v[0])


def calls_jitted(v):
    v[0] = jitted(v[0])


def uses_table(v):
    v[0] = TABLE[1] * PAIR[1][1]


def factorial(n):
    if n <= 1:
        return 1.0
    return n * factorial(n - 1)


def calls_itself(v):
    v[0] = factorial(5)


@pytest.fixture(scope="module")
def plan(slow):
    return slow.plan({"cells": 3}, {}, [Loop("l", "cells", (Arg("v", Access.RW),))], (2,))[
        "l"
    ]


def result(kernel, plan, **options):
    v = np.ones(3)
    ParLoop(kernel, plan, **{"strategy": "sequential", **options})(v=v)
    assert v[0] == v[1] == v[2]
    return v[0]


def test_plain_helpers_are_compiled_too(plan):
    assert result(calls_helper, plan) == 12.0
    assert result(calls_helper, plan, strategy="hierarchical") == 12.0
    assert result(calls_itself, plan) == 120.0
    assert result(jitted_kernel, plan) == 4.0


@numba.njit
def jitted_kernel(v):
    v[0] += 3.0


def test_changed_globals_and_helpers_are_seen(plan, monkeypatch):
    assert result(calls_helper, plan) == 12.0
    assert result(calls_jitted, plan) == 2.0
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert result(calls_helper, plan) == 15.0
    assert result(calls_jitted, plan) == 5.0
    monkeypatch.setitem(globals(), "deeper", lambda x: 100.0 * x)
    assert result(calls_helper, plan) == 105.0
    monkeypatch.undo()
    assert result(calls_helper, plan) == 12.0


def test_changed_arrays_and_tuples_are_seen(plan, monkeypatch):
    assert result(uses_table, plan) == 30.0
    TABLE[1] = 20.0
    assert result(uses_table, plan) == 60.0
    TABLE[1] = 10.0
    monkeypatch.setitem(globals(), "PAIR", (1.0, (2.0, 4.0)))
    assert result(uses_table, plan) == 40.0


def test_closures_are_told_apart(plan):
    def make(c):
        def kernel(v):
            v[0] = c

        return kernel

    assert [result(make(c), plan) for c in (1.0, 2.0, 1.0)] == [1.0, 2.0, 1.0]
    assert reach(make(1.0)) == reach(make(1.0))
    assert reach(make(1.0)) != reach(make(2.0))
    assert reach(make(0.0)) != reach(make(-0.0))
    assert reach(make(1)) != reach(make(1.0))


def test_functions_of_one_name_are_told_apart(plan):
    """Where each was met before, by which of them is met again."""

    def make(factor):
        def scaled(x):
            return factor * x

        return scaled

    def make_kernel(one, two, again):
        def with_again(x):
            return again(x)

        def kernel(v):
            v[0] = one(v[0]) + two(v[0]) + 10.0 * with_again(v[0])

        return kernel

    one, two = make(1.0), make(2.0)
    assert reach(make_kernel(one, two, one)) != reach(make_kernel(one, two, two))
    assert result(make_kernel(one, two, one), plan) == 13.0
    assert result(make_kernel(one, two, two), plan) == 23.0


def module_with(name, **values):
    made = ModuleType(name)
    vars(made).update(values)
    return made


def test_constants_of_modules_in_modules_are_seen(plan, monkeypatch):
    package = module_with("package", physics=module_with("package.physics", GAMMA=1.5))
    # as after ``import package`` in a module of its own
    package.physics.package = package

    def kernel(v):
        v[0] = package.physics.GAMMA

    assert result(kernel, plan) == 1.5
    package.physics.GAMMA = 2.5
    assert result(kernel, plan) == 2.5

    def helper(x):
        return x * package.physics.SCALE

    def both(v):
        v[0] = helper(package.physics.GAMMA)

    package.physics.SCALE = 2.0
    assert result(both, plan) == 5.0
    package.physics.SCALE = 3.0
    assert result(both, plan) == 7.5


def test_names_of_fields_are_seen():
    def reached(constants):
        def kernel(v):
            v[0] = constants.gamma

        return reach(kernel)

    first, second = namedtuple("C", "gamma cfl"), namedtuple("C", "cfl gamma")
    assert reached(first(1.0, 2.0)) == reached(first(1.0, 2.0))
    assert reached(first(1.0, 2.0)) != reached(second(1.0, 2.0))
    records = [np.zeros(2, [(a, "f8"), (b, "f8")]) for a, b in ("xy", "yx")]
    assert reached(records[0]) != reached(records[1])


def test_equal_kernels_are_compiled_once(plan):
    def make():
        def kernel(v):
            v[0] += 0.125

        return kernel

    result(make(), plan)
    kept = len(executor._kept)
    assert result(make(), plan) == 1.125
    assert len(executor._kept) == kept


def test_a_second_call_compiles_nothing(plan):
    def kernel(v):
        v[0] += 0.25

    loop = ParLoop(kernel, plan, strategy="hierarchical")
    v = np.ones(3)
    loop(v=v)
    kept = dict(executor._kept)
    for _ in range(3):
        loop(v=np.ones((3, 1)))
    assert executor._kept == kept


def test_what_is_kept_is_bounded(plan, monkeypatch):
    monkeypatch.setattr(executor, "MAX_KEPT", 2)
    monkeypatch.setattr(executor, "_kept", {})
    for c in (1.0, 2.0, 3.0):
        scope = {}
        exec(f"def kernel(v):\n    v[0] = {c}\n", scope)
        assert result(scope["kernel"], plan) == c
    assert len(executor._kept) == 2


@pytest.mark.slow
def test_a_reduction_has_no_parallel_region_and_no_messages(slow, monkeypatch):
    """numba makes a region and the text of a message of a slice that is filled: three seconds."""

    def total(v, sums):
        sums[0] += v[0]
        sums[1] += 1.0

    args = (Arg("v", Access.READ), Arg("sums", Access.INC, 2, is_global=True))
    plan = slow.plan({"cells": 9}, {}, [Loop("l", "cells", args)], (2,))["l"]
    monkeypatch.setenv("MESHPREP_CACHE_DIR", "")
    monkeypatch.setattr(executor, "_kept", {})
    sums = np.zeros(2)
    # numba empties the options that it is given: the second loop has them, too
    ParLoop(total, plan, strategy="hierarchical")(v=np.arange(9.0), sums=np.zeros(2))
    monkeypatch.setattr(executor, "_kept", {})
    with event.install_recorder("numba:compile") as record:
        ParLoop(total, plan, strategy="hierarchical")(v=np.arange(9.0), sums=sums)
    assert sums.tolist() == [36.0, 9.0]
    begun = [e.data["dispatcher"] for _, e in record.buffer if e.is_start]
    times = Counter(one.py_func.__name__ for one in begun)
    assert [times[name] for name in ("elements", "total")] == [1, 1]
    (native,) = executor._kept.values()
    code = native.code.inspect_llvm()
    assert "__numba_parfor_gufunc" not in code
    assert "unicode" not in code


def test_wrong_kernels(plan):
    def none():
        pass

    def many(v, w):
        pass

    def starred(*v):
        pass

    with pytest.raises(MeshprepError) as error:
        ParLoop(many, plan)
    assert str(error.value) == "kernel 'many' has 2 parameters, but loop 'l' hands it 1: v"

    def generator(v):
        yield v

    with pytest.raises(MeshprepError, match="'generator' is a generator or coroutine"):
        ParLoop(generator, plan)
    with pytest.raises(MeshprepError, match="has 0 parameters"):
        ParLoop(none, plan)
    with pytest.raises(MeshprepError, match=r"has \*, \*\* or keyword parameters"):
        ParLoop(starred, plan)
    with pytest.raises(
        MeshprepError, match="the kernel is a str, must be a Python function"
    ):
        ParLoop("kernel", plan)


def test_parameters_are_listed_by_argument_and_index(airfoil):
    with pytest.raises(MeshprepError) as error:
        ParLoop(lambda x: None, airfoil["res_calc"])
    assert str(error.value).endswith(
        "hands it 8: x[0], x[1], q[0], q[1], adt[0], adt[1], res[0], res[1]; or 4, tuples of "
        "rows: x, q, adt, res"
    )


def writes_what_it_reads(a, b):
    b[0] += 1.0
    a[0] = 2.0


def test_a_kernel_that_changes_what_it_only_reads(slow):
    loop = Loop("l", "cells", (Arg("a", Access.READ), Arg("b", Access.INC)))
    plan = slow.plan({"cells": 3}, {}, [loop])["l"]
    a, b = np.zeros(3), np.zeros(3)
    with pytest.raises(MeshprepError) as error:
        ParLoop(writes_what_it_reads, plan, strategy="sequential")(a=a, b=b)
    text = str(error.value)
    assert text.startswith("loop 'l': argument 'a': kernel 'writes_what_it_reads' at")
    assert "test_analysis.py:" in text
    assert "sets a row that is only read" in text
    assert "\n" not in text
    assert not a.any()
    assert not b.any()


def test_colours_of_a_terminal_are_left_out_of_a_message(plan):
    """numba writes them where colorama is installed."""
    told = compile_error(
        print, plan.loop, [], ValueError("\x1b[1m\x1b[31mUnknown x\x1b[0m")
    )
    assert str(told) == "kernel 'print' does not compile: Unknown x"


@pytest.mark.parametrize("strategy", ["sequential", "hierarchical"])
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("v[0] = missing(1.0)", "NameError: name 'missing' is not defined"),
        ("v[0] = 'text'", "setitem"),
        ("v[0] = v[0] + 'text'", "found for signature: add(float64, "),
        ("v[0] = v.nothing", "Unknown attribute 'nothing'"),
        ("import os", "does not compile"),
    ],
)
def test_kernels_that_do_not_compile(plan, body, reason, strategy):
    scope = {}
    exec(compile(f"\ndef kernel(v):\n    {body}\n", "of_a_user.py", "exec"), scope)
    with pytest.raises(
        MeshprepError, match=r"does not compile at of_a_user.py:[23]: "
    ) as error:
        ParLoop(scope["kernel"], plan, strategy=strategy)(v=np.ones(3))
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("strategy", ["sequential", "hierarchical"])
def test_boundscheck_finds_a_wrong_index(plan, strategy):
    def kernel(v):
        # of a value that the look before the first run takes for right
        v[int(v[0])] = 0.0

    loop = ParLoop(kernel, plan, strategy=strategy, boundscheck=True)
    loop(v=np.zeros(3))
    for _ in range(2):
        with pytest.raises(IndexError, match=r"^loop '.+': the kernel kernel leaves a row"):
            loop(v=np.full(3, 3.0))


@pytest.mark.parametrize("strategy", ["sequential", "hierarchical"])
def test_an_exception_of_the_kernel_arrives(plan, strategy):
    def kernel(v):
        if v[0] > 0.5:
            raise ValueError("too large")

    with pytest.raises(ValueError, match="too large"):
        ParLoop(kernel, plan, strategy=strategy)(v=np.ones(3))
