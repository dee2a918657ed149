"""Whether the cells of text files have as many nodes as their types, where meshio does not look.

meshio takes a number of words for each cell, from the front of its line or from one line into the
next, and leaves the others.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from ...mesh.cells import check_node_count, node_count

# The type of each cell, and how many nodes the file gives it.
Sizes = Iterator[tuple[str, int]]
_MEDIT = {"Edges": "line", "Triangles": "triangle", "Quadrilaterals": "quad"}
_MEDIT |= {"Tetrahedra": "tetra", "Pyramids": "pyramid", "Prisms": "wedge"}
_MEDIT |= {"Hexahedra": "hexahedron", "Hexaedra": "hexahedron"}
# Each card's types, of first order and of second where the nodes tell which.
_NASTRAN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("CTRIA3", "CTRIAR"), ("triangle",)),
    **dict.fromkeys(("CTRIA6", "CTRIAX6", "CTRAX6"), ("triangle6",)),
    **dict.fromkeys(("CQUAD4", "CQUADR", "CSHEAR"), ("quad",)),
    **{"CROD": ("line",), "CQUAD8": ("quad8",), "CQUAD9": ("quad9",)},
    **dict.fromkeys(("CPYRA", "CPYRAM"), ("pyramid", "pyramid13")),
    **{"CTETRA": ("tetra", "tetra10"), "CPENTA": ("wedge", "wedge15")},
    **{"CHEXA": ("hexahedron", "hexahedron20")},
}
_NETGEN = {"4": "tetra", "5": "pyramid", "6": "wedge", "8": "hexahedron"}
_NETGEN |= {"10": "tetra10", "13": "pyramid13", "15": "wedge15", "20": "hexahedron20"}
_UGRID = ("triangle", "quad", "tetra", "pyramid", "wedge", "hexahedron")


def check_sizes(name: str, path: Path) -> None:
    """Raise MeshprepError that names the first cell of a text file whose size is not its type's.

    Formats whose cells come as tables, or with a size that meshio looks at, pass. O(bytes).
    """
    if name not in _SIZES:
        return
    for number, (cell_type, found) in enumerate(_SIZES[name](path), 1):
        if found != node_count(cell_type):
            check_node_count(f"cell {number}", cell_type, found)


def _rows(path: Path) -> Iterator[list[str]]:
    """The words of each line that has some."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.strip() and not line.lstrip().startswith("#"):
                yield line.split()


def _count(words: list[str]) -> int:
    return int(words[0]) if words and words[0].isdecimal() else 0


def _medit(path: Path) -> Sizes:
    with path.open("rb") as file:
        binary = file.read(1) <= b"\x1f"
    rows, at = [] if binary else list(_rows(path)), 0
    while at < len(rows):
        keyword, at = rows[at][0], at + 1
        if keyword not in _MEDIT:
            continue
        stop = next((i for i in range(at, len(rows)) if rows[i][0].isalpha()), len(rows))
        # Numbers need not stand in lines, a cell each; but where they do, lines are cells.
        if stop - at - 1 == _count(rows[at] if at < stop else []):
            yield from ((_MEDIT[keyword], len(words) - 1) for words in rows[at + 1 : stop])
        at = stop


def _nastran(path: Path) -> Sizes:
    """A card is a line and those that go on with it, of eight fields each after the first."""
    card: list[str] = []
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if len(line) < 4 or line.startswith(("$", "//", "#")):
                continue
            if not line.startswith(("+", "*", ",", " " * 8)):
                yield from _card(card)
                card = [line.replace(",", " ").split()[0]]
            fixed = [line.rstrip()[i : i + 8] for i in range(8, 72, 8)]
            card += line.rstrip().split(",")[1:9] if "," in line else fixed
    yield from _card(card)


def _card(fields: list[str]) -> Sizes:
    types = _NASTRAN.get(fields[0], ()) if fields else ()
    if types:
        found = sum(1 for field in fields[3:] if field.strip())
        yield types[-1] if found > node_count(types[0]) else types[0], found


def _netgen(path: Path) -> Sizes:
    rows = _rows(path)
    for words in rows:
        if words == ["volumeelements"]:
            for cell in islice(rows, _count(next(rows, []))):
                if len(cell) > 1 and cell[1] in _NETGEN:
                    yield _NETGEN[cell[1]], len(cell) - 2


def _tetgen(path: Path) -> Sizes:
    rows = _rows(path.with_suffix(".ele"))
    head = next(rows, [])
    extra = 1 + (_count(head[2:]) if len(head) > 2 else 0)
    yield from (("tetra", len(words) - extra) for words in islice(rows, _count(head)))


def _ugrid(path: Path) -> Sizes:
    """Nodes, triangles, quads, a number for each of these, and volumes, a line each."""
    rows = list(_rows(path)) if len(path.suffixes) == 1 else []
    head = [int(w) for w in rows[0] if w.isdecimal()] if rows else []
    if len(head) != len(_UGRID) + 1 or len(rows) != 1 + sum(head) + head[1] + head[2]:
        return
    at = 1 + head[0]
    for cell_type, n in zip(_UGRID, head[1:], strict=True):
        yield from ((cell_type, len(words)) for words in rows[at : at + n])
        at += n + (head[1] + head[2] if cell_type == "quad" else 0)


_SIZES: dict[str, Callable[[Path], Sizes]] = {
    "medit": _medit,
    "nastran": _nastran,
    "netgen": _netgen,
    "tetgen": _tetgen,
    "ugrid": _ugrid,
}
