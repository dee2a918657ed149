"""The sets, maps and loops to split, in the numbering of the input."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.groups import ENTITY
from meshprep_runtime.plan.model import LoopPlan, PlanContent
from meshprep_runtime.types.loops import Loop
from meshprep_runtime.types.maps import SetMap, distinct, read_only

from ..io.graphs.common import METIS, SIZE, WEIGHT
from ..loops.requests import LoopSpec
from ..mesh import Dat, Mesh, Tag
from ..mesh.assemble import GroupTable
from ..mesh.cells import shape_of
from ..mesh.geometry import CENTROID, Means, centroids, map_of_means
from ..mesh.model import GRAPH_MAP
from ..mesh.original import cell_types
from ..topology.layout import FACE_TYPES
from ..topology.tags import TagPiece, join_tags, without_sense
from .ranks import ALONE, Ranks

# Options of a loop that a variant of a plan keeps.
KEPT = ("block_size", "target")


@dataclass(frozen=True, eq=False)
class SplitSubject:
    """Sets, maps and loops to split."""

    # By set name: the sets that a loop runs over or reaches, and those of boundary facets.
    sizes: Mapping[str, int]
    maps: Mapping[str, SetMap]  # by map name: between these sets
    specs: tuple[LoopSpec, ...]  # the first one with maps leads
    # By set name: sizes of the sets that a union puts one after the other; blocks do not
    # mix them.
    segments: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    # By set name: the sets of each union among ``sizes``; other parts of it are named, too.
    unions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # By set name: arrays (n, d), or the means by a map; the leading set has an array.
    centroids: Mapping[str, Any] = field(default_factory=dict)
    # By set name: the number of each element in the mesh that was read, where it is not
    # the number here.
    original: Mapping[str, NDArray[np.integer]] = field(default_factory=dict)
    source_hash: str = ""
    # Names of sets; cell types stand in the order in which the mesh numbers its cells.
    cell_types: tuple[str, ...] = ()
    # By set name: the map whose means are the centroids of a set without centroids here.
    through: Mapping[str, str] = field(default_factory=dict)
    # By loop name: the block of each element in the file of parts that is split again,
    # ascending; with them the order of the sets is kept.
    blocks: Mapping[str, NDArray[np.integer]] = field(default_factory=dict)
    # True for a file of parts: elements stand part after part, in an order of locality.
    from_parts: bool = False
    # By their name in the file: coordinates and fields, with a row for each element of
    # their set.
    values: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    tags: tuple[Tag, ...] = ()  # those of :func:`known_tags`
    # (n,): weight of each element of the leading set, where a graph has weights.
    weights: NDArray[np.integer] | None = None
    # Weights and sizes of a graph that no cut uses, in words.
    unused: tuple[str, ...] = ()

    def shared(self) -> "SplitSubject":
        """The same with read-only tables: arrays that were sent are writable."""
        maps = {m.name: replace(m, table=m.table) for m in self.maps.values()}
        centroids: dict[str, Any] = {}
        for name, where in self.centroids.items():
            if isinstance(where, Means):
                centroids[name] = where
            else:
                centroids[name] = read_only(where)
        return replace(self, maps=maps, centroids=centroids)

    def with_block_size(self, size: int | None) -> "SplitSubject":
        """The same where all loops have blocks of one size; None: each has its own."""
        if size is None:
            return self
        specs = []
        for spec in self.specs:
            options = dict(spec.options) | {"block_size": size}
            specs.append(replace(spec, options=options))
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
        if leading is None:
            return self.specs[0].loop.over
        return leading.to_set


def subject_of_mesh(
    mesh: Mesh,
    full: Mesh,
    specs: Sequence[LoopSpec],
    *,
    fields: bool = False,
) -> SplitSubject:
    """The sets and maps of a mesh that these loops use, their coordinates and groups.

    ``mesh`` is as it was read, ``full`` the same with every map that the loops need; with
    ``fields`` its values come along.
    """
    refuse_fixed(specs)
    maps = maps_of(full, specs)
    sets = sets_of(maps.values(), specs)
    unions = {name: full.sets[name].parts for name in sets if full.sets[name].parts}
    segments = {}
    for union, parts in unions.items():
        segments[union] = tuple(full.size(part) for part in parts)
    subject = SplitSubject(
        sizes={name: full.size(name) for name in sets},
        maps=maps,
        specs=tuple(specs),
        segments=segments,
        unions=unions,
        source_hash=mesh.content_hash(),
        cell_types=cell_types(mesh),
        values=values_of(full, sets, fields=fields),
        tags=tags_of(full, sets),
    )
    # Weights and centroids depend on which set leads.
    weights, unused = _weights_of(mesh, subject.leading_set)
    return replace(
        subject,
        centroids=_centroids_of_sets(full, subject),
        weights=weights,
        unused=unused,
    )


def _weights_of(
    mesh: Mesh, leading: str
) -> tuple[NDArray[np.integer] | None, tuple[str, ...]]:
    """Weights of the leading set's elements, and in words what no cut uses of a graph."""
    if GRAPH_MAP not in mesh.maps:
        return None, ()
    ends = mesh.map(GRAPH_MAP)
    unused = []
    weight = None
    if leading == ends.to_set:
        weight = mesh.dat(WEIGHT, leading)
    # A cut balances a single weight.
    if weight is not None and weight.values.ndim > 1:
        unused.append(f"the {weight.values.shape[1]} weights of each of the {leading}")
        weight = None
    if METIS in mesh.extras and mesh.dat(WEIGHT, ends.from_set) is not None:
        unused.append(f"the weights of the {ends.from_set}")
    if mesh.dat(SIZE, ends.to_set) is not None:
        unused.append(f"the sizes of the {ends.to_set}")
    if weight is None:
        return None, tuple(unused)
    return weight.values, tuple(unused)


def values_of(mesh: Mesh, sets: Iterable[str], *, fields: bool) -> dict[str, NDArray[Any]]:
    """Coordinates of the nodes, and with ``fields`` the values on these sets.

    By their name in the file of parts.
    """
    values = {}
    where = mesh.coordinates
    if where is not None and "nodes" in sets:
        values["coordinates/nodes"] = np.ascontiguousarray(where, "<f8")
    if not fields:
        return values
    for dat in mesh.dats:
        if dat.set in sets and is_field(dat):
            # The first of several with one name is kept; numbers are stored little-endian.
            kind = dat.values.dtype.newbyteorder("<")
            name = f"fields/{dat.set}/{dat.name}"
            values.setdefault(name, dat.values.astype(kind, copy=False))
    return values


def is_field(dat: Dat) -> bool:
    """True for numbers of all elements of a set, but for coordinates and numberings."""
    has_numbers = dat.values.dtype.kind in "iuf" and dat.index is None
    # Names of HDF5 cannot have a slash, nor be a dot.
    has_name = "/" not in dat.name and dat.name not in ("", ".")
    is_geometry = dat.name in ("coordinates", CENTROID)
    return has_numbers and has_name and not is_geometry and not dat.is_numbering


def tags_of(mesh: Mesh, sets: Iterable[str]) -> tuple[Tag, ...]:
    """The groups of these sets; a union has those of its parts."""

    def tags_on(name: str) -> list[Tag]:
        stored = [tag for tag in mesh.tags if tag.set == name]
        parts = mesh.sets[name].parts
        if stored or not parts:
            return stored
        # Join the tags of the parts, one after the other, by their names.
        pieces = dict[str, list[TagPiece]]()
        begin = 0
        for part in parts:
            end = begin + mesh.size(part)
            for tag in known_tags(tags_on(part)):
                piece = tag, tag.values, np.arange(begin, end)
                pieces.setdefault(tag.name, []).append(piece)
            begin = end
        return [
            join_tags(name=tag, set_name=name, size=begin, pieces=pieces_of_tag)
            for tag, pieces_of_tag in pieces.items()
        ]

    return known_tags(chain.from_iterable(tags_on(name) for name in sets))


def known_tags(tags: Iterable[Tag], ranks: Ranks = ALONE) -> tuple[Tag, ...]:
    """Tags with the same rows on all ranks: the lists of groups that some element is in.

    Left out are partitions, Gmsh's entities on sets that have other groups, tags without
    groups, and those whose names a file cannot have.
    """
    left_out = ("partition", "", ".")
    able = [t for t in tags if t.name not in left_out and "/" not in t.name]
    agreed_tags = [_with_rows_of_all_ranks(tag, ranks) for tag in able]
    with_groups = [t for t in agreed_tags if t.group_id.size or t.names]
    # Gmsh's entities stand in for groups where a set has no others.
    grouped_sets = {t.set for t in with_groups if t.name != ENTITY}
    chosen = (t for t in with_groups if t.name != ENTITY or t.set not in grouped_sets)
    return tuple(sorted(chosen, key=lambda t: (t.set, t.name)))


def _with_rows_of_all_ranks(tag: Tag, ranks: Ranks) -> Tag:
    """The tag with a row for each list of groups that an element on any rank is in."""
    # The lists of groups in the table here, and those that some element here is in.
    ids = without_sense(tag.name, tag.group_id)
    ends = pairwise(tag.group_offset.tolist())
    lists = [tuple(ids[begin:end].tolist()) for begin, end in ends]
    used = [lists[row] for row in distinct(tag.values)]

    # Number the lists of all ranks in one order, the empty one first.
    used_anywhere = chain.from_iterable(ranks.allgather(used))
    all_lists = sorted({(), *used_anywhere})
    row_of_groups = {groups: row for row, groups in enumerate(all_lists)}
    new_row = np.array([row_of_groups.get(groups, 0) for groups in lists], np.int32)
    table = GroupTable.of(all_lists, new_row[tag.values])
    return Tag(
        name=tag.name,
        set=tag.set,
        values=table.values,
        group_offset=table.group_offset,
        group_id=table.group_id,
        names=tag.names,
    )


def tag_of_ids(
    name: str,
    of: str,
    first: NDArray[np.int64],
    further: NDArray[np.int64],
) -> Tag:
    """The tag of elements with these first groups, and further ones in rows that ascend."""
    # A row for each first group; 0 stands for none.
    ids, values = np.unique(first, return_inverse=True)
    lists = [(group,) if group else () for group in ids.tolist()]
    # Append the k-th further group of the elements that have so many: new rows for each
    # pair of an old row and a group.
    elements = np.arange(first.size + 1)
    begin = np.searchsorted(further[:, 0], elements)
    n_further = np.diff(begin)
    for k in range(int(n_further.max(initial=0))):
        element = np.flatnonzero(n_further > k)
        group_k = further[begin[element] + k, 1]
        pairs = np.column_stack([values[element], group_k])
        new_rows, number = np.unique(pairs, axis=0, return_inverse=True)
        values[element] = len(lists) + number.reshape(-1)
        lists += [(*lists[row], group) for row, group in new_rows.tolist()]
    table = GroupTable.of(lists, values.astype(np.int32))
    return Tag(
        name=name,
        set=of,
        values=table.values,
        group_offset=table.group_offset,
        group_id=table.group_id,
    )


def _centroids_of_sets(full: Mesh, subject: SplitSubject) -> dict[str, Any]:
    """Centroids of all sets: arrays of the leading set and of nodes, else means by a map.

    Means are computed row by row when they are asked for: the centroids of faces alone
    would be as large as all maps together.
    """
    leading = subject.leading_set
    centroids_of = dict[str, Any]()
    # Begin with the sets that have arrays, which the means of the others need.
    names = sorted(subject.sizes, key=lambda name: (name != leading, name != "nodes"))
    for name in names:
        m = subject.maps.get(map_of_means(full, name) or "")
        reached = None if m is None else centroids_of.get(m.to_set)
        if name != leading and m is not None and isinstance(reached, np.ndarray):
            centroids_of[name] = Means(m.table, reached)
            continue
        where = centroids(full, name)
        if where is not None:
            centroids_of[name] = where
    return centroids_of


def maps_of(full: Mesh, specs: Sequence[LoopSpec]) -> dict[str, SetMap]:
    """The maps of a mesh that are split: those of the loops, and of boundary facets."""
    names = dict.fromkeys(m for spec in specs for m in spec.loop.maps)
    names |= dict.fromkeys(m for m in full.maps if m.startswith("boundary_"))
    return {name: full.map(name) for name in names}


def subject_of_plan(plan: PlanContent) -> SplitSubject:
    """The loops of a plan, in its numbering; cuts know no coordinates."""
    specs = tuple(_spec_of_loop_plan(loop_plan) for loop_plan in plan.loops.values())
    refuse_fixed(specs)
    # The sets that loops and maps name, and the unions among them.
    sets = sets_of(plan.maps.values(), specs)
    unions = {name: parts for name, parts in unions_of(plan).items() if name in sets}
    segments = {}
    for union, parts in unions.items():
        segments[union] = tuple(plan.sizes[part] for part in parts)
    coordinates = {}
    for name, where in plan.coordinates.items():
        if name in sets:
            coordinates[f"coordinates/{name}"] = where
    return SplitSubject(
        sizes={name: plan.sizes[name] for name in sets},
        maps=plan.maps,
        specs=specs,
        segments=segments,
        unions=unions,
        original={name: plan.ordering[name].new_to_old for name in sets},
        source_hash=plan.source_hash,
        cell_types=tuple(plan.sizes),
        values=coordinates,
        tags=known_tags(_tags_of_plan(plan, sets)),
    )


def _spec_of_loop_plan(loop_plan: LoopPlan) -> LoopSpec:
    """The loop with the options of its default variant, and with its fixed matrices."""
    options = {}
    if loop_plan.variants:
        variant = loop_plan.variant()
        options = {name: getattr(variant, name) for name in KEPT}
    # which dofs are fixed does not matter: parts refuse any
    fixed = {
        name: ("some",)
        for name, matrix in loop_plan.matrices.items()
        if (matrix.row_of < 0).any()
    }
    return LoopSpec(loop_plan.loop, options, fixed)


def _tags_of_plan(plan: PlanContent, sets: Iterable[str]) -> Iterator[Tag]:
    """The tags of a plan on these sets; labels, which number elements, are none."""
    for name in sets:
        names_of_set = plan.group_names.get(name, {})
        further_of_set = plan.further_groups.get(name, {})
        for label, first in plan.tags.get(name, {}).items():
            if label == "label":
                continue
            further = further_of_set.get(label, np.empty((0, 2), np.int64))
            tag = tag_of_ids(name=label, of=name, first=first, further=further)
            yield replace(tag, names=names_of_set.get(label, {}))


def refuse_fixed(specs: Iterable[LoopSpec]) -> None:
    """Raise MeshprepError where dofs of a matrix have no row."""
    for spec in specs:
        if not any(spec.fixed.values()):
            continue
        raise MeshprepError(
            f"loop '{spec.loop.name}': matrix '{next(iter(spec.fixed))}' has fixed dofs, "
            "which a mesh in parts does not keep: "
            "leave 'fixed' out here, and give the ranks' "
            "PartAssembly(..., fixed=dat) a dat that is not 0 at these dofs"
        )


def sets_of(maps: Iterable[SetMap], specs: Sequence[LoopSpec]) -> list[str]:
    """The sets that these loops run over, and that these maps join."""
    # a dict keeps the order in which loops and maps name them
    names = dict.fromkeys(spec.loop.over for spec in specs)
    for m in maps:
        names |= dict.fromkeys((m.from_set, m.to_set))
    return list(names)


def written_by(loops: Iterable[Loop]) -> dict[str, Sequence[int]]:
    """The columns of maps that loops write through, ascending."""
    written: dict[str, set[int]] = {}
    for loop in loops:
        for name, columns in loop.conflict_columns.items():
            written.setdefault(name, set()).update(columns)
    return {name: sorted(columns) for name, columns in written.items()}


def unions_of(plan: PlanContent) -> dict[str, tuple[str, ...]]:
    """By union: the sets that it puts one after the other.

    A plan does not record unions: names tell which sets may be one, and orderings confirm
    it.
    """
    families = {"cells": _sets_of_cells(plan)}
    for prefix in ("", "boundary_"):
        names = [f"{prefix}{kind}_faces" for kind in FACE_TYPES.values()]
        families[f"{prefix}faces"] = tuple(name for name in plan.sizes if name in names)
    return {name: parts for name, parts in families.items() if _is_union(plan, name, parts)}


def _sets_of_cells(plan: PlanContent) -> tuple[str, ...]:
    """The sets of cells of the highest dimension, as the plan has them."""
    # A set of cells has the name of its type.
    dims = {}
    for name in plan.sizes:
        try:
            dims[name] = shape_of(name).dim
        except MeshprepError:
            continue
    highest = max(dims.values(), default=0)
    return tuple(name for name, dim in dims.items() if dim == highest)


def _is_union(plan: PlanContent, name: str, parts: tuple[str, ...]) -> bool:
    """Whether the elements of a set are those of these parts, part after part."""
    size = sum(plan.sizes[part] for part in parts)
    if len(parts) < 2 or plan.sizes.get(name) != size:
        return False
    # The ordering of a union is that of its parts, numbered one after the other.
    pieces = []
    start = 0
    for part in parts:
        pieces.append(plan.ordering[part].new_to_old + start)
        start += plan.sizes[part]
    return np.array_equal(plan.ordering[name].new_to_old, np.concatenate(pieces))
