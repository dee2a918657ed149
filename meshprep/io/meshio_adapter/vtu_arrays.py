"""What VTU files say of their arrays besides values: roles, and names of components."""

import re
from collections.abc import Container
from dataclasses import dataclass, field
from html import unescape
from mmap import ACCESS_READ, mmap
from xml.sax.saxutils import quoteattr

from numpy.typing import NDArray

_PLACES = ("PointData", "CellData")
_ATTRIBUTE = rb"""\s+([\w:]+)\s*=\s*(?:"([^"]*)"|'([^']*)')"""
_TAG = re.compile(rb"<(PointData|CellData|FieldData|Points|Cells|DataArray)((?:%b)*)" % _ATTRIBUTE)
_COMPONENT = re.compile(r"ComponentName(\d+)")


@dataclass(frozen=True)
class PlaceArrays:
    """What is said of the arrays of nodes, or of cells."""

    roles: dict[str, str] = field(default_factory=dict)  # such as Scalars, Vectors, GlobalIds
    # By name of array and number of the component.
    components: dict[str, dict[int, str]] = field(default_factory=dict)

    def roles_of(self, arrays: Container[str]) -> str:
        """The attributes that give these arrays their roles."""
        held = {role: name for role, name in self.roles.items() if name in arrays}
        return "".join(f" {role}={quoteattr(name)}" for role, name in held.items())

    def names_of(self, array: str, values: NDArray) -> str:
        """The attributes that name the components of an array."""
        width = values.shape[1] if values.ndim == 2 else 1
        names = self.components.get(array, {})
        return "".join(
            f" ComponentName{i}={quoteattr(name)}" for i, name in names.items() if i < width
        )


def read_arrays(path: str) -> dict[str, PlaceArrays]:
    """What a file says, by place; only places of which it says something. O(bytes)."""
    found = {place: PlaceArrays() for place in _PLACES}
    place = ""
    with open(path, "rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        tags = [(m[1].decode(), _attributes(m[2])) for m in _TAG.finditer(data)]
    for tag, attributes in tags:
        if tag != "DataArray":
            place = tag
            if place in found:
                found[place].roles.update(attributes)
        elif place in found:
            matches = ((_COMPONENT.fullmatch(key), value) for key, value in attributes.items())
            names = {int(match[1]): value for match, value in matches if match}
            if names:
                found[place].components[attributes.get("Name", "")] = names
    return {place: said for place, said in found.items() if said != PlaceArrays()}


def _attributes(text: bytes) -> dict[str, str]:
    pairs = re.findall(_ATTRIBUTE, text)
    return {
        key.decode(): unescape((double or single).decode("utf-8", "replace"))
        for key, double, single in pairs
    }
