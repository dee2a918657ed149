"""Writing OP2's HDF5 meshes."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from ...mesh import Mesh
from ..meshio_adapter.harden import guarded
from .layout import file_layout, reduced
from .objects import MAP_TEXT, TYPE_NAME
from .rest import copy_attributes, copy_references, restore


def write(mesh: Mesh, path: Path) -> None:
    """Write sets, maps and dats, contiguous, and the rest of the file that the mesh came from."""
    kept, buffer = reduced(mesh), io.BytesIO()
    with guarded("the HDF5 file could not be written"):
        # in memory, as HDF5 crashes the process when the disk is full on closing
        with h5py.File(buffer, "w", libver="earliest") as file:
            _fill(file, kept)
        path.write_bytes(buffer.getbuffer())


def _fill(file: Any, mesh: Mesh) -> None:
    made = file_layout(mesh)
    moving = {*made.maps.values(), *made.dats.values()}
    restore(made.rest, file, moving)
    with h5py.File(io.BytesIO(made.rest), "r") if made.rest else _nothing() as old:
        for name, path in made.sets.items():
            if path not in file:
                file.create_dataset(path, data=np.array([mesh.size(name)], dtype="<i4"))
        for name, path in made.maps.items():
            table = mesh.maps[name].table
            _put(file, path, table + np.int64(made.base) if made.base else table, old)
            _describe(file, path, old, len(table), table.shape[1], "int".ljust(MAP_TEXT, "\0"))
        for d in mesh.dats:
            path = made.dats[d.set, d.name]
            _put(file, path, d.values, old)
            kind = TYPE_NAME.get(d.values.dtype.str[1:])
            if kind and d.values.ndim <= 2:
                dim = d.values.shape[1] if d.values.ndim == 2 else 1
                _describe(file, path, old, dim * d.values.dtype.itemsize, dim, kind)
        copy_references(old, file)


def _nothing() -> Any:
    return h5py.File("nothing", "w", driver="core", backing_store=False)


def _put(file: Any, path: str, values: NDArray, old: Any) -> None:
    """A dataset of the type, and with the attributes, that it had in the old file."""
    before = old.get(path)
    kind, axes = h5py.h5t.py_create(values.dtype, logical=True), values.ndim
    if before is not None:
        # an element may be an array by its type
        base, row = before.dtype.subdtype or (before.dtype, ())
        if before.ndim == 1 and not row:
            values = values.reshape(len(values))
        if _same_kind(base, values.dtype) and values.shape[values.ndim - len(row) :] == row:
            kind, axes = before.id.get_type(), values.ndim - len(row)
    links = h5py.h5p.create(h5py.h5p.LINK_CREATE)
    links.set_create_intermediate_group(True)
    links.set_char_encoding(h5py.h5t.CSET_UTF8)
    space = h5py.h5s.create_simple(values.shape[:axes])
    made = h5py.Dataset(h5py.h5d.create(file.id, path.encode(), kind, space, lcpl=links))
    if values.size:
        made[...] = values
    if before is not None:
        copy_attributes(before, made)


def _same_kind(old: np.dtype, new: np.dtype) -> bool:
    """Whether the old type holds these values; maps are int32 in memory, whatever the file has."""
    same = (old.kind, old.itemsize) == (new.kind, new.itemsize)
    return same or old.kind + new.kind in ("ii", "ui")


def _describe(file: Any, path: str, old: Any, size: int, dim: int, kind: str) -> None:
    """Complete the attributes that OP2 wants; a dataset that had none of them stays as it was."""
    item, before = file[path], old.get(path)
    if before is not None and not {"size", "dim", "type"} & set(before.attrs):
        return
    describe(item, {"size": size, "dim": dim}, kind)


def describe(item: Any, numbers: Mapping[str, int], kind: str) -> None:
    """Give a dataset those attributes of OP2 that it has not: whole numbers, and its type."""
    for name, number in numbers.items():
        if name not in item.attrs:
            item.attrs.create(name, np.array([number], dtype="<i4"))
    if "type" in item.attrs:
        return
    # A C string of exactly this length, as OP2 writes it, without room for a zero byte.
    text = h5py.h5t.C_S1.copy()
    text.set_size(len(kind))
    made = h5py.h5a.create(item.id, b"type", text, h5py.h5s.create(h5py.h5s.SCALAR))
    made.write(np.array(kind.encode(), dtype=f"S{len(kind)}"), mtype=text)
