"""What an OP2 file holds: which of its datasets are sets, maps, dats, or none of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import h5py
import numpy as np

from meshprep_runtime.errors import MeshprepError

from ..declared import COORDINATES, NO_SET, values_of

# OP2 stores the type of a map as a text of this length, that of a dat in its own length.
MAP_TEXT = 10
MAX_DEPTH = 32
# Bytes that need no proof that they are in the file, and the best that packing can do.
_SMALL, _BEST_PACKING = 1 << 26, 1032
# Rows that are read at once where not all are needed together.
ROWS = 1 << 20
# OP2's names of the types that a dat may have.
TYPE_NAME = {"f8": "double", "f4": "float", "i4": "int", "i8": "long"}


@dataclass(frozen=True)
class DatasetInfo:
    """A dataset: its path without the leading slash, what it is, its shape and type.

    ``kind`` is ``"set"``, ``"map"``, ``"dat"`` (OP2 says so, or the user), ``"array"`` (rows of
    something, perhaps of a set), ``"variable"`` (rows of variable length) or ``"other"``.
    """

    path: str
    kind: str
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def rows(self) -> int:
        return self.shape[0]


def datasets(group: Any, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Every dataset with its path, by hard links only, in the order of the names.

    Raises MeshprepError for a link into another file: values there would keep their order.
    """
    if depth > MAX_DEPTH:
        raise MeshprepError(f"group '{prefix}' is nested too deep or linked into itself")
    for name in sorted(group):
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            raise MeshprepError(
                f"link '{prefix}{name}' leads into another file: copy what is there into this one"
            )
        if not isinstance(link, h5py.HardLink):
            continue
        item = group[name]
        if isinstance(item, h5py.Group):
            yield from datasets(item, f"{prefix}{name}/", depth + 1)
        elif isinstance(item, h5py.Dataset):
            yield f"{prefix}{name}", item


def classify(file: Any, declared: Mapping[str, str]) -> list[DatasetInfo]:
    """Every dataset of the file and what it is, as far as it says itself."""
    return [
        DatasetInfo(path, _kind(path, item, declared), tuple(item.shape or ()), item.dtype)
        for path, item in datasets(file)
    ]


def _kind(path: str, item: Any, declared: Mapping[str, str]) -> str:
    place = declared.get(path, "")
    if place == NO_SET:
        return "other"
    if place and path != COORDINATES:
        return "map" if values_of(place) else "dat"
    # Numbers and fixed text; a dataset without a shape has no rows.
    if item.shape is None or item.ndim == 0:
        return "other"
    if item.dtype.kind not in "iufcbSV":
        return "variable"
    if not len(item.attrs):
        single = item.shape == (1,) and item.dtype.kind in "iu"
        return "set" if single else "array"
    if {"dim", "type"} <= set(item.attrs):
        if "size" not in item.attrs:
            return "other"
        return "map" if _is_map(item) else "dat"
    return "array"


def _is_map(item: Any) -> bool:
    """Maps and integer dats have the same attributes; the size of a map is its number of rows."""
    if item.dtype.kind not in "iu" or item.ndim != 2:
        return False
    size = np.asarray(item.attrs["size"]).reshape(-1)
    of_map = size.size == 1 and int(size[0]) == item.shape[0]
    of_dat = size.size == 1 and int(size[0]) == item.dtype.itemsize * item.shape[1]
    if of_map != of_dat:
        return of_map
    kind = item.attrs.get_id("type").get_type()
    return isinstance(kind, h5py.h5t.TypeStringID) and kind.get_size() == MAP_TEXT


def load(item: Any) -> np.ndarray:
    """The values of a dataset in native order; refused where the file cannot hold so many."""
    check_held(item)
    listed = item.dtype.kind == "O" and h5py.check_string_dtype(item.dtype) is None
    if listed or item.id.get_type().detect_class(h5py.h5t.REFERENCE):
        raise MeshprepError(
            f"dataset '{item.name[1:]}' holds lists or references, which cannot be moved: "
            f"say that it is on no set by --sets '{item.name[1:]}={NO_SET}'"
        )
    return native(item[()])


def check_held(item: Any) -> None:
    """Refuse a dataset whose values are not in this file."""
    if item.external or item.is_virtual:
        raise MeshprepError(f"dataset '{item.name}' lies in other files: copy it into this one")
    claimed, held = prod(item.shape) * item.dtype.itemsize, item.id.get_storage_size()
    if claimed > _SMALL and claimed > _BEST_PACKING * held:
        raise MeshprepError(
            f"dataset '{item.name}' claims {claimed} bytes, but holds {held}: the file is damaged"
        )


def native(values: np.ndarray) -> np.ndarray:
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def pieces(item: Any) -> Iterator[np.ndarray]:
    """The values of a dataset, some rows at a time; refused as by :func:`load`."""
    check_held(item)
    for begin in range(0, item.shape[0], ROWS):
        yield native(item[begin : begin + ROWS])
