"""The sections of MSH 2.2: nodes, elements with their tags, periodic links."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.maps import read_only

from ...mesh import Mesh, Tag
from .emit import GmshWriter
from .entities import FileContent, row_lists
from .layout import INT_LIMIT, CellBlock
from .merge2 import merge_copies
from .numbering import constant, unused
from .raw import RawCells
from .sections import periodic_links

_NONE = np.empty(0, dtype=np.int64)


def write_mesh(sink: GmshWriter, content: FileContent) -> list[str]:
    """Write nodes, elements and periodic links; returns what the reader must be told."""
    sink.begin("Nodes")
    sink.text(f"{content.node_label.size}\n")
    sink.rows(content.node_label.reshape(-1, 1), content.points)
    sink.end("Nodes")
    notes = _write_elements(sink, content)
    _write_periodic(sink, content.mesh, content.node_label)
    return notes


def _write_elements(sink: GmshWriter, content: FileContent) -> list[str]:
    """Every cell once in order, then the copies of those in several groups. O(n)."""
    layout, cells, node_label = content.layout, content.cells, content.node_label
    physical = [layout.physical.get(c.set.name) for c in cells]
    first = [
        constant(0, c.label.size) if tag is None else tag.first_ids()
        for c, tag in zip(cells, physical, strict=True)
    ]
    copies = [_copies(tag) for tag in physical]
    n_copies = sum(rows.size for rows, _ in copies)
    total = sum(c.label.size for c in cells) + n_copies
    fresh = unused([c.label for c in cells], n_copies, INT_LIMIT)
    apart = _must_stay_apart(content, first, copies)
    sink.begin("Elements")
    sink.text(f"{total}\n")
    for c, group in zip(cells, first, strict=True):
        part = layout.partition.get(c.set.name)
        _write_runs(sink, c, part, None, c.label, group, node_label)
    for c, (rows, group) in zip(cells, copies, strict=True):
        label, fresh = fresh[: rows.size].copy(), fresh[rows.size :]
        _write_runs(sink, c, layout.partition.get(c.set.name), rows, label, group, node_label)
    sink.end("Elements")
    return ["apart"] if apart else []


def _copies(tag: Tag | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cells that are in further groups, and these: all second ones first, then the third."""
    if tag is None:
        return _NONE, _NONE
    length = np.diff(tag.group_offset)
    if length.max(initial=0) < 2:
        return _NONE, _NONE
    count, start = length[tag.values], tag.group_offset[tag.values]
    found = [np.flatnonzero(count > k) for k in range(1, int(length.max()))]
    groups = [tag.group_id[start[rows] + k + 1] for k, rows in enumerate(found)]
    return np.concatenate([*found, _NONE]), np.concatenate([*groups, _NONE])


def _must_stay_apart(
    content: FileContent,
    first: Sequence[NDArray[np.int64]],
    copies: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> bool:
    """Whether equal cells would be taken for copies of one cell when the file is read."""
    wrong = False
    for c, group, (rows, more) in zip(content.cells, first, copies, strict=True):
        if not rows.size and not content.assignment.alike[c.set.name]:
            continue
        n = c.label.size
        part = row_lists(content.layout.partition.get(c.set.name), n)[1]
        every = np.concatenate([np.arange(n), rows])
        raw = RawCells(
            c.number, c.nodes[every], every, np.empty((0, 2), np.int64),
            c.entity[every], np.concatenate([group, more]), _NONE, _NONE,
        )  # fmt: skip
        cell = merge_copies(raw, part[every])[0]
        wrong |= rows.size > 0 if cell is None else not np.array_equal(cell, every)
    if wrong and any(rows.size for rows, _ in copies):
        raise MeshprepError(
            "equal cells in several groups cannot be told apart in MSH 2.2: write version 4.1"
        )
    return wrong


def _write_runs(
    sink: GmshWriter,
    c: CellBlock,
    part: Tag | None,
    rows: NDArray[np.int64] | None,
    label: NDArray[np.int64],
    group: NDArray[np.int64],
    node_label: NDArray[np.int64],
) -> None:
    """Write these cells (None: all), a run of equal numbers of tags at a time."""
    if not label.size:
        return
    entity = c.entity if rows is None else c.entity[rows]
    nodes = c.nodes if rows is None else read_only(c.nodes[rows])
    if part is None:
        same = not (group.strides[0] or entity.strides[0])
        tags = np.stack([group[:1], entity[:1]] if same else [group, entity], axis=1)
        sink.elements2(c.number, label, tags, nodes, node_label)
        return
    values = part.values if rows is None else part.values[rows]
    count = np.diff(part.group_offset)[values]
    edges = np.flatnonzero(np.diff(count)) + 1
    for lo, hi in zip([0, *edges.tolist()], [*edges.tolist(), label.size], strict=True):
        k = int(count[lo])
        tags = np.empty((hi - lo, 3 + k if k else 2), dtype=np.int64)
        tags[:, 0], tags[:, 1] = group[lo:hi], entity[lo:hi]
        if k:
            tags[:, 2] = k
            tags[:, 3:] = part.group_id[part.group_offset[values[lo:hi]][:, None] + np.arange(k)]
        sink.elements2(c.number, label[lo:hi], tags, nodes[lo:hi], node_label)


def _write_periodic(sink: GmshWriter, mesh: Mesh, node_label: NDArray[np.int64]) -> None:
    """Text in every mode."""
    found = periodic_links(mesh, node_label)
    if not found:
        return
    sink.text(f"$Periodic\n{len(found)}\n")
    for link in found:
        sink.text(f"{link.dim} {link.slave} {link.master}\n")
        if link.affine:
            sink.text(f"Affine {' '.join(map(repr, link.affine))}\n")
        sink.text(f"{len(link.pairs)}\n")
        sink.text("".join(f"{a} {b}\n" for a, b in link.pairs.tolist()))
    sink.text("$EndPeriodic\n")
