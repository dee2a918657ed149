"""Abaqus input files: nodes, elements under their own types, and sets.

meshio cuts elements from the numbers of a block without looking at lines, gives the sets of an
``*ELEMENT`` line to other blocks, leaves out sets that name sets, and writes other types than it
reads.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh.cells import check_node_count, node_count
from .numbers import NUMBERS, taken_numbers
from .own import meshio

abaqus_to_meshio_type = meshio.abaqus._abaqus.abaqus_to_meshio_type

TYPE = "abaqus:type"
# Written where cells have no type of their own: in a plane, and in space.
_USUAL = {
    **{"line": ("T2D2", "T3D2"), "line3": ("T2D3", "T3D3")},
    **{"triangle": ("CPS3", "S3"), "triangle6": ("CPS6", "STRI65")},
    **{"quad": ("CPS4", "S4"), "quad8": ("CPS8", "S8R"), "quad9": ("S9R5", "S9R5")},
    **{"tetra": ("C3D4",) * 2, "tetra10": ("C3D10",) * 2, "wedge": ("C3D6",) * 2},
    **{"wedge15": ("C3D15",) * 2, "hexahedron": ("C3D8",) * 2, "hexahedron20": ("C3D20",) * 2},
}
# Abaqus has the middle of a line between its ends: column ``i`` is column ``_MIDDLE[i]`` in memory,
# and the other way round.
_MIDDLE = [0, 2, 1]
# Types by name: those that meshio knows, set right, and more of plane and axisymmetric ones.
_FAMILIES = {"3": "triangle", "4": "quad", "6": "triangle6", "8": "quad8"}
_TYPES: dict[str, str] = {
    **abaqus_to_meshio_type,
    **{f"{family}{n}": t for family in ("CPS", "CPE", "CAX") for n, t in _FAMILIES.items()},
    **{f"{family}{n}R": _FAMILIES[n] for family in ("CPS", "CPE", "CAX") for n in "48"},
    **{"B33": "line", "B33H": "line", "C3D4H": "tetra", "R3D4": "quad", "M3D3": "triangle"},
    **{"M3D4": "quad", "M3D4R": "quad", "M3D8": "quad8", "S6": "triangle6", "S8": "quad8"},
    **{"C3D6H": "wedge", "C3D15H": "wedge15", "C3D10HS": "tetra10"},
}
# The numbers of types may stand in files of other formats: new types go to the end.
_NUMBER = {name: i for i, name in enumerate(_TYPES, 1)}
_NAME = {i: name for name, i in _NUMBER.items()}


@dataclass
class _Deck:
    """What was read so far: numbers of the file as keys, places as values."""

    nodes: dict[int, int] = field(default_factory=dict)
    points: list[list[float]] = field(default_factory=list)
    blocks: list[tuple[str, list[list[int]]]] = field(default_factory=list)
    elements: dict[int, tuple[int, int]] = field(default_factory=dict)
    node_sets: dict[str, list[int]] = field(default_factory=dict)
    element_sets: dict[str, list[int]] = field(default_factory=dict)


def read(file: TextIO) -> meshio.Mesh:
    """Read an Abaqus input file; types other than the usual ones are ``abaqus:type``."""
    deck, sets = _Deck(), []
    for keyword, options, lines in _blocks(file):
        _check_options(keyword, options)
        if keyword == "NODE":
            numbers = _read_nodes(deck, lines)
            _extend(deck.node_sets, options.get("NSET"), numbers)
        elif keyword == "ELEMENT":
            numbers = _read_elements(deck, options.get("TYPE", "").upper(), lines)
            _extend(deck.element_sets, options.get("ELSET"), numbers)
        elif keyword in ("NSET", "ELSET"):
            sets.append((keyword, options, lines))
    # what they may name is known once all is read
    for keyword, options, lines in sets:
        of_nodes, name = keyword == "NSET", options.get(keyword) or ""
        known = deck.node_sets if of_nodes else deck.element_sets
        most = len(deck.nodes if of_nodes else deck.elements) if "GENERATE" in options else None
        _extend(known, name, _members(lines, known, most, f"*{keyword} {name}"))
    return _mesh(deck)


def _check_options(keyword: str, options: Mapping[str, str]) -> None:
    """Refuse what would put nodes elsewhere, or leave nodes and elements out."""
    if keyword not in ("NODE", "ELEMENT", "NSET", "ELSET"):
        return
    if "INPUT" in options:
        raise MeshprepError(f"*{keyword} takes its lines from {options['INPUT']}: put them in here")
    if keyword == "NODE" and options.get("SYSTEM", "R").upper() != "R":
        raise MeshprepError(
            f"its nodes are in the coordinates SYSTEM={options['SYSTEM']}: write x, y and z"
        )
    if keyword == "NSET" and "ELSET" in options:
        raise MeshprepError(
            f"*NSET {options.get('NSET', '')} is the nodes of the elements {options['ELSET']}: "
            "name the nodes"
        )


def _blocks(file: TextIO) -> Iterator[tuple[str, dict[str, str], list[str]]]:
    """Each keyword with its options and the lines of numbers up to the next."""
    keyword, lines = "", list[str]()
    options: dict[str, str] = {}
    for raw in file:
        line = raw.strip()
        if not line or line.startswith("**"):
            continue
        if not line.startswith("*"):
            lines.append(line)
            continue
        yield keyword, options, lines
        # A keyword goes on in the next line after a comma at its end.
        while line.endswith(","):
            line += file.readline().strip()
        keyword, *words = [w.strip() for w in line[1:].split(",")]
        if any(word.count('"') % 2 for word in words):
            raise MeshprepError(f"has a name with a comma in '{line}': give it another name")
        pairs = [w.partition("=") for w in words]
        options = {key.strip().upper(): value.strip() for key, _, value in pairs}
        keyword, lines = keyword.upper(), []
    yield keyword, options, lines


def _read_nodes(deck: _Deck, lines: Sequence[str]) -> list[int]:
    numbers = []
    for line in lines:
        number, *place = line.rstrip(", ").split(",")
        if not 1 <= len(place) <= 3:
            raise MeshprepError(f"node {int(number)} has {len(place)} coordinates: give 2 or 3")
        if int(number) in deck.nodes:
            raise MeshprepError(f"node {int(number)} stands twice: give one another number")
        deck.nodes[int(number)] = len(deck.points)
        deck.points.append([float(x) if x.strip() else 0.0 for x in place])
        numbers.append(int(number))
    return numbers


def _read_elements(deck: _Deck, name: str, lines: Sequence[str]) -> list[int]:
    if name not in _TYPES:
        raise MeshprepError(f"holds elements of type {name or 'none'}, which is not supported")
    wanted, numbers = node_count(_TYPES[name]), []
    row, rows = list[int](), list[list[int]]()
    for line in lines:
        row += [int(w) for w in line.split(",") if w.strip()]
        # An element goes on in the next line after a comma.
        if line.endswith(",") and len(row) <= wanted:
            continue
        if len(row) != wanted + 1:
            check_node_count(f"element {row[0]} of type {name}", _TYPES[name], len(row) - 1)
        if row[0] in deck.elements:
            raise MeshprepError(f"element {row[0]} stands twice: give one another number")
        deck.elements[row[0]] = len(deck.blocks), len(rows)
        numbers.append(row[0])
        rows.append(row[1:])
        row = []
    if row:
        raise MeshprepError(f"element {row[0]} of type {name} ends in the middle")
    deck.blocks.append((name, rows))
    return numbers


def _extend(sets: dict[str, list[int]], name: str | None, numbers: Sequence[int]) -> None:
    """Names of sets are the same in small and capital letters."""
    if name:
        known = next((n for n in sets if n.upper() == name.upper()), name)
        sets.setdefault(known, []).extend(numbers)


def _members(
    lines: Sequence[str], sets: Mapping[str, list[int]], most: int | None, what: str
) -> list[int]:
    """What these lines name; each is a range of ``most`` numbers at most unless that is None."""
    out: list[int] = []
    by_name = {name.upper(): numbers for name, numbers in sets.items()}
    for line in lines:
        words = [w.strip() for w in line.split(",") if w.strip()]
        if most is not None:
            first, last, step, *more = [*map(int, words), 1][: max(len(words), 3)]
            if more or step < 1:
                raise MeshprepError(
                    f"{what} generates '{line}': write FIRST, LAST and a step from 1"
                )
            numbers = range(first, last + 1, step)
            if len(numbers) > most:
                raise MeshprepError(
                    f"{what} generates {len(numbers)} numbers, but {most} are there"
                )
            out += numbers
            continue
        for word in words:
            if word.lstrip("-").isdecimal():
                out.append(int(word))
            elif word.upper() in by_name:
                out += by_name[word.upper()]
            else:
                raise MeshprepError(f"{what} takes in the set '{word}', which is not there")
    return out


def _mesh(deck: _Deck) -> meshio.Mesh:
    dims = {len(p) for p in deck.points}
    if len(dims) > 1:
        raise MeshprepError(f"its nodes have {' and '.join(map(str, sorted(dims)))} coordinates")
    plane = min(dims, default=3) < 3
    cells, kinds = [], []
    for name, rows in deck.blocks:
        table = [[_place(deck.nodes, n, "node") for n in row] for row in rows]
        cell_type = _TYPES[name]
        nodes = np.array(table).reshape(len(rows), node_count(cell_type))
        cells.append((cell_type, nodes[:, _MIDDLE] if cell_type == "line3" else nodes))
        kinds.append(np.full(len(rows), 0 if _usual(cell_type, plane) == name else _NUMBER[name]))
    mesh = meshio.Mesh(
        np.array(deck.points),
        cells,
        point_data={NUMBERS: np.fromiter(deck.nodes, np.int64)},
        cell_data={TYPE: kinds, NUMBERS: _numbers(deck)},
        point_sets={
            name: np.array([_place(deck.nodes, n, "node") for n in _once(numbers)])
            for name, numbers in deck.node_sets.items()
        },
        cell_sets={name: _by_block(deck, n) for name, n in deck.element_sets.items()},
    )
    mesh.numbered = True
    mesh.group_names = {TYPE: {_NUMBER[name]: name for name, _ in deck.blocks}}
    return mesh


def _numbers(deck: _Deck) -> list[NDArray[np.int64]]:
    """The number of each element, block by block."""
    ends = np.cumsum([len(rows) for _, rows in deck.blocks])
    return np.split(np.fromiter(deck.elements, np.int64), ends[:-1])


def _once(numbers: Sequence[int]) -> list[int]:
    return list(dict.fromkeys(numbers))


def _place(places: Mapping[int, Any], number: int, what: str) -> Any:
    if number not in places:
        raise MeshprepError(f"names {what} {number}, which is not there: add or remove it")
    return places[number]


def _usual(cell_type: str, plane: bool) -> str:
    return _USUAL[cell_type][0 if plane else 1]


def _by_block(deck: _Deck, numbers: Sequence[int]) -> list[NDArray[np.int64]]:
    rows: list[list[int]] = [[] for _ in deck.blocks]
    for number in _once(numbers):
        block, row = _place(deck.elements, number, "element")
        rows[block].append(row)
    return [np.array(r, dtype=np.int64) for r in rows]


def write(path: str, mesh: meshio.Mesh) -> None:
    """Write an Abaqus input file: a block for each run of elements of one type."""
    with open(path, "w", encoding="utf-8") as file:
        file.write("*HEADING\nwritten by meshprep\n*NODE\n")
        node, elements = _written_numbers(mesh)
        for i, point in zip(node.tolist(), mesh.points.tolist(), strict=True):
            file.write(f"{i}, {', '.join(map(repr, point))}\n")
        _write_elements(file, mesh, node, elements)
        for name, blocks in mesh.cell_sets.items():
            for numbers, rows in zip(elements, blocks, strict=True):
                _write_set(file, "ELSET", name, numbers[rows])
        for name, nodes in mesh.point_sets.items():
            _write_set(file, "NSET", name, node[nodes])


def _written_numbers(mesh: meshio.Mesh) -> tuple[NDArray, list[NDArray]]:
    """The number of each node, and of each element block by block: from 1 where none are given."""
    nodes, cells = taken_numbers(mesh)
    ends = np.cumsum([len(block.data) for block in mesh.cells])
    if nodes is None:
        nodes = np.arange(1, len(mesh.points) + 1)
    return nodes, cells or np.split(np.arange(1, ends[-1] + 1), ends[:-1])


def _write_elements(
    file: TextIO, mesh: meshio.Mesh, node: NDArray, elements: Sequence[NDArray]
) -> None:
    blocks = zip(mesh.cells, mesh.cell_data[TYPE], elements, strict=True)
    for cells, kinds, numbers in blocks:
        last = -1
        table = node[cells.data]
        table = table[:, _MIDDLE] if cells.type == "line3" else table
        rows = zip(kinds.tolist(), numbers.tolist(), table.tolist(), strict=True)
        for kind, number, nodes in rows:
            if kind != last:
                name = _NAME[kind] if kind else _usual(cells.type, mesh.points.shape[1] < 3)
                file.write(f"*ELEMENT, TYPE={name}\n")
                last = kind
            file.write(_lines([number, *nodes]))


def _lines(numbers: Sequence[int]) -> str:
    """At most sixteen numbers a line; a comma says that they go on."""
    text = [", ".join(map(str, numbers[i : i + 16])) for i in range(0, len(numbers), 16)]
    return ",\n".join(text) + "\n"


def _write_set(file: TextIO, keyword: str, name: str, numbers: NDArray) -> None:
    if len(numbers):
        file.write(f"*{keyword}, {keyword}={name}\n{_lines(numbers.tolist())}")
