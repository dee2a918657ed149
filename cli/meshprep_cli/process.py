"""The process that runs a command: the program's own, or that of a caller of :func:`main`."""

import atexit
import gc
import threading

_own = threading.Event()


def own_process() -> None:
    """The process runs one command and ends: without a last search for garbage, of 0.2 s."""
    if not _own.is_set():
        _own.set()
        atexit.register(gc.freeze)


def keep_freed() -> None:
    """Keep the memory that arrays free, where the process is the program's own."""
    if _own.is_set():
        from meshprep.kernels.memory import keep_freed

        keep_freed()
