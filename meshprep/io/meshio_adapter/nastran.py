"""Decks of Nastran: nodes and cells are read here, and written through meshio."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from meshprep_runtime.errors import MeshprepError

from ...mesh.cells import check_node_count, node_count
from .file_mesh import NUMBERS, Cells, FileMesh
from .outgoing import write_by_meshio

# Each card's types, of first order and of second where the nodes tell which.
_TYPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("CTRIA3", "CTRIAR"), ("triangle",)),
    "CTRIA6": ("triangle6",),
    **dict.fromkeys(("CQUAD4", "CQUADR", "CSHEAR"), ("quad",)),
    **{"CROD": ("line",), "CQUAD8": ("quad8",), "CQUAD9": ("quad9",)},
    **dict.fromkeys(("CBAR", "CBEAM", "CBUSH", "CBUSH1D", "CGAP"), ("line",)),
    **dict.fromkeys(("CPYRA", "CPYRAM"), ("pyramid", "pyramid13")),
    **{"CTETRA": ("tetra", "tetra10"), "CPENTA": ("wedge", "wedge15")},
    **{"CHEXA": ("hexahedron", "hexahedron20")},
}
# Those that come back as they were; others are written as the like of these.
_KEPT = {"CROD", "CTRIA3", "CTRIA6", "CQUAD4", "CQUAD8", "CQUAD9", "CTETRA", "CPYRA", "CPYRAM"}
_KEPT |= {"CPENTA", "CHEXA"}
_WITH_FRAME = ("CBAR", "CBEAM", "CBUSH", "CBUSH1D", "CGAP")
# Column ``i`` in memory is column ``_TO_MEMORY[t][i]`` of a card: upright edges come second.
_TO_MEMORY = {
    "wedge15": [*range(9), 12, 13, 14, 9, 10, 11],
    "hexahedron20": [*range(12), *range(16, 20), *range(12, 16)],
}
# Characters of a field in the cards of cells, and in the large ones of nodes.
_SMALL, _LARGE = 8, 16


def _cards(path: Path) -> Iterator[list[str]]:
    """The fields of each card of the bulk: a line and those that go on with it."""
    card: list[str] = []
    text = path.read_text(encoding="utf-8")
    head, start, bulk = text.partition("BEGIN BULK")
    if start and any(line.strip() and line[0] != "$" for line in head.splitlines()):
        yield ["executive and case control"]
    for line in (bulk if start else text).splitlines():
        if line.startswith("ENDDATA"):
            break
        if not line.strip() or line.startswith(("$", "//", "#")):
            continue
        if "," in line:
            fields = [w.strip() for w in line.split(",")[:9]]
        else:
            width = _LARGE if "*" in line[:8] else _SMALL
            ends = range(8, min(len(line.rstrip()), 72), width)
            fields = [line[:8].strip(), *(line[i : i + width].strip() for i in ends)]
        if fields[0][:1] in ("", "+", "*"):
            # fields that are left out at the end of a line count
            per_line = 4 if fields[0][:1] == "*" else 8
            card += [""] * (-(len(card) - 1) % per_line) + fields[1:]
            continue
        yield from [card] if card else []
        fields[0] = fields[0].rstrip("*").strip()
        card = fields
    yield from [card] if card else []


def _number(text: str) -> float:
    """Numbers may leave out the E of their exponent."""
    return float(re.sub(r"(?<=[\d.])([+-])", r"e\1", text.lower().replace("d", "e")) or 0)


def read(path: Path) -> FileMesh:
    """Read a deck; raises MeshprepError for cards that would give another mesh."""
    nodes: dict[int, list[float]] = {}
    references, places, frames = list[int](), list[str](), False
    cells: dict[str, list[list[int]]] = {}
    left_out, elements, systems = dict[str, None](), set[int](), list[str]()
    for name, *fields in _cards(path):
        if name == "GRID":
            number, place, x, y, z, *rest = [*fields, *[""] * 5][: max(5, len(fields))]
            if int(number) in nodes:
                raise MeshprepError(f"node {number} stands twice: give one another number")
            nodes[int(number)] = [_number(x), _number(y), _number(z)]
            places.append(place)
            frames |= any(field not in ("", "0") for field in rest)
        elif name in _TYPES:
            number, reference, *rest = fields
            if int(number) in elements:
                raise MeshprepError(f"element {number} stands twice: give one another number")
            elements.add(int(number))
            cell_type, row = _cell(name, number, rest)
            row = [int(number), int(reference or 0), *row]
            cells.setdefault(cell_type, []).append(row)
            left_out |= {} if name in _KEPT else {name: None}
        elif name == "INCLUDE" or name.startswith("INCLUDE "):
            raise MeshprepError("takes in other files with INCLUDE: put them into one file")
        else:
            systems += [name] if name.startswith(("CORD", "GRDSET")) else []
            left_out[name] = None
    if systems and ("GRDSET" in systems or any(p not in ("", "0") for p in places)):
        raise MeshprepError(
            f"its nodes are in other coordinates ({max(systems)}): write x, y and z of the basic "
            "system, without field CP"
        )
    out = FileMesh(np.array([*nodes.values()]).reshape(-1, 3), [])
    order = {number: i for i, number in enumerate(nodes)}
    try:
        for cell_type, rows in cells.items():
            table = np.array([[order[n] for n in row[2:]] for row in rows])
            out.cells.append(Cells(cell_type, table[:, _TO_MEMORY.get(cell_type, slice(None))]))
    except KeyError as error:
        raise MeshprepError(
            f"a cell has node {error.args[0]}, which is not there: numbers have at most {_SMALL} "
            "characters in small fields, write longer ones with commas between them"
        ) from error
    tables = [np.array([row[:2] for row in rows]) for rows in cells.values()]
    out.cell_data = {NUMBERS: [t[:, 0] for t in tables], "nastran:ref": [t[:, 1] for t in tables]}
    references = [int(place or 0) for place in places]
    out.point_data = {NUMBERS: np.array([*nodes]), "nastran:ref": np.array(references)}
    out.numbered = True
    out.left_out = sorted(left_out) + (["CD, PS and SEID of nodes"] if frames else [])
    return out


def _cell(name: str, number: str, fields: list[str]) -> tuple[str, list[int]]:
    """The type and the nodes of a cell."""
    types = _TYPES[name]
    if name in _WITH_FRAME:
        return types[0], [int(field) for field in fields[:2]]
    given = [field for field in fields if field]
    behind = [field for field in given if "." in field]
    if behind:
        raise MeshprepError(
            f"{name} {number} has {behind[0]} behind its nodes, an angle, offset or thickness, "
            "which is not read: take it out"
        )
    cell_type = types[-1] if len(given) > node_count(types[0]) else types[0]
    check_node_count(f"cell {number}", cell_type, len(given))
    return cell_type, [int(field) for field in given]


def write(path: Path, mesh: FileMesh) -> None:
    """Lines as rods: the bars that meshio makes of them lack what tells how they lie."""
    for ids in mesh.cell_data.get("nastran:ref", ()):
        _check_width(ids, _SMALL)
    _check_width(mesh.point_data.get("nastran:ref", ()), _LARGE)
    write_by_meshio("nastran", path, mesh)
    cards = path.read_text(encoding="utf-8").replace("\nCBAR", "\nCROD")
    path.write_text(cards, encoding="utf-8")


def _check_width(numbers: Any, characters: int) -> None:
    """Refuse numbers that would run into the next field."""
    for number in (np.min(numbers, initial=0), np.max(numbers, initial=0)):
        if len(str(number)) > characters:
            raise MeshprepError(
                f"group {number} of 'nastran:ref' has more than the {characters} characters of a "
                "field: give the group a smaller number, or use another format"
            )
