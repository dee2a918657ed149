"""Writing OP2's HDF5 meshes, and copying what meshprep does not have to understand."""

import io
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh import Mesh
from ..meshio_adapter.harden import guarded
from .infer import MAP_TEXT, TYPE_NAME
from .layout import file_layout, reduced


def write(mesh: Mesh, path: Path) -> None:
    """Write sets, maps and dats, contiguous, and the rest of the file that the mesh came from."""
    kept, buffer = reduced(mesh), io.BytesIO()
    with guarded("the HDF5 file could not be written"):
        # in memory, as HDF5 crashes the process when the disk is full on closing
        with h5py.File(buffer, "w", libver="earliest") as file:
            _fill(file, kept)
        path.write_bytes(buffer.getvalue())


def _fill(file: Any, mesh: Mesh) -> None:
    made = file_layout(mesh)
    moving = frozenset((*made.maps.values(), *made.dats.values()))
    with h5py.File(io.BytesIO(made.rest), "r") if made.rest else nullcontext({}) as old:
        if made.rest:
            _copy_group(old, file, "", moving, skip=True)
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


def _put(file: Any, path: str, values: NDArray, old: Any) -> None:
    """A dataset of the type, and with the attributes, that it had in the old file."""
    before = old.get(path)
    kind, axes = h5py.h5t.py_create(values.dtype, logical=True), values.ndim
    if before is not None:
        # an element may be an array by its type
        base, row = before.dtype.subdtype or (before.dtype, ())
        if before.ndim == 1 and not row:
            values = values.reshape(len(values))
        # maps are int32 in memory, whatever the file has
        same = (base.kind, base.itemsize) == (values.dtype.kind, values.dtype.itemsize)
        same = same or base.kind + values.dtype.kind in ("ii", "ui")
        if same and values.shape[values.ndim - len(row) :] == row:
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


def image(file: Any, emptied: Collection[str]) -> bytes:
    """A file like this one, in which the datasets ``emptied`` have their rows left out.

    No group may hold itself, which :func:`classify` refuses. Their types and attributes stay. Links
    other than hard ones are copied as links. O(bytes kept).
    """
    with h5py.File("rest", "w", driver="core", backing_store=False) as out:
        _copy_group(file, out, "", frozenset(emptied))
        out.flush()
        return bytes(out.id.get_file_image())


def _copy_group(
    source: Any, out: Any, prefix: str, emptied: frozenset[str], skip: bool = False
) -> None:
    copy_attributes(source, out)
    for name in source:
        link, path = source.get(name, getlink=True), f"{prefix}{name}"
        if not isinstance(link, h5py.HardLink):
            out[name] = link
        elif isinstance(source[name], h5py.Group):
            inner = out.create_group(name)
            _copy_group(source[name], inner, f"{path}/", emptied, skip)
        elif path not in emptied:
            _copy_dataset(source, out, name, path)
        elif not skip:
            space = h5py.h5s.create_simple((0, *source[name].shape[1:]))
            _twin(source[name], out, name, space)


def _copy_dataset(source: Any, out: Any, name: str, path: str) -> None:
    """Copy an object with its values as they stand; as one only where it needs that.

    What lies in other files stays there, neither read nor written. A damaged object that is copied
    whole can crash the library; one that is opened cannot.
    """
    old = source[name]
    if isinstance(old, h5py.Datatype):
        old.id.copy().commit(out.id, name.encode())
        copy_attributes(old, out[name])
        return
    if old.id.get_type().detect_class(h5py.h5t.REFERENCE):
        raise MeshprepError(f"dataset '{path}' holds references, which no copy keeps: take it out")
    if old.dtype.kind not in "biufS" or old.external or old.is_virtual:
        source.copy(name, out, name)
        return
    new = _twin(old, out, name, old.id.get_space(), old.id.get_create_plist())
    if old.size:
        values = np.empty(old.shape, old.dtype)
        every = h5py.h5s.ALL
        old.id.read(every, every, values, mtype=old.id.get_type())
        new.id.write(every, every, values, mtype=old.id.get_type())


def _twin(old: Any, out: Any, name: str, space: Any, layout: Any = None) -> Any:
    """A dataset of the same type and attributes, with values unset."""
    made = h5py.h5d.create(out.id, name.encode(), old.id.get_type(), space, layout)
    new = h5py.Dataset(made)
    copy_attributes(old, new)
    return new


def copy_attributes(source: Any, out: Any) -> None:
    """Give ``out`` every attribute of ``source`` without references, in the same type."""
    for name in source.attrs:
        old = source.attrs.get_id(name)
        if not old.get_type().detect_class(h5py.h5t.REFERENCE):
            _write_attribute(old, out, name, _read_attribute(old))


def references(file: Any) -> tuple[str, ...]:
    """The attributes that refer to other objects, such as dimension scales, in words."""
    found: list[str] = []

    def visit(path: str, item: Any) -> None:
        found.extend(
            f"attribute '{name}' of '{path}', which refers to another object"
            for name in item.attrs
            if item.attrs.get_id(name).get_type().detect_class(h5py.h5t.REFERENCE)
        )

    visit("/", file)
    file.visititems(visit)
    return tuple(found)


def _read_attribute(old: Any) -> Any:
    """The values as they stand in the file, or as objects of Python; None where there are none."""
    if old.get_space().get_simple_extent_type() == h5py.h5s.NULL or old.shape == (0,):
        return None
    values = np.empty(old.shape, old.dtype)
    old.read(values, mtype=_in_memory(old))
    return values


def _write_attribute(old: Any, out: Any, name: str, values: Any) -> None:
    new = h5py.h5a.create(out.id, name.encode(), old.get_type(), old.get_space())
    if values is not None:
        new.write(values, mtype=_in_memory(old))


def _in_memory(old: Any) -> Any:
    # As it stands in the file: a conversion would cut C strings without a zero byte.
    return h5py.h5t.py_create(old.dtype) if old.dtype.hasobject else old.get_type()
