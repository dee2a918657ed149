"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import MeshprepError


@contextmanager
def new_file(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary file beside ``path`` to write into; it takes the name when the block ends well.

    The data are flushed to the disk before the name appears. When the block raises, Ctrl-C
    included, the temporary file is removed and ``path`` is as it was.

    Raises
    ------
    MeshprepError
        When ``path`` exists and not ``overwrite``, is no regular file, or cannot be written.
    """
    target = Path(os.path.realpath(path))
    _check_target(target, Path(path), overwrite)
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(6)}.tmp")
    try:
        # os.open rather than tempfile, so that the umask decides on the permissions.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError as error:
        raise MeshprepError(f"cannot write {path}: {error.strerror}") from error
    try:
        yield temporary
        _flush(temporary)
        _publish(temporary, target, Path(path), overwrite)
    finally:
        temporary.unlink(missing_ok=True)
    if os.name == "posix":
        _flush(target.parent)


def _check_target(target: Path, shown: Path, overwrite: bool) -> None:
    try:
        if target.is_dir():
            raise MeshprepError(f"cannot write {shown}: it is a directory")
        if not target.parent.is_dir():
            raise MeshprepError(f"cannot write {shown}: there is no folder {target.parent}")
        if target.exists() and not target.is_file():
            raise MeshprepError(f"cannot write {shown}: it is a device or a pipe")
        if target.exists() and not overwrite:
            raise _exists(shown)
    except OSError as error:
        raise MeshprepError(f"cannot write {shown}: {error.strerror}") from error


def _exists(shown: Path) -> MeshprepError:
    return MeshprepError(f"{shown} exists: choose another name, or allow overwriting it")


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _publish(temporary: Path, target: Path, shown: Path, overwrite: bool) -> None:
    if overwrite:
        os.replace(temporary, target)
        return
    try:
        # A hard link fails where the name exists, so that nobody's new file is replaced.
        os.link(temporary, target)
    except FileExistsError:
        raise _exists(shown) from None
    except OSError:
        # File systems without hard links.
        if target.exists():
            raise _exists(shown) from None
        os.replace(temporary, target)
