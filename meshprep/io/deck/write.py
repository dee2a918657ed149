"""Writing decks of Abaqus and CalculiX, and what they cannot hold."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from ...mesh import IndexList, Mesh
from ..format import Capabilities, Values
from ..format.reduce import bad_lists, reduce, without_counts
from .content import DECK, NORMAL, OTHERS, REFERENCES, TYPE, Place
from .types import MIDDLE, NAME, USUAL

CAPABILITIES = Capabilities(
    tuple(USUAL),
    node_values=Values(kinds="f", widths=(3,), name=NORMAL, numbers=2**63 - 1),
    cell_values=Values(kinds="", numbers=2**63 - 1),
    tag=TYPE,
    other_tags=False,
    group_names=True,
    lists=("point_set", "cell_set", REFERENCES, OTHERS),
    plane=True,
    extras=(DECK,),
)
_ROWS_AT_ONCE = 65536
_PLAIN = ("*HEADING\nwritten by meshprep\n", Place("nodes"), Place("elements"))


def losses(mesh: Mesh, **_options: object) -> list[str]:
    """What a deck cannot hold: values, and groups other than types and sets."""
    kept, lost = reduce(mesh, CAPABILITIES)
    return lost + [
        f"the list '{i.name}' of '{i.set}'" for i in _lists_without_set_name(kept)
    ]


def reduced(mesh: Mesh) -> Mesh:
    """The mesh as a deck keeps it."""
    writable = without_counts(reduce(mesh, CAPABILITIES)[0])
    bad = {id(i) for i in _lists_without_set_name(writable)}
    lists = [i for i in writable.lists if id(i) not in bad]
    # sets that the deck has a place for come first, in its order
    placed = [p.key for p in _items(writable) if isinstance(p, Place) and p.what == "set"]
    rank = {key: i for i, key in enumerate(placed)}
    lists.sort(key=lambda i: rank.get(i.attrs.get("place", ""), len(rank)))
    return replace(writable, lists=tuple(lists))


def _lists_without_set_name(mesh: Mesh) -> Iterator[IndexList]:
    """Lists whose names do not fit, but for those that the deck has a place for."""
    keys = {p.key for p in _items(mesh) if isinstance(p, Place)}
    placed = {"node", "element", "others", *keys}
    bad = bad_lists(mesh, r"[\x21-\x2b\x2d-\x3c\x3e-\x7e]+")
    return (i for i in bad if i.attrs.get("place") not in placed)


def _items(mesh: Mesh) -> Sequence[str | Place]:
    found: Sequence[str | Place] = mesh.extras.get(DECK, _PLAIN)
    return found


def write(mesh: Mesh, path: Path) -> None:
    """Write a deck: the mesh in the places that it had, all else as it was."""
    writable = reduced(mesh)
    items = _items(writable)
    numbers = _Numbering.of(writable)
    keys = {p.key for p in items if isinstance(p, Place)}
    with path.open("w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        for item in items:
            if isinstance(item, str):
                file.write(item)
            elif item.what == "nodes":
                _write_node_keyword(file, writable, numbers.sets["nodes"])
            elif item.what == "elements":
                _write_element_keywords(file, writable, numbers)
                _write_others(file, writable, numbers)
                _write_free_sets(file=file, mesh=writable, numbers=numbers, keys=keys)
            elif item.what == "set":
                found = [i for i in writable.lists if i.attrs.get("place") == item.key]
                others = [numbers.others[n] for n in item.others]
                # A set keeps its header and place; its members have new numbers.
                lines = _wrapped_numbers(_numbers_of_lists(found, numbers) + others)
                file.write(item.header + "\n" + lines)
            elif item.what == "other":
                file.write(str(numbers.others[item.number]))
            else:
                file.write(str(numbers.references[item.what][item.number]))


@dataclass(frozen=True, eq=False)
class _Numbering:
    """The numbers that nodes and elements have in the deck that is written."""

    sets: Mapping[str, NDArray[np.int64]]  # of the nodes, and the cells of each set
    others: Mapping[int, int]  # of all other elements, by the number that they had
    references: Mapping[str, Mapping[int, int]]  # "node" and "element": by place

    @classmethod
    def of(cls, mesh: Mesh) -> "_Numbering":
        sets = _number_elements_and_nodes(mesh)
        references: dict[str, dict[int, int]] = {"node": {}, "element": {}}
        for i in mesh.lists:
            if i.attrs.get("kind") == REFERENCES:
                found = sets[i.set][i.index].tolist()
                places = i.attrs["at"].tolist()
                references[i.attrs["place"]] |= dict(zip(places, found, strict=True))
        return cls(sets, _other_numbers(mesh, sets), references)


def _number_elements_and_nodes(mesh: Mesh) -> dict[str, NDArray[np.int64]]:
    """Those that are given, else from 1."""
    out: dict[str, NDArray[np.int64]] = {}
    first = 1
    for name in ("nodes", *(s.name for s in mesh.cell_sets)):
        label = mesh.dat("label", name)
        n = mesh.size(name)
        if label is None:
            out[name] = np.arange(first, first + n)
        else:
            out[name] = label.values.astype(np.int64)
        if name == "nodes":
            first = 1
        else:
            first = first + n
    return out


def _other_numbers(mesh: Mesh, sets: Mapping[str, NDArray[np.int64]]) -> dict[int, int]:
    """The numbers of other elements in the new file.

    They keep their numbers where no cell has them, else they follow the highest one.
    """
    before: list[int] = []
    for index_list in _lists_to_move(mesh):
        before += index_list.attrs["numbers"]
    cells = np.concatenate([sets[s.name] for s in mesh.cell_sets])
    taken = np.isin(before, cells).tolist()
    out: dict[int, int] = {}
    behind = max([int(cells.max()), *before])
    for number, clash in zip(before, taken, strict=True):
        behind += clash
        out[number] = behind if clash else number
    return out


def _lists_to_move(mesh: Mesh) -> list[IndexList]:
    return [i for i in mesh.lists if i.attrs.get("kind") == OTHERS]


def _numbers_of_lists(lists: Sequence[IndexList], numbers: _Numbering) -> list[int]:
    out: list[int] = []
    for index_list in lists:
        out += numbers.sets[index_list.set][index_list.index].tolist()
    return out


def _write_node_keyword(file: TextIO, mesh: Mesh, node: NDArray[np.int64]) -> None:
    points = mesh.coordinates
    assert points is not None
    normals = mesh.dat(NORMAL, "nodes")
    table = points
    if normals is not None:
        # a normal stands behind three coordinates
        space = np.pad(points, ((0, 0), (0, 3 - points.shape[1])))
        table = np.hstack([space, normals.values])
    file.write("*NODE\n")
    for begin in range(0, len(table), _ROWS_AT_ONCE):
        part = slice(begin, begin + _ROWS_AT_ONCE)
        rows = zip(node[part].tolist(), table[part].tolist(), strict=True)
        file.write("".join([_node_line(number, values) for number, values in rows]))


def _node_line(number: int, values: Sequence[float]) -> str:
    # a node without a normal has no numbers there
    given = [value for value in values if value == value]
    return f"{number}, {', '.join(map(repr, given))}\n"


def _write_element_keywords(file: TextIO, mesh: Mesh, numbers: _Numbering) -> None:
    """A block for each run of elements of one type."""
    points = mesh.coordinates
    if points is not None and points.shape[1] < 3:
        plane = 0
    else:
        plane = 1
    for cell_set in mesh.cell_sets:
        tag = mesh.tag(TYPE, cell_set.name)
        cell_type = str(cell_set.cell_type)
        if tag is None:
            kinds = np.zeros(cell_set.size, np.int64)
        else:
            kinds = tag.first_ids()
        # Abaqus has the middle node of a beam between its ends.
        table = numbers.sets["nodes"][mesh.cell_map(cell_set.name).table]
        if cell_type == "line3":
            table = table[:, MIDDLE]
        rows = np.column_stack([numbers.sets[cell_set.name], table])
        # A keyword *ELEMENT has one type.
        ends = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), cell_set.size]
        for begin, end in pairwise(ends):
            kind = int(kinds[begin]) if cell_set.size else 0
            if kind:
                name = NAME[kind]
            else:
                name = USUAL[cell_type][plane]
            file.write(f"*ELEMENT, TYPE={name}\n")
            file.writelines(_wrapped_numbers(row) for row in rows[begin:end].tolist())


def _write_others(file: TextIO, mesh: Mesh, numbers: _Numbering) -> None:
    """The elements that loops do not run over, with 0 where they have no node."""
    for i in _lists_to_move(mesh):
        nodes = np.zeros(i.attrs["given"].size, np.int64)
        nodes[i.attrs["given"]] = numbers.sets["nodes"][i.index]
        file.write(f"*ELEMENT, TYPE={i.attrs['type']}\n")
        begin = 0
        for number, width in zip(i.attrs["numbers"], i.attrs["widths"], strict=True):
            row = [numbers.others[number], *nodes[begin : begin + width].tolist()]
            file.write(_wrapped_numbers(row))
            begin += width


def _write_free_sets(file: TextIO, mesh: Mesh, numbers: _Numbering, keys: set[str]) -> None:
    """Sets that the deck has no place for, as those of other formats."""
    sets = [i for i in mesh.lists if i.attrs.get("kind") not in (REFERENCES, OTHERS)]
    free = [i for i in sets if i.attrs.get("place") not in keys]
    for name, on_nodes in dict.fromkeys((i.name, i.set == "nodes") for i in free):
        lists_of_name = [i for i in free if (i.name, i.set == "nodes") == (name, on_nodes)]
        kind = "NSET" if on_nodes else "ELSET"
        file.write(f"*{kind}, {kind}={name}\n")
        file.write(_wrapped_numbers(_numbers_of_lists(lists_of_name, numbers)))


def _wrapped_numbers(numbers: Sequence[int]) -> str:
    """At most sixteen numbers a line; a comma says that they go on."""
    text = [", ".join(map(str, numbers[i : i + 16])) for i in range(0, len(numbers), 16)]
    if text:
        return ",\n".join(text) + "\n"
    return ""
