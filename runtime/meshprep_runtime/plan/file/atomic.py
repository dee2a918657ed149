"""Files of a user: looked at before they are read; written whole or not at all, and together."""

import errno
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ...errors import MeshprepError, listed


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
        if hidden.is_dir():
            # no system replaces a folder that holds something
            os.rename(path, before)
            try:
                os.rename(hidden, path)
            except BaseException:
                os.rename(before, path)
                raise

            def back() -> None:
                os.rename(path, hidden)
                os.rename(before, path)

            return back
        # File systems without hard links.
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
            # File systems without hard links, and folders: an empty one reserves the name.
            folder = hidden.is_dir()
            if folder:
                path.mkdir()
            else:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            try:
                if folder and os.name == "nt":
                    path.rmdir()
                os.replace(hidden, path)
            except BaseException:
                path.rmdir() if folder else path.unlink()
                raise
    except FileExistsError:
        raise MeshprepError(
            f"{path}: has come to exist meanwhile, nothing was written: "
            "choose another name, or allow overwriting it"
        ) from None
    return lambda: _remove(path, mine)


def _remove(path: Path, mine: os.stat_result) -> None:
    """Remove a file or folder that has its name from here."""
    if os.path.samestat(path.lstat(), mine):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


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

    It holds a file ``lock``, which this process keeps locked, and a folder ``new`` with the
    unfinished file. The system lets go of a lock when its process ends, however it ends, so a
    folder whose lock can be had belongs to nobody. A lock may count on one host only, so folders
    of other hosts stay. Where there are no locks, folders have no file ``lock``, and stay, too.
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
        names.add(_BOOT.read_text(encoding="ascii").strip())
    return names
