"""Files of element numbers: original numbers, owners, blocks; as text, .npy or HDF5."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.file.atomic import check_input, reason
from meshprep_runtime.types.ordering import Ordering

from .. import io
from ..mesh import Dat, Mesh
from .format import Format
from .guard import guarded
from .op2.layout import ORIGINAL_ID


def with_original_ids(
    mesh: Mesh, ordering: Mapping[str, Ordering], target: Format
) -> tuple[Mesh, list[str]]:
    """The mesh with ``original_id``, from 0, on nodes and cells; and where it is left out.

    Sets that have one already keep it: it says the way back to the first file. Others get
    none then, which would lead to another. ``ordering`` is from the file that was read.
    Formats without whole numbers get doubles, which hold them exactly; those whose usual
    readers fail, nothing.
    """
    notes = []
    names = [
        s.name for s in mesh.sets.values() if s.size and not s.parts and s.name in ordering
    ]
    cells = [n for n in names if n != "nodes"]
    before = [n for n in names if mesh.dat(ORIGINAL_ID, n) is not None]
    # Give nodes and cells their numbers apart: a format may hold those of nodes alone.
    for chosen in (["nodes"] if "nodes" in names else [], cells):
        missing = [n for n in chosen if mesh.dat(ORIGINAL_ID, n) is None]
        if missing and before:
            told = f"those of {', '.join(before)} are of an earlier file"
            notes.append(f"no original_id on {', '.join(missing)}: {told}")
            continue
        if target.breaks:
            fails = target.breaks(mesh, missing)
        else:
            fails = ""
        if fails:
            places = ", ".join(f"ordering/{n}/new_to_old" for n in missing)
            notes.append(
                f"no original_id on cells, since {fails}: the plan has it, in {places}"
            )
        else:
            mesh = _with(mesh=mesh, names=missing, ordering=ordering, target=target)
    return mesh, notes


def _with(
    mesh: Mesh, names: Sequence[str], ordering: Mapping[str, Ordering], target: Format
) -> Mesh:
    if names:
        before = set(io.losses(mesh, target))
    else:
        before = set()
    for kind in (np.int32, np.float64) if names else ():
        dats = [
            Dat(ORIGINAL_ID, n, ordering[n].new_to_old.astype(kind, copy=False))
            for n in names
        ]
        more = mesh.with_(dats=dats)
        if set(io.losses(more, target)) <= before:
            return more
    return mesh


# The last one holds an array, the others text.
ENDINGS = (".txt", ".perm", ".part", ".npy")


def check_vector(path: Path) -> None:
    """Raise MeshprepError unless the ending of the name tells what to write."""
    if path.suffix.lower() not in ENDINGS:
        raise MeshprepError(
            f"{path}: cannot tell what to write: use one of {' '.join(ENDINGS)}"
        )


# Files of HDF5, and those followed by the name of a dataset.
_HDF5 = re.compile(r"(.+\.(?:h5|hdf5|hdf))(?::(.+))?", re.IGNORECASE)


def read_vector(path: Path) -> NDArray[np.integer]:
    """Read numbers from ``.npy`` of any shape, HDF5, or text separated by white space.

    Of HDF5 the only dataset of whole numbers is taken, or the one that is named behind a
    colon, as in ``own.h5:part_4``; one of a single column is a row. Raises MeshprepError,
    which begins with the path, for files that cannot be read or hold others.
    """
    hdf5 = _HDF5.fullmatch(str(path))
    try:
        if hdf5:
            return _read_dataset(Path(hdf5[1]), hdf5[2])
        check_input(path)
        if path.suffix.lower() == ".npy":
            values = np.load(path, allow_pickle=False)
        else:
            values = np.array(path.read_bytes().split(), dtype=np.int64)
    except (MeshprepError, OSError) as error:
        why = reason(error) if isinstance(error, OSError) else str(error)
        raise MeshprepError(f"{path}: {why}") from None
    except (ValueError, OverflowError):
        raise MeshprepError(
            f"{path}: is neither .npy nor text with whole numbers"
        ) from None
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu":
        raise MeshprepError(f"{path}: must hold whole numbers, one for each element")
    return values


def _read_dataset(path: Path, name: str | None) -> NDArray[np.integer]:
    """The whole numbers of a dataset of an HDF5 file: the named one, or the only one."""
    check_input(path)
    with guarded("not a readable HDF5 file"), h5py.File(path, "r") as file:
        datasets: dict[str, h5py.Dataset] = {}

        def note_whole_numbers(place: str, item: h5py.Dataset | h5py.Group) -> None:
            if isinstance(item, h5py.Dataset) and item.dtype.kind in "iu":
                datasets[place] = item

        file.visititems(note_whole_numbers)
        if name is None and len(datasets) != 1:
            raise MeshprepError(
                f"holds {len(datasets)} datasets of whole numbers ({', '.join(datasets)}): "
                "name one, as in FILE.h5:NAME"
            )
        chosen = next(iter(datasets)) if name is None else name.strip("/")
        if chosen not in datasets:
            raise MeshprepError(
                f"has no dataset '{chosen}' of whole numbers: use {', '.join(datasets)}"
            )
        values: NDArray[np.integer] = datasets[chosen][()]
    if values.ndim == 2 and values.shape[1] == 1:
        return values[:, 0]
    return values


def write_vector(path: Path, values: NDArray[np.integer]) -> None:
    """Write the numbers, (n,), in their order: one a line, or ``.npy`` in their type."""
    if path.suffix.lower() == ".npy":
        with path.open("wb") as file:
            np.save(file, values, allow_pickle=False)
    else:
        lines = map(str, values.tolist())
        path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
