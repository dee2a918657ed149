"""Groups of elements by name or number, in a plan and in a part of one."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from ..errors import UnknownNameError
from ..types.maps import Int64s, distinct

# A set's elements by Gmsh's entities, which count only where it has no other groups.
ENTITY = "entity"
# The numbers that a file gives its elements.
_NUMBERING = "label"
_NONE_FURTHER = np.empty((0, 2), np.int64)


class Grouped(Protocol):
    """What has groups: by set name, by tag name."""

    @property
    def tags(self) -> Mapping[str, Mapping[str, Int64s]]:
        """The first group of each element, 0 for none."""

    @property
    def further_groups(self) -> Mapping[str, Mapping[str, Int64s]]:
        """Rows of an element and a further group."""

    @property
    def group_names(self) -> Mapping[str, Mapping[str, Mapping[int, Any]]]:
        """Names by number, None for groups without one."""


def members(of: Grouped, set_name: str, size: int, group: str | int, none: str = "none") -> Int64s:
    """Which of so many elements are in a group, ascending.

    Raises UnknownNameError where the set has no such group, ``none`` where it has no groups at all.
    O(size) for each tag.
    """
    inside, found = np.zeros(size, bool), False
    for tag in _group_tags(of, set_name):
        names = of.group_names.get(set_name, {}).get(tag, {})
        numbers = [n for n, own in names.items() if group != 0 and group in (n, own)]
        found |= bool(numbers)
        if group and not isinstance(group, str):
            numbers = [group]
        further = of.further_groups.get(set_name, {}).get(tag, _NONE_FURTHER)
        inside |= np.isin(of.tags[set_name][tag], numbers)
        inside[further[np.isin(further[:, 1], numbers), 0]] = True
    if found or inside.any():
        return np.flatnonzero(inside)
    said = ", ".join(sorted(set(_known(of, set_name)))) or none
    raise UnknownNameError(f"set '{set_name}' has no group '{group}': its groups are {said}")


def _group_tags(of: Grouped, set_name: str) -> list[str]:
    tags = [tag for tag in of.tags.get(set_name, {}) if tag != _NUMBERING]
    return [tag for tag in tags if tag != ENTITY] or tags


def _known(of: Grouped, set_name: str) -> Iterator[str]:
    """The groups that elements are in, and those that only have names."""
    for tag in _group_tags(of, set_name):
        names = of.group_names.get(set_name, {}).get(tag, {})
        further = of.further_groups.get(set_name, {}).get(tag, _NONE_FURTHER)
        used = distinct(np.append(of.tags[set_name][tag], further[:, 1])).tolist()
        named = {number: name for number, name in names.items() if name is not None}
        yield from (named.get(number, str(number)) for number in {*used, *names} - {0})
