"""The last two checkpoints of a program, of which all ranks have the same.

Each rank keeps files of its own. A rank may be killed anywhere, so that some have a checkpoint
already and others have not. Rank 0 gives its file the name after all others: what it has, each has
as its newest or as the one before.
"""

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import MeshprepError
from ...plan.file.atomic import new_file
from ...plan.file.seal import SIZE, seal_of, write_seal
from ..mpi import from_root, together

FORMAT, VERSION = "meshprep-checkpoint", 3


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
    from ...plan.file.hdf5 import new_hdf5

    names = sorted(set(checkpoint.calls))
    number = {name: i for i, name in enumerate(names)}
    with new_hdf5(path) as file:
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
        write_seal(sealed, VERSION, FORMAT)


def origin_of(path: Path) -> Origin:
    """What a checkpoint belongs to; raises MeshprepError if damaged, or of another version."""
    import h5py

    with open(path, "rb") as file:
        start = file.read(SIZE)
        wanted = f"{FORMAT} {VERSION}\n".encode()
        if start.startswith(FORMAT.encode()) and not start.startswith(wanted):
            raise MeshprepError(f"{path}: a checkpoint of another version: remove it to begin anew")
        if start != seal_of(file, VERSION, FORMAT):
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


@dataclass(frozen=True)
class Generations:
    """Where this rank keeps checkpoints, and of what."""

    # That the user gave. One rank writes there; several write ``PATH.rank0`` and so on.
    path: Path
    plan: str  # see :class:`Origin`
    comm: Any

    @property
    def newest(self) -> Path:
        """This rank's file."""
        return self.path if self.comm.size == 1 else _of_rank(self.path, self.comm.rank)

    def write(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint on all ranks; the one before stays. Nothing appears half written.

        Raises DistributedError on all ranks, when one cannot write; those from before are still
        good.
        """
        comm = self.comm
        mark = from_root(comm, lambda: uuid.uuid4().hex)
        with ExitStack() as ending:

            def stage() -> None:
                staged = ending.enter_context(new_file(self.newest, overwrite=True))
                try:
                    write(staged, Origin(self.plan, comm.size, mark), checkpoint)
                except OSError as error:
                    why = f"{self.newest}: cannot write: {error.strerror}"
                    raise MeshprepError(why) from error

            def publish() -> None:
                # From here until the new file has its name there is only the one before.
                if self.newest.exists():
                    os.replace(self.newest, older(self.newest))
                ending.close()

            together(comm, stage)
            wait = lambda: None  # noqa: E731
            if comm.size > 1:
                together(comm, publish if comm.rank else wait)
            together(comm, wait if comm.rank else publish)

    def read(self) -> Checkpoint | None:
        """The newest checkpoint that is whole on all ranks; None where rank 0 has none.

        A newer one, which not all ranks have, is removed. Raises DistributedError on all ranks
        where none is whole everywhere, and for another mesh, number of ranks, or version.
        """
        found, problem = together(self.comm, self._found)
        every = self.comm.allgather((list(found), problem))
        if every[0] == ([], None):
            return None
        common = [mark for mark in every[0][0] if all(mark in marks for marks, _ in every)]

        def take() -> Checkpoint:
            if not common:
                raise MeshprepError(_first_problem(every))
            path = found[common[0]]
            checkpoint = read(path)
            if path != self.newest:
                os.replace(path, self.newest)
            return checkpoint

        return together(self.comm, take)

    def _found(self) -> tuple[dict[str, Path], str | None]:
        """This rank's files that are whole, by their marks, and what is wrong with another."""
        self._check_names()
        found, problem = {}, None
        for path in (self.newest, older(self.newest)):
            if path.exists():
                try:
                    found[self._mark(path)] = path
                except MeshprepError as error:
                    problem = problem or str(error)
        return found, problem

    def _mark(self, path: Path) -> str:
        origin = origin_of(path)
        if origin.ranks != self.comm.size:
            raise MeshprepError(
                f"{path}: a checkpoint of {origin.ranks} ranks, not of {self.comm.size}: run on as "
                "many, or remove it to begin anew"
            )
        if origin.plan != self.plan:
            what = "another mesh" if self.comm.size == 1 else "another mesh, or other parts of it"
            raise MeshprepError(f"{path}: a checkpoint of {what}: remove it to begin anew")
        return origin.mark

    def _check_names(self) -> None:
        """Nothing has the name that another number of ranks would take."""
        other = _of_rank(self.path, 0) if self.comm.size == 1 else self.path
        if other.exists():
            there = "several ranks" if self.comm.size == 1 else "one rank"
            raise MeshprepError(
                f"{other}: a checkpoint of {there}, not of {self.comm.size}: run on as many, or "
                "remove it to begin anew"
            )


def older(path: Path) -> Path:
    """Where the checkpoint before the last lies."""
    return path.with_name(f"{path.name}.1")


def _of_rank(path: Path, rank: int) -> Path:
    return path.with_name(f"{path.name}.rank{rank}")


def _first_problem(every: list[tuple[list[str], str | None]]) -> str:
    problems = [f"rank {r} of {len(every)}: {p}" for r, (_, p) in enumerate(every) if p is not None]
    if len(every) == 1:
        return str(every[0][1])
    lost = "the ranks have no checkpoint in common: remove that of rank 0 to begin anew"
    return problems[0] if problems else lost
