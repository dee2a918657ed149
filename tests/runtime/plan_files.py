"""What tests of plan files share."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from meshprep_runtime import Access, Arg, Loop


def one_line(error: pytest.ExceptionInfo, *parts: str) -> None:
    """The error is one line and has these parts."""
    text = str(error.value)
    assert "\n" not in text
    assert len(text) < 600
    for part in parts:
        assert part in text


def at(values, index, value):
    """The array with another value at one place."""
    out = np.array(values)
    out.flat[index] = value
    return out


def with_variant(plan, loop="line", **changes):
    """The plan with a loop whose one variant has these other arrays."""
    loop_plan = plan[loop]
    variant = replace(loop_plan.variant(), **changes)
    changed = replace(loop_plan, variants={variant.name: variant}, default=variant.name)
    return replace(plan, loops={loop: changed})


@st.composite
def random_plans(draw):
    """A loop over random maps: several to-sets, points named twice, read and written columns."""
    n = draw(st.integers(1, 14))
    sizes = {"cells": n, "p": draw(st.integers(1, 8)), "q": draw(st.integers(1, 5))}
    tables, args = {}, []
    for to in draw(st.sampled_from([("p",), ("p", "q")])):
        arity = draw(st.integers(1, 3))
        entry = st.integers(0, sizes[to] - 1)
        rows = draw(
            st.lists(
                st.lists(entry, min_size=arity, max_size=arity), min_size=n, max_size=n
            )
        )
        tables[f"cells->{to}"] = np.array(rows, dtype=np.int32)
        columns = tuple(range(draw(st.integers(1, arity))))
        access = draw(st.sampled_from([Access.READ, Access.INC, Access.RW]))
        args.append(Arg(to, access, 1, "i4", f"cells->{to}", columns))
    return sizes, tables, Loop("loop", "cells", tuple(args)), draw(st.integers(1, 6))
