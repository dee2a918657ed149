"""Writing legacy VTK files, with names that VTK reads as they are.

A file has the layout of the one that its mesh was read from: MFEM and others read text
alone, and only what is laid out as before version 5. All else is binary, of version 5.1.
"""

from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from ..cell_blocks.file_mesh import FileMesh
from .cells import arrays_of, tables_of, whole_data
from .notes import (
    FIELDS,
    KEYWORD,
    LAYOUT,
    POINTS,
    ROLES,
    TABLE,
    TITLE,
    LegacyLayout,
    component,
)

_WORDS = {
    "int8": "char",
    "uint8": "unsigned_char",
    "int16": "short",
    "uint16": "unsigned_short",
    "int32": "int",
    "uint32": "unsigned_int",
    "int64": "vtktypeint64",
    "uint64": "vtktypeuint64",
    "float32": "float",
    "float64": "double",
}
# The names of the longest numbers in text up to version 4, which meshio knows, too.
_LONG = {
    "int64": "long",
    "uint64": "unsigned_long",
}
# From version 5 on meshio knows no short numbers, and takes ``int`` for one of 64 bits.
_WIDER = {
    "int8": "int64",
    "int16": "int64",
    "int32": "int64",
    "uint16": "uint64",
    "uint32": "uint64",
}
# What arrays under each keyword may have: kinds of values, and components.
_FITTING = {
    "SCALARS": ("iuf", (1, 2, 3, 4)),
    "COLOR_SCALARS": ("u", (1, 2, 3, 4)),
    "VECTORS": ("iuf", (3,)),
    "NORMALS": ("iuf", (3,)),
    "TENSORS": ("iuf", (9,)),
    "TENSORS6": ("iuf", (6,)),
    "TEXTURE_COORDINATES": ("iuf", (1, 2, 3)),
    "GLOBAL_IDS": ("iu", (1,)),
    "PEDIGREE_IDS": ("iufU", (1,)),
    "EDGE_FLAGS": ("iu", (1,)),
}
# What VTK writes into names as it is.
_PLAIN = "".join(chr(i) for i in range(33, 127) if chr(i) not in '"%')
_LONGEST_TITLE = 255
# Bytes that VTK knows by their type: components of colours, and which cells are copies.
# Others are written as wider numbers from version 5 on, where meshio knows no bytes.
_COLOURS = (3, 4)
_GHOSTS = "vtkGhostType"


def write(mesh: FileMesh, path: Path) -> None:
    """Write a legacy VTK file, with names that VTK reads as they are."""
    layout = mesh.arrays.get(LAYOUT, LegacyLayout())
    title = str(mesh.arrays.get(TITLE) or "written by meshprep")
    mode = "ASCII" if layout.text else "BINARY"
    if layout.counts:
        version = layout.version
    else:
        version = LegacyLayout.version
    with path.open("wb") as file:
        out = _Output(file, layout)
        out.line(f"# vtk DataFile Version {version}\n{title[:_LONGEST_TITLE]}\n{mode}")
        out.line("DATASET UNSTRUCTURED_GRID")
        _put_fields(out, mesh.whole_values, mesh.arrays.get(FIELDS, {}))
        out.line(f"POINTS {len(mesh.points)} {layout.points}")
        out.numbers(mesh.points, "f8")
        _put_notes(out, mesh.arrays.get(POINTS, {}).get(POINTS, {}), 3)
        _put_cells(out, mesh)
        # tables of colours stand behind the first arrays that there are
        tables = dict(mesh.tables)
        n_cells = sum(len(cells.data) for cells in mesh.cells)
        places = (
            ("CELL_DATA", "CellData", n_cells, whole_data(mesh)),
            ("POINT_DATA", "PointData", len(mesh.points), mesh.point_data),
        )
        for heading, place, n, data in places:
            if data or tables:
                out.line(f"{heading} {n}")
                _put_arrays(
                    out=out, data=data, said=mesh.arrays.get(place, {}), tables=tables
                )


class _Output:
    """A file that is being written, text or binary."""

    def __init__(self, file: BinaryIO, layout: LegacyLayout) -> None:
        self.file = file
        self.layout = layout

    def line(self, text: str) -> None:
        self.file.write(f"{text}\n".encode())

    def numbers(self, values: NDArray[Any], kind: str) -> None:
        """Rows of numbers: a line each, or the bytes of this type of NumPy's."""
        if self.layout.text:
            self._rows_of_text(values)
        else:
            self.file.write(values.astype(f">{kind}").tobytes() + b"\n")

    def _rows_of_text(self, values: NDArray[Any]) -> None:
        # Imported here, since numba takes long to import and binary files do without.
        from ..text.tokens import ASCII
        from ..text.writer import NumberWriter

        rows = values.reshape(len(values), _width(values))
        if rows.dtype == np.uint64:
            # of which the largest are no signed numbers
            for row in rows.tolist():
                self.line(" ".join(map(str, row)))
            return
        writer = NumberWriter(self.file, ASCII)
        if rows.dtype.kind != "f":
            writer.rows(rows)
            return
        if rows.dtype == np.float32:
            # the shortest digits of such a number are those of another double
            rows = rows.astype(str).astype(np.float64)
        writer.rows(np.empty((len(rows), 0), np.int64), rows)

    def texts(self, values: NDArray[Any]) -> None:
        """A line each, or bytes behind their number."""
        for text in values.reshape(-1).tolist():
            if self.layout.text:
                self.line(_in_file(text))
            else:
                data = text.encode()
                self.file.write(_length(len(data)) + data)
        if not self.layout.text:
            self.line("")


def _put_cells(out: _Output, mesh: FileMesh) -> None:
    """The nodes of the cells, and their types."""
    arrays = arrays_of(mesh)
    n_cells = len(arrays["types"])
    n_nodes = len(arrays["connectivity"])
    # Up to version 4 a cell is its number of nodes and these; later the ends and the
    # nodes of all cells stand by themselves.
    if out.layout.counts:
        out.line(f"CELLS {n_cells} {n_cells + n_nodes}")
        _put_counted(out, tables_of(mesh))
    else:
        out.line(f"CELLS {n_cells + 1} {n_nodes}")
        out.line("OFFSETS vtktypeint64")
        out.numbers(np.concatenate([[0], arrays["offsets"]]), "i8")
        out.line("CONNECTIVITY vtktypeint64")
        out.numbers(arrays["connectivity"], "i8")
    out.line(f"CELL_TYPES {n_cells}")
    out.numbers(arrays["types"], "i4")


def _put_counted(out: _Output, tables: list[NDArray[Any]]) -> None:
    """The nodes of each cell behind their number."""
    counted = []
    for table in tables:
        count = np.full((len(table), 1), table.shape[1])
        counted.append(np.hstack([count, table]))
    if out.layout.text:
        # a line each
        for rows in counted:
            out.numbers(rows, "i4")
    else:
        # one array, without an end of a line before its last byte
        out.numbers(np.concatenate([rows.reshape(-1) for rows in counted]), "i4")


def _put_arrays(
    out: _Output,
    data: dict[str, NDArray[Any]],
    said: dict[str, dict[str, str]],
    tables: dict[str, NDArray[np.uint8]],
) -> None:
    """Arrays with a role under its keyword, tables of colours, and the others as fields."""
    # Arrays with a keyword stand by themselves, all others together under FIELD.
    keywords = {name: _keyword(name, values, said) for name, values in data.items()}
    for name, values in data.items():
        keyword = keywords[name]
        if keyword:
            notes = said.get(name, {})
            written = _as_written(values, out.layout)
            _put_heading(
                out=out,
                keyword=keyword,
                name=name,
                values=written,
                table=notes.get(TABLE, "default"),
            )
            if keyword == "COLOR_SCALARS":
                _put_colours(out, written)
            else:
                _put_values(out, written)
            _put_notes(out, notes, _width(values))
    for name, colours in tables.items():
        out.line(f"LOOKUP_TABLE {_in_file(name)} {len(colours)}")
        _put_colours(out, colours)
    tables.clear()
    others = {name: values for name, values in data.items() if not keywords[name]}
    _put_fields(out, others, said)


def _keyword(name: str, values: NDArray[Any], said: dict[str, dict[str, str]]) -> str:
    """The keyword that an array stands under, empty for none."""
    # Prefer the keyword of the file that was read, then that of a role; each must fit the
    # numbers and their width.
    original = said.get(name, {}).get(KEYWORD)
    roles = [role for role, array in said.get("", {}).items() if array == name]
    of_role = [keyword for keyword, role in ROLES.items() if role in roles]
    if original is None:
        candidates = of_role
    else:
        candidates = [original, *of_role]
    for keyword in candidates:
        kinds, widths = _FITTING[keyword]
        colours = keyword != "COLOR_SCALARS" or (
            original == keyword and values.dtype == np.uint8
        )
        if values.dtype.kind in kinds and _width(values) in widths and colours:
            return keyword
    return ""


def _as_written(values: NDArray[Any], layout: LegacyLayout) -> NDArray[Any]:
    """Values in a type that both VTK and meshio read."""
    name = values.dtype.name
    known = layout.counts or (layout.text and name == "int32")
    if known or name not in _WIDER:
        return values
    return values.astype(_WIDER[name])


def _put_heading(
    out: _Output, keyword: str, name: str, values: NDArray[Any], table: str
) -> None:
    text = f"{keyword} {_in_file(name)}"
    word = _vtk_type_word(values, out.layout)
    if keyword == "COLOR_SCALARS":
        out.line(f"{text} {_width(values)}")
    elif keyword == "TEXTURE_COORDINATES":
        out.line(f"{text} {_width(values)} {word}")
    elif keyword == "SCALARS":
        out.line(f"{text} {word} {_width(values)}")
        out.line(f"LOOKUP_TABLE {_in_file(table)}")
    else:
        out.line(f"{text} {word}")


def _put_fields(
    out: _Output, data: dict[str, NDArray[Any]], said: dict[str, dict[str, str]]
) -> None:
    if not data:
        return
    out.line(f"FIELD FieldData {len(data)}")
    for name, array in data.items():
        width = _width(array)
        values = _as_written(array, out.layout)
        known = width in _COLOURS or name == _GHOSTS or out.layout.counts
        if array.dtype == np.uint8 and not known:
            values = array.astype(np.uint64)
        out.line(
            f"{_in_file(name)} {width} {len(values)} {_vtk_type_word(values, out.layout)}"
        )
        _put_values(out, values)
        _put_notes(out, said.get(name, {}), width)


def _put_notes(out: _Output, notes: dict[str, str], width: int) -> None:
    """The names of components, of which one without has an empty line."""
    names = [notes.get(component(i), "") for i in range(width)]
    if any(names):
        lines = "\n".join(quote(name, safe=_PLAIN) for name in names)
        out.line(f"METADATA\nCOMPONENT_NAMES\n{lines}\nINFORMATION 0\n")


def _put_values(out: _Output, values: NDArray[Any]) -> None:
    if values.dtype.kind == "U":
        out.texts(values)
    else:
        out.numbers(values, values.dtype.str[1:])


def _put_colours(out: _Output, colours: NDArray[np.uint8]) -> None:
    """Bytes, which texts have as fractions of 255."""
    if out.layout.text:
        out.numbers(colours / 255, "f8")
    else:
        out.numbers(colours, "u1")


def _length(n: int) -> bytes:
    """The length of a text as VTK writes it: its two highest bits give its own size."""
    # Take the fewest bytes that hold the length and its two mark bits.
    for mark, width in ((3, 1), (2, 2), (1, 4)):
        bits = 8 * width - 2
        if n < 1 << bits:
            return (mark << bits | n).to_bytes(width, "big")
    return n.to_bytes(8, "big")


def _width(values: NDArray[Any]) -> int:
    if values.ndim == 2:
        return values.shape[1]
    return 1


def _vtk_type_word(values: NDArray[Any], layout: LegacyLayout) -> str:
    """VTK's name of a type of values."""
    if values.dtype.kind == "U":
        return "string"
    name = values.dtype.name
    if layout.text and layout.counts and name in _LONG:
        return _LONG[name]
    return _WORDS[name]


def _in_file(name: str) -> str:
    return quote(name, safe=_PLAIN)
