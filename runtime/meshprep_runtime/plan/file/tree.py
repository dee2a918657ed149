"""A plan file as plain values: no HDF5 in here."""

import json
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import PlanError
from ...types.maps import read_only
from ..records import from_json

Scalar = int | str
T = TypeVar("T")
# Every type of number that a plan holds.
DTYPES = ("<i4", "<i8", "|u1", "<u2", "<f4", "<f8")


@dataclass
class Tree:
    """Groups with their attributes, and datasets, by path from the root."""

    # By path: ``"/"`` is the root. Attributes are whole numbers (int64) or text.
    groups: dict[str, dict[str, Scalar]] = field(default_factory=lambda: {"/": {}})
    datasets: dict[str, NDArray[Any] | str] = field(default_factory=dict)  # by path

    def group(self, path: str, **attributes: Scalar) -> str:
        """Add a group under groups that exist already; returns its path."""
        self.groups.setdefault(path, {}).update(attributes)
        return path

    def under(self, path: str) -> "Tree":
        """All that is in a group, as a tree of its own."""
        n = len(path)
        groups = {p[n:] or "/": a for p, a in self.groups.items() if f"{p}/".startswith(f"{path}/")}
        inside = {p[n:]: a for p, a in self.datasets.items() if p.startswith(f"{path}/")}
        return Tree(groups, inside)

    def graft(self, path: str, inner: "Tree") -> None:
        """Add a tree as a group; the groups above it exist already."""
        self.groups |= {f"{path}{p.rstrip('/')}": a for p, a in inner.groups.items()}
        self.datasets |= {f"{path}{p}": a for p, a in inner.datasets.items()}

    def children(self, path: str) -> list[str]:
        """Names of the groups directly under ``path``, by ``position`` where they have one."""
        inside = [p for p in self.groups if p != "/" and p.rpartition("/")[0] == path.rstrip("/")]
        inside.sort(key=lambda p: (self.groups[p].get("position", 0), p))
        return [p.rpartition("/")[2] for p in inside]

    def leaves(self, path: str) -> list[str]:
        """Names of the datasets directly under ``path``, sorted."""
        return sorted(
            p.rpartition("/")[2] for p in self.datasets if p.rpartition("/")[0] == path.rstrip("/")
        )

    def attribute(self, path: str, name: str, kind: type) -> Scalar:
        """An attribute of the kind ``int`` or ``str``; raises PlanError when it is not there."""
        value = self.groups.get(path, {}).get(name)
        if value is None or not isinstance(value, kind):
            raise PlanError(f"{path} has no attribute '{name}' that is {_KINDS[kind]}")
        return value

    def text(self, path: str, name: str) -> str:
        return str(self.attribute(path, name, str))

    def number(self, path: str, name: str) -> int:
        return int(self.attribute(path, name, int))

    def array(self, path: str, *dtypes: str, ndim: int = 1) -> NDArray[Any]:
        """A dataset of one of these dtypes, read-only; raises PlanError when there is none."""
        found = self.datasets.get(path)
        if not isinstance(found, np.ndarray):
            raise PlanError(f"{path} is missing")
        if found.dtype.str not in dtypes or found.ndim != ndim:
            raise PlanError(
                f"{path} holds {found.dtype.str} of shape {found.shape}, must be "
                f"{' or '.join(dtypes)} of {ndim} dimensions"
            )
        return read_only(found)

    def document(self, path: str) -> str:
        """A dataset that is text; raises PlanError when it is absent."""
        found = self.datasets.get(path)
        if not isinstance(found, str):
            raise PlanError(f"{path} is missing")
        return found

    def records(self, path: str, kind: type[T]) -> tuple[T, ...]:
        """Records that are stored as JSON; none where there is no such dataset."""
        if path not in self.datasets:
            return ()
        return from_json(tuple[kind, ...], json.loads(self.document(path)), path)  # type: ignore[valid-type]


def checked_name(name: str) -> str:
    """The name of a group or dataset; raises PlanError where a file cannot hold it."""
    if not name or name == "." or "/" in name or "\0" in name:
        raise PlanError(f"a plan file cannot hold the name {name!r}: no '/', not empty, not '.'")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise PlanError(f"a plan file cannot hold the name {name!r}: it is not Unicode") from None
    return name


_KINDS = {int: "a whole number", str: "text"}


def check_offset(where: str, offset: NDArray[Any], end: int) -> None:
    """Raise PlanError unless an offset starts at 0, never falls and ends at ``end``."""
    check_array(where, offset, "i8", (offset.size,))
    if not offset.size or offset[0] != 0 or offset[-1] != end:
        raise PlanError(f"{where} does not go from 0 to {end}")
    falls = offset[1:] < offset[:-1]
    if falls.any():
        raise PlanError(f"{where} falls after entry {int(np.argmax(falls))}")


def check_array(where: str, values: NDArray[Any], dtype: str, shape: tuple[int, ...]) -> None:
    """Raise PlanError unless an array has this type and shape."""
    wanted = np.dtype(dtype)
    if values.dtype != wanted or values.shape != shape:
        raise PlanError(
            f"{where} is {values.dtype} of shape {values.shape}, must be {wanted} of shape {shape}"
        )


def check_below(where: str, values: NDArray[Any], end: int) -> None:
    """Raise PlanError unless all values are from 0 to ``end - 1``."""
    if values.size and (values.min() < 0 or values.max() >= end):
        at = int(np.argmax((values < 0) | (values >= end)))
        raise PlanError(f"{where}: entry {at} is {values[at]}, outside 0..{end - 1}")
