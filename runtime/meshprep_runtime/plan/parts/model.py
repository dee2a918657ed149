"""What one rank of a distributed run holds, in its local numbers [R14 7.1.1].

A set's local elements stand in four runs: ``core | boundary | exec | halo``. The part owns core and
boundary elements; every target of a core element is owned, too. Exec elements belong to other parts
and are executed here as well, since they write something that the part owns. Halo elements belong
to other parts and are only read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...maps import SetMap
from ..model import LoopPlan


@dataclass(frozen=True, eq=False)
class Messages:
    """Rows that are sent to or received from other parts.

    Parameters
    ----------
    parts : (n_neighbours,) int32
        The other parts, ascending.
    offset : (n_neighbours + 1,) int64
        Neighbour ``i`` has rows ``rows[offset[i]:offset[i + 1]]``.
    rows : (n_rows,) int32
        Local numbers. What is sent is in the order in which the receiver stores it.
    """

    parts: NDArray[np.int32]
    offset: NDArray[np.int64]
    rows: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class SetPart:
    """The elements of one set that a part has.

    Parameters
    ----------
    owned_start : int
        Global number of the first owned element; a part owns a contiguous global range.
    core, owned, exec, halo : int
        Number of core elements, of owned elements (core and boundary), of exec, of halo elements.
    copies : (exec + halo,) int64
        Global numbers of the elements of other parts: exec, then halo, each ascending, so that
        the rows of one neighbour are contiguous.
    original : (owned,) int64
        The number of each owned element in the mesh that was read.
    send_exec, send_halo, receive_exec, receive_halo : Messages
        Received rows are contiguous: ``owned ... owned + exec`` and what follows them.
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

    Parameters
    ----------
    send, receive : Messages
        Rows of the to-set; what is received is scattered to ``receive.rows``.
    """

    send: Messages
    receive: Messages


@dataclass(frozen=True)
class ClassColours:
    """Block colours by class: core blocks have the lowest, exec blocks the highest.

    Parameters
    ----------
    core : int
        Colours below it have core blocks only.
    owned : int
        Colours from ``core`` to below it have boundary blocks only, the rest exec blocks.
    """

    core: int
    owned: int


@dataclass(frozen=True, eq=False)
class LoopPart:
    """A loop on one part.

    Parameters
    ----------
    plan : LoopPlan
        In local numbers. Its maps have ``executed`` rows; blocks never cross a class.
    colours : mapping of variant name to ClassColours
    increments : str
        ``"exec"``: exec elements are executed here, too; ``"reverse"``: increments of copies are
        sent to their owners, and exec elements are not executed.
    """

    plan: LoopPlan
    colours: Mapping[str, ClassColours]
    increments: str = "exec"


@dataclass(frozen=True, eq=False)
class PartPlan:
    """Everything one rank needs.

    Parameters
    ----------
    part, parts : int
        Which part of how many.
    sizes : mapping of set name to int
        Global sizes.
    sets : mapping of set name to SetPart
    maps : mapping of map name to SetMap
        Local numbers, ``(executed, arity)``.
    loops : mapping of loop name to LoopPart
    partial : mapping of map name to MapPart
        Maps whose loops exchange only what they reach.
    """

    part: int
    parts: int
    sizes: Mapping[str, int]
    sets: Mapping[str, SetPart]
    maps: Mapping[str, SetMap]
    loops: Mapping[str, LoopPart]
    partial: Mapping[str, MapPart] = field(default_factory=dict)
