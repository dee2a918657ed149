"""A mesh file in the numbering of the mesh that a plan was made from."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from meshprep_runtime.plan import Plan
from meshprep_runtime.types.ordering import Ordering

from .model import UPPER_TRIANGULAR, Mesh, moved, rows_turned


def original_of(mesh: Mesh, plan: Plan) -> Mesh | None:
    """The mesh in the order of the plan's input, None where the plan is of another mesh.

    ``mesh`` is the one the plan was made from, or the renumbered one; the plan's hashes
    tell which. Its cell types stand as in the plan (:func:`with_type_order`). O(size of the
    mesh).
    """
    content = mesh.content_hash()
    if content not in (plan.source_hash, plan.mesh_hash):
        return None
    original = with_type_order(mesh, plan.sizes)
    if content != plan.source_hash:
        # The renumbered mesh: lead every set that it has back by the plan's orderings.
        renumbered_sets = plan.ordering.keys() & mesh.sets.keys()
        back = {name: plan.ordering[name].inverse for name in renumbered_sets}
        original = original.renumber(back)
    return _with_turned_rows(original, plan)


def _with_turned_rows(mesh: Mesh, plan: Plan) -> Mesh:
    """The mesh with the rows of maps of two columns turned as the plan has them.

    A face of OpenFOAM is the same with its two cells in either order.
    """
    for name in mesh.extras.get(UPPER_TRIANGULAR, {}).keys() & plan.maps.keys():
        # The first cell of each face by the plan, faces and cells in its input's numbers.
        m = plan.maps[name]
        cells = plan.ordering[m.to_set].new_to_old[m.table]
        first = plan.ordering[m.from_set].restore(cells[:, 0])

        # Turn the faces that begin at the other cell.
        in_file = mesh.map(name)
        turned = in_file.table[:, 0] != first
        table = rows_turned(in_file.table, turned)
        mesh = replace(mesh, maps={**mesh.maps, name: replace(in_file, table=table)})
    return mesh


def cell_types(mesh: Mesh) -> tuple[str, ...]:
    """The sets of the cell types as the cells are numbered; none where all are of one."""
    if "cells" in mesh.sets:
        return mesh.sets["cells"].parts
    return ()


def with_type_order(mesh: Mesh, names: Iterable[str]) -> Mesh:
    """The mesh with its cells numbered type by type in this order.

    Formats that keep cells by type, such as MED and Exodus, have an order of their own.
    ``names`` are sets, those of the cell types among them; others do not matter. Gives
    ``mesh`` itself where nothing moves, or where ``names`` lacks a type.
    """
    before = cell_types(mesh)
    parts = tuple(name for name in names if name in before)
    if parts == before or len(parts) != len(before):
        return mesh
    # The numbers that the cells of each type have now.
    cells_of_type = {}
    start = 0
    for part in before:
        stop = start + mesh.size(part)
        cells_of_type[part] = np.arange(start, stop)
        start = stop

    # Renumber the union alone: its parts stand in another order.
    new_to_old = np.concatenate([cells_of_type[part] for part in parts])
    reordered = moved(mesh, {"cells": Ordering.from_new_to_old(new_to_old)})
    union = replace(mesh.sets["cells"], parts=parts)
    return replace(reordered, sets={**reordered.sets, "cells": union})


def type_order_note(mesh: Mesh, names: Iterable[str], made: str) -> str:
    """A note where the cell types of a mesh file stand in another order than in ``names``.

    ``made`` is the plan or the split in words. Empty where there is nothing to note.
    """
    before = cell_types(mesh)
    parts = [name for name in names if name in before]
    if not parts or parts == [*before]:
        return ""
    return (
        f"; {made} numbers the cells by type as {', '.join(parts)}, "
        f"the file as {', '.join(before)}: number them as {made} does"
    )
