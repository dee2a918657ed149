"""Groups of a mesh in a CGNS file: sections, boundary conditions, regions and zones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import ranges

from ...mesh import Tag
from ...mesh.assemble import GroupTable
from .elements import standard_name
from .tree import Node

SECTION, BC, REGION = "cgns:section", "cgns:bc", "cgns:region"
NOTES = "cgns:notes"
# The kind of lists of the elements of a condition or region, in the order of the values
# beside them. ``attrs["of"]`` says which of the two it is, ``attrs["at"]`` the place of
# each in the whole.
ORDER = "cgns:order"


@dataclass(frozen=True, eq=False)
class CgnsNotes:
    """What a file holds besides the mesh, and where it has the parts of the mesh.

    ``nodes`` are those at the root but the version; those whose data follow the mesh have
    none. ``order`` are the names of the sections as they stand there; ``sections`` has them
    by type of cells or set, where no tag has them. ``valued`` are the conditions and
    regions (kind and name) that have values for each of their elements.
    """

    nodes: tuple[Node, ...]
    order: tuple[str, ...] = ()
    sections: dict[str, str] = field(default_factory=dict)
    valued: tuple[tuple[str, str], ...] = ()


def sections_are_groups(names: Mapping[str, set[str]], *, top: bool, bare: bool) -> bool:
    """Whether the sections of one dimension say more than types do; by type, their names.

    Those of boundaries do where there are several, or no boundary conditions (``bare``).
    """
    if all(found == {standard_name(kind)} for kind, found in names.items()):
        return False
    if top:
        return any(len(found) > 1 for found in names.values())
    return bare or len(set().union(*names.values())) > 1


def table(
    n: int, element: NDArray[np.integer], group: NDArray[np.integer], order: Sequence[int]
) -> NDArray[np.int64] | GroupTable:
    """The groups of ``n`` elements, by pairs.

    The groups of one element stand in the order of ``order``.
    """
    counts = np.bincount(element, minlength=n)
    if counts.max(initial=0) <= 1:
        ids = np.zeros(n, np.int64)
        ids[element] = group
        return ids
    # Sort the pairs by element, and by the order of the groups within it.
    place = {g: i for i, g in enumerate(order)}
    number, which = np.unique(group, return_inverse=True)
    rank = np.array([place[g] for g in number.tolist()])[which]
    rows = np.lexsort((rank, element))
    element = element[rows]
    group = group[rows]
    lists: dict[tuple[int, ...], int] = {(): 0}
    values = np.zeros(n, np.int32)
    single = counts[element] == 1
    for g in number.tolist():
        values[element[single & (group == g)]] = lists.setdefault((g,), len(lists))
    # Elements of several groups are few: take their lists one by one.
    several = np.flatnonzero(counts > 1)
    ends = np.cumsum(counts)[several]
    for e, end in zip(several.tolist(), ends.tolist(), strict=True):
        found = tuple(dict.fromkeys(group[end - counts[e] : end].tolist()))
        values[e] = lists.setdefault(found, len(lists))
    return GroupTable.of(lists, values)


def pairs(tag: Tag) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Elements and their groups, a pair for each group of each element; elements ascend."""
    counts = np.diff(tag.group_offset)[tag.values]
    element = np.repeat(np.arange(tag.values.size), counts)
    return element, tag.group_id[ranges(tag.group_offset[tag.values], counts)]
