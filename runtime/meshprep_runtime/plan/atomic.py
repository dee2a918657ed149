"""Files that appear whole or not at all, several of them together."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ..errors import MeshprepError, listed
from .hidden import alone_in, hidden_folder


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
    KeyboardInterrupt included, no partial output is left. Where one output cannot have its name,
    none has; where two runs write the same names, the last one has all of them. A link stays, and
    what it points to is replaced.

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
                folder = ending.enter_context(hidden_folder(target.parent))
            except OSError as error:
                raise MeshprepError(
                    f"{path}: its folder takes no new files ({error.strerror}): "
                    "choose another, or change its permissions"
                ) from error
            staged[folder / path.name] = target
        with _named(staged):
            yield list(staged)
            # no mixture of two runs that write the same names
            with alone_in({path.parent for path in staged.values()} if len(staged) > 1 else ()):
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
    """Give the files their names; when one cannot have it, take them from the others."""
    undo: list[Callable[[], object]] = []
    try:
        for hidden, path in staged.items():
            undo.append((_replaced if overwrite else _named_newly)(hidden, path))
    except BaseException:
        for back in reversed(undo):
            with suppress(OSError):
                back()
        raise


def _replaced(hidden: Path, path: Path) -> Callable[[], object]:
    """Put a file where another may be; returns what undoes it."""
    mine = hidden.lstat()
    before = hidden.with_name(f"{hidden.name[:200]}.before")
    try:
        os.link(path, before, follow_symlinks=False)
    except FileNotFoundError:
        os.replace(hidden, path)
        return lambda: _remove(path, mine)
    except (OSError, NotImplementedError):
        # File systems without hard links, and directories.
        os.replace(hidden, path)
        return lambda: None
    os.replace(hidden, path)
    return lambda: os.replace(before, path)


def _named_newly(hidden: Path, path: Path) -> Callable[[], object]:
    """Put a file where none is, whoever else does so at the same time; returns what undoes it."""
    mine = hidden.lstat()
    try:
        try:
            # Both fail where the name exists, so that nobody's new file is replaced.
            os.link(hidden, path, follow_symlinks=False)
        except (OSError, NotImplementedError) as error:
            if isinstance(error, FileExistsError):
                raise
            # File systems without hard links: an empty file reserves the name.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            try:
                os.replace(hidden, path)
            except BaseException:
                path.unlink()
                raise
    except FileExistsError:
        raise MeshprepError(
            f"{path}: has come to exist meanwhile, nothing was written: "
            "choose another name, or allow overwriting it"
        ) from None
    return lambda: _remove(path, mine)


def _remove(path: Path, mine: os.stat_result) -> None:
    """Remove a file that has its name from here."""
    if os.path.samestat(path.lstat(), mine):
        path.unlink()
