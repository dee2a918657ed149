"""The sets of a plan that stand type by type: what a plan does not say itself."""

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.model import PlanContent

from ..mesh.cells import shape_of
from ..topology.layout import FACE_TYPES


def unions_of(plan: PlanContent) -> dict[str, tuple[str, ...]]:
    """By set name: the sets of the types whose elements it has, one type after the other.

    Names tell what may be one, orderings whether it is. O(elements).
    """
    families = {"cells": _cell_types(plan)}
    for prefix in ("", "boundary_"):
        names = [f"{prefix}{kind}_faces" for kind in FACE_TYPES.values()]
        families[f"{prefix}faces"] = tuple(name for name in plan.sizes if name in names)
    return {name: parts for name, parts in families.items() if _is_union(plan, name, parts)}


def _cell_types(plan: PlanContent) -> tuple[str, ...]:
    """The sets of cells of the highest dimension, as the plan has them."""
    dims = {}
    for name in plan.sizes:
        try:
            dims[name] = shape_of(name).dim
        except MeshprepError:
            continue
    return tuple(name for name, dim in dims.items() if dim == max(dims.values()))


def _is_union(plan: PlanContent, name: str, parts: tuple[str, ...]) -> bool:
    sizes = [plan.sizes[part] for part in parts]
    if len(parts) < 2 or plan.sizes.get(name) != sum(sizes):
        return False
    start = np.cumsum([0, *sizes[:-1]])
    pieces = [plan.ordering[p].new_to_old + b for p, b in zip(parts, start, strict=True)]
    return np.array_equal(plan.ordering[name].new_to_old, np.concatenate(pieces))
