"""What is in a file, with the file's own numbers: what readers hand to :mod:`.build`."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Entity:
    """A geometric entity as the sections $Entities and $PartitionedEntities list it."""

    dim: int
    tag: int
    box: tuple[float, ...]  # three numbers for a point, else the six of the bounding box
    physical: tuple[int, ...] = ()
    bounding: tuple[int, ...] = ()  # signed numbers of the entities that bound it
    # Of a piece of another entity: the partitions that own it, and that entity.
    partitions: tuple[int, ...] = ()
    parent: tuple[int, int] = (0, 0)


@dataclass(frozen=True, eq=False)
class RawNodes:
    """Nodes in the order of the mesh: that of the file, or of their numbers."""

    label: NDArray[np.int64]  # (n,)
    points: NDArray[np.float64]  # (n, 3)
    # (2, n): dimension and number of the entity of each, where the file says it.
    entity: NDArray[np.int32] | None = None
    # (n, 3), 0 where an entity has fewer dimensions, and which nodes have them, (n,).
    parametric: NDArray[np.float64] | None = None
    has_parametric: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class RawCells:
    """The cells of one type in the order of the file."""

    number: int  # Gmsh's number of the type
    nodes: NDArray[np.int32]  # (n, k): positions of nodes, in Gmsh's order
    label: NDArray[np.int64]  # (n,)
    entity: NDArray[np.int64]  # (n,)
    # (n,): MSH 2.
    physical: NDArray[np.int64] | None = None
    # (n,): where in ``parts`` of :class:`RawElements` the partitions stand.
    part_start: NDArray[np.int64] | None = None
    part_count: NDArray[np.int64] | None = None


@dataclass(frozen=True, eq=False)
class RawElements:
    """All cells by type, with their numbers; MSH 2 keeps partitions among the tags."""

    cells: tuple[RawCells, ...]
    parts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RawField:
    """A section of values: header and rows."""

    section: str  # NodeData or ElementData
    strings: tuple[str, ...]
    reals: tuple[float, ...]
    integers: tuple[int, ...]
    label: NDArray[np.int64]  # (n,)
    values: NDArray[np.float64]  # (n, c)


# Of two entities, what the attributes of an index list say, and pairs of nodes (slave,
# master).
RawPeriodic = tuple[dict[str, Any], NDArray[np.int64]]


@dataclass(eq=False)
class RawMesh:
    """Everything that a file holds, section by section."""

    names: dict[int, dict[int, str]] = field(default_factory=dict)
    entities: tuple[Entity, ...] | None = None
    partitioned: tuple[Entity, ...] = ()
    nodes: RawNodes | None = None
    elements: RawElements | None = None
    periodic: tuple[RawPeriodic, ...] = ()
    fields: list[RawField] = field(default_factory=list)
    sections: list[tuple[str, bytes]] = field(default_factory=list)
    notes: Any = None  # :class:`.sections.GmshNotes`
