"""Kernels under the Gmsh reader and writer, against Python's own conversions and dicts."""

import struct
from fractions import Fraction

import effort
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from meshprep.io.gmsh.numbering import (
    distinct,
    distinct_lists,
    distinct_pairs,
    is_range,
    make_lookup,
    merge_copies,
)
from meshprep.io.gmsh.raw import RawCells
from meshprep.io.text.decimal import parse_double, put_double
from meshprep.io.text.tokens import LITTLE, next_int, put_int, take_doubles, take_ints
from meshprep.kernels.compiled import from_python

# Python cannot call helpers as they are.
parse_double, put_double = from_python(parse_double), from_python(put_double)
next_int, put_int = from_python(next_int), from_python(put_int)
take_ints, take_doubles = from_python(take_ints), from_python(take_doubles)

quick = settings(deadline=None, max_examples=effort.examples(200))
decimals = st.builds(
    lambda sign, a, b, e: f"{sign}{a}.{b}{e}",
    st.sampled_from(["", "-", "+"]),
    st.text("0123456789", min_size=1, max_size=24),
    st.text("0123456789", max_size=30),
    st.one_of(st.just(""), st.integers(-400, 400).map(lambda e: f"e{e}")),
)


def bytes_of(text):
    return np.frombuffer(text.encode() if isinstance(text, str) else text, dtype=np.uint8)


@quick
@given(decimals)
@example("9007199254740993.")
@example("2.2250738585072011e-308")
@example("4.9406564584124654e-324")
@example("1.7976931348623158e308")
@example("1.7976931348623159e308")
@example("0.000000000000000000000000000000000000000")
@example("1e-400")
@example("1200000000000000.1253")
def test_parsed_like_python(text):
    value, stop = parse_double(bytes_of(text + " "), 0)
    assert stop == len(text)
    digits = "".join(c for c in text.split("e")[0] if c.isdigit())
    if struct.pack("d", value) != struct.pack("d", float(text)):
        # of numbers with more than 19 digits, those half-way between two doubles but for the rest,
        # which is less than 10^-18 of the number, 0.0091 of the distance of two doubles
        assert len(digits.lstrip("0")) > 19
        assert float(text) in (np.nextafter(value, -np.inf), np.nextafter(value, np.inf))
        double, exact = Fraction(value), Fraction(text)
        assert abs(exact - double) <= Fraction(5091, 10000) * Fraction(
            float(np.spacing(value))
        )


@quick
@given(st.floats())
@example(5e-324)
@example(2.2250738585072014e-308)
@example(1.7976931348623157e308)
@example(9007199254740993.0)
@example(1e23)
@example(-0.0)
def test_written_short_and_exact(x):
    out = np.empty(30, dtype=np.uint8)
    text = out[: put_double(out, 0, x)].tobytes().decode()
    back = float(text)
    assert back == x or (back != back and x != x)
    assert np.signbit(back) == np.signbit(x) or x != x
    # "1e+16" and "1e-07" of Python carry a sign and a zero more; whole numbers a ".0".
    assert len(text) <= max(len(repr(x)), 17)
    value, stop = parse_double(out[: len(text)], 0)
    assert stop == len(text)
    assert value == x or x != x


@pytest.mark.parametrize(
    "text", ["", "-", ".", "e5", "1e", "1e+", "1x", "nano", "in", "--1", "$"]
)
def test_no_numbers(text):
    assert parse_double(bytes_of(text), 0)[1] == -1


@pytest.mark.parametrize("text", ["nan", "-NaN", "inf", "-Inf", "+INF"])
def test_words(text):
    value, stop = parse_double(bytes_of(text), 0)
    assert stop == len(text)
    assert repr(value) == repr(float(text)).lstrip("-") or value == float(text)


@quick
@given(st.lists(st.integers(-(2**31), 2**31 - 1)), st.sampled_from([4, 8]))
def test_whole_numbers_in_every_mode(numbers, width):
    letter = {4: "i", 8: "q"}[width]
    data = bytes_of(struct.pack(f"<{len(numbers)}{letter}", *numbers))
    out = np.empty(len(numbers), dtype=np.int64)
    assert take_ints(data, 0, LITTLE, width, out, 0, len(numbers)) == data.size
    assert out.tolist() == numbers
    assert take_ints(data, 0, LITTLE, width, np.empty(9**4, np.int64), 0, 9**4) < 0
    text = bytes_of(" \r\n".join(map(str, numbers)))
    pos, found = 0, []
    for _ in numbers:
        value, pos = next_int(text, pos)
        found.append(value)
    assert found == numbers
    out = np.empty(21 * len(numbers) + 1, dtype=np.uint8)
    pos = 0
    for x in numbers:
        pos = put_int(out, pos, LITTLE, width, x, 32)
    assert out[:pos].tobytes() == struct.pack(f"<{len(numbers)}{letter}", *numbers)


def test_numbers_too_long_are_none():
    assert next_int(bytes_of("  1234567890123456789"), 0) == (0, -3)
    assert next_int(bytes_of("12.5"), 0)[1] == -1


def test_binary_doubles():
    x = np.array([1.5, -2e300, np.inf])
    out = np.zeros(3)
    assert take_doubles(bytes_of(x.tobytes()), 0, LITTLE, out, 0, 3) == 24
    assert out.tolist() == x.tolist()


numbers = st.lists(
    st.one_of(st.integers(-5, 20), st.integers(-(10**15), 10**15)), max_size=40
)


@quick
@given(numbers, numbers)
def test_lookup_like_a_dict(keys, asked):
    lookup, twice = make_lookup(np.array(keys, dtype=np.int64))
    assert (twice >= 0) == (len(set(keys)) < len(keys))
    if twice >= 0:
        assert keys[twice] in keys[:twice]
    where = {k: i for i, k in reversed(list(enumerate(keys)))}
    found = lookup.find(np.array(asked + keys, dtype=np.int64)).tolist()
    assert found == [where.get(k, -1) for k in asked + keys]


@pytest.mark.parametrize("low", [0, 1, -3])
def test_numbers_in_a_row(low):
    n = 5
    for size in (0, 1, n):
        assert is_range(np.arange(low, low + size), low)
    for wrong in (0, n - 1):
        row = np.arange(low, low + n)
        row[wrong] += 1
        assert not is_range(row, low)


@quick
@given(numbers)
def test_distinct_like_unique(ids):
    values, place, first = distinct(np.array(ids, dtype=np.int64))
    assert values.tolist() == sorted(set(ids))
    assert [values[p] for p in place] == ids
    assert [ids[f] for f in first] == values.tolist()
    assert all(
        ids.index(v) == f for v, f in zip(values.tolist(), first.tolist(), strict=True)
    )


@quick
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-(10**12), 10**12)), max_size=30))
def test_distinct_pairs_like_a_set(rows):
    a, b = (np.array([r[j] for r in rows], dtype=np.int64) for j in (0, 1))
    values, place, first = distinct_pairs(a, b)
    assert sorted(map(tuple, values.tolist())) == sorted(set(rows))
    assert [tuple(values[p]) for p in place] == rows
    assert all(
        rows.index(tuple(v)) == f for v, f in zip(values.tolist(), first, strict=True)
    )


@quick
@given(st.lists(st.lists(st.integers(-2, 2), max_size=4), max_size=30))
def test_distinct_lists_like_a_dict(lists):
    count = np.array([len(x) for x in lists], dtype=np.int64)
    flat = np.array([i for x in lists for i in x], dtype=np.int64)
    found, place = distinct_lists(np.cumsum(count) - count, count, flat)
    assert [list(found[p]) for p in place] == lists
    assert len(set(found)) == len(found)


def slow_merge(rows):
    """Cells as (key, groups), and the cell of every row: the rule itself, row after row."""
    cells, owner = [], []
    for key, group in rows:
        fits = (c for c in cells if group and c[1] and c[0] == key and group not in c[1])
        cell = next(fits, None)
        if cell is None:
            cell = (key, [group] if group else [])
            cells.append(cell)
        else:
            cell[1].append(group)
        owner.append(next(i for i, c in enumerate(cells) if c is cell))
    return cells, owner


@quick
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2), st.integers(0, 2), st.integers(0, 1), st.integers(0, 3)
        ),
        min_size=1,
        max_size=25,
    )
)
def test_copies_merge_like_the_rule(rows):
    table = np.array(rows)
    nodes = np.stack([table[:, 0], table[:, 0] + table[:, 1] + 1], axis=1).astype(np.int32)
    raw = RawCells(1, nodes, np.arange(len(rows)), table[:, 2].copy(), table[:, 3].copy())
    cell, found = merge_copies(raw, np.zeros(len(rows), np.int32))
    cells, owner = slow_merge(
        [((*nodes[i].tolist(), r[2]), r[3]) for i, r in enumerate(rows)]
    )
    assert (list(range(len(rows))) if cell is None else cell.tolist()) == owner
    offset, ids = found.group_offset, found.group_id
    assert [ids[offset[v] : offset[v + 1]].tolist() for v in found.values] == [
        c[1] for c in cells
    ]
