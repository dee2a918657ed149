"""The part of a plan that one rank of a distributed run holds [R14 7.1.1].

The local elements of a set are numbered class by class: ``core | boundary | exec | halo``.
The part owns core and boundary elements; every target of a core element is owned, too. Exec
elements belong to other parts, and are executed here as well because they write to values
that the part owns. Halo elements belong to other parts, and are only read.
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
    """The rows that are sent to, or received from, other parts.

    Attributes
    ----------
    parts : (n_neighbours,) int32
        The other parts, ascending.
    offset : (n_neighbours + 1,) int64
        Neighbour ``i`` has rows ``rows[offset[i]:offset[i + 1]]``.
    rows : (n_rows,) int32
        Local numbers. Rows are sent in the order in which the receiver stores them.
    """

    parts: NDArray[np.int32]
    offset: NDArray[np.int64]
    rows: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class SetPart:
    """The elements of one set that a part has.

    Attributes
    ----------
    owned_start : int
        Global number of the first owned element; a part owns a contiguous global range.
    core, owned, exec, halo : int
        Numbers of elements; ``owned`` is core and boundary together.
    copies : (exec + halo,) int64
        Global numbers of the elements of other parts: exec, then halo, each ascending, so
        that the rows of one neighbour are contiguous.
    original : (owned,) int64
        The number of each owned element in the mesh that was read.
    send_exec, send_halo, receive_exec, receive_halo : Messages
        Received rows are contiguous: exec rows follow the owned ones, halo rows follow
        these.
    """

    owned_start: int
    core: int
    owned: int
    exec: int
    halo: int
    copies: NDArray[np.int64]
    original: NDArray[np.int64]
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
    """The copies that one map reaches, where they are few: a partial exchange [R14 7.1].

    Rows are those of the to-set; received rows need not be contiguous.
    """

    send: Messages
    receive: Messages


@dataclass(frozen=True)
class ClassColours:
    """The block colours of each class, where no colour has blocks of two classes.

    Colours below ``core`` have core blocks, those from ``core`` to below ``owned`` boundary
    blocks, all others exec blocks.
    """

    core: int
    owned: int


@dataclass(frozen=True, eq=False)
class LoopPart:
    """A loop on one part.

    Attributes
    ----------
    plan : LoopPlan
        In local numbers. Its maps have ``executed`` rows; no block crosses a class.
    colours : mapping of variant name to ClassColours
    increments : str
        ``"exec"`` where exec elements are executed here, too; ``"reverse"`` where
        increments of copies are sent to their owners, and exec elements are not executed.
    """

    plan: LoopPlan
    colours: Mapping[str, ClassColours]
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
    """The part of a plan that one rank needs.

    Attributes
    ----------
    part, parts : int
        The number of the part, from 0, and the number of all parts.
    sizes : mapping of set name to int
        Global sizes.
    sets : mapping of set name to SetPart
    maps : mapping of map name to SetMap
        In local numbers, with a row for each executed element.
    loops : mapping of loop name to LoopPart
    partial : mapping of map name to MapPart
        The maps with a partial exchange: their loops exchange only the copies that the map
        reaches.
    coordinates : mapping of set name to (n, 2 or 3) float64
        Of all local elements.
    tags : mapping of set name to (mapping of tag name to (n,) int64)
        The first group of each local element, 0 for none.
    fields : mapping of set name to (mapping of name to (n, ...) array)
        The dats of the mesh, on local elements.
    further_groups : mapping of set name to (mapping of tag name to (m, 2) int64)
        A local element and a further group of it in each row; rows ascend.
    group_names : mapping of set name to mapping
        By tag name, every group of the whole mesh by its number, with its name or None.
    """

    part: int
    parts: int
    sizes: Mapping[str, int]
    sets: Mapping[str, SetPart]
    maps: Mapping[str, SetMap]
    loops: Mapping[str, LoopPart]
    partial: Mapping[str, MapPart] = field(default_factory=dict)
    coordinates: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    tags: Mapping[str, Mapping[str, NDArray[np.int64]]] = field(default_factory=dict)
    fields: Mapping[str, Mapping[str, NDArray[Any]]] = field(default_factory=dict)
    further_groups: Mapping[str, Mapping[str, NDArray[np.int64]]] = field(
        default_factory=dict
    )
    group_names: Mapping[str, Mapping[str, Mapping[int, str | None]]] = field(
        default_factory=dict
    )
