"""Kernels whose source shows that they reach past a row, or set it against its access."""

import numba
import numpy as np
import pytest
from python_loops import INC, READ, RW, WRITE, edge_plan

from meshprep_runtime import Access, Arg, MeshprepError, ParLoop
from meshprep_runtime.kernel.misuse import check_rows

MIN = Access.MIN
THREE = 3
SIZES = (1, 2, 3)


@pytest.fixture(scope="module")
def plan(slow):
    return edge_plan(
        slow,
        Arg("x", READ),
        Arg("y", INC, 1, "f8", "edges->cells", (0, 1)),
        Arg("w", WRITE, 2),
        Arg("v", RW, 1),
        Arg("least", MIN, 1, is_global=True),
    )


def add_second(row, value):
    row[1] += value


def put(row, value):
    row[0] = value


def first_of(row, place):
    return row[place]


def past_the_row(x, y1, y2, w, v, least):
    w[:] = 0
    y1[1] += x[0]


def before_the_row(x, y1, y2, w, v, least):
    w[:] = 0
    w[-3] = 1


def reads_past(x, y1, y2, w, v, least):
    w[:] = x[1]


def by_a_constant(x, y1, y2, w, v, least):
    w[THREE - 1] = 0


def by_a_table(x, y1, y2, w, v, least):
    w[SIZES[1]] = 0


def in_a_loop(x, y1, y2, w, v, least):
    for i in range(THREE):
        w[i] = 0


def in_two_loops(x, y1, y2, w, v, least):
    for i in range(2):
        for j in range(2):
            w[i + j] = 0


def a_slice(x, y1, y2, w, v, least):
    w[:] = 0
    y2[1:2] += x[0]


def in_a_helper(x, y1, y2, w, v, least):
    w[:] = 0
    add_second(y1, x[0])


def by_a_helper_that_reads(x, y1, y2, w, v, least):
    w[:] = first_of(v, 1)


def if_the_data_say_so(x, y1, y2, w, v, least):
    w[:] = 0
    if x[0] > 0:
        v[1] = 0


def sets_what_is_added_to(x, y1, y2, w, v, least):
    w[:] = 0
    y1[0] = x[0]


def sets_by_a_local(x, y1, y2, w, v, least):
    w[:] = 0
    f = 2 * x[0]
    y2[:] = f


def sets_in_a_helper(x, y1, y2, w, v, least):
    w[:] = 0
    put(y1, 2.0)


def multiplies(x, y1, y2, w, v, least):
    w[:] = 0
    y1[0] *= 2


def sets_what_is_read(x, y1, y2, w, v, least):
    w[:] = 0
    x[0] = 0


def renames(x, y1, y2, w, v, least):
    w[:] = 0
    y1 = y1 + x


def renames_two(x, y1, y2, w, v, least):
    w[:] = 0
    y1, y2 = y1 + x, y2 - x


def renames_a_least(x, y1, y2, w, v, least):
    w[:] = 0
    least = min(least[0], x[0])


def never_sets(x, y1, y2, w, v, least):
    v[0] = x[0]


def sets_the_least(x, y1, y2, w, v, least):
    w[:] = 0
    least[0] = x[0]


def adds_to_the_least(x, y1, y2, w, v, least):
    w[:] = 0
    least[0] += x[0]


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            past_the_row,
            "'y', index 0: kernel 'past_the_row' .* component 1 of a row of dim 1",
        ),
        (before_the_row, "'w': .* reaches component -3 of a row of dim 2"),
        (reads_past, "'x': .* reaches component 1 of a row of dim 1"),
        (by_a_constant, "'w': .* reaches component 2 of a row of dim 2"),
        (by_a_table, "'w': .* reaches component 2 of a row of dim 2"),
        (in_a_loop, "'w': .* reaches component 2 of a row of dim 2"),
        (in_two_loops, "'w': .* reaches component 2 of a row of dim 2"),
        (a_slice, "'y', index 1: .* takes components 1:2 of a row of dim 1"),
        (in_a_helper, "'y', index 0: kernel 'add_second' .* component 1 of a row of dim 1"),
        (by_a_helper_that_reads, "'v': kernel 'first_of' .* component 1 of a row of dim 1"),
        (if_the_data_say_so, "'v': .* reaches component 1 of a row of dim 1"),
        (sets_what_is_added_to, "'y', index 0: .* sets a row that is only added to"),
        (sets_by_a_local, "'y', index 1: .* sets a row that is only added to"),
        (
            sets_in_a_helper,
            "'y', index 0: kernel 'put' .* sets a row that is only added to",
        ),
        (multiplies, "'y', index 0: .* does more than add"),
        (sets_what_is_read, "'x': .* sets a row that is only read"),
        (renames, r"'y', index 0: .* gives the name 'y1' another value.* y1\[0\] \+="),
        (renames_two, "'y', index 0: .* gives the name 'y1' another value"),
        (renames_a_least, "'least': .* gives the name 'least' another value"),
        (never_sets, "'w': .* never sets a row with access 'write'"),
        (sets_the_least, r"'least': .* write least\[0\] = min\(least\[0\], ...\)"),
        (adds_to_the_least, "'least': .* sets a global with access 'min'"),
    ],
)
def test_a_kernel_is_refused_when_its_loop_is_made(plan, kernel, message):
    with pytest.raises(MeshprepError, match=f"^loop 'loop': argument {message}") as error:
        ParLoop(kernel, plan)
    assert f"{__file__}:" in str(error.value)
    assert "\n" not in str(error.value)


def test_constants_of_closures_are_followed_as_they_are(plan):
    def make(place):
        def kernel(x, y1, y2, w, v, least):
            w[:] = 0
            w[place] = 1

        return kernel

    check_rows(make(1), plan)
    with pytest.raises(MeshprepError, match="component 2 of a row of dim 2"):
        check_rows(make(2), plan)


def test_a_constant_that_changed_is_seen(plan, monkeypatch):
    monkeypatch.setitem(globals(), "THREE", 2)
    check_rows(in_a_loop, plan)
    monkeypatch.setitem(globals(), "THREE", 3)
    with pytest.raises(MeshprepError, match="component 2 of a row of dim 2"):
        check_rows(in_a_loop, plan)


def leaves_by_the_counter(x, y1, y2, w, v, least):
    for i in range(8):
        if i >= x[0]:
            break
        w[i] = 0


def leaves_by_the_data(x, y1, y2, w, v, least):
    for i in range(8):
        if w[0] > x[0]:
            break
        w[i] = 0


def goes_by_the_length(x, y1, y2, w, v, least):
    for i in range(3):
        if i < len(w):
            w[i] = 0
    if v.size > 1:
        v[1] = 0
    if w.shape[0] == 3:
        w[2] = 0


def goes_by_a_constant(x, y1, y2, w, v, least):
    w[:] = 0
    if THREE == 2:
        w[2] = 0
        y1[0] = 5
    w[1 if THREE > 2 else 2] = 1


def asks_before(x, y1, y2, w, v, least):
    for i in range(3):
        if i < x[0] and w[i] > 0:
            w[i] = 0


def adds_in_its_own_words(x, y1, y2, w, v, least):
    w[0] = w[1] = 0
    y1[0] = y1[0] + x[0]
    put(y2, y2[0] + x[0])
    f = y1[0]
    f += x[0]
    y1[0] = f
    least[0] = min(least[0], x[0])
    if x[0] < least[0]:
        put(least, x[0])


def names_what_it_reads_anew(x, y1, y2, w, v, least):
    x = x[0]
    x += 1
    w += x
    y1 += x
    y1 -= w[:1]


def takes_a_view(x, y1, y2, w, v, least):
    w = w[:]
    w[0] = 1
    v = v.reshape((1, 1))
    v[0, 0] = 2


def counts_by_itself(x, y1, y2, w, v, least):
    i = 0
    while i < 2:
        w[i] = 0
        i += 1
    for k in range(4):
        w[k % 2] = k


def copies_to_a_longer_array(x, y1, y2, w, v, least):
    a = np.zeros(8)
    for i in range(8):
        a[i] = x[0]
    w[:] = a[:2]


def fills_by_a_method(x, y1, y2, w, v, least):
    w.fill(0.0)


@pytest.mark.parametrize(
    "kernel",
    [
        leaves_by_the_counter,
        leaves_by_the_data,
        goes_by_the_length,
        goes_by_a_constant,
        asks_before,
        adds_in_its_own_words,
        names_what_it_reads_anew,
        takes_a_view,
        counts_by_itself,
        copies_to_a_longer_array,
        fills_by_a_method,
    ],
)
def test_a_right_kernel_is_not_refused(plan, kernel):
    ParLoop(kernel, plan)


def test_a_constant_of_a_closure_that_comes_later(plan):
    def kernel(x, y1, y2, w, v, least):
        w[:] = 0
        w[place] = 1

    ParLoop(kernel, plan)
    place = 2
    with pytest.raises(MeshprepError, match="component 2 of a row of dim 2"):
        ParLoop(kernel, plan)


def in_python(x):
    with numba.objmode(v="float64"):
        v = x
    return v


@numba.jit(forceobj=True)
def as_objects(x):
    return x


@pytest.mark.parametrize(
    ("helper", "what"), [(in_python, "objmode"), (as_objects, "forceobj")]
)
def test_kernels_that_run_python_are_refused(plan, helper, what):
    def kernel(x, y1, y2, w, v, least):
        w[:] = helper(x[0])

    message = f"^kernel 'kernel' uses {what}.* of numba in '{helper.__name__}'"
    with pytest.raises(MeshprepError, match=message):
        ParLoop(kernel, plan)


def test_kernels_without_a_source_are_left_to_the_sample(plan):
    scope = {}
    exec("def kernel(x, y1, y2, w, v, least):\n    w[9] = 0", scope)
    check_rows(scope["kernel"], plan)
