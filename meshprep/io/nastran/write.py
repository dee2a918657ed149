"""Writing decks of Nastran: executive control, nodes and cells."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..cell_blocks.file_mesh import FileMesh
from .cards import LARGE, SMALL
from .elements import CARDS, TO_MEMORY

# Programs want executive control before BEGIN BULK.
_HEAD = "$ written by meshprep\nSOL 101\nCEND\nBEGIN BULK\n"
# Between these a number has more digits without an exponent.
_LEAST, _MOST = 1e-2, 1e13


def write(mesh: FileMesh, path: Path) -> None:
    """Write a deck: nodes in large fields, cells in small ones, lines as rods."""
    node_numbers, cell_numbers = mesh.take_numbers()
    if node_numbers is None:
        node_numbers = np.arange(1, len(mesh.points) + 1)
    groups = mesh.cell_data.get("nastran:ref", [])
    for ids in (*groups, mesh.point_data.get("nastran:ref", np.zeros(0))):
        _check_width(ids)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(_HEAD)
        _write_nodes(file, mesh, node_numbers)
        first = 1
        for k, block in enumerate(mesh.cells):
            count = len(block.data)
            if cell_numbers is None:
                numbers = np.arange(first, first + count)
            else:
                numbers = cell_numbers[k]
            if groups:
                ids = groups[k]
            else:
                ids = np.zeros(count, np.int64)
            # An element is its number, its property and its nodes, in the order of the
            # card.
            nodes = node_numbers[_in_order_of_cards(block.type, block.data)]
            rows = np.column_stack([numbers, ids, nodes]).tolist()
            file.writelines(_lines_of_cell(CARDS[block.type], row) for row in rows)
            first += count
        file.write("ENDDATA\n")


def _check_width(groups: Any) -> None:
    """Refuse groups whose numbers would run into the next field."""
    for number in (np.min(groups, initial=0), np.max(groups, initial=0)):
        if len(str(number)) > LARGE:
            raise MeshprepError(
                f"group {number} of 'nastran:ref' has more than the {LARGE} characters of "
                "a field: give the group a smaller number, or use another format"
            )


def _write_nodes(file: TextIO, mesh: FileMesh, numbers: NDArray[np.integer]) -> None:
    groups = np.asarray(
        mesh.point_data.get("nastran:ref", np.zeros(len(numbers), np.int64))
    )
    rows = zip(numbers.tolist(), groups.tolist(), mesh.points.tolist(), strict=True)
    for number, group, (x, y, z) in rows:
        place = str(group) if group else ""
        file.write(f"GRID*   {number:>16}{place:>16}{_real(x):>16}{_real(y):>16}*\n")
        file.write(f"*       {_real(z):>16}\n")


def _in_order_of_cards(cell_type: str, table: NDArray[np.integer]) -> NDArray[np.integer]:
    columns = TO_MEMORY.get(cell_type, [*range(table.shape[1])])
    out = np.empty_like(table)
    out[:, columns] = table
    return out


def _lines_of_cell(card: str, numbers: Sequence[int]) -> str:
    """A card; where it goes on in the next line, both lines say so."""
    fields = [str(number) for number in numbers]
    # Take large fields only where a number has more than eight digits.
    large = max(map(len, fields)) > SMALL
    mark = "*" if large else "+"
    width = LARGE if large else SMALL
    per_line = 4 if large else 8
    head = f"{card}*" if large else card
    lines = []
    for i in range(0, len(fields), per_line):
        part = [f"{text:>{width}}" for text in fields[i : i + per_line]]
        lines.append(f"{head:<{SMALL}}" + "".join(part))
        head = mark
    return f"{mark}\n".join(lines) + "\n"


def _real(value: float) -> str:
    """The number with the most digits that a large field holds."""
    if value == 0:
        return "0."
    room = LARGE - (value < 0)
    if _LEAST <= abs(value) < _MOST:
        # a point, and digits on both sides of it
        decimals = room - len(str(int(abs(value)))) - 1
        text = _stripped(f"{value:.{decimals}f}")
        if len(text) > LARGE:
            # the last digit was rounded up, and all before it
            text = _stripped(f"{value:.{decimals - 1}f}")
        return text
    for decimals in range(room - 2, 0, -1):
        mantissa, _, exponent = f"{value:.{decimals}e}".partition("e")
        # without the letter, and without zeros before the exponent
        text = f"{_stripped(mantissa)}{int(exponent):+d}"
        if len(text) <= LARGE:
            return text
    raise AssertionError("one digit fits into any field")


def _stripped(text: str) -> str:
    """A number with a point, without zeros at its end."""
    if "." in text:
        return text.rstrip("0")
    return f"{text}."
