"""Where the machine code of kernels lies: in the user's folder, and in packages built for it.

Each kernel has a folder named by a digest of all that went into it (:mod:`compiled`), below one
named by what it is compiled for: Python, the compiler and the processor. ``make wheel`` packs such
a folder, compiled for a family of processors. Where it is not of this Python, this compiler or this
family, and in other programs than ours, kernels are compiled on this machine.
"""

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from meshprep_runtime.cpu.pool import thread_count
from meshprep_runtime.kernel.analysis import reach, stable
from meshprep_runtime.kernel.cache import compiled_for, processor, root

# Machine code that nothing has used for so long is removed.
UNUSED_DAYS = 60
DAY = 86_400
# The file that says that all kernels of usual runs are there.
USUAL_MADE = "usual"
SHIPPED = Path(__file__).with_name("shipped")
NAMED_TUPLE = re.compile(rb"class \w+\(NamedTuple\):.*?(?=^\S|\Z)", re.M | re.S)


def folder() -> Path | None:
    """Where this process keeps machine code; None where ``MESHPREP_CACHE_DIR`` is empty."""
    place = root()
    return None if place is None else place / "kernels" / compiled_for(processor())


def usual_made() -> bool:
    """Whether what most runs need is compiled, or is not worth other processes."""
    place = folder()
    return place is None or thread_count() < 2 or (place / USUAL_MADE).exists()


def why_not_shipped() -> str | None:
    """Why machine code that came with the package is not used; None where it is, or none came."""
    found, own = sorted(p.stem for p in SHIPPED.glob("*.zip")), compiled_for(processor())
    if not found or own in found:
        return None
    return (
        f"this installation was compiled for {', '.join(found)}, and this machine is {own}: its "
        "kernels are compiled here, once"
    )


@cache
def digest(function: Callable[..., Any]) -> str:
    """A digest of the code of a kernel, and of every function and value that it reaches."""
    known = stable(reach(function))
    if known is None:
        raise AssertionError(f"{function}: reaches something that another process cannot name")
    return hashlib.sha256(repr(known).encode()).hexdigest()[:32]


@cache
def tuples() -> str:
    """A digest of the named tuples of meshprep: their fields, and the order of these."""
    found = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        for definition in NAMED_TUPLE.findall(path.read_bytes()):
            found.update(definition)
    return found.hexdigest()


def mark_used(place: Path) -> None:
    """Keep a kernel's folder for another while."""
    with suppress(OSError):
        if time.time() - place.stat().st_mtime > DAY:
            os.utime(place)


@cache
def forget_unused(place: Path) -> None:
    """Remove what nothing has used for long; once a process that compiles."""
    for path in place.glob("*/*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > UNUSED_DAYS * DAY:
                path.unlink() if path.is_file() else shutil.rmtree(path)
