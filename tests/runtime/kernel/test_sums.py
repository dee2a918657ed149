"""Which sums may wait: what is proved of kernels, beside what numba makes of them."""

import ast
import inspect

import numba
import numpy as np
import pytest

from meshprep_runtime import Access, Arg, Loop
from meshprep_runtime.kernel.analysis import fresh
from meshprep_runtime.kernel.bind import slots
from meshprep_runtime.kernel.rows import reaches_apart, rows_of
from meshprep_runtime.kernel.sums import SINGLE_OF_SINGLE, may_wait
from meshprep_runtime.kernel.syntax import definition_of

MAP, MORE = "cells->p", "cells->q"
TWO, TWICE, BOTH = 2, (0, 1, 0), (0, 1)


def rows(slow, *args, dtype="f8", read="f8"):
    """Rows of ``a``, two components that are added to through a map, and of ``x``, two read."""
    added = Arg("a", Access.INC, 2, dtype, MAP, (0,))
    args = (added, Arg("x", Access.READ, 2, read), *args)
    tables = {MAP: np.zeros((1, 1), int)}
    plan = slow.plan({"cells": 1, "p": 1}, tables, [Loop("l", "cells", args)])["l"]
    return rows_of(plan.loop, slots(plan))


# ---------------------------------------------------------------- how often
def apart(a, x):
    a[0] += x[0]
    a[1] -= x[1]


def from_the_end(a, x):
    a[0] += x[0]
    a[-1] += x[1]


def over_all(a, x):
    for k in range(len(a)):
        f = x[k] * x[0]
        a[k] += f


def over_numbers(a, x):
    for k in (1, 0):
        a[k] += x[k]


def over_a_global(a, x):
    for k in BOTH:
        a[1 - k] -= x[k]


def both_branches(a, x):
    if x[0] > 0:
        a[0] += 1.0
    elif x[0] < -1:
        a[0] -= 1.0


def leaves(a, x):
    for k in range(TWO):
        if x[k] < 0:
            break
        a[k] += x[k]
    return


def add_both(to, x, first):
    to[first] += x[0]
    to[1 - first] += x[1]


def by_a_helper(a, x):
    add_both(a, x, 1)


def nested_loops(a, x):
    for i in range(2):
        for k in range(1):
            a[i + k] += x[i] * x[k]


ONCE = (
    *(apart, from_the_end, over_all, over_numbers, over_a_global, both_branches, leaves),
    *(by_a_helper, nested_loops),
)


def twice(a, x):
    a[0] += x[0]
    a[0] += x[1]


def from_both_ends(a, x):
    a[1] += x[0]
    a[-1] += x[0]


def in_a_loop(a, x):
    for _ in range(3):
        a[0] += x[0]


def two_loops(a, x):
    for i in range(2):
        a[i] += x[0]
    for i in range(2):
        a[i] -= x[1]


def by_numbers_that_repeat(a, x):
    for k in TWICE:
        a[k] += x[0]


def some_and_all(a, x):
    for i in range(2):
        a[i] += x[0]
    a[0] += 1.0


def by_two_helpers(a, x):
    add_both(a, x, 0)
    a[1] += x[0]


def while_true(a, x):
    k = 0
    while k < x[0]:
        a[0] += x[1]
        k += 1


def looked_at(a, x):
    a[0] += x[0]
    if a[0] > 1:
        a[1] += x[1]


def reads_another(a, x):
    a[0] += a[1] * x[0]


def assigned(a, x):
    a[0] = a[0] + x[0]


def times(a, x):
    a[0] *= x[0]


def by_another_name(a, x):
    b = a
    b[0] += x[0]


def whole_row(a, x):
    a += x


def slices(a, x):
    a[:] += x


def by_a_number_that_changes(a, x):
    for k in range(2):
        k = 0
        a[k] += x[0]


def at_a_place_that_is_read(a, x):
    a[int(x[0])] += x[1]


def past_its_end(a, x):
    a[2] += x[0]


def gives_away(a, x):
    keep(a)
    a[0] += x[0]


def keep(a):
    return a[0]


def recurs(a, x):
    recurs(a, x)
    a[0] += x[0]


def many_turns(a, x):
    for _ in range(1000):
        for _ in range(1000):
            a[0] += x[0]


def range_of_mine(a, x, range=lambda n: (0, 0)):
    for k in range(2):
        a[k] += x[k]


def made():
    place = 1

    def in_a_function(a, x):
        a[0] += x[0]
        a[place] += x[1]

    def the_same_place(a, x):
        a[1] += x[0]
        a[place] += x[1]

    return in_a_function, the_same_place


IN_A_FUNCTION, THE_SAME_PLACE = made()
NOT_ONCE = (
    *(twice, from_both_ends, in_a_loop, two_loops, by_numbers_that_repeat, some_and_all),
    *(by_two_helpers, while_true, looked_at, reads_another, assigned, times),
    *(by_another_name, whole_row, slices, by_a_number_that_changes, gives_away, recurs),
    *(at_a_place_that_is_read, past_its_end, many_turns, THE_SAME_PLACE),
)


@pytest.mark.parametrize("kernel", [*ONCE, IN_A_FUNCTION])
def test_one_addition_to_each_component_may_wait(slow, kernel):
    assert may_wait(kernel, rows(slow))
    assert may_wait(numba.njit(kernel), rows(slow))


@pytest.mark.parametrize("kernel", NOT_ONCE)
def test_what_is_added_to_twice_or_looked_at_may_not_wait(slow, kernel):
    assert not may_wait(kernel, rows(slow))


def test_names_that_mean_something_else_prove_nothing(slow):
    more = Arg("range", Access.READ, 1, "f8", is_global=True)
    assert not may_wait(range_of_mine, rows(slow, more))


def test_a_kernel_without_a_source_proves_nothing(slow):
    scope = {}
    exec("def apart(a, x):\n    a[0] += x[0]", scope)
    assert not may_wait(scope["apart"], rows(slow))
    other = type(apart)(twice.__code__, globals(), "apart")
    assert not may_wait(other, rows(slow))


def test_what_is_written_otherwise_may_always_wait(slow):
    """Rows that are not added to are copied to a chunk and back."""
    table = {MAP: np.zeros((1, 1), int)}
    args = (Arg("w", Access.RW, 2), Arg("u", Access.READ, 2, "f8", MAP, (0,)))
    plan = slow.plan({"cells": 1, "p": 1}, table, [Loop("l", "cells", args)])["l"]
    assert may_wait(looked_at, rows_of(plan.loop, slots(plan)))


# ---------------------------------------------------------------- in which type
HEAD = """\
import math
import numpy as np

FLOAT, INT, LOW = 0.1, 3, np.float32(2)


def half(v):
    return 0.5 * v


def one(v):
    if v > 0:
        return 1
    return v


def of_row(r, k):
    return r[k] - 1.5

"""
SINGLE = (
    *("a[0] += x[0]", "a[0] += 0.1 * x[1]", "a[0] -= x[0] / FLOAT", "a[1] += -x[0]"),
    *("a[0] += math.sqrt(x[0])", "a[0] += x[0] ** 2", "a[0] += LOW", "a[1] += 0.5"),
    *("v = x[0]; v = v * x[1]; a[0] += v", "a[0] += half(x[0])", "a[0] += of_row(x, 1)"),
    *("u, v = x[0], -x[1]; a[0] += max(u, v, 0.1)", "a[0] += x[0] if x[1] > 1 else 0.3"),
    *("s = 0.0; s += x[0]; s -= x[1]; a[1] -= s", "a[0] += np.float32(3) * x[0]"),
    "for k in range(len(a)): a[k] += abs(x[k])",
)
DOUBLE = (
    *("a[0] += x[0] * 3", "a[0] += INT * x[0]", "a[0] += math.pi", "a[0] += one(x[0])"),
    *("s = 0; s += x[0]; a[0] += s / 3", "a[0] += x[0] ** 0.5", "a[0] += len(x) / 3"),
    *("u, v = 0.1, 0.2; a[0] += u", "a[0] += (0.1, 0.2)[0]", "a[0] += np.float64(0.1)"),
    *("v = x[0] / 3 if x[0] > 1 else INT; a[0] += v",),
)
WHOLE = ("a[0] += 1", "a[0] -= x[0] * INT", "a[0] += max(x[0], 3)", "a[1] += x[0] // 2")
FRACTION = ("a[0] += x[0] / 2", "a[0] += 0.5", "a[0] += math.sqrt(x[0])", "a[0] += half(3)")


def written(folder, texts):
    """Kernels in a module of their own, so that they have a source."""
    text = HEAD
    for i, one in enumerate(texts):
        body = one.replace("; ", "\n    ")
        text += f"\n\ndef kernel{i}(a, x):\n    {body}\n"
    path = folder / "written.py"
    path.write_text(text)
    scope = {"__name__": "written"}
    exec(compile(text, str(path), "exec"), scope)
    return {one: scope[f"kernel{i}"] for i, one in enumerate(texts)}


def gains_by_waiting(kernel, dtype, read):
    """Whether sums that begin from nothing are others than sums in place, as numba adds."""
    single = dtype == read == "f4"
    jit = fresh(kernel, lambda function, options: numba.njit(function), single)
    rng = np.random.default_rng(5)
    for _ in range(400):
        x = (rng.random(2) * 9 + 1).astype(read)
        start = (rng.normal(size=2) * 50).astype(dtype)
        in_place, beside = start.copy(), np.full(2, -0.0).astype(dtype)
        jit(in_place, x)
        jit(beside, x)
        if in_place.tobytes() != (start + beside).tobytes():
            return True
    return False


@pytest.mark.parametrize(
    ("dtype", "read", "right", "wrong"),
    [
        ("f4", "f4", SINGLE, DOUBLE),
        ("f4", "f8", (), SINGLE[:4]),
        ("f4", "i4", (), ("a[0] += x[0] / 3",)),
        ("i4", "i8", WHOLE, FRACTION),
        ("i4", "f8", (), ("a[0] += x[0]",)),
    ],
)
def test_what_is_added_in_another_type_may_not_wait(
    slow, tmp_path, dtype, read, right, wrong
):
    kernels = written(tmp_path, (*right, *wrong))
    given = rows(slow, dtype=dtype, read=read)
    proved = {text for text, kernel in kernels.items() if may_wait(kernel, given)}
    assert proved == {*right}
    other = {t for t, kernel in kernels.items() if gains_by_waiting(kernel, dtype, read)}
    # some are the same by chance
    assert other <= {*wrong}
    assert 2 * len(other) > len(wrong)


def test_whole_numbers_of_eight_bytes_without_a_sign_are_added_as_floats(slow, tmp_path):
    kernel = written(tmp_path, ["a[0] += 1"])["a[0] += 1"]
    assert not may_wait(kernel, rows(slow, dtype="u8", read="i4"))
    assert may_wait(kernel, rows(slow, dtype="u4", read="i4"))


def test_functions_of_single_numbers_are_single():
    """What the table says is what numba does."""
    for function in SINGLE_OF_SINGLE:
        for count in (1, 2):
            names = "xy"[:count]
            compiled = numba.njit(
                eval(f"lambda {','.join(names)}: f({','.join(names)})", {"f": function})
            )
            try:
                compiled.compile((numba.float32,) * count)
            except numba.TypingError:
                continue
            assert compiled.nopython_signatures[0].return_type == numba.float32


# ---------------------------------------------------------------- where
def test_an_element_that_reaches_a_point_twice(slow):
    args = (
        Arg("a", Access.INC, 1, "f8", MAP, (0, 1)),
        Arg("b", Access.INC, 1, "f8", MORE, (0,)),
    )
    tables = {MAP: np.array([[0, 1], [1, 2], [2, 0]]), MORE: np.array([[0], [1], [2]])}
    sizes = {"cells": 3, "p": 3, "q": 3}
    plan = slow.plan(sizes, tables, [Loop("l", "cells", args)])["l"]
    given = rows_of(plan.loop, slots(plan))
    assert reaches_apart(given, plan.tables)
    tables[MAP][1] = 2
    plan = slow.plan(sizes, tables, [Loop("l", "cells", args)])["l"]
    assert not reaches_apart(given, plan.tables)


def test_the_syntax_of_a_code_is_read_once(monkeypatch):
    """All loops of a kernel share it; another code of the same name has its own."""

    def kernel(a):
        a[0] += 1.0

    first, its_code = definition_of(kernel), kernel.__code__

    def kernel(a):
        a[0] += 2.0

    assert ast.unparse(definition_of(kernel)).endswith("a[0] += 2.0")
    assert ast.unparse(first).endswith("a[0] += 1.0")
    monkeypatch.setattr(inspect, "getsource", None)
    kernel.__code__ = its_code
    assert definition_of(kernel) is first
