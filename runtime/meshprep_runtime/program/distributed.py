"""The plan of one rank: its part of a mesh, and the messages to the other ranks."""

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
from .exchange import Exchange, Transfer
from .fields import OwnedRows
from .mpi import end_all_on_errors, from_root, together, world
from .ranks import RankGroup, duplicate

# The name of the step in errors.
LOADING = "DistributedPlan.load"
MAKING = "DistributedPlan"


class DistributedPlan:
    """The part of a plan that one rank of several has.

    Parameters
    ----------
    part : PartPlan
        The part of this rank.
    comm : communicator
        Of mpi4py, or of ``run_ranks``, with a rank for each part.
    timeout : float, optional
        Seconds after which any wait for other ranks is an error.

    Notes
    -----
    Its methods, dats and loops are collective: all ranks make the same calls in the same
    order.
    """

    def __init__(self, part: PartPlan, comm: Any, timeout: float | None = None) -> None:
        """Take the part of this rank; all ranks together.

        Parameters are those of the class.

        Raises
        ------
        DistributedError
            Where a rank does not come, after the timeout.

        Notes
        -----
        The communicator is duplicated, so that messages of the solver are never taken for
        those of loops. From then on an exception that nothing catches on one rank ends the
        job.
        """
        if timeout is not None:
            check_number("timeout", timeout)
        end_all_on_errors(comm)
        self.comm = duplicate(comm, timeout, MAKING)
        self.ranks = RankGroup(comm=comm, timeout=timeout, what=MAKING, loops=part.loops)
        loops = {name: _loop_on_all_rows(part, name) for name in part.loops}
        self.part = replace(part, loops=loops)
        self._dats: WeakSet[ProgramDat] = WeakSet()
        # Dats made so far; the count numbers them in messages.
        self._n_dats = 0
        self.messages = Exchange(self.ranks, self.part)

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
            Seconds after which any wait for other ranks is an error.

        Returns
        -------
        DistributedPlan

        Raises
        ------
        DistributedError
            On all ranks, with the same message: when one cannot read its part; when the
            file has no parts for so many ranks (the message lists what it has); when files
            differ.
        MissingPackageError
            Without ``comm``, where mpi4py is missing.

        Notes
        -----
        From then on an exception that nothing catches on one rank ends the job.
        """
        if comm is None:
            comm = world()
        end_all_on_errors(comm)
        file = Path(path)
        ranks = RankGroup(comm, timeout, LOADING)

        # Rank 0 reads where the parts lie in the file.
        def read_table() -> tuple[PartsTable, bytes]:
            return parts_table(file, comm.size), _read_seal(file)

        table, seal = from_root(ranks, read_table, LOADING)

        # Each rank reads its part, from the same file.
        def read_own_part() -> PartPlan:
            if _read_seal(file) != seal:
                raise PlanError(
                    f"{file} is another file here than on rank 0: give all ranks the same"
                )
            return read_part(file, table, comm.rank)

        part = together(ranks, read_own_part, LOADING)
        return cls(part, comm, timeout)

    @property
    def sizes(self) -> Mapping[str, int]:
        """Number of elements of each set, on all ranks together."""
        return self.part.sizes

    @property
    def coordinates(self) -> Mapping[str, NDArray[np.float64]]:
        """By set name, (n, 2 or 3): coordinates of owned elements and copies.

        Their rows are those of dats.
        """
        return self.part.coordinates

    @property
    def tags(self) -> Mapping[str, Mapping[str, NDArray[np.int64]]]:
        """By set and tag name, (n,): the first group of each owned element and copy.

        0 for elements in no group.
        """
        return self.part.tags

    @property
    def fields(self) -> Mapping[str, Mapping[str, NDArray[Any]]]:
        """By set and name: values from the mesh file, on owned elements and copies."""
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
            Rows of dats, ascending: owned elements, then copies. Empty where the group is
            on other ranks alone.

        Raises
        ------
        PlanError
            Where the set has no such group on any rank.
        """
        return members(
            of=self.part, set_name=set_name, size=self.set_part(set_name).size, group=group
        )

    @property
    def mesh_hash(self) -> str:
        """Hash of the elements, copies and maps of this rank's part, in their order.

        O(size of the part).
        """
        part = self.part
        digest = hashlib.sha256(f"{part.part} {part.parts}".encode())
        arrays: dict[str, NDArray[Any]] = {name: m.table for name, m in part.maps.items()}
        for name, set_part in part.sets.items():
            arrays[f"{name} original"] = set_part.original
            arrays[f"{name} copies"] = set_part.copies
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
            For an unknown set; the message lists the sets of the plan.
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
            For the elements that this rank owns, as ``numbers`` lists them; copied. An
            array with rows for the copies, too (``set_part(set_name).size``), is kept.
            None: zeros, of shape ``(owned,)`` where dim is 1.
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

        def make_dat_of_part() -> ProgramDat:
            set_part = self.set_part(set_name)
            dat = make_dat(
                set_name=set_name,
                size=(set_part.size, set_part.owned),
                dim=dim,
                dtype=dtype,
                values=values,
                layout=layout,
            )
            # Ranks with copies of other ranks' elements have copied the owned rows in
            # `make_dat`; so a rank without copies must not refuse the same values.
            if set_part.size == set_part.owned and shares_memory(dat, self._dats):
                dat.stored = dat.stored.copy()
            check_own_memory(dat, self._dats)
            return dat

        dat = together(self.ranks, make_dat_of_part, f"making a dat on '{set_name}'")
        dat.number = self._n_dats
        self._n_dats += 1
        self._dats.add(dat)
        if values is not None:
            self.update(dat)
        return dat

    def update(self, dat: ProgramDat) -> None:
        """Bring all copies of a dat up to date.

        Parameters
        ----------
        dat : ProgramDat
            Its owned values may have been changed in any way.
        """
        self.start_update(dat).finish()
        dat.fresh = {EXEC, HALO}

    def start_update(self, dat: ProgramDat) -> Transfer:
        """Send what brings all copies of a dat up to date.

        Parameters
        ----------
        dat : ProgramDat
            Its owned values may have been changed in any way.

        Returns
        -------
        Transfer
            Copies are up to date when it has finished. Until then the owned values must
            not change, and all ranks must begin no other call.
        """
        dat.touch()
        what = f"update of dat {dat.number}"
        self.ranks.begin(what, [("dat", dat.number)])
        return self.messages.start(what, [(dat, (EXEC, HALO))])

    def fetch(self, dat: ProgramDat, root: int = 0) -> NDArray[Any] | None:
        """All values of a dat on one rank, in the order of the mesh file.

        Parameters
        ----------
        dat : ProgramDat
        root : int

        Returns
        -------
        (n, dim) array, or None on the other ranks

        Raises
        ------
        DistributedError
            When other ranks do something else, have ended, or do not answer within the
            timeout.
        """
        return fields.fetch(self.ranks, self._owned_rows(dat), root)

    def write_fields(
        self, path: str | Path, dats: Mapping[str, ProgramDat], *, overwrite: bool = False
    ) -> None:
        """Write dats in the order of the mesh file: any number of ranks can read them.

        Parameters
        ----------
        path : str or Path
            Of an HDF5 file in a folder that all ranks see; it appears when it is complete.
        dats : mapping of dataset name to ProgramDat
        overwrite : bool

        Raises
        ------
        DistributedError
            On all ranks, when a rank cannot write; no file is left then.

        Notes
        -----
        Each rank writes a slice of every dataset, by MPI-IO [G10 2]. O(rows / ranks) memory
        and writing on each, and messages with the rows that another rank writes.
        """
        owned = {name: self._owned_rows(dat) for name, dat in dats.items()}
        fields.write_fields(
            comm=self.ranks, path=Path(path), fields=owned, overwrite=overwrite
        )

    def read_fields(self, path: str | Path, dats: Mapping[str, ProgramDat]) -> None:
        """Read dats from a file of ``write_fields``.

        Any HDF5 file will do that has plain datasets in the order of the mesh file.

        Parameters
        ----------
        path : str or Path
        dats : mapping of dataset name to ProgramDat

        Raises
        ------
        DistributedError
            On all ranks, when a dataset is missing or has another shape or dtype.
        """
        owned = {name: self._owned_rows(dat) for name, dat in dats.items()}
        fields.read_fields(self.ranks, Path(path), owned)
        for dat in dats.values():
            self.update(dat)

    def _owned_rows(self, dat: ProgramDat) -> OwnedRows:
        return OwnedRows(self.numbers(dat.set), self.sizes[dat.set], dat)


def _loop_on_all_rows(part: PartPlan, name: str) -> LoopPart:
    """A loop whose dats have rows for all elements of this rank, owned and copies."""
    loop_part = part.loops[name]
    sizes = loop_part.plan.sizes
    rows = {}
    for set_name, set_part in part.sets.items():
        if set_name in sizes:
            rows[set_name] = set_part.size
    return replace(loop_part, plan=replace(loop_part.plan, rows=rows))


def _read_seal(path: Path) -> bytes:
    """The first bytes of a file: its seal, which differs where the content differs."""
    try:
        with path.open("rb") as file:
            return file.read(SEAL_SIZE)
    except OSError as error:
        raise PlanError(f"cannot read parts {path}: {error.strerror}") from error
