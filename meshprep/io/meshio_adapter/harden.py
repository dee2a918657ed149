"""Running meshio without being hurt by it.

Its readers allocate what a header declares, loop for ever at the end of a file, and print where
data are skipped. Three remedies, all inside this process, since a child process would cost every
read about half a second, and in a meshio of our own (:mod:`.own`): a NumPy that refuses to read
more than the file holds, files that end loops at their end, and warnings that become findings.
"""

import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from ctypes import c_double
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from meshprep_runtime.errors import MeshprepError, MissingPackageError

from ...mesh.cells import node_count, shape_of

# Reads at the end of a file before a reader is taken to be in an endless loop.
_PATIENCE = 1000
_findings: ContextVar[list[str]] = ContextVar("meshio_findings")


class _BoundedNumpy(ModuleType):
    """NumPy, but ``fromfile`` never allocates for more numbers than the file has bytes for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def fromfile(file: Any, dtype: Any = float, count: int = -1, sep: str = "", **more: Any) -> Any:
        """Read numbers; raises EOFError where ``count`` of them cannot be there."""
        count = int(count)
        if count > 0 and hasattr(file, "fileno"):
            left = os.fstat(file.fileno()).st_size - file.tell()
            # Text needs a digit and a blank each, the last one no blank.
            needed = 2 * count - 1 if sep else count * np.dtype(dtype).itemsize
            if needed > left:
                raise EOFError(f"{count} numbers are declared, but {max(left, 0)} bytes are left")
        if count < -1:
            raise EOFError(f"{count} numbers are declared")
        return np.fromfile(file, dtype=dtype, count=count, sep=sep, **more)


class _Ending:
    """A file that stops a reader which goes on at the end."""

    misses = 0

    def readline(self, *size: int) -> Any:
        return self._counted(super().readline(*size))  # type: ignore[misc]

    def read(self, *size: int | None) -> Any:
        return self._counted(super().read(*size))  # type: ignore[misc]

    def _counted(self, found: Any) -> Any:
        self.misses += not found
        if self.misses > _PATIENCE:
            raise EOFError("the file ends in the middle")
        return found


class _EndingText(_Ending, io.TextIOWrapper):  # type: ignore[misc]
    """Text."""


class _EndingBytes(_Ending, io.BufferedReader):  # type: ignore[misc]
    """Bytes, of which a reader may not ask for more than there are."""

    def read(self, *size: int | None) -> Any:
        wanted = size[0] if size and size[0] is not None else -1
        if wanted > os.fstat(self.fileno()).st_size - self.tell():
            raise EOFError(f"{wanted} bytes are declared, but the file ends before")
        return super().read(*size)


def opened(path: Path, mode: str) -> Any:
    """The file for a reader of meshio: ``"r"`` UTF-8 text, ``"rb"`` bytes."""
    raw = _EndingBytes(io.FileIO(path))
    return _EndingText(raw, encoding="utf-8") if mode == "r" else raw


@cache
def load() -> ModuleType:
    """Our own meshio, whose modules have the bounded NumPy and the collecting warnings."""
    # the last two replace functions of it when they are imported
    from . import own, vtk, xdmf  # noqa: F401

    for cell_type in _FORGOTTEN:
        own.meshio._mesh.topological_dimension[cell_type] = shape_of(cell_type).dim
        own.meshio._common.num_nodes_per_cell[cell_type] = node_count(cell_type)
    own.meshio.medit._medit.c_float = c_double  # texts have the digits that they have
    bounded = _BoundedNumpy("numpy")
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{own.NAME}."):
            for function in {"warn", "info"} & vars(module).keys():
                setattr(module, function, _collect)
            if getattr(module, "np", None) is np:
                module.np = bounded  # type: ignore[attr-defined]
    return own.meshio


# Types that meshio has in its tables of some formats, but cannot make a block of.
_FORGOTTEN = ("triangle7", "pyramid13", "wedge12", "wedge15", "hexahedron24")


def _collect(text: str, *_args: Any, **_kwargs: Any) -> None:
    _findings.get().append(" ".join(str(text).split()))


@contextmanager
def guarded(what: str) -> Iterator[list[str]]:
    """Run meshio: yields the list of its warnings; whatever it raises becomes one MeshprepError.

    ``what`` begins the message: ``"not a readable VTU file"``.
    """
    findings: list[str] = []
    token = _findings.set(findings)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # NumPy's way of saying that text held something other than numbers.
            warnings.filterwarnings("error", message="string or file could not be read")
            yield findings
    except (MeshprepError, KeyboardInterrupt):
        raise
    except ImportError as error:
        name = (error.name or "the package").partition(".")[0]
        needed = f"package {name} is needed: install it with  pip install {name}"
        raise MissingPackageError(needed) from None
    except (Exception, SystemExit) as error:
        raise MeshprepError(f"{what}: {_reason(error)}") from error
    finally:
        _findings.reset(token)


def _reason(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "it declares more than fits into memory"
    if isinstance(error, KeyError):
        return f"{error} is missing or unknown"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is no {error.encoding} text"
    text = " ".join(str(error).split())
    return text[:200] if text else f"it is malformed ({type(error).__name__})"
