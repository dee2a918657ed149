"""HDF5 files of any layout, OP2's results among them: datasets change in a copy of the file."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.file.seal import is_parts, is_plan

from ..declared import BASE, COORDINATES, NO_SET, check_names, rows_of
from ..meshio_adapter.harden import guarded
from .permute import FieldFormat, Permuter, PlacedArray


def _read(path: Path, permuter: Permuter) -> dict[str, PlacedArray]:
    import h5py

    from ..op2.infer import infer
    from ..op2.objects import classify, load
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
    return {
        n: p for n, p in declared.items() if n in permuter.declared or _fits(file, permuter, n, p)
    }


def _fits(file: Any, permuter: Permuter, name: str, place: str) -> bool:
    """Whether a known dataset has the rows that it had in the mesh."""
    if name == BASE:
        return True
    size = permuter.plan.sizes.get(rows_of(place))
    return size is not None and getattr(file[name], "shape", ())[:1] == (size,)


def _write(source: Path, target: Path, arrays: Mapping[str, NDArray], permuter: Permuter) -> None:
    import h5py

    shutil.copyfile(source, target)
    with guarded("the HDF5 file could not be written"), h5py.File(target, "r+") as file:
        for path, values in arrays.items():
            if values.size:
                file[path][...] = values


HDF5 = FieldFormat(_read, _write)
