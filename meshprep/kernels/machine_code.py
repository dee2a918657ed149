"""Where the machine code of kernels lies: in the user's folder, and in packages built for it.

Files are named by a digest of all that went into them (:mod:`compiled`), folders by what they were
compiled for: Python, the compiler and the processor. ``make wheel`` puts a folder into the package
that is compiled for a family of processors. Where that is not of this Python, this compiler or this
family, kernels are compiled on this machine.
"""

import hashlib
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core import config

from meshprep_runtime.kernel.analysis import reach, stable
from meshprep_runtime.kernel.cache import DIGEST_BYTES, read_sealed, root, write_sealed

# Machine code that nothing has used for so long is removed.
UNUSED_DAYS = 60
DAY = 86_400
SHIPPED = Path(__file__).with_name("shipped")
# What packages are compiled for, by machine, in LLVM's words; and what that needs.
FAMILIES = {"x86_64": "x86-64-v3", "aarch64": "generic"}
NEEDED = {
    "x86-64-v3": "avx avx2 bmi bmi2 cx16 f16c fma lzcnt movbe popcnt sahf sse4.2 xsave",
    "generic": "neon",
}


class Shipped(NamedTuple):
    """The folder that came with the package, and the family of processors it is for."""

    folder: Path
    family: str


def folder() -> Path | None:
    """Where this process keeps machine code; None where ``MESHPREP_CACHE_DIR`` is empty."""
    place = root()
    return None if place is None else place / "kernels" / _compiled_for(processor())


def processor() -> str:
    """The processor that is compiled for: this one, or that of ``NUMBA_CPU_NAME``."""
    return str(getattr(config, "CPU_NAME", None) or llvm.get_host_cpu_name())


@cache
def shipped() -> Shipped | None:
    """What came with the package and fits this machine."""
    family = FAMILIES.get(platform.machine(), "")
    place = SHIPPED / _compiled_for(family)
    asked = getattr(config, "CPU_NAME", None)
    if not place.is_dir() or asked not in (None, family):
        return None
    own = llvm.get_host_cpu_features()
    fits = all(own.get(feature) for feature in NEEDED[family].split())
    return Shipped(place, family) if fits else None


def why_not_shipped() -> str | None:
    """Why machine code that came with the package is not used; None where it is, or none came."""
    found = sorted(p.name for p in SHIPPED.glob("*")) if SHIPPED.is_dir() else []
    if not found or shipped() is not None:
        return None
    return (
        f"this installation was compiled for {', '.join(found)}, and this machine is "
        f"{_compiled_for(processor())}: its kernels were compiled here, once"
    )


@cache
def digest(function: Callable[..., Any]) -> str:
    """A digest of the code of a kernel, and of every function and value that it reaches."""
    known = stable(reach(function))
    if known is None:
        raise AssertionError(f"{function}: reaches something that another process cannot name")
    return hashlib.sha256(repr(known).encode()).hexdigest()[:32]


@cache
def sources() -> str:
    """A digest of all modules of meshprep."""
    found = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


def load(name: str, shipped_name: str) -> Iterator[bytes]:
    """The contents of the files of these names, that of the package first."""
    if (came := shipped()) is not None:
        with suppress(OSError):
            yield (came.folder / shipped_name).read_bytes()[DIGEST_BYTES:]
    if (place := folder()) is not None:
        with suppress(OSError):
            content = read_sealed(place / name)
            _mark_used(place / name)
            if content is not None:
                yield content


def save(name: str, content: bytes) -> None:
    """Keep a file, where there is a folder that can be written to."""
    place = folder()
    with suppress(OSError):
        if place is not None:
            write_sealed(place / name, content)
            _forget_unused(place.parent)


def _compiled_for(cpu: str) -> str:
    """What machine code depends on besides the kernels, as the name of a folder."""
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    numpy = ".".join(np.__version__.split(".")[:2])
    compiler = f"numba-{numba.__version__}-llvmlite-{llvmlite.__version__}"
    return f"{python}-{compiler}-numpy-{numpy}-{cpu}"


def _mark_used(path: Path) -> None:
    with suppress(OSError):
        if time.time() - path.stat().st_mtime > DAY:
            path.touch()


@cache
def _forget_unused(place: Path) -> None:
    """Once a process that compiles."""
    for path in place.glob("*/*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > UNUSED_DAYS * DAY:
                path.unlink() if path.is_file() else shutil.rmtree(path)
