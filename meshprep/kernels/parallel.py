"""Kernels on all cores: each thread calls them, without the GIL, on pieces of the work.

A parallel loop inside a kernel would take several times as long to compile, and its threads
would wait busily for each other. The threads here sleep.
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

# Settings of glibc's malloc.h.
_ARENA_MAX = -8
_MMAP_MAX = -4
_TRIM_THRESHOLD = -1
# Values with which a process keeps freed memory: one arena for all threads, no array in a
# mapping of its own, and no return of the end of the heap.
_KEEPING = {_ARENA_MAX: 1, _MMAP_MAX: 0, _TRIM_THRESHOLD: 2**31 - 1}

_keeps = threading.Event()


def keep_freed() -> None:
    """Let the whole process keep the memory of freed arrays; only programs call this.

    The system clears each page that it gives out, which takes a quarter of the time of a
    large mesh. A malloc other than glibc's is left as it is.
    """
    _keeps.set()
    with suppress(AttributeError, OSError, TypeError):
        for setting, value in _KEEPING.items():
            ctypes.CDLL(None).mallopt(setting, value)


def give_back() -> None:
    """Return freed memory to the system, unless the process keeps it."""
    if not _keeps.is_set():
        with suppress(AttributeError, OSError, TypeError):
            ctypes.CDLL(None).malloc_trim(0)


# Items, and entries of rows, that are worth threads: fewer are done before threads start.
WORTHWHILE = 1 << 16
WORTHWHILE_IN_ROWS = 1 << 14


def pieces(n: int, least: int = WORTHWHILE, most: int = 1 << 16) -> list[tuple[int, int]]:
    """``range(n)`` in a piece for each core, at most ``most``; whole below ``least``."""
    count = min(thread_count(), most) if n >= least else 1
    bounds = np.arange(count + 1) * n // count
    return [*pairwise(bounds.tolist())]


def in_pieces(
    kernel: Callable[..., Any],
    n: int,
    *args: Any,
    least: int = WORTHWHILE,
    most: int = 1 << 16,
) -> list[Any]:
    """The results of ``kernel(*args, begin, end)`` for :func:`pieces` of ``range(n)``."""
    return each(kernel, [(*args, *piece) for piece in pieces(n, least, most)])


def rows_in_pieces(
    kernel: Callable[..., Any], offset: NDArray[np.int64], *args: Any
) -> list[Any]:
    """The results of ``kernel(*args, offset)`` for pieces of the rows of an offset.

    There is a piece for each core; rows with few entries are one piece.
    """
    rows = offset.size - 1
    cuts = pieces(rows, 1 if offset[-1] >= WORTHWHILE_IN_ROWS else rows + 1)
    return each(kernel, [(*args, offset[begin : end + 1]) for begin, end in cuts])


def each(kernel: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The results of ``kernel(*task)`` for every task, in order, on all cores.

    There are :func:`thread_count` threads, with the calling one. All tasks that began have
    ended when this returns, or raises the error of the first task that has one.
    """
    # thread_count takes 10 us
    count = thread_count() if len(tasks) > 1 else 1
    threads = min(len(tasks), count)
    if threads < 2:
        return [*starmap(kernel, tasks)]
    results = [None] * len(tasks)
    waiting = deque(range(len(tasks)))
    errors = dict[int, BaseException]()

    def work() -> None:
        # Each thread has a number of threads of its own.
        set_num_threads(count)
        with suppress(IndexError):
            while True:
                k = waiting.popleft()
                try:
                    results[k] = kernel(*tasks[k])
                except BaseException as error:
                    errors[k] = error
                    waiting.clear()

    helpers = [_kept_threads(os.getpid()).submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        waiting.clear()
        # A helper that did not begin, since all threads were busy, is cancelled.
        for helper in helpers:
            if not helper.cancel():
                helper.result()
    if errors:
        raise errors[min(errors)]
    return results


@cache
def _kept_threads(process: int) -> ThreadPoolExecutor:
    """Threads of a process that stay from call to call: starting one takes 0.1 ms."""
    return ThreadPoolExecutor(core_count())


def take(values: NDArray[Any], index: NDArray[np.int32]) -> NDArray[Any]:
    """``values[index]`` for an index in range, on all cores."""
    out = np.empty((len(index), *values.shape[1:]), values.dtype)

    def rows(begin: int, end: int) -> None:
        piece_index = index[begin:end]
        piece = out[begin:end]
        for chunk in chunks(end - begin):
            np.take(values, piece_index[chunk], axis=0, out=piece[chunk], mode="clip")

    each(rows, pieces(len(index)))
    return out


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """The results of functions that need not wait for each other.

    All that began have ended when this returns or raises the first error. Their memory
    adds up, since they run at the same time.
    """
    results = each(call, [(work,) for work in works])
    give_back()
    return results


def on_fewer_cores(work: Callable[..., Any], *args: Any) -> Any:
    """``work(*args)`` on half of the cores, while more urgent work runs on the others."""
    threads = get_num_threads()
    set_num_threads(max(1, thread_count() // 2))
    try:
        return work(*args)
    finally:
        set_num_threads(threads)
