"""Reducing a mesh to what a format can hold, and naming what is lost."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh import Dat, ElementSet, IndexList, Mesh, Tag
from ...mesh.cells import shape_of
from ...topology.tags import without_sense
from .model import Capabilities, Values
from .names import NUMBERS, array_of_group

PREFERRED_TAGS = (
    "physical",
    "medit:ref",
    "su2:tag",
    "exodus:block",
    "nastran:ref",
    "cell_tags",
    "cgns:bc",
    "cgns:region",
)


@dataclass(frozen=True)
class _Job:
    """The mesh, the format, the sets that stay, and the losses found so far."""

    mesh: Mesh
    capabilities: Capabilities
    sets: tuple[ElementSet, ...]
    dim: int
    lost: list[str] = field(default_factory=list)

    @property
    def valued(self) -> tuple[ElementSet, ...]:
        """The sets of cells that can have values."""
        if self.capabilities.values_on == "all":
            return self.sets
        return tuple(
            s for s in self.sets if not s.cell_type or shape_of(s.cell_type).dim == self.dim
        )


def reduce(mesh: Mesh, capabilities: Capabilities) -> tuple[Mesh, list[str]]:
    """The mesh as the format keeps it, and what it loses in a few words each.

    Extras are looked at by :func:`meshprep.io.front.losses`, for every format alike.

    Values that only a part of the elements has are filled with NaN where they are floating
    numbers. Tags become one group an element. Coordinates get a zero where the format wants
    three. O(size of the mesh).

    Raises MeshprepError where the cells of the highest dimension are not written, or there
    are no coordinates: nothing worth writing would be left.
    """
    dim = max((shape_of(str(s.cell_type)).dim for s in mesh.cell_sets), default=0)
    if "nodes" not in mesh.sets or not dim:
        raise MeshprepError("there are no cells to write")
    # Cells decide first: values and groups follow the sets that stay.
    lost: list[str] = []
    job = _Job(
        mesh=mesh,
        capabilities=capabilities,
        sets=_keep_cell_sets(mesh=mesh, capabilities=capabilities, dim=dim, lost=lost),
        dim=dim,
        lost=lost,
    )
    nodes = mesh.sets["nodes"]
    union = [
        _ordered_union(s, mesh, capabilities)
        for s in mesh.sets.values()
        if s.name == "cells" and s.parts
    ]
    maps = [mesh.cell_map(s.name) for s in job.sets]
    dats = _keep_dats(job)
    tags = [*_keep_tags(job, ["nodes"], capabilities.node_tag), *_cell_tags(job)]
    lists = list(_keep_lists(job))
    extras = {k: v for k, v in mesh.extras.items() if k in capabilities.extras}
    return Mesh(
        sets=[nodes, *job.sets, *union],
        maps=maps,
        dats=dats,
        tags=tags,
        lists=lists,
        extras=extras,
    ), lost


def groups_by_tag(mesh: Mesh, name: str) -> dict[str, NDArray[np.int64]]:
    """By set of cells with this tag, the index of each cell's group by first appearance.

    What a format whose blocks of cells are the groups of a tag keeps together
    (:class:`~.model.Format`, ``groups``). O(n log n).
    """
    cells = {s.name for s in mesh.cell_sets if s.size}
    out = {}
    for tag in mesh.tags:
        if tag.name == name and tag.set in cells:
            _, first, group = np.unique(
                tag.first_ids(), return_index=True, return_inverse=True
            )
            out[tag.set] = np.argsort(np.argsort(first))[group.reshape(-1)]
    return out


def reduced_values(
    mesh: Mesh, capabilities: Capabilities, sets: Sequence[ElementSet]
) -> tuple[list[Dat], list[IndexList], list[str]]:
    """Values and lists of a mesh without types of cells, on sets that stay; the losses."""
    job = _Job(mesh=mesh, capabilities=capabilities, sets=tuple(sets), dim=0)
    return _keep_dats(job), list(_keep_lists(job)), job.lost


def _keep_dats(job: _Job) -> list[Dat]:
    of_nodes = (
        _keep_dat(job, d, job.capabilities.node_values) for d in _dats_of_set(job, "nodes")
    )
    dats = [
        _keep_coordinates(job),
        *(d for d in of_nodes if d is not None),
        *_cell_dats(job),
    ]
    _foreign_sets(job)
    return dats


def _ordered_union(union: ElementSet, mesh: Mesh, capabilities: Capabilities) -> ElementSet:
    if not capabilities.type_order:
        return union
    place = {
        p: capabilities.type_order.index(str(mesh.sets[p].cell_type)) for p in union.parts
    }
    return replace(union, parts=tuple(sorted(union.parts, key=place.__getitem__)))


def _keep_cell_sets(
    mesh: Mesh, capabilities: Capabilities, dim: int, lost: list[str]
) -> tuple[ElementSet, ...]:
    sets_left = []
    top = [
        str(s.cell_type) for s in mesh.cell_sets if shape_of(str(s.cell_type)).dim == dim
    ]
    for s in mesh.cell_sets:
        kind = str(s.cell_type)
        below = dim - shape_of(kind).dim
        lower = capabilities.lower == "any" or below == 1
        if kind in capabilities.cell_types and (below == 0 or lower):
            sets_left.append(s)
        elif below == 0:
            raise MeshprepError(
                f"cells of type '{kind}' are not written to this format: use another format"
            )
        else:
            lost.append(f"{s.size} cells of type '{kind}'")
    if capabilities.type_order and top != sorted(top, key=capabilities.type_order.index):
        lost.append(f"the order of the cell types {', '.join(top)}")
    return tuple(sets_left)


def _keep_coordinates(job: _Job) -> Dat:
    points = job.mesh.coordinates
    if points is None:
        raise MeshprepError("the mesh has no coordinates to write: give it some")
    points = points.astype(np.float64, copy=False)
    if points.shape[1] < 3 and not (job.capabilities.plane and points.shape[1] == 2):
        points = np.pad(points, ((0, 0), (0, 3 - points.shape[1])))
    return Dat("coordinates", "nodes", points)


def _dats_of_set(job: _Job, set_name: str) -> Iterable[Dat]:
    """The dats of a set but the coordinates; a name that repeats is lost."""
    seen_names = set()
    for d in job.mesh.dats:
        if d.set != set_name or (d.name, d.set) == ("coordinates", "nodes"):
            continue
        if _written_name(job, d) in seen_names:
            job.lost.append(f"more than one time step of '{d.name}' on '{set_name}'")
            continue
        seen_names.add(_written_name(job, d))
        yield d


def _written_name(job: _Job, d: Dat) -> tuple[str, str]:
    marks = (job.capabilities.step, job.capabilities.part)
    return d.name, "\0".join(str(d.attrs.get(mark, "")) for mark in marks)


def _cell_dats(job: _Job) -> list[Dat]:
    """Dats of cells: one of each name on every set, filled where there is none.

    Those of a part of the mesh stay as they are.
    """
    out: list[Dat] = []
    dats_by_name: dict[tuple[str, str], dict[str, Dat]] = {}
    for s in job.valued:
        for dat in _dats_of_set(job, s.name):
            kept_dat = _keep_dat(job, dat, job.capabilities.cell_values)
            if kept_dat is not None and job.capabilities.part in kept_dat.attrs:
                out.append(kept_dat)
            elif kept_dat is not None:
                dats_by_name.setdefault(_written_name(job, dat), {})[s.name] = kept_dat
    # Files have an array for all blocks: floating numbers can be filled where a set has
    # none, whole numbers cannot.
    for (name, _), by_set in dats_by_name.items():
        first = next(iter(by_set.values()))
        shapes = {(dat.values.shape[1:], dat.values.dtype.kind) for dat in by_set.values()}
        absent = [s for s in job.valued if s.name not in by_set]
        if len(shapes) > 1 or (absent and first.values.dtype.kind != "f"):
            job.lost.append(f"values '{name}' of cells, as {_why_sets_are_lost(absent)}")
            continue
        out += by_set.values()
        shape = first.values.shape[1:]
        dtype = first.values.dtype
        nothing = (np.full((s.size, *shape), np.nan, dtype) for s in absent)
        attrs = first.attrs
        out += [
            Dat(name=name, set=s.name, values=v, index=None, attrs=attrs)
            for s, v in zip(absent, nothing, strict=True)
        ]
    return out


def _why_sets_are_lost(absent: Sequence[ElementSet]) -> str:
    if absent:
        return f"the integers are not given on '{absent[0].name}'"
    return "they differ in shape from set to set"


def _keep_dat(job: _Job, d: Dat, able: Values | None) -> Dat | None:
    """The dat as the format writes it, or None with a line in the losses."""
    text = f"values '{d.name}' on '{d.set}'"
    if able is None:
        job.lost.append(text)
        return None
    # Refuse what the format has no place for.
    values = d.values
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    partial = job.capabilities.part in d.attrs
    if partial:
        n = len(values)
    else:
        n = job.mesh.size(d.set)
    reason = _why_dat_is_lost(d=d, values=values, able=able, n=n)
    if reason:
        job.lost.append(f"{text} ({reason})")
        return None
    # Widen types that it lacks, and fill elements without a value.
    values = values.astype(dict(able.cast).get(values.dtype.name, values.dtype), copy=False)
    part = job.capabilities.part
    if part in d.attrs:
        return Dat(
            name=d.name,
            set=d.set,
            values=values,
            index=d.index,
            attrs={part: d.attrs[part]},
        )
    if d.index is not None:
        nothing = np.nan if values.dtype.kind == "f" else 0
        full = np.full((job.mesh.size(d.set), *values.shape[1:]), nothing, values.dtype)
        full[d.index] = values
        values = full
    step = job.capabilities.step
    return Dat(
        name=d.name,
        set=d.set,
        values=values,
        index=None,
        attrs={step: d.attrs[step]} if step in d.attrs else {},
    )


def _why_dat_is_lost(d: Dat, values: NDArray, able: Values, n: int) -> str:
    # Numbers of nodes and cells are no values: formats have a place of their own for
    # them.
    if d.is_numbering and 0 < values.min() <= values.max() <= able.numbers:
        return ""
    if values.dtype.kind not in able.kinds:
        known = {"i": "integers", "u": "integers", "f": "floating numbers", "U": "texts"}
        return known.get(values.dtype.kind, f"of type {values.dtype}")
    half = values.dtype.itemsize == 2 and values.dtype.kind == "f"
    wide = values.dtype.itemsize > 8 and values.dtype.kind != "U"
    if wide or half or values.dtype.name in able.lacks:
        return f"of type {values.dtype}"
    if values.ndim > 2 or values.shape[1:] == (0,):
        return f"of shape {values.shape[1:]} each"
    if values.ndim == 1:
        width = 1
    else:
        width = values.shape[1]
    if able.widths and width not in able.widths:
        if width == 1:
            return "one component each"
        return f"{width} components each"
    if not re.fullmatch(able.name, d.name):
        return "names of this form are not written"
    if d.index is not None and d.index.size < n and values.dtype.kind != "f":
        return f"integers on {d.index.size} of {n} elements"
    return ""


def _cell_tags(job: _Job) -> list[Tag]:
    names = [s.name for s in job.sets]
    if job.capabilities.tag_on == "facets":
        top = [s.name for s in job.sets if shape_of(str(s.cell_type)).dim == job.dim]
        for t in job.mesh.tags:
            if t.set in top and t.group_id.size:
                job.lost.append(f"groups '{t.name}' on '{t.set}'")
        names = [n for n in names if n not in top]
    return _keep_tags(job, names, job.capabilities.tag)


def _keep_tags(job: _Job, sets: Sequence[str], able: str | None) -> list[Tag]:
    """The tags of these sets that the format holds, under the names they come back with."""
    tags = [t for t in job.mesh.tags if t.set in sets and (t.group_id.size or t.names)]
    names = list(dict.fromkeys(t.name for t in tags))
    if able and names:
        chosen = [choose_tag(names, able)]
    else:
        chosen = []
    if not job.capabilities.other_tags:
        chosen = [n for n in chosen if n == able]
    if able == "*":
        # nodes and cells carry the same there
        values = job.capabilities.cell_values
        chosen = [
            n for n in names if values and re.fullmatch(values.name, array_of_group(n))
        ]
    out = []
    for t in tags:
        if t.name in chosen:
            out.append(_single_group_tag(job, t, t.name if able == "*" else str(able)))
        else:
            job.lost.append(f"groups '{t.name}' on '{t.set}'")
    return out


def choose_tag(names: Sequence[str], own: str) -> str:
    wanted = (n for n in (own, *PREFERRED_TAGS) if n in names)
    return next(wanted, names[0])


def _single_group_tag(job: _Job, t: Tag, name: str) -> Tag:
    """The tag with one group an element, and with names only where the format has them."""
    # A number an element holds one group, and 0 is none.
    if (np.diff(t.group_offset) > 1).any():
        job.lost.append(
            f"all but the first group of each element in '{t.name}' on '{t.set}'"
        )
    if (t.group_id == 0).any():
        job.lost.append(f"the group 0 of '{t.name}' on '{t.set}'")
    ids = t.first_ids()
    names = dict(t.names)
    if name != t.name and (without_sense(t.name, ids) != ids).any():
        job.lost.append(
            f"the minus of groups '{t.name}' on '{t.set}' (entities turned round)"
        )
        ids = without_sense(t.name, ids)
    if names and not job.capabilities.group_names:
        job.lost.append(f"the names of the groups '{t.name}' on '{t.set}'")
        names = {}
    return Tag.from_ids(name=name, set=t.set, ids=ids, names=names)


def _keep_lists(job: _Job) -> Iterable[IndexList]:
    stored = {"nodes", *(s.name for s in job.sets)}
    for i in job.mesh.lists:
        if (
            i.attrs.get("kind") in job.capabilities.lists
            and i.set in stored
            and i.index.ndim == 1
        ):
            if not job.capabilities.list_values and {"factors", "values"} & set(i.attrs):
                job.lost.append(f"the values of the list '{i.name}' of '{i.set}'")
            yield i
        else:
            job.lost.append(f"the list '{i.name}' of '{i.set}'")


def _foreign_sets(job: _Job) -> None:
    """Values and groups on sets that no mesh file has, such as derived edges and faces."""
    dropped = {s.name for s in job.mesh.cell_sets} - {s.name for s in job.sets}
    known = {"nodes", *(s.name for s in job.sets)} | dropped
    valued = {"nodes", *(s.name for s in job.valued)} | dropped
    for kind, items, sets in (
        ("values", job.mesh.dats, valued),
        ("groups", job.mesh.tags, known),
    ):
        job.lost.extend(
            f"{kind} '{i.name}' on '{i.set}'" for i in items if i.set not in sets
        )


def other_losses(
    mesh: Mesh,
    sets: Sequence[str],
    maps: Sequence[str],
    refusal: Callable[[Dat], str | None],
) -> list[str]:
    """What a mesh has besides these sets, maps and the values on them, in a few words each.

    ``refusal`` says why values do not fit, "" where there is no place for such, None where
    they do.
    """
    lost = [f"set '{s}'" for s in mesh.sets if s not in sets]
    types = dict.fromkeys(str(s.cell_type) for s in mesh.cell_sets)
    lost += [f"the types of the cells ({', '.join(types)})"] if types else []
    lost += [f"map '{m}'" for m in mesh.maps if m not in maps]
    for d in mesh.dats:
        why = refusal(d)
        if why is not None:
            lost.append(f"values '{d.name}' on '{d.set}'" + (f" ({why})" if why else ""))
    lost += [f"groups '{t.name}' on '{t.set}'" for t in mesh.tags]
    return lost + [f"index list '{i.name}'" for i in mesh.lists]


def with_used_names(tag: Tag) -> Tag:
    """The tag with names of those groups alone that it has elements in."""
    have = set(tag.group_id.tolist())
    return replace(tag, names={i: n for i, n in tag.names.items() if i in have})


def without_counts(mesh: Mesh) -> Mesh:
    """The mesh without numbers that only count; cells stand by type of first appearance."""
    for sets in (["nodes"], [s.name for s in mesh.cell_sets]):
        numbers_of_sets = []
        for name in sets:
            dat = mesh.dat(NUMBERS, name)
            if dat is not None and dat.is_numbering:
                numbers_of_sets.append(dat.values)
        numbers = np.concatenate(numbers_of_sets or [np.zeros(0)])
        every_set = len(numbers_of_sets) == len(sets)
        if every_set and np.array_equal(numbers, np.arange(1, numbers.size + 1)):
            kept = (d for d in mesh.dats if not (d.is_numbering and d.set in sets))
            mesh = replace(mesh, dats=tuple(kept))
    return mesh


def bad_lists(mesh: Mesh, pattern: str) -> Iterator[IndexList]:
    """Lists whose names do not fit, are used twice on a set, or stand for two forms."""
    # Some formats do not tell names apart by case.
    times = Counter((i.name.upper(), i.set) for i in mesh.lists)
    names = {(i.name, i.set == "nodes") for i in mesh.lists}
    forms = Counter((name.upper(), on_nodes) for name, on_nodes in names)
    for i in mesh.lists:
        alone = times[i.name.upper(), i.set] == forms[i.name.upper(), i.set == "nodes"] == 1
        if not (alone and i.index.size and re.fullmatch(pattern, i.name)):
            yield i


def flattened(mesh: Mesh) -> Mesh:
    """The mesh with two coordinates a node, where the third is zero throughout."""
    points = mesh.coordinates
    if points is None or points.shape[1] < 3 or points[:, 2].any():
        return mesh
    flat = Dat("coordinates", "nodes", points[:, :2])
    same = ((d.name, d.set) == ("coordinates", "nodes") for d in mesh.dats)
    return replace(
        mesh, dats=tuple(flat if s else d for s, d in zip(same, mesh.dats, strict=True))
    )
