"""The mesh of a deck: cells by type, sets, and index lists of other numbers in the deck."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import as_indices

from ...mesh import Dat, IndexList, Mesh
from ...mesh.assemble import Block, CellRange, assemble
from ..format.reduce import with_used_names
from .content import (
    DECK,
    NORMAL,
    OTHERS,
    REFERENCES,
    TYPE,
    Content,
    Numbers,
    Place,
    other_numbers,
)
from .types import MIDDLE, NUMBER, TYPES, USUAL


def build(content: Content) -> Mesh:
    """The mesh; raises MeshprepError for numbers and sets that are not there."""
    # Find cells and nodes first, as sets and loads name them by their numbers.
    nodes = Numbers([*content.nodes])
    points = _padded_coordinates(content)
    kinds = {NUMBER[name]: name for name, _ in content.blocks}
    mesh, ranges = assemble(
        points=points,
        blocks=list(_blocks_by_type(content, nodes, plane=points.shape[1] < 3)),
        node_label=nodes.numbers,
        tag_names={(TYPE, dim): kinds for dim in range(4)},
        dats=_normals(content, nodes),
    )
    elements = _number_elements(content, ranges)
    _check_numeric_names(content)
    # Sets hold others, and need their members before they can be written with new
    # numbers.
    members = {
        key: _numbers_in_set(content=content, key=key, nodes=nodes, elements=elements)
        for key in content.sets
    }
    _check_sets_in_step(content, members)
    lists = [
        *_lists_of_sets(content=content, members=members, nodes=nodes, elements=elements),
        *_references(content, nodes, elements),
        *_other_elements(content, nodes),
    ]
    items = [
        _placed(content=content, item=item, members=members, elements=elements)
        for item in content.items
    ]
    kept = tuple(with_used_names(t) for t in mesh.tags if t.group_id.size)
    extras = {DECK: tuple(_merge_texts(items))}
    return replace(mesh, tags=kept, lists=tuple(lists), extras=extras)


def _padded_coordinates(content: Content) -> NDArray[np.float64]:
    """Coordinates; those that are left out at the end are 0."""
    dim = max((p.shape[1] for p in content.points), default=3)
    padded = [np.pad(p, ((0, 0), (0, dim - p.shape[1]))) for p in content.points]
    return np.concatenate(padded or [np.zeros((0, 3))])


def _normals(content: Content, nodes: Numbers) -> list[Dat]:
    if not content.normals:
        return []
    index = nodes.places(np.array([*content.normals], np.int64)).astype(np.int32)
    order = np.argsort(index)
    values = np.array([*content.normals.values()])
    return [Dat(name=NORMAL, set="nodes", values=values[order], index=index[order])]


def _blocks_by_type(content: Content, nodes: Numbers, *, plane: bool) -> Iterator[Block]:
    counts = _only_count(content)
    for name, rows in content.blocks:
        cell_type = TYPES[name]
        table = _rows_of_numbers(
            known=nodes, wanted=rows[:, 1:], what="node", who=f"an element of type {name}"
        )
        if cell_type == "line3":
            table = table[:, MIDDLE]
        # The usual type of a cell needs no tag: S4 in space and CPS4 in a plane, for
        # instance.
        usual = USUAL[cell_type][0 if plane else 1]
        if usual == name:
            kind = 0
        else:
            kind = NUMBER[name]
        tags = {TYPE: np.full(len(rows), kind)}
        yield Block(
            cell_type=cell_type,
            nodes=table,
            label=None if counts else rows[:, 0],
            tags=tags,
        )


def _only_count(content: Content) -> bool:
    """Whether the numbers of cells only count, type by type."""
    types = list(dict.fromkeys(TYPES[name] for name, _ in content.blocks))
    found = sorted(content.blocks, key=lambda block: types.index(TYPES[block[0]]))
    numbers = np.concatenate([rows[:, 0] for _, rows in found])
    return bool(np.array_equal(numbers, np.arange(1, numbers.size + 1)))


@dataclass(frozen=True, eq=False)
class _Elements:
    """The numbers of the elements: of the cells, where these are, and of all others."""

    every: Numbers
    cells: Numbers
    sets: list[str]  # of cells, each once
    of: NDArray[np.int64]  # which of the sets each cell is in
    row: NDArray[np.int64]  # where it stands there
    others: frozenset[int]


def _number_elements(content: Content, ranges: Sequence[CellRange]) -> _Elements:
    """Where elements are; raises MeshprepError where a number stands twice."""
    # Elements of all types share their numbers.
    cells = np.concatenate([rows[:, 0] for _, rows in content.blocks])
    others = other_numbers(content)
    all_numbers = Numbers([*cells.tolist(), *others])
    twice = all_numbers.twice()
    if twice is not None:
        raise MeshprepError(f"element {twice} stands twice: give one another number")
    sets = list(dict.fromkeys(r.set for r in ranges))
    sizes = [len(rows) for _, rows in content.blocks]
    return _Elements(
        every=all_numbers,
        cells=Numbers(cells),
        sets=sets,
        of=np.repeat([sets.index(r.set) for r in ranges], sizes),
        row=np.concatenate([np.arange(r.start, r.stop) for r in ranges]),
        others=frozenset(others),
    )


def _rows_of_numbers(
    known: Numbers, wanted: NDArray[np.int64], what: str, who: str
) -> NDArray[np.int64]:
    """Where these numbers stand among those of the file; ``who`` names them."""
    rows = known.places(wanted)
    if (rows < 0).any():
        number = wanted[rows < 0][0]
        raise MeshprepError(
            f"{who} names {what} {number}, which is not there: add or remove it"
        )
    return rows


def _check_numeric_names(content: Content) -> None:
    for key, where in content.checks:
        if key not in content.sets:
            kind, _, number = key.partition(" ")
            raise MeshprepError(
                f"{where}: cannot tell what {kind}={number} is, as there is no such set: "
                "name one"
            )


def _check_sets_in_step(content: Content, members: Mapping[str, NDArray[np.int64]]) -> None:
    """Refuse equations through sets whose order is that of the numbers, which change."""
    for where, keyword, names in content.in_step:
        long = []
        for name in names:
            key = f"NSET {name.strip(chr(34)).upper().rpartition('.')[2]}"
            if key in members and members[key].size > 1:
                long.append((name, key))
        if len(long) < 2:
            continue
        for name, key in long:
            if key not in content.unsorted:
                raise MeshprepError(
                    f"{where}: *{keyword} goes through the sets {long[0][0]} and "
                    f"{long[1][0]} by the numbers of their nodes, which change: make "
                    f"{name} UNSORTED, or name nodes"
                )


def _numbers_in_set(
    content: Content, key: str, nodes: Numbers, elements: _Elements
) -> NDArray[np.int64]:
    """The numbers of a set, each once, those of sets that it names included."""
    if key.startswith("NSET"):
        known = nodes
    else:
        known = elements.every
    found = dict.fromkeys(_all_members(content=content, key=key, known=known, above=()))
    return np.array([*found], np.int64)


def _all_members(
    content: Content, key: str, known: Numbers, above: Sequence[str]
) -> list[int]:
    out: list[int] = []
    kind, _, name = key.partition(" ")
    for member in content.sets[key]:
        if isinstance(member, int):
            out.append(member)
        elif isinstance(member, range):
            out += known.between(member)
        else:
            if name.startswith("assembly "):
                scoped = "assembly "
            else:
                scoped = ""
            # A name may have that of an instance before it, and be one of the assembly or
            # of the part.
            plain = member.strip('"').upper().rpartition(".")[2]
            tries = [f"{kind} {scoped}{member.upper()}", f"{kind} {plain}"]
            usable = [t for t in tries if t in content.sets and t not in (*above, key)]
            if not usable:
                raise MeshprepError(
                    f"*{kind} {content.names[key]} takes in the set '{member}', which is "
                    "not there: name one that is"
                )
            out += _all_members(
                content=content, key=usable[0], known=known, above=(*above, key)
            )
    return out


def _lists_of_sets(
    content: Content,
    members: Mapping[str, NDArray[np.int64]],
    nodes: Numbers,
    elements: _Elements,
) -> Iterator[IndexList]:
    for key, numbers in members.items():
        name = content.names[key]
        who = f"the set '{name}'"
        if key.startswith("NSET"):
            index = _rows_of_numbers(known=nodes, wanted=numbers, what="node", who=who)
            attrs = {"kind": "point_set", "place": key}
            if index.size:
                yield IndexList(
                    name=name, set="nodes", index=as_indices(index, name), attrs=attrs
                )
            continue
        # A set of elements becomes a list for each type of cell; its other elements stay
        # in the text of the deck.
        cells = numbers[~np.isin(numbers, [*elements.others])]
        at = _rows_of_numbers(known=elements.cells, wanted=cells, what="element", who=who)
        for i, set_name in enumerate(elements.sets):
            rows = elements.row[at[elements.of[at] == i]]
            attrs = {"kind": "cell_set", "place": key}
            if rows.size:
                yield IndexList(
                    name=name, set=set_name, index=as_indices(rows, name), attrs=attrs
                )


def _references(
    content: Content, nodes: Numbers, elements: _Elements
) -> Iterator[IndexList]:
    """Numbers in loads, conditions and options, each with its place in the deck."""
    who = "a load, condition or option"
    name = "numbers of nodes in the deck"
    numbers = np.array(content.references["node"], np.int64)
    index = _rows_of_numbers(known=nodes, wanted=numbers, what="node", who=who)
    if index.size:
        attrs: dict[str, Any] = {"kind": REFERENCES, "place": "node"}
        attrs["at"] = np.arange(index.size)
        yield IndexList(name=name, set="nodes", index=as_indices(index, name), attrs=attrs)
    name = "numbers of elements in the deck"
    numbers = np.array(content.references["element"], np.int64)
    # Numbers of elements that loops do not run over are kept with their place in the
    # deck.
    of_cells = np.flatnonzero(~np.isin(numbers, [*elements.others]))
    cell = _rows_of_numbers(
        known=elements.cells, wanted=numbers[of_cells], what="element", who=who
    )
    for i, set_name in enumerate(elements.sets):
        inside = elements.of[cell] == i
        if inside.any():
            attrs = {"kind": REFERENCES, "place": "element", "at": of_cells[inside]}
            rows = elements.row[cell[inside]]
            yield IndexList(
                name=name, set=set_name, index=as_indices(rows, name), attrs=attrs
            )


def _other_elements(content: Content, nodes: Numbers) -> Iterator[IndexList]:
    """The nodes of the elements that loops do not run over, a list a type."""
    for name, rows in content.others.items():
        flat = np.array([*chain.from_iterable(row[1:] for row in rows)], np.int64)
        # 0 stands for a node that is left out, as that of a spring to the ground.
        is_node = flat != 0
        index = _rows_of_numbers(
            known=nodes, wanted=flat[is_node], what="node", who=f"an element of type {name}"
        )
        attrs = {
            "kind": OTHERS,
            "place": "others",
            "type": name,
            "numbers": tuple(row[0] for row in rows),
            "widths": tuple(len(row) - 1 for row in rows),
            "given": is_node,
        }
        title = f"elements of type {name}"
        yield IndexList(
            name=title, set="nodes", index=as_indices(index, title), attrs=attrs
        )


def _placed(
    content: Content,
    item: str | Place,
    members: Mapping[str, NDArray[np.int64]],
    elements: _Elements,
) -> str | Place:
    """The item with the numbers of elements that loops do not run over."""
    if not isinstance(item, Place):
        return item
    if item.what == "set" and item.key.startswith("ELSET"):
        numbers = [n for n in members[item.key].tolist() if n in elements.others]
        return replace(item, others=tuple(numbers))
    if item.what == "element":
        number = content.references["element"][item.number]
        if number in elements.others:
            return Place("other", number)
    return item


def _merge_texts(items: Sequence[str | Place]) -> Iterator[str | Place]:
    """Texts one after the other as one."""
    texts: list[str] = []
    for item in items:
        if isinstance(item, str):
            texts.append(item)
            continue
        if texts:
            yield "".join(texts)
        texts = []
        yield item
    if texts:
        yield "".join(texts)
