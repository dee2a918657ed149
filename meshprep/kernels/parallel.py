"""Running kernels that release the interpreter on several pieces of work, on all cores.

A parallel loop inside a kernel takes several times as long to compile, and its threads wait busily
for each other; these sleep.
"""

import ctypes
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import pairwise, starmap
from operator import call
from typing import Any

import numpy as np
from numba import get_num_threads, set_num_threads
from numpy.typing import NDArray

from meshprep_runtime.cpu.pool import core_count, thread_count
from meshprep_runtime.types.maps import chunks

# Numbers of glibc's malloc.h, and what keeps memory: one arena for all threads, no array that is
# mapped alone, and an end of the heap that stays.
_ARENA_MAX, _MMAP_MAX, _TRIM_THRESHOLD = -8, -4, -1
_KEEPING = {_ARENA_MAX: 1, _MMAP_MAX: 0, _TRIM_THRESHOLD: 2**31 - 1}

_keeps = threading.Event()


def keep_freed() -> None:
    """Let the whole process keep what arrays free, which is for programs to decide.

    The system clears each page that it gives out, which takes a quarter of the time of a large
    mesh. Where malloc is not glibc's, it stays as it is.
    """
    _keeps.set()
    with suppress(AttributeError, OSError, TypeError):
        for setting, value in _KEEPING.items():
            ctypes.CDLL(None).mallopt(setting, value)


def give_back() -> None:
    """Return what threads have freed to the system, unless it is kept."""
    if not _keeps.is_set():
        with suppress(AttributeError, OSError, TypeError):
            ctypes.CDLL(None).malloc_trim(0)


# Less work than this is done faster than threads start.
WORTHWHILE, WORTHWHILE_IN_ROWS = 1 << 16, 1 << 14


def pieces(n: int, least: int = WORTHWHILE, most: int = 1 << 16) -> list[tuple[int, int]]:
    """``range(n)`` in a piece a core, at most ``most``; in one where n is below ``least``."""
    count = min(thread_count(), most) if n >= least else 1
    return [*pairwise((np.arange(count + 1) * n // count).tolist())]


def in_pieces(
    kernel: Callable[..., Any], n: int, *given: Any, least: int = WORTHWHILE, most: int = 1 << 16
) -> list[Any]:
    """The results of ``kernel(*given, begin, end)`` for all :func:`pieces` of ``range(n)``."""
    return each(kernel, [(*given, *piece) for piece in pieces(n, least, most)])


def rows_in_pieces(kernel: Callable[..., Any], offset: NDArray[np.int64], *given: Any) -> list[Any]:
    """The results of ``kernel(*given, offset)`` for the rows of an offset, in a piece a core.

    Rows with few entries are one piece.
    """
    rows = offset.size - 1
    cuts = pieces(rows, 1 if offset[-1] >= WORTHWHILE_IN_ROWS else rows + 1)
    return each(kernel, [(*given, offset[begin : end + 1]) for begin, end in cuts])


def each(kernel: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The results of ``kernel(*task)`` for every task, in order, on :func:`thread_count` threads.

    The calling thread is one of these. All tasks that began have ended when this returns or raises
    the error of the first task that has one.
    """
    # numba takes 10 us to tell its number of threads
    count = thread_count() if len(tasks) > 1 else 1
    threads = min(len(tasks), count)
    if threads < 2:
        return [*starmap(kernel, tasks)]
    found, waiting = [None] * len(tasks), deque(range(len(tasks)))
    errors = dict[int, BaseException]()

    def work() -> None:
        # the number is one of each thread
        set_num_threads(count)
        with suppress(IndexError):
            while True:
                k = waiting.popleft()
                try:
                    found[k] = kernel(*tasks[k])
                except BaseException as error:
                    errors[k] = error
                    waiting.clear()

    helpers = [_kept_threads(os.getpid()).submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        waiting.clear()
        # one that did not begin, as all threads were busy, is not waited for
        for helper in helpers:
            if not helper.cancel():
                helper.result()
    if errors:
        raise errors[min(errors)]
    return found


@cache
def _kept_threads(process: int) -> ThreadPoolExecutor:
    """Threads of this process that stay from call to call: a new one takes 0.1 ms."""
    return ThreadPoolExecutor(core_count())


def take(values: NDArray[Any], index: NDArray[np.int32]) -> NDArray[Any]:
    """``values[index]`` for an index in range, on all cores."""
    out = np.empty((len(index), *values.shape[1:]), values.dtype)

    def rows(begin: int, end: int) -> None:
        own, found = index[begin:end], out[begin:end]
        for some in chunks(end - begin):
            np.take(values, own[some], axis=0, out=found[some], mode="clip")

    each(rows, pieces(len(index)))
    return out


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """The results of functions that need not wait for each other.

    All that began have ended when this returns or raises the first error. What they take beside
    their results they take at the same time.
    """
    found = each(call, [(work,) for work in works])
    give_back()
    return found


def on_fewer_cores(work: Callable[..., Any], *given: Any) -> Any:
    """``work(*given)``, found on half of the cores: what runs beside it is urgent."""
    threads = get_num_threads()
    set_num_threads(max(1, thread_count() // 2))
    try:
        return work(*given)
    finally:
        set_num_threads(threads)
