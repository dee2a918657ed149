"""Files of arrays: HDF5 of any layout, changed in a copy, ``.npy``, ``.npz``."""

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
from ..guard import guarded
from ..text.packed import check_unpacked
from ..text.quoting import quoted
from .permute import FieldFormat, Permuter, PlacedArray


def _read_placed(path: Path, permuter: Permuter) -> dict[str, PlacedArray]:
    import h5py

    from ..op2.infer import classify, infer, load
    from ..op2.read import index_range

    if is_plan(path) or is_parts(path):
        kind = "plan" if is_plan(path) else "mesh in parts"
        raise MeshprepError(f"is a {kind}: name the file with the values")
    with guarded("not a readable HDF5 file"), h5py.File(path, "r") as file:
        declared = _declared(file, permuter)
        datasets = classify(file, declared)
        check_names(declared, [f.path for f in datasets], (*permuter.plan.sizes, NO_SET))
        # Sets of equal order need not be told apart, unless somebody does.
        told_apart = {*permuter.sizes}
        for target in declared.values():
            told_apart.update(part.strip() for part in target.split("->"))
        sizes = {n: s for n, s in permuter.plan.sizes.items() if n in told_apart}
        inferred = infer(datasets, sizes, declared, lambda p: index_range(file[p]))
        permuter.declared.setdefault(BASE, str(inferred.base))
        at = {path: f"{a}->{b}" for path, (a, b) in inferred.maps.items()} | dict(
            inferred.dats
        )
        return {path: PlacedArray(load(file[path]), target) for path, target in at.items()}


def _declared(file: Any, permuter: Permuter) -> dict[str, str]:
    """What is declared, and for the other datasets what is known of those of the mesh."""
    target_by_name = {
        name: target
        for name, target in permuter.known.items()
        if name in file or name == BASE
    }
    declared = {
        n: p for n, p in (target_by_name | permuter.declared).items() if n != COORDINATES
    }
    sizes = permuter.plan.sizes
    out = {}
    for name, target in declared.items():
        # a known dataset must have the rows that it had in the mesh
        sure = name == BASE or name in permuter.declared
        if sure or getattr(file[name], "shape", ())[:1] == (sizes.get(rows_of(target)),):
            out[name] = target
    return out


def _write_arrays(
    source: Path, target: Path, arrays: Mapping[str, NDArray], permuter: Permuter
) -> None:
    import h5py

    shutil.copyfile(source, target)
    with guarded("the HDF5 file could not be written"), h5py.File(target, "r+") as file:
        for path, values in arrays.items():
            if values.size:
                file[path][...] = values


def _load(path: Path, elements: int) -> dict[str, NDArray]:
    """Every array by name; ``*`` in a .npy file. The plan has so many elements in all."""
    # Opened here: NumPy leaves a damaged archive open.
    with guarded("not a readable NumPy file"), path.open("rb") as file:
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            if file.read(1):
                raise MeshprepError(
                    "holds more than one array: write each into a file of its own"
                )
            return {ANY: loaded}
        names = loaded.zip.namelist()
        if len({_member_name(member) for member in names}) < len(names):
            raise MeshprepError("has two members of one name: give each another name")
        for member in loaded.zip.infolist():
            size = member.file_size
            packed = member.compress_size
            check_unpacked(
                what=f"member {quoted(member.filename)}",
                n_bytes=size,
                packed=packed,
                elements=elements,
            )
        # By the whole name: asked for `a.npy`, NumPy gives `a` where there are both.
        # Of other files in the archive it gives the bytes.
        arrays = {
            _member_name(m): a for m in names if isinstance(a := loaded[m], np.ndarray)
        }
        for member in names:
            if member.endswith(".npy") and _member_name(member) not in arrays:
                raise MeshprepError(f"member '{member}' is no array: the file is damaged")
        return arrays


def _member_name(member: str) -> str:
    return member.removesuffix(".npy")


def _read_arrays(path: Path, permuter: Permuter) -> dict[str, PlacedArray]:
    out = {}
    elements = sum(permuter.plan.sizes.values())
    for name, values in _load(path, elements).items():
        if values.ndim:
            place = permuter.place(name, len(values))
        else:
            place = None
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
    with (
        zipfile.ZipFile(source) as old,
        zipfile.ZipFile(target, "w", allowZip64=True) as new,
    ):
        new.comment = old.comment
        for member in old.infolist():
            values = arrays.get(_member_name(member.filename))
            copy = zipfile.ZipInfo(member.filename, member.date_time)
            copy.compress_type = member.compress_type
            copy.external_attr = member.external_attr
            with new.open(copy, "w", force_zip64=True) as file:
                if values is None:
                    with old.open(member) as content:
                        shutil.copyfileobj(content, file)
                else:
                    np.lib.format.write_array(file, values, allow_pickle=False)


NPY = FieldFormat(_read_arrays, _write_npy)
NPZ = FieldFormat(_read_arrays, _write_npz)
HDF5 = FieldFormat(_read_placed, _write_arrays)
