"""The source of a kernel against its loop: what no sample may reach is found, right code passes."""

import ast
import itertools
import re
import textwrap

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_loops import INC, READ, RW, WRITE, edge_plan

from meshprep_runtime import Access, Arg, Loop, MeshprepError, ParLoop
from meshprep_runtime.kernel.lint import lint_kernel

LOOP = Loop(
    "flux",
    "edges",
    (
        Arg("q", READ, 2, "f8", "edges->cells", (0, 1)),
        Arg("r", INC, 2, "f8", "edges->cells", (0, 1)),
        Arg("w", WRITE, 2),
        Arg("v", RW, 1),
        Arg("high", Access.MAX, 1, is_global=True),
    ),
)
HEAD = "def kernel(q1, q2, r1, r2, w, v, high):\n"
RIGHT = "w[0] = w[1] = 0"


TUPLES_HEAD = "def kernel(q, r, w, v, high):\n"
ROW_OF_TUPLE = {"q1": "q[0]", "q2": "q[1]", "r1": "r[0]", "r2": "r[1]"}


def found(body, **numbers):
    """The findings in a kernel of rows; in one of tuples of rows they are the same."""
    findings = findings_in(HEAD, body, numbers)
    in_tuples = findings_in(TUPLES_HEAD, with_tuples(body), numbers)
    assert in_tuples == [f._replace(what=with_tuples(f.what)) for f in findings]
    return findings


def findings_in(head, body, numbers):
    text = head + textwrap.indent(textwrap.dedent(body), "    ")
    return lint_kernel(ast.parse(text).body[0], LOOP, numbers)


def with_tuples(text):
    return re.sub(r"\b[qr][12]\b", lambda match: ROW_OF_TUPLE[match[0]], text)


@pytest.mark.parametrize(
    ("body", "line", "row", "what"),
    [
        # In a branch: what the sample of check_access sees only where the data lead there.
        ("if q1[0] > 9:\n    r1[0] = q1[1]", 3, "'r', index 0", "sets a row that is only add"),
        ("if q1[0] > 9:\n    r2[1] = v[0]", 3, "'r', index 1", "sets a row that is only added"),
        ("if q1[0] > 9:\n    r2[1] *= 2", 3, "'r', index 1", "does more than add"),
        ("if q1[0] > 9:\n    r1[0] += r1[1]", 3, "'r', index 0", "reads a row that is only"),
        ("if q1[0] > 9:\n    r1[0] = 2 * r1[0]", 3, "'r', index 0", "reads a row that is only"),
        ("if q1[0] > 9:\n    q2[1] = 0", 3, "'q', index 1", "sets a row that is only read"),
        ("if q1[0] > 9:\n    v[0] = w[1]", 3, "'w'", "reads component 1 of a 'write' row bef"),
        ("if q1[0] > 9:\n    w[0] += 1", 3, "'w'", "reads component 0 of a 'write' row before"),
        ("if q1[0] > 9:\n    high[0] = v[0]", 3, "'high'", "with access 'max' whatever it was"),
        ("if q1[0] > 9:\n    q1[2 * ONE]", 3, "'q', index 0", "reaches component 2 of a row"),
        ("for i in range(3):\n    r1[i] += 1", 3, "'r', index 0", "reaches component 2 of a"),
        ("while q1[0] > 9:\n    r1[0] = 1", 3, "'r', index 0", "sets a row that is only added"),
        ("a, r1[0] = q1[0], q1[1]", 2, "'r', index 0", "sets a row that is only added to"),
        ("if r1[0] > 0:\n    v[0] = 1", 2, "'r', index 0", "reads a row that is only added"),
    ],
)  # fmt: skip
def test_a_fault_is_found_with_its_line(body, line, row, what):
    (finding,) = found(f"{body}\n{RIGHT}", ONE=1)
    assert finding.line == line
    assert finding.row == f"argument {row}"
    assert what in finding.what
    assert finding.certain == (not body.startswith("if r1[0]"))


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("w[0] = 1", "component 1 is not set: set it, or use rw"),
        (
            "w[0] = 1\nif v[0] > 2:\n    w[1] = 2",
            "component 1 is not set where v[0] > 2 is F",
        ),
        (
            "if v[0] > 2:\n    return\nw[:] = 0",
            "component 0 is not set where v[0] > 2 is True",
        ),
        (
            "for i in range(TWO):\n    if v[0] > i:\n        break\n    w[i] = 0",
            "is not set",
        ),
    ],
)
def test_what_a_path_leaves_unset_is_said_with_the_path(body, what):
    findings = found(body, TWO=2)
    assert what in findings[0].what
    assert findings[0].certain == ("where" not in findings[0].what)


@pytest.mark.parametrize(
    "body",
    [
        "t = r1[0]\nt += q1[0]\nr1[0] = t\nw[:] = 0",
        "r1[0] = q1[0] + r1[0] - q2[1]\nw[:] = 0",
        "if q1[0] > 0:\n    w[0] = 1\nif q1[0] > 0:\n    v[0] = w[0]\nw[:] = 2",
        "w[0] = 1\nw[1] = w[0]",
        "for i in range(2):\n    w[i] = 0\n    if i == 1:\n        v[0] = w[0] + w[1]",
        "for i in range(int(q1[0])):\n    w[i] = 0",
        "if q1[0] > high[0]:\n    high[0] = q1[0]\nw[:] = 0",
        "high[0] = max(high[0], q1[0])\nw[:] = 0",
        "fill(w)\nv[0] = w[0]",
        "if q1[0] > 0:\n    w[:] = 0\nelse:\n    w[0] = w[1] = 1",
        "w[-1], w[-2] = q1.size, len(r1)",
        "r1 = r1 + 1",
        "if q1[0] < 0:\n    raise ValueError\nw[:] = 1",
    ],
)
def test_right_code_and_code_that_is_not_followed_pass(body):
    assert found(body) == []


STEPS = {
    "w0": ("w[0] = 1", {"set": 0}),
    "w1": ("w[1] = q1[0]", {"set": 1}),
    "u0": ("v[0] = w[0]", {"read": 0}),
    "u1": ("v[0] += w[1]", {"read": 1}),
    "add": ("r1[0] += 1", {}),
    "set": ("r1[0] = q1[0]", {"wrong": True}),
}


@settings(deadline=None, max_examples=effort.examples(60))
@given(
    st.lists(
        st.tuples(st.sampled_from(["", "a", "b"]), st.sampled_from([*STEPS])), max_size=6
    )
)
def test_branches_are_as_running_every_combination(lines):
    """Against a run of the statements for each way that the two tests can go."""
    tests = {"a": "q1[0] > 0", "b": "q1[1] > 0"}
    body = []
    for test, step in lines:
        code = STEPS[step][0]
        body.append(f"if {tests[test]}:\n    {code}" if test else code)
    reads, unset, wrong = set(), False, False
    for a, b in itertools.product([True, False], repeat=2):
        was_set, line = set(), 1
        for test, step in lines:
            line += 1 + bool(test)
            if not {"": True, "a": a, "b": b}[test]:
                continue
            effect = STEPS[step][1]
            wrong |= "wrong" in effect
            if "read" in effect and effect["read"] not in was_set:
                reads.add(line)
            was_set |= {effect["set"]} if "set" in effect else set()
        unset |= was_set != {0, 1}
    findings = found("\n".join(body) or "pass")
    assert {f.line for f in findings if "before it is set" in f.what} == reads
    assert any("is not set" in f.what for f in findings) == unset
    assert any("only added to" in f.what for f in findings) == wrong


def test_check_access_finds_what_no_element_does(slow):
    def kernel(x, y1, y2):
        y1[0] += x[0]
        if x[0] > 1e300:
            y2[0] = y2[0] * 0.5

    args = Arg("x", READ, 1), Arg("y", INC, 1, "f8", "edges->cells", (0, 1))
    loop = ParLoop(kernel, edge_plan(slow, *args))
    arrays = {s.name: np.ones(s.shape, s.dtype) for s in loop.slots}
    with pytest.raises(
        MeshprepError, match=r"'y', index 1: kernel .*test_lint.py:\d+ reads a"
    ):
        loop.check_access(**arrays)


def test_a_row_past_a_tuple_is_found():
    (finding,) = findings_in(
        TUPLES_HEAD, f"{RIGHT}\nfor i in range(3):\n    r[i][0] += 1", {}
    )
    assert finding.line == 4
    assert finding.what == "takes row 2 of a tuple of 2 rows: count from 0"


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(2):\n    r[i][0] += q[1 - i][0]",
        "fill(r)\nfill(r[0])",
        "k = int(v[0])\nr[k][0] += q[k][0]",
        "for row in r:\n    row[0] += 1",
        "first, second = q\nr[0][0] += first[0]",
        "r = q",
    ],
)
def test_right_uses_of_tuples_and_unfollowed_ones_pass(body):
    assert findings_in(TUPLES_HEAD, f"{RIGHT}\n{body}", {}) == []


def test_another_number_of_parameters_is_one_finding():
    (finding,) = lint_kernel(ast.parse("def f(a, b): pass").body[0], LOOP, {})
    assert finding.what == "the kernel has 2 parameters, but the loop 7 rows of 5 arguments"
