"""Keeps compiled loops on disk, by a digest of all that they depend on.

numba's own cache depends on the source of one function, and so misses changed globals and
helpers. Here the text of a loop lies in a folder named by a digest of the kernel with all
that it reaches, the options, the types and the versions: a change gives another folder, so
that nothing is stale. numba then keeps its machine code beside that file, by processor and
version.

Machine code is run as it is. So it is taken only from folders that belong to the user and
to which no other user can write, and only where its bytes are those that were sealed when
it was made.
"""

import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from .._numba import compiling
from .._numba.installed import cache_beside_source, versions
from ..errors import MeshprepWarning

# The environment variable that names the folder.
FOLDER = "MESHPREP_CACHE_DIR"
# Loops, and notes, that are kept at most.
MOST_KEPT = 400
# Seconds of a day, after which it is noted again that something is used.
DAY = 86_400
# The file with the digests of the machine code.
SEAL = "seal"
# Bytes that a disk must have room for; kernels take less each, and there are many.
ROOM = 1 << 20
# Why a folder takes no machine code in this process.
_refused: dict[Path, str] = {}
# The folder of notes, each an empty folder.
NOTES = "checked"


def root() -> Path | None:
    """The folder of machine code; None where none is kept.

    That is :func:`named_root`, if it takes files; otherwise a warning says once why not.
    """
    place = named_root()
    if place is not None and _takes_files(place):
        return place
    return None


def _takes_files(place: Path) -> bool:
    if place not in _tried:
        _tried.add(place)
        # Try once, with as much room as a loop needs.
        try:
            make_private(place)
            with tempfile.TemporaryFile(dir=place) as file:
                file.write(bytes(ROOM))
        except OSError as error:
            keep_nothing(place, error)
    return place not in _refused


_tried: set[Path] = set()


def keep_nothing(place: Path, error: OSError) -> None:
    """Keep machine code in memory only, from now on; warns that each run compiles anew."""
    if place not in _refused:
        _refused[place] = (error.strerror or str(error)).lower()
        warnings.warn(
            f"{place}: machine code cannot be kept there ({_refused[place]}), so each run "
            f"compiles anew, which takes minutes: mend that, or set {FOLDER} to another "
            "folder",
            MeshprepWarning,
            stacklevel=2,
        )


def why_nothing_is_kept() -> str:
    """Why there is no :func:`root`, in a few words."""
    place = named_root()
    if place is None:
        return f"{FOLDER} is empty"
    return f"{place} takes no files ({_refused.get(place, 'unknown')})"


def named_root() -> Path | None:
    """The folder where machine code is to be kept.

    That is ``MESHPREP_CACHE_DIR``, else ``meshprep`` in ``NUMBA_CACHE_DIR``,
    ``XDG_CACHE_HOME`` or ``~/.cache``. None where ``MESHPREP_CACHE_DIR`` is empty, or the
    user has no home, as in some containers.
    """
    # An empty variable keeps nothing.
    own_folder = os.environ.get(FOLDER)
    if own_folder is not None:
        if own_folder:
            return Path(own_folder)
        return None
    caches = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(caches or Path.home() / ".cache") / "meshprep"
    except RuntimeError:
        return None


def folder() -> Path | None:
    """The folder of compiled loops; None where none are kept."""
    place = root()
    if place is None:
        return None
    return place / "loops"


def digest_of(parts: Sequence[object]) -> str:
    """The digest of all that a loop depends on, with this runtime and its compiler."""
    content = repr((versions(), _own_code(), *parts))
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def module(name: str, text: str) -> ModuleType | None:
    """A module with this text as its file; None where none can be kept.

    numba needs the file for its cache, and the module in ``sys.modules`` to load from it.
    The machine code beside the file is as it was sealed.
    """
    loops = folder()
    if loops is None:
        return None
    if not (loops / name).is_dir():
        forget_oldest(loops)
    path = source(loops / name, text)
    if path is None:
        return None
    mark_used(path.parent)
    loop_module = ModuleType(f"meshprep_loop_{name}")
    loop_module.__file__ = str(path)
    sys.modules[loop_module.__name__] = loop_module
    return loop_module


def source(place: Path, text: str) -> Path | None:
    """A file with this text in a folder, without unsealed machine code beside it.

    None where the folder takes no files, or is not the user's alone.
    """
    path = place / "loop.py"
    try:
        if not path.is_file():
            write_whole(path, text.encode())
        compiling.date_source(path)
        if not os.access(place, os.W_OK) or not is_private(place):
            return None
        code = place / compiling.MACHINE_CODE_FOLDER
        make_private(code)
        if not _is_sealed(place):
            with Lock(place):
                # Another process may have sealed meanwhile what it was writing.
                if not _is_sealed(place):
                    shutil.rmtree(code, ignore_errors=True)
    except OSError:
        return None
    return path


def seal(place: Path) -> None:
    """Write down the digests of the machine code in a folder of :func:`source`."""
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
    folder_of_code = place / compiling.MACHINE_CODE_FOLDER
    files = sorted(folder_of_code.glob(compiling.MACHINE_CODE_FILES))
    lines = (f"{hashlib.sha256(f.read_bytes()).hexdigest()} {f.name}\n" for f in files)
    return "".join(lines).encode()


def compiled(
    function: Any,
    signature: tuple[Any, ...],
    kept: ModuleType | None,
    options: dict[str, Any],
) -> Any:
    """The machine code of a function for these types.

    With the module ``kept`` of the function it is taken from disk, or written there.
    """
    import numba

    with cache_beside_source():
        dispatcher: Any = numba.jit(cache=kept is not None, **options)(function)
    try:
        run = compiling.compiled_function(dispatcher, signature)
    except OSError as error:
        if kept is None:
            raise
        _cannot_keep(kept, error)
        return compiled(function=function, signature=signature, kept=None, options=options)
    if kept is not None and compiling.was_compiled(dispatcher):
        seal(Path(str(kept.__file__)).parent)
    return run


def compiled_native(
    function: Any, signature: Any, kept: ModuleType | None, options: dict[str, Any]
) -> Any:
    """:func:`compiled` for a function that is called by its address (numba's ``cfunc``)."""
    import numba

    try:
        with cache_beside_source():
            decorate: Any = numba.cfunc(signature, cache=kept is not None, **options)
            native = compiling.with_room_for_frames(lambda: decorate(function))
    except OSError as error:
        if kept is None:
            raise
        _cannot_keep(kept, error)
        return compiled_native(
            function=function, signature=signature, kept=None, options=options
        )
    # New code on disk gets a digest, by which damage is seen later.
    if kept is not None and not compiling.came_from_disk(native):
        seal(Path(str(kept.__file__)).parent)
    return native


def _cannot_keep(kept: ModuleType, error: OSError) -> None:
    """Go on without the disk, which did not take the machine code."""
    place = named_root() or Path(str(kept.__file__)).parent
    keep_nothing(place, error)


class Lock:
    """Keeps other processes out of a folder until the context ends.

    Does nothing where the system has no such locks.
    """

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
    """Remove the folder of a module of :func:`module`; the next process makes it anew."""
    shutil.rmtree(Path(str(made.__file__)).parent, ignore_errors=True)


def is_noted(name: str) -> bool:
    """True for a name that :func:`note` has noted, in this process or an earlier one."""
    place = root()
    if place is None or not (place / NOTES / name).is_dir():
        return False
    mark_used(place / NOTES / name)
    return True


def note(name: str) -> None:
    """Note a name on disk, where anything is kept there."""
    place = root()
    if place is not None:
        with suppress(OSError):
            make_private(place / NOTES / name)
            forget_oldest(place / NOTES)


def forget_oldest(place: Path | None) -> None:
    """Remove all folders from a folder of the cache but those that were used last."""
    if place is not None:
        with suppress(OSError):
            keep_used_last(place.iterdir(), MOST_KEPT)


def mark_used(path: Path) -> None:
    """Note that a file or folder of the cache was used, by its time of modification.

    That is written at most once a day, and not where the cache takes no files.
    """
    with suppress(OSError):
        if time.time() - path.stat().st_mtime > DAY:
            os.utime(path)


def keep_used_last(paths: Iterable[Path], most: int) -> None:
    """Remove all files and folders but the ``most`` that were used or made last.

    Other processes may use, make and remove them meanwhile.
    """
    times = {}
    for path in paths:
        with suppress(FileNotFoundError):
            times[path] = path.stat().st_mtime
    by_use = sorted(times, key=lambda path: times[path])
    for path in by_use[:-most]:
        with suppress(OSError):
            # Another process may have begun to use it.
            if path.stat().st_mtime != times[path]:
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, also where the power fails.

    Processes may write it at the same time, with the same content.
    """
    make_private(path.parent)
    temporary = path.with_name(f".{os.getpid()}.{id(content)}.tmp")
    try:
        # Write beside it, wait for the disk, then take the name in one step.
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def make_private(place: Path) -> None:
    """Make a folder, and those that lead to it, so that only the user can write to them."""
    if not place.is_dir():
        make_private(place.parent)
        place.mkdir(mode=0o700, exist_ok=True)


def is_private(place: Path) -> bool:
    """True for a folder that is the user's alone; else warns once.

    Folders above are checked up to :func:`named_root`.
    """
    top = named_root()
    for path in (place, *place.parents):
        with suppress(FileNotFoundError):
            status = path.stat()
            # Machine code that others could have written would run as the user.
            own = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
            shared = os.name == "posix" and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
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


def compiled_for(cpu: str) -> str:
    """Python, the compiler and a processor, as the name of a folder of machine code."""
    _, numpy, numba, llvmlite = versions()
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    numpy = ".".join(numpy.split(".")[:2])
    return f"{python}-numba-{numba}-llvmlite-{llvmlite}-numpy-{numpy}-{cpu}"


@cache
def _own_code() -> tuple[str, ...]:
    """Digests of the modules of this runtime whose code becomes part of a loop."""
    names = (
        "analysis",
        "../_numba/compiling",
        "../_numba/lowering",
        "../_numba/tuples",
        "../cpu/build",
        "../cpu/array_facts",
        "../cpu/source/vectors",
    )
    room = Path(__file__).parent
    own = [(room / f"{name}.py").read_bytes() for name in names]
    return tuple(hashlib.sha256(content).hexdigest() for content in own)
