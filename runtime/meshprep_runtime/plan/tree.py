"""A plan file as plain values: no HDF5 in here."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError, PlanError
from ..loops import Loop, loop_from_dict
from ..maps import read_only
from .records import from_json

Scalar = int | str
T = TypeVar("T")


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


def loop_of(name: str, values: Mapping[str, Any], where: str) -> Loop:
    """A loop from its JSON values; raises PlanError where these are not those of a loop."""
    try:
        return loop_from_dict(name, values, where)
    except MeshprepError as error:
        raise PlanError(str(error)) from None


_KINDS = {int: "a whole number", str: "text"}
