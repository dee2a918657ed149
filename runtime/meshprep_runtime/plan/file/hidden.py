"""Hidden folders beside outputs, for files that are not complete.

A program that writes holds a lock on a file in its folder. The system releases the lock
when the program ends, also when it is killed. So a folder whose lock is free was abandoned,
and the next program that writes there removes it.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# How the names of hidden folders begin.
PREFIX = ".meshprep-"
# The file in a hidden folder that is locked.
LOCK = f"{PREFIX}lock"
# The folder in a hidden folder that holds an old output while the new one takes its name.
BEFORE = f"{PREFIX}before"
# How the name of a folder begins that is not locked yet; where the system has no locks, the
# folder keeps this name.
NEW = f"{PREFIX}new-"
# The age in seconds below which a program may still be about to lock its folder.
SECONDS = 60.0


@contextmanager
def hidden_folder(beside: Path) -> Iterator[Path]:
    """Yield a new hidden folder, which is removed when the block ends.

    Abandoned folders beside it are removed first. Raises OSError where ``beside`` takes no
    files.
    """
    remove_abandoned(beside)
    folder = Path(tempfile.mkdtemp(prefix=NEW, dir=beside))
    # The lock tells others that the folder is in use, until this process ends.
    lock = -1
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        # A folder without a lock keeps the name of new ones, which others spare for a
        # while.
        if _try_lock(lock):
            locked_folder = folder.with_name(PREFIX + folder.name.removeprefix(NEW))
            os.rename(folder, locked_folder)
            folder = locked_folder
        yield folder
    finally:
        if lock >= 0:
            os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(beside: Path) -> None:
    """Remove the hidden folders in a folder that no running program holds.

    Old outputs that were moved into one, and not replaced, get their names back.
    """
    with suppress(OSError):
        for path in list(beside.glob(f"{PREFIX}*")):
            if path.is_dir() and not path.is_symlink():
                _remove_if_abandoned(path)


def _remove_if_abandoned(folder: Path) -> None:
    with suppress(OSError):
        young = time.time() - folder.stat().st_mtime < SECONDS
        if young and folder.name.startswith(NEW):
            return
        try:
            lock = os.open(folder / LOCK, os.O_RDWR)
        except FileNotFoundError:
            # The program was killed before it had a lock, and the folder is empty; or the
            # folder is not one of ours.
            if folder.name.startswith(NEW):
                folder.rmdir()
            return
        try:
            if _try_lock(lock):
                _restore_outputs(folder)
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def _restore_outputs(folder: Path) -> None:
    """Give old outputs their names back, unless the new ones have taken them."""
    for path in (folder / BEFORE).glob("*"):
        target = folder.parent / path.name
        if not os.path.lexists(target):
            os.rename(path, target)


def _try_lock(lock: int) -> bool:
    """Lock an open file.

    False where another program has locked it, and where the system has no locks.
    """
    try:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True
