"""Reading decks of Nastran: nodes and cells; all else is told as left out."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh.cells import check_node_count, node_count
from ..cell_blocks.file_mesh import Cells, FileMesh
from ..format.names import NUMBERS
from .cards import SMALL, Card, read_bulk
from .elements import OTHERS, TO_MEMORY, TYPES

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
# The letter of an exponent may be D, or be left out before its sign.
_EXPONENT = re.compile(r"(?<=[0-9.])[dDeE]?([+-])")


@dataclass(eq=False)
class _Found:
    """What was read so far."""

    nodes: dict[int, list[float]] = field(default_factory=dict)  # coordinates by number
    systems_of_nodes: list[str] = field(default_factory=list)  # the field CP
    has_frames: bool = False  # whether a node has what stands behind its coordinates
    # By type of cell: number, property and nodes.
    cells: dict[str, list[list[int]]] = field(default_factory=dict)
    elements: set[int] = field(default_factory=set)
    systems: set[str] = field(default_factory=set)  # cards of coordinate systems
    usual_system: str = ""  # that of nodes that name none
    left_out: dict[str, None] = field(default_factory=dict)


def read(path: Path) -> FileMesh:
    """Read a deck; raises MeshprepError for cards that would give another mesh."""
    bulk = read_bulk(path)
    contents = _Found()
    if bulk.has_head:
        contents.left_out["executive and case control"] = None
    for card in bulk.cards:
        if card.name == "GRID":
            _read_node(contents, card)
        elif card.name in TYPES:
            _read_cell(contents, card)
        elif card.name == "GRDSET":
            contents.usual_system = _field(card, 1)
            contents.left_out["GRDSET"] = None
        else:
            if card.name.startswith("CORD"):
                contents.systems.add(card.name)
            contents.left_out[card.name] = None
    _refuse_systems(contents)
    return _file_mesh(contents)


def _field(card: Card, i: int) -> str:
    if i < len(card.fields):
        return card.fields[i]
    return ""


def _whole_field(card: Card, i: int) -> int:
    text = _field(card, i)
    if not _WHOLE.fullmatch(text):
        raise MeshprepError(
            f"{card.where}: field {i + 2} of {card.name} is '{text}', must be a whole "
            "number"
        )
    return int(text)


def _nastran_number(card: Card, i: int) -> float:
    """A number as Nastran writes it; nothing is 0."""
    text = _field(card, i)
    if not text:
        return 0.0
    try:
        if "_" in text or not text.isascii():
            raise ValueError
        try:
            return float(text)
        except ValueError:
            plain = _EXPONENT.sub(r"e\1", text).lower().replace("d", "e")
            return float(plain)
    except ValueError:
        raise MeshprepError(
            f"{card.where}: field {i + 2} of {card.name} is '{text}', must be a number"
        ) from None


def _read_node(found: _Found, card: Card) -> None:
    number = _whole_field(card, 0)
    if number in found.nodes:
        raise MeshprepError(
            f"{card.where}: node {number} stands twice: give one another number"
        )
    # GRID is ID, CP (the system of the coordinates), x, y, z and what a solver wants
    # besides.
    found.nodes[number] = [
        _nastran_number(card, 2),
        _nastran_number(card, 3),
        _nastran_number(card, 4),
    ]
    found.systems_of_nodes.append(_field(card, 1))
    found.has_frames |= any(text not in ("", "0") for text in card.fields[5:])


def _read_cell(found: _Found, card: Card) -> None:
    number = _whole_field(card, 0)
    if number in found.elements:
        raise MeshprepError(
            f"{card.where}: element {number} stands twice: give one another number"
        )
    if TYPES[card.name] == ("line",) and not _field(card, 3):
        # it leads to the ground
        found.left_out[card.name] = None
        return
    found.elements.add(number)
    # An element is EID, PID and its nodes; what stands behind these is no part of the
    # mesh.
    cell_type = _cell_type(card, number)
    count = node_count(cell_type)
    nodes = [_whole_field(card, 2 + i) for i in range(count)]
    reference = _whole_field(card, 1) if _field(card, 1) else 0
    found.cells.setdefault(cell_type, []).append([number, reference, *nodes])
    if card.name in OTHERS:
        found.left_out[card.name] = None
    elif any(card.fields[2 + count :]):
        found.left_out[f"angles, offsets and thicknesses of {card.name}"] = None


def _cell_type(card: Card, number: int) -> str:
    """The type of a cell by the nodes that it has."""
    # CTETRA, CPENTA, CHEXA and CPYRAM have a second order where a node stands behind the
    # corners.
    types = TYPES[card.name]
    filled = [i for i, text in enumerate(card.fields[2:]) if text]
    corners = node_count(types[0])
    if len(types) == 1 or not filled or filled[-1] < corners:
        cell_type = types[0]
    else:
        cell_type = types[1]
        if filled[-1] >= node_count(cell_type):
            check_node_count(f"{card.where}: cell {number}", cell_type, len(filled))
    wanted = node_count(cell_type)
    of_nodes = [i for i in filled if i < wanted]
    if len(of_nodes) < wanted:
        check_node_count(f"{card.where}: cell {number}", cell_type, len(of_nodes))
    return cell_type


def _refuse_systems(found: _Found) -> None:
    """Refuse nodes that are not in the basic system.

    Without a card of a coordinate system the field CP is a group, as Gmsh writes it.
    """
    places = found.systems_of_nodes
    names = set[str]()
    if found.systems and any(place not in ("", "0") for place in places):
        names |= found.systems
    if found.usual_system not in ("", "0") and "" in places:
        names.add("GRDSET")
    if names:
        raise MeshprepError(
            f"its nodes are in other coordinates ({max(names)}): write x, y and z of the "
            "basic system, without field CP"
        )


def _file_mesh(found: _Found) -> FileMesh:
    out = FileMesh(np.array([*found.nodes.values()]).reshape(-1, 3), [])
    order = {number: i for i, number in enumerate(found.nodes)}
    numbers = list[NDArray[np.int64]]()
    references = list[NDArray[np.int64]]()
    for cell_type, rows in found.cells.items():
        # From numbers to rows, and from the order of the card to ours.
        table = np.array([_rows_of_nodes(order, row[2:]) for row in rows])
        columns = TO_MEMORY.get(cell_type, [*range(table.shape[1])])
        out.cells.append(Cells(cell_type, table[:, columns]))
        numbers.append(np.array([row[0] for row in rows]))
        references.append(np.array([row[1] for row in rows]))
    out.cell_data = {NUMBERS: numbers, "nastran:ref": references}
    places = [
        int(place) if _WHOLE.fullmatch(place) else 0 for place in found.systems_of_nodes
    ]
    out.point_data = {NUMBERS: np.array([*found.nodes]), "nastran:ref": np.array(places)}
    out.numbered = True
    out.left_out = sorted(found.left_out)
    if found.has_frames:
        out.left_out.append("CD, PS and SEID of nodes")
    return out


def _rows_of_nodes(order: dict[int, int], nodes: list[int]) -> list[int]:
    try:
        return [order[number] for number in nodes]
    except KeyError as error:
        raise MeshprepError(
            f"a cell has node {error.args[0]}, which is not there: numbers have at most "
            f"{SMALL} characters in small fields, write longer ones with commas between "
            "them"
        ) from None
