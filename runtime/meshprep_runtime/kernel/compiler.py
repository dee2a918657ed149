"""What a user can do about a kernel that does not compile, in one line."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from ..bind import Slot
from ..errors import MeshprepError, MissingPackageError
from ..loops import Loop

# In the words of numba and of numba-cuda.
READ_ONLY = ("Cannot modify readonly array", "setitem(readonly array")
NOISE = re.compile(
    r"^(Failed in|During:|File |There are|>>>|- Of which|Overload|With arg|\^|<source)"
)
PLACE = re.compile(r"^During: .* at (.+) \((\d+)\)$", re.MULTILINE)


def compile_error(
    kernel: Callable[..., None], loop: Loop, slots: Sequence[Slot], error: Exception
) -> MeshprepError:
    """The error to raise for one of numba's."""
    text = str(error)
    name = getattr(kernel, "__name__", "kernel")
    found = PLACE.search(text)
    where = f" at {found[1]}:{found[2]}" if found else ""
    if any(words in text for words in READ_ONLY):
        read = ", ".join(s.name for s in slots if not s.written)
        return MeshprepError(
            f"kernel '{name}' changes an argument that loop '{loop.name}' only reads{where}: "
            f"declare another access for it, or leave it ({read}) alone"
        )
    lines = (line.strip() for line in text.splitlines())
    reason = next((line for line in lines if line and not NOISE.match(line)), type(error).__name__)
    return MeshprepError(f"kernel '{name}' does not compile{where}: {reason}")


def import_numba() -> Any:
    """numba; raises MissingPackageError where it is not installed."""
    try:
        import numba
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            "running loops needs numba: pip install 'meshprep-runtime[cpu]'"
        ) from error
    return numba
