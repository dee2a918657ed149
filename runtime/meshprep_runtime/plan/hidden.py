"""Hidden folders for unfinished files, locked while their process lives.

A folder holds a file ``lock``, which the process that made it keeps locked, and a folder ``new``
with the unfinished file. The system lets go of a lock when its process ends, however it ends, so
a folder whose lock can be had belongs to nobody. A lock may count on one host only, so folders
of other hosts stay. Where there are no locks, folders have no file ``lock``, and stay, too.
"""

import os
import shutil
import socket
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:
    # Windows.
    fcntl = None  # type: ignore[assignment]

PREFIX = ".meshprep-"
_LOCK, _NEW, _UNLOCKED = "lock", "new", "lock.new"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@contextmanager
def hidden_folder(parent: Path) -> Iterator[Path]:
    """An empty hidden folder in ``parent``, removed afterwards; those of ended runs go before.

    Raises OSError when ``parent`` takes no new files.
    """
    _remove_left_over(parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    lock: int | None = None
    try:
        lock = _locked(folder)
        (folder / _NEW).mkdir()
        yield folder / _NEW
    finally:
        # The lock goes last, so that whatever is left has one.
        shutil.rmtree(folder / _NEW, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


@contextmanager
def alone_in(folders: Iterable[Path]) -> Iterator[None]:
    """Wait until nobody else is in such a block with one of these folders.

    Folders are locked in an order that is the same for all, so that no two wait for each other.
    Where the file system has no locks, nobody waits.
    """
    handles: dict[tuple[int, int], int] = {}
    try:
        for folder in folders if fcntl is not None else ():
            with suppress(OSError):
                handle = os.open(folder, os.O_RDONLY)
                number = os.fstat(handle)
                if handles.setdefault((number.st_dev, number.st_ino), handle) != handle:
                    os.close(handle)
        for _, handle in sorted(handles.items()):
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        for handle in handles.values():
            os.close(handle)


def _locked(folder: Path) -> int | None:
    """A locked file in the folder, None where the file system has no locks."""
    if fcntl is None:
        return None
    handle = os.open(folder / _UNLOCKED, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        os.write(handle, "\n".join(sorted(_host())).encode())
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        os.unlink(folder / _UNLOCKED)
        return None
    # It takes its name when it is locked, so that nobody finds it unlocked.
    os.rename(folder / _UNLOCKED, folder / _LOCK)
    return handle


def _remove_left_over(parent: Path) -> None:
    """Remove the folders of processes that were killed."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    _remove_if_left(Path(entry.path))


def _remove_if_left(folder: Path) -> None:
    """Remove a folder; raises OSError where it is somebody's, or may be."""
    # Not to wait where the name is that of a pipe.
    handle = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        names = set(os.read(handle, 1000).decode(errors="replace").split("\n"))
        if names.isdisjoint(_host()):
            return
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(handle), os.stat(folder / _LOCK)):
            shutil.rmtree(folder / _NEW, ignore_errors=True)
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)


def _host() -> set[str]:
    """What names this machine: containers have names of their own, and share the boot."""
    names = {socket.gethostname()}
    with suppress(OSError):
        names.add(_BOOT.read_text().strip())
    return names
