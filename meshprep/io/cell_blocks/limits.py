"""What single formats cannot hold of names and lists, beyond the table of capabilities."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...mesh import IndexList, Mesh, Tag
from ..format.names import FIELD_DATA
from ..format.reduce import bad_lists, with_used_names

# A pattern that every name is of.
ANY_NAME = r"(?s:.*)"


def usual_limits(mesh: Mesh) -> tuple[Mesh, list[str]]:
    """The mesh without what no format of arrays and lists holds; the losses."""
    mesh, lost = drop_odd_field_data(mesh)
    mesh, lost_lists = drop_lists(mesh, bad_lists(mesh, ANY_NAME))
    return mesh, lost + lost_lists


def drop_odd_field_data(mesh: Mesh) -> tuple[Mesh, list[str]]:
    """The mesh without values of the whole mesh that are no rows of numbers or texts."""
    whole = mesh.extras.get(FIELD_DATA)
    if not whole:
        return mesh, []
    kept = {name: array for name, array in whole.items() if _is_array_of_vtk(array)}
    lost = [f"'{array}' of the {FIELD_DATA}" for array in sorted(whole.keys() - kept)]
    return replace(mesh, extras={**mesh.extras, FIELD_DATA: kept}), lost


def _is_array_of_vtk(values: NDArray[Any]) -> bool:
    """Whether VTK has such an array."""
    kind = values.dtype.kind
    number = kind in "iuf" and values.dtype.itemsize <= 8 and values.dtype != np.float16
    return values.ndim in (1, 2) and (number or kind == "U")


def drop_unused_group_names(mesh: Mesh) -> tuple[Mesh, list[str]]:
    """The mesh without names of groups that no cell is in."""
    tags = tuple(t if t.set == "nodes" else with_used_names(t) for t in mesh.tags)
    unused = _group_names(mesh.tags) - _group_names(tags)
    lost = [f"the name '{name}' of a group without cells" for name in sorted(unused)]
    return replace(mesh, tags=tags), lost


def _group_names(tags: Iterable[Tag]) -> set[str]:
    names: set[str] = set()
    for tag in tags:
        names.update(tag.names.values())
    return names


def drop_group_names(mesh: Mesh, names: Collection[str]) -> tuple[Mesh, list[str]]:
    """The mesh without these names of groups; the groups keep their numbers."""
    tags = []
    for tag in mesh.tags:
        kept = {number: name for number, name in tag.names.items() if name not in names}
        tags.append(replace(tag, names=kept))
    lost = [f"the name '{name}' of a group" for name in sorted(names)]
    return replace(mesh, tags=tuple(tags)), lost


def unfit_group_names(
    mesh: Mesh, fits: Callable[[str], object], *, shared: bool = False
) -> set[str]:
    """Names of groups of cells that do not fit, and those of a number with several names.

    Unless names may be ``shared``, also those that several numbers have.
    """
    pairs: set[tuple[int, str]] = set()
    for tag in mesh.tags:
        if tag.set != "nodes":
            pairs.update(tag.names.items())
    names_of_number = Counter(number for number, _ in pairs)
    numbers_of_name = Counter(name for _, name in pairs)
    unfit = set()
    for number, name in pairs:
        ambiguous = numbers_of_name[name] > 1 and not shared
        if names_of_number[number] > 1 or ambiguous or not fits(name):
            unfit.add(name)
    return unfit


def drop_lists(mesh: Mesh, lists: Iterable[IndexList]) -> tuple[Mesh, list[str]]:
    """The mesh without these of its lists."""
    lost = {id(entry): f"the list '{entry.name}' of '{entry.set}'" for entry in lists}
    kept = tuple(entry for entry in mesh.lists if id(entry) not in lost)
    return replace(mesh, lists=kept), list(lost.values())
