"""Compiled loops on disk: found by the content of everything that went into them.

numba's own cache looks at the source of one function and so misses changed globals and helpers.
Here the text of a loop lies in a folder named by a digest of the kernel with all it reaches,
the options, the types and the versions: what changes gets another folder, and nothing is stale.
numba then keeps its machine code beside that file, by processor and version.
"""

import hashlib
import os
import shutil
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = "MESHPREP_CACHE_DIR"
MOST_KEPT = 400


def root() -> Path | None:
    """Where machine code is kept; None when ``MESHPREP_CACHE_DIR`` is set to nothing.

    That folder, or ``meshprep`` in ``NUMBA_CACHE_DIR``, ``XDG_CACHE_HOME`` or ``~/.cache``. None,
    too, where the user has no home, as in some containers.
    """
    given = os.environ.get(FOLDER)
    if given is not None:
        return Path(given) if given else None
    named = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(named or Path.home() / ".cache") / "meshprep"
    except RuntimeError:
        return None


def folder() -> Path | None:
    """Where compiled loops are kept; None when nothing is."""
    place = root()
    return None if place is None else place / "loops"


def name_of(parts: Sequence[object]) -> str:
    """The digest of what went into a loop, and of this runtime and its compiler."""
    return hashlib.sha256(repr((versions(), _own_code(), *parts)).encode()).hexdigest()[:32]


def module(name: str, text: str) -> ModuleType | None:
    """A module with this text as its file, None where nothing can be kept.

    numba needs the file for its cache, and the module in ``sys.modules`` to load from it.
    """
    place = folder()
    if place is None:
        return None
    path = place / name / "loop.py"
    try:
        if not path.is_file():
            write_whole(path, text.encode())
            forget_oldest()
        if not os.access(path.parent, os.W_OK):
            return None
    except OSError:
        return None
    made = ModuleType(f"meshprep_loop_{name}")
    made.__file__ = str(path)
    sys.modules[made.__name__] = made
    return made


def forget(made: ModuleType) -> None:
    """Remove what is kept for a module of :func:`module`: the next process makes it anew."""
    shutil.rmtree(Path(str(made.__file__)).parent, ignore_errors=True)


def forget_oldest() -> None:
    """Keep the cache small: the loops that were compiled longest ago go first."""
    place = folder()
    try:
        found = sorted(place.iterdir(), key=lambda p: p.stat().st_mtime) if place else []
    except OSError:
        return
    for old in found[:-MOST_KEPT]:
        shutil.rmtree(old, ignore_errors=True)


def write_whole(path: Path, content: bytes) -> None:
    """Whole or not at all; two processes write the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{os.getpid()}.{id(content)}.tmp")
    temporary.write_bytes(content)
    os.replace(temporary, path)


@cache
def versions() -> tuple[str, ...]:
    """Python and the compiler."""
    import llvmlite
    import numba
    import numpy as np

    return (sys.version, np.__version__, numba.__version__, llvmlite.__version__)


@cache
def _own_code() -> tuple[str, ...]:
    """The code of this runtime that ends up inside a loop."""
    here = Path(__file__).parent
    own = [
        (here / f"{n}.py").read_bytes()
        for n in ("../cpu/build", "analysis", "../cpu/vectors", "../cpu/atomics")
    ]
    return tuple(hashlib.sha256(content).hexdigest() for content in own)


def describe_types(types: Sequence[Any]) -> str:
    """The types of a call, as part of a name."""
    return ", ".join(str(t) for t in types)
