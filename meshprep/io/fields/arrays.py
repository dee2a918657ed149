"""HDF5 files of any layout, whose datasets change in a copy of the file, ``.npy`` and ``.npz``."""

import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.file.seal import is_parts, is_plan

from ..declared import ANY, BASE, COORDINATES, NO_SET, check_names, rows_of
from ..meshio_adapter.harden import guarded
from .permute import FieldFormat, Permuter, PlacedArray


def _read(path: Path, permuter: Permuter) -> dict[str, PlacedArray]:
    import h5py

    from ..op2.infer import classify, infer, load
    from ..op2.read import index_range

    if is_plan(path) or is_parts(path):
        kind = "plan" if is_plan(path) else "mesh in parts"
        raise MeshprepError(f"is a {kind}: name the file with the values")
    with guarded("not a readable HDF5 file"), h5py.File(path, "r") as file:
        declared = _declared(file, permuter)
        found = classify(file, declared)
        check_names(declared, [f.path for f in found], (*permuter.plan.sizes, NO_SET))
        # Sets of equal order need not be told apart, unless somebody does.
        parts = {p.strip() for place in declared.values() for p in place.split("->")}
        sizes = {n: s for n, s in permuter.plan.sizes.items() if n in parts or n in permuter.sizes}
        inferred = infer(found, sizes, declared, lambda p: index_range(file[p]))
        permuter.declared.setdefault(BASE, str(inferred.base))
        at = {path: f"{a}->{b}" for path, (a, b) in inferred.maps.items()} | dict(inferred.dats)
        return {path: PlacedArray(load(file[path]), place) for path, place in at.items()}


def _declared(file: Any, permuter: Permuter) -> dict[str, str]:
    """What is declared, and for the other datasets what is known of those of the mesh."""
    known = {name: place for name, place in permuter.known.items() if name in file or name == BASE}
    declared = {n: p for n, p in (known | permuter.declared).items() if n != COORDINATES}
    sizes, out = permuter.plan.sizes, {}
    for name, place in declared.items():
        # a known dataset must have the rows that it had in the mesh
        sure = name == BASE or name in permuter.declared
        if sure or getattr(file[name], "shape", ())[:1] == (sizes.get(rows_of(place)),):
            out[name] = place
    return out


def _write(source: Path, target: Path, arrays: Mapping[str, NDArray], permuter: Permuter) -> None:
    import h5py

    shutil.copyfile(source, target)
    with guarded("the HDF5 file could not be written"), h5py.File(target, "r+") as file:
        for path, values in arrays.items():
            if values.size:
                file[path][...] = values


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


def _read_arrays(path: Path, permuter: Permuter) -> dict[str, PlacedArray]:
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


NPY = FieldFormat(_read_arrays, _write_npy)
NPZ = FieldFormat(_read_arrays, _write_npz)
HDF5 = FieldFormat(_read, _write)
