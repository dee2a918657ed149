"""The file of a checkpoint: one rank's share of a program's state, sealed."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ...errors import MeshprepError

SIZE, FORMAT, VERSION = 512, "meshprep-checkpoint", 3


@dataclass(frozen=True)
class Origin:
    """What a checkpoint belongs to."""

    plan: str  # hash of the mesh of the plan, or of this rank's part of it
    ranks: int  # how many the program runs on
    mark: str  # the same in the files of all ranks for one checkpoint, and in no other one


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A program's state before one of its calls."""

    # Every call of a loop before the entry: its name, a digest of loop and kernel, and its dats.
    calls: Sequence[str]
    globals: Sequence[bytes]  # for each of them, the values of the globals that it changed
    # By number: values at the entry, by the order in which the program made its dats; on ranks the
    # owned ones.
    dats: Mapping[int, NDArray[Any]]


def write(path: Path, origin: Origin, checkpoint: Checkpoint) -> None:
    """Write a checkpoint and seal it; raises OSError when the disk refuses."""
    from ...plan.hdf5 import new_hdf5

    names = sorted(set(checkpoint.calls))
    number = {name: i for i, name in enumerate(names)}
    with new_hdf5(path, SIZE) as file:
        file.attrs["entry"] = len(checkpoint.calls)
        for name, value in vars(origin).items():
            file.attrs[name] = value
        file.attrs["loops"] = json.dumps(names)
        file["calls"] = np.array([number[c] for c in checkpoint.calls], np.int32)
        file["globals/length"] = np.array([len(g) for g in checkpoint.globals], np.int64)
        file["globals/values"] = np.frombuffer(b"".join(checkpoint.globals), np.uint8)
        file.create_group("dats")
        for key, values in checkpoint.dats.items():
            # Nothing is written for bits that are all zero: they are what the file gives then.
            data = values if np.ascontiguousarray(values).view(np.uint8).any() else None
            file.create_dataset(f"dats/{key}", values.shape, values.dtype, data)
    with open(path, "r+b") as sealed:
        text = _seal(sealed)
        sealed.seek(0)
        sealed.write(text)


def origin_of(path: Path) -> Origin:
    """What a checkpoint belongs to.

    Raises MeshprepError when it is damaged, or of another version.
    """
    import h5py

    with open(path, "rb") as file:
        start = file.read(SIZE)
        wanted = f"{FORMAT} {VERSION}\n".encode()
        if start.startswith(FORMAT.encode()) and not start.startswith(wanted):
            raise MeshprepError(f"{path}: a checkpoint of another version: remove it to begin anew")
        if start != _seal(file):
            raise MeshprepError(f"{path}: no checkpoint, or damaged: remove it to begin anew")
    with h5py.File(path, "r") as file:
        at = file.attrs
        return Origin(str(at["plan"]), int(at["ranks"]), str(at["mark"]))


def read(path: Path) -> Checkpoint:
    """Read a checkpoint whose seal was checked by :func:`origin_of`."""
    import h5py

    with h5py.File(path, "r") as file:
        names = json.loads(file.attrs["loops"])
        ends = np.cumsum(file["globals/length"][:]).tolist()
        values = file["globals/values"][:].tobytes()
        return Checkpoint(
            [names[i] for i in file["calls"][:]],
            [values[a:b] for a, b in zip([0, *ends], ends, strict=False)],
            {int(key): file["dats"][key][:] for key in file["dats"]},
        )


def _seal(file: BinaryIO) -> bytes:
    file.seek(SIZE)
    digest = hashlib.sha256()
    while piece := file.read(1 << 22):
        digest.update(piece)
    text = f"{FORMAT} {VERSION}\nsha256 {digest.hexdigest()}\n"
    return text.encode().ljust(SIZE, b"\0")
