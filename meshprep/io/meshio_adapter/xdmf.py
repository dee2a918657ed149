"""XDMF with its numbers as text: our own kernels read and write them, meshio does the rest.

But for cells of several types, where meshio takes the number of nodes of a point for its node.
"""

from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...kernels import kernel
from ...kernels.parallel import WORTHWHILE, each, pieces
from ...mesh.cells import check_node_count, node_count
from ..text.cursor import Cursor
from ..text.tokens import ASCII, BREAK, skip_blank
from ..text.writer import NumberWriter
from .own import meshio
from .vtk import in_rows

_main, _common = meshio.xdmf.main, meshio.xdmf.common

# Bytes within which a line is to end.
LINE = 1 << 16

_skip_blank = kernel(skip_blank)


def read(path: str) -> meshio.Mesh:
    """Read an XDMF file as meshio does; ``left_out`` says what it has no place for."""
    reader = _XdmfReader(path)
    mesh = reader.read()
    for data in (mesh.point_data, mesh.cell_data):
        data.update({name: in_rows(values) for name, values in data.items()})
    mesh.left_out = reader.left_out
    return mesh


def write(path: str, mesh: meshio.Mesh, **options: Any) -> None:
    """Write an XDMF file as meshio does, numbers in as few digits as say them exactly."""
    mesh.point_data = {name: _signed(values) for name, values in mesh.point_data.items()}
    mesh.cell_data = {
        name: [_signed(values) for values in blocks] for name, blocks in mesh.cell_data.items()
    }
    _Writer(path, mesh, **options)


def _signed(values: NDArray) -> NDArray:
    """Signed where they are as long as VTK knows signed ones alone: it reads others as zeros."""
    fits = values.dtype == np.uint64 and not (values > np.iinfo(np.int64).max).any()
    return values.astype(np.int64) if fits else values


def _mixed(data: NDArray) -> list[meshio.CellBlock]:
    """Blocks from (type, nodes) one after the other; points and lines say how many they have."""
    words, at = data.reshape(-1).tolist(), 0
    blocks: list[tuple[str, list[list[int]]]] = []
    cells = 0
    while at < len(words):
        cells += 1
        cell_type = _common.xdmf_idx_to_meshio_type.get(words[at])
        if cell_type is None:
            raise MeshprepError(f"cell {cells} is of XDMF's type {words[at]}, which is not known")
        at += 1
        if cell_type in ("vertex", "line"):
            check_node_count(f"cell {cells}", cell_type, words[at] if at < len(words) else 0)
            at += 1
        nodes = words[at : at + node_count(cell_type)]
        check_node_count(f"cell {cells}", cell_type, len(nodes))
        at += len(nodes)
        if not blocks or blocks[-1][0] != cell_type:
            blocks.append((cell_type, []))
        blocks[-1][1].append(nodes)
    return [meshio.CellBlock(cell_type, np.array(rows)) for cell_type, rows in blocks]


_main.translate_mixed_cells = _mixed


def refuse_unknown(root: Element) -> None:
    """Raise MeshprepError for what would be read as another mesh, and values of one name."""
    for topology in root.iter("Topology"):
        base, order = topology.get("BaseOffset", "0").strip(), topology.get("Order", "").split()
        if base != "0":
            raise MeshprepError(f"counts nodes from {base}: write numbers that begin at 0")
        if order != [str(i) for i in range(len(order))]:
            raise MeshprepError(f"has nodes of cells in the order {' '.join(order)}: leave it out")
    names = [(a.get("Center"), a.get("Name")) for a in root.iter("Attribute")]
    for center, name in names:
        if names.count((center, name)) > 1:
            raise MeshprepError(f"has several attributes '{name}' of one kind: rename them")


def check_dimensions(item: Element, shape: Sequence[int]) -> None:
    """Raise MeshprepError where an item declares another number of values than a dataset has."""
    declared = item.get("Dimensions", "").split()
    if np.prod([int(d) for d in declared], dtype=object) != np.prod(shape, dtype=object):
        raise MeshprepError(
            f"declares {' x '.join(declared)} numbers where {(item.text or '').strip()} has "
            f"{' x '.join(map(str, shape))}: correct one of them"
        )


class _XdmfReader(meshio.xdmf.main.XdmfReader):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.left_out: list[str] = []

    def read_xdmf2(self, root: Element) -> meshio.Mesh:
        return super().read_xdmf2(self._known(root))

    def read_xdmf3(self, root: Element) -> meshio.Mesh:
        return super().read_xdmf3(self._known(root))

    def _known(self, root: Element) -> Element:
        """Without what is of the whole mesh, which meshio refuses or passes over."""
        refuse_unknown(root)
        for grid in root.iter("Grid"):
            for item in list(grid):
                if item.tag == "Time":
                    self.left_out.append("the time")
                elif item.tag == "Attribute" and item.get("Center") == "Grid":
                    self.left_out.append(f"values '{item.get('Name')}' of the whole mesh")
                else:
                    continue
                grid.remove(item)
        return root

    def _read_data_item(self, data_item: Element, root: Element | None = None) -> NDArray:
        found = None
        if data_item.get("Format") == "XML" and "Reference" not in data_item.attrib:
            found = _parse(data_item)
        if found is None:
            found = super()._read_data_item(data_item, root)
        if data_item.get("Format") == "HDF" and "Reference" not in data_item.attrib:
            check_dimensions(data_item, found.shape)
        return found


def _parse(item: Element) -> NDArray | None:
    """The numbers of an item; None where they are not as they usually are."""
    # XDMF 2 and 3 differ in the name of this.
    names = [item.get("DataType"), item.get("NumberType")]
    kind = (names[0] or names[1] or "Float", item.get("Precision", "4"))
    dims = [int(d) for d in item.get("Dimensions", "").split()]
    if None not in names or kind not in _common.xdmf_to_numpy_type or min(dims, default=-1) < 0:
        return None
    # A copy, since kernels are compiled anew for arrays that refuse writing.
    text = np.array(np.frombuffer((item.text or "").encode(), dtype=np.uint8))
    n = int(np.prod(dims, dtype=object))
    if 2 * n > text.size + 1:
        raise ValueError(f"declares {n} numbers in {text.size} bytes")
    dtype = np.dtype(_common.xdmf_to_numpy_type[kind])
    shares = _pieces(text, dims)
    found = each(_numbers, [(*share, dtype) for share in shares])
    if len(shares) > 1 and any(values is None for values in found):
        found = [_numbers(text, n, dtype)]
    return None if found[0] is None else np.concatenate(found).reshape(dims)


def _pieces(text: NDArray[np.uint8], dims: Sequence[int]) -> list[tuple[NDArray[np.uint8], int]]:
    """Pieces of the text for all cores, and how many numbers each has if a line is a row."""
    n, rows = int(np.prod(dims, dtype=object)), dims[0] if dims else 0
    cuts = [_skip_blank(text, 0), text.size]
    for first, _ in pieces(text.size, 1)[1:] if n >= WORTHWHILE else ():
        cuts.insert(-1, first + int(np.argmax(text[first : first + LINE] == BREAK)))
    # the break before its first line is in each piece but the first
    lines = [int(np.count_nonzero(text[a:b] == BREAK)) for a, b in pairwise(cuts[:-1])]
    lines[:1] = [line + 1 for line in lines[:1]]
    if sum(lines) > rows:
        return [(text, n)]
    numbers = [line * (n // max(rows, 1)) for line in lines]
    shares = [*numbers, n - sum(numbers)]
    return [(text[a:b], share) for (a, b), share in zip(pairwise(cuts), shares, strict=True)]


def _numbers(text: NDArray[np.uint8], n: int, dtype: np.dtype) -> NDArray | None:
    """The numbers of a text; None where it has not exactly so many, or they do not fit."""
    cursor = Cursor(Path("the file"), text)
    try:
        values = cursor.doubles(n) if dtype.kind == "f" else cursor.ints(n)
    except MeshprepError:
        return None
    if dtype.kind != "f" and values.size:
        limits = np.iinfo(dtype)
        if int(values.min()) < limits.min or int(values.max()) > limits.max:
            return None
    return None if _skip_blank(text, cursor.pos) < text.size else values.astype(dtype, copy=False)


class _Writer(meshio.xdmf.main.XdmfWriter):
    def numpy_to_xml_string(self, data: NDArray) -> str:
        if self.data_format != "XML" or data.dtype.name not in ("int32", "int64", "float64"):
            return str(super().numpy_to_xml_string(data))
        rows = data.reshape(len(data), -1)
        file = BytesIO()
        text = NumberWriter(file, ASCII)
        if data.dtype.kind == "i":
            text.rows(rows)
        else:
            text.rows(np.empty((len(rows), 0), dtype=np.int64), rows)
        return "\n" + file.getvalue().decode()
