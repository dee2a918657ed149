"""Sections of elements in CGNS: types, order of nodes, polygons, polyhedra [SIDS 7.3]."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import offsets_of, ranges

from ...kernels import Int64s, kernel
from ...mesh.cells import node_count, shape_of
from .tree import Node

# CGNS's number of each type, and its name. Cubic solids are left out but for tetrahedra.
NUMBER = {
    "vertex": 2,
    "line": 3,
    "line3": 4,
    "triangle": 5,
    "triangle6": 6,
    "quad": 7,
    "quad8": 8,
    "quad9": 9,
    "tetra": 10,
    "tetra10": 11,
    "pyramid": 12,
    "pyramid14": 13,
    "wedge": 14,
    "wedge15": 15,
    "wedge18": 16,
    "hexahedron": 17,
    "hexahedron20": 18,
    "hexahedron27": 19,
    "pyramid13": 21,
    "line4": 24,
    "triangle10": 26,
    "quad16": 28,
    "tetra20": 30,
    "line5": 40,
    "triangle15": 42,
}
MIXED, NGON, NFACE = 20, 22, 23
TYPE = {number: name for name, number in NUMBER.items()}
# By CGNS's number: how many numbers an element takes in a MIXED section.
_WIDTH = np.zeros(max(TYPE) + 1, np.int64)
_WIDTH[[*TYPE]] = [1 + node_count(name) for name in TYPE.values()]
_WORD = {
    "vertex": "NODE",
    "line": "BAR",
    "triangle": "TRI",
    "quad": "QUAD",
    "tetra": "TETRA",
}
_WORD |= {"pyramid": "PYRA", "wedge": "PENTA", "hexahedron": "HEXA"}
# The sets of facets of polyhedra, inner and outer.
FACETS = "faces", "boundary_faces"
# Column ``i`` in memory is column ``TO_MEMORY[t][i]`` of the file: CGNS has the upright
# edges before those of the top, other faces of hexahedra first, and turns cubic edges of
# tetrahedra.
_HEXAHEDRON = [*range(12), *range(16, 20), *range(12, 16)]
_WEDGE = [*range(9), *range(12, 15), *range(9, 12)]
TO_MEMORY = {
    "hexahedron20": _HEXAHEDRON,
    "hexahedron27": [*_HEXAHEDRON, 24, 22, 21, 23, 20, 25, 26],
    "wedge15": _WEDGE,
    "wedge18": [*_WEDGE, 15, 16, 17],
    "tetra20": [*range(10), 11, 10, 15, 14, 13, 12, 16, 17, 19, 18],
}
TO_FILE = {t: np.argsort(o).tolist() for t, o in TO_MEMORY.items()}


def standard_name(cell_type: str) -> str:
    """CGNS's name of a type of cells (``HEXA_8``), or of facets or cells of polyhedra."""
    if cell_type in (*FACETS, "cells"):
        if cell_type == "cells":
            return "NFACE_n"
        return "NGON_n"
    return f"{_WORD[shape_of(cell_type).name]}_{node_count(cell_type)}"


@dataclass(eq=False)
class Lists:
    """Whole numbers of each of several elements: ``values[offset[i]:offset[i + 1]]``."""

    offset: NDArray[np.int64]
    values: NDArray[np.int64]

    def filled(self) -> NDArray[np.int64]:
        """A row an element; short ones repeat their last value."""
        counts = np.diff(self.offset)
        width = int(counts.max(initial=1))
        at = np.minimum(np.arange(width), counts[:, None] - 1) + self.offset[:-1, None]
        return self.values[at]

    @classmethod
    def unfilled(cls, table: NDArray[np.integer]) -> "Lists":
        """The inverse of :meth:`filled`; no list ends in the same value twice."""
        differs = np.ones(table.shape, np.bool_)
        differs[:, 1:] = table[:, 1:] != table[:, :-1]
        # a value stays up to the last one that differs from that before it
        counts = table.shape[1] - np.argmax(differs[:, ::-1], axis=1)
        kept = np.arange(table.shape[1]) < counts[:, None]
        return cls(offsets_of(counts), table[kept].astype(np.int64))


@dataclass(eq=False)
class ElementSection:
    """A section: the number of its first element, and its elements by type, or as lists."""

    name: str
    start: int
    size: int
    # Type, places of the elements in the section, and nodes from 0 in the order in memory.
    cells: Sequence[tuple[str, NDArray[np.int64], NDArray[np.int64]]] = ()
    polygons: Lists | None = None  # nodes from 0 of NGON_n
    polyhedra: Lists | None = (
        None  # numbers of faces of NFACE_n; the sign says which way they look
    )

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The numbers of the elements."""
        return np.arange(self.start, self.start + self.size)


def read_section(node: Node, n_nodes: int) -> ElementSection:
    """The section that an ``Elements_t`` holds, in a zone of this many nodes.

    Raises MeshprepError that names the section for types that are not known and lists that
    do not fit.
    """
    where = f"section '{node.name}'"
    kind = int(node.integers()[0])
    # ElementRange numbers the elements of the section in the zone, from 1 on.
    first, last = node.find("ElementRange", "IndexRange_t").integers(2).tolist()
    size = last - first + 1
    values = node.find("ElementConnectivity", "DataArray_t").integers()
    if first < 1 or not 0 < size <= values.size:
        raise MeshprepError(
            f"{where}: elements {first} to {last} do not fit the {values.size} numbers "
            "there: the file is damaged"
        )
    # Read the elements: faces or cells as lists, mixed types, or rows of one type.
    section = ElementSection(node.name, first, size)
    if kind in (NGON, NFACE):
        lists = _read_lists(node=node, values=values, size=size, where=where)
        if kind == NGON:
            section.polygons = lists
            section.polyhedra = None
        else:
            section.polygons = None
            section.polyhedra = lists
        if kind == NGON:
            section.polygons = Lists(
                lists.offset, _checked_nodes(lists.values, n_nodes, where) - 1
            )
    elif kind == MIXED:
        section.cells = _split_mixed(
            node=node, values=values, size=size, n_nodes=n_nodes, where=where
        )
    else:
        cell_type = _type_name(kind, where)
        n = node_count(cell_type)
        if values.size != size * n:
            raise MeshprepError(
                f"{where}: {size} elements of type {standard_name(cell_type)} have "
                f"{values.size} nodes, not {size * n}: the file is damaged"
            )
        table = _checked_nodes(values, n_nodes, where).reshape(size, n)
        section.cells = [(cell_type, np.arange(size), _in_memory_order(cell_type, table))]
    return section


def _type_name(kind: int, where: str) -> str:
    if kind not in TYPE:
        raise MeshprepError(
            f"{where}: elements of CGNS's type {kind} are not supported: use linear or "
            "quadratic ones, or polyhedra"
        )
    return TYPE[kind]


def _checked_nodes(nodes: NDArray[np.int64], n_nodes: int, where: str) -> NDArray[np.int64]:
    if nodes.size and (nodes.min() < 1 or nodes.max() > n_nodes):
        bad = nodes[(nodes < 1) | (nodes > n_nodes)][0]
        raise MeshprepError(f"{where} names node {bad} of {n_nodes}: the file is damaged")
    return nodes


def _in_memory_order(cell_type: str, table: NDArray[np.int64]) -> NDArray[np.int64]:
    order = TO_MEMORY.get(cell_type)
    return (table if order is None else table[:, order]) - 1


def _offsets(
    node: Node, values: NDArray[np.int64], size: int, where: str
) -> NDArray | None:
    """Where each element starts, as files say it from version 3.4 on."""
    found = node.get("ElementStartOffset")
    if found is None:
        return None
    offset = found.integers(size + 1)
    # The offsets are one more than the elements: they begin at 0 and end behind the last
    # number.
    if offset[0] != 0 or offset[-1] != values.size or (np.diff(offset) <= 0).any():
        raise MeshprepError(
            f"'ElementStartOffset' of {where} does not rise from 0 to {values.size}: "
            "the file is damaged"
        )
    return offset


def _read_lists(node: Node, values: NDArray[np.int64], size: int, where: str) -> Lists:
    """Lists with offsets, or in older files each after its length."""
    offset = _offsets(node=node, values=values, size=size, where=where)
    if offset is not None:
        return Lists(offset, values)
    start = _element_starts(
        values=values, width=np.zeros(0, np.int64), size=size, where=where
    )
    counts = values[start]
    return Lists(offsets_of(counts), values[ranges(start + 1, counts)])


def _element_starts(
    values: NDArray[np.int64], width: NDArray[np.int64], size: int, where: str
) -> NDArray[np.int64]:
    """Where each element starts, from its leading number.

    That number is a type of known width, or the count of nodes.
    """
    starts = np.empty(size, np.int64)
    n_elements, end = _walk(values, width, starts)
    if n_elements < size and end < values.size and width.size:
        _type_name(int(values[end]), where)
    if n_elements != size or end != values.size:
        raise MeshprepError(
            f"{where}: {n_elements} elements can be read from its numbers, not {size}: the "
            "file is damaged, or of a version that lacks its 'ElementStartOffset'"
        )
    return starts


@kernel
def _walk(values: Int64s, width: Int64s, starts: Int64s) -> tuple[int, int]:
    """Fill in where elements start; return their number and where they end. O(values)."""
    n_elements = pos = 0
    while pos < values.size and n_elements < starts.size:
        step = 1 + values[pos] if width.size == 0 else 0
        if 0 <= values[pos] < width.size:
            step = width[values[pos]]
        if step < 2 or step > values.size - pos:
            break
        starts[n_elements] = pos
        n_elements += 1
        pos += step
    return n_elements, pos


def _split_mixed(
    node: Node, values: NDArray[np.int64], size: int, n_nodes: int, where: str
) -> list[tuple[str, NDArray[np.int64], NDArray[np.int64]]]:
    """Elements by type, in the order in which types appear."""
    offset = _offsets(node=node, values=values, size=size, where=where)
    if offset is None:
        # In a MIXED section each element begins with its type.
        start = _element_starts(values=values, width=_WIDTH, size=size, where=where)
    else:
        start = offset[:-1]
    kinds = values[start]
    numbers, first = np.unique(kinds, return_index=True)
    out = []
    for kind in numbers[np.argsort(first)].tolist():
        cell_type = _type_name(kind, where)
        rows = np.flatnonzero(kinds == kind)
        n = node_count(cell_type)
        if offset is not None and (np.diff(offset)[rows] != n + 1).any():
            raise MeshprepError(
                f"{where}: an element of type {standard_name(cell_type)} has not {n} "
                "nodes: the file is damaged"
            )
        table = values[start[rows, None] + np.arange(1, n + 1)]
        out.append(
            (
                cell_type,
                rows,
                _in_memory_order(cell_type, _checked_nodes(table, n_nodes, where)),
            )
        )
    return out


def write_section(
    name: str, first: int, cells: Sequence[tuple[str, NDArray[np.integer]]], integer: type
) -> Node:
    """A section of these tables of nodes from 0; several types make a MIXED section."""
    # Count nodes from 1, in the order of CGNS.
    tables = [(table[:, TO_FILE[t]] if t in TO_FILE else table) + 1 for t, table in cells]
    if len(cells) == 1:
        kind = NUMBER[cells[0][0]]
        values = tables[0].ravel()
        offset = None
    else:
        kind = MIXED
        whole = [
            np.column_stack([np.full(len(table), NUMBER[t]), table])
            for (t, _), table in zip(cells, tables, strict=True)
        ]
        values = np.concatenate([table.ravel() for table in whole])
        offset = offsets_of(np.repeat([t.shape[1] for t in whole], [len(t) for t in whole]))
    return section_node(
        name=name,
        kind=kind,
        first=first,
        size=sum(map(len, tables)),
        values=values,
        offset=offset,
        integer=integer,
    )


def section_node(
    name: str,
    kind: int,
    first: int,
    size: int,
    values: NDArray[np.integer],
    offset: NDArray[np.int64] | None,
    integer: type,
) -> Node:
    """An ``Elements_t`` with these numbers as they stand."""
    section = Node(
        "ElementRange", "IndexRange_t", np.array([first, first + size - 1], integer)
    )
    table = Node("ElementConnectivity", "DataArray_t", values.astype(integer))
    out = Node(
        name=name,
        label="Elements_t",
        data=np.array([kind, 0], np.int32),
        children=[section, table],
    )
    if offset is not None:
        out.children.append(
            Node("ElementStartOffset", "DataArray_t", offset.astype(integer))
        )
    return out
