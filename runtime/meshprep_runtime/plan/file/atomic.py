"""Files of a user: checked before reading, and written whole or not at all."""

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ...errors import MeshprepError, listed
from .hidden import BEFORE, hidden_folder


def check_input(path: Path) -> int:
    """The size in bytes of a file that can be read.

    Raises MeshprepError, without the path in its message, for anything but a regular file
    that is not empty. Pipes and devices are refused without opening them, as that could
    wait without end.
    """
    # Look at the file first: the errors of libraries do not say what to do.
    try:
        status = path.stat()
    except FileNotFoundError:
        fault = "does not exist"
        if path.is_symlink():
            fault = "is a broken link"
        raise MeshprepError(f"{fault}: check the name") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise MeshprepError("is a link that leads to itself: check the name") from None
        raise MeshprepError(f"cannot be opened: {reason(error)}") from None
    except ValueError as error:
        raise MeshprepError(f"cannot be opened: {error}") from None
    # Refuse what is there but cannot be read as a file.
    if stat.S_ISDIR(status.st_mode):
        raise MeshprepError("is a directory: name a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise MeshprepError(
            "is no regular file (a pipe, socket or device): copy it to a file"
        )
    if not os.access(path, os.R_OK):
        raise MeshprepError("no permission to read it")
    if status.st_size == 0:
        raise MeshprepError("is empty")
    return status.st_size


def reason(error: OSError) -> str:
    """The message of the system, in lower case."""
    return (error.strerror or str(error) or type(error).__name__).lower()


@contextmanager
def new_file(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield an empty file under a temporary name, which becomes ``path`` at the end.

    Nothing becomes ``path`` when the block raises an exception. The data are flushed to the
    disk before the name appears. A link stays, and the file that it points to is replaced.

    Raises MeshprepError when ``path`` exists and not ``overwrite``, is no regular file, or
    cannot be written.
    """
    _check_target(Path(os.path.realpath(path)), Path(path), overwrite)
    with together([Path(path)], overwrite=overwrite) as (staged,):
        staged.touch()
        yield staged
        # Open for writing: Windows does not flush a file that is open only for reading.
        _flush(staged, os.O_RDWR)
    if os.name == "posix":
        _flush(Path(os.path.realpath(path)).parent, os.O_RDONLY)


@contextmanager
def together(paths: Sequence[Path], *, overwrite: bool) -> Iterator[list[Path]]:
    """Yield a temporary path for each output; rename all of them when the block succeeds.

    The temporary files are in a hidden folder beside each output. No partial output is left
    after an exception, also after KeyboardInterrupt. A process that is killed leaves its
    folder, ``.meshprep-*``; the next one that writes there removes it. Where one output
    cannot have its name, none gets its name. A link stays, and the file that it points to
    is replaced.

    Raises MeshprepError when a folder takes no files, when the disk is full, when an output
    is a device or a pipe, and without ``overwrite`` when an output exists or has come to
    exist meanwhile. The messages name the outputs, never the hidden files.
    """
    with ExitStack() as ending:
        # Make a hidden folder beside each output: only there a rename is one step.
        staged = {}
        for path in paths:
            if path.is_symlink():
                target = Path(os.path.realpath(path))
            else:
                target = path
            refuse_device(target, path)
            try:
                folder = ending.enter_context(hidden_folder(target.parent))
            except OSError as error:
                raise MeshprepError(
                    f"{path}: its folder takes no new files ({error.strerror}): "
                    "choose another, or change its permissions"
                ) from error
            staged[folder / path.name] = target
        # Let the caller write, and rename all at the end.
        with _errors_that_name_outputs(staged):
            yield list(staged)
            _publish(staged, overwrite)


def _check_target(target: Path, shown: Path, overwrite: bool) -> None:
    """Raise MeshprepError unless a file can be written; messages name ``shown``."""
    try:
        if target.is_dir():
            raise MeshprepError(f"cannot write {shown}: it is a directory")
        if not target.parent.is_dir():
            raise MeshprepError(f"cannot write {shown}: there is no folder {target.parent}")
        refuse_device(target, shown)
        if target.exists() and not overwrite:
            raise MeshprepError(
                f"{shown} exists: choose another name, or allow overwriting it"
            )
    except OSError as error:
        raise MeshprepError(f"cannot write {shown}: {error.strerror}") from error


def refuse_device(target: Path, shown: Path) -> None:
    """Raise MeshprepError for a device or a pipe: renaming a file to it would remove it."""
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise MeshprepError(f"cannot write {shown}: it is a device or a pipe")


def _flush(path: Path, flags: int) -> None:
    """Wait until a file or folder, opened with these flags, is on the disk."""
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _errors_that_name_outputs(staged: Mapping[Path, Path]) -> Iterator[None]:
    """Replace temporary paths in errors by those of the outputs.

    An error of the system becomes a MeshprepError that names the outputs.
    """
    try:
        yield
    except MeshprepError as error:
        text = _with_output_paths(str(error), staged)
        if text == str(error):
            raise
        raise type(error)(text) from error.__cause__
    except OSError as error:
        text = str(error)
        # Name the outputs that the error is about, or all of them.
        outputs = [
            path
            for hidden, path in staged.items()
            if str(hidden) in text or str(path) in text
        ]
        if error.filename is not None and not outputs:
            # The error is about a file that is read.
            raise
        names = listed(outputs or staged.values())
        if error.errno:
            fault = os.strerror(error.errno)
        else:
            fault = _with_output_paths(str(error), staged)
        raise MeshprepError(f"{names}: cannot write: {fault}") from error


def _with_output_paths(text: str, staged: Mapping[Path, Path]) -> str:
    for hidden, path in staged.items():
        text = text.replace(str(hidden), str(path))
    return text


def _publish(staged: Mapping[Path, Path], overwrite: bool) -> None:
    """Rename the temporary files to their outputs, if this is possible for all of them."""
    # Check all outputs before the first one changes.
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
        # A folder that is not empty cannot be replaced: move it away first.
        before = hidden.parent / BEFORE / path.name
        before.parent.mkdir()
        os.rename(path, before)
        try:
            os.rename(hidden, path)
        except BaseException:
            os.rename(before, path)
            raise
