"""The file of a checkpoint: sealed, written beside and renamed, two generations kept."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ...errors import MeshprepError
from ...plan.atomic import new_file

SIZE, FORMAT, VERSION = 512, "meshprep-checkpoint", 1


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A program's state before one of its calls.

    Parameters
    ----------
    plan : str
        Hash of the mesh of the plan.
    calls : sequence of str
        Every call of a loop before the entry: its name and a digest of loop and kernel.
    globals : sequence of bytes
        For each of them, the values of the globals that it changed.
    dats : mapping of number to array
        Values at the entry, by the order in which the program made its dats.
    """

    plan: str
    calls: Sequence[str]
    globals: Sequence[bytes]
    dats: Mapping[int, NDArray[Any]]


def older(path: Path) -> Path:
    """Where the checkpoint before the last lies."""
    return path.with_name(f"{path.name}.1")


def write(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; the one before stays as ``older(path)``. Nothing appears half written."""
    import h5py

    names = sorted(set(checkpoint.calls))
    number = {name: i for i, name in enumerate(names)}
    with new_file(path, overwrite=True) as staged:
        with h5py.File(staged, "w", userblock_size=SIZE) as file:
            file.attrs["entry"] = len(checkpoint.calls)
            file.attrs["plan"] = checkpoint.plan
            file.attrs["loops"] = json.dumps(names)
            file["calls"] = np.array([number[c] for c in checkpoint.calls], np.int32)
            file["globals/length"] = np.array([len(g) for g in checkpoint.globals], np.int64)
            file["globals/values"] = np.frombuffer(b"".join(checkpoint.globals), np.uint8)
            file.create_group("dats")
            for key, values in checkpoint.dats.items():
                file[f"dats/{key}"] = values
        with open(staged, "r+b") as sealed:
            text = _seal(sealed)
            sealed.seek(0)
            sealed.write(text)
        # The last step but one: from here until the new file has its name there is only this one.
        if path.exists():
            os.replace(path, older(path))


def read_newest(path: Path) -> Checkpoint | None:
    """The newest checkpoint that is whole; None where there is no file at all.

    Raises
    ------
    MeshprepError
        When files are there and none is whole, or the version is another.
    """
    found = [p for p in (path, older(path)) if p.exists()]
    problem = None
    for one in found:
        try:
            return _read(one)
        except MeshprepError as error:
            problem = problem or error
    if problem is not None:
        raise problem
    return None


def _read(path: Path) -> Checkpoint:
    import h5py

    with open(path, "rb") as file:
        start = file.read(SIZE)
        wanted = f"{FORMAT} {VERSION}\n".encode()
        if start.startswith(FORMAT.encode()) and not start.startswith(wanted):
            raise MeshprepError(f"{path}: a checkpoint of another version: remove it to begin anew")
        if start != _seal(file):
            raise MeshprepError(f"{path}: no checkpoint, or damaged: remove it to begin anew")
    with h5py.File(path, "r") as file:
        names = json.loads(file.attrs["loops"])
        ends = np.cumsum(file["globals/length"][:]).tolist()
        values = file["globals/values"][:].tobytes()
        return Checkpoint(
            str(file.attrs["plan"]),
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
