"""The plan with its file: load, save, prove."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from . import store
from .model import PlanContent
from .named import UnknownNameError
from .verify import verify


@dataclass(frozen=True, eq=False, repr=False)
class Plan(PlanContent):
    """Everything prepared for one mesh: what a solver loads, and what reports show.

    Parameters
    ----------
    sizes : mapping of set name to number of elements
    ordering : mapping of set name to Ordering
        From the numbering of the input mesh to the plan's.
    maps : mapping of map name to SetMap
        The tables in the new numbering.
    loops : mapping of loop name to LoopPlan
    source_hash, mesh_hash : str
        Content of the input mesh and of the renumbered mesh (hex digests).
    metrics : Metrics
        The figures that reports show.
    options, about : mapping
        The effective options; creator, time and versions. JSON values.
    tags : mapping of set name to (mapping of tag name to (n,) int64)
        Group numbers in the new numbering, for sets that the input file does not have (boundary
        faces), so that a solver can set boundary conditions. 0 stands for none; of an element in
        several groups it is the first.
    group_names : mapping of set name to (mapping of tag name to (mapping of group number to name))
        Of the groups of ``tags`` that have names; :meth:`group` looks there.
    further_groups : mapping of set name to (mapping of tag name to (m, 2) int64)
        An element and a group in each row: the other groups of elements in several, ascending.
    matrices : mapping of matrix name to MatrixPlan
        The pattern of each matrix that loops add to, and the places of what they add.
    chains : mapping of chain name to ChainPlan
        Schedules that were made ahead, see docs/solvers/chains.md.

    Notes
    -----
    ``plan["NAME"]`` is the ``LoopPlan`` of a loop.
    """

    @classmethod
    def load(cls, path: str | Path) -> "Plan":
        """Read a plan file.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        Plan
            Checked: the seal over all bytes, every shape and type, and every index that a loop
            will use.

        Raises
        ------
        PlanError
            When the file is missing, damaged, no plan, or of a version that this one cannot read.
        MissingPackageError
            Where h5py is not installed.

        Notes
        -----
        O(bytes of the file), which is read once.
        """
        return cls(**vars(store.load(path)))

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the plan file; it appears whole or not at all.

        Parameters
        ----------
        path : str or Path
            Usually ``MESH.plan.h5``.
        overwrite : bool
            Replaces a file that exists.

        Raises
        ------
        PlanError
            When the file exists and ``overwrite`` is False, or cannot be written.
        MissingPackageError
            Where h5py is not installed.
        """
        store.save(self, path, overwrite=overwrite)

    def group(self, set_name: str, name: str) -> NDArray[np.int64]:
        """The elements of a group of a derived set, such as the boundary edges of ``"wall"``.

        Parameters
        ----------
        set_name : str
        name : str
            As the mesh file has it.

        Returns
        -------
        (k,) int64
            In the plan's numbering, ascending.

        Raises
        ------
        PlanError
            Where no group of the set has this name.

        Notes
        -----
        O(elements of the set) for each tag with names.
        """
        known = self.group_names.get(set_name, {})
        if not any(name in names.values() for names in known.values()):
            has = ", ".join(sorted({n for names in known.values() for n in names.values()}))
            said = has or "none (a plan has those of derived sets; others are in the mesh file)"
            raise UnknownNameError(
                f"set '{set_name}' has no group '{name}': its groups with names are {said}"
            )
        inside = np.zeros(self.sizes[set_name], bool)
        for tag, names in known.items():
            numbers = [number for number, own in names.items() if own == name]
            inside |= np.isin(self.tags[set_name][tag], numbers)
            further = self.further_groups.get(set_name, {}).get(tag, np.empty((0, 2), np.int64))
            element, group = further.T
            inside[element[np.isin(group, numbers)]] = True
        return np.flatnonzero(inside)

    def verify(self) -> list[str]:
        """Prove the plan: permutations, offsets, caps, staging lists, local maps and colours.

        Returns
        -------
        list of str
            What is wrong, one line each; empty when the plan is right.

        Notes
        -----
        Every element and index is looked at: O(elements x arity) for each variant, in NumPy.
        """
        return verify(self)
