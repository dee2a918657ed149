"""What SU2's reader and writer share: numbers of cell types, and how markers are numbered."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

TAG = "su2:tag"
# Sections that are not the mesh, as text; SURFACE_POINTS stands for the next list of that kind.
SECTIONS = "su2:sections"
SURFACE_POINTS = "FFD_SURFACE_POINTS"
SURFACE_KIND = "su2:surface_points"
VTK_NUMBER = {
    "line": 3,
    "triangle": 5,
    "quad": 9,
    "tetra": 10,
    "hexahedron": 12,
    "wedge": 13,
    "pyramid": 14,
}


def group_numbers(tags: Sequence[str]) -> Mapping[str, int]:
    """Integers other than 0 stand for themselves; names get the free numbers from 1."""
    numbers = {t: int(t) for t in tags if re.fullmatch(r"-?[1-9]\d{0,17}", t)}
    taken, free = set(numbers.values()), 1
    for t in tags:
        if t in numbers:
            continue
        while free in taken:
            free += 1
        numbers[t] = free
        taken.add(free)
    return numbers
