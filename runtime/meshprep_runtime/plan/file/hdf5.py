"""Trees in HDF5 files: a strict subset of the format, which is checked on reading.

The subset is groups, contiguous datasets without filters, scalar attributes and
fixed-length text, behind room for the seal, in the format of HDF5 1.8. The same tree always
gives the same bytes. On reading, anything else is refused before memory is allocated.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from math import prod
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from ...errors import PlanError
from . import seal
from .tree import DTYPES, Scalar, Tree

# The most groups inside each other.
MAX_DEPTH = 8
# The most bytes of an attribute.
MAX_ATTRIBUTE = 1 << 20


def write_tree(tree: Tree, path: Path, version: int) -> None:
    """Write a new sealed file; raises OSError when the disk refuses. O(bytes)."""
    with new_hdf5(path) as new_file:
        fill(new_file, tree)
    with open(path, "r+b", buffering=0) as file:
        seal.write_seal(file, version)


@contextmanager
def new_hdf5(path: Path, userblock: int = seal.SIZE) -> Iterator[Any]:
    """Yield a new HDF5 file behind ``userblock`` bytes (0, or a power of 2 from 512).

    Raises OSError when the disk refuses.
    """
    with open(path, "w+b", buffering=0) as file:
        target = _Target(file)
        with h5py.File(create(target, userblock)) as new_file:
            yield new_file
        if target.error is not None:
            raise target.error


class _Target:
    """The file object that HDF5 writes to; it keeps the first error of the disk.

    HDF5 would crash the process where it cannot write on closing a file, as on a full disk.
    """

    closed = False

    def __init__(self, file: FileIO) -> None:
        self._file = file
        self.seek = file.seek
        self.tell = file.tell
        self.flush = file.flush
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        """Write all of these bytes, unless the disk has refused some before."""
        left = memoryview(data)
        try:
            while left.nbytes and self.error is None:
                left = left[self._file.write(left) :]
        except OSError as error:
            self.error = error
        return len(data)

    def readinto(self, buffer: Any) -> int:
        """Read bytes that were written before; zeros where the disk has refused them."""
        data = self._file.read(len(buffer))
        buffer[:] = data.ljust(len(buffer), b"\0")
        return len(buffer)

    def truncate(self, size: int) -> int:
        """Set the size of the file."""
        try:
            return self._file.truncate(size)
        except OSError as error:
            self.error = error
            return size


def fill(file: Any, tree: Tree) -> dict[str, Any]:
    """Write a tree into a new file; returns the groups by path."""
    groups: dict[str, Any] = {"/": file["/"]}
    # Parents come before their children in sorted order.
    for name, attributes in sorted(tree.groups.items()):
        if name not in groups:
            groups[name] = _make_group(groups, name)
        for key, value in attributes.items():
            groups[name].attrs.create(key, _as_array(value))
    for name, content in tree.datasets.items():
        parent, _, leaf = name.rpartition("/")
        values = content
        if isinstance(content, str):
            values = _as_array(content)
        groups[parent or "/"].create_dataset(leaf, data=values, track_times=False)
    return groups


def create(buffer: Any, userblock: int = seal.SIZE) -> Any:
    """Create an HDF5 file in an object with the methods of a file."""
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
    access.set_libver_bounds(h5py.h5f.LIBVER_V18, h5py.h5f.LIBVER_V18)
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, buffer)
    creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    creation.set_obj_track_times(False)
    creation.set_userblock(userblock)
    name = b"plan"
    return h5py.h5f.create(name, h5py.h5f.ACC_TRUNC, creation, access)


def _make_group(groups: dict[str, Any], path: str) -> Any:
    """Create a group without times, so that the bytes of the file are the same again."""
    parent, _, leaf = path.rpartition("/")
    creation = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
    creation.set_obj_track_times(False)
    parent_id = groups[parent or "/"].id
    return h5py.Group(h5py.h5g.create(parent_id, leaf.encode(), gcpl=creation))


def _as_array(value: Scalar) -> np.ndarray:
    """A whole number or text as HDF5 stores it; text has a fixed length."""
    if isinstance(value, int):
        return np.array(value, dtype="<i8")
    data = value.encode()
    if b"\0" in data:
        raise PlanError(
            f"a plan file cannot hold the text {value[:40]!r}, which has a zero byte"
        )
    return np.array(data, dtype=h5py.string_dtype("utf-8", max(1, len(data))))


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Yield an open file; raises OSError when it is not HDF5.

    It is not locked: files appear whole under their names, and network file systems often
    refuse locks.
    """
    try:
        file = h5py.File(path, "r", locking=False)
    except OSError:
        # This process may have the file open with a lock; then it must be opened the same
        # way.
        file = h5py.File(path, "r")
    with file:
        yield file


def read_attribute(group: Any, name: str) -> Scalar:
    """A scalar attribute, whole number or text; raises PlanError for anything else."""
    attribute = group.attrs.get_id(name)
    where = f"attribute '{name}' of {group.name}"
    if attribute.get_space().get_simple_extent_type() != h5py.h5s.SCALAR:
        raise PlanError(f"{where} is no scalar")
    kind = attribute.get_type()
    if _is_text(kind) and kind.get_size() <= MAX_ATTRIBUTE:
        return _read_fixed_text(attribute, kind)
    if not _is_type(kind, "<i8"):
        raise PlanError(f"{where} is neither short text nor int64")
    value = np.empty((), dtype="<i8")
    attribute.read(value)
    return int(value)


def read_tree(file: Any, size: int) -> Tree:
    """Everything in an open file of ``size`` bytes.

    Raises PlanError for objects, links, types and layouts that :func:`write_tree` does not
    write, and for datasets that claim more bytes than the file has. Exceptions of h5py are
    not caught.
    """
    reader = _TreeReader(size)
    reader.read_group(file["/"], "/", 0)
    return reader.tree


class _TreeReader:
    """Reads all groups and datasets of a file; counts the bytes that datasets claim."""

    def __init__(self, size: int) -> None:
        self.tree = Tree()
        # Bytes of the file that no dataset has claimed yet.
        self.budget = size
        self.size = size
        self.addresses_of_groups: set[int] = set()

    def read_group(self, group: Any, path: str, depth: int) -> None:
        """Read a group and all that is in it into the tree."""
        # A malicious file may link a group into itself.
        address = h5py.h5o.get_info(group.id).addr
        if depth > MAX_DEPTH or address in self.addresses_of_groups:
            raise PlanError(f"{path} is nested too deep or linked twice")
        self.addresses_of_groups.add(address)
        self.tree.group(path, **{name: read_attribute(group, name) for name in group.attrs})
        for name in group:
            inside = f"{path.rstrip('/')}/{name}"
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise PlanError(f"{inside} is a link, which no plan has")
            member = group[name]
            if isinstance(member, h5py.Group):
                self.read_group(member, inside, depth + 1)
            elif isinstance(member, h5py.Dataset) and not len(member.attrs):
                self.tree.datasets[inside] = self.read_dataset(member.id, inside)
            else:
                raise PlanError(f"{inside} is no group and no plain dataset")

    def read_dataset(self, dataset: Any, path: str) -> np.ndarray | str:
        """The values of a dataset, read only once all about it is checked."""
        creation = dataset.get_create_plist()
        kind = dataset.get_type()
        if creation.get_layout() != h5py.h5d.CONTIGUOUS or creation.get_external_count():
            raise PlanError(f"{path} is not stored in one piece")
        # All bytes of a dataset must be in the file, and no byte belongs to two datasets.
        claimed = prod(dataset.shape) * kind.get_size()
        start = dataset.get_offset()
        self.budget -= claimed
        if claimed and (start is None or start + claimed > self.size or self.budget < 0):
            raise PlanError(f"{path} claims {claimed} bytes, more than the file has")
        if _is_text(kind) and dataset.shape == ():
            return _read_fixed_text(dataset, kind)
        if not any(_is_type(kind, dtype) for dtype in DTYPES):
            raise PlanError(f"{path} has a type that no plan has")
        values = np.empty(dataset.shape, dtype=dataset.dtype)
        if values.size:
            dataset.read(h5py.h5s.ALL, h5py.h5s.ALL, values)
        return values


def _is_type(kind: Any, dtype: str) -> bool:
    return bool(kind.equal(h5py.h5t.py_create(np.dtype(dtype))))


def _is_text(kind: Any) -> bool:
    return isinstance(kind, h5py.h5t.TypeStringID) and not kind.is_variable_str()


def _read_fixed_text(source: Any, kind: Any) -> str:
    """The text of a scalar dataset or attribute."""
    value = np.empty((), dtype=kind.dtype)
    if isinstance(source, h5py.h5d.DatasetID):
        source.read(h5py.h5s.ALL, h5py.h5s.ALL, value)
    else:
        source.read(value)
    return bytes(value[()]).decode()
