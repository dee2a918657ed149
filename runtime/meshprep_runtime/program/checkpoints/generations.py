"""The files of the last two checkpoints of a program, the same ones on all ranks.

Each rank keeps files of its own. A rank may be killed at any time, so that some ranks have
a new checkpoint and others do not. Rank 0 is the last to rename its file: so every rank has
each checkpoint of rank 0, as its newest or as the one before.
"""

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import MeshprepError
from ...plan.file.atomic import new_file
from ...plan.file.seal import SIZE, seal_of, write_seal
from ..mpi import from_root, together

# The name of the format, and its version, as the seal of a file has them.
FORMAT = "meshprep-checkpoint"
VERSION = 3


@dataclass(frozen=True)
class Origin:
    """The plan, the number of ranks and the checkpoint that a file belongs to.

    ``plan`` is the hash of the mesh of the plan, or of this rank's part of it; ``ranks`` is
    the number of ranks of the program; ``mark`` is the same in the files of all ranks for
    one checkpoint, and differs between checkpoints.
    """

    plan: str
    ranks: int
    mark: str


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state of a program before one of its calls, the entry.

    Attributes
    ----------
    calls : sequence of str
        Every call of a loop before the entry: its name, a digest of loop and kernel, and
        its dats.
    globals : sequence of bytes
        For each call, the values of the globals that it changed.
    dats : mapping of int to array
        Values at the entry, by the number of a dat, in the order in which the program made
        its dats; on ranks those of owned elements.
    """

    calls: Sequence[str]
    globals: Sequence[bytes]
    dats: Mapping[int, NDArray[Any]]


def write_checkpoint(path: Path, origin: Origin, checkpoint: Checkpoint) -> None:
    """Write a checkpoint and seal it; raises OSError when the disk refuses."""
    from ...plan.file.hdf5 import new_hdf5

    # Write the names of loops once, and their calls as numbers.
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
            # Write no values for a dataset whose bits are all zero: HDF5 gives zeros then.
            data = None
            if np.ascontiguousarray(values).view(np.uint8).any():
                data = values
            file.create_dataset(f"dats/{key}", values.shape, values.dtype, data)
    # Seal last: an interrupted file is then seen to be incomplete.
    with open(path, "r+b") as sealed:
        write_seal(sealed, VERSION, FORMAT)


def origin_of(path: Path) -> Origin:
    """The origin of a checkpoint file.

    Raises MeshprepError for a damaged file, and for one of another version.
    """
    import h5py

    # Read the seal before HDF5 opens the file.
    with open(path, "rb") as file:
        start = file.read(SIZE)
        first_line = f"{FORMAT} {VERSION}\n".encode()
        if start.startswith(FORMAT.encode()) and not start.startswith(first_line):
            raise MeshprepError(
                f"{path}: a checkpoint of another version: remove it to begin anew"
            )
        # HDF5 would read damaged bytes without a word.
        if start != seal_of(file, VERSION, FORMAT):
            raise MeshprepError(
                f"{path}: no checkpoint, or damaged: remove it to begin anew"
            )
    with h5py.File(path, "r") as file:
        attributes = file.attrs
        return Origin(
            plan=str(attributes["plan"]),
            ranks=int(attributes["ranks"]),
            mark=str(attributes["mark"]),
        )


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint whose seal was checked by :func:`origin_of`."""
    import h5py

    with h5py.File(path, "r") as file:
        names = json.loads(file.attrs["loops"])
        ends = np.cumsum(file["globals/length"][:]).tolist()
        values = file["globals/values"][:].tobytes()
        return Checkpoint(
            calls=[names[i] for i in file["calls"][:]],
            globals=[values[a:b] for a, b in zip([0, *ends], ends, strict=False)],
            dats={int(key): file["dats"][key][:] for key in file["dats"]},
        )


class FilesOfRank(NamedTuple):
    """The checkpoints of one rank.

    ``marks`` are those of its whole files, the newest first; ``problem`` is the message of
    the first file that is not whole.
    """

    marks: list[str]
    problem: str | None


@dataclass(frozen=True)
class Generations:
    """The last two checkpoints of a program, as files of this rank.

    ``path`` is what the user gave: one rank writes there, several write ``PATH.rank0`` and
    so on. ``plan`` is that of :class:`Origin`.
    """

    path: Path
    plan: str
    comm: Any

    @property
    def newest(self) -> Path:
        """The newest file of this rank."""
        if self.comm.size == 1:
            return self.path
        return _path_of_rank(self.path, self.comm.rank)

    def write(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint on all ranks, and keep the one before.

        No file appears half written. Raises DistributedError on all ranks, when one cannot
        write; the earlier checkpoints are still good then.
        """
        comm = self.comm
        mark = from_root(comm, lambda: uuid.uuid4().hex)
        with ExitStack() as ending:

            def stage() -> None:
                staged = ending.enter_context(new_file(self.newest, overwrite=True))
                origin = Origin(plan=self.plan, ranks=comm.size, mark=mark)
                try:
                    write_checkpoint(staged, origin, checkpoint)
                except OSError as error:
                    raise MeshprepError(
                        f"{self.newest}: cannot write: {error.strerror}"
                    ) from error

            def publish() -> None:
                # Between these two steps only the checkpoint before has a name.
                if self.newest.exists():
                    os.replace(self.newest, older(self.newest))
                ending.close()

            def publish_on_other_ranks() -> None:
                if comm.rank != 0:
                    publish()

            def publish_on_rank_0() -> None:
                if comm.rank == 0:
                    publish()

            # Write on all ranks first. Rank 0 renames last, so that every rank has what it
            # has.
            together(comm, stage)
            if comm.size > 1:
                together(comm, publish_on_other_ranks)
            together(comm, publish_on_rank_0)

    def read(self) -> Checkpoint | None:
        """The newest checkpoint that is whole on all ranks; None where rank 0 has none.

        A newer one, which not all ranks have, is removed. Raises DistributedError on all
        ranks where none is whole everywhere, and for another mesh, number of ranks, or
        version.
        """
        path_of_mark, problem = together(self.comm, self._find_whole_files)
        files_of_ranks: list[FilesOfRank] = self.comm.allgather(
            FilesOfRank(list(path_of_mark), problem)
        )
        root = files_of_ranks[0]
        if not root.marks and root.problem is None:
            return None

        # Take the newest mark that all ranks have.
        common = [mark for mark in root.marks if _all_ranks_have_mark(files_of_ranks, mark)]

        def take() -> Checkpoint:
            if not common:
                raise MeshprepError(_first_problem(files_of_ranks))
            path = path_of_mark[common[0]]
            checkpoint = read_checkpoint(path)
            if path != self.newest:
                os.replace(path, self.newest)
            return checkpoint

        return together(self.comm, take)

    def _find_whole_files(self) -> tuple[dict[str, Path], str | None]:
        """The whole files of this rank by their marks, and the message of another one."""
        self._check_no_other_ranks()
        path_of_mark = {}
        problem = None
        for path in (self.newest, older(self.newest)):
            if path.exists():
                try:
                    path_of_mark[self._read_mark(path)] = path
                except MeshprepError as error:
                    problem = problem or str(error)
        return path_of_mark, problem

    def _read_mark(self, path: Path) -> str:
        """The mark of a file; raises MeshprepError for another plan or number of ranks."""
        origin = origin_of(path)
        if origin.ranks != self.comm.size:
            raise MeshprepError(
                f"{path}: a checkpoint of {origin.ranks} ranks, not of {self.comm.size}: "
                "run on as many, or remove it to begin anew"
            )
        if origin.plan != self.plan:
            other = "another mesh"
            if self.comm.size > 1:
                other = "another mesh, or other parts of it"
            raise MeshprepError(f"{path}: a checkpoint of {other}: remove it to begin anew")
        return origin.mark

    def _check_no_other_ranks(self) -> None:
        """Raise MeshprepError for a file that another number of ranks has written."""
        if self.comm.size == 1:
            other = _path_of_rank(self.path, 0)
            number = "several ranks"
        else:
            other = self.path
            number = "one rank"
        if other.exists():
            raise MeshprepError(
                f"{other}: a checkpoint of {number}, not of {self.comm.size}: "
                "run on as many, or remove it to begin anew"
            )


def older(path: Path) -> Path:
    """The path of the checkpoint before the newest one."""
    return path.with_name(f"{path.name}.1")


def _path_of_rank(path: Path, rank: int) -> Path:
    return path.with_name(f"{path.name}.rank{rank}")


def _all_ranks_have_mark(files_of_ranks: Sequence[FilesOfRank], mark: str) -> bool:
    return all(mark in files.marks for files in files_of_ranks)


def _first_problem(files_of_ranks: Sequence[FilesOfRank]) -> str:
    """Why the ranks have no checkpoint in common."""
    if len(files_of_ranks) == 1:
        return str(files_of_ranks[0].problem)
    for rank, files in enumerate(files_of_ranks):
        if files.problem is not None:
            return f"rank {rank} of {len(files_of_ranks)}: {files.problem}"
    return "the ranks have no checkpoint in common: remove that of rank 0 to begin anew"
