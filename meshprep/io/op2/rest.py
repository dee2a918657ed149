"""HDF5 objects from file to file, byte for byte: what meshprep does not have to understand."""

import io
from collections.abc import Collection
from typing import Any

import h5py
import numpy as np

from meshprep_runtime.errors import MeshprepError

from .objects import MAX_DEPTH


def image(file: Any, emptied: Collection[str]) -> bytes:
    """A file like this one, in which the datasets ``emptied`` have their rows left out.

    Their types and attributes stay. Links other than hard ones are copied as links. O(bytes kept).
    """
    with h5py.File("rest", "w", driver="core", backing_store=False) as out:
        _copy_group(file, out, "", frozenset(emptied), 0)
        out.flush()
        return bytes(out.id.get_file_image())


def restore(stored: bytes, out: Any, emptied: Collection[str]) -> None:
    """Copy everything of an image but the emptied datasets into a new file."""
    if not stored:
        return
    with h5py.File(io.BytesIO(stored), "r") as file:
        _copy_group(file, out, "", frozenset(emptied), 0, skip=True)


def _copy_group(
    source: Any, out: Any, prefix: str, emptied: frozenset[str], depth: int, skip: bool = False
) -> None:
    if depth > MAX_DEPTH:
        raise MeshprepError(f"group '{prefix}' is nested too deep or linked into itself")
    copy_attributes(source, out)
    for name in source:
        link, path = source.get(name, getlink=True), f"{prefix}{name}"
        if not isinstance(link, h5py.HardLink):
            out[name] = link
        elif isinstance(source[name], h5py.Group):
            inner = out.create_group(name)
            _copy_group(source[name], inner, f"{path}/", emptied, depth + 1, skip)
        elif path not in emptied:
            _copy_dataset(source, out, name)
        elif not skip:
            space = h5py.h5s.create_simple((0, *source[name].shape[1:]))
            _twin(source[name], out, name, space)


def _copy_dataset(source: Any, out: Any, name: str) -> None:
    """Copy an object with its values as they stand; as one only where its type needs that.

    A damaged object that is copied whole can crash the library; one that is opened cannot.
    """
    old = source[name]
    if isinstance(old, h5py.Datatype):
        old.id.copy().commit(out.id, name.encode())
        copy_attributes(old, out[name])
        return
    if old.dtype.kind not in "biufS" or old.external:
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
    """Give ``out`` every attribute of ``source``, in the same type."""
    for name in source.attrs:
        old = source.attrs.get_id(name)
        kind, space = old.get_type(), old.get_space()
        new = h5py.h5a.create(out.id, name.encode(), kind, space)
        if space.get_simple_extent_type() != h5py.h5s.NULL and old.shape != (0,):
            # As it stands in the file: a conversion would cut C strings without a zero byte.
            plain = old.dtype.kind != "O"
            memory = kind if plain else h5py.h5t.py_create(old.dtype, logical=True)
            values = np.empty(old.shape, dtype=old.dtype)
            old.read(values, mtype=memory)
            new.write(values, mtype=memory)
