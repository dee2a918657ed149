"""Memory that arrays have freed: given back to the system, or kept for the arrays that follow."""

import ctypes
import threading
from contextlib import suppress

# Numbers of glibc's malloc.h, and what keeps memory: one arena for all threads, no array that is
# mapped alone, and an end of the heap that stays.
_ARENA_MAX, _MMAP_MAX, _TRIM_THRESHOLD = -8, -4, -1
_KEEPING = {_ARENA_MAX: 1, _MMAP_MAX: 0, _TRIM_THRESHOLD: 2**31 - 1}

# Less than this, in bytes, is not worth clearing again.
WORTH_GIVING = 1 << 24

_keeps = threading.Event()


class _Usage(ctypes.Structure):
    """What glibc's ``mallinfo2`` tells, in bytes; ``fordblks`` are free."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
            "fordblks", "keepcost",
        )
    ]  # fmt: skip


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
    """Return what threads have freed to the system, unless it is kept; needs glibc 2.33."""
    with suppress(AttributeError, OSError, TypeError):
        libc = ctypes.CDLL(None)
        if not _keeps.is_set() and _free_bytes(libc) >= WORTH_GIVING:
            libc.malloc_trim(0)


def _free_bytes(libc: ctypes.CDLL) -> int:
    if not hasattr(libc, "mallinfo2"):
        return WORTH_GIVING
    usage = libc.mallinfo2
    usage.restype = _Usage
    return int(usage().fordblks)
