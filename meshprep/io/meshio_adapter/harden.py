"""Running code of other packages without being hurt by it."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from meshprep_runtime.errors import MeshprepError, MissingPackageError

# The most that the compression in HDF5 and netCDF files can gain.
_MOST_PACKED = 1040
# Datasets of this many bytes may be unwritten; so may the dimensions of netCDF, never read.
_HARMLESS = 65536


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
    if isinstance(error, MemoryError):
        return "it declares more than fits into memory"
    if isinstance(error, KeyError):
        return f"{error} is missing or unknown"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is no {error.encoding} text"
    text = " ".join(str(error).split())
    return text[:200] if text else f"it is malformed ({type(error).__name__})"


def check_hdf5(path: Path) -> None:
    """Refuse datasets of an HDF5 file that are larger than what is stored can give."""
    import h5py

    if not h5py.is_hdf5(path):
        return
    size = path.stat().st_size

    def check(name: str, item: object) -> None:
        count = int(item.attrs["NBR"]) if "NBR" in item.attrs else 0  # type: ignore[attr-defined]
        if count > size:
            raise MeshprepError(f"'{name}' declares {count} entries in a file of {size} bytes")
        if isinstance(item, h5py.Dataset):
            if item.is_virtual or item.external:
                raise MeshprepError(f"the values of '{name}' are in other files: put them into one")
            unwritten = item.nbytes <= _HARMLESS or "_Netcdf4Dimid" in item.attrs
            if item.nbytes > _MOST_PACKED * item.id.get_storage_size() and not unwritten:
                raise MeshprepError(f"'{name}' declares {item.nbytes} bytes that are not there")

    with h5py.File(path, "r") as file:
        file.visititems(check)
