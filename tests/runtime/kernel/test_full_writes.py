"""Full writes: what the source proves, beside kernels that run on poisoned rows."""

import numpy as np
import pytest

from meshprep_runtime import Access, Arg, Loop
from meshprep_runtime.kernel.full_writes import full_writes, with_full_writes

N = 3
POISONS = (-(2.0**60), 2.0**61)


def loop_over(dim=3):
    return Loop("one", "cells", (Arg("a", Access.READ, dim), Arg("b", Access.WRITE, dim)))


def each(a, b):
    b[0] = a[0]
    b[1], b[2] = a[1], a[2]


def by_range(a, b):
    for k in range(N):
        b[k] = 2 * a[k]


def nested(a, b):
    for i in range(1, 3):
        for k in range(2):
            b[k + 0] = a[k]
            b[i] = a[i]
    b[0] = 1.0


def both_branches(a, b):
    if a[0] > 0.5:
        b[0] = b_of(a)
    else:
        b[0] = 0.0
    b[1] = b[2] = 1.0


def b_of(a):
    return a[0]


def one_branch(a, b):
    b[0] = b[1] = 1.0
    if a[0] > 0.5:
        b[2] = a[2]


def one_component(a, b):
    b[0] = b[1] = a[0]


def reads(a, b):
    b[0] = b[1] = 0.5
    b[2] = b[2] + a[2]


def adds(a, b):
    b[0] = b[1] = b[2] = 0.0
    b[0] += a[0]


def returns(a, b):
    b[0] = b[1] = 0.0
    if a[0] > 0.5:
        return
    b[2] = 1.0


def breaks(a, b):
    for k in range(3):
        if a[k] > 0.5:
            break
        b[k] = a[k]


def moves(a, b):
    for k in range(3):
        b[k] = a[k]
        k = 0


def by_while(a, b):
    k = 0
    while k < a[0]:
        b[0] = b[1] = b[2] = 1.0
        k += 1


def hands_on(a, b):
    fill(b)


def fill(b):
    b[0] = b[1] = b[2] = 0.0


def renames(a, b):
    b = a.copy()
    b[0] = b[1] = b[2] = 1.0


def range_of_mine(a, b, range=lambda n: (0,)):
    for k in range(3):
        b[k] = a[k]


FULL = (each, by_range, both_branches, nested)
NOT_PROVED = (
    *(moves, one_branch, one_component, reads, adds, returns, breaks, by_while),
    *(hands_on, renames, range_of_mine, np.copyto),
)


def sets_all(kernel, rng):
    """Whether two poisons leave no trace, for many rows."""
    for _ in range(50):
        a, left = rng.random(3), []
        for poison in POISONS:
            b = np.full(3, poison)
            kernel(a, b)
            left.append(b)
        if not np.array_equal(*left):
            return False
    return True


@pytest.mark.parametrize("kernel", FULL)
def test_what_is_proved(kernel):
    assert full_writes(kernel, loop_over()) == {"b"}
    assert sets_all(kernel, np.random.default_rng(1))
    found = with_full_writes(loop_over(), kernel)
    assert [a.full for a in found.args] == [False, True]
    assert full_writes(kernel, loop_over(dim=4)) == frozenset()


@pytest.mark.parametrize("kernel", NOT_PROVED)
def test_what_is_not_proved(kernel):
    assert full_writes(kernel, loop_over()) == frozenset()


def test_what_is_not_proved_may_leave_values():
    rng = np.random.default_rng(2)
    left = [k for k in NOT_PROVED if k is not np.copyto and not sets_all(k, rng)]
    assert {one_branch, one_component, reads, returns, breaks, renames} <= set(left)


def test_a_source_that_is_not_the_kernels():
    other = type(each)(one_branch.__code__, globals(), "each")
    assert full_writes(other, loop_over()) == frozenset()
    scope = {}
    exec("def each(a, b):\n    b[0] = b[1] = b[2] = 0.0", scope)
    assert full_writes(scope["each"], loop_over()) == frozenset()


def test_what_is_declared_stays_so():
    declared = Loop("one", "cells", (Arg("b", Access.WRITE, 3, full=True),))
    assert full_writes(fill, declared) == {"b"}
    assert full_writes(np.copyto, declared) == {"b"}
    through = Loop("one", "edges", (Arg("b", Access.WRITE, 3, "f8", "edges->cells", (0,)),))
    assert full_writes(fill, through) == frozenset()


def after_a_matrix(K, b):
    b[0] = b[1] = b[2] = 0.0


def test_a_matrix_is_one_parameter():
    nodes = "cells->nodes"
    matrix = Arg("K", Access.INC, 3, "f8", nodes, (0, 1, 2), columns=nodes)
    loop = Loop("one", "cells", (matrix, Arg("b", Access.WRITE, 3)))
    assert full_writes(after_a_matrix, loop) == {"b"}
