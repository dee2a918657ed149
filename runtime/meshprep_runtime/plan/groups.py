"""Groups of elements by name or number, in a plan and in a part of one."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..errors import UnknownNameError
from ..types.maps import Int64s, distinct

if TYPE_CHECKING:
    from .model import PlanContent
    from .parts.model import PartPlan

# The tag of Gmsh's entities; it counts only where a set has no other groups.
ENTITY = "entity"
# The tag with the numbers that a file gives its elements; these are no groups.
NUMBERING = "label"
# The further groups of a tag whose elements are in one group each.
NO_FURTHER_GROUPS = np.empty((0, 2), np.int64)


def members(
    of: "PlanContent | PartPlan",
    set_name: str,
    size: int,
    group: str | int,
    none: str = "none",
) -> Int64s:
    """The elements of a group of a plan, or of a part of one, ascending.

    ``size`` is the number of elements of the set. Raises UnknownNameError where the set has
    no such group; ``none`` stands in its message for a set without groups. O(size) for each
    tag.
    """
    is_member = np.zeros(size, bool)
    has_name = False
    for tag in _group_tags(of, set_name):
        # Find the numbers of the group in this tag: by its name, or its number itself.
        names = of.group_names.get(set_name, {}).get(tag, {})
        numbers = [n for n, name in names.items() if group != 0 and group in (n, name)]
        has_name |= bool(numbers)
        if group and not isinstance(group, str):
            numbers = [group]
        further = of.further_groups.get(set_name, {}).get(tag, NO_FURTHER_GROUPS)
        is_member |= np.isin(of.tags[set_name][tag], numbers)
        is_member[further[np.isin(further[:, 1], numbers), 0]] = True
    if has_name or is_member.any():
        return np.flatnonzero(is_member)
    groups = ", ".join(sorted(set(_group_labels(of, set_name)))) or none
    raise UnknownNameError(
        f"set '{set_name}' has no group '{group}': its groups are {groups}"
    )


def _group_tags(of: "PlanContent | PartPlan", set_name: str) -> list[str]:
    """The tags of a set that hold groups."""
    tags = [tag for tag in of.tags.get(set_name, {}) if tag != NUMBERING]
    without_entities = [tag for tag in tags if tag != ENTITY]
    return without_entities or tags


def _group_labels(of: "PlanContent | PartPlan", set_name: str) -> Iterator[str]:
    """Names, or else numbers, of groups that have elements or names."""
    for tag in _group_tags(of, set_name):
        names = of.group_names.get(set_name, {}).get(tag, {})
        further = of.further_groups.get(set_name, {}).get(tag, NO_FURTHER_GROUPS)
        used = distinct(np.append(of.tags[set_name][tag], further[:, 1])).tolist()
        for number in {*used, *names} - {0}:
            name = names.get(number)
            if name is None:
                yield str(number)
            else:
                yield name
