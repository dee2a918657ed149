"""What tests of plan files share."""

from dataclasses import replace

import numpy as np
import pytest


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
