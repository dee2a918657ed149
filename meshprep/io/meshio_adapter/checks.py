"""What meshio would get wrong without a word, looked for before it reads.

Each check raises MeshprepError where the result would be wrong or larger than the file can
justify, and returns what meshio leaves out, in words.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import h5py

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.file.atomic import check_input

from ...mesh.cells import check_node_count, node_count
from .table import MEDIT_IGNORED, NASTRAN_READ


def check_before(name: str, path: Path) -> list[str]:
    """Run the checks of a format, where there are some; what meshio leaves out.

    Raises MeshprepError that names the first cell of a text file whose size is not its type's.
    Formats whose cells come as tables, or with a size that meshio looks at, pass. O(bytes).
    """
    unread = _CHECKS[name](path) if name in _CHECKS else []
    for number, (cell_type, found) in enumerate(_SIZES[name](path) if name in _SIZES else (), 1):
        if found != node_count(cell_type):
            check_node_count(f"cell {number}", cell_type, found)
    return unread


def _vtk(path: Path) -> list[str]:
    data = path.read_bytes()
    found = re.search(rb"^[ \t]*DIMENSIONS[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+)", data, re.M | re.I)
    if found:
        size = math.prod(int(n) for n in found.groups())
        if size > len(data):
            raise MeshprepError(f"declares a grid of {size} points in {len(data)} bytes")
    if re.search(rb"^(?:\S+[ \t]+\d+[ \t]+\d+|SCALARS[ \t]+\S+)[ \t]+bit\b", data, re.M | re.I):
        raise MeshprepError("holds values of type bit, which are not read: write them as int")
    # Times and the like, which stand before the points.
    before = re.search(rb"^DATASET[ \t]+\S+[ \t]*\r?\nFIELD\b", data, re.M | re.I)
    return ["fields of the whole mesh"] if before else []


def _xdmf(path: Path) -> list[str]:
    data = path.read_bytes()
    if re.search(rb"Format\s*=\s*[\"']Binary", data):
        raise MeshprepError("keeps numbers in raw binary files: write it with HDF5 or XML data")
    for name in {n.decode() for n in re.findall(rb">\s*([^<>:\n]+\.h(?:df)?5):", data)}:
        beside = path.resolve().parent / name
        try:
            check_input(beside)
        except MeshprepError as error:
            raise MeshprepError(f"its data file {name} {error}") from None

        check_hdf5(beside)
    return []


def _medit(path: Path) -> list[str]:
    data = path.read_bytes()
    words = re.findall(rb"^[ \t]*([A-Za-z]+)[ \t]*$", data, re.M) if data[:1] > b"\x1f" else []
    return sorted({w.decode() for w in words} & MEDIT_IGNORED)


NASTRAN_START = b"BEGIN BULK"
# A node in a coordinate system of its own (CP), in free, small and large fields.
_PLACED = re.compile(
    rb"^GRID(\*?,[^,\n]*,[ 0]*|[^,*\n]{12}[ 0]{0,7}|\*[^,\n]{19}[ 0]{0,15})[1-9]", re.M
)


def nastran_bulk(path: Path) -> bytes:
    """The cards of a deck that nodes and elements are among; all where it does not tell."""
    head, start, cards = path.read_bytes().partition(NASTRAN_START)
    return re.split(rb"^ENDDATA", cards if start else head, flags=re.M)[0]


def nastran_numbers(bulk: bytes) -> tuple[list[int], list[int]]:
    """The numbers of the nodes and of the elements, as they stand in the file."""
    from .own import meshio

    kinds = "|".join(meshio.nastran._nastran.nastran_to_meshio_type)
    found = (rb"^(?:%b)\*?[ ,\t]+(\d+)" % name.encode() for name in ("GRID", kinds))
    nodes, elements = (re.findall(pattern, bulk, re.M) for pattern in found)
    return [int(n) for n in nodes], [int(n) for n in elements]


def _nastran(path: Path) -> list[str]:
    bulk = nastran_bulk(path)
    found = re.findall(rb"^([A-Z][A-Z0-9]*\*?)(?=[ ,\t]|$)", bulk, re.M)
    cards = {c.decode() for c in found}
    large = sorted(c for c in cards if c.endswith("*") and c[:-1] in NASTRAN_READ - {"GRID"})
    if large:
        raise MeshprepError(f"has {large[0]} in large fields, which is not read: use small ones")
    if "INCLUDE" in cards:
        raise MeshprepError("takes in other files with INCLUDE: put them into one file")
    systems = sorted(c for c in cards if c.startswith(("CORD", "GRDSET")))
    if systems and ("GRDSET" in systems[-1] or _PLACED.search(bulk)):
        raise MeshprepError(
            f"its nodes are in other coordinates ({systems[-1]}): write x, y and z of the basic "
            "system, without field CP"
        )
    for what, numbers in zip(("node", "element"), nastran_numbers(bulk), strict=True):
        if len(set(numbers)) < len(numbers):
            twice = next(n for n, times in Counter(numbers).items() if times > 1)
            raise MeshprepError(f"{what} {twice} stands twice: give one another number")
    return [*_nastran_left_out(path, bulk), *sorted(cards - NASTRAN_READ - {"GRID*"})]


def _nastran_left_out(path: Path, bulk: bytes) -> list[str]:
    """What stands before the cards of the mesh, and behind the places of nodes."""
    head, start, _ = path.read_bytes().partition(NASTRAN_START)
    before = head.splitlines() if start else []
    told = any(line.strip() and not line.startswith(b"$") for line in before)
    out = ["executive and case control"] if told else []
    behind = re.findall(rb"^GRID(?:,[^,\n]*){5},([^\n]*)|^GRID[^,*\n]{44}([^,\n]+)", bulk, re.M)
    behind += re.findall(rb"^GRID\*[^,\n]*\n\*[^,\n]{23}()([^\n]+)", bulk, re.M)
    framed = any(re.sub(rb"[ ,\t\r+*]|\b0\b", b"", b"".join(fields)) for fields in behind)
    return out + (["CD, PS and SEID of nodes"] if framed else [])


def _netgen(path: Path) -> list[str]:
    data = path.read_bytes()
    for word, count in re.findall(rb"^([a-z]\w*)[ \t]*\r?\n[ \t]*(\d+)[ \t]*\r?$", data, re.M):
        if int(count) > len(data):
            raise MeshprepError(f"declares {int(count)} {word.decode()} in {len(data)} bytes")
    return []


def _tetgen(path: Path) -> list[str]:
    other = path.with_suffix(".ele" if path.suffix == ".node" else ".node")
    try:
        check_input(other)
    except MeshprepError as error:
        raise MeshprepError(f"needs {other.name} beside it, which {error}") from None
    return []


# The most that the compression in HDF5 and netCDF files can gain.
_MOST_PACKED = 1040
# Datasets of this many bytes may be unwritten; so may the dimensions of netCDF, never read.
_HARMLESS = 65536


def check_hdf5(path: Path) -> list[str]:
    """Refuse datasets that are larger than what is stored of them can give."""
    size = path.stat().st_size

    def check(name: str, item: object) -> None:
        count = int(item.attrs["NBR"]) if "NBR" in item.attrs else 0  # type: ignore[attr-defined]
        if count > size:
            raise MeshprepError(f"'{name}' declares {count} entries in a file of {size} bytes")
        if isinstance(item, h5py.Dataset):
            if item.is_virtual or item.external:
                raise MeshprepError(f"the values of '{name}' are in other files: put them into one")
            unwritten = item.nbytes <= _HARMLESS or "_Netcdf4Dimid" in item.attrs
            if item.nbytes > _MOST_PACKED * item.id.get_storage_size() and not unwritten:
                raise MeshprepError(f"'{name}' declares {item.nbytes} bytes that are not there")

    with h5py.File(path, "r") as file:
        file.visititems(check)
    return []


_CHECKS: dict[str, Callable[[Path], list[str]]] = {
    **{"vtk": _vtk, "xdmf": _xdmf, "medit": _medit, "nastran": _nastran, "netgen": _netgen},
    **{"tetgen": _tetgen, "med": check_hdf5},
    "exodus": lambda path: check_hdf5(path) if h5py.is_hdf5(path) else [],
}


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


def _rows(path: Path) -> Iterator[list[str]]:
    """The words of each line that has some."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.strip() and not line.lstrip().startswith("#"):
                yield line.split()


def _count(words: list[str]) -> int:
    return int(words[0]) if words and words[0].isdecimal() else 0


def _medit_sizes(path: Path) -> Sizes:
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


def _nastran_sizes(path: Path) -> Sizes:
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
        behind = [f.strip() for f in fields[3 + node_count(types[0]) :] if "." in f]
        if behind:
            raise MeshprepError(
                f"{fields[0]} {fields[1].strip()} has {behind[0]} behind its nodes, an angle, "
                "offset or thickness, which is not read: take it out"
            )
        found = sum(1 for field in fields[3:] if field.strip())
        yield types[-1] if found > node_count(types[0]) else types[0], found


def _netgen_sizes(path: Path) -> Sizes:
    rows = _rows(path)
    for words in rows:
        if words == ["volumeelements"]:
            for cell in islice(rows, _count(next(rows, []))):
                if len(cell) > 1 and cell[1] in _NETGEN:
                    yield _NETGEN[cell[1]], len(cell) - 2


def _tetgen_sizes(path: Path) -> Sizes:
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
    **{"medit": _medit_sizes, "nastran": _nastran_sizes, "netgen": _netgen_sizes},
    **{"tetgen": _tetgen_sizes, "ugrid": _ugrid},
}
