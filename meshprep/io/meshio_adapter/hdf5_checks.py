"""What meshio would get wrong of formats in HDF5 files, looked for before it reads."""

from collections.abc import Callable
from pathlib import Path

import h5py

from meshprep_runtime.errors import MeshprepError

# The most that the compression in HDF5 and netCDF files can gain.
_MOST_PACKED = 1040
# Datasets of this many bytes may be unwritten; so may the dimensions of netCDF, never read.
_HARMLESS = 65536
# CGNS's number of the tetrahedra that meshio reads.
_TETRA_4 = 10


def check_hdf5(path: Path) -> list[str]:
    """Refuse datasets that are larger than what is stored of them can give."""
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
    return []


def _exodus(path: Path) -> list[str]:
    return check_hdf5(path) if h5py.is_hdf5(path) else []


def _cgns(path: Path) -> list[str]:
    """meshio takes one section of tetrahedra, whatever it is, and leaves the others."""
    check_hdf5(path)
    with h5py.File(path, "r") as file:
        zone = file.get("Base/Zone1")
        if zone is None:
            return []
        labels = {name: _label(item) for name, item in zone.items()}
        sections = [name for name, label in labels.items() if label == "Elements_t"]
        if set(sections) - {"GridElements"}:
            raise MeshprepError(f"has the sections of elements {', '.join(sections)}: write one")
        kind = zone.get("GridElements/ data")
        if kind is not None and int(kind[0]) != _TETRA_4:
            raise MeshprepError(
                f"its elements are of CGNS's type {int(kind[0])}: only TETRA_4 ({_TETRA_4}) is read"
            )
        left = {"Elements_t", "GridCoordinates_t", "ZoneType_t", ""}
        return sorted(name for name, label in labels.items() if label not in left)


def _label(item: object) -> str:
    text = item.attrs.get("label", b"")  # type: ignore[attr-defined]
    return text.decode() if isinstance(text, bytes) else str(text)


CHECKS: dict[str, Callable[[Path], list[str]]] = {
    "cgns": _cgns,
    "exodus": _exodus,
    "med": check_hdf5,
}
