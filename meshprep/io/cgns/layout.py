"""What of a mesh goes where in a CGNS file: zones, sections and groups, and what is lost."""

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
from ..reduce import choose_tag, reduce, reduced_values
from ..registry import Capabilities, Values
from ..su2 import group_numbers
from .elements import FACETS, NUMBER, standard_name
from .groups import BC, NOTES, REGION, SECTION, CgnsNotes, pairs, sections_are_groups, table
from .tree import NAME, Node

_CAST = (*((name, "int32") for name in ("int8", "int16", "uint8", "uint16")), ("uint32", "int64"))
_VALUES = Values(widths=(1,), name=NAME, cast=_CAST, lacks=("uint64",))
CAPABILITIES = Capabilities(
    tuple(NUMBER),
    node_values=_VALUES,
    cell_values=_VALUES,
    values_on="top",
    step="solution",
    lists=("point_set",),
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
        place = np.array([self.names.index(n) for n in names], np.int64)[which.reshape(-1)]
        if set_name in self.on:
            element = np.concatenate([self.on[set_name][0], element])
            place = np.concatenate([self.on[set_name][1], place])
        rows = np.argsort(element, kind="stable")
        self.on[set_name] = element[rows], place[rows]

    def whole(self, set_name: str, n: int) -> NDArray[np.int64] | None:
        """The place of the one group of each of ``n`` elements; None where some have another."""
        element, place = self.on.get(set_name, (np.zeros(0), np.zeros(0, np.int64)))
        return place if np.array_equal(element, np.arange(n)) else None


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


def laid_out(mesh: Mesh) -> CgnsLayout:
    """Where everything of a mesh goes; sections that its order mixes become regions."""
    bare = replace(mesh, tags=())
    kept, lost = _of_polyhedra(bare) if facets_of(mesh) else reduce(bare, CAPABILITIES)
    levels = _levels(kept)
    groups = _groups(mesh, levels, lost)
    found = _layout(kept, levels, groups)
    for mixed in (levels[next(iter(levels))], min(levels.values())):
        for name in [n for n in groups[SECTION].on if found is None and levels[n] >= mixed]:
            element, place = groups[SECTION].on.pop(name)
            groups[REGION].add(name, element, groups[SECTION].names, place)
        found = found or _layout(kept, levels, groups)
    assert found is not None
    layout = CgnsLayout(kept, levels, groups, found, lost, {})
    layout.content = {kind: _content(layout, kind) for kind in (BC, REGION)}
    lists = _lists(layout)
    layout.mesh = replace(kept, tags=tuple(_tags(layout)), lists=tuple(lists))
    return layout


def facets_of(mesh: Mesh) -> tuple[str, ...]:
    """The sets of facets of a mesh of polyhedra or polygons; none of a mesh of known cells."""
    if mesh.cell_sets or mesh.coordinates is None:
        return ()
    facets = tuple(n for n in FACETS if f"{n}->cells" in mesh.maps)
    return facets if all(f"{n}->nodes" in mesh.maps for n in facets) else ()


def zone_of(mesh: Mesh) -> Node:
    """The zone of the file that a mesh is from; an empty one where it is from another."""
    bases = (n for n in notes_of(mesh).nodes if n.label == "CGNSBase_t")
    return next((z for base in bases for z in base.having("Zone_t")), Node("Zone", "Zone_t"))


def notes_of(mesh: Mesh) -> CgnsNotes:
    """What the file that a mesh is from holds besides it; nothing where it is from another."""
    found: CgnsNotes = mesh.extras.get(NOTES, CgnsNotes(()))
    return found


def _of_polyhedra(mesh: Mesh) -> tuple[Mesh, list[str]]:
    """Nodes, facets, cells and the maps that they are made of; no others."""
    facets = facets_of(mesh)
    sets, names = ["nodes", *facets, "cells"], [f"{f}->{to}" for f in facets for to in _ENDS]
    dats, lists, lost = reduced_values(mesh, CAPABILITIES, [mesh.sets["cells"]])
    lost += [f"the map '{name}'" for name in mesh.maps if name not in names]
    lost += [f"the set '{name}'" for name in mesh.sets if name not in sets]
    extras = {k: v for k, v in mesh.extras.items() if k == NOTES}
    maps = [mesh.maps[name] for name in names]
    return Mesh([mesh.sets[name] for name in sets], maps, dats, (), lists, extras), lost


_ENDS = ("cells", "nodes")


def _levels(mesh: Mesh) -> dict[str, int]:
    """The dimension of every set of elements, in the order of their numbers in a file."""
    facets = facets_of(mesh)
    if facets:
        return {**dict.fromkeys(facets, 2), "cells": 3}
    dims = {s.name: shape_of(str(s.cell_type)).dim for s in mesh.cell_sets}
    top = mesh.sets["cells"].parts or ("cells",)
    return {name: dims[name] for name in (*top, *(n for n in dims if n not in top))}


def _groups(mesh: Mesh, levels: dict[str, int], lost: list[str]) -> dict[str, _NamedGroups]:
    """The groups of each kind; another tag is boundary conditions or regions."""
    out = {kind: _NamedGroups() for kind in _KINDS}
    used = [t for t in mesh.tags if t.set in (*levels, "nodes") and (t.group_id.size or t.names)]
    others = [t.name for t in used if t.set != "nodes" and t.name not in _KINDS]
    own = any(t.name in (BC, REGION) for t in used)
    chosen = choose_tag(list(dict.fromkeys(others)), "") if others and not own else ""
    for t in used:
        known = t.name in _KINDS and t.set != "nodes"
        if not known and (t.name != chosen or t.set == "nodes"):
            lost.append(f"groups '{t.name}' on '{t.set}'")
            continue
        element, ids = pairs(t)
        plain = without_sense(t.name, ids)
        if (plain != ids).any():
            lost.append(f"the minus of groups '{t.name}' on '{t.set}' (entities turned round)")
        numbers, which = np.unique(plain, return_inverse=True)
        names = _names(t, numbers.tolist(), lost)
        top = levels.get(t.set) == max(levels.values())
        out[t.name if known else REGION if top else BC].add(t.set, element, names, which)
    return out


def _names(tag: Tag, used: Sequence[int], lost: list[str]) -> list[str]:
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


def _layout(
    mesh: Mesh, levels: dict[str, int], groups: dict[str, _NamedGroups]
) -> list[Chunk] | None:
    """The elements section by section; None where the order mixes them."""
    chunks = []
    for name in levels:
        n, found, kind = mesh.size(name), groups[SECTION], str(mesh.sets[name].cell_type or name)
        word = notes_of(mesh).sections.get(kind) or standard_name(kind)
        if name not in found.on:
            found.names += [word] if word not in found.names else []
            section: NDArray[np.int64] | None = np.full(n, found.names.index(word))
        else:
            section = found.whole(name, n)
        runs = None if section is None else _runs(section)
        if section is None or runs is None:
            return None
        chunks += [Chunk(int(section[r.start]), name, r) for r in runs]
    known: Sequence[str] = notes_of(mesh).order
    names = [groups[SECTION].names[i] for i in dict.fromkeys(c.section for c in chunks)]
    known = [n for n in known if n in names] + [n for n in names if n not in known]
    rank = {groups[SECTION].names.index(n): i for i, n in enumerate(known)}
    return _in_order(chunks, rank, levels)


def _runs(values: NDArray[np.int64]) -> list[slice] | None:
    """Where they are equal from one to the next; None where they come back."""
    ends = np.concatenate([[0], np.flatnonzero(np.diff(values)) + 1, [values.size]])
    ends = ends[values.size == 0 :]
    if len(np.unique(values[ends[:-1]])) < len(ends) - 1:
        return None
    return [slice(a, b) for a, b in pairwise(ends.tolist())]


def _in_order(
    chunks: Sequence[Chunk], rank: Mapping[int, int], levels: dict[str, int]
) -> list[Chunk] | None:
    """Section by section; None where reading would give the mesh another order."""
    sets = list(levels)
    out = sorted(chunks, key=lambda c: (rank[c.section], sets.index(c.set)))
    seen: dict[str, list[Chunk]] = {}
    for c in out:
        seen.setdefault(c.set, []).append(c)
    for of_set in seen.values():
        starts = [c.rows.start for c in of_set]
        if starts != sorted(starts):
            return None
    top = [s for s in levels if levels[s] == max(levels.values()) and s in seen]
    return out if [s for s in seen if s in top] == top else None


def _content(layout: CgnsLayout, kind: str) -> dict[str, list[tuple[str, NDArray[np.int64]]]]:
    """The groups in the order of the file: as they stood there, then new ones."""
    groups, label = layout.groups[kind], {BC: "BC_t", REGION: "ZoneSubRegion_t"}[kind]
    nodes = [n for n in zone_of(layout.mesh).walk() if n.label == label]
    order = list(dict.fromkeys([*(n.name for n in nodes), *groups.names]))
    found: dict[str, list[tuple[str, NDArray[np.int64]]]] = {}
    for name, (element, place) in groups.on.items():
        for i in np.unique(place).tolist():
            found.setdefault(groups.names[i], []).append((name, element[place == i]))
    return {name: found[name] for name in order if name in found}


def _lists(layout: CgnsLayout) -> list[IndexList]:
    """Node sets whose names a file can hold."""
    taken, out = set(layout.content[BC]), []
    for one in layout.mesh.lists:
        if not re.fullmatch(NAME, one.name) or one.name in taken or not one.index.size:
            layout.lost.append(f"the list '{one.name}' of '{one.set}' (its name)")
            continue
        taken.add(one.name)
        out.append(IndexList(one.name, one.set, one.index, {"kind": "point_set"}))
    return out


def _tags(layout: CgnsLayout) -> list[Tag]:
    """The tags that reading gives."""
    out = []
    for kind in (BC, REGION):
        numbers = group_numbers(list(layout.content[kind]))
        for name, (element, place) in layout.groups[kind].on.items():
            ids = np.array([numbers.get(n, 0) for n in layout.groups[kind].names], np.int64)[place]
            out.append(_tag(layout, kind, name, element, ids, numbers))
    words = layout.groups[SECTION].names
    numbers = group_numbers(list(dict.fromkeys(words[c.section] for c in layout.chunks)))
    for dim in set(layout.levels.values()):
        sets = [name for name, d in layout.levels.items() if d == dim]
        used: dict[str, set[str]] = {}
        for c in (c for c in layout.chunks if c.set in sets):
            kind = str(layout.mesh.sets[c.set].cell_type or c.set)
            used.setdefault(kind, set()).add(words[c.section])
        bare = not any(name in layout.groups[BC].on for name in sets)
        if used and sections_are_groups(used, top=dim == max(layout.levels.values()), bare=bare):
            for name in sets:
                ids = np.zeros(layout.mesh.size(name), np.int64)
                for c in (c for c in layout.chunks if c.set == name):
                    ids[c.rows] = numbers[words[c.section]]
                out.append(_tag(layout, SECTION, name, np.arange(ids.size), ids, numbers))
    return out


def _tag(
    layout: CgnsLayout,
    kind: str,
    set_name: str,
    element: NDArray[np.int64],
    ids: NDArray[np.int64],
    numbers: Mapping[str, int],
) -> Tag:
    have = set(np.unique(ids).tolist())
    names = {i: n for n, i in numbers.items() if i in have and str(i) != n}
    found = table(layout.mesh.size(set_name), element, ids, list(numbers.values()))
    if isinstance(found, GroupTable):
        return Tag(kind, set_name, found.values, found.group_offset, found.group_id, names)
    return Tag.from_ids(kind, set_name, found, names)
