"""What meshio would get wrong without a word, looked for before it reads.

Each check raises MeshprepError where the result would be wrong or larger than the file can
justify, and returns what meshio leaves out, in words.
"""

import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.inputs import check_input

from .sizes import check_sizes
from .table import MEDIT_IGNORED, NASTRAN_READ

# Keywords of Abaqus by which a deck has other nodes and elements than it lists.
_GENERATING = {"NGEN", "NFILL", "NCOPY", "NMAP", "SYSTEM", "ELGEN", "ELCOPY"}
_HDF5 = ("cgns", "exodus", "med")


def check_before(name: str, path: Path) -> list[str]:
    """Run the checks of a format, where there are some."""
    # Imported here, since most files need no HDF5.
    if name in _HDF5:
        from .hdf5_checks import CHECKS

        return CHECKS[name](path)
    check = _CHECKS.get(name)
    unread = check(path) if check else []
    check_sizes(name, path)
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
        from .hdf5_checks import check_hdf5

        check_hdf5(beside)
    return []


def _medit(path: Path) -> list[str]:
    data = path.read_bytes()
    words = re.findall(rb"^[ \t]*([A-Za-z]+)[ \t]*$", data, re.M) if data[:1] > b"\x1f" else []
    return sorted({w.decode() for w in words} & MEDIT_IGNORED)


def _abaqus(path: Path) -> list[str]:
    data = path.read_bytes()
    words = [w.strip().upper() for w in re.findall(rb"^\*([A-Za-z][^,\r\n]*)", data, re.M)]
    if b"INCLUDE" in words:
        raise MeshprepError("takes in other files with *INCLUDE: put them into one file")
    if words.count(b"NODE") > 1 or b"PART" in words:
        raise MeshprepError("has several parts or lists of nodes: write one part with one list")
    for word in (w.decode("ascii", "replace") for w in words):
        if word in _GENERATING:
            raise MeshprepError(f"makes or moves nodes or elements by *{word}: write them out")
    known = {b"NODE", b"ELEMENT", b"NSET", b"ELSET", b"HEADING"}
    return sorted({f"*{w.decode('utf-8', 'replace')}" for w in words if w not in known})


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


_CHECKS: dict[str, Callable[[Path], list[str]]] = {
    "vtk": _vtk,
    "xdmf": _xdmf,
    "medit": _medit,
    "abaqus": _abaqus,
    "nastran": _nastran,
    "netgen": _netgen,
    "tetgen": _tetgen,
}
