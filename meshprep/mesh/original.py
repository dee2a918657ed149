"""A mesh file in the numbering of the mesh that a plan was made from."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from meshprep_runtime.plan import Plan
from meshprep_runtime.types.ordering import Ordering

from .model import UPPER_TRIANGULAR, Mesh, moved, rows_turned


def original_of(mesh: Mesh, plan: Plan) -> Mesh | None:
    """The mesh in the order of the plan's input, None where the plan is of another mesh.

    ``mesh`` is the one the plan was made from, or the renumbered one; the plan's hashes tell which.
    Its cell types stand as in the plan (:func:`with_type_order`). O(size of the mesh).
    """
    content = mesh.content_hash()
    if content == plan.source_hash:
        return _with_turned_rows(with_type_order(mesh, plan.sizes), plan)
    if content != plan.mesh_hash:
        return None
    held = plan.ordering.keys() & mesh.sets.keys()
    back = {name: plan.ordering[name].inverse for name in held}
    return _with_turned_rows(with_type_order(mesh, plan.sizes).renumber(back), plan)


def _with_turned_rows(mesh: Mesh, plan: Plan) -> Mesh:
    """The mesh with the rows of maps turned as the plan has them, where either way is the same."""
    for name in mesh.extras.get(UPPER_TRIANGULAR, {}).keys() & plan.maps.keys():
        m = plan.maps[name]
        back = plan.ordering[m.to_set].new_to_old[m.table]
        first = plan.ordering[m.from_set].restore(back[:, 0])
        own = mesh.map(name)
        table = rows_turned(own.table, own.table[:, 0] != first)
        mesh = replace(mesh, maps={**mesh.maps, name: replace(own, table=table)})
    return mesh


def cell_types(mesh: Mesh) -> tuple[str, ...]:
    """The sets of the cell types in the order in which the cells are numbered; none of one type."""
    return mesh.sets["cells"].parts if "cells" in mesh.sets else ()


def with_type_order(mesh: Mesh, names: Iterable[str]) -> Mesh:
    """The mesh with its cells numbered type by type in this order.

    Formats that keep cells by type, such as MED and Exodus, have an order of their own. ``names``
    are sets, those of the cell types among them; others do not matter. Gives ``mesh`` itself where
    nothing moves, or where ``names`` lacks a type.
    """
    before = cell_types(mesh)
    parts = tuple(name for name in names if name in before)
    if parts == before or len(parts) != len(before):
        return mesh
    ends = np.cumsum([mesh.size(p) for p in before])
    rows = {p: np.arange(end - mesh.size(p), end) for p, end in zip(before, ends, strict=True)}
    # the union alone: its parts stand in another order
    alone = moved(
        mesh, {"cells": Ordering.from_new_to_old(np.concatenate([rows[p] for p in parts]))}
    )
    union = replace(mesh.sets["cells"], parts=parts)
    return replace(alone, sets={**alone.sets, "cells": union})
