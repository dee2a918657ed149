"""Files of Medit, text and binary, with mmg's notes on vertices, edges and triangles."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import offsets_of

from ..mesh import Mesh
from ..mesh.cells import node_count
from .cell_blocks import Cells, FileMesh, block_format
from .cell_blocks.limits import drop_lists
from .format import Capabilities, Values
from .guard import DamagedFileError
from .text.tokens import ASCII
from .text.writer import NumberWriter

# Types of cells by keyword; one of them has two spellings.
_TYPES = {
    "Edges": "line",
    "Triangles": "triangle",
    "Quadrilaterals": "quad",
    "Tetrahedra": "tetra",
    "Prisms": "wedge",
    "Hexahedra": "hexahedron",
    "Hexaedra": "hexahedron",
    "Pyramids": "pyramid",
}
_KEYWORD = {cell_type: name for name, cell_type in reversed(_TYPES.items())}
# Sections that are numbers of vertices or cells, and of which.
LISTS = {
    "Corners": "vertex",
    "RequiredVertices": "vertex",
    "Ridges": "line",
    "RequiredEdges": "line",
    "RequiredTriangles": "triangle",
    "RequiredQuadrilaterals": "quad",
    "RequiredTetrahedra": "tetra",
}
# Vectors at vertices: the name of the values, their section, and that of the pairs of
# numbers of a vertex and a vector.
_VECTORS = {
    "medit:normal": ("Normals", "NormalAtVertices"),
    "medit:tangent": ("Tangents", "TangentAtVertices"),
}
VECTOR_NAMES = "|".join(_VECTORS)
# The numbers of keywords in binary files.
_NUMBERS = {
    "Dimension": 3,
    "Vertices": 4,
    "Edges": 5,
    "Triangles": 6,
    "Quadrilaterals": 7,
    "Tetrahedra": 8,
    "Prisms": 9,
    "Hexahedra": 10,
    "RequiredTetrahedra": 12,
    "Corners": 13,
    "Ridges": 14,
    "RequiredVertices": 15,
    "RequiredEdges": 16,
    "RequiredTriangles": 17,
    "RequiredQuadrilaterals": 18,
    "NormalAtVertices": 20,
    "Pyramids": 49,
    "End": 54,
    "Tangents": 59,
    "Normals": 60,
    "TangentAtVertices": 61,
}
_NAMES = {number: name for name, number in _NUMBERS.items()}
_REALS = ("Normals", "Tangents")
_PAIRS = ("NormalAtVertices", "TangentAtVertices")
_READ = ("Dimension", "Vertices", *_TYPES, *LISTS, *_REALS, *_PAIRS)
# By version: whole numbers, others, and places in the file.
_WIDTHS = {
    1: ("i4", "f4", "i4"),
    2: ("i4", "f8", "i4"),
    3: ("i4", "f8", "i8"),
    4: ("i8", "f8", "i8"),
}
# What each text has, before all sections.
_FIRST = b"MeshVersionFormatted"
_SECTION = re.compile(r"^\s*([A-Za-z]\w{2,})\b", re.MULTILINE)
_REF = "medit:ref"
# Whole numbers of text are read as doubles, which hold them up to here.
_MOST_WHOLE = 2.0**53


def read(path: Path) -> FileMesh:
    """Read a file; sections that have no place in a mesh are left out, and listed."""
    data = path.read_bytes()
    binary = int.from_bytes(data[:4], "little") in (1, 1 << 24)
    if not binary and _FIRST not in data:
        raise MeshprepError(_what_else(data))
    mesh = FileMesh(np.empty((0, 3)), [])
    mesh.cell_data[_REF] = []
    dim = 3
    sections: dict[str, tuple[int, NDArray[Any]]] = {}
    for name, count, values in _binary_sections(data) if binary else _text_sections(data):
        if name == "Dimension":
            dim = count
        elif name == "Vertices":
            # Vertices and cells have a reference behind their coordinates or nodes.
            rows = _as_rows(name=name, count=count, values=values, width=dim + 1)
            mesh.points = rows[:, :dim]
            mesh.point_data[_REF] = _whole_numbers(name, rows[:, dim])
        elif name in _TYPES:
            rows = _as_rows(
                name=name, count=count, values=values, width=1 + node_count(_TYPES[name])
            )
            mesh.cells.append(Cells(_TYPES[name], _whole_numbers(name, rows[:, :-1]) - 1))
            mesh.cell_data[_REF].append(_whole_numbers(name, rows[:, -1]))
        elif name in _READ and count:
            sections[name] = count, values
        elif name not in ("End", "MeshVersionFormatted") and count:
            mesh.left_out.append(name)
    # only now it is known which vertices and cells there are
    for name, (count, values) in sections.items():
        if name in LISTS:
            _add_list(
                mesh,
                name,
                _whole_numbers(
                    name, _as_rows(name=name, count=count, values=values, width=1)[:, 0]
                ),
            )
    for key, (vectors, pairs) in _VECTORS.items():
        if vectors in sections and pairs in sections:
            _add_vectors(
                mesh=mesh,
                key=key,
                dim=dim,
                vectors=sections[vectors],
                pairs=(pairs, *sections[pairs]),
            )
        else:
            mesh.left_out += [name for name in (vectors, pairs) if name in sections]
    return mesh


def _what_else(data: bytes) -> str:
    """Why a file is no mesh of Medit, and what to do with it."""
    if data.lstrip().startswith(b"MFEM"):
        return "is a mesh of MFEM, not of Medit: save it as .vtk there, by Mesh::PrintVTK"
    return "has no MeshVersionFormatted: this is no mesh of Medit"


def _as_rows(name: str, count: int, values: NDArray[Any], width: int) -> NDArray[Any]:
    if values.size != count * width:
        raise MeshprepError(
            f"declares {count} {name} of {width} numbers each, but has {values.size} "
            "numbers: the file is truncated or damaged"
        )
    return values.reshape(count, width)


def _whole_numbers(name: str, values: NDArray[Any]) -> NDArray[np.int64]:
    rounded = values.astype(np.int64)
    if values.dtype.kind == "f" and (
        (rounded != values).any() or (np.abs(values) > _MOST_WHOLE).any()
    ):
        raise MeshprepError(
            f"section {name} holds a number that is not whole, or too large"
        )
    return rounded


def _numbers_from_0(
    name: str, numbers: NDArray[np.int64], n: int, what: str
) -> NDArray[np.int64]:
    """Numbers counted from 0; raises MeshprepError where there is no such element."""
    bad = np.flatnonzero((numbers < 1) | (numbers > n))
    if bad.size:
        raise MeshprepError(
            f"section {name} names {what} {numbers[bad[0]]}, but there are {n}: repair the "
            "file"
        )
    return numbers - 1


def _add_list(mesh: FileMesh, name: str, numbers: NDArray[np.int64]) -> None:
    kind = LISTS[name]
    if kind == "vertex":
        mesh.point_sets[name] = _numbers_from_0(
            name=name, numbers=numbers, n=len(mesh.points), what="vertex"
        )
        return
    # cells of one type are counted through all their sections
    sizes = [len(c.data) if c.type == kind else 0 for c in mesh.cells]
    start = offsets_of(sizes)
    index = _numbers_from_0(name=name, numbers=numbers, n=int(start[-1]), what="cell")
    blocks = []
    for begin, end in pairwise(start.tolist()):
        blocks.append(index[(index >= begin) & (index < end)] - begin)
    mesh.cell_sets[name] = blocks


def _add_vectors(
    mesh: FileMesh,
    key: str,
    dim: int,
    vectors: tuple[int, NDArray[Any]],
    pairs: tuple[str, int, NDArray[Any]],
) -> None:
    """Vectors as values of their vertices, not a number where one has none."""
    # A pair is the number of a vertex and that of a vector.
    name, count, values = pairs
    rows = _whole_numbers(name, _as_rows(name=name, count=count, values=values, width=2))
    table = _as_rows(key, *vectors, dim)
    vertex = _numbers_from_0(
        name=name, numbers=rows[:, 0], n=len(mesh.points), what="vertex"
    )
    vector = _numbers_from_0(name=name, numbers=rows[:, 1], n=len(table), what="vector")
    if np.unique(vertex).size < vertex.size:
        mesh.left_out += [name]
        return
    found = np.full((len(mesh.points), dim), np.nan)
    found[vertex] = table[vector]
    mesh.point_data[key] = found


def _text_sections(data: bytes) -> Iterator[tuple[str, int, NDArray[Any]]]:
    """Name, first number and the other numbers of each section of a text."""
    # A section begins with its keyword and the count of its rows, in lines however
    # broken.
    text = re.sub(r"#.*", "", data.decode())
    found = [*_SECTION.finditer(text)]
    for keyword, end in zip(
        found, [*(f.start() for f in found[1:]), len(text)], strict=True
    ):
        if keyword[1] in _READ:
            try:
                values = np.fromstring(text[keyword.end() : end], sep=" ")
            except (ValueError, DeprecationWarning):
                raise DamagedFileError(
                    f"section {keyword[1]} holds something that is no number"
                ) from None
            if not values.size:
                raise DamagedFileError(f"section {keyword[1]} holds no numbers")
            yield keyword[1], int(values[0]), values[1:]
        else:
            count = text[keyword.end() : end].split(maxsplit=1)
            yield keyword[1], int(count[0] != "0") if count else 0, np.empty(0)


def _binary_sections(data: bytes) -> Iterator[tuple[str, int, NDArray[Any]]]:
    # The first number is 1 in the byte order of the file.
    order = "<" if data[0] == 1 else ">"
    version = int(np.frombuffer(data, f"{order}i4", 1, 4)[0])
    if version not in _WIDTHS:
        raise MeshprepError(f"is of version {version}: write it as one of 1 to 4")
    whole, real, pointer = (f"{order}{kind}" for kind in _WIDTHS[version])
    pos, dim = 8, 3
    while True:
        key = int(np.frombuffer(data, f"{order}i4", 1, pos)[0])
        if key == _NUMBERS["End"]:
            return
        # Each section says where the next one begins, so that unknown ones are passed over.
        after = int(np.frombuffer(data, pointer, 1, pos + 4)[0])
        begin = pos + 4 + np.dtype(pointer).itemsize
        name = _NAMES.get(key, f"keyword {key}")
        if name == "Dimension":
            dim = int(np.frombuffer(data, f"{order}i4", 1, begin)[0])
            yield name, dim, np.empty(0)
        else:
            count = int(np.frombuffer(data, whole, 1, begin)[0])
            begin += np.dtype(whole).itemsize
            yield (
                name,
                count,
                _binary_rows(
                    data=data,
                    name=name,
                    count=count,
                    begin=begin,
                    dim=dim,
                    kinds=(whole, real),
                ),
            )
        if after <= pos:
            raise MeshprepError(
                f"section {name} ends before it begins: the file is damaged"
            )
        pos = after


def _binary_rows(
    data: bytes, name: str, count: int, begin: int, dim: int, kinds: tuple[str, str]
) -> NDArray[Any]:
    """The numbers of a section of a binary file, one after the other."""
    whole, real = kinds
    if name == "Vertices":
        # Coordinates are of the width of the version, references whole numbers.
        row = np.dtype([("x", real, (dim,)), ("ref", whole)])
        rows = np.frombuffer(data, row, count, begin)
        return np.column_stack([rows["x"], rows["ref"]]).reshape(-1)
    if name in _REALS:
        return np.frombuffer(data, real, count * dim, begin).astype(np.float64)
    if name in _TYPES:
        width = 1 + node_count(_TYPES[name])
    elif name in LISTS:
        width = 1
    elif name in _PAIRS:
        width = 2
    else:
        return np.empty(0)
    return np.frombuffer(data, whole, count * width, begin)


def write(mesh: FileMesh, path: Path) -> None:
    """Write a file, text or binary as its ending says."""
    with path.open("wb") as file:
        if path.suffix == ".meshb":
            _write_binary(file, mesh)
        else:
            _write_text(file, mesh)


# A section to be written: its name, whole numbers and the others that stand before them.
_Section = tuple[str, NDArray[np.int64], NDArray[np.float64]]


def _written(mesh: FileMesh) -> Iterator[_Section]:
    """All sections in order; rows have real numbers first, as those of vertices do."""
    no_reals = np.empty((0, 0))
    # Numbers in a file count from 1; vertices and cells have their reference at the end.
    refs = np.asarray(mesh.point_data[_REF], np.int64)
    yield "Vertices", refs[:, None], mesh.points
    for cells, own in zip(mesh.cells, mesh.cell_data[_REF], strict=True):
        yield _KEYWORD[cells.type], np.column_stack([cells.data + 1, own]), no_reals
    for name in LISTS:
        found = mesh.cell_sets.get(name, [])
        if name in mesh.point_sets:
            found = [mesh.point_sets[name]]
        numbers = np.concatenate([np.empty(0, np.int64), *found])
        if numbers.size:
            yield name, numbers.astype(np.int64)[:, None] + 1, no_reals
    dim = mesh.points.shape[1]
    for key, (vectors, pairs) in _VECTORS.items():
        if key in mesh.point_data:
            values = mesh.point_data[key]
            # Write the vectors of those vertices that have one, and the pairs of both
            # numbers.
            vertex = np.flatnonzero(~np.isnan(values).any(axis=1))
            if vertex.size:
                number = np.arange(1, vertex.size + 1)
                no_whole = np.empty((vertex.size, 0), np.int64)
                yield vectors, no_whole, _of_width(values[vertex], dim)
                yield pairs, np.column_stack([vertex + 1, number]), no_reals


def _of_width(values: NDArray[np.float64], dim: int) -> NDArray[np.float64]:
    """Vectors with as many components as the points have."""
    return np.pad(values, ((0, 0), (0, max(dim - values.shape[1], 0))))[:, :dim]


def _write_text(file: BinaryIO, mesh: FileMesh) -> None:
    writer = NumberWriter(file, ASCII)
    writer.text(f"MeshVersionFormatted 2\n\nDimension\n{mesh.points.shape[1]}\n")
    for name, whole, reals in _written(mesh):
        writer.text(f"\n{name}\n{len(whole)}\n")
        if reals.size:
            # doubles that are whole are written as such
            none = np.empty((len(whole), 0), np.int64)
            writer.rows(none, np.column_stack([reals, whole.astype(np.float64)]))
        else:
            writer.rows(whole)
    writer.text("\nEnd\n")


def _write_binary(file: BinaryIO, mesh: FileMesh) -> None:
    sections = [*_written(mesh)]
    wide = any(
        np.abs(whole).max(initial=0) > np.iinfo(np.int32).max for _, whole, _ in sections
    )
    size = sum(2 * whole.nbytes + reals.nbytes for _, whole, reals in sections)
    # Version 2 has whole numbers of 32 bits and doubles; version 3 has places in the file
    # of 64 bits, version 4 whole numbers too.
    version = 2
    if wide:
        version = 4
    elif size > np.iinfo(np.int32).max:
        version = 3
    kind, _, pointer = (f"<{one}" for one in _WIDTHS[version])
    place_width = np.dtype(pointer).itemsize

    def put(name: str, count: int, of: str, data: bytes) -> None:
        """A keyword, where the next one begins, and what belongs to this one."""
        body = np.array(count, of).tobytes() + data
        after = file.tell() + 4 + place_width + len(body)
        file.write(np.array(_NUMBERS[name], "<i4").tobytes())
        file.write(np.array(after, pointer).tobytes())
        file.write(body)

    file.write(np.array([1, version], "<i4").tobytes())
    put("Dimension", mesh.points.shape[1], "<i4", b"")
    for name, whole, reals in sections:
        row = np.dtype([("x", "<f8", (reals.shape[1],)), ("n", kind, (whole.shape[1],))])
        rows = np.empty(len(whole), row)
        if reals.size:
            rows["x"] = reals
        rows["n"] = whole
        put(name, len(whole), kind, rows.tobytes())
    # behind the last one there is nothing
    file.write(np.array(_NUMBERS["End"], "<i4").tobytes() + np.array(0, pointer).tobytes())


def limits(mesh: Mesh) -> tuple[Mesh, list[str]]:
    """The mesh with lists under the names of sections alone, and the losses."""
    type_of_set = {s.name: str(s.cell_type) for s in mesh.cell_sets} | {"nodes": "vertex"}
    others = [i for i in mesh.lists if LISTS.get(i.name) != type_of_set[i.set]]
    return drop_lists(mesh, others)


FORMAT = block_format(
    read=read,
    write=write,
    carries=Capabilities(
        cell_types=(
            "line",
            "triangle",
            "quad",
            "tetra",
            "pyramid",
            "wedge",
            "hexahedron",
        ),
        # normals and tangents alone
        node_values=Values(
            kinds="f", widths=(2, 3), name=VECTOR_NAMES, cast=(("float32", "float64"),)
        ),
        tag="medit:ref",
        node_tag="medit:ref",
        lists=("point_set", "cell_set"),
        plane=True,
    ),
    limits=limits,
)
