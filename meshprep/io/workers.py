"""Reading a file on all cores."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..kernels.parallel import each, pieces


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
