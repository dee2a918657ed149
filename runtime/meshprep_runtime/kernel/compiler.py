"""Turns errors of numba about kernels into messages of one line."""

import re
from collections.abc import Callable, Sequence

from .._numba import messages
from ..errors import MeshprepError
from ..types.loops import Loop
from .bind import Slot

# The file of a generated text, which the user has not written.
WRITTEN = re.compile(r"[0-9a-f]{32}.loop\.py$|<")


def compile_error(
    kernel: Callable[..., None], loop: Loop, slots: Sequence[Slot], error: Exception
) -> MeshprepError:
    """The error to raise for an error of numba."""
    text = messages.text_of(error)
    name = getattr(kernel, "__name__", "kernel")
    where = _where(kernel, text)
    if messages.changes_what_it_reads(text):
        read = ", ".join(s.name for s in slots if not s.written)
        return MeshprepError(
            f"kernel '{name}' changes an argument that loop '{loop.name}' only "
            f"reads{where}: declare another access for it, or leave it ({read}) alone"
        )
    reason = messages.reason_in(text) or type(error).__name__
    return MeshprepError(f"kernel '{name}' does not compile{where}: {reason}")


def _where(kernel: Callable[..., None], text: str) -> str:
    """The first line of a user's file that numba names, else the first of the kernel."""
    for file, line in messages.places_in(text):
        if not WRITTEN.search(file):
            return f" at {file}:{line}"
    code = getattr(kernel, "__code__", None)
    if code is not None:
        return f" at {code.co_filename}:{code.co_firstlineno}"
    return ""
