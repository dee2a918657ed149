"""What a Gmsh file can store of a mesh, and in which section; imports no numba."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import distinct

from ...mesh import Dat, ElementSet, IndexList, Mesh, Tag
from ...mesh.cells import node_count, shape_of
from ...mesh.model import GMSH_ENTITY
from .types import NUMBER_OF

VERSIONS = ("2.2", "4.1")
# Sections that hold no number of a node or element, text in every mode: carried as they
# are.
KEPT_SECTIONS = ("Comments", "InterpolationScheme")
ENTITY_DIM, ENTITY_TAG = GMSH_ENTITY
# Where nodes lie on the curve, surface or volume that they are on: (n, 3), 0 for what it
# has not.
PARAMETRIC = "gmsh:parametric"
PERIODIC = "gmsh:periodic"
# Names that mean something else on a mesh: values of such a name carry it in this
# attribute.
RESERVED = ("label", "coordinates")
NAME, SECTION, STRINGS, REALS, INTEGERS = (
    f"gmsh:{what}" for what in ("name", "section", "strings", "reals", "integers")
)
ATTRIBUTES = (NAME, SECTION, STRINGS, REALS, INTEGERS)


def source(mesh: Mesh) -> Mapping[str, Any]:
    """What the Gmsh reader left in the extras; empty for a mesh from elsewhere."""
    found = mesh.extras.get("gmsh")
    if isinstance(found, Mapping):
        return found
    return {}


def target(mesh: Mesh, version: str | None, binary: bool | None) -> tuple[str, bool]:
    """Version and mode to write: as asked, else as in the file that the mesh came from."""
    info = source(mesh)
    if version is None:
        version = str(info.get("version", "4.1"))
    else:
        version = str(version)
    if version not in VERSIONS:
        raise MeshprepError(
            f"MSH version '{version}' is unknown: use {' or '.join(VERSIONS)}"
        )
    return version, bool(info.get("binary", True)) if binary is None else bool(binary)


INT_LIMIT = 2**31 - 1
NUMBER_LIMIT = 10**18 - 1
EXACT_LIMIT = 2**53
# Gmsh reads a line of names into 256 bytes.
TEXT_LIMIT = 200
UNFIT = "have quotation marks or control characters, or more than 200 bytes"
_NO_TEXT = re.compile(r'["\x00-\x1f\x7f]')
# (n,) each: dimension and number of the entity of each node.
NodeEntity = tuple[NDArray[np.integer], NDArray[np.integer]]


@dataclass(frozen=True, eq=False)
class FileLayout:
    """Where each part of a mesh goes."""

    cells: tuple[ElementSet, ...]  # the sets that are written, in order
    # By set: tags that Gmsh has a place for.
    physical: dict[str, Tag]
    entity: dict[str, Tag]
    partition: dict[str, Tag]
    physical_name: str  # what the tag is called that is written as physical groups
    # Tags that are written as values, with the table of their groups beside them.
    tags: tuple[Tag, ...]
    dats: tuple[Dat, ...]  # dats that are written as values
    node_label: NDArray[np.int64] | None  # (n,)
    cell_label: dict[str, NDArray[np.int64]]  # by set, (n,)
    # Where the file has a place for them.
    node_entity: NodeEntity | None
    parametric: Dat | None
    partitioned: bool  # whether the partitions of cells are those of their entities
    lost: tuple[str, ...]  # what is written nowhere


def losses(
    mesh: Mesh, *, version: str | None = None, binary: bool | None = None
) -> list[str]:
    """What of this mesh is not written to a file of this version, in a few words each.

    Version and mode are those of the file that the mesh came from where they are left out.
    """
    return list(find_layout(mesh, target(mesh, version, binary)[0]).lost)


def find_layout(mesh: Mesh, version: str) -> FileLayout:
    """Decide where everything goes. O(size)."""
    # Choose the sets of cells that Gmsh has types for.
    fit = (s for s in mesh.cell_sets if s.size and s.cell_type in NUMBER_OF)
    arity = {s.name: node_count(str(s.cell_type)) for s in fit}
    cells = tuple(
        s for s in mesh.cell_sets if arity.get(s.name) == mesh.cell_map(s.name).arity
    )
    lost = []
    dims = [shape_of(str(s.cell_type)).dim for s in mesh.cell_sets if s.size]
    for s in (s for s in mesh.cell_sets if s.size and s not in cells):
        if shape_of(str(s.cell_type)).dim == max(dims):
            raise MeshprepError(
                f"cells of type '{s.cell_type}' are not written to this format: use "
                "another format"
            )
        lost.append(f"cells of type '{s.cell_type}'")
    held = {s.name for s in cells}
    # Give cells their entities, partitions and physical groups, from tags that fit.
    entity = _native(
        mesh=mesh,
        held=held,
        name="entity",
        fits=lambda t: not (t.names or _several(t).size),
    )
    entity = {name: t for name, t in entity.items() if _fits_int(t.group_id)}
    # MSH 2.2 has partitions of elements, 4.1 of entities: there others are values.
    partition = _native(
        mesh=mesh,
        held=held,
        name="partition",
        fits=lambda t: _fits_int(t.group_id) and not t.names,
    )
    partitioned = version == "4.1" and _are_of_entities(
        mesh=mesh, cells=cells, entity=entity, partition=partition
    )
    if version == "4.1" and not partitioned:
        partition = {}
    name = _physical_name(mesh, held)
    physical = _same_names(
        _native(mesh=mesh, held=held, name=name, fits=_is_physical), cells
    )
    placed = {id(t) for t in (*entity.values(), *partition.values(), *physical.values())}
    tags = tuple(t for t in mesh.tags if id(t) not in placed)
    # Values that say where nodes lie, and numbers, have places of their own.
    dats = tuple(d for d in mesh.dats if (d.name, d.set) != ("coordinates", "nodes"))
    node_entity, parametric = _node_places(mesh, version)
    if node_entity is None:
        placing = []
    else:
        placing = [ENTITY_DIM, ENTITY_TAG]
    placing += [] if parametric is None else [PARAMETRIC]
    dats = tuple(d for d in dats if d.set != "nodes" or d.name not in placing)
    labels = {d.set: d for d in dats if d.name == "label" and d.set in {"nodes", *held}}
    label_ids = {id(label) for label in labels.values()}
    dats = tuple(d for d in dats if id(d) not in label_ids)
    kept_tags = tuple(t for t in tags if not any(_tag_problems(t, held)))
    kept_dats = tuple(d for d in dats if not any(_dat_problems(d, held)))
    valued = {t.set for t in kept_tags} | {d.set for d in kept_dats}
    node_label, cell_label, problems = _writable_labels(
        mesh=mesh, cells=cells, labels=labels, version=version, valued=valued
    )
    # Name all that has no place.
    lost += problems
    for tag in tags:
        lost += _tag_problems(tag, held)
    for d in dats:
        lost += _dat_problems(d, held)
        lost += [
            f"attribute '{k}' of values '{d.name}'" for k in d.attrs if k not in ATTRIBUTES
        ]
    unfit = (t for t in physical.values() if not all(map(is_text, t.names.values())))
    lost += [f"names of groups '{t.name}' that {UNFIT}" for t in unfit]
    for names_of_unused in source(mesh).get("names", {}).values():
        if not all(map(is_text, names_of_unused.values())):
            lost.append(f"names of groups without cells that {UNFIT}")
            break
    lost += [f"index list '{i.name}'" for i in mesh.lists if not is_periodic(i)]
    sections = (name for name, _ in source(mesh).get("sections", ()))
    lost += [f"section ${name}" for name in sections if name not in KEPT_SECTIONS]
    if version == "2.2" and source(mesh).get("entities"):
        lost.append("boxes, boundaries and own groups of entities (MSH 2.2)")
    return FileLayout(
        cells=cells,
        physical=physical,
        entity=entity,
        partition=partition,
        physical_name=name,
        tags=kept_tags,
        dats=kept_dats,
        node_label=node_label,
        cell_label=cell_label,
        node_entity=node_entity,
        parametric=parametric,
        partitioned=partitioned,
        lost=tuple(dict.fromkeys(lost)),
    )


def is_text(text: str) -> bool:
    """Whether a line of a file can hold this text between quotation marks."""
    try:
        return not _NO_TEXT.search(text) and len(text.encode()) <= TEXT_LIMIT
    except UnicodeEncodeError:
        return False


def _native(
    mesh: Mesh, held: set[str], name: str, fits: Callable[[Tag], bool]
) -> dict[str, Tag]:
    return {t.set: t for t in mesh.tags if t.name == name and t.set in held and fits(t)}


def _are_of_entities(
    mesh: Mesh,
    cells: Sequence[ElementSet],
    entity: Mapping[str, Tag],
    partition: Mapping[str, Tag],
) -> bool:
    """Whether entities have partitions, and cells only those of theirs. O(n log n)."""
    partitions_of_entity = {
        (e.dim, e.tag): e.partitions for e in source(mesh).get("entities", ())
    }
    if not any(partitions_of_entity.values()):
        return False
    for s in cells:
        dim = shape_of(str(s.cell_type)).dim
        nothing = Tag.from_ids("", s.name, np.zeros(s.size, np.int64))
        on = entity.get(s.name, nothing)
        parts = partition.get(s.name, nothing)
        pairs = np.unique(np.stack([on.values, parts.values]), axis=1)
        for row, part_row in pairs.T.tolist():
            own = (*on.groups(row), 0)[0]
            if partitions_of_entity.get((dim, own), ()) != parts.groups(part_row):
                return False
    return True


def _physical_name(mesh: Mesh, held: set[str]) -> str:
    """The tag that becomes the physical groups: that name, or the only other one."""
    names = list(dict.fromkeys(t.name for t in mesh.tags if t.set in held))
    others = [n for n in names if n not in ("entity", "partition")]
    if "physical" in names or len(others) != 1 or not is_text(others[0]):
        return "physical"
    return others[0]


def _is_physical(t: Tag) -> bool:
    """Numbers of 4 bytes but 0, no group twice for a cell; names of such numbers."""
    named = all(-INT_LIMIT <= i <= INT_LIMIT for i in t.names)
    once = all(len(set(g)) == len(g) for g in map(t.groups, _several(t)))
    return named and _fits_int(t.group_id) and once


def _fits_int(ids: NDArray[np.int64]) -> bool:
    return bool((ids != 0).all() and (np.abs(ids) <= INT_LIMIT).all())


def _several(t: Tag) -> NDArray[np.int64]:
    return np.flatnonzero(np.diff(t.group_offset) > 1)


def _same_names(tags: dict[str, Tag], cells: tuple[ElementSet, ...]) -> dict[str, Tag]:
    """Those tags whose names are those of the first tag of their dimension."""
    first: dict[int, dict[int, str]] = {}
    out = {}
    for s in cells:
        if s.name in tags:
            names = dict(tags[s.name].names)
            if first.setdefault(shape_of(str(s.cell_type)).dim, names) == names:
                out[s.name] = tags[s.name]
    return out


def _tag_problems(t: Tag, held: set[str]) -> Iterator[str]:
    if t.set not in {"nodes", *held}:
        if t.values.size:
            yield f"groups '{t.name}' on '{t.set}'"
    elif not all(is_text(text) for text in (t.name, *t.names.values())):
        yield f"groups '{t.name}' on '{t.set}' (names that {UNFIT})"
    elif (
        _several(t).size or not t.group_id.all() or (np.abs(t.group_id) > EXACT_LIMIT).any()
    ):
        yield f"groups '{t.name}' on '{t.set}' (several of an element, 0, or beyond 2^53)"


def _dat_problems(d: Dat, held: set[str]) -> Iterator[str]:
    subject = f"values '{d.name}' on '{d.set}'"
    if d.set not in {"nodes", *held}:
        yield subject
    elif d.values.dtype.kind not in "biuf" or d.values.dtype.itemsize > 8:
        yield f"{subject} of type {d.values.dtype}"
    elif not is_text(d.name):
        yield f"{subject} (names that {UNFIT})"
    elif d.values.dtype.kind in "iu" and d.values.dtype.itemsize == 8 and d.values.size:
        if int(d.values.max()) > EXACT_LIMIT or int(d.values.min()) < -EXACT_LIMIT:
            yield f"{subject} (whole numbers beyond 2^53)"
    elif d.name in RESERVED:
        yield f"{subject} (the name has another meaning)"


def _node_places(mesh: Mesh, version: str) -> tuple[NodeEntity | None, Dat | None]:
    """Entities of the nodes, and where these lie on them, as far as a file can say so.

    MSH 2 has entities of nodes only beside their places.
    """
    entity = _node_entity(mesh)
    places = mesh.dat(PARAMETRIC, "nodes")
    if entity is None:
        return None, None
    if places is not None:
        held = places.index
        if held is None:
            held = np.arange(mesh.size("nodes"), dtype=np.int32)
        dim = entity[0][held]
        if version == "2.2":
            # there all nodes of curves and surfaces have them, and no others
            fits = np.array_equal(np.flatnonzero(np.isin(entity[0], (1, 2))), held)
        else:
            fits = bool((dim > 0).all())
        beyond = np.arange(3) >= dim[:, None]
        values = places.values
        fits = fits and values.shape == beyond.shape and values.dtype == np.float64
        if fits and not values[beyond].any():
            places = places
        else:
            places = None
    if version == "2.2" and places is None:
        return None, None
    return entity, places


def _node_entity(mesh: Mesh) -> NodeEntity | None:
    """Entities of the nodes, where the blocks of MSH 4.1 can say so."""
    found = [mesh.dat(name, "nodes") for name in (ENTITY_DIM, ENTITY_TAG)]
    dim, tag = found
    if dim is None or tag is None:
        return None
    for d in (dim, tag):
        if d.index is not None or d.values.ndim != 1 or d.values.dtype.kind not in "iu":
            return None
        if d is dim:
            low, high = (0, 3)
        else:
            low = -INT_LIMIT
            high = INT_LIMIT
        if d.values.size and not (low <= d.values.min() and d.values.max() <= high):
            return None
    return dim.values, tag.values


def _writable_labels(
    mesh: Mesh,
    cells: Sequence[ElementSet],
    labels: dict[str, Dat],
    version: str,
    valued: set[str],
) -> tuple[NDArray[np.int64] | None, dict[str, NDArray[np.int64]], list[str]]:
    """Numbers of nodes and cells that can be written as they are, and what is lost.

    ``valued`` are the sets with values. The one set of cells without numbers has 1, 2, 3,
    ...
    """
    if version == "2.2" or valued:
        # MSH 2.2 has numbers of 32 bits, and so have the rows of values in any version.
        limit = INT_LIMIT
    else:
        limit = NUMBER_LIMIT
    lost = []
    node = None
    cell = {name: d for name, d in labels.items() if name != "nodes"}
    if "nodes" in labels:
        values = labels["nodes"].values
        if _are_numbers(labels["nodes"], limit) and distinct(values).size == values.size:
            node = values.astype(np.int64)
        else:
            lost.append("node numbers (some occur twice or are out of range)")
    label_of_set = {
        name: d.values.astype(np.int64)
        for name, d in cell.items()
        if _are_numbers(d, limit)
    }
    missing = [s for s in cells if s.name not in cell]
    for s in missing[:1] if cell else ():
        label_of_set[s.name] = np.arange(1, s.size + 1)
    # Numbers that occur twice harm only where sections refer to them, or some are made up.
    refer = valued - {"nodes"} or missing or any(t.name == "partition" for t in mesh.tags)
    both = np.concatenate([*label_of_set.values(), np.empty(0, np.int64)])
    if cell and (
        len(label_of_set) < len(cells) or (refer and distinct(both).size < both.size)
    ):
        return (
            node,
            {},
            [*lost, "cell numbers (some are missing, occur twice or out of range)"],
        )
    return node, label_of_set, lost


def _are_numbers(d: Dat, limit: int) -> bool:
    v = d.values
    if d.index is not None or v.ndim != 1 or v.dtype.kind not in "iu":
        return False
    return not v.size or (int(v.min()) >= 0 and int(v.max()) <= limit)


def is_periodic(i: IndexList) -> bool:
    """Whether this list is a periodic link that a Gmsh file can say."""
    known = {"dim", "slave", "master"} <= set(i.attrs)
    pairs = i.set == "nodes" and i.index.ndim == 2 and i.index.shape[1] == 2
    return i.name == PERIODIC and known and pairs


@dataclass(frozen=True, eq=False)
class CellBlock:
    """A set of cells as it is written."""

    set: ElementSet
    number: int  # Gmsh's number of the type
    dim: int
    nodes: NDArray[np.int32]  # (n, k): positions of nodes, in Gmsh's order
    # (n,)
    label: NDArray[np.int64]
    entity: NDArray[np.int64]
