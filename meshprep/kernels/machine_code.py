"""Where the machine code of kernels lies: in the user's folder, and in packages built for it.

Each kernel has a folder named by a digest of all that went into it (:mod:`compiled`), below one
named by what it is compiled for: Python, the compiler and the processor. ``make wheel`` packs such
a folder, compiled for a family of processors. Where it is not of this Python, this compiler or this
family, and in other programs than ours, kernels are compiled on this machine.
"""

import hashlib
import os
import platform
import re
import shutil
import sys
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core import config

from meshprep_runtime.kernel.analysis import reach, stable
from meshprep_runtime.kernel.cache import make_private, root

# Machine code that nothing has used for so long is removed.
UNUSED_DAYS = 60
DAY = 86_400
SHIPPED = Path(__file__).with_name("shipped")
NAMED_TUPLE = re.compile(r"^class \w+\(NamedTuple\):.*?(?=^\S|\Z)", re.M | re.S)
# What packages are compiled for, by machine, in LLVM's words; and what that needs.
FAMILIES = {"x86_64": "x86-64-v3", "aarch64": "generic"}
NEEDED = {
    "x86-64-v3": "avx avx2 bmi bmi2 cx16 f16c fma lzcnt movbe popcnt sahf sse4.2 xsave",
    "generic": "neon",
}


def folder() -> Path | None:
    """Where this process keeps machine code; None where ``MESHPREP_CACHE_DIR`` is empty."""
    place = root()
    return None if place is None else place / "kernels" / _compiled_for(processor())


def processor() -> str:
    """The processor that is compiled for: this one, or that of ``NUMBA_CPU_NAME``."""
    return str(getattr(config, "CPU_NAME", None) or llvm.get_host_cpu_name())


def shipped() -> Path | None:
    """The archive of machine code that came with the package, where it fits this machine."""
    family = FAMILIES.get(platform.machine(), "")
    archive = SHIPPED / f"{_compiled_for(family)}.zip"
    if not archive.is_file() or getattr(config, "CPU_NAME", None) not in (None, family):
        return None
    own = llvm.get_host_cpu_features()
    return archive if all(own.get(feature) for feature in NEEDED[family].split()) else None


def use_shipped() -> None:
    """Compile for the family of processors from now on, and take what came with the package.

    For the program's own process: a caller's kernels are compiled for his processor.
    """
    if (archive := shipped()) is None:
        return
    for name, value in (("CPU_NAME", FAMILIES[platform.machine()]), ("CPU_FEATURES", "")):
        setattr(config, name, value)
        # for the processes that compile
        os.environ[f"NUMBA_{name}"] = value
    if (place := folder()) is None:
        return
    with suppress(OSError), zipfile.ZipFile(archive) as content:
        for name in content.namelist():
            if not (place / name).exists():
                make_private((place / name).parent)
                (place / name).write_bytes(content.read(name))


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
def tuples() -> str:
    """A digest of the named tuples of meshprep: their fields, and the order of these."""
    found = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        for definition in NAMED_TUPLE.findall(path.read_text(encoding="utf-8")):
            found.update(definition.encode())
    return found.hexdigest()


def _compiled_for(cpu: str) -> str:
    """What machine code depends on besides the kernels, as the name of a folder."""
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    numpy = ".".join(np.__version__.split(".")[:2])
    compiler = f"numba-{numba.__version__}-llvmlite-{llvmlite.__version__}"
    return f"{python}-{compiler}-numpy-{numpy}-{cpu}"


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
