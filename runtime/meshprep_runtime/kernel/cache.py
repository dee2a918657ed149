"""Compiled loops on disk: found by the content of everything that went into them.

numba's own cache looks at the source of one function and so misses changed globals and helpers.
Here the text of a loop lies in a folder named by a digest of the kernel with all it reaches,
the options, the types and the versions: what changes gets another folder, and nothing is stale.
numba then keeps its machine code beside that file, by processor and version.

Machine code is run as it is. So it is taken only from folders that belong to the user and that
nobody else can write to, and only where it is, byte for byte, what was sealed when it was made.
"""

import hashlib
import os
import shutil
import stat
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import MeshprepWarning

FOLDER = "MESHPREP_CACHE_DIR"
MOST_KEPT = 400
# The time of every source, in seconds since 1970.
MADE = 1.0e9
SEAL = "seal"


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

    numba needs the file for its cache, and the module in ``sys.modules`` to load from it. What it
    finds beside the file is as it was sealed.
    """
    place = folder()
    if place is None:
        return None
    if not (place / name).is_dir():
        forget_oldest()
    if (path := source(place / name, text)) is None:
        return None
    made = ModuleType(f"meshprep_loop_{name}")
    made.__file__ = str(path)
    sys.modules[made.__name__] = made
    return made


def source(place: Path, text: str) -> Path | None:
    """A file with this text in its own folder, without unsealed code beside it; None for none."""
    path = place / "loop.py"
    try:
        if not path.is_file():
            write_whole(path, text.encode())
        if path.stat().st_mtime != MADE:
            # numba's index holds this time: machine code that comes from elsewhere fits
            os.utime(path, (MADE, MADE))
        if not os.access(place, os.W_OK) or not is_private(place):
            return None
        code = place / "__pycache__"
        make_private(code)
        if not _is_sealed(place):
            with Lock(place):
                # by now another process may have sealed what it was writing
                if not _is_sealed(place):
                    shutil.rmtree(code, ignore_errors=True)
    except OSError:
        return None
    return path


def seal(place: Path) -> None:
    """Write down what the machine code in a folder of :func:`source` is."""
    with suppress(OSError):
        write_whole(place / SEAL, _state(place))


def _is_sealed(place: Path) -> bool:
    state = _state(place)
    try:
        return not state or (place / SEAL).read_bytes() == state
    except OSError:
        return False


def _state(place: Path) -> bytes:
    """The digest and name of each file of machine code."""
    files = sorted((place / "__pycache__").glob("*.nb[ci]"))
    lines = (f"{hashlib.sha256(f.read_bytes()).hexdigest()} {f.name}\n" for f in files)
    return "".join(lines).encode()


@contextmanager
def beside_its_source() -> Iterator[None]:
    """Let functions keep machine code beside their source, not in NUMBA_CACHE_DIR."""
    import numba

    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = ""
    try:
        yield
    finally:
        config.CACHE_DIR = before


def compiled(
    function: Any, signature: tuple[Any, ...], kept: ModuleType | None, options: dict[str, Any]
) -> Any:
    """The machine code of a function of a module for these types, from disk where it is there."""
    import numba

    with beside_its_source():
        made: Any = numba.jit(cache=kept is not None, **options)(function)
    made.compile(signature)
    if kept is not None and made.stats.cache_misses:
        seal(Path(str(kept.__file__)).parent)
    return made.overloads[signature].entry_point


def compiled_native(
    function: Any, signature: Any, kept: ModuleType | None, options: dict[str, Any]
) -> Any:
    """The same for a function that is called by its address (numba's ``cfunc``)."""
    import numba

    with beside_its_source():
        made: Any = numba.cfunc(signature, cache=kept is not None, **options)(function)
    if kept is not None and not made.cache_hits:
        seal(Path(str(kept.__file__)).parent)
    return made


class Lock:
    """Keeps other processes out of a folder until the context ends, where locks are known."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = -1
        with suppress(OSError, ImportError):
            self._file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            import fcntl

            fcntl.flock(self._file, fcntl.LOCK_EX)

    def __enter__(self) -> "Lock":
        return self

    def __exit__(self, *error: object) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


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
    """Whole or not at all, also where the power fails; two processes write the same."""
    make_private(path.parent)
    temporary = path.with_name(f".{os.getpid()}.{id(content)}.tmp")
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def make_private(place: Path) -> None:
    """Make a folder, and those that lead to it, so that only the user can write to them."""
    if not place.is_dir():
        make_private(place.parent)
        place.mkdir(mode=0o700, exist_ok=True)


def is_private(place: Path) -> bool:
    """Whether a folder below :func:`root` is the user's alone; warns once if not."""
    top = root()
    for path in (place, *place.parents):
        with suppress(FileNotFoundError):
            found = path.stat()
            own = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
            shared = os.name == "posix" and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if not own or shared:
                _warn_of(path)
                return False
        if path == top:
            break
    return True


@cache
def _warn_of(path: Path) -> None:
    warnings.warn(
        f"{path}: others can write to this folder, so no machine code is taken from it and "
        f"all is compiled anew: chmod -R go-w it, or set {FOLDER} to a folder of your own",
        MeshprepWarning,
        stacklevel=2,
    )


@cache
def versions() -> tuple[str, ...]:
    """Python and the compiler."""
    import llvmlite
    import numba
    import numpy as np

    return (sys.version, np.__version__, numba.__version__, llvmlite.__version__)


def processor() -> str:
    """The processor that is compiled for: this one, or that of ``NUMBA_CPU_NAME``."""
    from llvmlite import binding
    from numba.core import config

    return str(getattr(config, "CPU_NAME", None) or binding.get_host_cpu_name())


def compiled_for(cpu: str) -> str:
    """Python, the compiler and a processor, as the name of a folder of machine code."""
    _, numpy, numba, llvmlite = versions()
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    numpy = ".".join(numpy.split(".")[:2])
    return f"{python}-numba-{numba}-llvmlite-{llvmlite}-numpy-{numpy}-{cpu}"


@cache
def _own_code() -> tuple[str, ...]:
    """The code of this runtime that ends up inside a loop."""
    here = Path(__file__).parent
    own = [
        (here / f"{n}.py").read_bytes()
        for n in ("../cpu/build", "analysis", "../cpu/source/vectors")
    ]
    return tuple(hashlib.sha256(content).hexdigest() for content in own)
