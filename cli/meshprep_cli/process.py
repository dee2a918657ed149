"""The process that runs a command: its messages, streams and signals.

The process is the program's own, or that of a caller of :func:`main`. Ctrl-C and SIGTERM
end a run between two stages at the latest, and leave nothing behind.
"""

import atexit
import gc
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from meshprep_runtime._numba.compiling import LOCKED_MODULES
from meshprep_runtime.errors import MeshprepWarning, printable

# Letters of a word of a message, and of a message.
LONGEST_WORD, LONGEST_MESSAGE = 300, 3000


def shortened(text: str, most: int) -> str:
    """Printable text of at most so many letters: of longer text the middle is left out."""
    text = printable(text)
    if len(text) <= most:
        return text
    # Both ends tell names apart: paths begin alike, and end alike.
    left = f"...({len(text):,} letters)..."
    head = (most - len(left) + 1) // 2
    return f"{text[:head]}{left}{text[len(text) - (most - len(left) - head) :]}"


def one_line(text: str) -> str:
    """A message as one line, long names shortened."""
    # Texts of other libraries have line ends, which would look like several messages.
    line = " ".join(shortened(word, LONGEST_WORD) for word in text.split())
    return shortened(line, LONGEST_MESSAGE)


def tell(line: str) -> None:
    """Print a line on standard error; where that fails, as on a full disk, work goes on."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)  # noqa: T201


_own = threading.Event()


def own_process() -> None:
    """Prepare a process that runs one command: hardly any search for garbage (0.3 s).

    BLAS starts no threads, which wait busily, once for NumPy and once for SciPy, for work
    that no command has. Warnings of meshprep are a line each, as errors are.
    """
    if not _own.is_set():
        _own.set()
        # Arrays are no garbage to search for; at the end the system frees them faster.
        gc.set_threshold(1_000_000)
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        atexit.register(gc.freeze)
        warnings.showwarning = _show_warning


def _show_warning(
    message: Warning | str, category: type[Warning], *where: Any, **more: Any
) -> None:
    if issubclass(category, MeshprepWarning):
        tell(f"meshprep: warning: {one_line(str(message))}")
    else:
        _of_python(message, category, *where, **more)


_of_python = warnings.showwarning


@contextmanager
def streams() -> Iterator[None]:
    """Let the null device stand for standard streams that are closed, as by ``>&-``.

    In the program's own process descriptors, too: otherwise the next file that is opened
    takes the number, and gets what libraries in C print there.
    """
    if _own.is_set():
        for number in range(3):
            _open_descriptor(number)
    # Python has None in place of a stream whose descriptor was closed when it started.
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
        opened = os.open(os.devnull, os.O_RDWR)
        # The lowest free number is another where several streams are closed.
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)


def keep_freed() -> None:
    """Keep the memory that arrays free, where the process is the program's own."""
    if _own.is_set():
        from meshprep.kernels.parallel import keep_freed

        keep_freed()


_asked = threading.Event()


@contextmanager
def stoppable() -> Iterator[None]:
    """Both signals raise KeyboardInterrupt, so that temporary files are removed."""
    _asked.clear()
    if threading.current_thread() is not threading.main_thread():
        # The caller deals with signals.
        yield
        return
    before = {n: signal.signal(n, _stop) for n in (signal.SIGINT, signal.SIGTERM)}
    # In a callback of C an exception cannot be raised: Python reports it and goes on. That
    # a run was stopped is known already; all else is reported as before.
    hook = sys.unraisablehook

    def report_others(unraisable: Any) -> None:
        if unraisable.exc_type is not KeyboardInterrupt:
            hook(unraisable)

    sys.unraisablehook = report_others
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
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
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(LOCKED_MODULES):
            # An exception here may leave a lock taken: later then, by what ends a sleep,
            # too.
            again = threading.Timer(
                0.02, _INTERRUPT, (threading.get_ident(), signal.SIGINT)
            )
            again.daemon = True
            again.start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


# Of a thread; where there is none, in the thread that calls it.
_INTERRUPT = getattr(signal, "pthread_kill", lambda _, number: signal.raise_signal(number))
