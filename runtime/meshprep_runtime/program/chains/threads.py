"""Work on all threads: kernels without the lock of the interpreter, and NumPy."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

from ...cpu.cores import thread_count

R = TypeVar("R")
# A piece of fewer elements is not worth a thread.
LEAST = 1 << 14


def on_threads(work: Callable[..., R], *items: Iterable[Any]) -> list[R]:
    """What ``map`` gives, several items at a time."""
    given = list(zip(*items, strict=True))
    many = min(thread_count(), len(given))
    if many < 2:
        return [work(*one) for one in given]
    with ThreadPoolExecutor(many) as pool:
        return list(pool.map(lambda one: work(*one), given))


def pieces(n: int) -> list[slice]:
    """A range cut into as many pieces as there are threads; fewer where they would be small."""
    many = max(min(thread_count(), n // LEAST), 1)
    return [slice(a, b) for a, b in pairwise(n * i // many for i in range(many + 1))]
