"""What of a mesh is left in a format that cannot carry everything, and what is lost."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..mesh import Dat, ElementSet, IndexList, Mesh, Tag
from ..mesh.cells import shape_of
from ..topology.tags import without_sense
from .registry import Capabilities, Values, array_of_group

PREFERRED_TAGS = (
    *("physical", "medit:ref", "su2:tag", "exodus:block", "nastran:ref", "cell_tags"),
    *("cgns:bc", "cgns:region"),
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
    numbers. Tags become one group an element. Coordinates get a zero where the format wants three.
    O(size of the mesh).

    Raises MeshprepError where the format cannot hold the cells of the highest dimension, or there
    are no coordinates: nothing worth writing would be left.
    """
    dim = max((shape_of(str(s.cell_type)).dim for s in mesh.cell_sets), default=0)
    if "nodes" not in mesh.sets or not dim:
        raise MeshprepError("there are no cells to write")
    lost: list[str] = []
    job = _Job(mesh, capabilities, _cell_sets(mesh, capabilities, dim, lost), dim, lost)
    nodes = mesh.sets["nodes"]
    union = [
        _ordered(s, mesh, capabilities) for s in mesh.sets.values() if s.name == "cells" and s.parts
    ]
    maps = [mesh.cell_map(s.name) for s in job.sets]
    dats = _dats(job)
    tags = [*_tags(job, ["nodes"], capabilities.node_tag), *_cell_tags(job)]
    lists = list(_lists(job))
    extras = {k: v for k, v in mesh.extras.items() if k in capabilities.extras}
    return Mesh([nodes, *job.sets, *union], maps, dats, tags, lists, extras), lost


def reduced_values(
    mesh: Mesh, capabilities: Capabilities, sets: Sequence[ElementSet]
) -> tuple[list[Dat], list[IndexList], list[str]]:
    """Values and lists of a mesh without types of cells, of which these sets stay; the losses."""
    job = _Job(mesh, capabilities, tuple(sets), 0)
    return _dats(job), list(_lists(job)), job.lost


def _dats(job: _Job) -> list[Dat]:
    of_nodes = (_kept(job, d, job.capabilities.node_values) for d in _values_of(job, "nodes"))
    dats = [_coordinates(job), *(d for d in of_nodes if d is not None), *_cell_dats(job)]
    _foreign_sets(job)
    return dats


def _ordered(union: ElementSet, mesh: Mesh, capabilities: Capabilities) -> ElementSet:
    if not capabilities.type_order:
        return union
    place = {p: capabilities.type_order.index(str(mesh.sets[p].cell_type)) for p in union.parts}
    return replace(union, parts=tuple(sorted(union.parts, key=place.__getitem__)))


def _cell_sets(
    mesh: Mesh, capabilities: Capabilities, dim: int, lost: list[str]
) -> tuple[ElementSet, ...]:
    kept = []
    top = [str(s.cell_type) for s in mesh.cell_sets if shape_of(str(s.cell_type)).dim == dim]
    for s in mesh.cell_sets:
        kind = str(s.cell_type)
        below = dim - shape_of(kind).dim
        lower = capabilities.lower == "any" or below == 1
        if kind in capabilities.cell_types and (below == 0 or lower):
            kept.append(s)
        elif below == 0:
            raise MeshprepError(f"the format has no cells of type '{kind}': use another format")
        else:
            lost.append(f"{s.size} cells of type '{kind}'")
    if capabilities.type_order and top != sorted(top, key=capabilities.type_order.index):
        lost.append(f"the order of the cell types {', '.join(top)}")
    return tuple(kept)


def _coordinates(job: _Job) -> Dat:
    points = job.mesh.coordinates
    if points is None:
        raise MeshprepError("the mesh has no coordinates to write: give it some")
    points = points.astype(np.float64, copy=False)
    if points.shape[1] < 3 and not (job.capabilities.plane and points.shape[1] == 2):
        points = np.pad(points, ((0, 0), (0, 3 - points.shape[1])))
    return Dat("coordinates", "nodes", points)


def _values_of(job: _Job, set_name: str) -> Iterable[Dat]:
    """The dats of a set but the coordinates; a name that repeats is lost."""
    seen = set()
    for d in job.mesh.dats:
        if d.set != set_name or (d.name, d.set) == ("coordinates", "nodes"):
            continue
        if _key(job, d) in seen:
            job.lost.append(f"more than one time step of '{d.name}' on '{set_name}'")
            continue
        seen.add(_key(job, d))
        yield d


def _key(job: _Job, d: Dat) -> tuple[str, str]:
    return d.name, str(d.attrs.get(job.capabilities.step, ""))


def _cell_dats(job: _Job) -> list[Dat]:
    """Dats of cells: one of each name on every set, filled where there is none."""
    found: dict[tuple[str, str], dict[str, Dat]] = {}
    for s in job.valued:
        for d in _values_of(job, s.name):
            kept = _kept(job, d, job.capabilities.cell_values)
            if kept is not None:
                found.setdefault(_key(job, d), {})[s.name] = kept
    out: list[Dat] = []
    for (name, _), by_set in found.items():
        first = next(iter(by_set.values()))
        shapes = {(d.values.shape[1:], d.values.dtype.kind) for d in by_set.values()}
        absent = [s for s in job.valued if s.name not in by_set]
        if len(shapes) > 1 or (absent and first.values.dtype.kind != "f"):
            job.lost.append(f"values '{name}' of cells, as {_why(absent)}")
            continue
        out += by_set.values()
        shape, dtype = first.values.shape[1:], first.values.dtype
        nothing = (np.full((s.size, *shape), np.nan, dtype) for s in absent)
        attrs = first.attrs
        out += [Dat(name, s.name, v, None, attrs) for s, v in zip(absent, nothing, strict=True)]
    return out


def _why(absent: Sequence[ElementSet]) -> str:
    if absent:
        return f"the integers are not given on '{absent[0].name}'"
    return "they differ in shape from set to set"


def _kept(job: _Job, d: Dat, able: Values | None) -> Dat | None:
    """The dat as the format writes it, or None with a line in the losses."""
    text = f"values '{d.name}' on '{d.set}'"
    if able is None:
        job.lost.append(text)
        return None
    values = d.values
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    reason = _refusal(d, values, able, job.mesh.size(d.set))
    if reason:
        job.lost.append(f"{text} ({reason})")
        return None
    values = values.astype(dict(able.cast).get(values.dtype.name, values.dtype), copy=False)
    if d.index is not None:
        nothing = np.nan if values.dtype.kind == "f" else 0
        full = np.full((job.mesh.size(d.set), *values.shape[1:]), nothing, values.dtype)
        full[d.index] = values
        values = full
    step = job.capabilities.step
    return Dat(d.name, d.set, values, None, {step: d.attrs[step]} if step in d.attrs else {})


def _refusal(d: Dat, values: NDArray, able: Values, n: int) -> str:
    if able.numbers and d.is_numbering and 0 < values.min() <= values.max() < 1 << 31:
        return ""
    if values.dtype.kind not in able.kinds:
        known = {"i": "integers", "u": "integers", "f": "floating numbers"}
        return known.get(values.dtype.kind, f"of type {values.dtype}")
    half = values.dtype.itemsize == 2 and values.dtype.kind == "f"
    if values.dtype.itemsize > 8 or half or values.dtype.name in able.lacks:
        return f"of type {values.dtype}"
    if values.ndim > 2 or values.shape[1:] == (0,):
        return f"of shape {values.shape[1:]} each"
    width = 1 if values.ndim == 1 else values.shape[1]
    if able.widths and width not in able.widths:
        return f"{width} components each"
    if not re.fullmatch(able.name, d.name):
        return "a name the format cannot hold"
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
    return _tags(job, names, job.capabilities.tag)


def _tags(job: _Job, sets: Sequence[str], able: str | None) -> list[Tag]:
    """The tags of these sets that the format carries, under the names they come back with."""
    tags = [t for t in job.mesh.tags if t.set in sets and (t.group_id.size or t.names)]
    names = list(dict.fromkeys(t.name for t in tags))
    chosen = [choose_tag(names, able)] if able and names else []
    if not job.capabilities.other_tags:
        chosen = [n for n in chosen if n == able]
    if able == "*":
        # nodes and cells carry the same there
        values = job.capabilities.cell_values
        chosen = [n for n in names if values and re.fullmatch(values.name, array_of_group(n))]
    out = []
    for t in tags:
        if t.name in chosen:
            out.append(_plain(job, t, t.name if able == "*" else str(able)))
        else:
            job.lost.append(f"groups '{t.name}' on '{t.set}'")
    return out


def choose_tag(names: Sequence[str], own: str) -> str:
    wanted = (n for n in (own, *PREFERRED_TAGS) if n in names)
    return next(wanted, names[0])


def _plain(job: _Job, t: Tag, name: str) -> Tag:
    """The tag with one group an element, and with names only where the format has them."""
    if (np.diff(t.group_offset) > 1).any():
        job.lost.append(f"all but the first group of each element in '{t.name}' on '{t.set}'")
    if (t.group_id == 0).any():
        job.lost.append(f"the group 0 of '{t.name}' on '{t.set}'")
    ids, names = t.first_ids(), dict(t.names)
    if name != t.name and (without_sense(t.name, ids) != ids).any():
        job.lost.append(f"the minus of groups '{t.name}' on '{t.set}' (entities turned round)")
        ids = without_sense(t.name, ids)
    if names and not job.capabilities.group_names:
        job.lost.append(f"the names of the groups '{t.name}' on '{t.set}'")
        names = {}
    return Tag.from_ids(name, t.set, ids, names)


def _lists(job: _Job) -> Iterable[IndexList]:
    stored = {"nodes", *(s.name for s in job.sets)}
    for i in job.mesh.lists:
        if i.attrs.get("kind") in job.capabilities.lists and i.set in stored and i.index.ndim == 1:
            yield i
        else:
            job.lost.append(f"the list '{i.name}' of '{i.set}'")


def _foreign_sets(job: _Job) -> None:
    """Values and groups on sets that no mesh file has, such as derived edges and faces."""
    dropped = {s.name for s in job.mesh.cell_sets} - {s.name for s in job.sets}
    known = {"nodes", *(s.name for s in job.sets)} | dropped
    valued = {"nodes", *(s.name for s in job.valued)} | dropped
    for what, items, sets in (("values", job.mesh.dats, valued), ("groups", job.mesh.tags, known)):
        job.lost.extend(f"{what} '{i.name}' on '{i.set}'" for i in items if i.set not in sets)


def other_losses(
    mesh: Mesh,
    sets: Sequence[str],
    maps: Sequence[str],
    refusal: Callable[[Dat], str | None],
) -> list[str]:
    """What of a mesh is none of these sets and maps, and the values on them, in a few words each.

    ``refusal`` says why values do not fit, "" where there is no place for such, None where they do.
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


def bad_lists(mesh: Mesh, pattern: str) -> Iterator[IndexList]:
    """Lists with names that do not fit, that two lists of a set have, or that have two forms."""
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
    return replace(mesh, dats=tuple(flat if s else d for s, d in zip(same, mesh.dats, strict=True)))
