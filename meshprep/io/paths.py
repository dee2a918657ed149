"""Whether inputs can be read and outputs be written, said before any work is done."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from meshprep_runtime.errors import MeshprepError


def check_input(path: Path) -> None:
    """Raise MeshprepError unless this is a regular file with something in it that can be read.

    The message is without the path. Pipes and devices are refused unopened, so nothing can hang.
    """
    try:
        mode = path.stat()
    except FileNotFoundError:
        what = "is a broken link" if path.is_symlink() else "does not exist"
        raise MeshprepError(f"{what}: check the name") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise MeshprepError("is a link that leads to itself: check the name") from None
        raise MeshprepError(f"cannot be opened: {reason(error)}") from None
    if stat.S_ISDIR(mode.st_mode):
        raise MeshprepError("is a directory: name a file in it")
    if not stat.S_ISREG(mode.st_mode):
        raise MeshprepError("is no regular file (a pipe, socket or device): copy it to a file")
    if not os.access(path, os.R_OK):
        raise MeshprepError("no permission to read it")
    if mode.st_size == 0:
        raise MeshprepError("is empty")


def reason(error: OSError) -> str:
    """What the system said, in lower case."""
    return (error.strerror or str(error) or type(error).__name__).lower()


def check_targets(paths: Sequence[Path], *, overwrite: bool, inputs: Sequence[Path] = ()) -> None:
    """Raise MeshprepError unless every path can be written."""
    seen: set[str] = set()
    # Path.resolve would raise for a link that leads to itself.
    taken = {os.path.realpath(i) for i in inputs}
    for path in paths:
        place = os.path.realpath(path)
        if place in seen:
            raise MeshprepError(f"{path}: two outputs have this name: choose another")
        seen.add(place)
        if path.is_dir():
            raise MeshprepError(f"{path}: is a directory: name a file")
        if place in taken:
            raise MeshprepError(f"{path}: is the input itself: choose another name")
        if (path.exists() or path.is_symlink()) and not overwrite:
            raise MeshprepError(f"{path}: exists already: use --force to overwrite it")
        if not path.parent.is_dir():
            raise MeshprepError(f"{path}: folder {path.parent} does not exist: make it first")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise MeshprepError(f"{path}: no permission to write in folder {path.parent}")
