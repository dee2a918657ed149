"""Damaged mesh files, and damaged plans under a right seal: one line of error or nothing wrong."""

import random
from pathlib import Path

import h5py
import numpy as np
from random_cases import one_line, slow_proof
from sealing import seal

from meshprep import io
from meshprep.mesh import Mesh
from meshprep.reporting import Comparison
from meshprep_runtime import MeshprepError, Plan
from meshprep_runtime.plan.file.seal import check_seal
from meshprep_runtime.plan.file.store import VERSIONS

FORMATS = (
    *(
        ".msh",
        ".vtu",
        ".vtk",
        ".su2",
        ".mesh",
        ".e",
        ".xdmf",
        ".med",
        ".inp",
        ".bdf",
        ".h5",
    ),
    ".cgns",
)


def spoiled(data: bytes, chance: random.Random) -> bytes:
    """The bytes cut short, with a piece left out, or with some of them changed."""
    out = bytearray(data)
    kind = chance.random()
    if kind < 0.3:
        return bytes(out[: chance.randrange(1, len(out))])
    if kind < 0.5:
        at = chance.randrange(len(out))
        del out[at : at + chance.randrange(1, 40)]
        return bytes(out)
    for _ in range(chance.choice([1, 1, 2, 8])):
        at = chance.randrange(len(out))
        out[at] = chance.choice(b"0123456789-e. ") if kind < 0.7 else out[at] ^ 1 << at % 8
    return bytes(out)


def read_spoiled(path: Path, good: bytes, chance: random.Random) -> str:
    """Spoil a mesh file and read it; "read", or what the error says.

    Raises AssertionError as :func:`read_damaged`.
    """
    path.write_bytes(spoiled(good, chance))
    return read_damaged(path)


def read_damaged(path: Path) -> str:
    """Read a damaged mesh file; "read", or what the error says.

    Raises
    ------
    AssertionError
        For errors of more than a line or without the file's name, and coordinates that are none.
    """
    try:
        mesh = io.read(path)
    except MeshprepError as error:
        return one_line(error, f"{path}: ")
    assert mesh.coordinates is None or np.isfinite(mesh.coordinates).all()
    return "read"


def try_files(mesh: Mesh, folder: Path, chance: random.Random, times: int) -> None:
    """Write a mesh in a random format and read it spoiled, some times over."""
    path = folder / f"a{chance.choice(FORMATS)}"
    try:
        io.write(mesh, path, drop=True)
    except MeshprepError:
        return
    good = path.read_bytes()
    for _ in range(times):
        read_spoiled(path, good, chance)


def try_plans(plan: Plan, folder: Path, chance: random.Random, times: int) -> None:
    """Save a plan, change a number in it, seal it anew and load it, some times over.

    Whatever loads and passes the proof is right by the slow proof, too.
    """
    path = folder / "a.plan.h5"
    plan.save(path, overwrite=True)
    good, version = path.read_bytes(), check_seal(path, VERSIONS)
    for _ in range(times):
        path.write_bytes(good)
        _change_a_number(path, chance)
        seal(path, version)
        try:
            loaded = Plan.load(path)
            Comparison(("",), (loaded,)).brief()
        except MeshprepError as error:
            one_line(error)
            continue
        if not loaded.verify():
            for loop_plan in loaded.loops.values():
                for variant in loop_plan.variants.values():
                    slow_proof(loop_plan, variant)


def _change_a_number(path: Path, chance: random.Random) -> None:
    """One entry of a dataset: by one, to an end of its range, or to its neighbour's value."""
    with h5py.File(path, "r+") as file:
        names: list[str] = []
        file.visititems(
            lambda name, item: (
                names.append(name)
                if isinstance(item, h5py.Dataset) and item.size and item.dtype.kind in "iu"
                else None
            )
        )
        dataset = file[chance.choice(sorted(names))]
        values = dataset[...]
        at, ends = chance.randrange(values.size), np.iinfo(values.dtype)
        old = int(values.flat[at])
        new = chance.choice(
            [old - 1, old + 1, 0, ends.min, ends.max, int(values.flat[at - 1])]
        )
        values.flat[at] = min(max(new, ends.min), ends.max)
        dataset[...] = values
