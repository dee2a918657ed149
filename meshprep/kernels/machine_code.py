"""Folders of the machine code of kernels: the user's, and that of a built package.

Each kernel has a folder named by a digest of all that went into it (:mod:`compiled`), in a
folder named by Python, the compiler and the processor. ``make wheel`` packs such a folder,
compiled for a family of processors. Kernels are compiled on this machine where the packed
folder is not of this Python, this compiler and this family, and in other programs than
ours.
"""

import hashlib
import re
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from meshprep_runtime._numba.installed import processor
from meshprep_runtime.cpu.pool import thread_count
from meshprep_runtime.kernel.analysis import reach, stable
from meshprep_runtime.kernel.cache import DAY, compiled_for, root

# Days after which machine code that nothing has used is removed.
UNUSED_DAYS = 60
# A file that is there once all kernels of usual runs are compiled.
USUAL_MADE = "usual"
# The folder of machine code that came with the package.
SHIPPED = Path(__file__).with_name("shipped")
# The definition of a named tuple in the text of a module.
NAMED_TUPLE = re.compile(rb"class \w+\(NamedTuple\):.*?(?=^\S|\Z)", re.M | re.S)


def folder() -> Path | None:
    """The folder of machine code of this process; None where none can be written to."""
    parent = root()
    if parent is None:
        return None
    return parent / "kernels" / compiled_for(processor())


def usual_made() -> bool:
    """Whether the kernels of most runs are compiled, or are not worth other processes."""
    parent = folder()
    return parent is None or thread_count() < 2 or (parent / USUAL_MADE).exists()


def why_not_shipped() -> str | None:
    """Why the machine code of the package is not used; None if it is, or there is none."""
    shipped_for = sorted(p.stem for p in SHIPPED.glob("*.zip"))
    machine = compiled_for(processor())
    if not shipped_for or machine in shipped_for:
        return None
    return (
        f"this installation was compiled for {', '.join(shipped_for)}, and this machine is "
        f"{machine}: its kernels are compiled here, once"
    )


@cache
def digest(function: Callable[..., Any]) -> str:
    """A digest of the code of a kernel, and of all functions and values it reaches."""
    reached = stable(reach(function))
    if reached is None:
        raise AssertionError(
            f"{function}: reaches something that another process cannot name"
        )
    return hashlib.sha256(repr(reached).encode()).hexdigest()[:32]


@cache
def tuples() -> str:
    """A digest of the named tuples of meshprep: their fields, and the order of these."""
    definitions = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        for definition in NAMED_TUPLE.findall(path.read_bytes()):
            definitions.update(definition)
    return definitions.hexdigest()


@cache
def forget_unused(parent: Path) -> None:
    """Remove machine code that nothing has used for long; once in each process."""
    for path in parent.glob("*/*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > UNUSED_DAYS * DAY:
                path.unlink() if path.is_file() else shutil.rmtree(path)
