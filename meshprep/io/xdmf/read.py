"""Reading XDMF files of version 2 or 3: a mesh, its parts, and its steps of time."""

from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..cell_blocks.file_mesh import Cells, FileMesh, PartValues
from ..format.names import group_of_array
from ..text.quoting import quoted
from .items import Document
from .topology import cells_of

_COMPONENTS = {"XYZ": 3, "XY": 2}
_SEPARATE = {"X_Y_Z": 3, "X_Y": 2}


def read(path: Path) -> FileMesh:
    """Read an XDMF file: one mesh, grids of parts of it, and time series on it."""
    return _XdmfReader(Document(path)).read()


class _XdmfReader:
    """A mesh that grows grid by grid."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.mesh = FileMesh(np.empty(0), [])
        self.mesh.times = []
        # what the mesh is, in the file
        self.geometry: Element | None = None
        self.of_cells: dict[str, NDArray[Any]] = {}
        self.n_cells = 0
        self.main = 0

    def read(self) -> FileMesh:
        mesh = self.mesh
        (domain, *others) = self.document.root.findall("Domain") or [self.document.root]
        if others:
            raise MeshprepError("has several domains: write a file for each")
        series = []
        for child in self.document.children(domain):
            if child.tag == "Information":
                self._add_information(child)
            elif child.tag == "Grid" and _is_series(child):
                series.append(child)
            elif child.tag == "Grid":
                self._add_grid(child)
            elif child.tag != "DataItem":
                raise _unknown(child)
        for one in series:
            self._add_series(one)
        if self.geometry is None:
            raise MeshprepError("has no grid with cells: write one")
        mesh.times = mesh.times or [0.0]
        # Values of cells go through the blocks of the mesh; blocks of later grids have
        # none.
        ends = np.cumsum([len(c.data) for c in mesh.cells[: self.main]])
        absent = [None] * (len(mesh.cells) - self.main)
        for name, values in self.of_cells.items():
            mesh.cell_data[name] = [*np.split(values, ends[:-1]), *absent]
        for blocks in mesh.cell_data.values():
            blocks += [None] * (len(mesh.cells) - len(blocks))
        return mesh

    def _add_grid(self, grid: Element, step: int = 0) -> None:
        """A grid: the mesh, a part of it, or values on it at a step of time."""
        kind = grid.get("GridType", "Uniform")
        if kind.lower() != "uniform":
            of = grid.get("CollectionType", "")
            raise MeshprepError(
                f"has a grid of type {quoted(f'{kind} {of}'.strip())}: merge its grids "
                "into one"
            )
        # Sort the elements of the grid; all that stay behind are unknown.
        parts: dict[str, list[Element]] = {}
        for child in self.document.children(grid):
            parts.setdefault(child.tag, []).append(child)
        geometries = parts.pop("Geometry", [])
        topologies = parts.pop("Topology", [])
        if len(geometries) != 1 or len(topologies) != 1:
            raise MeshprepError(
                f"grid {quoted(grid.get('Name', ''))} has {len(topologies)} topologies and "
                f"{len(geometries)} geometries in place of one each"
            )
        attributes = parts.pop("Attribute", [])
        for time in parts.pop("Time", []):
            if step == 0 and not self.mesh.times:
                self.mesh.times = [_value_of_time(time)]
        for one in parts.pop("Information", []):
            self._add_information(one)
        for one in parts.pop("Set", []):
            self.mesh.left_out.append(f"the set {quoted(one.get('Name', ''))}")
        if parts:
            raise _unknown(next(iter(parts.values()))[0])
        # The first grid is the mesh; others are steps of time on it, or parts of it.
        name = grid.get("Name", "")
        if self.geometry is None:
            self._begin(geometries[0], topologies[0])
            self.mesh.grid = name
            self._add_attributes(attributes, step)
            return
        self._check_same_points(geometries[0], name)
        cells = self._cells(topologies[0])
        if self._is_main(cells):
            self._add_attributes(attributes, step)
        elif step or self.mesh.times[1:]:
            raise MeshprepError(
                f"the cells change at step {step + 1} of time: write each by itself"
            )
        else:
            self._add_part(name, cells, attributes)

    def _begin(self, geometry: Element, topology: Element) -> None:
        self.geometry = geometry
        self.mesh.points = self._points(geometry)
        self.mesh.cells = self._cells(topology)
        self.main = len(self.mesh.cells)
        self.n_cells = sum(len(c.data) for c in self.mesh.cells)

    def _points(self, geometry: Element) -> NDArray[Any]:
        # Coordinates are rows (XYZ, XY), or an item for each axis (X_Y_Z, X_Y).
        kind = geometry.get("GeometryType", geometry.get("Type", "XYZ")).upper()
        if kind in _COMPONENTS:
            return self.document.numbers(geometry).reshape(-1, _COMPONENTS[kind])
        items = [i for i in self.document.children(geometry) if i.tag == "DataItem"]
        if kind in _SEPARATE and len(items) == _SEPARATE[kind]:
            columns = [self.document.item(item).reshape(-1) for item in items]
            if len({column.size for column in columns}) == 1:
                return np.column_stack(columns)
        raise MeshprepError(f"has a geometry of type {quoted(kind)}: write it as XYZ")

    def _cells(self, topology: Element) -> list[Cells]:
        # Nodes are counted from 0, in VTK's order, unless a topology says otherwise.
        base = topology.get("BaseOffset", "0").strip()
        if base != "0":
            raise MeshprepError(f"counts nodes from {base}: write numbers that begin at 0")
        order = topology.get("Order", "").split()
        if order != [str(i) for i in range(len(order))]:
            raise MeshprepError(
                f"has nodes of cells in the order {' '.join(order)}: leave it out"
            )
        kind = topology.get("TopologyType", topology.get("Type", ""))
        return cells_of(kind, self.document.numbers(topology))

    def _check_same_points(self, geometry: Element, name: str) -> None:
        if geometry is self.geometry:
            return
        points = self._points(geometry)
        if not np.array_equal(points, self.mesh.points):
            raise MeshprepError(
                f"grid {quoted(name)} has points of its own: write a file for each mesh"
            )

    def _is_main(self, cells: list[Cells]) -> bool:
        own = self.mesh.cells[: self.main]
        return len(cells) == len(own) and all(
            a.type == b.type and np.array_equal(a.data, b.data)
            for a, b in zip(cells, own, strict=True)
        )

    def _add_attributes(self, attributes: list[Element], step: int) -> None:
        for item in attributes:
            center = item.get("Center", "Node")
            name = item.get("Name", "")
            key = f"{name}\0{step}" if step else name
            if center == "Node":
                self._put(
                    found=self.mesh.point_data,
                    key=key,
                    item=item,
                    rows=len(self.mesh.points),
                )
            elif center == "Cell":
                self._put(found=self.of_cells, key=key, item=item, rows=self.n_cells)
            elif center == "Grid":
                self._put(found=self.mesh.whole_values, key=key, item=item, rows=None)
            else:
                self.mesh.left_out.append(f"values {quoted(name)} on XDMF's {center}s")
            self._name_notes(item)

    def _put(
        self, found: dict[str, Any], key: str, item: Element, rows: int | None
    ) -> None:
        name = key.partition("\0")[0]
        if key in found:
            raise MeshprepError(
                f"has several attributes {quoted(name)} of one kind: rename them"
            )
        found[key] = self._rows(item, rows)

    def _rows(self, item: Element, rows: int | None) -> NDArray[Any]:
        """The values of an attribute, a row an element; flat ones are cut into rows."""
        values = self.document.numbers(item)
        if rows is None:
            if values.ndim in (1, 2):
                return values
            return values.reshape(-1)
        if rows == 0 or values.size % rows:
            raise MeshprepError(
                f"values {quoted(item.get('Name', ''))} are {values.size} numbers, which "
                f"do not fit {rows} elements"
            )
        return values.reshape(rows, -1)

    def _name_notes(self, item: Element) -> None:
        for note in item.iter("Information"):
            self.mesh.left_out.append(
                f"the note {quoted(note.get('Name', ''))} on {quoted(item.get('Name', ''))}"
            )

    def _add_information(self, item: Element) -> None:
        """A text about the whole mesh."""
        name = item.get("Name", "")
        text = np.array([item.get("Value") or (item.text or "").strip()], np.str_)
        if len(item):
            self.mesh.left_out.append(f"what stands in the note {quoted(name)}")
        before = self.mesh.whole_values.get(name, text[:0])
        if before.dtype.kind != "U":
            raise MeshprepError(f"has a note and values of one name, {quoted(name)}")
        self.mesh.whole_values[name] = np.concatenate([before, text])

    def _add_part(self, name: str, cells: list[Cells], attributes: list[Element]) -> None:
        """A grid of some cells of the mesh, or of cells of a lower dimension."""
        # Find the cells of the part in the mesh, or add them to it.
        places = [self._place(block) for block in cells]
        new = all(block >= self.main for block, _ in places)
        ends = np.cumsum([len(rows) for _, rows in places])
        for item in attributes:
            center = item.get("Center", "Node")
            key = item.get("Name", "")
            self._name_notes(item)
            if center == "Node":
                self._put(
                    found=self.mesh.point_data,
                    key=key,
                    item=item,
                    rows=len(self.mesh.points),
                )
            elif center != "Cell":
                self.mesh.left_out.append(f"values {quoted(key)} on XDMF's {center}s")
            else:
                values = np.split(self._rows(item, int(ends[-1])), ends[:-1])
                for (block, rows), block_values in zip(places, values, strict=True):
                    self._add_part_values(
                        grid=name,
                        key=key,
                        block=block,
                        rows=rows,
                        values=block_values,
                        new=new,
                    )

    def _add_part_values(
        self,
        grid: str,
        key: str,
        block: int,
        rows: NDArray[np.int64],
        values: NDArray[Any],
        new: bool,
    ) -> None:
        # Groups of a block that the part brings along belong to the whole mesh; all other
        # values stay those of the part.
        whole = len(rows) == len(self.mesh.cells[block].data)
        if new and whole and group_of_array(key) is not None:
            blocks = self.mesh.cell_data.setdefault(key, [])
            blocks += [None] * (block + 1 - len(blocks))
            blocks[block] = values[np.argsort(rows)]
            return
        self.mesh.parts.append(
            PartValues(grid=grid, name=key, block=block, rows=rows, values=values)
        )

    def _place(self, cells: Cells) -> tuple[int, NDArray[np.int64]]:
        """The block that these cells are in, which may be new, and their rows in it.

        Cells are the same where they have the same nodes.
        """
        for block, cells_there in enumerate(self.mesh.cells):
            if cells_there.type != cells.type:
                continue
            rows = _rows_of(cells.data, cells_there.data)
            if (rows >= 0).all():
                return block, rows
            if block >= self.main:
                # a later grid may have more of them
                fresh = np.flatnonzero(rows < 0)
                rows[fresh] = len(cells_there.data) + np.arange(fresh.size)
                self.mesh.cells[block] = Cells(
                    cells_there.type, np.concatenate([cells_there.data, cells.data[fresh]])
                )
                self._fill(block, fresh.size)
                return block, rows
            if (rows >= 0).any():
                lacking = np.count_nonzero(rows < 0)
                raise MeshprepError(
                    f"a grid has {lacking} cells of type '{cells.type}' that the first "
                    "grid lacks: write them there, too"
                )
        self.mesh.cells.append(cells)
        return len(self.mesh.cells) - 1, np.arange(len(cells.data))

    def _fill(self, block: int, n: int) -> None:
        """No group for cells that a later grid adds."""
        for blocks in self.mesh.cell_data.values():
            if block < len(blocks) and blocks[block] is not None:
                blocks[block] = np.pad(blocks[block], ((0, n), (0, 0)))

    def _add_series(self, series: Element) -> None:
        """Grids that follow each other in time; all of one mesh."""
        grids = []
        times: list[float] = []
        for child in self.document.children(series):
            if child.tag == "Grid":
                grids.append(child)
            elif child.tag == "Time":
                times = self._times(child)
            elif child.tag == "Information":
                self._add_information(child)
            else:
                raise _unknown(child)
        # Times of the grids go before those of the series.
        times_of_grids: list[float] = []
        for grid in grids:
            children = self.document.children(grid)
            times_of_grids += [_value_of_time(c) for c in children if c.tag == "Time"]
        if len(times_of_grids) == len(grids):
            times = times_of_grids
        if len(times) != len(grids):
            times = [float(k) for k in range(len(grids))]
        if self.mesh.times and self.mesh.times != times:
            raise MeshprepError("has series of different times: write a file for each")
        self.mesh.times = times
        for step, grid in enumerate(grids):
            self._add_grid(grid, step)

    def _times(self, time: Element) -> list[float]:
        kind = time.get("TimeType", "Single").lower()
        if kind == "single":
            return [_value_of_time(time)]
        values = self.document.numbers(time).astype(np.float64).reshape(-1).tolist()
        if kind == "list":
            return [float(t) for t in values]
        if kind == "hyperslab" and len(values) == 3:
            start, step, count = values
            return [start + k * step for k in range(int(count))]
        return []


def _is_series(grid: Element) -> bool:
    of = grid.get("CollectionType", "").lower()
    return grid.get("GridType", "").lower() == "collection" and of == "temporal"


def _value_of_time(time: Element) -> float:
    try:
        return float(time.get("Value", ""))
    except ValueError:
        raise MeshprepError(
            f"has the time {quoted(time.get('Value', ''))}: write a number"
        ) from None


def _unknown(element: Element) -> MeshprepError:
    return MeshprepError(
        f"has a section {quoted(element.tag)[1:-1]}, which is not known: take it out"
    )


def _rows_of(cells: NDArray[Any], known: NDArray[Any]) -> NDArray[np.int64]:
    """The row of the known cell with the same nodes, -1 where there is none. O(n log n)."""
    both = np.sort(np.concatenate([known, cells]), axis=1)
    _, of = np.unique(both, axis=0, return_inverse=True)
    of = of.reshape(-1)
    row = np.full(int(of.max()) + 1 if of.size else 0, -1)
    row[of[: len(known)]] = np.arange(len(known))
    return row[of[len(known) :]]
