"""Running a kernel that releases the interpreter on pieces of its work, on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray

# Less work than this is done faster than threads start.
WORTHWHILE = 1 << 16


def pieces(n: int, least: int = WORTHWHILE) -> list[tuple[int, int]]:
    """``range(n)`` in as many pieces as there are cores; one piece where n is below ``least``."""
    count = get_num_threads() if n >= least else 1
    return [(i * n // count, (i + 1) * n // count) for i in range(count)]


def each(kernel: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The results of ``kernel(*task)`` for every task, in order."""
    if len(tasks) < 2:
        return [kernel(*task) for task in tasks]
    with ThreadPoolExecutor(len(tasks)) as pool:
        return [run.result() for run in [pool.submit(kernel, *task) for task in tasks]]


def read_bytes(path: Path) -> NDArray[np.uint8]:
    """All bytes of a file; raises OSError."""
    if not hasattr(os, "preadv"):
        return np.fromfile(path, dtype=np.uint8)
    with path.open("rb", buffering=0) as file:
        data = np.empty(os.fstat(file.fileno()).st_size, dtype=np.uint8)
        tasks = [(file.fileno(), data.data[a:b], a) for a, b in pieces(data.size)]
        complete = sum(each(_read_piece, tasks)) == data.size
    return data if complete else np.fromfile(path, dtype=np.uint8)


def _read_piece(file: int, out: memoryview, start: int) -> int:
    done = 0
    while done < len(out) and (n := os.preadv(file, [out[done:]], start + done)):
        done += n
    return done
