"""What an error of numba says, found in its text.

numba's exceptions carry no reason, place or name of a function as attributes, only a
message for a person of many lines; it grows with each function on the way:
https://github.com/numba/numba/issues/4344. All that meshprep reads from it stands here.
"""

import re
from collections.abc import Iterator

# How numba and numba-cuda say that a kernel changes an array that is only read.
_READ_ONLY = ("Cannot modify readonly array", "setitem(readonly array")
# Lines of a message that do not say what is wrong.
_NOISE = re.compile(
    r"^((TypingError: )?Failed in|During:|File |There are|>>>|- Of which|Overload"
    r"|With arg|\^|<source)"
)
# The line of a message that names a file and a line of it.
_PLACE = re.compile(r"^\s*During: .* at (.+) \((\d+)\)$", re.MULTILINE)
# numba colours its messages where colorama is installed.
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# The text calls the kernel through an intrinsic: the error of the kernel follows after the
# message that the intrinsic failed.
_WRAPPED = re.compile(
    r"\A.*?Function\(<intrinsic raises>\).*?raised a specific error:", re.DOTALL
)
# A function of NumPy, as numba writes it.
_UFUNC = re.compile(r"<ufunc '(\w+)'>")


def is_of_numba(error: Exception) -> bool:
    """True for an error about the function that was compiled, not about the disk."""
    import numba

    return isinstance(error, numba.errors.NumbaError)


def text_of(error: Exception) -> str:
    """The message about the kernel, without colours and without the intrinsic around it."""
    return _WRAPPED.sub("", _COLOURS.sub("", str(error)))


def changes_what_it_reads(text: str) -> bool:
    """True where a function stores to an array that it only reads."""
    return any(words in text for words in _READ_ONLY)


def places_in(text: str) -> Iterator[tuple[str, str]]:
    """The (file, line) that a message names, from the outermost function inwards."""
    yield from _PLACE.findall(text)


def reason_in(text: str) -> str:
    """The first line that says what is wrong; empty where there is none."""
    lines = (line.strip() for line in text.splitlines() if line.strip())
    reason = next((line for line in lines if not _NOISE.match(line)), "")
    if reason.endswith("found for signature:"):
        # The types stand on the next line.
        reason = f"{reason} {next(lines, '').removeprefix('>>> ')}"
    return reason


def unknown_ufunc_in(error: Exception) -> str | None:
    """The name of the function of NumPy that a message is about, or None."""
    found = _UFUNC.search(str(error))
    return None if found is None else found[1]
