"""The process that runs a command: the program's own, or that of a caller of :func:`main`."""

import atexit
import gc
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_own = threading.Event()


def own_process() -> None:
    """The process runs one command and ends: without a last search for garbage, of 0.2 s."""
    if not _own.is_set():
        _own.set()
        atexit.register(gc.freeze)


@contextmanager
def streams() -> Iterator[None]:
    """Let the null device stand for standard streams that are closed, as by ``>&-``.

    In the program's own process descriptors, too: otherwise the next file that is opened takes the
    number, and gets what libraries in C print there.
    """
    for number in range(3) if _own.is_set() else ():
        _open_descriptor(number)
    missing = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name) is None]
    with open(os.devnull, "r+", encoding="utf-8") as nowhere:
        for name in missing:
            setattr(sys, name, nowhere)
        try:
            yield
        finally:
            for name in missing:
                setattr(sys, name, None)


def _open_descriptor(number: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        found = os.open(os.devnull, os.O_RDWR)
        if found != number:
            os.dup2(found, number)
            os.close(found)


def keep_freed() -> None:
    """Keep the memory that arrays free, where the process is the program's own."""
    if _own.is_set():
        from meshprep.kernels.memory import keep_freed

        keep_freed()
