"""Running a kernel that releases the interpreter on pieces of its work, on all cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from numba import get_num_threads

# Less work than this is done faster than threads start.
WORTHWHILE = 1 << 16


def pieces(n: int) -> list[tuple[int, int]]:
    """``range(n)`` in as many pieces as there are cores; one piece where n is small."""
    count = get_num_threads() if n >= WORTHWHILE else 1
    return [(i * n // count, (i + 1) * n // count) for i in range(count)]


def each(kernel: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The results of ``kernel(*task)`` for every task, in order."""
    if len(tasks) < 2:
        return [kernel(*task) for task in tasks]
    with ThreadPoolExecutor(len(tasks)) as pool:
        return [run.result() for run in [pool.submit(kernel, *task) for task in tasks]]
