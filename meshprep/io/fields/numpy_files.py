"""``.npy`` and ``.npz``."""

import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..declared import ANY
from ..meshio_adapter.harden import guarded
from .permute import FieldFormat, Permuter, PlacedArray


def _load(path: Path) -> dict[str, NDArray]:
    """Every array by name; ``*`` in a .npy file."""
    # Opened here: NumPy leaves a damaged archive open.
    with guarded("not a readable NumPy file"), path.open("rb") as file:
        found = np.load(file, allow_pickle=False)
        if isinstance(found, np.ndarray):
            if file.read(1):
                raise MeshprepError("holds more than one array: write each into a file of its own")
            return {ANY: found}
        names = found.zip.namelist()
        if len({_name(member) for member in names}) < len(names):
            raise MeshprepError("has two members of one name: give each another name")
        # By the whole name: asked for `a.npy`, NumPy gives `a` where there are both.
        # Of other files in the archive it gives the bytes.
        arrays = {_name(m): a for m in names if isinstance(a := found[m], np.ndarray)}
        for member in names:
            if member.endswith(".npy") and _name(member) not in arrays:
                raise MeshprepError(f"member '{member}' is no array: the file is damaged")
        return arrays


def _name(member: str) -> str:
    return member.removesuffix(".npy")


def _read(path: Path, permuter: Permuter) -> dict[str, PlacedArray]:
    out = {}
    for name, values in _load(path).items():
        place = permuter.place(name, len(values)) if values.ndim else None
        if place is not None:
            out[name] = PlacedArray(values, place)
    return out


def _write_npy(
    source: Path, target: Path, arrays: Mapping[str, NDArray], permuter: Permuter
) -> None:
    with target.open("wb") as file:
        np.save(file, arrays[ANY], allow_pickle=False)


def _write_npz(
    source: Path, target: Path, arrays: Mapping[str, NDArray], permuter: Permuter
) -> None:
    """Every member in its place and packed as it was."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", allowZip64=True) as new:
        new.comment = old.comment
        for member in old.infolist():
            values = arrays.get(_name(member.filename))
            copy = zipfile.ZipInfo(member.filename, member.date_time)
            copy.compress_type, copy.external_attr = member.compress_type, member.external_attr
            with new.open(copy, "w", force_zip64=True) as file:
                if values is None:
                    with old.open(member) as content:
                        shutil.copyfileobj(content, file)
                else:
                    np.lib.format.write_array(file, values, allow_pickle=False)


NPY = FieldFormat(_read, _write_npy)
NPZ = FieldFormat(_read, _write_npz)
