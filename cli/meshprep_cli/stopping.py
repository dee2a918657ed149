"""Ctrl-C and SIGTERM end a run between two stages at the latest, and leave nothing behind."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_asked = threading.Event()


@contextmanager
def stoppable() -> Iterator[None]:
    """Both signals raise KeyboardInterrupt, so that temporary files are removed."""
    _asked.clear()
    if threading.current_thread() is not threading.main_thread():
        # the caller deals with signals
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, _stop) for number in numbers]
    hook = sys.unraisablehook
    sys.unraisablehook = lambda it: None if it.exc_type is KeyboardInterrupt else hook(it)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def asked() -> bool:
    """Whether one of the signals has come."""
    return _asked.is_set()


def stop_if_asked() -> None:
    """Raise KeyboardInterrupt once more where a callback of a library has swallowed it."""
    if asked():
        raise KeyboardInterrupt


def _stop(number: int, frame: FrameType | None) -> None:
    _asked.set()
    raise KeyboardInterrupt
