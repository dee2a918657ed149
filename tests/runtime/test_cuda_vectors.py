"""Rows of several values, moved at once where they lie together."""

import re
from dataclasses import replace

import effort
import numpy as np
import pytest
from cuda_loops import OFTEN, check

from meshprep_cuda_check.checked import CheckError, run_checked
from meshprep_runtime import Access, Arg, Loop, MeshprepError
from meshprep_runtime.cuda import STRATEGIES, program

ALL_WAYS = [*((name, "colours") for name in STRATEGIES), ("hierarchical", "atomics")]
# Values of a dat, in either direction.
AT_ONCE = re.compile(r"MP_(LOAD|STORE)\(\d+, (\w+ \+ \d+, )?s\d")
ROWS = Loop(
    "rows",
    "elements",
    (
        Arg("d", Access.RW, 4, "f8"),
        Arg("x", Access.READ, 6, "f4", "elements->points", (1, 0)),
        Arg("u", Access.READ, 3, "f8", "elements->points", (0,)),
        Arg("s", Access.READ, 16, "u1"),
        Arg("a", Access.INC, 4, "i4", "elements->points", (0, 1)),
        Arg("b", Access.INC, 4, "f8", "elements->points", (1,)),
        Arg("c", Access.READ, 2, "f8", is_global=True),
        Arg("g", Access.INC, 4, "f4", "elements->points", (1, 0)),
    ),
)


def body(d, x1, x0, u, s, a0, a1, b, c, g1, g0):
    for k in range(4):
        g1[k] += x0[k]
        g0[k] -= s[k]
        a0[k] += int(x1[k + 2]) + s[4 * k]
        a1[k] -= int(x0[k])
        d[k] += u[0] * c[1]
    b[0] += u[1] + c[0]
    b[3] += u[2] * d[3]


@pytest.fixture(scope="module")
def plan(slow):
    rng = np.random.default_rng(4)
    near = np.clip(np.arange(70)[:, None] // 2 + rng.integers(-3, 4, (70, 2)), 0, 39)
    sizes = {"elements": 70, "points": 40}
    return slow.plan(sizes, {"elements->points": near}, [ROWS], (16,))["rows"]


def arrays(plan):
    rng = np.random.default_rng(5)
    found = {}
    for arg in ROWS.args:
        rows = (
            ()
            if arg.is_global
            else (plan.sizes["elements" if arg.map is None else "points"],)
        )
        found[arg.name] = rng.integers(0, 9, (*rows, arg.dim)).astype(arg.dtype)
    return found


def expected(plan, given):
    out = {k: v.copy() for k, v in given.items()}
    points = plan.maps["elements->points"].table
    x, u, c = (given[k] for k in "xuc")
    np.add.at(out["g"], points[:, 1], x[points[:, 0], :4])
    np.subtract.at(out["g"], points[:, 0], given["s"][:, :4].astype("f4"))
    np.add.at(
        out["a"], points[:, 0], (x[points[:, 1], 2:] + given["s"][:, ::4]).astype("i4")
    )
    np.subtract.at(out["a"], points[:, 1], x[points[:, 0], :4].astype("i4"))
    out["d"] += (u[points[:, 0], 0] * c[1])[:, None]
    np.add.at(out["b"][:, 0], points[:, 1], u[points[:, 0], 1] + c[0])
    np.add.at(out["b"][:, 3], points[:, 1], u[points[:, 0], 2] * out["d"][:, 3])
    return out


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize(("strategy", "commit"), effort.some(ALL_WAYS, OFTEN))
def test_the_same_sums(strategy, commit, plan):
    ours = arrays(plan)
    theirs = expected(plan, ours)
    run_checked(program(body, plan, strategy, commit=commit, threads=32), **ours)
    check(ours, theirs)


def test_what_is_moved_at_once(plan):
    made = program(body, plan)
    # d 2 x f8, x 2 x f4, u one by one, s 16 x u1, a 4 x i4, b 2 x f8 twice, the global one by one,
    # g 4 x f4.
    assert made.alignment == (16, 8, 8, 16, 16, 16, 8, 16)
    assert "MP_LOAD(2, v1 + 4, s1, MP_AT(q0, 6) + 4);" in made.text
    assert "MP_STORE(4, s4, MP_AT(p, 4) + 0, v4 + 0);" in made.text
    assert "MP_LOAD(16, r4 + 0, s3, MP_AT(e, 16) + 0);" in made.text
    assert AT_ONCE.search(made.text)
    soa = program(body, plan, layout="soa")
    assert soa.alignment == (8, 4, 8, 1, 4, 8, 8, 4)
    assert not AT_ONCE.search(soa.text)
    added = program(body, plan, "global-atomics")
    assert "MP_ADD_ALL(4, s7, MP_AT(p0_1, 4) + 0, r9 + 0);" in added.text
    # Of other types CUDA adds one at a time.
    assert "MP_ADD(s4, MP_AT(p0_0, 4) + 3, r5[3]);" in added.text
    plain = program(body, plan, vectors=False)
    assert plain.alignment == soa.alignment
    assert not AT_ONCE.search(plain.text)


@pytest.mark.usefixtures("needs_gxx")
def test_arrays_have_to_begin_at_multiples(plan):
    made, ours = program(body, plan), arrays(plan)
    raw = np.zeros(ours["d"].size + 4)
    begin = int(raw.ctypes.data % 16 == 0)
    shifted = raw[begin : begin + ours["d"].size].reshape(-1, 4)
    assert shifted.ctypes.data % 16 == 8
    shifted[:] = ours["d"]
    given = {**ours, "d": shifted}
    theirs = expected(plan, given)
    with pytest.raises(
        MeshprepError, match="'d' does not begin at a multiple of 16 bytes: copy"
    ):
        run_checked(made, **given)
    # The check inside the run finds it, too.
    with pytest.raises(CheckError, match="misaligned: d, index"):
        run_checked(replace(made, alignment=()), **given)
    assert np.array_equal(shifted, ours["d"])
    run_checked(program(body, plan, vectors=False), **given)
    assert np.array_equal(shifted, theirs["d"])
