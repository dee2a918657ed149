"""Running code of other packages without being hurt by it."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from xml.etree.ElementTree import ParseError

from meshprep_runtime.errors import MeshprepError, MissingPackageError

from .text.quoting import one_line, quoted

# What is said of errors that tell nothing of the file.
_DAMAGED = "it is damaged, or not written as the format wants: write it again"


class DamagedFileError(Exception):
    """Why a file cannot be read, in words for the user, without what begins the message."""


@contextmanager
def guarded(what: str) -> Iterator[None]:
    """Whatever is raised inside becomes one MeshprepError, and no warning is seen.

    ``what`` begins the message: ``"not a readable VTU file"``.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # NumPy's way of saying that text held something other than numbers.
            warnings.filterwarnings("error", message="string or file could not be read")
            yield
    except (MeshprepError, KeyboardInterrupt):
        raise
    except ImportError as error:
        name = (error.name or "the package").partition(".")[0]
        needed = f"package {name} is needed: install it with  pip install {name}"
        raise MissingPackageError(needed) from None
    except (Exception, SystemExit) as error:
        raise MeshprepError(f"{what}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    """Why, in words of the field: what Python says of its own objects helps nobody."""
    if isinstance(error, MemoryError):
        return "it declares more than fits into memory"
    if isinstance(error, KeyError):
        if error.args:
            missing = quoted(str(error.args[0]))
        else:
            missing = "a part"
        return f"{missing} is missing or unknown"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is no {error.encoding} text"
    if isinstance(error, DamagedFileError | OSError | ParseError):
        return one_line(str(error)) or _DAMAGED
    return _DAMAGED
