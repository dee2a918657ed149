"""Original numbers in the mesh file: every element's number in the file that was read."""

from collections.abc import Mapping, Sequence

import numpy as np

from meshprep_runtime.types.ordering import Ordering

from .. import io
from ..mesh import Dat, Mesh
from .op2.layout import ORIGINAL_ID
from .registry import Format


def with_original_ids(
    mesh: Mesh, ordering: Mapping[str, Ordering], target: Format
) -> tuple[Mesh, list[str]]:
    """The mesh with the values ``original_id`` on nodes and cells, where the format carries them.

    Parameters
    ----------
    mesh : Mesh
        In the new order.
    ordering : mapping of set name to Ordering
        From the numbering of the file that was read. ``original_id`` is ``new_to_old``: it counts
        from 0 in each set.
    target : Format
        Formats that have no whole numbers get doubles, which hold them exactly.

    Returns
    -------
    Mesh
        Sets that have an ``original_id`` already keep it: it says the way back to the first file.
        Others get none then, which would lead to another file.
    list of str
        Where it was left out: for that, or since a reader that is usual for the format would fail
        on it.
    """
    notes = []
    names = [s.name for s in mesh.sets.values() if s.size and not s.parts and s.name in ordering]
    cells = [n for n in names if n != "nodes"]
    before = [n for n in names if mesh.dat(ORIGINAL_ID, n) is not None]
    for chosen in (["nodes"] if "nodes" in names else [], cells):
        missing = [n for n in chosen if mesh.dat(ORIGINAL_ID, n) is None]
        if missing and before:
            told = f"those of {', '.join(before)} are of an earlier file"
            notes.append(f"no original_id on {', '.join(missing)}: {told}")
            continue
        fails = target.breaks(mesh, missing) if target.breaks else ""
        if fails:
            places = ", ".join(f"ordering/{n}/new_to_old" for n in missing)
            notes.append(f"no original_id on cells, since {fails}: the plan has it, in {places}")
        else:
            mesh = _with(mesh, missing, ordering, target)
    return mesh, notes


def _with(
    mesh: Mesh, names: Sequence[str], ordering: Mapping[str, Ordering], target: Format
) -> Mesh:
    before = set(io.losses(mesh, target)) if names else set()
    for kind in (np.int32, np.float64) if names else ():
        dats = [Dat(ORIGINAL_ID, n, ordering[n].new_to_old.astype(kind, copy=False)) for n in names]
        more = mesh.with_(dats=dats)
        if set(io.losses(more, target)) <= before:
            return more
    return mesh
