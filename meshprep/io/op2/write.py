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
from ..guard import guarded
from .infer import MAP_TEXT, TYPE_NAME
from .layout import file_layout, reduced


def write(mesh: Mesh, path: Path) -> None:
    """Write contiguous sets, maps and dats, and the rest of the mesh's own file."""
    writable = reduced(mesh)
    buffer = io.BytesIO()
    with guarded("the HDF5 file could not be written"):
        # in memory, as HDF5 crashes the process when the disk is full on closing
        with h5py.File(buffer, "w", libver="earliest") as file:
            _fill_file(file, writable)
        path.write_bytes(buffer.getvalue())


def _fill_file(file: Any, mesh: Mesh) -> None:
    layout = file_layout(mesh)
    moving = frozenset((*layout.maps.values(), *layout.dats.values()))
    with h5py.File(io.BytesIO(layout.rest), "r") if layout.rest else nullcontext({}) as old:
        if layout.rest:
            _copy_group(source=old, out=file, prefix="", emptied=moving, skip=True)
        # A set is a dataset with its size. Maps and dats say their size, dim and type:
        # the size of a map is its rows, that of a dat the bytes of an element.
        for name, path in layout.sets.items():
            if path not in file:
                file.create_dataset(path, data=np.array([mesh.size(name)], dtype="<i4"))
        for name, path in layout.maps.items():
            table = mesh.maps[name].table
            _put_dataset(
                file=file,
                path=path,
                values=table + np.int64(layout.base) if layout.base else table,
                old=old,
            )
            _complete_attributes(
                file=file,
                path=path,
                old=old,
                size=len(table),
                dim=table.shape[1],
                kind="int".ljust(MAP_TEXT, "\0"),
            )
        for dat in mesh.dats:
            path = layout.dats[dat.set, dat.name]
            _put_dataset(file=file, path=path, values=dat.values, old=old)
            kind = TYPE_NAME.get(dat.values.dtype.str[1:])
            if kind and dat.values.ndim <= 2:
                dim = dat.values.shape[1] if dat.values.ndim == 2 else 1
                _complete_attributes(
                    file=file,
                    path=path,
                    old=old,
                    size=dim * dat.values.dtype.itemsize,
                    dim=dim,
                    kind=kind,
                )


def _put_dataset(file: Any, path: str, values: NDArray, old: Any) -> None:
    """A dataset of the type, and with the attributes, that it had in the old file."""
    before = old.get(path)
    kind = h5py.h5t.py_create(values.dtype, logical=True)
    axes = values.ndim
    if before is not None:
        # an element may be an array by its type
        base, row = before.dtype.subdtype or (before.dtype, ())
        if before.ndim == 1 and not row:
            values = values.reshape(len(values))
        # maps are int32 in memory, whatever the file has
        same = (base.kind, base.itemsize) == (values.dtype.kind, values.dtype.itemsize)
        same = same or base.kind + values.dtype.kind in ("ii", "ui")
        if same and values.shape[values.ndim - len(row) :] == row:
            kind = before.id.get_type()
            axes = values.ndim - len(row)
    links = h5py.h5p.create(h5py.h5p.LINK_CREATE)
    links.set_create_intermediate_group(True)
    links.set_char_encoding(h5py.h5t.CSET_UTF8)
    space = h5py.h5s.create_simple(values.shape[:axes])
    dataset = h5py.Dataset(h5py.h5d.create(file.id, path.encode(), kind, space, lcpl=links))
    if values.size:
        dataset[...] = values
    if before is not None:
        copy_attributes(before, dataset)


def _complete_attributes(
    file: Any, path: str, old: Any, size: int, dim: int, kind: str
) -> None:
    """Complete the attributes that OP2 wants; datasets that had none stay as they are."""
    item = file[path]
    before = old.get(path)
    if before is not None and not {"size", "dim", "type"} & set(before.attrs):
        return
    describe(item, {"size": size, "dim": dim}, kind)


def describe(item: Any, numbers: Mapping[str, int], kind: str) -> None:
    """Give a dataset the attributes of OP2 that it lacks: whole numbers, and its type."""
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

    No group may hold itself, which :func:`classify` refuses. Their types and attributes
    stay. Links other than hard ones are copied as links. O(bytes kept).
    """
    with h5py.File("rest", "w", driver="core", backing_store=False) as out:
        _copy_group(source=file, out=out, prefix="", emptied=frozenset(emptied))
        out.flush()
        return bytes(out.id.get_file_image())


def _copy_group(
    source: Any, out: Any, prefix: str, emptied: frozenset[str], skip: bool = False
) -> None:
    copy_attributes(source, out)
    for name in source:
        link = source.get(name, getlink=True)
        path = f"{prefix}{name}"
        if not isinstance(link, h5py.HardLink):
            out[name] = link
        elif isinstance(source[name], h5py.Group):
            inner = out.create_group(name)
            _copy_group(
                source=source[name],
                out=inner,
                prefix=f"{path}/",
                emptied=emptied,
                skip=skip,
            )
        elif path not in emptied:
            _copy_dataset(source=source, out=out, name=name, path=path)
        elif not skip:
            space = h5py.h5s.create_simple((0, *source[name].shape[1:]))
            _twin(old=source[name], out=out, name=name, space=space)


def _copy_dataset(source: Any, out: Any, name: str, path: str) -> None:
    """Copy an object with its values as they stand; as one only where it needs that.

    A damaged object that is copied whole can crash the library; one that is opened cannot.
    """
    # Copy plain numbers by the types of the file, unconverted; all else as the library
    # does.
    old = source[name]
    if isinstance(old, h5py.Datatype):
        old.id.copy().commit(out.id, name.encode())
        copy_attributes(old, out[name])
        return
    if old.id.get_type().detect_class(h5py.h5t.REFERENCE):
        raise MeshprepError(
            f"dataset '{path}' holds references, which no copy keeps: take it out"
        )
    if old.dtype.kind not in "biufS":
        source.copy(name, out, name)
        return
    new = _twin(
        old=old,
        out=out,
        name=name,
        space=old.id.get_space(),
        layout=old.id.get_create_plist(),
    )
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
            _write_attribute(old=old, out=out, name=name, values=_read_attribute(old))


def references(file: Any) -> tuple[str, ...]:
    """The attributes that refer to other objects, such as dimension scales, in words."""
    names: list[str] = []

    def visit(path: str, item: Any) -> None:
        names.extend(
            f"attribute '{name}' of '{path}', which refers to another object"
            for name in item.attrs
            if item.attrs.get_id(name).get_type().detect_class(h5py.h5t.REFERENCE)
        )

    visit("/", file)
    file.visititems(visit)
    return tuple(names)


def _read_attribute(old: Any) -> Any:
    """The values as in the file, or as Python objects; None where there are none."""
    if old.get_space().get_simple_extent_type() == h5py.h5s.NULL or old.shape == (0,):
        return None
    values = np.empty(old.shape, old.dtype)
    old.read(values, mtype=_python_value(old))
    return values


def _write_attribute(old: Any, out: Any, name: str, values: Any) -> None:
    new = h5py.h5a.create(out.id, name.encode(), old.get_type(), old.get_space())
    if values is not None:
        new.write(values, mtype=_python_value(old))


def _python_value(old: Any) -> Any:
    # As it stands in the file: a conversion would cut C strings without a zero byte.
    if old.dtype.hasobject:
        return h5py.h5t.py_create(old.dtype)
    return old.get_type()
