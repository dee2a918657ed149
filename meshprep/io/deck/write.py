"""Writing decks of Abaqus and CalculiX, and what they cannot hold."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from ...mesh import IndexList, Mesh
from ..meshio_adapter.incoming import without_counts
from ..reduce import bad_lists, reduce
from ..registry import Capabilities, Values
from .keywords import MIDDLE, NAME, USUAL
from .read import DECK, REFERENCES, TYPE, Place

CAPABILITIES = Capabilities(
    tuple(USUAL),
    node_values=Values(kinds="", numbers=True),
    cell_values=Values(kinds="", numbers=True),
    tag=TYPE,
    other_tags=False,
    group_names=True,
    lists=("point_set", "cell_set", REFERENCES),
    plane=True,
    extras=(DECK,),
)
_ROWS_AT_ONCE = 65536
# By set: the number of each node and element.
Numbers = dict[str, NDArray[np.int64]]
_PLAIN = ("*HEADING\nwritten by meshprep\n", Place("nodes"), Place("elements"))


def losses(mesh: Mesh, **_options: object) -> list[str]:
    """What a deck cannot hold: values, and groups other than types and sets."""
    kept, lost = reduce(mesh, CAPABILITIES)
    return lost + [f"the list '{i.name}' of '{i.set}'" for i in _bad_lists(kept)]


def reduced(mesh: Mesh) -> Mesh:
    """The mesh as a deck keeps it."""
    kept = without_counts(reduce(mesh, CAPABILITIES)[0])
    bad = {id(i) for i in _bad_lists(kept)}
    lists = [i for i in kept.lists if id(i) not in bad]
    # sets that the deck has a place for come first, in its order
    placed = [p.key for p in _items(kept) if isinstance(p, Place) and p.what == "set"]
    rank = {key: i for i, key in enumerate(placed)}
    lists.sort(key=lambda i: rank.get(i.attrs.get("place", ""), len(rank)))
    return replace(kept, lists=tuple(lists))


def _bad_lists(mesh: Mesh) -> Iterator[IndexList]:
    """Lists whose names do not fit, but for those that the deck has a place for."""
    placed = {"node", "element", *(p.key for p in _items(mesh) if isinstance(p, Place))}
    bad = bad_lists(mesh, r"[\x21-\x2b\x2d-\x3c\x3e-\x7e]+")
    return (i for i in bad if i.attrs.get("place") not in placed)


def _items(mesh: Mesh) -> Sequence[str | Place]:
    found: Sequence[str | Place] = mesh.extras.get(DECK, _PLAIN)
    return found


def write(mesh: Mesh, path: Path) -> None:
    """Write a deck: the mesh in the places that it had, all else as it was."""
    kept = reduced(mesh)
    numbers = _numbers(kept)
    items = _items(kept)
    placed = {p.key for p in items if isinstance(p, Place)}
    with path.open("w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        for item in items:
            if isinstance(item, str):
                file.write(item)
            elif item.what == "nodes":
                _write_nodes(file, kept, numbers["nodes"])
            elif item.what == "elements":
                _write_elements(file, kept, numbers)
                for name in dict.fromkeys((i.name, i.set == "nodes") for i in kept.lists):
                    free = [i for i in kept.lists if (i.name, i.set == "nodes") == name]
                    free = [i for i in free if i.attrs.get("place") not in (*placed, *numbers)]
                    free = [i for i in free if i.attrs.get("kind") != REFERENCES]
                    kind = "NSET" if name[1] else "ELSET"
                    if free:
                        file.write(f"*{kind}, {kind}={name[0]}\n")
                        file.write(_lines(_listed(free, numbers)))
            elif item.what == "set":
                found = [i for i in kept.lists if i.attrs.get("place") == item.key]
                file.write(item.header + "\n" + _lines(_listed(found, numbers)))
            else:
                file.write(str(_reference(kept, item, numbers)))


def _numbers(mesh: Mesh) -> Numbers:
    """Those that are given, else from 1."""
    out: Numbers = {}
    first = 1
    for name in ("nodes", *(s.name for s in mesh.cell_sets)):
        label, n = mesh.dat("label", name), mesh.size(name)
        out[name] = np.arange(first, first + n) if label is None else label.values.astype(np.int64)
        first = 1 if name == "nodes" else first + n
    return out


def _listed(lists: Sequence[IndexList], numbers: Numbers) -> list[int]:
    return [n for i in lists for n in numbers[i.set][i.index].tolist()]


def _reference(mesh: Mesh, item: Place, numbers: Numbers) -> int:
    """The number that a place in the deck has now."""
    for i in mesh.lists:
        if i.attrs.get("kind") == REFERENCES and i.attrs["place"] == item.what:
            at = np.searchsorted(i.attrs["at"], item.number)
            if at < i.index.size and i.attrs["at"][at] == item.number:
                return int(numbers[i.set][i.index[at]])
    raise AssertionError("every number in the deck is in a list")


def _write_nodes(file: TextIO, mesh: Mesh, node: NDArray[np.int64]) -> None:
    points = mesh.coordinates
    assert points is not None
    file.write("*NODE\n")
    line = ", ".join(["%d"] + ["%r"] * points.shape[1]) + "\n"
    for a in range(0, len(points), _ROWS_AT_ONCE):
        part = slice(a, a + _ROWS_AT_ONCE)
        rows = zip(node[part].tolist(), points[part].tolist(), strict=True)
        file.write("".join([line % (i, *place) for i, place in rows]))


def _write_elements(file: TextIO, mesh: Mesh, numbers: Numbers) -> None:
    """A block for each run of elements of one type."""
    points = mesh.coordinates
    plane = 0 if points is not None and points.shape[1] < 3 else 1
    for s in mesh.cell_sets:
        tag, cell_type = mesh.tag(TYPE, s.name), str(s.cell_type)
        kinds = np.zeros(s.size, np.int64) if tag is None else tag.first_ids()
        table = numbers["nodes"][mesh.cell_map(s.name).table]
        table = table[:, MIDDLE] if cell_type == "line3" else table
        rows = np.column_stack([numbers[s.name], table])
        ends = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), s.size]
        for a, b in pairwise(ends):
            kind = int(kinds[a]) if s.size else 0
            name = NAME[kind] if kind else USUAL[cell_type][plane]
            file.write(f"*ELEMENT, TYPE={name}\n")
            file.writelines(_lines(row) for row in rows[a:b].tolist())


def _lines(numbers: Sequence[int]) -> str:
    """At most sixteen numbers a line; a comma says that they go on."""
    text = [", ".join(map(str, numbers[i : i + 16])) for i in range(0, len(numbers), 16)]
    return ",\n".join(text) + "\n" if text else ""
