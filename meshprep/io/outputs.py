"""Several output files that appear together or not at all."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from meshprep_runtime.errors import MeshprepError


def check_targets(paths: Sequence[Path], *, overwrite: bool, inputs: Sequence[Path] = ()) -> None:
    """Raise MeshprepError unless every path can be written: said before any work is done."""
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise MeshprepError(f"{path}: two outputs have this name: choose another")
        seen.add(path.resolve())
        if path.is_dir():
            raise MeshprepError(f"{path}: is a directory: name a file")
        if any(path.resolve() == i.resolve() for i in inputs):
            raise MeshprepError(f"{path}: is the input itself: choose another name")
        if (path.exists() or path.is_symlink()) and not overwrite:
            raise MeshprepError(f"{path}: exists already: use --force to overwrite it")
        if not path.parent.is_dir():
            raise MeshprepError(f"{path}: folder {path.parent} does not exist: make it first")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise MeshprepError(f"{path}: no permission to write in folder {path.parent}")


# Freeing a file of this many bytes is worth a thread.
_LARGE = 1 << 22


@contextmanager
def together(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield a temporary path for each output; move all into place when the block succeeds.

    The temporary files stand in a hidden folder beside each output, so that moving is a rename.
    Whatever happens inside, KeyboardInterrupt included, no partial output is left.
    """
    folders: list[Path] = []
    ready: list[Path] = []
    old: list[int | None] = []
    try:
        staged = []
        for path in paths:
            folders.append(_hidden_folder(path))
            staged.append(folders[-1] / path.name)
        yield staged
        # The folders go first: the file system lets nobody remove one while it replaces a file.
        for temporary, folder in zip(staged, folders, strict=True):
            ready.append(folder.with_name(f"{folder.name}.ready"))
            os.replace(temporary, ready[-1])
            shutil.rmtree(folder, ignore_errors=True)
        for complete, path in zip(ready, paths, strict=True):
            old.append(_held(path))
            os.replace(complete, path)
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        for complete in ready:
            complete.unlink(missing_ok=True)
        # Freeing the blocks of a large file takes the system a while: done aside.
        for file in old:
            if file is not None:
                Thread(target=os.close, args=(file,)).start()


def _hidden_folder(path: Path) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=".meshprep-", dir=path.parent))
    except OSError as error:
        raise MeshprepError(
            f"cannot write {path}: its folder takes no new files ({error.strerror}): "
            "choose another, or change its permissions"
        ) from error


def _held(path: Path) -> int | None:
    """A large file, opened so that it is freed when it is closed, not when it loses its name."""
    try:
        mode = path.lstat()
        if os.name == "posix" and stat.S_ISREG(mode.st_mode) and mode.st_size >= _LARGE:
            return os.open(path, os.O_RDONLY)
    except OSError:
        # Then it is freed where it is replaced.
        pass
    return None
