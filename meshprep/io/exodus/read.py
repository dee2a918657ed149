"""Reading Exodus II files: blocks, sets, values at all steps, and what is left out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh.cells import node_count, shape_of
from ..cell_blocks.file_mesh import Cells, FileMesh, SideSet
from ..format.names import NUMBERS
from ..hdf import Item, load

BLOCK = "exodus:block"
# Group 0 stands for none in memory: block 0 of a file is this one there, and the other way
# round.
ZERO = 2**31 - 1
# Attributes of elements are values of this name in memory, with their own behind it.
ATTRIBUTE = "attribute:"
# Column ``i`` of a file is column ``TO_FILE[t][i]`` in memory, which has VTK's order.
TO_FILE: dict[str, list[int]] = {
    "wedge15": [*range(9), 12, 13, 14, 9, 10, 11],
    "hexahedron20": [*range(12), *range(16, 20), *range(12, 16)],
    "hexahedron27": [
        *range(12),
        *range(16, 20),
        *range(12, 16),
        26,
        24,
        25,
        20,
        21,
        22,
        23,
    ],
}
# Names that other readers of Exodus files know, too; a file's own names of its blocks go
# before.
USUAL_TYPE = {
    "vertex": "SPHERE",
    "line": "BAR2",
    "line3": "BEAM3",
    "triangle": "TRI3",
    "triangle6": "TRI6",
    "quad": "QUAD4",
    "quad8": "QUAD8",
    "quad9": "QUAD9",
    "tetra": "TETRA",
    "tetra10": "TETRA10",
    "pyramid": "PYRAMID",
    "pyramid13": "PYRAMID13",
    "wedge": "WEDGE",
    "wedge15": "WEDGE15",
    "hexahedron": "HEX8",
    "hexahedron20": "HEX20",
    "hexahedron27": "HEX27",
}
# Names of shapes, without the number of nodes that some files append.
_SHAPES = {
    "SPHERE": ("vertex",),
    "CIRCLE": ("vertex",),
    "BAR": ("line",),
    "BEAM": ("line",),
    "TRUSS": ("line",),
    "EDGE": ("line",),
    "TRI": ("triangle",),
    "TRIANGLE": ("triangle",),
    "TRISHELL": ("triangle",),
    "QUAD": ("quad",),
    "SHELL": ("quad", "triangle"),
    "TET": ("tetra",),
    "TETRA": ("tetra",),
    "PYRAMID": ("pyramid",),
    "PYRA": ("pyramid",),
    "WEDGE": ("wedge",),
    "HEX": ("hexahedron",),
    "HEXAHEDRON": ("hexahedron",),
}
# Variables that say what reading says without them, or that writing makes anew.
_MADE_ANEW = re.compile(r"(eb|ns|ss)_status|coor_names|(elem|nset|sset)_var_tab")


@dataclass(frozen=True)
class ExodusNotes:
    """What a file says besides its mesh."""

    title: str = ""
    # By number of the block: its type as the file has it, on which the numbers of sides
    # depend.
    types: dict[int, str] = field(default_factory=dict)
    # By number of the block: the names of those that nothing is in.
    empty: dict[int, str] = field(default_factory=dict)
    # By ``"ns"`` for node sets and ``"ss"`` for side sets, and number: the same of sets.
    empty_sets: dict[str, dict[int, str]] = field(default_factory=dict)
    # By name of the variable: ``qa_records`` and ``info_records``.
    records: dict[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Block:
    """An element block: its place in the file, its number and its elements."""

    place: int
    number: int
    type: str
    cells: Cells

    @property
    def size(self) -> int:
        return len(self.cells.data)


def read(path: Path) -> FileMesh:
    """A mesh with blocks as the cell data ``exodus:block`` and their names.

    Values of a later time step have a zero byte and its number behind their name. What
    nothing here has looked at is named as left out.
    """
    root = load(path, "netcdf")
    _refuse_polyhedra(root)
    # Find the blocks first: elements are numbered through them in the order of the file,
    # and by these numbers sets and maps refer to elements.
    names = _texts_of_letters(root, "eb_names")
    blocks = _nonempty_blocks(root)
    sizes = [block.size for block in blocks]
    mesh = FileMesh(_node_coordinates(root), [block.cells for block in blocks])
    mesh.point_data = _node_values(root)
    mesh.cell_data = {BLOCK: [np.full(b.size, b.number) for b in blocks]}
    mesh.cell_data |= _element_values(root, blocks)
    mesh.cell_data |= _attributes_by_block(root, blocks)
    mesh.whole_steps = _global_values(root)
    mesh.times = _times(root)
    _add_node_sets(root, mesh)
    _add_side_sets(root, mesh, sum(sizes))
    mesh.group_names = {BLOCK: _names_of_blocks(blocks, names)}
    mesh.about_exodus = _notes_of_file(root, blocks, names)
    mesh.left_out = [*_take_numbers(root, mesh, sizes), *left_out(root)]
    _forget_plain_blocks(mesh, blocks)
    return mesh


def _forget_plain_blocks(mesh: FileMesh, blocks: Sequence[_Block]) -> None:
    """One block a type, counted from 1 and without a name, says no more than the types."""
    counted = list(range(1, len({b.cells.type for b in blocks}) + 1))
    if [b.number for b in blocks] == counted and not mesh.group_names[BLOCK]:
        del mesh.cell_data[BLOCK]


def _index(key: str) -> int:
    """The number at the end of the name of a variable."""
    # The variables of block, set or result variable N end in N, counted from 1.
    match = re.search(r"\d+$", key)
    if match:
        return int(match[0])
    return 1


def _indices_of_variables(root: Item, pattern: str) -> list[int]:
    """The numbers at the end of all variables of this kind."""
    return sorted(_index(key) for key in root if re.fullmatch(pattern, key))


def _count_time_steps(root: Item) -> int:
    return root.sizes.get("time_step", 1)


def _times(root: Item) -> list[float]:
    """The times of the steps; 0 where there are none."""
    if "time_whole" in root:
        times = root["time_whole"].values.tolist()
    else:
        times = []
    return times or [0.0]


def _node_coordinates(root: Item) -> NDArray[np.float64]:
    if "coord" in root:
        # the oldest files have all in one; where both are there, this is read
        for axis in "xyz":
            if f"coord{axis}" in root:
                root[f"coord{axis}"].skip()
        return np.asarray(root["coord"].values, dtype=np.float64).T
    axes = "xyz"[: root.sizes.get("num_dim", 3)]
    columns = [root[f"coord{axis}"].values for axis in axes]
    return np.column_stack(columns).astype(np.float64)


def _texts_of_letters(root: Item, key: str) -> list[str]:
    """Texts, a row of letters each."""
    if key not in root:
        return []
    rows = root[key].values
    return [b"".join(row).decode("utf-8", "replace").strip("\0 ") for row in rows.tolist()]


def _refuse_polyhedra(root: Item) -> None:
    """Raise MeshprepError for polyhedra, without which it would be another mesh."""
    if any(name.startswith("facconn") for name in root):
        raise MeshprepError(
            "holds polyhedra, which are not supported: split them into tetrahedra"
        )


def _nonempty_blocks(root: Item) -> list[_Block]:
    """The blocks that have elements, in the order of the file."""
    places = _indices_of_variables(root, r"connect\d+")
    numbers = _ids_of_kind(
        root, "eb_prop1", max([*places, root.sizes.get("num_el_blk", 0)])
    )
    return [_read_block(root[f"connect{p}"], p, numbers[p - 1]) for p in places]


def _read_block(variable: Item, place: int, number: int) -> _Block:
    # Rows of connectN are elements, and nodes are counted from 1.
    nodes = variable.values.astype(np.int64) - 1
    elem_type = str(variable.attrs.get("elem_type", "unknown")).strip("\0 ")
    in_file = 0 if number == ZERO else number
    if nodes.ndim != 2:
        raise MeshprepError(
            f"the elements of block {in_file} are of type {elem_type}, whose nodes are not "
            "in rows: split them into triangles, quads or the like"
        )
    cell_type = cell_type_of(elem_type, nodes.shape[1])
    if cell_type is None:
        raise MeshprepError(
            f"the elements of block {in_file} are of type {elem_type} with "
            f"{nodes.shape[1]} nodes, which is not supported: use other elements, or "
            "correct their type"
        )
    # Bring the nodes at edges and faces into VTK's order.
    back = np.argsort(TO_FILE.get(cell_type, range(nodes.shape[1])))
    return _Block(
        place=place, number=number, type=elem_type, cells=Cells(cell_type, nodes[:, back])
    )


def cell_type_of(elem_type: str, nodes: int) -> str | None:
    """Our type of cells of Exodus's elements with this many nodes, or None."""
    # Element types are words in either case, with or without the number of nodes: TRI,
    # tri3 and TRIANGLE are the same element. A number that is there must be right.
    kind = elem_type.upper().rstrip("0123456789")
    digits = elem_type[len(kind) :]
    if int(digits or nodes) != nodes:
        return None
    shapes = _SHAPES.get(kind, ())
    for cell_type in USUAL_TYPE:
        if shape_of(cell_type).name in shapes and node_count(cell_type) == nodes:
            return cell_type
    return None


def _names_of_blocks(blocks: Sequence[_Block], names: Sequence[str]) -> dict[int, str]:
    named = {b.number: names[b.place - 1] for b in blocks if b.place <= len(names)}
    return {number: name for number, name in named.items() if name}


def _ids_of_kind(root: Item, key: str, count: int) -> list[int]:
    """The numbers of this many blocks or sets; from 1 where the file gives none."""
    if key not in root:
        return list(range(1, count + 1))
    # Ids of blocks and sets are free, but unique among those of one kind.
    ids = [int(i) for i in root[key].values.tolist()]
    if (
        len(ids) < count
        or min(ids, default=0) < 0
        or len(set(ids)) < len(ids)
        or ZERO in ids
    ):
        raise MeshprepError(
            f"the numbers '{key}' must be positive, and each another, and none {ZERO}, "
            "which stands for 0 here: correct them"
        )
    return [number or ZERO for number in ids]


# Values at time steps
# ---------------------------------------------------------------------------


def stepped(name: str, step: int) -> str:
    """The name of values at a time step, counted from 0."""
    if step:
        return f"{name}\0{step}"
    return name


def _node_values(root: Item) -> dict[str, NDArray]:
    """Values of nodes by name and step."""
    out: dict[str, NDArray] = {}
    if "vals_nod_var" in root:
        together = root["vals_nod_var"].values
    else:
        together = None
    # Values of variable i at the nodes are rows of vals_nod_var<i>, one a time step.
    for i, name in enumerate(_texts_of_letters(root, "name_nod_var"), 1):
        key = f"vals_nod_var{i}"
        if key in root:
            records = root[key].values
        elif together is not None:
            # the oldest files have all variables in one
            records = together[:, i - 1]
        else:
            continue
        by_step = [[values] for values in records]
        out |= {key: values[0] for key, values in _told_apart(name, by_step).items()}
    return out


def _element_values(root: Item, blocks: Sequence[_Block]) -> dict[str, list[Any]]:
    """Values of elements by name and step; None for a block that has none of a name."""
    out: dict[str, list[Any]] = {}
    # Each block has variables of its own: those that its row of the truth table has a 0
    # for are not there.
    for i, name in enumerate(_texts_of_letters(root, "name_elem_var"), 1):
        keys = [f"vals_elem_var{i}eb{b.place}" for b in blocks]
        records = [root[key].values if key in root else None for key in keys]
        lengths = [len(one) for one in records if one is not None]
        steps = min(lengths, default=0)
        by_step = []
        for step in range(steps):
            of_step = [None if r is None else r[step] for r in records]
            by_step.append(of_step)
        out |= _told_apart(name, by_step)
    return out


def _told_apart(name: str, by_step: Sequence[list[Any]]) -> dict[str, list[Any]]:
    """The values of each step under a name of its own.

    Those that are the same at all steps stand there once, for all. Steps that have nothing
    but NaN are left out, but where all steps after the first are so: these differ from the
    first then.
    """
    if not by_step:
        return {}
    first = by_step[0]
    later = by_step[1:]
    if all(_are_equal(first, values) for values in later):
        return {name: first}
    filled = [not _are_all_nan(values) for values in later]
    out = {name: first}
    for step, (values, has_some) in enumerate(zip(later, filled, strict=True), 1):
        if has_some or not any(filled):
            out[stepped(name, step)] = values
    return out


def _are_equal(one: list[Any], other: list[Any]) -> bool:
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a is not None]
    return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def _are_all_nan(values: list[Any]) -> bool:
    return all(np.isnan(one).all() for one in values if one is not None)


def _attributes_by_block(root: Item, blocks: Sequence[_Block]) -> dict[str, list[Any]]:
    """Attributes of elements, such as thicknesses, by name; unnamed ones get a number."""
    out: dict[str, list[Any]] = {}
    for k, block in enumerate(blocks):
        # Attributes of a block are columns; names for them came later, so that old files
        # have none.
        key = f"attrib{block.place}"
        if key not in root:
            continue
        columns = root[key].values.reshape(block.size, -1).T
        names = _texts_of_letters(root, f"attrib_name{block.place}")
        names += [""] * (len(columns) - len(names))
        for i, (name, values) in enumerate(zip(names, columns, strict=False), 1):
            by_block = out.setdefault(f"{ATTRIBUTE}{name or i}", [None] * len(blocks))
            if by_block[k] is not None:
                raise MeshprepError(
                    f"block {block.number} has two attributes '{name}': rename one"
                )
            by_block[k] = values.astype(np.float64)
    return out


def _global_values(root: Item) -> dict[str, NDArray]:
    """Values of the whole mesh by name, one a step."""
    names = _texts_of_letters(root, "name_glo_var")
    if not names or "vals_glo_var" not in root:
        return {}
    columns = root["vals_glo_var"].values.T
    return {name: values.copy() for name, values in zip(names, columns, strict=True)}


# Sets
# --------------------------------------------------------------------------------------


def _sets_of_kind(
    root: Item, kind: str, word: str
) -> list[tuple[int, str, dict[str, Any]]]:
    """Place, name and attributes of each set of a kind that is there.

    A name that another set has is the title of a set named by its number.
    """
    # Sets that nothing is in have a number and a name, but no variable of their own.
    places = _indices_of_variables(root, {"ns": r"node_ns\d+", "ss": r"elem_ss\d+"}[kind])
    titles = _texts_of_letters(root, f"{kind}_names")
    numbers = _ids_of_kind(root, f"{kind}_prop1", max(places, default=0))
    out: list[tuple[int, str, dict[str, Any]]] = []
    used_names: set[str] = set()
    for index in places:
        number = numbers[index - 1]
        title = titles[index - 1] if index <= len(titles) else ""
        attrs: dict[str, Any] = {"number": number}
        name = title
        if not title or title in used_names:
            name = f"{word} set {number}"
        if title and name != title:
            attrs["title"] = title
        if name in used_names:
            raise MeshprepError(f"two sets are named '{name}': rename one of them")
        used_names.add(name)
        out.append((index, name, attrs))
    return out


def _factors_and_values_of_set(
    root: Item, kind: str, place: int, size: int, steps: int
) -> dict[str, Any]:
    """Distribution factors and values of each entry of a set, by name, in its order."""
    out: dict[str, Any] = {}
    # Distribution factors stand for each node of a node set, and for each node of each
    # side of a side set.
    factors = f"dist_fact_{kind}{place}"
    if factors in root:
        out["factors"] = root[factors].values.copy()
    word = {"ns": "nset", "ss": "sset"}[kind]
    values = {}
    for i, name in enumerate(_texts_of_letters(root, f"name_{word}_var"), 1):
        key = f"vals_{word}_var{i}{kind}{place}"
        if key in root and root[key].values.shape == (steps, size):
            values[name] = root[key].values.copy()
    if values:
        out["values"] = values
    return out


def _add_node_sets(root: Item, mesh: FileMesh) -> None:
    for index, name, attrs in _sets_of_kind(root, "ns", "node"):
        nodes = root[f"node_ns{index}"].values.astype(np.int64) - 1
        mesh.point_sets[name] = nodes
        beside = _factors_and_values_of_set(
            root=root,
            kind="ns",
            place=index,
            size=nodes.size,
            steps=_count_time_steps(root),
        )
        mesh.set_attrs[name] = attrs | beside


def _add_side_sets(root: Item, mesh: FileMesh, n: int) -> None:
    for index, name, attrs in _sets_of_kind(root, "ss", "side"):
        # A side is an element, counted through all blocks, and the number of the side in
        # its type, which counts from 1 here, too.
        elements = root[f"elem_ss{index}"].values.astype(np.int64) - 1
        key = f"side_ss{index}"
        if key in root:
            sides = root[key].values.astype(np.int64)
        else:
            sides = np.zeros(0, np.int64)
        wrong = (
            sides.shape != elements.shape or (elements < 0).any() or (elements >= n).any()
        )
        if wrong:
            raise MeshprepError(
                f"the side set '{name}' does not name a side of one of {n} elements in "
                "each row: the file is damaged"
            )
        beside = _factors_and_values_of_set(
            root=root,
            kind="ss",
            place=index,
            size=elements.size,
            steps=_count_time_steps(root),
        )
        mesh.side_sets[name] = SideSet(elements, sides, attrs | beside)


def _names_of_empty_sets(root: Item) -> dict[str, dict[int, str]]:
    """Node and side sets that nothing is in: their names by kind and number."""
    out: dict[str, dict[int, str]] = {}
    for kind, list_name, dimension in (
        ("ns", r"node_ns\d+", "num_node_sets"),
        ("ss", r"elem_ss\d+", "num_side_sets"),
    ):
        count = root.sizes.get(dimension, 0)
        there = _indices_of_variables(root, list_name)
        numbers = _ids_of_kind(root, f"{kind}_prop1", count)
        names = _texts_of_letters(root, f"{kind}_names")
        out[kind] = _names_of_empty(count=count, there=there, numbers=numbers, names=names)
    return out


def _names_of_empty(
    count: int, there: Sequence[int], numbers: Sequence[int], names: Sequence[str]
) -> dict[int, str]:
    """Of this many blocks or sets those that are not there: their names by number."""
    missing = sorted(set(range(1, count + 1)) - set(there))
    return {numbers[p - 1]: names[p - 1] if p <= len(names) else "" for p in missing}


# What else there is
# -----------------------------------------------------------------------------


def _notes_of_file(
    root: Item, blocks: Sequence[_Block], names: Sequence[str]
) -> ExodusNotes:
    count = root.sizes.get("num_el_blk", 0)
    numbers = _ids_of_kind(root, "eb_prop1", count)
    empty = _names_of_empty(
        count=count, there=[b.place for b in blocks], numbers=numbers, names=names
    )
    records = {
        key: root[key].values.copy()
        for key in ("qa_records", "info_records")
        if key in root
    }
    types = {b.number: b.type for b in blocks}
    title = str(root.attrs.get("title", ""))
    return ExodusNotes(
        title=title,
        types=types,
        empty=empty,
        empty_sets=_names_of_empty_sets(root),
        records=records,
    )


def _take_numbers(root: Item, mesh: FileMesh, sizes: Sequence[int]) -> list[str]:
    """Give nodes and elements the numbers of the file; return names that fit neither."""
    # The maps hold the numbers by which users know nodes and elements; without a map
    # these are the places from 1. Numbers that occur twice tell nobody apart and are no
    # numbering.
    ends = np.cumsum(sizes)
    lost = []
    places: tuple[tuple[str, dict[str, Any], int], ...] = (
        ("node_num_map", mesh.point_data, len(mesh.points)),
        ("elem_num_map", mesh.cell_data, sum(sizes)),
    )
    for key, data, n in places:
        if key in root:
            numbers = root[key].values
        else:
            numbers = np.arange(1, n + 1)
        if NUMBERS not in data and np.unique(numbers).size == numbers.size == n:
            if key[0] == "n":
                data[NUMBERS] = numbers
            else:
                data[NUMBERS] = np.split(numbers, ends[:-1])
        elif not np.array_equal(numbers, np.arange(1, n + 1)):
            lost.append(f"'{key}'")
    mesh.numbered = True
    return lost


def left_out(root: Item) -> list[str]:
    """What of a file nothing has looked at, by the names of variables."""
    return [f"'{item.path}'" for item in root.untouched() if not _says_nothing(item)]


def _says_nothing(item: Item) -> bool:
    """Whether a variable holds what it would without being there."""
    if _MADE_ANEW.fullmatch(item.path):
        return True
    if item.is_group or not item.has_values:
        return False
    values = item.values
    if item.path in ("elem_map", "node_map"):
        return np.array_equal(values.ravel(), np.arange(1, values.size + 1))
    return values.size == 0
