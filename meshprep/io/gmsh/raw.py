"""What is in a file, with the file's own numbers: what readers hand to :mod:`.build`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

# What a kernel reports besides a position.
FINE, NO_NUMBER, UNKNOWN_TYPE, BAD_COUNT, BAD_DIM, BAD_FLAG, WANTS_ROOM = range(7)
BAD_TOTAL, BAD_ROW = 7, 8


@dataclass(frozen=True)
class Entity:
    """A geometric entity as the sections $Entities and $PartitionedEntities list it.

    Parameters
    ----------
    dim, tag : int
    box : tuple of float
        Three numbers for a point, else the six of the bounding box.
    physical : tuple of int
    bounding : tuple of int
        Signed numbers of the entities that bound it.
    parent : (dim, tag), optional
        Of a part of a partitioned mesh.
    partitions : tuple of int
    """

    dim: int
    tag: int
    box: tuple[float, ...]
    physical: tuple[int, ...] = ()
    bounding: tuple[int, ...] = ()
    parent: tuple[int, int] | None = None
    partitions: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class RawNodes:
    """Nodes in the order of the file.

    Parameters
    ----------
    label : (n,) int64
    points : (n, 3) float64
    runs : (m, 4) int64, optional
        Dimension and number of the entity, whether parametric, and how many nodes.
    parametric : (n, 3) float64, optional
    """

    label: NDArray[np.int64]
    points: NDArray[np.float64]
    runs: NDArray[np.int64] | None = None
    parametric: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class RawCells:
    """The cells of one type in the order of the file.

    Parameters
    ----------
    number : int
        Gmsh's number of the type.
    nodes : (n, k) int32
        Positions of nodes, in Gmsh's order.
    label : (n,) int64
    runs : (m, 2) int64
        Entity and how many cells, MSH 4; empty in MSH 2.
    entity, physical : (n,) int64
        MSH 2; empty in MSH 4.
    part_start, part_count : (n,) int64
        Where in ``parts`` of :class:`RawElements` the partitions stand; empty in MSH 4.
    """

    number: int
    nodes: NDArray[np.int32]
    label: NDArray[np.int64]
    runs: NDArray[np.int64]
    entity: NDArray[np.int64]
    physical: NDArray[np.int64]
    part_start: NDArray[np.int64]
    part_count: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RawElements:
    """All cells by type, and the partitions that MSH 2 gives them."""

    cells: tuple[RawCells, ...]
    parts: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True, eq=False)
class RawField:
    """A section of values: header and rows.

    Parameters
    ----------
    section : str
        NodeData, ElementData or ElementNodeData.
    strings : tuple of str
    reals : tuple of float
    integers : tuple of int
    label : (n,) int64
    values : (n, c) float64, or flat
    row_nodes : (n,) int64
        Nodes of each row where ``values`` is flat: ElementNodeData.
    """

    section: str
    strings: tuple[str, ...]
    reals: tuple[float, ...]
    integers: tuple[int, ...]
    label: NDArray[np.int64]
    values: NDArray[np.float64]
    row_nodes: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RawPeriodic:
    """Pairs of nodes (slave, master) of two entities, and the transformation between them."""

    dim: int
    slave: int
    master: int
    affine: tuple[float, ...]
    pairs: NDArray[np.int64]


@dataclass(eq=False)
class RawMesh:
    """Everything that a file holds, section by section."""

    names: dict[int, dict[int, str]] = field(default_factory=dict)
    entities: tuple[Entity, ...] | None = None
    partitioned: dict[str, Any] | None = None
    nodes: RawNodes | None = None
    elements: RawElements | None = None
    periodic: tuple[RawPeriodic, ...] = ()
    ghosts: tuple[tuple[int, int, tuple[int, ...]], ...] = ()
    fields: list[RawField] = field(default_factory=list)
    sections: list[tuple[str, bytes]] = field(default_factory=list)
    notes: tuple[tuple[str, ...], ...] = ()
