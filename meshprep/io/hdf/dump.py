"""What is in an HDF5 or netCDF file, piece by piece; run as a program by :mod:`.child`.

The program imports nothing of ``meshprep``, whose kernels would take seconds to load.
"""

import json
import os
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

# The most that the compression in HDF5 and netCDF files can gain.
_MOST_PACKED = 1040
# Datasets of this many bytes may be unwritten.
_HARMLESS = 65536
# How netCDF begins the name of a dimension that has no values.
_NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"
# The numbers of a mesh are packed into a 50th at most. What is packed further holds one
# value over and over: all of that may be so many bytes, so many times the file, or so many
# an element.
_MESH_PACKED = 50
_NEVER_TOO_MANY = 1 << 26
_BYTES_OF_ELEMENT = 1024
_DEEPEST = 32
# The most bytes of an attribute.
_MOST_ATTRIBUTE = 1 << 20


class Piece(NamedTuple):
    """A group or dataset, in the order of the file: what is above comes before."""

    path: str
    is_group: bool
    attributes: dict[str, Any]
    values: NDArray[Any] | None
    sizes: dict[str, int]


def pieces(path: Path, kind: str, advice: str) -> Iterator[Piece]:
    """Everything in a file of this kind, ``"hdf5"`` or ``"netcdf"``.

    Raises MeshprepError for links, with ``advice`` on what to do, and for values that lie
    in other files, or are more than the file can hold.
    """
    import h5py

    if h5py.is_hdf5(path):
        with h5py.File(path, "r") as file:
            check_links(file, advice)
        check_hdf5(path, is_netcdf=kind == "netcdf")
    if kind == "netcdf":
        yield from _of_netcdf(path)
        return
    with h5py.File(path, "r") as file:
        yield from _pieces_of_group(file, "")


def check_hdf5(path: Path, *, is_netcdf: bool = False) -> None:
    """Refuse what makes reading an HDF5 file endless, or leads out of it.

    These are values in other files, more values than what is stored can give, or than a
    mesh can have, and groups that are reached in two ways. The dimensions of netCDF, which
    nobody reads, may have any size.
    """
    import h5py

    if not h5py.is_hdf5(path):
        return
    size = path.stat().st_size
    packed = _Packed()

    def check(name: str, item: Any) -> None:
        # MED states sizes beside its arrays, by which its readers take memory.
        count = _declared_rows(item)
        if count > size:
            raise MeshprepError(
                f"'{name}' declares {count} entries in a file of {size} bytes"
            )
        if isinstance(item, h5py.Group) and h5py.h5o.get_info(item.id).rc > 1:
            raise MeshprepError(
                f"the group '{name}' stands in two places, or is linked into itself: "
                "leave it in one"
            )
        if isinstance(item, h5py.Dataset) and not (is_netcdf and _is_dimension(item)):
            check_dataset(name, item)
            packed.add(name, item)

    with h5py.File(path, "r") as file:
        outside = _first_link(file, (h5py.h5l.TYPE_EXTERNAL,))
        if outside is not None:
            raise MeshprepError(
                f"link '{outside}' leads into another file: copy what is there into this "
                "one"
            )
        file.visititems(check)
    packed.check(size)


class _Packed:
    """What the datasets of a file unpack to."""

    def __init__(self) -> None:
        # the most entries of a dataset that is packed as numbers of a mesh are
        self.elements = 0
        # bytes of all that are packed further, and the largest of them
        self.n_bytes = 0
        self.largest = (0, "")

    def add(self, name: str, item: Any) -> None:
        """Count a dataset."""
        if item.nbytes <= _MESH_PACKED * item.id.get_storage_size():
            self.elements = max(self.elements, int(item.size or 0))
            return
        self.n_bytes += item.nbytes
        self.largest = max(self.largest, (item.nbytes, name))

    def check(self, size: int) -> None:
        """Refuse more than a mesh in a file of this size can have."""
        # What is packed as far as constant values may be a field that is zero: so much of
        # it a mesh can have.
        most = max(_NEVER_TOO_MANY, _MESH_PACKED * size, _BYTES_OF_ELEMENT * self.elements)
        if self.n_bytes > most:
            raise MeshprepError(
                f"'{self.largest[1]}' and others unpack to {self.n_bytes >> 20} MiB from a "
                f"file of {size} bytes, more than a mesh can have: write it without "
                "compression if it is right"
            )


def _is_dimension(item: Any) -> bool:
    """True for what the netCDF library takes for a dimension that is no variable."""
    name = item.attrs.get("NAME", b"")
    return isinstance(name, bytes) and name.startswith(_NO_VARIABLE)


def _first_link(file: Any, kinds: tuple[int, ...]) -> str | None:
    """The path of a link of one of these kinds."""

    def path_of(name: bytes, info: Any) -> bytes | None:
        if info.type in kinds:
            return name
        return None

    found = file.id.links.visit(path_of, info=True)
    if found is None:
        return None
    return found.decode("utf-8", "replace")


def _declared_rows(item: Any) -> int:
    """What an item of a MED file says of its size."""
    if "NBR" not in item.attrs:
        return 0
    declared = np.asarray(item.attrs["NBR"])
    if declared.size and declared.dtype.kind in "iu":
        return int(declared.max())
    return 0


def check_dataset(name: str, item: Any) -> None:
    """Refuse values that lie in other files, or are more than what is stored can give."""
    if item.is_virtual or item.external:
        raise MeshprepError(f"the values of '{name}' are in other files: put them into one")
    most = max(_HARMLESS, _MOST_PACKED * item.id.get_storage_size())
    if item.nbytes > most:
        raise MeshprepError(f"'{name}' declares {item.nbytes} bytes that are not there")


def check_links(file: Any, advice: str) -> None:
    """Refuse names that lead to another place or file."""
    import h5py

    found = _first_link(file, (h5py.h5l.TYPE_SOFT, h5py.h5l.TYPE_EXTERNAL))
    if found is not None:
        raise MeshprepError(f"'/{found}' is a link to another place or file: {advice}")


def _pieces_of_group(group: Any, path: str, depth: int = 0) -> Iterator[Piece]:
    import h5py

    if depth > _DEEPEST:
        raise MeshprepError(
            f"'/{path[:80]}...' is a group in a group in a group: the file is damaged"
        )
    # Groups come before what is in them, so that the receiver can hang each item into its
    # place.
    yield Piece(
        path=path, is_group=True, attributes=_read_attributes(group), values=None, sizes={}
    )
    for name in group:
        item = group[name]
        below = f"{path}/{name}".lstrip("/")
        if isinstance(item, h5py.Group):
            yield from _pieces_of_group(item, below, depth + 1)
        elif isinstance(item, h5py.Dataset):
            yield Piece(
                path=below,
                is_group=False,
                attributes=_read_attributes(item),
                values=_values_of_dataset(item),
                sizes={},
            )


def _read_attributes(item: Any) -> dict[str, Any]:
    """The attributes that are numbers or text."""
    out = {}
    for name in item.attrs:
        found = item.attrs.get_id(name)
        if found.get_storage_size() <= _MOST_ATTRIBUTE and _is_plain(found.dtype):
            out[name] = item.attrs[name]
    return out


def _is_plain(dtype: np.dtype) -> bool:
    base = dtype.subdtype[0] if dtype.subdtype else dtype
    return base.kind in "biufcS" or (base.kind == "O" and base.metadata == {"vlen": str})


def _values_of_dataset(item: Any) -> NDArray[Any] | None:
    if item.dtype.subdtype:
        base = item.dtype.subdtype[0]
    else:
        base = item.dtype
    if item.shape is None or base.kind not in "biufcS":
        return None
    return np.asarray(item[()])


def _of_netcdf(path: Path) -> Iterator[Piece]:
    """Attributes and dimensions of the file, then its variables."""
    import netCDF4

    with netCDF4.Dataset(path) as file:
        # Take values as they stand: netCDF4 would mask and scale them, and join letters.
        file.set_auto_maskandscale(False)
        file.set_auto_chartostring(False)
        _check_variables_fit(file, path.stat().st_size)
        sizes = {name: len(dimension) for name, dimension in file.dimensions.items()}
        yield Piece(
            path="",
            is_group=True,
            attributes=_netcdf_attributes(file),
            values=None,
            sizes=sizes,
        )
        for name in file.groups:
            yield Piece(path=name, is_group=True, attributes={}, values=None, sizes={})
        for name, variable in file.variables.items():
            plain = isinstance(variable.dtype, np.dtype) and variable.dtype.kind in "biufcS"
            values = np.asarray(variable[:]) if plain else None
            yield Piece(
                path=name,
                is_group=False,
                attributes=_netcdf_attributes(variable),
                values=values,
                sizes={},
            )


def _netcdf_attributes(item: Any) -> dict[str, Any]:
    return {name: item.getncattr(name) for name in item.ncattrs()}


def _check_variables_fit(file: Any, size: int) -> None:
    """A classic file is not compressed, so that its variables must fit into it."""
    if file.data_model.startswith("NETCDF4"):
        return
    declared = sum(v.size * v.dtype.itemsize for v in file.variables.values())
    if declared > size:
        raise MeshprepError(
            f"declares {declared} bytes of values in {size} bytes: the file is truncated "
            "or damaged"
        )


# Between the processes: the length of a text in JSON, the text, and the bytes of the
# values.
_LENGTH = struct.Struct("<q")


def send(out: BinaryIO, about: dict[str, Any], values: NDArray[Any] | None = None) -> None:
    """Write a message."""
    text = json.dumps(about).encode()
    out.write(_LENGTH.pack(len(text)))
    out.write(text)
    if values is not None and values.nbytes:
        out.write(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)


def received(source: BinaryIO) -> Iterator[tuple[dict[str, Any], NDArray[Any] | None]]:
    """The messages that were sent, up to the last; fewer where the sender has ended."""
    while len(head := source.read(_LENGTH.size)) == _LENGTH.size:
        about = json.loads(source.read(*_LENGTH.unpack(head)))
        values = None
        if "dtype" in about:
            values = np.empty(about["shape"], np.dtype(about["dtype"]))
            room = values.reshape(-1).view(np.uint8).data
            if values.nbytes:
                n_read = source.readinto(room)  # type: ignore[attr-defined]
                if n_read != values.nbytes:
                    return
        yield about, values


def encoded(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes in JSON."""
    out: dict[str, Any] = {}
    for name, value in attributes.items():
        if isinstance(value, str):
            out[name] = value
            continue
        array = np.asarray(value)
        if array.dtype.kind in "biufcS":
            out[name] = [array.dtype.str, array.shape, array.tobytes().hex()]
        else:
            out[name] = [str(one) for one in array.reshape(-1).tolist()]
    return out


def decoded(attributes: dict[str, Any]) -> dict[str, Any]:
    """The inverse of :func:`encoded`; single numbers and texts are no arrays."""
    out: dict[str, Any] = {}
    for name, value in attributes.items():
        if isinstance(value, list) and len(value) == 3 and isinstance(value[1], list):
            dtype, shape, data = value
            array = np.frombuffer(bytes.fromhex(data), np.dtype(dtype)).reshape(shape)
            if shape:
                out[name] = array.copy()
            else:
                out[name] = array[()]
        else:
            out[name] = value
    return out


def main(path: str, kind: str, advice: str) -> None:
    """Send what is in the file to the standard output; errors are messages, too."""
    out = os.fdopen(os.dup(1), "wb")
    # what libraries print goes nowhere
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        for piece in pieces(Path(path), kind, advice):
            about: dict[str, Any] = {
                "path": piece.path,
                "is_group": piece.is_group,
                "attributes": encoded(piece.attributes),
                "sizes": piece.sizes,
            }
            if piece.values is not None:
                about |= {"dtype": piece.values.dtype.str, "shape": piece.values.shape}
            send(out, about, piece.values)
        send(out, {"end": ""})
    except MeshprepError as error:
        send(out, {"refused": str(error)})
    except ImportError as error:
        send(out, {"missing": error.name or "the package"})
    except MemoryError:
        send(out, {"memory": ""})
    except Exception as error:
        send(out, {"failed": re.sub(r"\s+", " ", str(error))[:200]})
    out.flush()


if __name__ == "__main__":
    main(*sys.argv[1:4])
