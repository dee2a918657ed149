"""A plan file as plain values: groups with attributes, and datasets, without HDF5."""

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
# The types of numbers that a plan may hold.
DTYPES = ("<i4", "<i8", "|u1", "<u2", "<f4", "<f8")


@dataclass
class Tree:
    """The attributes of groups, and the datasets, by path from the root ``"/"``.

    Attributes are whole numbers (int64) or text.
    """

    groups: dict[str, dict[str, Scalar]] = field(default_factory=lambda: {"/": {}})
    datasets: dict[str, NDArray[Any] | str] = field(default_factory=dict)

    def group(self, path: str, **attributes: Scalar) -> str:
        """Add a group under groups that exist already; returns its path."""
        self.groups.setdefault(path, {}).update(attributes)
        return path

    def under(self, path: str) -> "Tree":
        """A group with all that is in it, as a tree of its own."""
        prefix = f"{path}/"
        groups = {}
        for group_path, attributes in self.groups.items():
            if f"{group_path}/".startswith(prefix):
                groups[group_path.removeprefix(path) or "/"] = attributes
        datasets = {}
        for dataset_path, values in self.datasets.items():
            if dataset_path.startswith(prefix):
                datasets[dataset_path.removeprefix(path)] = values
        return Tree(groups, datasets)

    def graft(self, path: str, inner: "Tree") -> None:
        """Add a tree as a group under groups that exist already."""
        self.groups |= {f"{path}{p.rstrip('/')}": a for p, a in inner.groups.items()}
        self.datasets |= {f"{path}{p}": a for p, a in inner.datasets.items()}

    def children(self, path: str) -> list[str]:
        """Names of the groups directly under ``path``.

        They are in the order of their attribute ``position``, where they have one.
        """
        parent = path.rstrip("/")
        paths = [p for p in self.groups if p != "/" and p.rpartition("/")[0] == parent]
        paths.sort(key=lambda p: (self.groups[p].get("position", 0), p))
        return [p.rpartition("/")[2] for p in paths]

    def leaves(self, path: str) -> list[str]:
        """Names of the datasets directly under ``path``, sorted."""
        parent = path.rstrip("/")
        paths = [p for p in self.datasets if p.rpartition("/")[0] == parent]
        return sorted(p.rpartition("/")[2] for p in paths)

    def attribute(self, path: str, name: str, kind: type) -> Scalar:
        """An attribute of the kind ``int`` or ``str``; PlanError when there is none."""
        value = self.groups.get(path, {}).get(name)
        if value is None or not isinstance(value, kind):
            raise PlanError(f"{path} has no attribute '{name}' that is {KIND_WORDS[kind]}")
        return value

    def text(self, path: str, name: str) -> str:
        """An attribute that is text; raises PlanError when there is none."""
        return str(self.attribute(path, name, str))

    def number(self, path: str, name: str) -> int:
        """An attribute that is a whole number; raises PlanError when there is none."""
        return int(self.attribute(path, name, int))

    def array(self, path: str, *dtypes: str, ndim: int = 1) -> NDArray[Any]:
        """A dataset of one of these dtypes, read-only; PlanError when there is none."""
        values = self.datasets.get(path)
        if not isinstance(values, np.ndarray):
            raise PlanError(f"{path} is missing")
        if values.dtype.str not in dtypes or values.ndim != ndim:
            raise PlanError(
                f"{path} holds {values.dtype.str} of shape {values.shape}, must be "
                f"{' or '.join(dtypes)} of {ndim} dimensions"
            )
        return read_only(values)

    def document(self, path: str) -> str:
        """A dataset that is text; raises PlanError when there is none."""
        text = self.datasets.get(path)
        if not isinstance(text, str):
            raise PlanError(f"{path} is missing")
        return text

    def records(self, path: str, kind: type[T]) -> tuple[T, ...]:
        """Records that are stored as JSON; empty where there is no such dataset."""
        if path not in self.datasets:
            return ()
        values = json.loads(self.document(path))
        kinds = tuple[kind, ...]  # type: ignore[valid-type]
        return from_json(kinds, values, path)


def checked_name(name: str) -> str:
    """The name of a group or dataset; raises PlanError where a file cannot hold it."""
    if not name or name == "." or "/" in name or "\0" in name:
        raise PlanError(
            f"a plan file cannot hold the name {name!r}: no '/', not empty, not '.'"
        )
    try:
        name.encode()
    except UnicodeEncodeError:
        raise PlanError(
            f"a plan file cannot hold the name {name!r}: it is not Unicode"
        ) from None
    return name


# How messages name the kinds of attributes.
KIND_WORDS = {int: "a whole number", str: "text"}


def check_offset(where: str, offset: NDArray[Any], end: int) -> None:
    """Raise PlanError unless an offset starts at 0, never falls and ends at ``end``."""
    check_array(where=where, values=offset, dtype="i8", shape=(offset.size,))
    if not offset.size or offset[0] != 0 or offset[-1] != end:
        raise PlanError(f"{where} does not go from 0 to {end}")
    falls = offset[1:] < offset[:-1]
    if falls.any():
        raise PlanError(f"{where} falls after entry {int(np.argmax(falls))}")


def check_array(
    where: str, values: NDArray[Any], dtype: str, shape: tuple[int, ...]
) -> None:
    """Raise PlanError unless an array has this type and shape."""
    if values.dtype != np.dtype(dtype) or values.shape != shape:
        raise PlanError(
            f"{where} is {values.dtype} of shape {values.shape}, "
            f"must be {np.dtype(dtype)} of shape {shape}"
        )


def check_below(where: str, values: NDArray[Any], end: int) -> None:
    """Raise PlanError unless all values are from 0 to ``end - 1``."""
    if values.size and (values.min() < 0 or values.max() >= end):
        entry = int(np.argmax((values < 0) | (values >= end)))
        raise PlanError(f"{where}: entry {entry} is {values[entry]}, outside 0..{end - 1}")
