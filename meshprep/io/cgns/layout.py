"""Where a mesh goes in a CGNS file: zones, sections and groups, and what is lost."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...mesh import IndexList, Mesh, Tag
from ...mesh.assemble import GroupTable
from ...mesh.cells import shape_of
from ...topology.tags import without_sense
from ..format import Capabilities, Values
from ..format.reduce import choose_tag, reduce, reduced_values
from ..su2 import group_numbers
from .elements import FACETS, NUMBER, standard_name
from .groups import (
    BC,
    NOTES,
    ORDER,
    REGION,
    SECTION,
    CgnsNotes,
    pairs,
    sections_are_groups,
    table,
)
from .tree import NAME, Node

_CAST = (
    *((name, "int32") for name in ("int8", "int16", "uint8", "uint16")),
    ("uint32", "int64"),
)
_VALUES = Values(widths=(1,), name=NAME, cast=_CAST, lacks=("uint64",))
CAPABILITIES = Capabilities(
    tuple(NUMBER),
    node_values=_VALUES,
    cell_values=_VALUES,
    values_on="top",
    step="solution",
    lists=("point_set", ORDER),
    plane=True,
    extras=(NOTES,),
)
_KINDS = (SECTION, BC, REGION)


@dataclass(eq=False)
class _NamedGroups:
    """Groups by name; by set the elements, ascending, and the place of a name for each."""

    names: list[str] = field(default_factory=list)
    on: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]] = field(default_factory=dict)

    def add(
        self,
        set_name: str,
        element: NDArray[np.int64],
        names: Sequence[str],
        which: NDArray[np.integer],
    ) -> None:
        """Put elements of a set into groups: ``names[which[i]]`` for ``element[i]``."""
        self.names += [n for n in dict.fromkeys(names) if n not in self.names]
        number_of_name = np.array([self.names.index(n) for n in names], np.int64)[
            which.reshape(-1)
        ]
        if set_name in self.on:
            element = np.concatenate([self.on[set_name][0], element])
            number_of_name = np.concatenate([self.on[set_name][1], number_of_name])
        rows = np.argsort(element, kind="stable")
        self.on[set_name] = element[rows], number_of_name[rows]

    def whole(self, set_name: str, n: int) -> NDArray[np.int64] | None:
        """The place of the single group of each of ``n`` elements, or None.

        None says that some elements have no group, or several.
        """
        element, place = self.on.get(set_name, (np.zeros(0), np.zeros(0, np.int64)))
        if np.array_equal(element, np.arange(n)):
            return place
        return None


@dataclass(frozen=True)
class Chunk:
    """Elements of one set that stand together in a section, by the place of its name."""

    section: int
    set: str
    rows: slice


@dataclass(eq=False)
class CgnsLayout:
    """The mesh as the file will give it back, and where everything goes."""

    mesh: Mesh
    levels: dict[str, int]
    groups: dict[str, _NamedGroups]
    chunks: list[Chunk]  # in the order of the file
    lost: list[str]
    # By kind: the name of each group in the order of the file, and its elements by set.
    content: dict[str, dict[str, list[tuple[str, NDArray[np.int64]]]]]
    # By kind and name: the elements of a group in the order of the values beside them.
    ordered: dict[tuple[str, str], list[IndexList]] = field(default_factory=dict)


def laid_out(mesh: Mesh) -> CgnsLayout:
    """Where everything of a mesh goes; sections that its order mixes become regions."""
    bare = replace(mesh, tags=())
    if facets_of(mesh):
        writable, lost = _of_polyhedra(bare)
    else:
        writable, lost = reduce(bare, CAPABILITIES)
    # Put elements into the sections that they were in. Where the order mixes these, turn
    # the sections into regions: first those of cells, then those of borders too.
    levels = _levels(writable)
    groups = _groups_by_kind(mesh, levels, lost)
    cgns_layout = _chunks_by_section(writable, levels, groups)
    for mixed in (levels[next(iter(levels))], min(levels.values())):
        for name in [
            n for n in groups[SECTION].on if cgns_layout is None and levels[n] >= mixed
        ]:
            element, place = groups[SECTION].on.pop(name)
            groups[REGION].add(name, element, groups[SECTION].names, place)
        cgns_layout = cgns_layout or _chunks_by_section(writable, levels, groups)
    assert cgns_layout is not None
    layout = CgnsLayout(
        mesh=writable,
        levels=levels,
        groups=groups,
        chunks=cgns_layout,
        lost=lost,
        content={},
    )
    layout.content = {kind: _content(layout, kind) for kind in (BC, REGION)}
    layout.ordered = _ordered_groups(layout)
    # The lists that come back are those of nodes, and those that values stand beside.
    lists = [*_writable_node_sets(layout)]
    for ordered in layout.ordered.values():
        lists += ordered
    layout.mesh = replace(
        writable, tags=tuple(_tags_after_reading(layout)), lists=tuple(lists)
    )
    return layout


def facets_of(mesh: Mesh) -> tuple[str, ...]:
    """The sets of facets of a mesh of polyhedra or polygons; none for other meshes."""
    if mesh.cell_sets or mesh.coordinates is None:
        return ()
    facets = tuple(n for n in FACETS if f"{n}->cells" in mesh.maps)
    if all(f"{n}->nodes" in mesh.maps for n in facets):
        return facets
    return ()


def zone_of(mesh: Mesh) -> Node:
    """The zone of the file that a mesh is from; an empty one where it is from another."""
    for node in notes_of(mesh).nodes:
        if node.label == "CGNSBase_t":
            for zone in node.having("Zone_t"):
                return zone
    return Node("Zone", "Zone_t")


def notes_of(mesh: Mesh) -> CgnsNotes:
    """Everything else in the file that the mesh is from; nothing for other meshes."""
    found: CgnsNotes = mesh.extras.get(NOTES, CgnsNotes(()))
    return found


def _of_polyhedra(mesh: Mesh) -> tuple[Mesh, list[str]]:
    """Nodes, facets, cells and the maps that they are made of; no others."""
    facets = facets_of(mesh)
    sets = ["nodes", *facets, "cells"]
    names = []
    for facet in facets:
        names += [f"{facet}->{end}" for end in _ENDS]
    # those of facets that have values stay, too
    ordered = [i for i in mesh.lists if i.attrs.get("kind") == ORDER and i.set in sets]
    rest = replace(mesh, lists=tuple(i for i in mesh.lists if i not in ordered))
    dats, lists, lost = reduced_values(rest, CAPABILITIES, [mesh.sets["cells"]])
    lists += ordered
    lost += [f"the map '{name}'" for name in mesh.maps if name not in names]
    lost += [f"the set '{name}'" for name in mesh.sets if name not in sets]
    extras = {k: v for k, v in mesh.extras.items() if k == NOTES}
    maps = [mesh.maps[name] for name in names]
    return Mesh(
        sets=[mesh.sets[name] for name in sets],
        maps=maps,
        dats=dats,
        tags=(),
        lists=lists,
        extras=extras,
    ), lost


_ENDS = ("cells", "nodes")


def _levels(mesh: Mesh) -> dict[str, int]:
    """The dimension of every set of elements, in the order of their numbers in a file."""
    facets = facets_of(mesh)
    if facets:
        return {**dict.fromkeys(facets, 2), "cells": 3}
    dims = {s.name: shape_of(str(s.cell_type)).dim for s in mesh.cell_sets}
    top = mesh.sets["cells"].parts or ("cells",)
    lower = [name for name in dims if name not in top]
    return {name: dims[name] for name in (*top, *lower)}


def _groups_by_kind(
    mesh: Mesh, levels: dict[str, int], lost: list[str]
) -> dict[str, _NamedGroups]:
    """The groups of each kind; another tag is boundary conditions or regions."""
    out = {kind: _NamedGroups() for kind in _KINDS}
    used = [
        t for t in mesh.tags if t.set in (*levels, "nodes") and (t.group_id.size or t.names)
    ]
    others = [t.name for t in used if t.set != "nodes" and t.name not in _KINDS]
    own = any(t.name in (BC, REGION) for t in used)
    if others and not own:
        chosen = choose_tag(list(dict.fromkeys(others)), "")
    else:
        chosen = ""
    for t in used:
        is_own_kind = t.name in _KINDS and t.set != "nodes"
        if not is_own_kind and (t.name != chosen or t.set == "nodes"):
            lost.append(f"groups '{t.name}' on '{t.set}'")
            continue
        # CGNS has no groups with a sense: a surface is in a group or not.
        element, ids = pairs(t)
        plain = without_sense(t.name, ids)
        if (plain != ids).any():
            lost.append(
                f"the minus of groups '{t.name}' on '{t.set}' (entities turned round)"
            )
        numbers, which = np.unique(plain, return_inverse=True)
        names = _group_names(t, numbers.tolist(), lost)
        # Groups of cells are regions, those on their borders boundary conditions.
        top = levels.get(t.set) == max(levels.values())
        out[t.name if is_own_kind else REGION if top else BC].add(
            t.set, element, names, which
        )
    return out


def _group_names(tag: Tag, used: Sequence[int], lost: list[str]) -> list[str]:
    """The name of each group in the file: its own, or its number."""
    empty = [name for number, name in tag.names.items() if number not in used]
    lost += [f"the group '{name}' of '{tag.set}' without elements" for name in empty]
    out: list[str] = []
    for number in used:
        name = tag.names.get(number, str(number))
        if not re.fullmatch(NAME, name) or name in out:
            lost.append(f"the name '{name}' of a group on '{tag.set}'")
            name = str(number)
        out.append(name)
    return out


def _chunks_by_section(
    mesh: Mesh, levels: dict[str, int], groups: dict[str, _NamedGroups]
) -> list[Chunk] | None:
    """The elements section by section; None where the order mixes them."""
    chunks = []
    for name in levels:
        n = mesh.size(name)
        # A set without sections gets one, named after its type.
        tag_groups = groups[SECTION]
        kind = str(mesh.sets[name].cell_type or name)
        word = notes_of(mesh).sections.get(kind) or standard_name(kind)
        if name not in tag_groups.on:
            tag_groups.names += [word] if word not in tag_groups.names else []
            section: NDArray[np.int64] | None = np.full(n, tag_groups.names.index(word))
        else:
            section = tag_groups.whole(name, n)
        if section is None:
            runs = None
        else:
            runs = _runs_of_equal(section)
        if section is None or runs is None:
            return None
        chunks += [Chunk(int(section[r.start]), name, r) for r in runs]
    # Sections of the file stand as they stood there, new ones behind them.
    order: Sequence[str] = notes_of(mesh).order
    used = dict.fromkeys(chunk.section for chunk in chunks)
    names = [groups[SECTION].names[i] for i in used]
    names = [n for n in order if n in names] + [n for n in names if n not in order]
    rank = {groups[SECTION].names.index(name): i for i, name in enumerate(names)}
    return _chunks_in_order(chunks, rank, levels)


def _runs_of_equal(values: NDArray[np.int64]) -> list[slice] | None:
    """Where they are equal from one to the next; None where they come back."""
    ends = np.concatenate([[0], np.flatnonzero(np.diff(values)) + 1, [values.size]])
    ends = ends[values.size == 0 :]
    if len(np.unique(values[ends[:-1]])) < len(ends) - 1:
        return None
    return [slice(a, b) for a, b in pairwise(ends.tolist())]


def _chunks_in_order(
    chunks: Sequence[Chunk], rank: Mapping[int, int], levels: dict[str, int]
) -> list[Chunk] | None:
    """Section by section; None where reading would give the mesh another order."""
    # A set must come back in its order, and the sets of cells in theirs.
    sets = list(levels)
    out = sorted(chunks, key=lambda c: (rank[c.section], sets.index(c.set)))
    chunks_of_section: dict[str, list[Chunk]] = {}
    for c in out:
        chunks_of_section.setdefault(c.set, []).append(c)
    for of_set in chunks_of_section.values():
        starts = [c.rows.start for c in of_set]
        if starts != sorted(starts):
            return None
    top = [
        s for s in levels if levels[s] == max(levels.values()) and s in chunks_of_section
    ]
    if [s for s in chunks_of_section if s in top] == top:
        return out
    return None


def _content(
    layout: CgnsLayout, kind: str
) -> dict[str, list[tuple[str, NDArray[np.int64]]]]:
    """The groups in the order of the file: as they stood there, then new ones."""
    groups = layout.groups[kind]
    # Nodes of the file that was read keep their places.
    label = {BC: "BC_t", REGION: "ZoneSubRegion_t"}[kind]
    nodes = [n for n in zone_of(layout.mesh).walk() if n.label == label]
    order = list(dict.fromkeys([*(n.name for n in nodes), *groups.names]))
    elements_by_name: dict[str, list[tuple[str, NDArray[np.int64]]]] = {}
    for name, (element, place) in groups.on.items():
        for i in np.unique(place).tolist():
            elements_by_name.setdefault(groups.names[i], []).append(
                (name, element[place == i])
            )
    return {name: elements_by_name[name] for name in order if name in elements_by_name}


def _ordered_groups(layout: CgnsLayout) -> dict[tuple[str, str], list[IndexList]]:
    """The lists of groups with values, where these are still the elements of the group."""
    lists_by_name: dict[tuple[str, str], list[IndexList]] = {}
    for index_list in layout.mesh.lists:
        if index_list.attrs.get("kind") == ORDER:
            lists_by_name.setdefault(
                (str(index_list.attrs["of"]), index_list.name), []
            ).append(index_list)
    out = {}
    for kind, name in notes_of(layout.mesh).valued:
        content = layout.content[kind].get(name)
        lists = lists_by_name.get((kind, name), [])
        if content is None:
            continue
        listed = {i.set: np.sort(i.index) for i in lists}
        same = listed.keys() == {s for s, _ in content}
        if same and all(np.array_equal(listed[s], np.sort(e)) for s, e in content):
            out[kind, name] = lists
        else:
            layout.lost.append(f"the values of '{name}', whose elements are others now")
    return out


def _writable_node_sets(layout: CgnsLayout) -> list[IndexList]:
    """Node sets whose names a file can hold."""
    # They are conditions on nodes, and names below one ZoneBC_t differ.
    used_names = set(layout.content[BC])
    out = []
    for index_list in (i for i in layout.mesh.lists if i.attrs.get("kind") != ORDER):
        if (
            not re.fullmatch(NAME, index_list.name)
            or index_list.name in used_names
            or not index_list.index.size
        ):
            layout.lost.append(
                f"the list '{index_list.name}' of '{index_list.set}' (its name)"
            )
            continue
        used_names.add(index_list.name)
        out.append(
            IndexList(
                name=index_list.name,
                set=index_list.set,
                index=index_list.index,
                attrs={"kind": "point_set"},
            )
        )
    return out


def _tags_after_reading(layout: CgnsLayout) -> list[Tag]:
    """The tags that reading gives."""
    # Groups come back under the numbers that reading gives their names.
    out = []
    for kind in (BC, REGION):
        numbers = group_numbers(list(layout.content[kind]))
        for name, (element, place) in layout.groups[kind].on.items():
            ids = np.array(
                [numbers.get(n, 0) for n in layout.groups[kind].names], np.int64
            )[place]
            out.append(
                _tag_of_groups(
                    layout=layout,
                    kind=kind,
                    set_name=name,
                    element=element,
                    ids=ids,
                    numbers=numbers,
                )
            )
    # Sections are groups where they say more than the types of the elements do.
    words = layout.groups[SECTION].names
    numbers = group_numbers(list(dict.fromkeys(words[c.section] for c in layout.chunks)))
    for dim in set(layout.levels.values()):
        sets = [name for name, d in layout.levels.items() if d == dim]
        used: dict[str, set[str]] = {}
        for c in (c for c in layout.chunks if c.set in sets):
            kind = str(layout.mesh.sets[c.set].cell_type or c.set)
            used.setdefault(kind, set()).add(words[c.section])
        bare = not any(name in layout.groups[BC].on for name in sets)
        if used and sections_are_groups(
            used, top=dim == max(layout.levels.values()), bare=bare
        ):
            for name in sets:
                ids = np.zeros(layout.mesh.size(name), np.int64)
                for c in (c for c in layout.chunks if c.set == name):
                    ids[c.rows] = numbers[words[c.section]]
                out.append(
                    _tag_of_groups(
                        layout=layout,
                        kind=SECTION,
                        set_name=name,
                        element=np.arange(ids.size),
                        ids=ids,
                        numbers=numbers,
                    )
                )
    return out


def _tag_of_groups(
    layout: CgnsLayout,
    kind: str,
    set_name: str,
    element: NDArray[np.int64],
    ids: NDArray[np.int64],
    numbers: Mapping[str, int],
) -> Tag:
    have = set(np.unique(ids).tolist())
    names = {i: n for n, i in numbers.items() if i in have and str(i) != n}
    groups = table(
        n=layout.mesh.size(set_name),
        element=element,
        group=ids,
        order=list(numbers.values()),
    )
    if isinstance(groups, GroupTable):
        return Tag(
            name=kind,
            set=set_name,
            values=groups.values,
            group_offset=groups.group_offset,
            group_id=groups.group_id,
            names=names,
        )
    return Tag.from_ids(name=kind, set=set_name, ids=groups, names=names)
