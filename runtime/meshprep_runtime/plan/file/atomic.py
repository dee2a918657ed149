"""Files of a user: looked at before they are read; written whole or not at all, and together."""

import errno
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ...errors import MeshprepError, listed

PREFIX = ".meshprep-"


def check_input(path: Path) -> int:
    """Bytes of a regular file that has some and can be read; raises MeshprepError for all else.

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
    except ValueError as error:
        raise MeshprepError(f"cannot be opened: {error}") from None
    if stat.S_ISDIR(mode.st_mode):
        raise MeshprepError("is a directory: name a file in it")
    if not stat.S_ISREG(mode.st_mode):
        raise MeshprepError("is no regular file (a pipe, socket or device): copy it to a file")
    if not os.access(path, os.R_OK):
        raise MeshprepError("no permission to read it")
    if mode.st_size == 0:
        raise MeshprepError("is empty")
    return mode.st_size


def reason(error: OSError) -> str:
    """What the system said, in lower case."""
    return (error.strerror or str(error) or type(error).__name__).lower()


@contextmanager
def new_file(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """An empty file under another name to write into; it takes ``path`` when the block ends well.

    The data are flushed to the disk before the name appears. A link stays, and what it points to
    is replaced.

    Raises MeshprepError when ``path`` exists and not ``overwrite``, is no regular file, or cannot
    be written.
    """
    _check_target(Path(os.path.realpath(path)), Path(path), overwrite)
    with together([Path(path)], overwrite=overwrite) as (staged,):
        staged.touch()
        yield staged
        # Windows flushes no file that is open for reading alone
        _flush(staged, os.O_RDWR)
    if os.name == "posix":
        _flush(Path(os.path.realpath(path)).parent, os.O_RDONLY)


@contextmanager
def together(paths: Sequence[Path], *, overwrite: bool) -> Iterator[list[Path]]:
    """Yield a temporary path for each output; give all their names when the block succeeds.

    The temporary files stand in a hidden folder beside each output. Whatever happens inside,
    KeyboardInterrupt included, no partial output is left; a process that is killed leaves its
    folder, ``.meshprep-*``. Where one output cannot have its name, none has. A link stays, and what
    it points to is replaced.

    Raises MeshprepError when a folder takes no files, when the disk is full, when an output is a
    device or a pipe, and when it exists, or has come to exist meanwhile, and not ``overwrite``. It
    names the outputs, never what is hidden.
    """
    with ExitStack() as ending:
        staged = {}
        for path in paths:
            target = Path(os.path.realpath(path)) if path.is_symlink() else path
            refuse_device(target, path)
            try:
                hidden = tempfile.TemporaryDirectory(
                    prefix=PREFIX, dir=target.parent, ignore_cleanup_errors=True
                )
                folder = Path(ending.enter_context(hidden))
            except OSError as error:
                raise MeshprepError(
                    f"{path}: its folder takes no new files ({error.strerror}): "
                    "choose another, or change its permissions"
                ) from error
            staged[folder / path.name] = target
        with _named(staged):
            yield list(staged)
            _publish(staged, overwrite)


def _check_target(target: Path, shown: Path, overwrite: bool) -> None:
    try:
        if target.is_dir():
            raise MeshprepError(f"cannot write {shown}: it is a directory")
        if not target.parent.is_dir():
            raise MeshprepError(f"cannot write {shown}: there is no folder {target.parent}")
        refuse_device(target, shown)
        if target.exists() and not overwrite:
            raise MeshprepError(f"{shown} exists: choose another name, or allow overwriting it")
    except OSError as error:
        raise MeshprepError(f"cannot write {shown}: {error.strerror}") from error


def refuse_device(target: Path, shown: Path) -> None:
    """Raise MeshprepError for a device or a pipe: a file that took its name would be its end."""
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise MeshprepError(f"cannot write {shown}: it is a device or a pipe")


def _flush(path: Path, how: int) -> None:
    handle = os.open(path, how)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _named(staged: Mapping[Path, Path]) -> Iterator[None]:
    """Errors that leave name outputs, and no temporary paths."""
    try:
        yield
    except MeshprepError as error:
        text = _final(str(error), staged)
        if text == str(error):
            raise
        raise type(error)(text) from error.__cause__
    except OSError as error:
        text = str(error)
        where = [path for one, path in staged.items() if str(one) in text or str(path) in text]
        if error.filename is not None and not where:
            # Of a file that is read.
            raise
        names = listed(where or staged.values())
        reason = os.strerror(error.errno) if error.errno else _final(str(error), staged)
        raise MeshprepError(f"{names}: cannot write: {reason}") from error


def _final(text: str, staged: Mapping[Path, Path]) -> str:
    for hidden, path in staged.items():
        text = text.replace(str(hidden), str(path))
    return text


def _publish(staged: Mapping[Path, Path], overwrite: bool) -> None:
    """Give the files their names, when each of them can have its own."""
    for hidden, path in staged.items():
        if os.path.lexists(path) and not overwrite:
            raise MeshprepError(
                f"{path}: has come to exist meanwhile, nothing was written: "
                "choose another name, or allow overwriting it"
            )
        if path.is_dir() and not hidden.is_dir():
            raise MeshprepError(f"{path}: cannot write: {os.strerror(errno.EISDIR)}")
    for hidden, path in staged.items():
        if not path.is_dir():
            os.replace(hidden, path)
            continue
        # no system replaces a folder that holds something
        before = hidden.with_name(f"{hidden.name[:200]}.before")
        os.rename(path, before)
        try:
            os.rename(hidden, path)
        except BaseException:
            os.rename(before, path)
            raise
