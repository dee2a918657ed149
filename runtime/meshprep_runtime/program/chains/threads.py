"""Work on all threads: kernels without the lock of the interpreter, and NumPy."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from ...cpu.cores import thread_count

R = TypeVar("R")


def on_threads(work: Callable[..., R], *items: Iterable[Any]) -> list[R]:
    """What ``map`` gives, several items at a time."""
    given = list(zip(*items, strict=True))
    many = min(thread_count(), len(given))
    if many < 2:
        return [work(*one) for one in given]
    with ThreadPoolExecutor(many) as pool:
        return list(pool.map(lambda one: work(*one), given))
