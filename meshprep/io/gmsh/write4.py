"""The sections of MSH 4.1: entities, and blocks of nodes and elements in the order of the mesh."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import Int64s, read_only

from ...mesh import Mesh
from .emit import GmshWriter
from .entities import EntityAssignment, FileContent
from .layout import CellBlock, FileLayout, source
from .raw import Entity
from .sections import periodic_links


def write4(sink: GmshWriter, content: FileContent) -> list[str]:
    """Write entities, nodes, elements and periodic links; returns no notes."""
    sink.begin("Entities")
    _write_table(sink, content.assignment.entities)
    sink.end("Entities")
    _write_partitioned(sink, content.mesh, content.assignment)
    _write_nodes(sink, content)
    # A block for each run of cells of one entity; nothing is sorted. O(n).
    cells = content.cells
    starts = [_runs(c.entity) for c in cells]
    total = sum(c.label.size for c in cells)
    lowest = min(int(c.label.min()) for c in cells)
    highest = max(int(c.label.max()) for c in cells)
    sink.begin("Elements")
    sink.ints((sum(s.size - 1 for s in starts), total, lowest, highest), size=True)
    for c, start in zip(cells, starts, strict=True):
        heads = np.empty((start.size - 1, 3), dtype=np.int64)
        heads[:, 0], heads[:, 1], heads[:, 2] = c.dim, c.entity[start[:-1]], c.number
        sink.elements4(heads, start, c.label, c.nodes, content.node_label)
    sink.end("Elements")
    _write_periodic(sink, content.mesh, content.node_label)
    return []


def _write_table(sink: GmshWriter, entities: Mapping[tuple[int, int], Entity]) -> None:
    by_dim = [[e for e in entities.values() if e.dim == dim] for dim in range(4)]
    sink.ints((len(group) for group in by_dim), size=True)
    for group in by_dim:
        for e in group:
            sink.ints([e.tag])
            if e.parent is not None:
                sink.ints(e.parent)
                _write_list(sink, e.partitions)
            sink.doubles(e.box)
            _write_list(sink, e.physical)
            if e.dim:
                _write_list(sink, e.bounding)


def _write_list(sink: GmshWriter, numbers: Sequence[int]) -> None:
    sink.ints([len(numbers)], size=True)
    sink.ints(numbers)


def _write_partitioned(sink: GmshWriter, mesh: Mesh, assignment: EntityAssignment) -> None:
    info = source(mesh).get("partitioned")
    if not assignment.parts and info is None:
        return
    highest = max((p for e in assignment.parts.values() for p in e.partitions), default=0)
    sink.begin("PartitionedEntities")
    sink.ints([max(highest, info["count"] if info else 0)], size=True)
    sink.ints([0], size=True)  # ghost entities
    _write_table(sink, assignment.parts)
    sink.end("PartitionedEntities")


def _write_nodes(sink: GmshWriter, content: FileContent) -> None:
    """A block for each run of nodes of one entity; nothing is sorted. O(n)."""
    label, points = content.node_label, read_only(content.points)
    heads, start = _node_blocks(content.layout, content.cells, len(points))
    sink.begin("Nodes")
    bounds = (int(label.min()), int(label.max())) if label.size else (0, 0)
    sink.ints((start.size - 1, label.size, *bounds), size=True)
    sink.nodes4(heads, start, label, points)
    sink.end("Nodes")


def _node_blocks(layout: FileLayout, cells: Sequence[CellBlock], n: int) -> tuple[Int64s, Int64s]:
    """Heads of the blocks (dimension, entity, 0: not parametric), and where they start."""
    if layout.node_entity is None:
        # They belong to none, but Gmsh wants one: that of the first cell of the highest dimension.
        top = max(cells, key=lambda c: c.dim)
        head = np.array([[top.dim, top.entity[0], 0]])
        return head, np.array([0, n])
    dim, tag = layout.node_entity
    start = _runs(dim, tag)
    first = start[:-1]
    head = np.zeros((first.size, 3), dtype=np.int64)
    head[:, 0], head[:, 1] = dim[first], tag[first]
    return head, start


def _runs(*columns: NDArray[np.integer]) -> Int64s:
    """Where each run of equal rows starts, and the end."""
    n = columns[0].size
    ends = np.zeros(max(n - 1, 0), dtype=bool)
    for column in columns:
        if column.strides[0]:
            ends |= column[1:] != column[:-1]
    change = np.flatnonzero(ends) + 1
    return np.concatenate([np.zeros(min(n, 1), np.int64), change, [n]])


def _write_periodic(sink: GmshWriter, mesh: Mesh, node_label: Int64s) -> None:
    found = periodic_links(mesh, node_label)
    if not found:
        return
    sink.begin("Periodic")
    sink.ints([len(found)], size=True)
    for link in found:
        sink.ints((link.dim, link.slave, link.master))
        sink.ints([len(link.affine)], size=True)
        sink.doubles(link.affine)
        sink.ints([len(link.pairs)], size=True)
        sink.rows(link.pairs, size=True)
    sink.end("Periodic")
