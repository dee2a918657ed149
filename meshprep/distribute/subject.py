"""The sets, maps and loops to split, in the numbering of the input."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.groups import ENTITY
from meshprep_runtime.plan.model import PlanContent
from meshprep_runtime.types.loops import Loop
from meshprep_runtime.types.maps import SetMap, distinct, read_only

from ..loops.requests import LoopSpec
from ..mesh import Dat, Mesh, Tag
from ..mesh.assemble import GroupTable
from ..mesh.cells import shape_of
from ..mesh.geometry import CENTROID, Means, centroids, map_of_means
from ..mesh.original import cell_types
from ..topology.layout import FACE_TYPES
from ..topology.tags import TagPiece, join_tags, without_sense
from .ranks import ALONE, Ranks

# Options of a loop that its variants have.
KEPT = ("block_size", "target")


@dataclass(frozen=True, eq=False)
class SplitSubject:
    """Sets, maps and loops to split."""

    # By set name: the sets that a loop runs over or reaches, and those of boundary facets.
    sizes: Mapping[str, int]
    maps: Mapping[str, SetMap]  # by map name: between these sets
    specs: tuple[LoopSpec, ...]  # the first one with maps leads
    # By set name: sizes of the sets that a union puts one after the other; blocks do not mix them.
    segments: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    # By set name: the sets of each union among ``sizes``; other parts of it are named, too.
    unions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # By set name: of the sets that have any; those of the leading set are an array.
    centroids: Mapping[str, Any] = field(default_factory=dict)
    # By set name: the number of each element in the mesh that was read, where that is another one.
    original: Mapping[str, NDArray[np.integer]] = field(default_factory=dict)
    source_hash: str = ""
    # Names of sets, those of the cell types in the order in which the mesh numbers its cells.
    cell_types: tuple[str, ...] = ()
    # By set name: sets without centroids here, whose centroids are the means of what these maps
    # reach.
    through: Mapping[str, str] = field(default_factory=dict)
    # By loop name: the block of each element in the file of parts that is split again, ascending;
    # with them the order of the sets is kept.
    blocks: Mapping[str, NDArray[np.integer]] = field(default_factory=dict)
    # True for a file of parts: elements stand part after part, in an order of locality.
    from_parts: bool = False
    # By their name in the file: coordinates and fields, with a row for each element of their set.
    values: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    tags: tuple[Tag, ...] = ()  # those of :func:`known_tags`

    def shared(self) -> "SplitSubject":
        """The same with tables that are read-only, as they are no more when they were sent."""
        maps = {m.name: replace(m, table=m.table) for m in self.maps.values()}
        places = {
            name: where if isinstance(where, Means) else read_only(where)
            for name, where in self.centroids.items()
        }
        return replace(self, maps=maps, centroids=places)

    def with_block_size(self, size: int | None) -> "SplitSubject":
        """The same where all loops have blocks of one size; None: each has its own."""
        if size is None:
            return self
        specs = (replace(s, options={**s.options, "block_size": size}) for s in self.specs)
        return replace(self, specs=tuple(specs))

    @property
    def leading_map(self) -> SetMap | None:
        """The leading map of the first loop that has one."""
        names = (spec.loop.leading_map for spec in self.specs)
        return next((self.maps[name] for name in names if name is not None), None)

    @property
    def leading_set(self) -> str:
        """The set that is cut; the others inherit: what the leading map reaches."""
        leading = self.leading_map
        return self.specs[0].loop.over if leading is None else leading.to_set


def subject_of_mesh(
    mesh: Mesh, full: Mesh, specs: Sequence[LoopSpec], *, fields: bool = False
) -> SplitSubject:
    """The sets and maps of a mesh that these loops use, their coordinates and groups.

    ``mesh`` is as it was read, ``full`` the same with every map that the loops need; with
    ``fields`` its values come along.
    """
    refuse_fixed(specs)
    maps = maps_of(full, specs)
    sets = sets_of(maps.values(), specs)
    unions = {name: full.sets[name].parts for name in sets if full.sets[name].parts}
    found = SplitSubject(
        sizes={name: full.size(name) for name in sets},
        maps=maps,
        specs=tuple(specs),
        segments={u: tuple(full.size(p) for p in parts) for u, parts in unions.items()},
        unions=unions,
        source_hash=mesh.content_hash(),
        cell_types=cell_types(mesh),
        values=values_of(full, sets, fields=fields),
        tags=tags_of(full, sets),
    )
    return replace(found, centroids=_places(full, found))


def values_of(mesh: Mesh, sets: Iterable[str], *, fields: bool) -> dict[str, NDArray[Any]]:
    """The coordinates of nodes among these sets, and the values on them, by name in the file."""
    found, where = {}, mesh.coordinates
    if where is not None and "nodes" in sets:
        found["coordinates/nodes"] = np.ascontiguousarray(where, "<f8")
    for dat in mesh.dats if fields else ():
        if dat.set in sets and is_field(dat):
            kind = dat.values.dtype.newbyteorder("<")
            found.setdefault(f"fields/{dat.set}/{dat.name}", dat.values.astype(kind, copy=False))
    return found


def is_field(dat: Dat) -> bool:
    """True for numbers of all elements of a set, but for coordinates and numberings."""
    plain = dat.values.dtype.kind in "iuf" and dat.index is None and "/" not in dat.name
    return plain and dat.name not in ("coordinates", CENTROID, ".", "") and not dat.is_numbering


def tags_of(mesh: Mesh, sets: Iterable[str]) -> tuple[Tag, ...]:
    """The groups of these sets; a union has those of its parts."""

    def on(name: str) -> list[Tag]:
        own, parts = [t for t in mesh.tags if t.set == name], mesh.sets[name].parts
        if own or not parts:
            return own
        pieces, begin = dict[str, list[TagPiece]](), 0
        for part in parts:
            end = begin + mesh.size(part)
            for tag in known_tags(on(part)):
                piece = tag, tag.values, np.arange(begin, end)
                pieces.setdefault(tag.name, []).append(piece)
            begin = end
        return [join_tags(tag, name, begin, found) for tag, found in pieces.items()]

    return known_tags(tag for name in sets for tag in on(name))


def known_tags(tags: Iterable[Tag], ranks: Ranks = ALONE) -> tuple[Tag, ...]:
    """Tags whose rows stand for the groups that elements on any rank are in, the same everywhere.

    Left out are partitions, Gmsh's entities on sets that have other groups, tags without groups,
    and those whose names a file cannot have.
    """
    left_out = ("partition", "", ".")
    found = [_agreed(t, ranks) for t in tags if t.name not in left_out and "/" not in t.name]
    found = [t for t in found if t.group_id.size or t.names]
    grouped = {t.set for t in found if t.name != ENTITY}
    kept = (t for t in found if t.name != ENTITY or t.set not in grouped)
    return tuple(sorted(kept, key=lambda t: (t.set, t.name)))


def _agreed(tag: Tag, ranks: Ranks) -> Tag:
    used = distinct(tag.values)
    ids = without_sense(tag.name, tag.group_id)
    ends = pairwise(tag.group_offset.tolist())
    lists = [tuple(ids[begin:end].tolist()) for begin, end in ends]
    every = sorted({(), *chain.from_iterable(ranks.allgather([lists[row] for row in used]))})
    row = {groups: i for i, groups in enumerate(every)}
    table = np.array([row.get(groups, 0) for groups in lists], np.int32)
    made = GroupTable.of(every, table[tag.values])
    return Tag(tag.name, tag.set, made.values, made.group_offset, made.group_id, tag.names)


def tag_of_ids(name: str, of: str, first: NDArray[np.int64], further: NDArray[np.int64]) -> Tag:
    """The tag of elements with these first groups, and further ones in rows that ascend."""
    ids, values = np.unique(first, return_inverse=True)
    lists = [(one,) if one else () for one in ids.tolist()]
    begin = np.searchsorted(further[:, 0], np.arange(first.size + 1))
    for k in range(int(np.diff(begin).max(initial=0))):
        element = np.flatnonzero(np.diff(begin) > k)
        pairs = np.column_stack([values[element], further[begin[element] + k, 1]])
        known, place = np.unique(pairs, axis=0, return_inverse=True)
        values[element] = len(lists) + place.reshape(-1)
        lists += [(*lists[row], group) for row, group in known.tolist()]
    made = GroupTable.of(lists, values.astype(np.int32))
    return Tag(name, of, made.values, made.group_offset, made.group_id)


def _places(full: Mesh, subject: SplitSubject) -> dict[str, Any]:
    """Centroids of all sets; those of others than the leading one are computed when asked for.

    Those of faces alone would be as large as all maps together.
    """
    leading, found = subject.leading_set, dict[str, Any]()
    for name in sorted(subject.sizes, key=lambda name: (name != leading, name != "nodes")):
        m = subject.maps.get(map_of_means(full, name) or "")
        if name != leading and m is not None and isinstance(found.get(m.to_set), np.ndarray):
            found[name] = Means(m.table, found[m.to_set])
        elif (where := centroids(full, name)) is not None:
            found[name] = where
    return found


def maps_of(full: Mesh, specs: Sequence[LoopSpec]) -> dict[str, SetMap]:
    """The maps of a mesh that are split: those of the loops, and of boundary facets."""
    names = dict.fromkeys(m for spec in specs for m in spec.loop.maps)
    names |= dict.fromkeys(m for m in full.maps if m.startswith("boundary_"))
    return {name: full.map(name) for name in names}


def subject_of_plan(plan: PlanContent) -> SplitSubject:
    """The loops of a plan, in its numbering; cuts know no coordinates."""
    specs = tuple(
        LoopSpec(
            p.loop,
            {name: getattr(p.variant(), name) for name in KEPT} if p.variants else {},
            {name: ("some",) for name, m in p.matrices.items() if (m.row_of < 0).any()},
        )
        for p in plan.loops.values()
    )
    refuse_fixed(specs)
    sets = sets_of(plan.maps.values(), specs)
    unions = {name: parts for name, parts in unions_of(plan).items() if name in sets}
    return SplitSubject(
        sizes={name: plan.sizes[name] for name in sets},
        maps=plan.maps,
        specs=specs,
        segments={u: tuple(plan.sizes[p] for p in parts) for u, parts in unions.items()},
        unions=unions,
        original={name: plan.ordering[name].new_to_old for name in sets},
        source_hash=plan.source_hash,
        cell_types=tuple(plan.sizes),
        values={f"coordinates/{s}": where for s, where in plan.coordinates.items() if s in sets},
        tags=known_tags(_tags_of_plan(plan, sets)),
    )


def _tags_of_plan(plan: PlanContent, sets: Iterable[str]) -> Iterator[Tag]:
    for name, tags in plan.tags.items():
        for label, first in tags.items() if name in sets else ():
            if label == "label":
                continue
            further = plan.further_groups.get(name, {}).get(label, np.empty((0, 2), np.int64))
            names = plan.group_names.get(name, {}).get(label, {})
            yield replace(tag_of_ids(label, name, first, further), names=names)


def refuse_fixed(specs: Iterable[LoopSpec]) -> None:
    """Raise MeshprepError where dofs of a matrix have no row."""
    for spec in (spec for spec in specs if any(spec.fixed.values())):
        raise MeshprepError(
            f"loop '{spec.loop.name}': matrix '{next(iter(spec.fixed))}' has fixed dofs, which a "
            "mesh in parts does not keep: leave 'fixed' out here, and give the ranks' "
            "PartAssembly(..., fixed=dat) a dat that is not 0 at these dofs"
        )


def sets_of(maps: Iterable[SetMap], specs: Sequence[LoopSpec]) -> list[str]:
    """The sets that these loops run over, and that these maps join."""
    found = dict.fromkeys(spec.loop.over for spec in specs)
    for m in maps:
        found |= dict.fromkeys((m.from_set, m.to_set))
    return list(found)


def written_by(loops: Iterable[Loop]) -> dict[str, Sequence[int]]:
    """The columns of maps that loops write through, ascending."""
    written: dict[str, set[int]] = {}
    for loop in loops:
        for name, columns in loop.conflict_columns.items():
            written.setdefault(name, set()).update(columns)
    return {name: sorted(columns) for name, columns in written.items()}


def unions_of(plan: PlanContent) -> dict[str, tuple[str, ...]]:
    """The sets of the types whose elements a set has, as names tell and orderings confirm."""
    families = {"cells": _cell_types(plan)}
    for prefix in ("", "boundary_"):
        names = [f"{prefix}{kind}_faces" for kind in FACE_TYPES.values()]
        families[f"{prefix}faces"] = tuple(name for name in plan.sizes if name in names)
    return {name: parts for name, parts in families.items() if _is_union(plan, name, parts)}


def _cell_types(plan: PlanContent) -> tuple[str, ...]:
    """The sets of cells of the highest dimension, as the plan has them."""
    dims = {}
    for name in plan.sizes:
        try:
            dims[name] = shape_of(name).dim
        except MeshprepError:
            continue
    return tuple(name for name, dim in dims.items() if dim == max(dims.values()))


def _is_union(plan: PlanContent, name: str, parts: tuple[str, ...]) -> bool:
    sizes = [plan.sizes[part] for part in parts]
    if len(parts) < 2 or plan.sizes.get(name) != sum(sizes):
        return False
    start = np.cumsum([0, *sizes[:-1]])
    pieces = [plan.ordering[p].new_to_old + b for p, b in zip(parts, start, strict=True)]
    return np.array_equal(plan.ordering[name].new_to_old, np.concatenate(pieces))
