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
            return {ANY: found}
        members = {name: found[name] for name in found.files}
        # Of other files in the archive NumPy gives the bytes.
        arrays = {n: values for n, values in members.items() if isinstance(values, np.ndarray)}
        for name in members.keys() - arrays.keys():
            if f"{name}.npy" in found.zip.namelist():
                raise MeshprepError(f"member '{name}.npy' is no array: the file is damaged")
        return arrays


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
        for member in old.infolist():
            values = arrays.get(member.filename.removesuffix(".npy"))
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
