"""How much of a test runs: all of it, or the sample that ``make test`` asks for.

The Makefile asks by MESHPREP_TESTS=sample; pytest alone and CI run all.
"""

import os
from collections.abc import Collection, Iterable
from typing import Any

import pytest

SAMPLE = os.environ.get("MESHPREP_TESTS") == "sample"


def examples(count: int) -> int:
    """How many random examples are tried now: so many, or a quarter in a sample."""
    return max(count // 4, 4) if SAMPLE else count


def first(values: Iterable[Any], count: int = 1) -> list[Any]:
    """Values of a parameter, of which all but the first are slow: CI alone runs them."""
    values = list(values)
    return some(values, values[:count])


def some(values: Iterable[Any], often: Collection[Any]) -> list[Any]:
    """Values of a parameter, of which all but those of ``often`` are slow."""
    found = []
    for value in values:
        words = value if isinstance(value, tuple) else (value,)
        marks = () if value in often else pytest.mark.slow
        found.append(pytest.param(*words, marks=marks))
    return found
