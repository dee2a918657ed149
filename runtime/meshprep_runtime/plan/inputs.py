"""Whether a file of the user can be read, said before it is opened: every reader asks here."""

import errno
import os
import stat
from pathlib import Path

from ..errors import MeshprepError


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
