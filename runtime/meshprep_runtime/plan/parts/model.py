"""What one rank of a distributed run holds, in its local numbers [R14 7.1.1].

A set's local elements stand in four runs: ``core | boundary | exec | halo``. The part owns core and
boundary elements; every target of a core element is owned, too. Exec elements belong to other parts
and are executed here as well, since they write something that the part owns. Halo elements belong
to other parts and are only read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import name_entries
from ...types.maps import SetMap
from ..model import LoopPlan


@dataclass(frozen=True, eq=False)
class Messages:
    """Rows that are sent to or received from other parts."""

    parts: NDArray[np.int32]  # (n_neighbours,): the other parts, ascending
    # (n_neighbours + 1,): neighbour ``i`` has rows ``rows[offset[i]:offset[i + 1]]``.
    offset: NDArray[np.int64]
    # (n_rows,): local numbers. What is sent is in the order in which the receiver stores it.
    rows: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class SetPart:
    """The elements of one set that a part has."""

    # Global number of the first owned element; a part owns a contiguous global range.
    owned_start: int
    # Number of core elements, of owned elements (core and boundary), of exec, of halo elements.
    core: int
    owned: int
    exec: int
    halo: int
    # (exec + halo,): global numbers of the elements of other parts: exec, then halo, each
    # ascending, so that the rows of one neighbour are contiguous.
    copies: NDArray[np.int64]
    # (owned,): the number of each owned element in the mesh that was read.
    original: NDArray[np.int64]
    # Received rows are contiguous: ``owned ... owned + exec`` and what follows them.
    send_exec: Messages
    send_halo: Messages
    receive_exec: Messages
    receive_halo: Messages

    @property
    def executed(self) -> int:
        """Number of elements that a loop with increments through a map runs over."""
        return self.owned + self.exec

    @property
    def size(self) -> int:
        """Number of local elements: the rows of a dat."""
        return self.owned + self.exec + self.halo


@dataclass(frozen=True, eq=False)
class MapPart:
    """The copies that one map reaches, where they are few: a partial exchange [R14 7.1]."""

    # Rows of the to-set; what is received is scattered to ``receive.rows``.
    send: Messages
    receive: Messages


@dataclass(frozen=True)
class ClassColours:
    """Block colours by class: core blocks have the lowest, exec blocks the highest."""

    core: int  # colours below it have core blocks only
    owned: int  # colours from ``core`` to below it have boundary blocks only, the rest exec blocks


@dataclass(frozen=True, eq=False)
class LoopPart:
    """A loop on one part."""

    plan: LoopPlan  # in local numbers. Its maps have ``executed`` rows; blocks never cross a class.
    colours: Mapping[str, ClassColours]  # by variant name
    # ``"exec"``: exec elements are executed here, too; ``"reverse"``: increments of copies are sent
    # to their owners, and exec elements are not executed.
    increments: str = "exec"


@dataclass(frozen=True, eq=False)
@name_entries(
    sizes="set",
    sets="set",
    maps="map",
    loops="loop",
    partial="map",
    coordinates="set with coordinates",
    tags="set with groups",
    fields="set with fields",
)
class PartPlan:
    """Everything one rank needs."""

    # Which part of how many.
    part: int
    parts: int
    sizes: Mapping[str, int]  # by set name: global sizes
    sets: Mapping[str, SetPart]  # by set name
    maps: Mapping[str, SetMap]  # by map name: local numbers, ``(executed, arity)``
    loops: Mapping[str, LoopPart]  # by loop name
    # By map name: maps whose loops exchange only what they reach.
    partial: Mapping[str, MapPart] = field(default_factory=dict)
    # By set name, with a row for each local element: places (n, 2 or 3); by tag name, the first
    # group (n,), 0 for none; by name, the mesh's dats (n, ...).
    coordinates: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    tags: Mapping[str, Mapping[str, NDArray[np.int64]]] = field(default_factory=dict)
    fields: Mapping[str, Mapping[str, NDArray[Any]]] = field(default_factory=dict)
    # By set and tag name, (m, 2): a local element and a further group of it; rows ascend.
    further_groups: Mapping[str, Mapping[str, NDArray[np.int64]]] = field(default_factory=dict)
    # By set and tag name: every group of the whole mesh, with its name, None for none.
    group_names: Mapping[str, Mapping[str, Mapping[int, str | None]]] = field(default_factory=dict)
