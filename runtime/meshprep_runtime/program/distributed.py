"""The plan of one rank: its part of a mesh, and what it does together with the other ranks."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from ..errors import PlanError, UnknownNameError, check_number
from ..kernel.bind import AOS
from ..plan.file.seal import SIZE as SEAL_SIZE
from ..plan.groups import members
from ..plan.model import LoopPlan
from ..plan.parts import LoopPart, PartPlan, SetPart, parts_table, read_part
from ..plan.parts.slices import PartsTable
from ..types.loops import among
from . import fields
from .dat import (
    EXEC,
    HALO,
    ProgramDat,
    check_own_memory,
    make_dat,
    shares_memory,
)
from .exchange import Exchange
from .fields import OwnedRows
from .mpi import end_all_on_errors, from_root, together, world


class DistributedPlan:
    """What one rank of several has of a plan.

    Parameters
    ----------
    part : PartPlan
        This rank's.
    comm : communicator
        Of mpi4py, or of ``run_ranks``, with a rank for each part.
    timeout : float, optional
        Seconds after which a message that does not come is an error.

    Notes
    -----
    Its methods, dats and loops are collective: all ranks make the same calls in the same order.
    """

    def __init__(self, part: PartPlan, comm: Any, timeout: float | None = None) -> None:
        if timeout is not None:
            check_number("timeout", timeout)
        self.comm = comm.Dup()
        self.part = replace(part, loops={n: _with_rows(part, n) for n in part.loops})
        self._dats: WeakSet[ProgramDat] = WeakSet()
        self.messages = Exchange(self.comm, self.part, timeout)

    @classmethod
    def load(
        cls, path: str | Path, comm: Any = None, *, timeout: float | None = None
    ) -> "DistributedPlan":
        """Read this rank's part of a file that ``meshprep split`` made.

        Parameters
        ----------
        path : str or Path
        comm : communicator, optional
            Default: ``MPI.COMM_WORLD``.
        timeout : float, optional
            Seconds after which a message that does not come is an error.

        Returns
        -------
        DistributedPlan

        Raises
        ------
        DistributedError
            On all ranks, with the same message: when one cannot read its part; when the file has
            no parts for so many ranks (the message lists what it has); when files differ.
        MissingPackageError
            Without ``comm``, where mpi4py is missing.

        Notes
        -----
        From then on an exception that nothing catches on one rank ends the job.
        """
        comm = world() if comm is None else comm
        end_all_on_errors(comm)
        file = Path(path)
        table, start = from_root(comm, lambda: (parts_table(file, comm.size), _start(file)))
        part = together(comm, lambda: _read(file, table, comm.rank, start))
        return cls(part, comm, timeout)

    @property
    def sizes(self) -> Mapping[str, int]:
        """Number of elements of each set, on all ranks together."""
        return self.part.sizes

    @property
    def coordinates(self) -> Mapping[str, NDArray[np.float64]]:
        """By set name, (n, 2 or 3): where owned elements and copies lie, as dats have rows."""
        return self.part.coordinates

    @property
    def tags(self) -> Mapping[str, Mapping[str, NDArray[np.int64]]]:
        """By set and tag name, (n,): the first group of owned elements and copies, 0 for none."""
        return self.part.tags

    @property
    def fields(self) -> Mapping[str, Mapping[str, NDArray[Any]]]:
        """By set and name: values of the mesh on owned elements and copies."""
        return self.part.fields

    def group(self, set_name: str, group: str | int) -> NDArray[np.int64]:
        """The elements of a group on this rank, such as the boundary edges of ``"wall"``.

        Parameters
        ----------
        set_name : str
        group : str or int
            Name or number, as the mesh file has it.

        Returns
        -------
        (k,) int64
            Rows of dats, ascending: owned elements, then copies. Empty where the group is on other
            ranks alone.

        Raises
        ------
        PlanError
            Where the set has no such group on any rank.
        """
        return members(self.part, set_name, self.set_part(set_name).size, group)

    @property
    def mesh_hash(self) -> str:
        """Hash of this rank's part: its elements, copies and maps, in their order. O(its size)."""
        part = self.part
        digest = hashlib.sha256(f"{part.part} {part.parts}".encode())
        arrays: dict[str, NDArray[Any]] = {name: m.table for name, m in part.maps.items()}
        for name, own in part.sets.items():
            arrays |= {f"{name} original": own.original, f"{name} copies": own.copies}
        for name, values in sorted(arrays.items()):
            digest.update(f" {name} {values.shape}".encode())
            digest.update(np.ascontiguousarray(values).data)
        return digest.hexdigest()

    def __getitem__(self, loop: str) -> LoopPlan:
        name = among(loop, self.part.loops)
        if name not in self.part.loops:
            has = ", ".join(self.part.loops)
            raise UnknownNameError(f"the plan has no loop '{loop}': it has {has}")
        return self.part.loops[name].plan

    def set_part(self, name: str) -> SetPart:
        """The elements of a set that this rank has.

        Parameters
        ----------
        name : str

        Returns
        -------
        SetPart

        Raises
        ------
        PlanError
            For an unknown set; the message lists those there are.
        """
        return self.part.sets[name]

    def numbers(self, set_name: str) -> NDArray[Any]:
        """The number in the mesh file of each element that this rank owns.

        Parameters
        ----------
        set_name : str

        Returns
        -------
        (owned,) int64
        """
        return self.set_part(set_name).original

    def dat(
        self,
        set_name: str,
        dim: int = 1,
        dtype: str = "f8",
        *,
        values: Any = None,
        layout: str = AOS,
    ) -> ProgramDat:
        """Values of the elements of a set, with rows for the copies that this rank needs.

        Parameters
        ----------
        set_name : str
        dim : int
        dtype : str
        values : (owned, dim), (dim, owned) or (owned,) array, optional
            For the elements that this rank owns, as ``numbers`` lists them; copied. An array with
            rows for the copies, too (``set_part(set_name).size``), is kept. None: zeros, of shape
            ``(owned,)`` where dim is 1.
        layout : str

        Returns
        -------
        ProgramDat
            Its copies are up to date.

        Raises
        ------
        DistributedError
            On all ranks, as of :meth:`Program.dat`, and for an array of another dat.
        """

        def make() -> ProgramDat:
            own = self.set_part(set_name)
            made = make_dat(set_name, (own.size, own.owned), dim, dtype, values, layout)
            if own.size == own.owned and shares_memory(made, self._dats):
                # values of owned rows are copied on ranks that have copies of others
                made.stored = made.stored.copy()
            check_own_memory(made, self._dats)
            return made

        made = together(self.comm, make)
        self._dats.add(made)
        if values is not None:
            self.update(made)
        return made

    def update(self, dat: ProgramDat) -> None:
        """Bring all copies of a dat up to date.

        Parameters
        ----------
        dat : ProgramDat
            Its owned values may have been changed in any way.
        """
        dat.touch()
        self.messages.start([(dat, (EXEC, HALO))]).finish()
        dat.fresh = {EXEC, HALO}

    def fetch(self, dat: ProgramDat, root: int = 0) -> NDArray[Any] | None:
        """All values of a dat on one rank, in the order of the mesh file.

        Parameters
        ----------
        dat : ProgramDat
        root : int

        Returns
        -------
        (n, dim) array, or None on the other ranks
        """
        return fields.fetch(self.comm, self._owned(dat), root)

    def write_fields(
        self, path: str | Path, dats: Mapping[str, ProgramDat], *, overwrite: bool = False
    ) -> None:
        """Write dats in the order of the mesh file: any number of ranks can read them.

        Parameters
        ----------
        path : str or Path
            Of an HDF5 file; it appears when it is complete.
        dats : mapping of dataset name to ProgramDat
        overwrite : bool

        Raises
        ------
        DistributedError
            On all ranks, when the file cannot be written.
        """
        owned = {name: self._owned(dat) for name, dat in dats.items()}
        fields.write(self.comm, Path(path), owned, overwrite)

    def read_fields(self, path: str | Path, dats: Mapping[str, ProgramDat]) -> None:
        """Read dats from a file of ``write_fields``, or any with plain datasets in that order.

        Parameters
        ----------
        path : str or Path
        dats : mapping of dataset name to ProgramDat

        Raises
        ------
        DistributedError
            On all ranks, when a dataset is missing or has another shape or dtype.
        """
        owned = {name: self._owned(dat) for name, dat in dats.items()}
        fields.read(self.comm, Path(path), owned)
        for dat in dats.values():
            self.update(dat)

    def _owned(self, dat: ProgramDat) -> OwnedRows:
        return OwnedRows(self.numbers(dat.set), self.sizes[dat.set], dat)


def _with_rows(part: PartPlan, name: str) -> LoopPart:
    """A loop whose dats have rows for all that this rank has."""
    of_part = part.loops[name]
    sizes = of_part.plan.sizes
    rows = {s: own.size for s, own in part.sets.items() if s in sizes}
    return replace(of_part, plan=replace(of_part.plan, rows=rows))


def _read(path: Path, table: PartsTable, rank: int, start: bytes) -> PartPlan:
    if _start(path) != start:
        raise PlanError(f"{path} is another file here than on rank 0: give all ranks the same")
    return read_part(path, table, rank)


def _start(path: Path) -> bytes:
    """The seal of a file, which differs for different content."""
    try:
        with path.open("rb") as file:
            return file.read(SEAL_SIZE)
    except OSError as error:
        raise PlanError(f"cannot read parts {path}: {error.strerror}") from error
