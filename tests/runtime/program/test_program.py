"""A program on one rank: the same results as bare loops, counted and timed."""

import json

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep_runtime import Access, Arg, Loop, MeshprepError, ParLoop, Program
from meshprep_runtime.program.timings import COLUMNS, LoopTimes, Timings

ARGS = (
    Arg("q", Access.READ, 1, "f8", "edges->cells", (0, 1)),
    Arg("res", Access.INC, 1, "f8", "edges->cells", (0, 1)),
    Arg("total", Access.INC, 1, "f8", is_global=True),
)


def flux(q1, q2, res1, res2, total):
    f = q1[0] - q2[0]
    res1[0] -= f
    res2[0] += f
    total[0] += f * f


@pytest.fixture
def plan(slow):
    grid = slow.quads(5, 4)
    return slow.plan(grid.sizes, grid.tables, [Loop("flux", "edges", ARGS)], (8,))


def test_a_program_runs_what_bare_loops_run(plan):
    program = Program(plan)
    values = np.random.default_rng(0).random((20, 1))
    q, res, total = program.dat("cells", values=values), program.dat("cells"), np.zeros(1)
    loop = program.loop(flux, "flux", strategy="sequential")
    for _ in range(3):
        loop(q=q, res=res, total=total)
    theirs, expected = np.zeros((20, 1)), np.zeros(1)
    for _ in range(3):
        ParLoop(flux, plan["flux"], strategy="sequential")(
            q=values, res=theirs, total=expected
        )
    assert res.values().shape == (20,)  # zeros of one number an element
    np.testing.assert_array_equal(res.values(), theirs[:, 0])
    assert total == expected
    loop(q=values, res=theirs, total=expected)
    assert loop.times.calls == 4


COUNTS = (
    Arg("q", Access.READ, 1, "i8", "edges->cells", (0, 1)),
    Arg("res", Access.INC, 1, "i8", "edges->cells", (0, 1)),
    Arg("scale", Access.READ, 1, "i8", is_global=True),
    Arg("total", Access.INC, 1, "i8", is_global=True),
)


def counted(q1, q2, res1, res2, scale, total):
    res1[0] += scale[0] * q2[0]
    res2[0] += scale[0] * q1[0]
    total[0] += q1[0]


DATS = st.integers(0, 2)
STEPS = st.one_of(
    st.tuples(st.just("call"), DATS, DATS, st.integers(1, 2), st.booleans()),
    st.tuples(st.just("queue"), DATS, DATS, st.integers(1, 2), st.booleans()),
    st.tuples(st.just("array"), DATS),
    st.tuples(st.just("change"), DATS),
)


@settings(max_examples=effort.examples(60), deadline=None)
@given(steps=st.lists(STEPS, max_size=12))
def test_calls_again_see_what_the_dats_are_now(steps, slow):
    grid = slow.quads(5, 4)
    plan = slow.plan(grid.sizes, grid.tables, [Loop("counted", "edges", COUNTS)], (8,))
    left, right = grid.tables["edges->cells"].T
    program = Program(plan)
    loop = program.loop(counted, "counted", strategy="sequential")
    values = np.arange(60).reshape(3, 20)
    dats = [program.dat("cells", dtype="i8", values=v.copy()) for v in values]
    totals, expected = [np.zeros(1, "i8"), program.reduced(0, dtype="i8")], [0, 0]
    for what, at, *more in steps:
        if what == "array":
            dats[at].array = values[at][::-1].copy()
            values[at] = values[at][::-1].copy()
        elif what == "change":
            dats[at].values(write=True)[:] += 1
            values[at] += 1
        else:
            to, scale, reduced = more
            if to == at:
                continue
            args = {
                "q": dats[at],
                "res": dats[to],
                "scale": scale,
                "total": totals[reduced],
            }
            if what == "call":
                loop(**args)
            else:
                with program.chain():
                    loop(**args)
            np.add.at(values[to], left, scale * values[at][right])
            np.add.at(values[to], right, scale * values[at][left])
            expected[reduced] += values[at][left].sum()
    assert loop.times.calls == sum(
        s[0] in ("call", "queue") and s[1] != s[2] for s in steps
    )
    for dat, wanted in zip(dats, values, strict=True):
        np.testing.assert_array_equal(dat.values(), wanted)
    assert [totals[0][0], totals[1].value[0]] == expected


def test_a_call_again_is_refused_where_the_first_would_be(plan):
    program = Program(plan)
    q, res, total = program.dat("cells"), program.dat("cells"), np.zeros(1)
    loop = program.loop(flux, "flux", strategy="sequential")
    for _ in range(2):
        loop(q=q, res=res, total=total)
    version = res.version
    loop(q=q, res=res, total=total)
    assert res.version == version + 1
    res.array.flags.writeable = False
    with pytest.raises(MeshprepError, match="'res' is read-only"):
        loop(q=q, res=res, total=total)
    res.array.flags.writeable = True
    q.dropped = True
    with pytest.raises(MeshprepError, match="dropped"):
        loop(q=q, res=res, total=total)
    with pytest.raises(MeshprepError, match="'total'"):
        loop(q=q, res=res)


def test_what_is_counted(plan):
    program = Program(plan)
    loop = program.loop(flux, "flux", strategy="sequential")
    for _ in range(3):
        loop(q=program.dat("cells"), res=program.dat("cells"), total=np.zeros(1))
    (times,) = program.timings().loops["flux"]
    # 20 cells: q is read, res is read and written
    assert (times.calls, times.useful_bytes) == (3, 20 * 8 * 3)
    assert times.seconds == times.core > 0
    assert times.elements == {"core": 31}


def test_the_table_and_the_json():
    ranks = (
        LoopTimes(
            2,
            0.75,
            0.5,
            0.25,
            0.25,
            other=0.25,
            useful_bytes=500_000_000,
            messages=3,
            sent_bytes=10**6,
        ),
        LoopTimes(2, 3.0, wait=1.0, useful_bytes=500_000_000, messages=3, sent_bytes=10**6),
    )
    timings = Timings({"flux": ranks, "update": (LoopTimes(), LoopTimes())})
    first, second = timings.rows()
    assert first == ("flux", "2", "3.000", "100%", "0.625", "2.000", "0.50", "6", "2.000")
    assert second == ("update", "0", "0.000", "0%", "0.000", "0.000", "-", "0", "0.000")
    lines = str(timings).splitlines()
    assert lines[0].split("  ")[0].strip() == COLUMNS[0]
    assert len(lines) == 3
    told = json.loads(json.dumps(timings.to_json()))["loops"]["flux"]
    assert told["0"]["boundary"] == 0.5
    assert told["1"]["wait"] == 1.0


def test_a_dat_says_who_may_change_it(plan):
    program = Program(plan)
    q = program.dat("cells", 4, "i4")
    with pytest.raises(ValueError, match="read-only"):
        q.values()[0] = 1
    assert q.fresh == {"exec", "halo"}
    q.values(write=True)[3] = 7
    assert q.fresh == set()
    assert q.array[3].tolist() == [7] * 4
    soa = program.dat("cells", 2, values=np.ones((2, 20)), layout="soa")
    assert soa.values().shape == (2, 20)


def test_loops_make_what_they_write_stale(plan):
    program = Program(plan)
    q, res = program.dat("cells"), program.dat("cells")
    program.loop(flux, "flux", strategy="sequential")(q=q, res=res, total=np.zeros(1))
    assert q.fresh == {"exec", "halo"}
    assert res.fresh == set()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"set_name": "sides"}, "there is no set 'sides': choose edges, cells, nodes"),
        ({"layout": "rows"}, "layout 'rows' is unknown: use aos, soa"),
        ({"dtype": "c8"}, "dtype 'c8' is unknown"),
        ({"dtype": "none"}, "dtype 'none' is unknown"),
        ({"dtype": ">f8"}, "dtype '>f8' is unknown"),
        ({"dim": 0}, "dim is 0, must be a whole number from 1"),
        ({"values": [1.0]}, "values is a list, must be an array"),
        (
            {"values": np.zeros((3, 1))},
            r"has values of shape \(3, 1\) and dtype float64, must be",
        ),
        (
            {"values": np.zeros((20, 1), "f4")},
            "must be .* of float64; .* give dim=1, dtype='f4'$",
        ),
        ({"values": np.zeros((20, 4))}, "; for these give dim=4, dtype='f8'$"),
        ({"values": np.zeros((20, 4)), "layout": "soa"}, "of float64$"),
    ],
)
def test_dats_that_do_not_fit(plan, asked, said):
    with pytest.raises(MeshprepError, match=said):
        Program(plan).dat(**{"set_name": "cells", **asked})


def test_calls_that_do_not_fit(plan):
    with pytest.raises(MeshprepError, match=r"plan is a str: pass Plan\.load"):
        Program("square.plan.h5")
    program = Program(plan)
    loop = program.loop(flux, "flux", strategy="sequential")
    nodes, cells, total = program.dat("nodes"), program.dat("cells"), np.zeros(1)
    said = "loop 'flux': argument 'q' is a dat on 'nodes', must be one on 'cells'"
    with pytest.raises(MeshprepError, match=said):
        loop(q=nodes, res=cells, total=total)
    with pytest.raises(MeshprepError, match="argument 'res' is missing"):
        loop(q=cells, total=total)
    with pytest.raises(MeshprepError, match="has loop 'flux' already"):
        program.loop(flux, "flux")


def test_on_a_gpu(plan, device, needs_gxx):
    program = Program(plan)
    values = np.random.default_rng(0).random((20, 1))
    q, res = (
        program.dat("cells", values=device.array(v)) for v in (values, np.zeros((20, 1)))
    )
    expected = np.zeros((20, 1))
    loop = program.loop(flux, "flux")
    for _ in range(2):
        loop(q=q, res=res, total=np.zeros(1))
        ParLoop(flux, plan["flux"])(q=values, res=expected, total=np.zeros(1))
    np.testing.assert_allclose(res.values().get(), expected, atol=1e-14)
    (times,) = program.timings().loops["flux"]
    assert times.calls == 2
    assert times.core > 0
