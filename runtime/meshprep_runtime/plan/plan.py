"""The plan with its file: load, save and prove it."""

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UnknownNameError
from ..types.ordering import Ordering
from .model import LoopPlan, PlanContent


@dataclass(frozen=True, eq=False, repr=False)
class Plan(PlanContent):
    """Everything prepared for one mesh, as solvers load it and reports show it.

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
        Group numbers in the new numbering, for sets that the input file does not have
        (boundary faces), so that a solver can set boundary conditions. 0 stands for no
        group; an element in several groups has the number of the first one.
    group_names : mapping of set name to mapping
        By tag name, the names of groups by their numbers; :meth:`group` uses them.
    further_groups : mapping of set name to (mapping of tag name to (m, 2) int64)
        The other groups of elements in several: an element and a group in each row,
        ascending.
    matrices : mapping of matrix name to MatrixPlan
        The pattern of each matrix that loops add to, and the nonzeros that they add to.
    coordinates : mapping of set name to (n, 2 or 3) float64
        In the new numbering; empty unless an option asked for them.
    extensions : mapping of extension name to Tree
        Data that other programs have added to the file, unchanged; see "Extensions" in
        docs/plan-format.md.

    Notes
    -----
    ``plan["NAME"]`` is the ``LoopPlan`` of a loop; ``"NAME" in plan``, ``for name in
    plan`` and ``len(plan)`` use the names of the loops.
    """

    def __new__(cls, *content: Any, **named: Any) -> "Plan":
        """An empty object, which the fields go into; a path is refused."""
        if len(content) == 1 and isinstance(content[0], str | Path):
            raise TypeError(f"a plan file is read by Plan.load({str(content[0])!r})")
        return super().__new__(cls)

    @classmethod
    def load(cls, path: str | Path) -> "Plan":
        """Read a plan file.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        Plan
            Checked: the seal over all bytes, every shape and type, and every index that a
            loop will use.

        Raises
        ------
        PlanError
            When the file is missing, damaged, no plan, or of a version that this one cannot
            read.
        MissingPackageError
            Where h5py is not installed.

        Notes
        -----
        O(bytes of the file), which is read once.
        """
        from .file import store

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
        from .file import store

        store.save(self, path, overwrite=overwrite)

    def loop(self, name: str) -> LoopPlan:
        """The plan of a loop, as ``plan[name]`` gives it.

        Parameters
        ----------
        name : str

        Returns
        -------
        LoopPlan

        Raises
        ------
        PlanError
            Where there is no such loop; the message lists the loops of the plan.
        """
        return self[name]

    def apply(self, values: Any, set_name: str) -> Any:
        """Values of a set's elements, in the input's numbering, brought into the plan's.

        Parameters
        ----------
        values : array
            The first axis runs over the set.
        set_name : str

        Returns
        -------
        array
        """
        return self._ordering(set_name).apply(values)

    def restore(self, values: Any, set_name: str) -> Any:
        """Values of a set's elements brought back into the numbering of the input.

        Parameters
        ----------
        values : array
            The first axis runs over the set.
        set_name : str

        Returns
        -------
        array
        """
        return self._ordering(set_name).restore(values)

    def _ordering(self, set_name: str) -> Ordering:
        if set_name not in self.ordering:
            raise UnknownNameError(
                f"the plan has no set '{set_name}': choose {', '.join(self.ordering)}"
            )
        return self.ordering[set_name]

    def _repr_html_(self) -> str:
        from ..types.shown import html_table

        rows = []
        for name, plan in self.loops.items():
            if not plan.variants:
                continue
            reuse = "-"
            if plan.reuse is not None:
                reuse = f"{plan.reuse:.2f}"
            over = plan.loop.over
            rows.append((name, over, plan.sizes[over], plan.variant().n_blocks, reuse))
        sets = ", ".join(f"{name} {size:,}" for name, size in self.sizes.items())
        return html_table(
            f"Plan: {sets}", ("loop", "over", "elements", "blocks", "reuse"), rows
        )

    def group(self, set_name: str, group: str | int) -> NDArray[np.int64]:
        """The elements of a group of a derived set, such as boundary edges of ``"wall"``.

        Parameters
        ----------
        set_name : str
        group : str or int
            Name or number, as the mesh file has it. Numbers of Gmsh's entities count only
            where the set has no other groups.

        Returns
        -------
        (k,) int64
            In the plan's numbering, ascending.

        Raises
        ------
        PlanError
            Where the set has no such group.

        Notes
        -----
        O(elements of the set) for each tag.
        """
        from .groups import members

        none = "none (groups of sets of the mesh file are in that file)"
        return members(self, set_name, self.sizes[set_name], group, none)

    def verify(self) -> list[str]:
        """Prove that the plan is right.

        The proof covers permutations, offsets, sizes of blocks, staging lists, local maps
        and colours.

        Returns
        -------
        list of str
            Each fault in one line; empty when the plan is right.

        Notes
        -----
        Checks every element and index: O(elements x arity) for each variant, in NumPy.
        """
        from .checks.verify import verify

        return verify(self)


# What is called are the fields, though a path is answered first.
Plan.__signature__ = inspect.signature(PlanContent)  # type: ignore[attr-defined]
